//! The states of a job, as its accounting ends.

/// What a state says of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is over, with this status of the format: 0 failed, 1 completed, 5 cancelled; -1 not known.
    Over(i64),
    /// It is still to run, or at it.
    Unfinished,
    /// It ran on another cluster of the federation.
    Elsewhere,
}

/// What the state that `sacct` prints means, without what follows it, as in `CANCELLED by 1000`; a `+` at the end stands for
/// what a narrow column cut off. `None` if no such state is known.
///
/// The format knows failed, completed and cancelled. Whatever the user did not want counts as failed: a time limit, a node's
/// end, a preemption, a requeue.
pub(super) fn fate(text: &str) -> Option<Fate> {
    let name = text.split_whitespace().next()?;
    let known = |&&(state, _): &&(&str, Fate)| match name.strip_suffix('+') {
        Some(start) => start.len() > 1 && state.starts_with(start),
        None => state == name,
    };
    STATES.iter().find(known).map(|&(_, fate)| fate)
}

/// The states and flags of `job_state_string`, from 22.05 to 24.11. A run that was put back in the queue is over, and
/// failed; its next run is another line.
const STATES: [(&str, Fate); 30] = [
    ("COMPLETED", Fate::Over(1)),
    ("CANCELLED", Fate::Over(5)),
    ("FAILED", Fate::Over(0)),
    ("TIMEOUT", Fate::Over(0)),
    ("OUT_OF_MEMORY", Fate::Over(0)),
    ("NODE_FAIL", Fate::Over(0)),
    ("BOOT_FAIL", Fate::Over(0)),
    ("DEADLINE", Fate::Over(0)),
    ("PREEMPTED", Fate::Over(0)),
    ("LAUNCH_FAILED", Fate::Over(0)),
    ("RECONFIG_FAIL", Fate::Over(0)),
    ("REQUEUED", Fate::Over(0)),
    ("REQUEUE_HOLD", Fate::Over(0)),
    ("REQUEUE_FED", Fate::Over(0)),
    ("SPECIAL_EXIT", Fate::Over(0)),
    ("RESIZING", Fate::Over(0)),
    ("REVOKED", Fate::Elsewhere),
    ("PENDING", Fate::Unfinished),
    ("RUNNING", Fate::Unfinished),
    ("SUSPENDED", Fate::Unfinished),
    ("CONFIGURING", Fate::Unfinished),
    ("COMPLETING", Fate::Unfinished),
    ("STOPPED", Fate::Unfinished),
    ("SIGNALING", Fate::Unfinished),
    ("STAGE_OUT", Fate::Unfinished),
    ("RESV_DEL_HOLD", Fate::Unfinished),
    ("POWER_UP_NODE", Fate::Unfinished),
    ("POWERING_UP", Fate::Unfinished),
    ("UPDATE_DB", Fate::Unfinished),
    ("EXPEDITING", Fate::Unfinished),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Option<Fate>) {
        assert_eq!(fate(text), expect, "{text}");
    }

    #[test]
    fn states() {
        check("COMPLETED", Some(Fate::Over(1)));
        check("CANCELLED by 0", Some(Fate::Over(5)));
        check("CANCELLED+", Some(Fate::Over(5)));
        check("OUT_OF_ME+", Some(Fate::Over(0)));
        check("REQUEUED by 1000", Some(Fate::Over(0)));
        check("REVOKED", Some(Fate::Elsewhere));
        check("RUNNING", Some(Fate::Unfinished));
        check("?", None);
        check("", None);
        check("+", None);
    }
}
