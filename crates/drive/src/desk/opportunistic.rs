//! Opportunistic jobs: waiting jobs that run on idle nodes ahead of their starts (Miser §3.2).
//!
//! Such a job waits in the ledger with its promise, and runs on nodes that no job of the ledger needs yet. Before they are
//! needed, Slurm requeues it, and its work is lost. It then waits as before. If it still runs at its own start, it keeps its nodes
//! where no other job is planned on them.

use std::collections::BTreeSet;

use miserly_core::{HostId, Kind, Placement, Resources, Share, Span, Time};
use miserly_slurm::{Job, JobState};
use serde::{Deserialize, Serialize};

use super::asking::take_back;
use super::case::{Case, LAST_PAUSE, Stage};
use super::rebuild::placement;
use super::{MOST_ASKED, PATIENCE, Step};
use crate::notes::Note;
use crate::orders::{Order, PLACED};
use crate::site::Site;

/// Slurm loses a requeued job that may start again before this.
const SETTLING: Span = Span::from_ticks(3 * 1_000_000);

/// Between two steps there is less time than this.
const ASKED_LATELY: Span = Span::from_ticks(30 * 1_000_000);

/// A job that runs ahead of its start, or did so until now.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Opportunistic {
    pub(super) run: Run,
    shares: Vec<NodeShare>,
}

/// Where an opportunistic job is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Run {
    /// Slurm was asked to start it.
    Placed {
        /// The instant, in ticks.
        since: i64,
        /// How often Slurm was asked.
        asked: u32,
    },
    /// It runs.
    Running {
        /// Its start, seconds since 1970.
        start: i64,
    },
    /// It has to leave its nodes.
    Parked {
        /// The instant of that decision, in ticks.
        since: i64,
        /// The start of its run, seconds since 1970, if it ran.
        start: Option<i64>,
        /// The instant at which it was seen waiting again, in ticks.
        waits_since: Option<i64>,
        /// The instant from which Slurm lets it start again, seconds since 1970, if it is known.
        eligible: Option<i64>,
        /// The instant at which Slurm was last asked to requeue it, in ticks. The next driver asks anew.
        #[serde(skip)]
        asked: Option<i64>,
    },
}

/// The resources of a job on a node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct NodeShare {
    node: String,
    cpus: u64,
    /// Memory, kB.
    memory: u64,
    gpus: u64,
}

impl Opportunistic {
    /// Returns a job that is about to run in this place.
    pub(super) fn new(at: Time, site: &Site, place: &Placement) -> Opportunistic {
        Opportunistic::on_place(Run::Placed { since: at.ticks(), asked: 0 }, site, place)
    }

    /// Returns a job that has to leave this place, where it has run since `start` if it started.
    pub(super) fn leaves(at: Time, site: &Site, place: &Placement, start: Option<i64>) -> Opportunistic {
        let run = Run::Parked { since: at.ticks(), start, waits_since: None, eligible: None, asked: None };
        Opportunistic::on_place(run, site, place)
    }

