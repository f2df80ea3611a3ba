//! Texts of users without effect on a terminal.

/// Returns a text of a user without control characters, so that nothing in it moves the cursor of a terminal or changes the
/// direction of its text.
pub fn plain(text: &str) -> String {
    text.chars().map(|letter| if is_control(letter) { '\u{fffd}' } else { letter }).collect()
}

/// Returns whether a character is a control character, a line separator, or one of Unicode's directional marks.
fn is_control(letter: char) -> bool {
    let directional = matches!(
        letter,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    letter.is_control() || directional
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_moves_the_cursor() {
        assert_eq!(plain("a\x1b[2Jb\nc"), "a\u{fffd}[2Jb\u{fffd}c");
        assert_eq!(plain("a\u{202e}b\u{2066}c\u{200f}d\u{e9}"), "a\u{fffd}b\u{fffd}c\u{fffd}d\u{e9}");
    }
}
