//! A host and the jobs that are assigned to it.

use miserly_core::{
    Entry, Expected, HostId, JobId, Kind, Ledger, Placement, Procs, Resources, Sizes, Span, State, Time,
    span_of_work,
};

use super::division::{Want, divide, equally};
use super::{MissedWork, Repartitioned, Rules};

/// A host, the jobs that are assigned to it, and their shares.
///
/// All of it is derived from the ledger, except the decisions of the present pass, which are
/// carried out before it ends.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) id: HostId,
    pub(super) procs: Procs,
    /// In the order of their admission. In the ledger, jobs without a processor are assigned to the
    /// host.
    pub(super) jobs: Vec<Assigned>,
    /// The total request of the jobs, processors.
    pub(super) requested: Procs,
    /// The least processors of all jobs together.
    pub(super) least: Procs,
    /// The processors that jobs catching up have beyond their equal shares.
    pub(super) extra: Procs,
    /// The resources other than processors that jobs not yet started will take.
    pub(super) unstarted: Resources,
    /// Whether an event affected the host since the last pass.
    pub(super) touched: bool,
    /// Whether a quantum begins or ends, which does not wait for the minimum interval.
    pub(super) is_immediate: bool,
    /// The admission numbers of jobs whose processors or expected ends may have changed in the ledger.
    pub(super) stale: Vec<u64>,
    /// The time of the next examination without an event.
    next_look: Time,
    /// The time of the next examination that needs a wake-up.
    pub(super) wake: Time,
}

/// A job that is assigned to a host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Assigned {
    pub(super) admitted: u64,
    pub(super) job: JobId,
    pub(super) requested: Sizes,
    /// Whether it starts for a quantum only, with little memory.
    pub(super) for_quantum: bool,
    /// Its equal share.
    pub(super) fair: Procs,
    /// Its share, given the jobs with priority.
    pub(super) target: Procs,
    /// Whether it may have missed work or be in a quantum. Other jobs on a host get neither.
    pub(super) special: bool,
    /// The processors that work for it in the ledger.
    pub(super) working: Procs,
    /// Its expected end in the ledger.
    end: Time,
}

impl Assigned {
    pub(super) fn new(job: JobId, entry: &Entry, for_quantum: bool) -> Assigned {
        let requested = entry.request.sizes();
        Assigned {
            admitted: entry.admitted,
            job,
            requested,
            for_quantum,
            fair: Procs::ZERO,
            target: Procs::ZERO,
            special: for_quantum || in_quantum(entry) || entry.policy_state.get::<MissedWork>().work > 0,
            working: entry.working(),
            end: expected_end(entry),
        }
    }
}

impl Assigned {
    /// Returns whether it can have priority, or its entitlement can change, without an event.
    fn may_gain(&self, rules: &Rules) -> bool {
        self.special || rules.long_job_after < Span::MAX
    }
}

impl Host {
    pub(super) fn new(id: HostId, procs: Procs) -> Host {
        Host {
            id,
            procs,
            jobs: Vec::new(),
            requested: Procs::ZERO,
            least: Procs::ZERO,
            extra: Procs::ZERO,
            unstarted: Resources::NONE,
            touched: false,
            is_immediate: false,
            stale: Vec::new(),
            next_look: Time::MAX,
            wake: Time::MAX,
        }
    }

    /// Adds a job in the order of admission. `unheld` is its need that it does not hold yet.
    pub(super) fn join(&mut self, assigned: Assigned, unheld: Resources) {
        let place = self.jobs.partition_point(|other| other.admitted < assigned.admitted);
        self.jobs.insert(place, assigned);
        self.unstarted = self.unstarted.plus(&unheld.without_cpus());
    }

    pub(super) fn leave(&mut self, job: JobId) {
        self.jobs.retain(|assigned| assigned.job != job);
        self.touched = true;
    }

    /// Returns whether the host may be repartitioned now. All changes of one instant are one
    /// repartitioning.
    pub(super) fn is_due(&self, now: Time, ledger: &Ledger, rules: &Rules) -> bool {
        let Repartitioned(mark) = ledger.host_state(self.id);
        self.is_immediate || mark.is_none_or(|mark| mark == now || mark + rules.min_interval <= now)
    }

    /// Returns whether the host has to be examined.
    pub(super) fn needs_look(&self, now: Time) -> bool {
        self.touched || self.next_look <= now
    }

