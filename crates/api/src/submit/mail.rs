//! The notation of the events on which a mail is wanted.

use crate::model::{MailEvent, is_address};

/// Parses events with commas between them: `end,fail`, `all` or `none`. Upper case is that of sbatch.
///
/// # Errors
/// Any other word. The message names the words.
pub fn mail_events(text: &str) -> Result<Vec<MailEvent>, String> {
    let mut events = vec![];
    for word in text.split(',') {
        match word.to_ascii_lowercase().as_str() {
            "none" => return Ok(vec![]),
            "all" => events.extend(MailEvent::ALL.map(|(event, _)| event)),
            // A mail of an array is one for each of its jobs already.
            "array_tasks" => {}
            word => {
                let event = MailEvent::ALL.iter().find(|(_, own)| *own == word);
                let words = MailEvent::ALL.map(|(_, word)| word).join(", ");
                events.push(event.ok_or_else(|| format!("write events: {words}, all or none"))?.0);
            }
        }
    }
    events.sort_unstable();
    events.dedup();
    Ok(events)
}

/// Parses the address of a mail.
///
/// # Errors
/// A text that is no address, or more than one.
pub fn mail_address(text: &str) -> Result<String, String> {
    if is_address(text) {
        Ok(text.to_owned())
    } else {
        Err("write one address, such as ada@example.org".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events() {
        use MailEvent::{Begin, End, Fail, Moved};
        assert_eq!(mail_events("end,fail"), Ok(vec![End, Fail]));
        assert_eq!(mail_events("FAIL,BEGIN,FAIL"), Ok(vec![Begin, Fail]));
        assert_eq!(mail_events("ALL"), Ok(vec![Begin, End, Fail, Moved]));
        assert_eq!(mail_events("END,ARRAY_TASKS"), Ok(vec![End]));
        assert_eq!(mail_events("none"), Ok(vec![]));
        for wrong in ["", "ends", "end,", "TIME_LIMIT"] {
            assert!(mail_events(wrong).is_err(), "{wrong}");
        }
    }
}