    fn on_place(run: Run, site: &Site, place: &Placement) -> Opportunistic {
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
    pub(super) fn on<'a>(&'a self, site: &'a Site) -> impl Iterator<Item = (HostId, Resources)> + 'a {
        self.shares.iter().filter_map(|share| {
            let amount = Resources::cpus(share.cpus).with(Kind::Memory, share.memory);
            Some((site.find(&share.node)?, amount.with(Kind::Gpus, share.gpus)))
        })
    }

    /// Takes in its resources on these hosts. Returns whether that is new.
    pub(super) fn has_on(&mut self, site: &Site, has: &[(HostId, Resources)]) -> bool {
        let before = self.shares.clone();
        for share in &mut self.shares {
            let found = has.iter().find(|(host, _)| site.name(*host) == share.node);
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
        let place = placement(self.on(site));
        (place.shares().len() == self.shares.len()).then_some(place)
    }

    /// Returns the start of its run, seconds since 1970, if it ended by itself. `start` is the one that Slurm remembers.
    pub(crate) fn start_of(&self, start: Option<i64>) -> Option<i64> {
        match self.run {
            Run::Placed { .. } => start,
            Run::Running { start } => Some(start),
            Run::Parked { start: begin, waits_since: None, .. } => begin.or(start),
            Run::Parked { .. } => None,
        }
    }

    /// Returns whether it may still hold its nodes.
    pub(super) fn holds_nodes(&self) -> bool {
        !matches!(self.run, Run::Parked { start: Some(_), waits_since: Some(_), .. })
    }

    /// Returns whether Slurm was asked to start it.
    pub(super) fn is_placed(&self) -> bool {
        matches!(self.run, Run::Placed { .. })
    }

    /// Returns whether Slurm is to be asked to start it for the first time.
    pub(super) fn is_unasked(&self) -> bool {
        matches!(self.run, Run::Placed { asked: 0, .. })
    }

    /// Returns whether it has to leave its nodes.
    pub(super) fn is_parked(&self) -> bool {
        matches!(self.run, Run::Parked { .. })
    }

    /// Returns whether it was seen waiting after it had to leave.
    pub(super) fn waits_again(&self) -> bool {
        matches!(self.run, Run::Parked { waits_since: Some(_), .. })
    }

    /// Returns whether Slurm can be asked to make it an ordinary waiting job: its end was a while ago.
    pub(super) fn has_settled(&self, at: Time) -> bool {
        match self.run {
            Run::Parked { start, waits_since: Some(since), .. } => {
                start.is_none() || at - Time::from_ticks(since) >= SETTLING
            }
            _ => false,
        }
    }

    /// Returns the instant at which it has settled, if that is known.
    pub(super) fn settles(&self) -> Option<Time> {
        match self.run {
            Run::Parked { start: Some(_), waits_since: Some(since), .. } => {
                Some(Time::from_ticks(since) + SETTLING)
            }
            _ => None,
        }
    }

    /// Returns whether Slurm keeps it from starting for a while.
    pub(super) fn is_kept(&self, at: Time) -> bool {
        match self.run {
            Run::Parked { start: Some(_), eligible, .. } => {
                eligible.is_none_or(|eligible| eligible > at.secs())
            }
            _ => false,
        }
    }

    /// Takes in the instant from which Slurm lets it start.
    pub(super) fn set_eligible(&mut self, at: Option<i64>) {
        if let Run::Parked { eligible, .. } = &mut self.run {
            *eligible = at;
        }
    }
}

/// Returns whether a job leaves its nodes already.
pub(super) fn is_completing(job: &Job) -> bool {
    matches!(&job.state, JobState::Other(state) if state == "completing")
}

impl Case {
    /// Returns whether the job is tried on idle nodes, or was a moment ago. Slurm's reasons are about that.
    pub(super) fn is_tried(&self, at: Time) -> bool {
        self.facts.stage == Stage::Waiting
            && (self.facts.opportunistic.is_some() || self.facts.rests_until > at.ticks())
    }

    /// Returns whether the job runs ahead of its start.
    pub(super) fn runs_ahead(&self) -> bool {
        self.facts.opportunistic.as_ref().is_some_and(|job| matches!(job.run, Run::Running { .. }))
    }

    /// Has an opportunistic job leave its nodes.
    pub(super) fn park(&mut self, at: Time, id: &str, step: &mut Step) {
        let Some(job) = &mut self.facts.opportunistic else { return };
        let start = match job.run {
            Run::Placed { .. } => None,
            Run::Running { start } => Some(start),
            Run::Parked { .. } => return,
        };
        step.changed = true;
        job.run = Run::Parked { since: at.ticks(), start, waits_since: None, eligible: None, asked: None };
        if let Some(start) = start {
            let ran = (at.secs() - start).max(0);
            self.facts.lost = self.facts.lost.max(ran);
            step.notes.push((id.to_owned(), Note::Parked { ran }));
        }
    }

    /// Returns the orders that make Slurm follow its run ahead of its start. `most` is the number of nodes.
    pub(super) fn orders_ahead(
        &mut self,
        at: Time,
        job: &Job,
        reservation: &str,
        most: u64,
        step: &mut Step,
    ) -> Vec<Order> {
        let Some(known) = &mut self.facts.opportunistic else { return vec![] };
        let nodes: Vec<String> = known.nodes().cloned().collect();
        let is_inside = job.reservation.as_deref() == Some(reservation);
        let id = job.id.clone();
        let has_settled = known.has_settled(at);
        match (&mut known.run, &job.state) {
            (Run::Placed { asked, .. }, JobState::Pending) => {
                // The user of a placed job stays admitted.
                if *asked == 0 {
                    let note = Note::PlacedOpportunistically { nodes: nodes.clone() };
                    step.notes.push((id.clone(), note));
                }
                if *asked > 0 && is_inside {
                    return vec![];
                }
                *asked += 1;
                step.changed = true;
                vec![Order::Place { job: id, reservation: reservation.to_owned(), nodes }]
            }
            (Run::Parked { .. }, JobState::Pending) if has_settled => {
                // It may start only after it has the request of its user again.
                if is_inside || job.priority == PLACED {
                    vec![take_back(job, &self.facts.form, most)]
                } else if known.is_kept(at) {
                    vec![Order::Ready { job: id }]
                } else {
                    vec![]
                }
            }
            (
                Run::Parked { since, asked, .. },
                JobState::Running | JobState::Suspended | JobState::Other(_),
            ) if !is_completing(job) => {
                // Without a driver, or a controller, nobody asked in between.
                if !asked.is_some_and(|asked| at - Time::from_ticks(asked) < ASKED_LATELY) {
                    *since = at.ticks();
                }
                *asked = Some(at.ticks());
                vec![Order::Requeue { job: id }]
            }
            _ => vec![],
        }
    }

    /// Takes in that the job holds nodes. Returns whether it is an opportunistic one. One that does not leave its nodes within
    /// `patience`, or that Slurm started on other nodes without the driver, is none any more: it has its nodes as an ordinary job.
    pub(super) fn runs_opportunistically(
        &mut self,
        at: Time,
        job: &Job,
        patience: Span,
        step: &mut Step,
    ) -> bool {
        let Some(known) = &mut self.facts.opportunistic else { return false };
        // A job that leaves its nodes shows those that it has not left.
        if is_completing(job) {
            return true;
        }
        if known.nodes().collect::<BTreeSet<_>>() != job.on.iter().collect() {
            self.facts.opportunistic = None;
            return false;
        }
        if let Run::Parked { since, start: Some(_), waits_since: None, asked: Some(asked), .. } = known.run
            && at - Time::from_ticks(since) > patience
            && at - Time::from_ticks(asked) < ASKED_LATELY
        {
            self.facts.opportunistic = None;
            return false;
        }
        let begins = match known.run {
            Run::Placed { .. } => true,
            // Slurm was faster.
            Run::Parked { start: ref mut start @ None, waits_since: None, .. } => {
                *start = Some(job.start.unwrap_or(at.secs()));
                step.changed = true;
                false
            }
            Run::Parked { waits_since, .. } => waits_since.is_some(),
            Run::Running { .. } => false,
        };
        if begins {
            let start = job.start.unwrap_or(at.secs());
            known.run = Run::Running { start };
            step.changed = true;
            step.notes.push((job.id.clone(), Note::StartedOpportunistically { start }));
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
        let Some(known) = &mut self.facts.opportunistic else { return };
        let is_inside = job.reservation.as_deref() == Some(reservation) || job.priority == PLACED;
        let waits_since = Some(at.ticks());
        match &mut known.run {
            Run::Placed { since, asked } => {
                let is_late = at - Time::from_ticks(*since) > PATIENCE;
                if is_hindered || is_late || *asked >= MOST_ASKED && !is_inside {
                    known.run = Run::Parked {
                        since: at.ticks(),
                        start: None,
                        waits_since,
                        eligible: None,
                        asked: None,
                    };
                    self.facts.rests_until = (at + LAST_PAUSE).ticks();
                    step.changed = true;
                }
            }
            Run::Running { start } => {
                let start = *start;
                self.facts.lost = self.facts.lost.max(at.secs() - start);
                known.run = Run::Parked {
                    since: at.ticks(),
                    start: Some(start),
                    waits_since,
                    eligible: None,
                    asked: None,
                };
                self.facts.form.on.clear();
                step.changed = true;
                step.notes.push((job.id.clone(), Note::Requeued));
            }
            Run::Parked { waits_since: since @ None, .. } => {
                *since = waits_since;
                self.facts.form.on.clear();
                step.changed = true;
            }
            Run::Parked { .. } => {
                if !is_inside && known.has_settled(at) && !known.is_kept(at) {
                    self.facts.opportunistic = None;
                    step.changed = true;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desk::case::Facts;

    const LONG: Span = Span::from_ticks(60 * 1_000_000);

    fn at(seconds: i64) -> Time {
        Time::from_secs(seconds).unwrap()
    }

    fn case(run: Run) -> Case {
        let facts = Facts { opportunistic: Some(Opportunistic { run, shares: vec![] }), ..Facts::default() };
        Case { number: 1, handle: None, facts }
    }

    fn job(state: JobState, is_inside: bool) -> Job {
        let reservation = is_inside.then(|| "own".to_owned());
        Job { id: "7".into(), state, reservation, start: Some(100), ..Job::default() }
    }

    /// The orders for a job, in short.
    fn orders(case: &mut Case, now: i64, state: JobState, is_inside: bool) -> String {
        let orders = case.orders_ahead(at(now), &job(state, is_inside), "own", 4, &mut Step::default());
        let short = |order: &Order| match order {
            Order::Place { .. } => "place",
            Order::TakeBack { .. } => "take back",
            Order::Requeue { .. } => "requeue",
            Order::Ready { .. } => "ready",
            _ => "other",
        };
        orders.iter().map(short).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn a_job_that_leaves_waits_until_slurm_has_settled() {
        let mut case = case(Run::Placed { since: at(99).ticks(), asked: 0 });
        let step = &mut Step::default();
        let waits = |case: &mut Case, now: i64, is_inside: bool| {
            case.waits_opportunistically(
                at(now),
                &job(JobState::Pending, is_inside),
                "own",
                false,
                &mut Step::default(),
            );
        };
        assert_eq!(orders(&mut case, 99, JobState::Pending, false), "place");
        assert_eq!(orders(&mut case, 100, JobState::Pending, true), "");
        assert!(case.runs_opportunistically(at(101), &job(JobState::Running, true), LONG, step));
        assert!(case.runs_ahead());
        case.park(at(130), "7", step);
        assert_eq!(case.facts.lost, 30);
        assert!(step.notes.contains(&("7".to_owned(), Note::Parked { ran: 30 })));
        assert_eq!(orders(&mut case, 130, JobState::Running, true), "requeue");
        assert_eq!(orders(&mut case, 131, JobState::Other("completing".into()), true), "");
        waits(&mut case, 140, true);
        assert!(!case.facts.opportunistic.as_ref().unwrap().holds_nodes());
        case.facts.opportunistic.as_mut().unwrap().set_eligible(Some(261));
        assert_eq!(orders(&mut case, 142, JobState::Pending, true), "");
        assert_eq!(orders(&mut case, 143, JobState::Pending, true), "take back");
        waits(&mut case, 144, false);
        assert!(case.facts.opportunistic.is_some(), "Slurm keeps it");
        assert_eq!(orders(&mut case, 144, JobState::Pending, false), "ready");
        case.facts.opportunistic.as_mut().unwrap().set_eligible(Some(144));
        waits(&mut case, 145, false);
        assert_eq!(case.facts.opportunistic, None);
    }

    #[test]
    fn a_job_that_does_not_start_is_taken_back_and_rests() {
        let mut case = case(Run::Placed { since: at(100).ticks(), asked: 1 });
        let pending = job(JobState::Pending, true);
        case.waits_opportunistically(at(115), &pending, "own", false, &mut Step::default());
        assert!(case.facts.opportunistic.as_ref().unwrap().is_placed());
        case.waits_opportunistically(at(116), &pending, "own", false, &mut Step::default());
        assert_eq!(case.facts.rests_until, (at(116) + LAST_PAUSE).ticks());
        assert_eq!(orders(&mut case, 116, JobState::Pending, true), "take back");
        // Slurm starts it in that moment.
        assert!(case.runs_opportunistically(
            at(117),
            &job(JobState::Running, true),
            LONG,
            &mut Step::default()
        ));
        assert!(case.runs_ahead());
    }

    #[test]
    fn a_job_that_does_not_leave_keeps_its_nodes() {
        let mut case = case(Run::Running { start: 100 });
        let step = &mut Step::default();
        case.park(at(200), "7", step);
        let running = job(JobState::Running, true);
        let completing = job(JobState::Other("completing".into()), true);
        // Slurm was away until then.
        for second in [300, 320, 340] {
            assert!(case.runs_opportunistically(at(second), &running, LONG, step));
            assert_eq!(orders(&mut case, second, JobState::Running, true), "requeue");
        }
        assert!(case.runs_opportunistically(at(360), &running, LONG, step));
        assert!(case.runs_opportunistically(at(365), &completing, LONG, step));
        assert!(!case.runs_opportunistically(at(361), &running, LONG, step));
        assert_eq!(case.facts.opportunistic, None);
    }

    #[test]
    fn a_job_that_slurm_starts_elsewhere_is_an_ordinary_one() {
        let mut case = case(Run::Running { start: 100 });
        let elsewhere = |state| Job { on: vec!["n1".into()], ..job(state, false) };
        let completing = elsewhere(JobState::Other("completing".into()));
        assert!(case.runs_opportunistically(at(101), &completing, LONG, &mut Step::default()));
        let running = elsewhere(JobState::Running);
        assert!(!case.runs_opportunistically(at(102), &running, LONG, &mut Step::default()));
        assert_eq!(case.facts.opportunistic, None);
    }

    #[test]
    fn the_start_of_a_job_that_is_gone_is_that_of_its_last_run() {
        let start = |run: Run| Opportunistic { run, shares: vec![] }.start_of(Some(5));
        assert_eq!(start(Run::Placed { since: 0, asked: 1 }), Some(5));
        assert_eq!(start(Run::Running { start: 3 }), Some(3));
        let parked =
            |waits_since| Run::Parked { since: 0, start: Some(3), waits_since, eligible: None, asked: None };
        assert_eq!((start(parked(None)), start(parked(Some(4)))), (Some(3), None));
    }
}
