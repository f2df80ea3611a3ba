//! How numbers, paths and text get into an SVG.

use std::fmt;

/// The size of the letters, in the units of the drawing.
pub(super) const LETTERS: f64 = 12.0;

/// A coordinate with at most two decimals. What is not finite would spoil the drawing, and is zero.
#[derive(Clone, Copy)]
pub(super) struct Px(pub(super) f64);

impl fmt::Display for Px {
    fn fmt(&self, output: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = if self.0.is_finite() { (self.0 * 100.0).round() / 100.0 } else { 0.0 };
        // Shortest form of a rounded number: no trailing zeros. Adding zero makes the negative zero a plain one.
        write!(output, "{}", value + 0.0)
    }
}

/// The `d` of a path.
#[derive(Default)]
pub(super) struct Path(String);

impl Path {
    /// Straight lines from each place to the next.
    pub(super) fn along(places: &[(f64, f64)]) -> Path {
        let mut path = Path::default();
        for (n, &(x, y)) in places.iter().enumerate() {
            if n == 0 { path.go(x, y) } else { path.line(x, y) }
        }
        path
    }

    pub(super) fn go(&mut self, x: f64, y: f64) {
        self.push('M', x, y);
    }

    pub(super) fn line(&mut self, x: f64, y: f64) {
        self.push('L', x, y);
    }

    /// Along to x, then up or down to y.
    pub(super) fn step(&mut self, x: f64, y: f64) {
        self.0.push_str(&format!("H{}V{}", Px(x), Px(y)));
    }

    /// A dot, as a stroke of no length: it is drawn by its round ends.
    pub(super) fn dot(&mut self, x: f64, y: f64) {
        self.push('M', x, y);
        self.0.push_str("h0");
    }

    pub(super) fn rect(&mut self, left: f64, top: f64, width: f64, height: f64) {
        self.push('M', left, top);
        self.0.push_str(&format!("h{}v{}H{}Z", Px(width), Px(height), Px(left)));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn push(&mut self, command: char, x: f64, y: f64) {
        self.0.push_str(&format!("{command}{} {}", Px(x), Px(y)));
    }
}

impl fmt::Display for Path {
    fn fmt(&self, output: &mut fmt::Formatter<'_>) -> fmt::Result {
        output.write_str(&self.0)
    }
}

/// About how wide a text is. Fonts differ, so it is that of a wide one.
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().map(letter_width).sum()
}

fn letter_width(letter: char) -> f64 {
    let of_height = match letter {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' | '\u{2009}' => 0.34,
        'f' | 't' | 'r' | '(' | ')' | '-' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' => 0.98,
        'A'..='Z' => 0.7,
        '\0'..'\u{2e80}' => 0.64,
        // Scripts whose letters are as wide as they are high.
        _ => 1.0,
    };
    LETTERS * of_height
}

/// A text that is at most about `width` wide; what was cut off is an ellipsis.
pub(super) fn fitted(text: &str, width: f64) -> String {
    if text_width(text) <= width {
        return text.to_owned();
    }
    let mut room = width - LETTERS;
    let fits = |letter: &char| {
        room -= letter_width(*letter);
        room >= 0.0
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

/// `text` without the characters that XML forbids, which escaping does not help against.
pub(crate) fn allowed(text: &str) -> String {
    let fine = |c: &char| {
        matches!(c, '\t' | '\n' | '\r')
            || (*c >= ' ' && !matches!(c, '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}'))
    };
    text.chars().filter(fine).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short_and_finite() {
        let shown =
            [1.0, 1.005, -0.001, 12.345_678, f64::NAN, f64::INFINITY].map(|value| Px(value).to_string());
        assert_eq!(shown, ["1", "1", "0", "12.35", "0", "0"]);
    }

    #[test]
    fn paths() {
        let mut path = Path::default();
        path.rect(1.0, 2.0, 3.5, 4.0);
        path.dot(1.0, 2.0);
        assert_eq!(path.to_string(), "M1 2h3.5v4H1ZM1 2h0");
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(fitted("utilisation", 200.0), "utilisation");
        assert_eq!(fitted("utilisation", 40.0), "utili…");
    }

    #[test]
    fn what_xml_forbids_is_gone() {
        assert_eq!(allowed("a\u{0}b\u{1b}[1m\tc\u{ffff}"), "ab[1m\tc");
    }
}
