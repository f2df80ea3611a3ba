//! Colours and characters.

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

/// The abilities of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Whether it shows colours.
    pub colour: bool,
    /// Whether it shows ASCII characters only.
    pub ascii: bool,
}

/// The purpose of a text, for its style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Plain,
    Title,
    Dim,
    Good,
    Bad,
    Selected,
    Chosen,
    Own,
    Ran,
    Running,
    Promised,
    Planned,
    Idle,
    Now,
}

/// The characters beyond ASCII that this crate draws, each with its replacement.
const REPLACEMENTS: [(&str, &str); 15] = [
    ("█", "#"),
    ("▓", "="),
    ("▒", "+"),
    ("░", ":"),
    ("▄", "-"),
    ("▚", "@"),
    ("·", "."),
    ("┆", "'"),
    ("│", "|"),
    ("─", "-"),
    ("▲", "^"),
    ("▼", "v"),
    ("←", "<"),
    ("→", ">"),
    ("…", "~"),
];

impl Look {
    /// Returns whether the locale in these environment variables has UTF-8 as its encoding.
    pub fn is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
        let set = |name: &&str| variable(name).filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set).unwrap_or_default();
        let locale = locale.to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    }

    /// Returns the style of a text.
    pub(crate) fn style(self, role: Role) -> Style {
        let style = Style::new().add_modifier(modifier(role));
        if self.colour { colour(role).map_or(style, |colour| style.fg(colour)) } else { style }
    }

    /// Replaces the characters that the terminal cannot show.
    pub(crate) fn reduce(self, buffer: &mut Buffer) {
        if !self.ascii {
            return;
        }
        for cell in &mut buffer.content {
            if !cell.symbol().is_ascii() {
                let found = REPLACEMENTS.iter().find(|(symbol, _)| *symbol == cell.symbol());
                cell.set_symbol(found.map_or("?", |(_, ascii)| ascii));
            }
        }
    }
}

fn modifier(role: Role) -> Modifier {
    match role {
        Role::Selected | Role::Chosen => Modifier::REVERSED,
        Role::Title | Role::Own | Role::Bad => Modifier::BOLD,
        Role::Dim => Modifier::DIM,
        _ => Modifier::empty(),
    }
}

fn colour(role: Role) -> Option<Color> {
    Some(match role {
        Role::Good | Role::Running => Color::Green,
        Role::Bad => Color::Red,
        Role::Title | Role::Promised => Color::Cyan,
        Role::Planned => Color::Blue,
        Role::Idle | Role::Chosen => Color::Yellow,
        Role::Plain | Role::Dim | Role::Selected | Role::Own | Role::Ran | Role::Now => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(variables: &[(&str, &str)], expect: bool) {
        let value = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        assert_eq!(Look::is_utf8(value), expect, "{variables:?}");
    }

    #[test]
    fn the_first_variable_that_is_set_names_the_encoding() {
        check(&[], false);
        check(&[("LANG", "en_GB.UTF-8")], true);
        check(&[("LANG", "en_GB.utf8"), ("LC_ALL", "C")], false);
        check(&[("LC_ALL", ""), ("LC_CTYPE", "C.UTF-8"), ("LANG", "C")], true);
    }
}
