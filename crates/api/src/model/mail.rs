//! Mail on the events of a job.

use serde::{Deserialize, Serialize};

/// The events of a job on which a mail is wanted. `miserly hook --mail` sends it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Mail {
    /// The events.
    pub on: Vec<MailEvent>,
    /// The address; by default the name of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// An event of a job on which a mail is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, utoipa::ToSchema)]
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
///
/// It is the name of a local user, or a name, `@` and a domain. No address is a file, a program or a route through other machines.
pub fn is_address(text: &str) -> bool {
    let name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_+=".contains(&byte);
    let label = |label: &str| {
        let plain = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        plain && !label.is_empty() && !label.starts_with('-') && !label.ends_with('-')
    };
    let (user, domain) = text.split_once('@').map_or((text, None), |(user, domain)| (user, Some(domain)));
    text.len() <= MOST
        && user.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
        && user.bytes().all(name)
        && domain.is_none_or(|domain| domain.split('.').all(label))
}

/// Returns the domain of an address; `None` for a user of this machine.
pub fn domain_of(address: &str) -> Option<&str> {
    address.split_once('@').map(|(_, domain)| domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for good in ["ada", "_ada", "ada@example.org", "a.b+c@x-y.org", "a@localhost"] {
            assert!(is_address(good), "{good}");
        }
        let strange = [
            "/etc/x",
            "a/b",
            ":include:/etc/x",
            "a%b@c",
            "a@b@c",
            "a@",
            "@b",
            "a@-b",
            "a@b..c",
            "a@[1.2.3.4]",
            ".a",
            "~a",
        ];
        let plain = ["", "-oQ/tmp", "a b", "a\n.b", "a,b", "a;b", "<a>", "|cat", "ä@x", "a@b\nc", "a\\b"];
        for bad in strange.into_iter().chain(plain) {
            assert!(!is_address(bad), "{bad}");
        }
        assert!(!is_address(&"a".repeat(255)));
        assert_eq!([domain_of("a@b.c"), domain_of("a")], [Some("b.c"), None]);
    }
}
