//! A shadow: a second policy on the events of a real queue, with the runtimes that come out there.
//!
//! A shadow has a ledger of its own, and follows the real queue at a distance. It needs to know no runtime before the real
//! queue shows it: where a job runs in the shadow and not yet as long in the real queue, time stands still in the shadow until
//! the real job has run as long, has ended or was withdrawn. So its schedule is the one that the policy would have made,
//! whenever the events are passed on.

use std::collections::{BTreeMap, VecDeque};

use miserly_core::{
    Amendment, Change, Driver, Effect, EndHow, Ended, Entry, EventOrder, Expected, Fault, JobId, JobNumber,
    Ledger, Policy, PolicyState, Procs, Progress, Request, Resources, Round, Span, State, Submission, System,
    Time, Violation,
};

/// What happened in a real queue at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RealRound {
    /// The instant.
    pub at: Time,
    /// Jobs that ended.
    pub ended: Vec<(JobNumber, EndHow)>,
    /// Waiting jobs that were withdrawn.
    pub withdrawn: Vec<JobNumber>,
    /// Requests that were changed.
    pub amended: Vec<(JobNumber, Change)>,
    /// The capacity of the pool from now on, if it changed.
    pub capacity: Option<Resources>,
    /// Jobs that were submitted.
    pub submitted: Vec<Request>,
    /// Jobs that lost all of their work.
    pub requeued: Vec<JobNumber>,
    /// The processors that work for a job from now on; none while it is suspended.
    pub works: Vec<(JobNumber, Procs)>,
}

/// A submission of a job, in the order of the events. A job that is held and released is submitted again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instance(pub u64);

/// What became of a job in the shadow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShadowOutcome {
    /// It started.
    Started,
    /// It went back to the queue. Its start does not count.
    Requeued,
    /// It ended.
    Ended,
    /// The policy refused it.
    Refused,
}

/// An event of the shadow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShadowEvent {
    /// The instant.
    pub at: Time,
    /// The job.
    pub job: Instance,
    /// What became of it.
    pub outcome: ShadowOutcome,
}

/// What the real queue has shown of a job. It is the part of a shadow's state that its ledger lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealJob {
    /// The number of the job.
    pub number: JobNumber,
    /// The work by `since`, processor-ticks.
    pub done: u128,
    /// The processors that work since then.
    pub procs: Procs,
    /// The instant of `done`.
    pub since: Time,
    /// The end, if it has one.
    pub end: Option<RealEnd>,
}

/// The end of a job in the real queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RealEnd {
    /// It ended after this work.
    Ended(EndHow),
    /// It was withdrawn at this instant.
    Withdrawn(Time),
}

impl RealJob {
    fn new(number: JobNumber, since: Time) -> RealJob {
        RealJob { number, done: 0, procs: Procs::ZERO, since, end: None }
    }

    /// Returns the time that its work by `since` takes on this number of processors.
    pub fn runtime(&self, procs: Procs) -> Span {
        miserly_core::span_of_work(self.done, procs)
    }

    /// Returns its work, as far as it is known at an instant.
    fn work(&self, known: Time) -> u128 {
        if self.end.is_some() {
            return self.done;
        }
        self.done + miserly_core::work((known - self.since).max(Span::ZERO), self.procs)
    }

    /// Goes on with these processors. What was taken in before is left out.
    fn go_on(&mut self, at: Time, procs: Procs) {
        if at >= self.since {
            *self = RealJob { done: self.work(at), procs, since: at, ..*self };
        }
    }

    /// Begins again, with all work lost.
    fn begin_again(&mut self, at: Time) {
        if at >= self.since {
            *self = RealJob { done: 0, procs: Procs::ZERO, since: at, ..*self };
        }
    }
}

/// The events from outside at one instant.
#[derive(Clone, Debug)]
struct Outside {
    at: Time,
    withdrawn: Vec<Instance>,
    amended: Vec<(Instance, Change)>,
    capacity: Option<Resources>,
    submitted: Vec<(Instance, Request)>,
}

/// The stored state of a shadow between two rounds.
#[derive(Clone, Debug)]
pub struct ShadowState {
    /// The instant of the last round.
    pub now: Time,
    /// The wake-up that its policy requested.
    pub wake: Option<Time>,
    /// The ledger.
    pub ledger: Ledger,
    /// The number of submissions so far.
    pub submissions: u64,
    /// The jobs of the ledger, by their admission numbers.
    pub jobs: BTreeMap<u64, (Instance, RealJob)>,
}

