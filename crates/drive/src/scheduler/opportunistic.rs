//! Opportunistic jobs: waiting jobs that run on idle nodes ahead of their starts (Miser §3.2).
//!
//! Such a job waits in the ledger with its promise, and runs on nodes that no job of the ledger needs yet. Before they are
//! needed, Slurm requeues it, and its work is lost. It then waits as before. If it still runs at its own start, it keeps its nodes
//! where no other job is planned on them.

use std::collections::BTreeSet;

use miserly_core::{HostId, Kind, Placement, Resources, Share, Span, Time};
use miserly_slurm::{Job, JobState};
use serde::{Deserialize, Serialize};

use super::commands::take_back;
use super::job::{DrivenJob, LAST_PAUSE};
use super::rebuild::placement;
use super::{MOST_COMMANDS, START_TIMEOUT, Step};
use crate::instant::{instant, whole_second};
use crate::notes::Note;
use crate::orders::{Order, PLACED};
use crate::site::Site;

/// Slurm loses a requeued job that may start again before this.
const SETTLING: Span = Span::from_ticks(3 * 1_000_000);

/// Between two steps there is less time than this.
const STEP_INTERVAL: Span = Span::from_ticks(30 * 1_000_000);

/// A job that runs ahead of its start, or did so until now.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Opportunistic {
    pub(crate) run: EarlyRun,
    pub(crate) shares: Vec<NodeShare>,
}

/// The state of a run ahead of the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EarlyRun {
    /// It is to start.
    Placed {
        #[serde(with = "miserly_saved::ticks")]
        since: Time,
        /// The number of placement commands.
        commands: u32,
    },
    /// It runs.
    Running {
        #[serde(with = "miserly_saved::ticks")]
        start: Time,
    },
    /// It has to leave its nodes.
    Parking {
        /// The instant of that decision, or the first of the latest requeue commands.
        #[serde(with = "miserly_saved::ticks")]
        since: Time,
        /// The start of its run, if it ran.
        #[serde(with = "miserly_saved::ticks::optional")]
        start: Option<Time>,
        /// The instant of the last requeue command. The next driver gives one of its own.
        #[serde(skip)]
        last_command: Option<Time>,
    },
    /// It waits again.
    Parked {
        /// The instant at which it was seen waiting.
        #[serde(with = "miserly_saved::ticks")]
        since: Time,
        /// The start of its run, if it ran.
        #[serde(with = "miserly_saved::ticks::optional")]
        start: Option<Time>,
        /// The instant from which Slurm lets it start again, if it is known.
        #[serde(with = "miserly_saved::ticks::optional")]
        eligible: Option<Time>,
    },
}

/// The resources of a job on a node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct NodeShare {
    node: String,
    cpus: u64,
    /// Memory, kB.
    memory: u64,
    gpus: u64,
}

impl Opportunistic {
    /// Returns a job that is about to run in this place.
    pub(super) fn new(at: Time, site: &Site, place: &Placement) -> Opportunistic {
        Opportunistic::on_place(EarlyRun::Placed { since: at, commands: 0 }, site, place)
    }

    /// Returns a job that has to leave this place, where it has run since `start` if it started.
    pub(super) fn leaving(at: Time, site: &Site, place: &Placement, start: Option<Time>) -> Opportunistic {
        Opportunistic::on_place(EarlyRun::Parking { since: at, start, last_command: None }, site, place)
    }

    fn on_place(run: EarlyRun, site: &Site, place: &Placement) -> Opportunistic {
        let share = |share: &Share| NodeShare {
            node: site.name(share.host).to_owned(),
            cpus: share.amount.cpus_count().get(),
            memory: share.amount.get(Kind::Memory),
            gpus: share.amount.get(Kind::Gpus),
        };
        Opportunistic { run, shares: place.shares().iter().map(share).collect() }
    }

