//! Shims of earlier versions: what they do not know of the protocol, and their records.

use serde_json::Value;

use miserly_attempt::files::END;

/// A version of the protocol: 0 and 1 do not know signals, and 0 describes itself in no reply and closes the connection at a
/// command that it does not know.
pub(super) type Version = u32;

/// The fields of a reply that version 0 does not have, by the names of the objects that have them.
const LATER: [&str; 2] = ["affinity", "window"];

/// The fields of the record of an end that the first version does not have.
const LATER_IN_END: [&str; 7] = ["boot_id", "usage", "processes", "stops", "prolog", "epilog", "checkpoint"];

fn changed(content: &[u8], change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let Ok(mut value) = serde_json::from_slice::<Value>(content) else { return content.to_owned() };
    change(&mut value);
    serde_json::to_vec(&value).unwrap_or_default()
}

/// Returns a reply as a shim of version 0 sends it.
pub(super) fn reply(line: &[u8]) -> Vec<u8> {
    changed(line, |reply| {
        if let Some(reply) = reply.as_object_mut() {
            reply.remove("hello");
        }
        let states = ["/reply/done", "/reply/not_stopped/state"];
        for state in states {
            if let Some(state) = reply.pointer_mut(state).and_then(Value::as_object_mut) {
                state.retain(|field, _| !LATER.contains(&field.as_str()));
            }
        }
    })
}

/// Returns a command as a shim of an earlier version reads it. Version 0 cannot read all of them.
pub(super) fn command(line: Vec<u8>, version: Version) -> Option<Vec<u8>> {
    let value: Value = serde_json::from_slice(&line).unwrap_or_default();
    if value.pointer("/command/signal").is_none() {
        return Some(line);
    }
    // No version knows a command of this name, so it is refused as the earlier ones refused a signal.
    let unknown =
        || changed(&line, |message| message["command"] = Value::String("of_a_later_version".into()));
    (version > 0).then(unknown)
}

/// Returns a record as the first version wrote it: the end of an attempt names no boot.
pub(super) fn record(name: &str, content: &[u8]) -> Vec<u8> {
    if name != END {
        return content.to_owned();
    }
    changed(content, |end| {
        let Some(end) = end.as_object_mut() else { return };
        end.retain(|field, _| !LATER_IN_END.contains(&field.as_str()));
    })
}