/// A policy on the events of a real queue.
///
/// # Example
/// ```
/// use miserly_core::{EndHow, Ledger, Machine, Procs, Request, Resources, Span, Time};
/// use miserly_policies::PolicySpec;
/// use miserly_sim::{RealRound, Shadow, ShadowState};
///
/// let machine = Machine::plain(4);
/// let policy = "easy".parse::<PolicySpec>()?.build(&machine, 0)?;
/// let mut shadow = Shadow::beginning(Ledger::new(machine), policy, Time::ZERO);
/// let at = Time::from_ticks;
/// let request = Request::new(1, at(1), Span::from_ticks(90), Resources::cpus(4));
/// shadow.observe(RealRound { at: at(1), submitted: vec![request], ..RealRound::default() });
/// // The real job starts a while later, and ends.
/// shadow.observe(RealRound { at: at(50), works: vec![(1, Procs::new(4))], ..RealRound::default() });
/// shadow.observe(RealRound { at: at(60), ended: vec![(1, EndHow::Done)], ..RealRound::default() });
/// let events = shadow.advance(&mut || true)?;
/// assert_eq!((events[0].at, events[1].at), (at(1), at(11)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Shadow {
    system: System,
    /// The instant of the last round.
    now: Time,
    /// Until when the real queue is known.
    known: Time,
    /// The events that the shadow has not reached, by instant.
    outside: VecDeque<Outside>,
    /// What the real queue has shown of each job that is in the shadow, or on its way there.
    real: BTreeMap<Instance, RealJob>,
    /// The last submission of each of these jobs.
    latest: BTreeMap<JobNumber, Instance>,
    submissions: u64,
    /// The jobs in the shadow, by handle.
    jobs: Vec<Option<Instance>>,
    handles: BTreeMap<Instance, JobId>,
    /// Handles below the length of `jobs` that no job has.
    unused: Vec<JobId>,
}

/// What is known of the end of a job in the shadow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    /// It ends at this instant.
    At(Time, EndHow),
    /// It ends later than this.
    Beyond(Time),
}

impl Shadow {
    /// Returns a shadow that takes over the jobs of a real queue at an instant: those that run go on, and those that wait are
    /// planned again.
    pub fn beginning(ledger: Ledger, policy: Box<dyn Policy>, now: Time) -> Shadow {
        let jobs: Vec<JobId> = ledger.running().chain(ledger.suspended()).chain(ledger.waiting()).collect();
        let mut shadow = Shadow::over(ledger, policy, now, Some(now + Span::TICK));
        for job in jobs {
            let entry = shadow.ledger().entry(job);
            let real = RealJob {
                number: entry.request.number,
                done: entry.done(now) + entry.opportunistic_work(now),
                procs: entry.working(),
                since: now,
                end: None,
            };
            let instance = shadow.submitted(real);
            shadow.enter(job, instance);
        }
        shadow
    }

    /// Returns an entry of a real queue, as a shadow takes it over: without promise, plan and quantum.
    pub fn without_plans(mut entry: Entry, now: Time) -> Entry {
        let predicted = entry.prediction.take().is_some();
        let left = entry.planned_left(now, entry.working());
        if let State::Running { expected, quantum, released, .. } = &mut entry.state {
            if quantum.take().is_some() || predicted {
                *expected = Expected::At(now + left);
            }
            *released = false;
        }
        let opportunistic = Progress { done: entry.opportunistic_work(now), at: now, ..Progress::default() };
        let policy_state = PolicyState::EMPTY;
        Entry { promise: None, planned: None, planned_on: None, policy_state, opportunistic, ..entry }
    }

    /// Returns a shadow that continues.
    pub fn continuing(state: ShadowState, policy: Box<dyn Policy>) -> Shadow {
        let ShadowState { now, wake, ledger, submissions, jobs } = state;
        let mut shadow = Shadow { submissions, ..Shadow::over(ledger, policy, now, wake) };
        let ledger = shadow.ledger();
        let inside = ledger.running().chain(ledger.suspended()).chain(ledger.waiting());
        let found: Vec<_> =
            inside.filter_map(|job| Some((job, *jobs.get(&ledger.entry(job).admitted)?))).collect();
        for (job, (instance, real)) in found {
            shadow.real.insert(instance, real);
            shadow.enter(job, instance);
        }
        // Also of those that have ended: their last events may be observed again. Of two instances, the later one.
        shadow.latest = shadow.real.iter().map(|(instance, real)| (real.number, *instance)).collect();
        shadow
    }

