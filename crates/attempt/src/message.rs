//! The messages between a daemon and a shim, and their versions.
//!
//! Each message is one line of JSON over the socket `ctl` of the attempt's folder. A daemon sends
//! [`CommandMessage`]s; the shim answers each with one [`ReplyMessage`]. The first message of each
//! side on a connection carries a [`Hello`]. Version 0 had none, ignores unknown fields, and closes
//! the connection at an unknown command.
//!
//! > **Architecture invariant:** no message breaks a connection. A shim answers what it does not
//! > know with [`ShimRefusal::Unknown`]; a daemon takes a reply that it does not know for
//! > [`ShimReply::Unknown`].

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::protocol::{ShimCommand, ShimRefusal, ShimReply};

/// Version of the protocol that this program speaks.
///
/// A new command or field raises it. The fields of earlier versions keep their names and meanings.
pub const PROTOCOL_VERSION: u32 = 6;

/// Time limit for a reply and for the handshake.
pub const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// The description of a peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Version of the protocol.
    pub version: u32,
    /// Version of the program, for messages to people.
    #[serde(default)]
    pub program: String,
}

impl Hello {
    /// Returns the description of this program.
    pub(crate) fn own() -> Hello {
        Hello { version: PROTOCOL_VERSION, program: env!("CARGO_PKG_VERSION").to_owned() }
    }

    /// Returns the description of a peer without one.
    pub(crate) fn earliest() -> Hello {
        Hello { version: 0, program: "0".to_owned() }
    }
}

/// A numbered [`ShimCommand`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CommandMessage {
    pub(crate) number: u64,
    pub(crate) command: ShimCommand,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hello: Option<Hello>,
}

/// The first message of a shim to its launcher.
#[derive(Debug, Serialize, Deserialize)]
pub enum Handshake {
    /// The shim has claimed the attempt.
    Claimed,
    /// It has not.
    Refused(ShimRefusal),
}

/// The reply to a numbered command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyMessage {
    /// Number of the command, as returned by [`Commands::send`](crate::Commands::send).
    ///
    /// 0 if the shim could not read the number.
    pub number: u64,
    /// The reply.
    pub reply: ShimReply,
    /// Description of the shim, in its first reply on a connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hello: Option<Hello>,
}

/// The part of a message that all versions have.
#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    number: u64,
}

/// Parses a command. An unknown one yields its number, or 0, and the refusal.
pub(crate) fn parse_command(line: &[u8]) -> Result<CommandMessage, (u64, ShimRefusal)> {
    serde_json::from_slice(line)
        .map_err(|error| (number(line), ShimRefusal::Unknown { error: error.to_string() }))
}

/// Parses a reply.
pub(crate) fn parse_reply(line: &[u8]) -> ReplyMessage {
    serde_json::from_slice(line).unwrap_or_else(|error| ReplyMessage {
        number: number(line),
        reply: ShimReply::Unknown { error: error.to_string() },
        hello: None,
    })
}

fn number(line: &[u8]) -> u64 {
    serde_json::from_slice::<Envelope>(line).map_or(0, |envelope| envelope.number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_a_later_version_is_refused_by_its_number() {
        let later = br#"{"number":7,"command":{"freeze":{"depth":2}},"hello":{"version":9}}"#;
        let (number, refusal) = parse_command(later).unwrap_err();
        assert_eq!(number, 7);
        assert!(matches!(refusal, ShimRefusal::Unknown { .. }), "{refusal:?}");
    }

    #[test]
    fn a_line_that_is_no_message_is_refused_by_the_number_0() {
        for line in [&b"hello\n"[..], b"\n", b"{}\n", b"{\"number\":-1}\n", b"\xff\n", b"[]\n"] {
            assert_eq!(parse_command(line).unwrap_err().0, 0);
        }
    }

    #[test]
    fn a_later_field_of_a_known_command_is_ignored() {
        let later = br#"{"number":7,"command":{"set_cpus":{"cpus":[3],"weight":5}},"priority":1}"#;
        let message = parse_command(later).unwrap();
        assert_eq!(message.command, ShimCommand::SetCpus { cpus: vec![3] });
    }

    #[test]
    fn a_reply_of_a_later_version_is_an_unknown_reply_to_its_number() {
        let reply = parse_reply(br#"{"number":3,"reply":{"frozen":{}}}"#);
        assert_eq!(reply.number, 3);
        assert!(matches!(reply.reply, ShimReply::Unknown { .. }), "{reply:?}");
    }
}
