//! Output of numbers, paths and text into SVG.

use std::fmt;

/// Letter size in drawing units.
pub(super) const LETTERS: f64 = 12.0;

/// Factor by which pages enlarge text on narrow screens. Layouts have room for it.
pub(super) const ENLARGED: f64 = 1.3;

/// Class of a text without room to be enlarged. Narrow screens do not show it.
pub(super) const TIGHT: &str = "tight";

/// A coordinate with at most two decimals. Non-finite values become zero.
#[derive(Clone, Copy)]
pub(super) struct Px(pub(super) f64);

impl fmt::Display for Px {
    fn fmt(&self, output: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = if self.0.is_finite() { (self.0 * 100.0).round() / 100.0 } else { 0.0 };
        // The shortest form of a rounded number. Adding zero removes a negative zero.
        write!(output, "{}", value + 0.0)
    }
}

/// The `d` attribute of a path.
#[derive(Default)]
pub(super) struct SvgPath(String);

impl SvgPath {
    /// Returns straight lines from each place to the next.
    pub(super) fn along(places: &[(f64, f64)]) -> SvgPath {
        SvgPath::through(places, |x, y| format!("L{x} {y}"))
    }

    /// Returns steps from each place to the next: a horizontal line, then a vertical one.
    pub(super) fn steps(places: &[(f64, f64)]) -> SvgPath {
        SvgPath::through(places, |x, y| format!("H{x}V{y}"))
    }

    fn through(places: &[(f64, f64)], next: fn(Px, Px) -> String) -> SvgPath {
        let piece = |(n, &(x, y)): (usize, &(f64, f64))| match n {
            0 => format!("M{} {}", Px(x), Px(y)),
            _ => next(Px(x), Px(y)),
        };
        SvgPath(places.iter().enumerate().map(piece).collect())
    }

    /// Returns the area below steps, from `foot` on, up to `right`.
    pub(super) fn area(places: &[(f64, f64)], foot: f64, right: f64) -> SvgPath {
        let Some(&(left, _)) = places.first() else { return SvgPath::default() };
        let steps = places.iter().map(|&(x, y)| format!("H{}V{}", Px(x), Px(y)));
        let steps: String = steps.collect();
        SvgPath(format!("M{} {}{steps}H{}V{}Z", Px(left), Px(foot), Px(right), Px(foot)))
    }

    /// Returns dots: strokes of zero length with round ends.
    pub(super) fn dots(places: &[(f64, f64)]) -> SvgPath {
        let mut path = SvgPath::default();
        for &(x, y) in places {
            path.0.push_str(&format!("M{} {}h0", Px(x), Px(y)));
        }
        path
    }

    pub(super) fn rect(&mut self, left: f64, top: f64, width: f64, height: f64) {
        let (left, top, width, height) = (Px(left), Px(top), Px(width), Px(height));
        self.0.push_str(&format!("M{left} {top}h{width}v{height}H{left}Z"));
    }
}

impl fmt::Display for SvgPath {
    fn fmt(&self, output: &mut fmt::Formatter<'_>) -> fmt::Result {
        output.write_str(&self.0)
    }
}

/// Returns the approximate width of a text in a wide font.
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
        // Scripts with square letters.
        _ => 1.0,
    };
    LETTERS * of_height
}

/// Truncates a text to about `width` with an ellipsis.
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

/// Removes characters that XML forbids even when escaped.
pub(crate) fn allowed(mut text: String) -> String {
    text.retain(|c| {
        matches!(c, '\t' | '\n' | '\r')
            || (c >= ' ' && !matches!(c, '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}'))
    });
    text
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
        let mut path = SvgPath::default();
        path.rect(1.0, 2.0, 3.5, 4.0);
        assert_eq!(path.to_string(), "M1 2h3.5v4H1Z");
        let places = [(1.0, 2.0), (3.0, 4.5)];
        assert_eq!(SvgPath::along(&places).to_string(), "M1 2L3 4.5");
        assert_eq!(SvgPath::steps(&places).to_string(), "M1 2H3V4.5");
        assert_eq!(SvgPath::area(&places, 9.0, 5.0).to_string(), "M1 9H1V2H3V4.5H5V9Z");
        assert_eq!(SvgPath::dots(&places).to_string(), "M1 2h0M3 4.5h0");
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(fitted("utilisation", 200.0), "utilisation");
        assert_eq!(fitted("utilisation", 40.0), "utili…");
    }

    #[test]
    fn what_xml_forbids_is_gone() {
        assert_eq!(allowed("a\u{0}b\u{1b}[1m\tc\u{ffff}".into()), "ab[1m\tc");
    }
}