    /// Returns its nodes.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &String> {
        self.shares.iter().map(|share| &share.node)
    }

    /// Returns its resources on the nodes of the site.
    pub(super) fn resources<'a>(&'a self, site: &'a Site) -> impl Iterator<Item = (HostId, Resources)> + 'a {
        self.shares.iter().filter_map(|share| {
            let amount = Resources::cpus(share.cpus).with(Kind::Memory, share.memory);
            Some((site.find(&share.node)?, amount.with(Kind::Gpus, share.gpus)))
        })
    }

    /// Takes in its resources on these hosts. Returns whether that is new.
    pub(super) fn set_resources(&mut self, site: &Site, on: &[(HostId, Resources)]) -> bool {
        let before = self.shares.clone();
        for share in &mut self.shares {
            let found = on.iter().find(|(host, _)| site.name(*host) == share.node);
            if let Some((_, amount)) = found {
                share.cpus = amount.cpus_count().get();
                share.memory = amount.get(Kind::Memory);
                share.gpus = amount.get(Kind::Gpus);
            }
        }
        self.shares != before
    }

    /// Returns its place, if the site has all of its nodes.
    pub(super) fn place(&self, site: &Site) -> Option<Placement> {
        let place = placement(self.resources(site));
        (place.shares().len() == self.shares.len()).then_some(place)
    }

    /// Returns the start of its run, if it ended by itself. `start` is the one that Slurm remembers.
    pub(crate) fn start_of(&self, start: Option<Time>) -> Option<Time> {
        match self.run {
            EarlyRun::Placed { .. } => start,
            EarlyRun::Running { start } => Some(start),
            EarlyRun::Parking { start: known, .. } => known.or(start),
            EarlyRun::Parked { .. } => None,
        }
    }

    /// Returns whether it may still hold its nodes.
    pub(super) fn may_hold_nodes(&self) -> bool {
        !matches!(self.run, EarlyRun::Parked { start: Some(_), .. })
    }

    /// Returns whether it is placed, and does not run yet.
    pub(super) fn is_placed(&self) -> bool {
        matches!(self.run, EarlyRun::Placed { .. })
    }

    /// Returns whether its placement is not sent to Slurm yet.
    pub(super) fn is_new(&self) -> bool {
        matches!(self.run, EarlyRun::Placed { commands: 0, .. })
    }

    /// Returns whether it has to leave its nodes, or has left them.
    pub(super) fn is_parked(&self) -> bool {
        matches!(self.run, EarlyRun::Parking { .. } | EarlyRun::Parked { .. })
    }

    /// Returns whether it was seen waiting after it had to leave.
    pub(super) fn waits_again(&self) -> bool {
        matches!(self.run, EarlyRun::Parked { .. })
    }

    /// Returns whether Slurm can make it an ordinary waiting job: its end was a while ago.
    pub(super) fn has_settled(&self, at: Time) -> bool {
        match self.run {
            EarlyRun::Parked { start, since, .. } => start.is_none() || at - since >= SETTLING,
            _ => false,
        }
    }

    /// Returns the instant at which it has settled, if that is known.
    pub(super) fn settles(&self) -> Option<Time> {
        match self.run {
            EarlyRun::Parked { start: Some(_), since, .. } => Some(since + SETTLING),
            _ => None,
        }
    }

    /// Returns whether Slurm keeps it from starting for a while.
    fn is_kept(&self, at: Time) -> bool {
        match self.run {
            EarlyRun::Parked { start: Some(_), eligible, .. } => {
                eligible.is_none_or(|eligible| eligible > at)
            }
            _ => false,
        }
    }

    /// Takes in the instant from which Slurm lets it start.
    pub(super) fn set_eligible(&mut self, at: Option<Time>) {
        if let EarlyRun::Parked { eligible, .. } = &mut self.run {
            *eligible = at;
        }
    }

    /// Takes in that a requeue command is sent. Without a driver, or a controller, there were no commands for a while.
    fn note_requeue(&mut self, at: Time) {
        if let EarlyRun::Parking { since, last_command, .. } = &mut self.run {
            if !last_command.is_some_and(|last| at - last < STEP_INTERVAL) {
                *since = at;
            }
            *last_command = Some(at);
        }
    }

    /// Returns whether it does not leave its nodes within this time, although Slurm was asked for that until now.
    fn has_stayed(&self, at: Time, timeout: Span) -> bool {
        match self.run {
            EarlyRun::Parking { since, start: Some(_), last_command: Some(last) } => {
                at - since > timeout && at - last < STEP_INTERVAL
            }
            _ => false,
        }
    }
}

