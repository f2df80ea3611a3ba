//! Control characters of a text in a form that a terminal prints.

use std::io::{self, Read, Write};
use std::mem;
use std::str::from_utf8;

use miserly_api::model::is_invisible;

/// A text whose control characters are made visible, as it comes in parts.
#[derive(Debug, Default)]
pub(super) struct Visible {
    /// The bytes at the end of the last part: the begin of a character, or a carriage return.
    pending: Vec<u8>,
}

impl Visible {
    /// Copies a text to its end. Returns the number of bytes read.
    pub(super) fn copy(&mut self, from: &mut impl Read, to: &mut impl Write) -> io::Result<u64> {
        let mut buffer = vec![0; 64 << 10];
        let mut copied = 0;
        loop {
            match from.read(&mut buffer) {
                Ok(0) => return Ok(copied),
                Ok(read) => {
                    to.write_all(self.text(&buffer[..read]).as_bytes())?;
                    copied += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the next part of the text.
    fn text(&mut self, part: &[u8]) -> String {
        let mut bytes = mem::take(&mut self.pending);
        bytes.extend_from_slice(part);
        let (mut text, mut rest) = (String::with_capacity(bytes.len()), &bytes[..]);
        while !rest.is_empty() {
            let (valid, invalid) = match from_utf8(rest) {
                Ok(_) => (rest.len(), 0),
                Err(error) => {
                    let length = error.error_len();
                    if length.is_none() {
                        // The begin of a character.
                        self.pending = rest[error.valid_up_to()..].to_vec();
                        rest = &rest[..error.valid_up_to()];
                    }
                    (error.valid_up_to(), length.unwrap_or(0))
                }
            };
            let is_last = self.pending.is_empty() && valid == rest.len();
            let mut letters = from_utf8(&rest[..valid]).unwrap_or_default().chars().peekable();
            while let Some(letter) = letters.next() {
                match letter {
                    // The line ends of other systems.
                    '\r' if letters.peek() == Some(&'\n') => {}
                    '\r' if is_last && letters.peek().is_none() => self.pending.push(b'\r'),
                    _ => push(&mut text, letter),
                }
            }
            for byte in &rest[valid..valid + invalid] {
                text.push_str(&format!("<{byte:02X}>"));
            }
            rest = &rest[valid + invalid..];
        }
        text
    }
}

/// Appends a character: a control character of ASCII as `^[`, and another one by its number.
fn push(text: &mut String, letter: char) {
    match letter {
        '\n' | '\t' => text.push(letter),
        '\0'..='\x1f' | '\x7f' => {
            text.push('^');
            // The character with the same lower bits: `@` to `_`, and `?`.
            text.push(char::from(u8::try_from(letter).unwrap_or_default() ^ 0x40));
        }
        letter if is_invisible(letter) => text.push_str(&format!("<U+{:04X}>", u32::from(letter))),
        letter => text.push(letter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visible(parts: &[&[u8]]) -> String {
        let mut visible = Visible::default();
        parts.iter().map(|part| visible.text(part)).collect()
    }

    #[test]
    fn no_output_changes_a_terminal() {
        for (output, expect) in [
            ("a\tb\nc \u{e9}\u{1f600}\n", "a\tb\nc \u{e9}\u{1f600}\n"),
            ("\x1b]0;PWN\x07\x1b[31mred", "^[]0;PWN^G^[[31mred"),
            ("10 %\r20 %\r\nend", "10 %^M20 %\nend"),
            ("\x08\x7f\0", "^H^?^@"),
            ("a\u{9b}31m\u{202e}b\u{200b}", "a<U+009B>31m<U+202E>b<U+200B>"),
        ] {
            assert_eq!(visible(&[output.as_bytes()]), expect);
        }
        assert_eq!(visible(&[b"a\x9b31m\xff\xc3("]), "a<9B>31m<FF><C3>(");
    }

    #[test]
    fn a_text_has_the_same_form_however_it_is_cut() {
        let text = "x\u{e9}\u{1f600}\r\n\u{9b}\x1b[m\r.".as_bytes();
        let whole = visible(&[text]);
        for cut in 0..=text.len() {
            let (first, second) = text.split_at(cut);
            assert_eq!(visible(&[first, second]), whole, "{cut}");
        }
    }
}
