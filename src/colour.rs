//! Colours on a terminal.

use std::ffi::OsString;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use clap::ValueEnum;
use clap::builder::Styles;

/// The value of `--color`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColourArg {
    // Without rustdoc, which would make the help of every command long.
    Auto,
    Always,
    Never,
}

impl ColourArg {
    /// Returns the value of `--color` on a command line. Its other errors are found later.
    pub(crate) fn on_command_line(words: impl Iterator<Item = OsString>) -> ColourArg {
        let words: Vec<OsString> = words.take_while(|word| word != "--").collect();
        let mut values = words.iter().enumerate().filter_map(|(at, word)| match word.to_str()? {
            "--color" => words.get(at + 1)?.to_str(),
            word => word.strip_prefix("--color="),
        });
        values.next_back().and_then(|value| ColourArg::from_str(value, false).ok()).unwrap_or(ColourArg::Auto)
    }

    /// Returns the choice of clap, for errors of the command line and for the help.
    pub(crate) fn of_clap(self) -> clap::ColorChoice {
        match self {
            ColourArg::Auto => clap::ColorChoice::Auto,
            ColourArg::Always => clap::ColorChoice::Always,
            ColourArg::Never => clap::ColorChoice::Never,
        }
    }

    /// Makes this the choice for the output of the program.
    pub(crate) fn apply(self) {
        match self {
            ColourArg::Auto => ColorChoice::Auto,
            ColourArg::Always => ColorChoice::AlwaysAnsi,
            ColourArg::Never => ColorChoice::Never,
        }
        .write_global();
    }
}

/// Returns whether a stream shows colours, by the choice of the user and by its kind.
pub(crate) fn colours(stream: &impl RawStream) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}

/// Returns the first word of a message on standard error, `error:` or `warning:`, as clap shows it.
pub(crate) fn message_head(word: &str) -> String {
    if !colours(&std::io::stderr()) {
        return format!("{word}:");
    }
    let styles = Styles::styled();
    let style = if word == "error" { styles.get_error() } else { styles.get_invalid() };
    format!("{style}{word}:{style:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expect: ColourArg) {
        assert_eq!(ColourArg::on_command_line(line.split(' ').map(OsString::from)), expect, "{line}");
    }

    #[test]
    fn the_option_is_found_before_the_command_line_is_checked() {
        check("compare log.swf", ColourArg::Auto);
        check("compare --color never log.swf", ColourArg::Never);
        check("--color=always compare --nonsense", ColourArg::Always);
        check("--color=always compare --color never", ColourArg::Never);
        check("compare --color", ColourArg::Auto);
        check("compare --color mauve", ColourArg::Auto);
        check("submit -- echo --color always", ColourArg::Auto);
    }
}
