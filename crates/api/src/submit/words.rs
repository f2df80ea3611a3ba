//! The words of a directive, with quotes as in a shell.

/// Splits a line at blanks. Quotes and backslashes keep blanks within a word. A word that begins
/// with `#` starts a comment.
///
/// # Errors
/// A quote that does not end.
pub(super) fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut letters = line.chars().peekable();
    loop {
        while letters.next_if(|letter| letter.is_whitespace()).is_some() {}
        match letters.peek() {
            None | Some('#') => return Ok(words),
            Some(_) => words.push(word(&mut letters)?),
        }
    }
}

fn word(letters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<String, String> {
    let mut word = String::new();
    let mut quote = None;
    while let Some(letter) = letters.next_if(|letter| quote.is_some() || !letter.is_whitespace()) {
        match (letter, quote) {
            ('\'' | '"', None) => quote = Some(letter),
            (_, Some(open)) if letter == open => quote = None,
            ('\\', None | Some('"')) => word.extend(letters.next()),
            _ => word.push(letter),
        }
    }
    match quote {
        Some(open) => Err(format!("a quote {open} does not end")),
        None => Ok(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_quotes() {
        #[track_caller]
        fn check(line: &str, expect: &[&str]) {
            assert_eq!(words(line).unwrap(), expect, "{line}");
        }
        check("", &[]);
        check(" --cpus 4\t-t=1h ", &["--cpus", "4", "-t=1h"]);
        check("--name 'a b' # why", &["--name", "a b"]);
        check(r#"--name="a \"b\" 'c'" -o x#y"#, &["--name=a \"b\" 'c'", "-o", "x#y"]);
        check(r"a\ b '\' ''", &["a b", "\\", ""]);
        assert!(words("--name 'a b").is_err() && words("\"").is_err());
    }
}
