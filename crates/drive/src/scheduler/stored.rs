//! The stored state of the scheduler.

use std::collections::BTreeMap;

use miserly_core::{
    Driver, Entry, Expected, JobId, JobNumber, Ledger, LedgerState, PolicyState, Span, State, Time,
};
use miserly_slurm::Reservation;

use super::arrays::ArrayPlaces;
use super::cause::RebuildCause;
use super::{DrivenJob, Scheduler, Step};
use crate::Settings;
use crate::comment::{CommentField, earlier_comment};
use crate::instant::instant;
use crate::site::Site;

/// Slurm makes a reservation in this time after it was asked, whatever the clocks of the two machines are.
const ANSWERED: Span = Span::from_ticks(300 * 1_000_000);

/// The stored state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stored {
    pub(crate) last_number: JobNumber,
    /// The instant of the last step.
    pub(crate) last_step: Option<Time>,
    /// The nodes, in the order of the hosts of the stored placements.
    pub(crate) nodes: Vec<String>,
    /// The groups of nodes to which stored requests refer.
    pub(crate) groups: Vec<Vec<String>>,
    /// The policy; none of an earlier version.
    pub(crate) policy: Option<String>,
    /// The name of the reservation; none of an earlier version.
    pub(crate) reservation: Option<String>,
    /// The comment that had the promises, if one had them; none of an earlier version.
    pub(crate) comments: Option<CommentField>,
    pub(crate) state: LedgerState,
    /// The jobs, by name.
    pub(crate) jobs: BTreeMap<String, StoredJob>,
}

/// A job as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredJob {
    pub(crate) job: DrivenJob,
    /// Its entry in the ledger, if it is there.
    pub(crate) entry: Option<Entry>,
}

impl Stored {
    /// Returns whether the driver of this state made the reservation of this name: it is stored before that.
    pub(crate) fn has_made(&self, name: &str, reservation: &Reservation) -> bool {
        let stored = self.reservation.as_deref().is_none_or(|known| known == name);
        stored && self.last_step.is_some_and(|last| instant(reservation.begin) <= last + ANSWERED)
    }
}

impl Scheduler {
    /// Returns the scheduler with a stored state, which begins with its first step.
    pub(crate) fn new(
        settings: Settings,
        mut stored: Stored,
        comment_field: Option<CommentField>,
    ) -> Scheduler {
        let is_other_policy =
            stored.policy.as_ref().is_some_and(|policy| *policy != settings.policy.to_string());
        let mut scheduler = Scheduler {
            settings,
            comment_field,
            site: Site::default(),
            driver: None,
            restored: vec![],
            jobs: BTreeMap::new(),
            by_handle: BTreeMap::new(),
            ledger_state: stored.state,
            last_number: stored.last_number,
            last_step: stored.last_step,
            rebuild: Some(RebuildCause::Restart),
            nodes: stored.nodes,
            groups: stored.groups,
            moved: BTreeMap::new(),
            found: Step::default(),
            next_handle: 0,
            last_commented: String::new(),
            opportunistic_wake: None,
            now: Time::ZERO,
            arrays: ArrayPlaces::default(),
            limited_users: [].into(),
        };
        for (handle, (id, job)) in (0..).map(JobId).zip(std::mem::take(&mut stored.jobs)) {
            scheduler.restore(handle, id, job, is_other_policy);
        }
        scheduler
    }

    /// Takes in a stored job.
    fn restore(&mut self, handle: JobId, id: String, stored: StoredJob, is_other_policy: bool) {
        let StoredJob { mut job, entry } = stored;
        job.comment = job.comment.as_deref().and_then(earlier_comment);
        if is_other_policy {
            if !job.is_running() {
                let broken =
                    job.promise.as_mut().and_then(|promise| promise.withdraw("the policy was changed"));
                self.found.notes.extend(broken.map(|note| (id.clone(), note)));
            }
            self.found.starts.extend(job.forget_quantum(&id));
        }
        if let Some(mut entry) = entry {
            if is_other_policy {
                forget_policy(&mut entry);
            }
            self.restored.push((handle, entry));
            self.by_handle.insert(handle, id.clone());
            job.handle = Some(handle);
        }
        self.jobs.insert(id, job);
    }

    /// Returns the state to store.
    pub(crate) fn stored(&self) -> Stored {
        let ledger = self.driver.as_ref().map(Driver::ledger);
        let entry = |handle: JobId| match ledger {
            Some(ledger) => ledger.get(handle).cloned(),
            None => self.restored.iter().find(|(job, _)| *job == handle).map(|(_, entry)| entry.clone()),
        };
        let job = |(id, job): (&String, &DrivenJob)| {
            let entry = job.handle.and_then(entry);
            (id.clone(), StoredJob { job: job.without_handle(), entry })
        };
        Stored {
            last_number: self.last_number,
            last_step: self.last_step,
            nodes: self.nodes.clone(),
            groups: self.groups.clone(),
            policy: Some(self.settings.policy.to_string()),
            reservation: Some(self.settings.reservation.clone()),
            comments: self.comment_field,
            state: ledger.map_or_else(|| self.ledger_state.clone(), Ledger::state),
            jobs: self.jobs.iter().map(job).collect(),
        }
    }
}

/// Removes all that is of another policy from an entry: it could neither keep nor break its promises.
fn forget_policy(entry: &mut Entry) {
    entry.policy_state = PolicyState::EMPTY;
    entry.promise = None;
    match &mut entry.state {
        State::Waiting => (entry.planned, entry.planned_on) = (None, None),
        State::Running { quantum, .. } => *quantum = None,
        // It runs in the ledger, and is resumed as soon as its processors are free.
        State::Suspended { start, placement, .. } => {
            let (start, placement) = (*start, placement.clone());
            let expected = Expected::Overdue { since: start };
            entry.state =
                State::Running { start, since: start, expected, placement, released: false, quantum: None };
        }
    }
}