    fn over(ledger: Ledger, policy: Box<dyn Policy>, now: Time, wake: Option<Time>) -> Shadow {
        let mut driver = Driver::new(ledger, policy, EventOrder::Batched);
        driver.resume(now, wake);
        Shadow {
            system: System::new(vec![driver]),
            now,
            known: now,
            outside: VecDeque::new(),
            real: BTreeMap::new(),
            latest: BTreeMap::new(),
            submissions: 0,
            jobs: vec![],
            handles: BTreeMap::new(),
            unused: vec![],
        }
    }

    /// Returns its state. Events that it has not reached are not part of it: they are observed again.
    ///
    /// A job that the shadow has not reached is not part of it either.
    pub fn state(&self) -> ShadowState {
        let driver = &self.system.queues()[0];
        let job = |(instance, job): (&Instance, &JobId)| {
            Some((driver.ledger().entry(*job).admitted, (*instance, *self.real.get(instance)?)))
        };
        ShadowState {
            now: self.now,
            wake: driver.wake(),
            ledger: driver.ledger().clone(),
            submissions: self.submissions
                - self.outside.iter().map(|outside| outside.submitted.len() as u64).sum::<u64>(),
            jobs: self.handles.iter().filter_map(job).collect(),
        }
    }

    /// Returns the instant that the shadow has reached.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the number of rounds with events from outside that the shadow has not reached.
    pub fn behind(&self) -> usize {
        self.outside.len()
    }

    /// Returns what the real queue has shown of a job that is in the shadow, or on its way there.
    pub fn real(&self, job: Instance) -> Option<&RealJob> {
        self.real.get(&job)
    }

    /// Returns the job that the shadow waits for, if it has to know more about one.
    pub fn waits_for(&self) -> Option<JobNumber> {
        let (bound, job) = self.bound()?;
        let next = self.next_instant()?;
        (bound < next && bound < self.known).then(|| self.ledger().request(job).number)
    }

    /// Takes in what happened in the real queue. Returns the submissions of its jobs, in order.
    ///
    /// A round before the last one counts as one at the same instant.
    pub fn observe(&mut self, round: RealRound) -> Vec<Instance> {
        let at = round.at.max(self.known);
        self.known = at;
        for (number, how) in round.ended {
            self.change(number, |real| {
                real.go_on(at, Procs::ZERO);
                real.end = Some(RealEnd::Ended(how));
            });
            self.latest.remove(&number);
        }
        let mut outside =
            Outside { at, withdrawn: vec![], amended: vec![], capacity: round.capacity, submitted: vec![] };
        for number in round.withdrawn {
            self.change(number, |real| {
                real.go_on(at, Procs::ZERO);
                real.end = Some(RealEnd::Withdrawn(at));
            });
            outside.withdrawn.extend(self.latest.remove(&number));
        }
        for (number, change) in round.amended {
            outside.amended.extend(self.latest.get(&number).map(|instance| (*instance, change.clone())));
        }
        for request in round.submitted {
            let instance = self.submitted(RealJob::new(request.number, at));
            outside.submitted.push((instance, request));
        }
        let submitted = outside.submitted.iter().map(|(instance, _)| *instance).collect();
        for number in round.requeued {
            self.change(number, |real| real.begin_again(at));
        }
        for (number, procs) in round.works {
            self.change(number, |real| real.go_on(at, procs));
        }
        let any =
            !(outside.withdrawn.is_empty() && outside.amended.is_empty() && outside.submitted.is_empty());
        if any || outside.capacity.is_some() {
            self.outside.push_back(outside);
        }
        submitted
    }

    /// Takes in that nothing else happened in the real queue until this instant.
    pub fn observe_nothing(&mut self, until: Time) {
        self.known = self.known.max(until);
    }

    /// Simulates as far as the real queue is known. `goes_on` is asked before each round.
    ///
    /// Time: O(running jobs) for each round, and what the policy takes.
    ///
    /// # Errors
    /// If the policy makes a mistake. The shadow cannot go on then.
    pub fn advance(&mut self, goes_on: &mut dyn FnMut() -> bool) -> Result<Vec<ShadowEvent>, Violation> {
        let mut events = vec![];
        loop {
            let most = self.bound().map_or(self.known, |(bound, _)| bound.min(self.known));
            match self.next_instant().filter(|at| *at <= most) {
                Some(at) if goes_on() => self.step(at, &mut events)?,
                Some(_) => break,
                None => {
                    // Nothing happens until then.
                    self.now = self.now.max(most);
                    break;
                }
            }
        }
        Ok(events)
    }