/// Returns whether a job leaves its nodes already.
pub(super) fn is_completing(job: &Job) -> bool {
    matches!(&job.state, JobState::Other(state) if state == "completing")
}

impl DrivenJob {
    /// Returns whether the job is tried on idle nodes, or was a moment ago. Slurm's reasons are about that.
    pub(super) fn is_tried(&self, at: Time) -> bool {
        let is_early = self.opportunistic().is_some();
        self.is_waiting() && (is_early || self.no_early_run_before.is_some_and(|instant| instant > at))
    }

    /// Returns whether the job runs ahead of its start.
    pub(super) fn runs_ahead(&self) -> bool {
        self.opportunistic().is_some_and(|job| matches!(job.run, EarlyRun::Running { .. }))
    }

    /// Takes in that a run that began at `start` is lost.
    pub(super) fn lose_run(&mut self, at: Time, start: Time) -> Span {
        let ran = (whole_second(at) - start).max(Span::ZERO);
        self.lost = self.lost.max(ran);
        ran
    }

    /// Has an opportunistic job leave its nodes.
    pub(super) fn park(&mut self, at: Time, id: &str, step: &mut Step) {
        let Some(job) = self.opportunistic_mut() else { return };
        let start = match job.run {
            EarlyRun::Placed { .. } => None,
            EarlyRun::Running { start } => Some(start),
            EarlyRun::Parking { .. } | EarlyRun::Parked { .. } => return,
        };
        step.changed = true;
        job.run = EarlyRun::Parking { since: at, start, last_command: None };
        if let Some(start) = start {
            let ran = self.lose_run(at, start);
            step.notes.push((id.to_owned(), Note::Parked { ran }));
        }
    }

    /// Returns the order that makes Slurm follow its run ahead of its start, if there is one. `most` is the number of nodes.
    pub(super) fn order_for_early_run(
        &mut self,
        at: Time,
        job: &Job,
        reservation: &str,
        most: u64,
        step: &mut Step,
    ) -> Option<Order> {
        let is_inside = job.reservation.as_deref() == Some(reservation);
        let is_waiting = job.state == JobState::Pending;
        let without = self.form.not_nodes.clone();
        let known = self.opportunistic_mut()?;
        let (has_settled, is_kept) = (known.has_settled(at), known.is_kept(at));
        match &mut known.run {
            EarlyRun::Placed { commands, .. } if is_waiting && (*commands == 0 || !is_inside) => {
                *commands += 1;
                let is_first = *commands == 1;
                step.changed = true;
                let nodes: Vec<String> = known.nodes().cloned().collect();
                if is_first {
                    step.notes.push((job.id.clone(), Note::PlacedOpportunistically { nodes: nodes.clone() }));
                }
                let (job, reservation) = (job.id.clone(), reservation.to_owned());
                Some(Order::Place { job, reservation, nodes, last: None, without })
            }
            // It may start only after it has the request of its user again.
            EarlyRun::Parked { .. } if is_waiting && has_settled => {
                if is_inside || job.priority == PLACED {
                    return Some(take_back(job, &self.form, most));
                }
                is_kept.then(|| Order::Ready { job: job.id.clone() })
            }
            EarlyRun::Parking { .. } | EarlyRun::Parked { .. } if !is_waiting && !is_completing(job) => {
                known.note_requeue(at);
                Some(Order::Requeue { job: job.id.clone() })
            }
            _ => None,
        }
    }

