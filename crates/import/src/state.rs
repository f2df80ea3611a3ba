//! Final states of a job in the accounting.

/// The meaning of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FinalState {
    /// The job has ended with this status of the format: 0 failed, 1 completed, 5 cancelled; -1
    /// unknown.
    Over(i64),
    /// The job is pending or running.
    Unfinished,
    /// The job ran on another cluster of the federation.
    Elsewhere,
}

/// Returns the meaning of a state printed by `sacct`, or `None` for an unknown state.
///
/// Text after the state is ignored, as in `CANCELLED by 1000`. A trailing `+` replaces characters
/// cut off by a narrow column. The format knows failed, completed and cancelled. Ends that the user
/// did not request count as failed: time limit, node failure, preemption, requeue.
pub(crate) fn final_state(text: &str) -> Option<FinalState> {
    let name = text.split_whitespace().next()?;
    let known = |&&(state, _): &&(&str, FinalState)| match name.strip_suffix('+') {
        Some(start) => start.len() > 1 && state.starts_with(start),
        None => state == name,
    };
    STATES.iter().find(known).map(|&(_, final_state)| final_state)
}

/// States and flags of `job_state_string`, from 22.05 to 24.11.
///
/// A requeued run has ended and failed; its next run has another line.
const STATES: [(&str, FinalState); 30] = [
    ("COMPLETED", FinalState::Over(1)),
    ("CANCELLED", FinalState::Over(5)),
    ("FAILED", FinalState::Over(0)),
    ("TIMEOUT", FinalState::Over(0)),
    ("OUT_OF_MEMORY", FinalState::Over(0)),
    ("NODE_FAIL", FinalState::Over(0)),
    ("BOOT_FAIL", FinalState::Over(0)),
    ("DEADLINE", FinalState::Over(0)),
    ("PREEMPTED", FinalState::Over(0)),
    ("LAUNCH_FAILED", FinalState::Over(0)),
    ("RECONFIG_FAIL", FinalState::Over(0)),
    ("REQUEUED", FinalState::Over(0)),
    ("REQUEUE_HOLD", FinalState::Over(0)),
    ("REQUEUE_FED", FinalState::Over(0)),
    ("SPECIAL_EXIT", FinalState::Over(0)),
    ("RESIZING", FinalState::Over(0)),
    ("REVOKED", FinalState::Elsewhere),
    ("PENDING", FinalState::Unfinished),
    ("RUNNING", FinalState::Unfinished),
    ("SUSPENDED", FinalState::Unfinished),
    ("CONFIGURING", FinalState::Unfinished),
    ("COMPLETING", FinalState::Unfinished),
    ("STOPPED", FinalState::Unfinished),
    ("SIGNALING", FinalState::Unfinished),
    ("STAGE_OUT", FinalState::Unfinished),
    ("RESV_DEL_HOLD", FinalState::Unfinished),
    ("POWER_UP_NODE", FinalState::Unfinished),
    ("POWERING_UP", FinalState::Unfinished),
    ("UPDATE_DB", FinalState::Unfinished),
    ("EXPEDITING", FinalState::Unfinished),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Option<FinalState>) {
        assert_eq!(final_state(text), expect, "{text}");
    }

    #[test]
    fn states() {
        check("COMPLETED", Some(FinalState::Over(1)));
        check("CANCELLED by 0", Some(FinalState::Over(5)));
        check("CANCELLED+", Some(FinalState::Over(5)));
        check("OUT_OF_ME+", Some(FinalState::Over(0)));
        check("REQUEUED by 1000", Some(FinalState::Over(0)));
        check("REVOKED", Some(FinalState::Elsewhere));
        check("RUNNING", Some(FinalState::Unfinished));
        check("?", None);
        check("", None);
        check("+", None);
    }
}