    fn ledger(&self) -> &Ledger {
        self.system.queues()[0].ledger()
    }

    fn submitted(&mut self, real: RealJob) -> Instance {
        let instance = Instance(self.submissions);
        self.submissions += 1;
        self.latest.insert(real.number, instance);
        self.real.insert(instance, real);
        instance
    }

    fn enter(&mut self, job: JobId, instance: Instance) {
        if self.jobs.len() <= job.index() {
            self.jobs.resize(job.index() + 1, None);
        }
        self.jobs[job.index()] = Some(instance);
        self.handles.insert(instance, job);
    }

    fn leave(&mut self, job: JobId) {
        if let Some(instance) = self.jobs[job.index()].take() {
            self.unused.push(job);
            self.handles.remove(&instance);
            if let Some(real) = self.real.remove(&instance)
                && self.latest.get(&real.number) == Some(&instance)
            {
                self.latest.remove(&real.number);
            }
        }
    }

    fn change(&mut self, number: JobNumber, change: impl FnOnce(&mut RealJob)) {
        if let Some(real) = self.latest.get(&number).and_then(|instance| self.real.get_mut(instance)) {
            change(real);
        }
    }

    /// Returns what is known of the end of a job that runs or is suspended.
    fn due(&self, job: JobId) -> Due {
        let entry = self.ledger().entry(job);
        let Some(real) = self.jobs[job.index()].and_then(|instance| self.real.get(&instance)) else {
            return Due::At(self.now, EndHow::Cancelled);
        };
        let after = |work: u128| self.now + entry.time_to(self.now, work);
        match real.end {
            Some(RealEnd::Ended(how)) => Due::At(after(real.done), how),
            Some(RealEnd::Withdrawn(at)) => Due::At(at.max(self.now), EndHow::Cancelled),
            None => Due::Beyond(after(real.work(self.known))),
        }
    }

    fn started(&self) -> impl Iterator<Item = JobId> {
        self.ledger().running().chain(self.ledger().suspended())
    }

    /// Returns the last instant before which no other job can end, and the job whose end is unknown.
    fn bound(&self) -> Option<(Time, JobId)> {
        let unknown = |job| match self.due(job) {
            Due::Beyond(bound) => Some((bound, job)),
            Due::At(..) => None,
        };
        self.started().filter_map(unknown).min_by_key(|(bound, _)| *bound)
    }

    /// Returns the expected end of a running job; `None` if it is overdue.
    fn expected(&self, job: JobId) -> Option<Time> {
        match self.ledger().entry(job).state {
            State::Running { expected: Expected::At(end), .. } => Some(end),
            _ => None,
        }
    }

    fn next_instant(&self) -> Option<Time> {
        let outside = self.outside.front();
        let ends = self.started().filter_map(|job| match self.due(job) {
            Due::At(end, _) => Some(end),
            Due::Beyond(_) => None,
        });
        let overdue = self.ledger().running().filter_map(|job| self.expected(job));
        let due = ends.chain(overdue).chain(self.system.wake()).min().map(|at| at.max(self.now));
        due.into_iter().chain(outside.map(|outside| outside.at)).min()
    }

    fn step(&mut self, at: Time, events: &mut Vec<ShadowEvent>) -> Result<(), Violation> {
        let mut round = Round::default();
        let mut gone = vec![];
        for job in self.started() {
            match self.due(job) {
                Due::At(end, how) if end <= at => {
                    let entry = self.ledger().entry(job);
                    gone.push(((start_of(entry), entry.admitted), Ended { job, how }));
                }
                _ if self.expected(job).is_some_and(|end| end <= at) => round.overdue.push(job),
                _ => {}
            }
        }
        gone.sort_by_key(|(order, _)| *order);
        round.ended = gone.into_iter().map(|(_, ended)| ended).collect();
        round.overdue.sort_by_key(|job| self.ledger().request(*job).number);
        let mut left: Vec<JobId> = round.ended.iter().map(|ended| ended.job).collect();
        for job in &left {
            events.extend(self.jobs[job.index()].map(|job| ShadowEvent {
                at,
                job,
                outcome: ShadowOutcome::Ended,
            }));
        }
        if self.outside.front().is_some_and(|outside| outside.at <= at)
            && let Some(outside) = self.outside.pop_front()
        {
            self.add(outside, &left, &mut round);
        }
        left.extend(&round.withdrawn);
        let mut effects = vec![];
        self.now = at;
        self.system.round(at, &mut round, &mut effects)?;
        for effect in effects {
            let job = effect.job();
            let outcome = match effect {
                Effect::Started { .. } => ShadowOutcome::Started,
                Effect::Requeued { .. } => ShadowOutcome::Requeued,
                Effect::Refused { .. } => {
                    left.push(job);
                    ShadowOutcome::Refused
                }
                _ => continue,
            };
            events.extend(self.jobs[job.index()].map(|job| ShadowEvent { at, job, outcome }));
        }
        for job in left {
            self.leave(job);
        }
        Ok(())
    }