    /// Takes in that the job holds nodes. Returns whether it is an opportunistic one. One that does not leave its nodes within
    /// `timeout`, or that Slurm started on other nodes without the driver, is none any more: it has its nodes as an ordinary job.
    pub(super) fn runs_opportunistically(
        &mut self,
        at: Time,
        job: &Job,
        timeout: Span,
        step: &mut Step,
    ) -> bool {
        let Some(known) = self.opportunistic_mut() else { return false };
        // A job that leaves its nodes shows those that it has not left.
        if is_completing(job) {
            return true;
        }
        let is_elsewhere = known.nodes().collect::<BTreeSet<_>>() != job.on.iter().collect();
        if is_elsewhere || known.has_stayed(at, timeout) {
            self.end_opportunistic();
            return false;
        }
        let seen_start = job.start.map_or(whole_second(at), instant);
        match &mut known.run {
            EarlyRun::Placed { .. } | EarlyRun::Parked { .. } => {
                known.run = EarlyRun::Running { start: seen_start };
                step.changed = true;
                let note = Note::StartedOpportunistically { start: seen_start };
                step.notes.push((job.id.clone(), note));
            }
            // Slurm was faster.
            EarlyRun::Parking { start: start @ None, .. } => {
                *start = Some(seen_start);
                step.changed = true;
            }
            EarlyRun::Parking { .. } | EarlyRun::Running { .. } => {}
        }
        true
    }

    /// Takes in that an opportunistic job waits in Slurm.
    pub(super) fn waits_opportunistically(
        &mut self,
        at: Time,
        job: &Job,
        reservation: &str,
        is_hindered: bool,
        step: &mut Step,
    ) {
        let Some(known) = self.opportunistic_mut() else { return };
        let is_inside = job.reservation.as_deref() == Some(reservation) || job.priority == PLACED;
        match known.run {
            EarlyRun::Placed { since, commands } => {
                let is_late = at - since > START_TIMEOUT;
                if !(is_hindered || is_late || commands >= MOST_COMMANDS && !is_inside) {
                    return;
                }
                known.run = EarlyRun::Parked { since: at, start: None, eligible: None };
                self.no_early_run_before = Some(at + LAST_PAUSE);
            }
            EarlyRun::Running { start } => {
                known.run = EarlyRun::Parked { since: at, start: Some(start), eligible: None };
                self.lose_run(at, start);
                self.form.on.clear();
                step.notes.push((job.id.clone(), Note::Requeued));
            }
            EarlyRun::Parking { start, .. } => {
                known.run = EarlyRun::Parked { since: at, start, eligible: None };
                self.form.on.clear();
            }
            EarlyRun::Parked { .. } => {
                if is_inside || !known.has_settled(at) || known.is_kept(at) {
                    return;
                }
                self.end_opportunistic();
            }
        }
        step.changed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Span = Span::from_ticks(60 * 1_000_000);

    fn at(seconds: i64) -> Time {
        Time::from_secs(seconds).unwrap()
    }

    fn early(run: EarlyRun) -> DrivenJob {
        let mut early = DrivenJob::default();
        early.set_opportunistic(Opportunistic { run, shares: vec![] });
        early
    }

    fn job(state: JobState, is_inside: bool) -> Job {
        let reservation = is_inside.then(|| "own".to_owned());
        Job { id: "7".into(), state, reservation, start: Some(100), ..Job::default() }
    }

    /// The order for a job, in short.
    fn order(known: &mut DrivenJob, now: i64, state: JobState, is_inside: bool) -> &'static str {
        let job = job(state, is_inside);
        match known.order_for_early_run(at(now), &job, "own", 4, &mut Step::default()) {
            None => "",
            Some(Order::Place { .. }) => "place",
            Some(Order::TakeBack { .. }) => "take back",
            Some(Order::Requeue { .. }) => "requeue",
            Some(Order::Ready { .. }) => "ready",
            Some(_) => "other",
        }
    }

