//! What the running jobs leave free over time, for policies that plan around them.

use miserly_core::{Expected, JobId, Ledger, Span, State, Time};

use super::procs;
use crate::shared::Profile;

/// The availability profile with the running jobs in it, and the processors of those that are overdue.
///
/// An overdue job is expected to end at the next tick, whenever now is. So it is not in the profile between
/// passes; a pass that plans puts it there for as long as it plans ([`hold_overdue`](Running::hold_overdue)).
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub(super) profile: Profile,
    overdue_procs: u32,
}

impl Running {
    /// Nothing runs on `procs` processors.
    pub(super) fn none(procs: u32) -> Running {
        Running { profile: Profile::new(procs), overdue_procs: 0 }
    }

    /// The running jobs of the ledger, as of `now`.
    pub(super) fn rebuild(now: Time, ledger: &Ledger) -> Running {
        let machine = u32::try_from(ledger.machine().capacity().cpus_count()).unwrap_or(u32::MAX);
        let mut running = Running::none(machine);
        for job in ledger.running() {
            let entry = ledger.entry(job);
            match entry.state {
                State::Running { expected: Expected::At(end), .. } => {
                    running.profile.take(now, end, procs(entry));
                }
                State::Running { expected: Expected::Overdue { .. }, .. } => {
                    running.overdue_procs += procs(entry);
                }
                State::Waiting | State::Suspended { .. } => {}
            }
        }
        running
    }

    /// Whether a job runs past its expected end.
    pub(super) fn any_overdue(&self) -> bool {
        self.overdue_procs > 0
    }

    /// How many processors the overdue jobs hold.
    pub(super) fn overdue_procs(&self) -> u32 {
        self.overdue_procs
    }

    /// Notes that a job is past its expected end.
    pub(super) fn overdue(&mut self, job: JobId, ledger: &Ledger) {
        self.overdue_procs += procs(ledger.entry(job));
    }

    /// Notes that a job ended; returns until when a plan made now would have left it its processors.
    pub(super) fn ended(&mut self, now: Time, job: JobId, ledger: &Ledger) -> Time {
        let entry = ledger.entry(job);
        match entry.state {
            State::Running { expected: Expected::At(end), .. } => {
                self.profile.advance(now);
                self.profile.give(now, end, procs(entry));
                end
            }
            State::Running { expected: Expected::Overdue { .. }, .. } => {
                self.overdue_procs -= procs(entry);
                now + Span::TICK
            }
            State::Waiting | State::Suspended { .. } => now,
        }
    }

    /// Puts the overdue jobs into the profile of a pass at `now`.
    pub(super) fn hold_overdue(&mut self, now: Time) {
        self.profile.take(now, now + Span::TICK, self.overdue_procs);
    }

    /// Takes them out again.
    pub(super) fn drop_overdue(&mut self, now: Time) {
        self.profile.give(now, now + Span::TICK, self.overdue_procs);
    }
}