    /// Adds the events from outside to a round in which these jobs end.
    fn add(&mut self, outside: Outside, ended: &[JobId], round: &mut Round) {
        let stays =
            |instance: &Instance| self.handles.get(instance).copied().filter(|job| !ended.contains(job));
        // A job that runs in the shadow ends at its withdrawal.
        round.withdrawn = outside.withdrawn.iter().filter_map(stays).collect();
        let amendment = |(instance, change): &(Instance, Change)| {
            let job = stays(instance)?;
            let waits = self.ledger().entry(job).state == State::Waiting;
            (waits || matches!(change, Change::Estimate(_)))
                .then_some(Amendment { job, change: change.clone() })
        };
        round.amended = outside.amended.iter().filter_map(amendment).collect();
        round.fault = outside.capacity.map(|capacity| Fault::Capacity { queue: 0, capacity });
        for (instance, request) in outside.submitted {
            let new = || JobId(u32::try_from(self.jobs.len()).unwrap_or(u32::MAX));
            let job = self.unused.pop().unwrap_or_else(new);
            self.enter(job, instance);
            let request = Request { queue: None, ..request };
            round.submitted.push(Submission { job, request });
        }
    }
}

/// Returns the start of a job that has one.
fn start_of(entry: &Entry) -> Option<Time> {
    match entry.state {
        State::Running { start, .. } | State::Suspended { start, .. } => Some(start),
        State::Waiting => None,
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::Machine;
    use miserly_policies::PolicySpec;

    use super::*;

    const fn at(ticks: i64) -> Time {
        Time::from_ticks(ticks)
    }

    fn build() -> Box<dyn Policy> {
        "fcfs".parse::<PolicySpec>().unwrap().build(&Machine::plain(4), 0).unwrap()
    }

    fn submitted(number: JobNumber, time: i64) -> RealRound {
        let request = Request::new(number, at(time), Span::from_ticks(90), Resources::cpus(4));
        RealRound { at: at(time), submitted: vec![request], ..RealRound::default() }
    }

    #[test]
    fn a_withdrawal_that_the_shadow_has_not_reached_outlives_a_restart() {
        let mut shadow = Shadow::beginning(Ledger::new(Machine::plain(4)), build(), Time::ZERO);
        shadow.observe(submitted(1, 1));
        shadow.observe(submitted(2, 2));
        // The first one runs in the shadow only, so time stands still there.
        let withdrawn = RealRound { at: at(5), withdrawn: vec![2], ..RealRound::default() };
        let longer = Change::Estimate(Span::from_ticks(95));
        let amended = RealRound { at: at(6), amended: vec![(1, longer)], ..RealRound::default() };
        let runs = RealRound { at: at(7), works: vec![(1, Procs::new(4))], ..RealRound::default() };
        let ended = RealRound { at: at(8), ended: vec![(1, EndHow::Done)], ..RealRound::default() };
        let rounds = [withdrawn, amended, runs, ended];
        shadow.observe(rounds[0].clone());
        let events = shadow.advance(&mut || true).unwrap();
        assert_eq!(events.len(), 1, "{events:?}");
        assert_eq!((shadow.now(), shadow.behind(), shadow.waits_for()), (at(1), 2, Some(1)));
        for round in &rounds[1..] {
            shadow.observe(round.clone());
        }
        let mut shadow = Shadow::continuing(shadow.state(), build());
        shadow.observe(submitted(2, 2));
        for round in rounds {
            shadow.observe(round);
        }
        shadow.observe(submitted(3, 9));
        let started: Vec<(Time, ShadowOutcome)> =
            shadow.advance(&mut || true).unwrap().iter().map(|event| (event.at, event.outcome)).collect();
        // The second one starts at the end of the first and ends at its withdrawal; the third one is not behind it.
        let expect =
            [(at(2), ShadowOutcome::Ended), (at(2), ShadowOutcome::Started), (at(5), ShadowOutcome::Ended)];
        assert_eq!(started[..3], expect, "{started:?}");
        assert_eq!(started[3], (at(9), ShadowOutcome::Started));
        assert_eq!(shadow.behind(), 0);
    }
}