    #[test]
    fn a_job_that_leaves_waits_until_slurm_has_settled() {
        let mut known = early(EarlyRun::Placed { since: at(99), commands: 0 });
        let step = &mut Step::default();
        let waits = |known: &mut DrivenJob, now: i64, is_inside: bool| {
            known.waits_opportunistically(
                at(now),
                &job(JobState::Pending, is_inside),
                "own",
                false,
                &mut Step::default(),
            );
        };
        assert_eq!(order(&mut known, 99, JobState::Pending, false), "place");
        assert_eq!(order(&mut known, 100, JobState::Pending, true), "");
        assert!(known.runs_opportunistically(at(101), &job(JobState::Running, true), LONG, step));
        assert!(known.runs_ahead());
        known.park(at(130), "7", step);
        assert_eq!(known.lost, Span::from_secs(30).unwrap());
        assert!(step.notes.contains(&("7".to_owned(), Note::Parked { ran: known.lost })));
        assert_eq!(order(&mut known, 130, JobState::Running, true), "requeue");
        assert_eq!(order(&mut known, 131, JobState::Other("completing".into()), true), "");
        waits(&mut known, 140, true);
        assert!(!known.opportunistic().unwrap().may_hold_nodes());
        known.opportunistic_mut().unwrap().set_eligible(Some(at(261)));
        assert_eq!(order(&mut known, 142, JobState::Pending, true), "");
        assert_eq!(order(&mut known, 143, JobState::Pending, true), "take back");
        waits(&mut known, 144, false);
        assert!(known.opportunistic().is_some(), "Slurm keeps it");
        assert_eq!(order(&mut known, 144, JobState::Pending, false), "ready");
        known.opportunistic_mut().unwrap().set_eligible(Some(at(144)));
        waits(&mut known, 145, false);
        assert_eq!(known.opportunistic(), None);
    }

    #[test]
    fn a_job_that_does_not_start_is_taken_back_and_rests() {
        let mut known = early(EarlyRun::Placed { since: at(100), commands: 1 });
        let pending = job(JobState::Pending, true);
        known.waits_opportunistically(at(115), &pending, "own", false, &mut Step::default());
        assert!(known.opportunistic().unwrap().is_placed());
        known.waits_opportunistically(at(116), &pending, "own", false, &mut Step::default());
        assert_eq!(known.no_early_run_before, Some(at(116) + LAST_PAUSE));
        assert_eq!(order(&mut known, 116, JobState::Pending, true), "take back");
        // Slurm starts it in that moment.
        assert!(known.runs_opportunistically(
            at(117),
            &job(JobState::Running, true),
            LONG,
            &mut Step::default()
        ));
        assert!(known.runs_ahead());
    }

    #[test]
    fn a_job_that_does_not_leave_keeps_its_nodes() {
        let mut known = early(EarlyRun::Running { start: at(100) });
        let step = &mut Step::default();
        known.park(at(200), "7", step);
        let running = job(JobState::Running, true);
        let completing = job(JobState::Other("completing".into()), true);
        // Slurm was away until then.
        for second in [300, 320, 340] {
            assert!(known.runs_opportunistically(at(second), &running, LONG, step));
            assert_eq!(order(&mut known, second, JobState::Running, true), "requeue");
        }
        assert!(known.runs_opportunistically(at(360), &running, LONG, step));
        assert!(known.runs_opportunistically(at(365), &completing, LONG, step));
        assert!(!known.runs_opportunistically(at(361), &running, LONG, step));
        assert_eq!(known.opportunistic(), None);
    }

    #[test]
    fn a_job_that_slurm_starts_elsewhere_is_an_ordinary_one() {
        let mut known = early(EarlyRun::Running { start: at(100) });
        let elsewhere = |state| Job { on: vec!["n1".into()], ..job(state, false) };
        let completing = elsewhere(JobState::Other("completing".into()));
        assert!(known.runs_opportunistically(at(101), &completing, LONG, &mut Step::default()));
        let running = elsewhere(JobState::Running);
        assert!(!known.runs_opportunistically(at(102), &running, LONG, &mut Step::default()));
        assert_eq!(known.opportunistic(), None);
    }

    #[test]
    fn the_start_of_a_job_that_is_gone_is_that_of_its_last_run() {
        let start = |run: EarlyRun| Opportunistic { run, shares: vec![] }.start_of(Some(at(5)));
        let since = at(0);
        assert_eq!(start(EarlyRun::Placed { since, commands: 1 }), Some(at(5)));
        assert_eq!(start(EarlyRun::Running { start: at(3) }), Some(at(3)));
        let began = Some(at(3));
        assert_eq!(start(EarlyRun::Parking { since, start: began, last_command: None }), began);
        assert_eq!(start(EarlyRun::Parked { since, start: began, eligible: None }), None);
    }
}