    /// Computes the shares of its jobs, without those that are certain to end at this instant. O(n
    /// log n).
    pub(super) fn survey(&mut self, now: Time, ledger: &Ledger, rules: &Rules) {
        if ledger.released_count() > 0 {
            self.jobs.retain(|assigned| !is_released(ledger.entry(assigned.job)));
        }
        let requested: Vec<Sizes> = self.jobs.iter().map(|assigned| assigned.requested).collect();
        let sum = |sum: Procs, procs: Procs| sum.saturating_add(procs);
        self.requested = requested.iter().map(|sizes| sizes.most).fold(Procs::ZERO, sum);
        self.least = requested.iter().map(|sizes| sizes.least).fold(Procs::ZERO, sum);
        if self.least > self.procs {
            // The host has lost processors. Its jobs keep theirs.
            self.jobs.iter_mut().for_each(|assigned| {
                (assigned.fair, assigned.target) = (assigned.working, assigned.working);
            });
            self.extra = Procs::ZERO;
            return;
        }
        let want = |assigned: &Assigned| Want {
            requested: assigned.requested,
            all: assigned.for_quantum
                || (assigned.may_gain(rules) && rules.gives_all(ledger.entry(assigned.job), now)),
        };
        let wants: Vec<Want> = self.jobs.iter().map(want).collect();
        let fair = equally(self.procs, &requested);
        let target = wants.iter().any(|want| want.all).then(|| divide(self.procs, &wants));
        let shares = fair.iter().zip(target.as_ref().unwrap_or(&fair));
        for (assigned, (fair, target)) in self.jobs.iter_mut().zip(shares) {
            (assigned.fair, assigned.target) = (*fair, *target);
        }
        let catches_up = |assigned: &&Assigned| assigned.special && catches_up(ledger.entry(assigned.job));
        let extra = |assigned: &Assigned| assigned.target.saturating_sub(assigned.fair);
        self.extra = self.jobs.iter().filter(catches_up).map(extra).sum();
    }

    /// Returns the equal share of one more job.
    pub(super) fn share_of_another(&self, admitted: u64, requested: Sizes) -> Procs {
        let place = self.jobs.partition_point(|other| other.admitted < admitted);
        let mut all: Vec<Sizes> = self.jobs.iter().map(|assigned| assigned.requested).collect();
        all.insert(place, requested);
        equally(self.procs, &all)[place]
    }

    /// Reads the processors and the expected ends of the stale jobs again.
    pub(super) fn refresh(&mut self, ledger: &Ledger) {
        for admitted in self.stale.drain(..) {
            let place = self.jobs.binary_search_by_key(&admitted, |assigned| assigned.admitted);
            if let Ok(place) = place {
                let assigned = &mut self.jobs[place];
                let entry = ledger.entry(assigned.job);
                (assigned.working, assigned.end) = (entry.working(), expected_end(entry));
            }
        }
    }

    /// Computes the next examination without events.
    pub(super) fn look_ahead(&mut self, now: Time, ledger: &Ledger, rules: &Rules) {
        self.refresh(ledger);
        self.touched = false;
        (self.wake, self.next_look) = (Time::MAX, Time::MAX);
        let mut divided = true;
        for assigned in &self.jobs {
            divided &= assigned.working == assigned.target;
            self.next_look = self.next_look.min(assigned.end);
            if assigned.may_gain(rules) {
                let entry = ledger.entry(assigned.job);
                self.wake = self.wake.min(turning_point(now, entry, assigned.fair, rules));
            }
        }
        if !divided {
            let mark = ledger.host_state::<Repartitioned>(self.id).0.unwrap_or(now);
            self.wake = self.wake.min(mark + rules.min_interval);
        }
        self.next_look = self.next_look.min(self.wake);
    }

    /// Returns whether the free resources other than processors suffice, beyond those that its jobs
    /// will take.
    pub(super) fn has_room(&self, ledger: &Ledger, need: &Resources) -> bool {
        need.without_cpus().plus(&self.unstarted).fits_in(&ledger.free_hosts().on(self.id))
    }

    /// Returns the free memory, to choose between hosts.
    pub(super) fn free_memory(&self, ledger: &Ledger) -> u64 {
        let free = ledger.free_hosts().on(self.id).get(Kind::Memory);
        free.saturating_sub(self.unstarted.get(Kind::Memory))
    }

    /// Returns a placement of `procs` processors on this host, and of all other needed resources.
    pub(super) fn placement(&self, need: Resources, procs: Procs) -> Placement {
        Placement::on(self.id, need.with_cpus(procs))
    }
}

/// Returns whether a job gets extra processors for its missed work. In a quantum it gets them for
/// the quantum.
fn catches_up(entry: &Entry) -> bool {
    entry.policy_state.get::<MissedWork>().work > 0 && !in_quantum(entry)
}

fn in_quantum(entry: &Entry) -> bool {
    matches!(entry.state, State::Running { quantum: Some(_), .. })
}

fn is_released(entry: &Entry) -> bool {
    matches!(entry.state, State::Running { released: true, .. })
}

/// Returns the time at which a job's entitlement to processors changes without an event.
fn turning_point(now: Time, entry: &Entry, fair: Procs, rules: &Rules) -> Time {
    let State::Running { start, quantum, .. } = entry.state else { return Time::MAX };
    let long = Some(start + rules.long_job_after).filter(|long| *long > now);
    let gains = entry.working().saturating_sub(fair);
    let MissedWork { work, counted } = entry.policy_state.get();
    let caught_up = catches_up(entry).then(|| counted.unwrap_or(start) + span_of_work(work, gains));
    [long, quantum, caught_up].into_iter().flatten().min().unwrap_or(Time::MAX)
}

/// Returns the expected end of a job, which may precede its end event.
fn expected_end(entry: &Entry) -> Time {
    match entry.state {
        State::Running { expected: Expected::At(end), .. } => end,
        _ => Time::MAX,
    }
}
