//! Texts of users without effect on a terminal.

use miserly_api::model::is_invisible;

/// Returns a text of a user without control characters, so that nothing in it moves the cursor of a terminal, changes the
/// direction of its text, or hides.
pub fn plain(text: &str) -> String {
    text.chars().map(|letter| if is_invisible(letter) { '\u{fffd}' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_moves_the_cursor() {
        assert_eq!(plain("a\x1b[2Jb\nc"), "a\u{fffd}[2Jb\u{fffd}c");
        assert_eq!(plain("a\u{202e}b\u{2066}c\u{200f}d\u{e9}"), "a\u{fffd}b\u{fffd}c\u{fffd}d\u{e9}");
        assert_eq!(plain("a\u{200b}b"), "a\u{fffd}b");
    }
}
