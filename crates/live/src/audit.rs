//! The lines of the log by which an administrator sees who did what.

use miserly_api::model::Problem;
use miserly_engine::{Caller, DaemonReply, DaemonRequest, Snapshot};

/// The longest text of a request in a line, in characters.
const LONGEST: usize = 300;

/// An action of an operator, before its outcome is known.
#[derive(Debug)]
pub(crate) struct OperatorAction {
    user: String,
    request: String,
}

impl OperatorAction {
    /// Returns the action that a request is; `None` if it changes nothing, or its user is no operator.
    ///
    /// Submissions are not among them: each start of a job has a line of its own in the log of the executor.
    pub(crate) fn of(
        snapshot: &Snapshot,
        caller: &Caller,
        request: &DaemonRequest,
    ) -> Option<OperatorAction> {
        let changes = !request.only_reads()
            && !matches!(request, DaemonRequest::Submit(_) | DaemonRequest::Preview { .. });
        if !changes || !snapshot.is_operator(caller) {
            return None;
        }
        Some(OperatorAction { user: name(caller), request: shown(request) })
    }

    /// Writes the line.
    pub(crate) fn log(self, outcome: &Result<DaemonReply, Problem>) {
        let OperatorAction { user, request } = self;
        match outcome {
            Ok(_) => tracing::info!("audit: operator {user}: {request}: done"),
            Err(problem) => tracing::info!("audit: operator {user}: {request}: refused: {}", problem.message),
        }
    }
}

/// Returns the name and the number of a user.
fn name(caller: &Caller) -> String {
    match &caller.account {
        Some(account) => format!("{:?} ({})", account.name, caller.uid),
        None => caller.uid.to_string(),
    }
}

/// Returns a request as text of one line. Its form is that of the debugger, so that no text of a user begins a line.
fn shown(request: &DaemonRequest) -> String {
    let text = format!("{request:?}");
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{} …", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_one_line_of_bounded_length() {
        let request = DaemonRequest::RemoveReservation("a\nb\u{1b}".repeat(500));
        let text = shown(&request);
        assert!(text.starts_with("RemoveReservation(\"a\\nb"), "{text}");
        assert!(!text.contains(char::is_control) && text.chars().count() <= LONGEST + 2, "{text}");
        let cancel = shown(&DaemonRequest::Cancel { job: 7, array: false });
        assert_eq!(cancel, "Cancel { job: 7, array: false }");
    }
}
