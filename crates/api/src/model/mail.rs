//! Mail on the events of a job.

use serde::{Deserialize, Serialize};

/// The events of a job on which a mail is wanted. `miserly hook --mail` sends it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Mail {
    /// The events.
    pub on: Vec<MailEvent>,
    /// The address; by default the name of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// An event of a job on which a mail is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum MailEvent {
    /// Its window begins.
    Begin,
    /// It has ended.
    End,
    /// It has ended, and not with exit code 0.
    Fail,
    /// Its promise moves or breaks.
    Moved,
}

impl MailEvent {
    /// All of them, with their words.
    pub const ALL: [(MailEvent, &'static str); 4] = [
        (MailEvent::Begin, "begin"),
        (MailEvent::End, "end"),
        (MailEvent::Fail, "fail"),
        (MailEvent::Moved, "moved"),
    ];
}

/// The most bytes of an address.
const MOST: usize = 254;

/// Returns whether a text can be the address of a mail, also on the command line of sendmail.
pub fn is_address(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"@.-_+%=/".contains(&byte);
    !text.is_empty() && text.len() <= MOST && !text.starts_with('-') && text.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for good in ["ada", "ada@example.org", "a.b+c@x-y.org"] {
            assert!(is_address(good), "{good}");
        }
        for bad in ["", "-oQ/tmp", "a b", "a\n.b", "a,b", "a;b", "<a>", "|cat", "ä@x"] {
            assert!(!is_address(bad), "{bad}");
        }
        assert!(!is_address(&"a".repeat(255)));
    }
}
