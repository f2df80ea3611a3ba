//! The message before the end of a window.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use miserly_api::client::Client;
use miserly_api::model::{JobView, Phase};
use miserly_core::Span;
use miserly_units::duration_rounded;

use super::interact::Reminder;
use crate::args::DaemonArgs;
use crate::commands::live::{client, local};

/// The time from the message to the end of the window, at most.
const LEAD: SignedDuration = SignedDuration::from_mins(5);

/// The time limit of the request: the terminal waits for it.
const ASK_WITHIN: Duration = Duration::from_secs(2);

/// Returns the end of the job's window, if it is known.
pub(super) fn end(phase: &Phase) -> Option<Timestamp> {
    match phase {
        Phase::Running(window) | Phase::Suspended(window) => Some(window.end),
        _ => None,
    }
}

/// Returns a message on the terminal before the end of the window: five minutes, or a quarter of a shorter window.
pub(super) fn reminder<'a>(job: &JobView, daemon: &'a DaemonArgs) -> Option<Reminder<'a>> {
    let window = end(&job.phase)?;
    let lead = lead(window.duration_since(Timestamp::now()));
    let (number, mut known) = (job.number, window);
    let remind = Box::new(move || {
        let now = present_end(daemon, number).unwrap_or(known);
        if now > known {
            known = now;
            return now.checked_sub(lead).ok();
        }
        let left =
            Span::from_secs(now.duration_since(Timestamp::now()).as_secs().max(0)).unwrap_or(Span::MAX);
        // The terminal is in raw mode.
        let _ = std::io::Write::write_fmt(
            &mut std::io::stderr(),
            format_args!(
                "\r\nmiserly: job {number} is ended at {}, in {}\r\n",
                local(now),
                duration_rounded(left)
            ),
        );
        None
    });
    Some(Reminder { at: window.checked_sub(lead).ok()?, remind })
}

fn lead(window: SignedDuration) -> SignedDuration {
    LEAD.min(window / 4)
}

/// Returns the present end of the window, which may have been extended.
fn present_end(daemon: &DaemonArgs, job: i64) -> Option<Timestamp> {
    let client: Client = client(daemon).ok()?.with_reply_within(ASK_WITHIN);
    end(&client.job(job).ok()?.phase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_window_has_a_late_message() {
        assert_eq!(lead(SignedDuration::from_hours(10)), SignedDuration::from_mins(5));
        assert_eq!(lead(SignedDuration::from_mins(4)), SignedDuration::from_mins(1));
    }
}
