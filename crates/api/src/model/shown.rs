//! Characters that a terminal or a page does not show as they are.

/// Returns whether a character is shown as nothing, or changes how others are shown.
///
/// These are the control characters, the separators of lines, and all format characters of Unicode (`Cf`): directional marks,
/// characters of no width, tags. Fillers and variation selectors of no width are among them, too.
pub fn is_invisible(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}'
                | '\u{34f}'
                | '\u{600}'..='\u{605}'
                | '\u{61c}'
                | '\u{6dd}'
                | '\u{70f}'
                | '\u{890}'..='\u{891}'
                | '\u{8e2}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{110bd}'
                | '\u{110cd}'
                | '\u{13430}'..='\u{1343f}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Returns whether a name is empty, or only white space.
pub fn is_blank(name: &str) -> bool {
    name.chars().all(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_signs_are_visible_and_the_rest_is_not() {
        let visible = "aZ0 -_.äßéЖ字안😀👍é\u{301}";
        assert!(!visible.chars().any(is_invisible));
        for letter in "\0\n\u{1b}\u{7f}\u{9b}\u{ad}\u{61c}\u{200b}\u{200d}\u{2028}\u{202e}\u{2060}\u{3164}\u{feff}\u{fe0f}\u{e0041}".chars() {
            assert!(is_invisible(letter), "{letter:?}");
        }
        for (name, blank) in [("", true), (" \u{a0}\u{3000}", true), (" a", false)] {
            assert_eq!(is_blank(name), blank, "{name:?}");
        }
    }
}
