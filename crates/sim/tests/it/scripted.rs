//! Runs with everything that can happen to a pool: jobs that come, end and overrun, and changes
//! from outside.

use miserly_core::{
    Amendment, Calendar, Change, Driver, Effect, EndHow, Ended, Entry, EventOrder, Exception, Expected,
    Fault, JobId, Ledger, Machine, OpportunisticConfig, Policy, Procs, Resources, Round, Span, State,
    Submission, System, Time, work,
};
use miserly_oracle::{NaiveChange, NaiveFate, NaivePool};

/// The outcome of a job: that of the reference implementation, and all other decisions on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) naive: NaiveFate,
    pub(crate) effects: Vec<(Time, String)>,
}

/// The pool of a script.
pub(crate) fn machine(pool: &NaivePool) -> Machine {
    let steps = pool.steps.iter().map(|&(from, amount)| (Span::from_ticks(from), amount)).collect();
    let calendar = Calendar::repeating(Time::ZERO, Span::from_ticks(pool.period), steps).unwrap();
    let exception = |&(from, to, amount): &(i64, i64, Resources)| Exception {
        from: Time::from_ticks(from),
        to: Time::from_ticks(to),
        amount,
    };
    let calendar = calendar.with_exceptions(pool.once.iter().map(exception).collect()).unwrap();
    Machine::pool("pool".into(), calendar)
}

/// A run of a policy over a script.
pub(crate) struct Play<'a> {
    script: &'a NaivePool,
    system: System,
    fates: Vec<Fate>,
    /// How many started before each job.
    ranks: Vec<usize>,
    started: usize,
    now: Time,
    /// Nothing is played from then on.
    last: Time,
    /// Whether every round with events also has one for an absent daemon.
    away: bool,
}

/// Longer than any script: jobs that wait then wait for ever.
const LAST: Time = Time::from_ticks(2_000);

impl<'a> Play<'a> {
    pub(crate) fn of(script: &'a NaivePool, policy: Box<dyn Policy>, instants: EventOrder) -> Play<'a> {
        Play { last: LAST, ..Play::on(machine(script), script, policy, instants) }
    }

    /// The same on another machine in place of the script's pool, however long that takes.
    pub(crate) fn on(
        machine: Machine,
        script: &'a NaivePool,
        policy: Box<dyn Policy>,
        instants: EventOrder,
    ) -> Play<'a> {
        let driver = Driver::new(Ledger::new(machine), policy, instants);
        let system = System::new(vec![driver]);
        let fates = vec![Fate::default(); script.jobs.len()];
        let ranks = vec![0; script.jobs.len()];
        Play {
            script,
            system,
            fates,
            ranks,
            started: 0,
            now: Time::from_ticks(-1),
            last: Time::MAX,
            away: false,
        }
    }

    /// Returns the same play with a further event, for an absent daemon, in each round with events.
    pub(crate) fn away(self) -> Play<'a> {
        Play { away: true, ..self }
    }

    /// The same, with jobs that run ahead of their starts.
    pub(crate) fn with_opportunistic(self, config: OpportunisticConfig) -> Play<'a> {
        Play { system: self.system.with_opportunistic(config), ..self }
    }

    fn ledger(&self) -> &Ledger {
        self.system.queues()[0].ledger()
    }

    /// Plays to the end; `look` sees all after each round.
    pub(crate) fn run(mut self, mut look: impl FnMut(Time, &mut System)) -> Vec<Fate> {
        while let Some(now) = self.next_instant().filter(|at| *at < self.last) {
            let mut round = self.round(now);
            self.now = now;
            // A change that affects no job has no event.
            if round.is_empty() && self.system.wake() != Some(now) {
                continue;
            }
            let mut effects = Vec::new();
            self.system.round(now, &mut round, &mut effects).unwrap();
            if !is_blocked(now, self.ledger()) {
                self.ledger().sanity_check(now);
            }
            for effect in &effects {
                self.note(effect);
            }
            look(now, &mut self.system);
        }
        self.fates
    }

    fn note(&mut self, effect: &Effect) {
        let (now, fate) = (self.now, &mut self.fates[effect.job().index()]);
        match *effect {
            Effect::Started { .. } => {
                fate.naive.start = Some(now);
                self.ranks[effect.job().index()] = self.started;
                self.started += 1;
            }
            Effect::Refused { why, .. } => fate.naive.refused = Some(why),
            Effect::Promised { latest, .. } => fate.naive.promises.push((now, latest, false)),
            Effect::PromiseBroken { latest, .. } => fate.naive.promises.push((now, latest, true)),
            _ => {}
        }
        if !matches!(effect, Effect::Planned { .. }) {
            fate.effects.push((now, format!("{effect:?}")));
        }
    }

    fn jobs(&self) -> impl Iterator<Item = JobId> + use<> {
        (0..).map(JobId).take(self.script.jobs.len())
    }

    /// When the job ends as it runs now, in its window or ahead of it, if it runs.
    fn end(&self, job: JobId) -> Option<Time> {
        let entry = self.ledger().get(job)?;
        let quantum = match entry.state {
            State::Running { quantum, .. } => quantum,
            State::Waiting if entry.opportunistic.procs > Procs::new(0) => None,
            _ => return None,
        };
        let all = work(self.script.jobs[job.index()].runtime.0, entry.request.procs());
        let end = self.now + entry.time_to(self.now, all);
        // A quantum that it does not end in is the policy's to end.
        (quantum.is_none_or(|until| end <= until)).then_some(end)
    }

    /// When the job is found overdue, if it will be.
    fn overdue(&self, job: JobId) -> Option<Time> {
        match self.ledger().get(job)?.state {
            State::Running { expected: Expected::At(at), quantum: None, .. } => {
                self.end(job).filter(|end| *end > at).map(|_| at)
            }
            _ => None,
        }
    }

    fn next_instant(&self) -> Option<Time> {
        let submits = self.script.jobs.iter().map(|job| job.request.submit).filter(|at| *at > self.now);
        let changes = self.script.changes.iter().map(|(at, _)| *at).filter(|at| *at > self.now);
        let ends = self.jobs().filter_map(|job| self.end(job));
        let notices = self.jobs().filter_map(|job| self.overdue(job));
        submits.chain(changes).chain(ends).chain(notices).chain(self.system.wake()).min()
    }

    fn round(&self, now: Time) -> Round {
        let mut round = Round::default();
        let mut ended: Vec<JobId> = self.jobs().filter(|job| self.end(*job) == Some(now)).collect();
        ended.sort_by_key(|job| self.ranks[job.index()]);
        round.ended = ended.into_iter().map(|job| Ended { job, how: EndHow::Done }).collect();
        round.overdue = self.jobs().filter(|job| self.overdue(*job) == Some(now)).collect();
        // A second round of an instant has nothing new but ends.
        let new = |at: Time| at == now && now > self.now;
        for (_, change) in self.script.changes.iter().filter(|(at, _)| new(*at)) {
            self.change(*change, &mut round);
        }
        let coming = self.jobs().zip(&self.script.jobs).filter(|(_, naive)| new(naive.request.submit));
        let submission = |(job, naive): (JobId, &miserly_oracle::NaiveJob)| Submission {
            job,
            request: naive.request.clone(),
        };
        round.submitted = coming.map(submission).collect();
        if self.away && !round.is_empty() {
            round.fault.get_or_insert(Fault::Away);
        }
        round
    }

    /// Returns the effect of a change just before it happens.
    fn change(&self, change: NaiveChange, round: &mut Round) {
        let handle = |job: usize| JobId(u32::try_from(job).unwrap());
        let waits = |job: JobId| {
            self.ledger().get(job).is_some_and(|entry| entry.state == State::Waiting)
                && !round.withdrawn.contains(&job)
                && round.ended.iter().all(|ended| ended.job != job)
        };
        match change {
            NaiveChange::Withdraw(job) => {
                let job = handle(job);
                round.withdrawn.extend(waits(job).then_some(job));
                let withdrawn = &round.withdrawn;
                round.amended.retain(|amendment| !withdrawn.contains(&amendment.job));
            }
            NaiveChange::Begin(job, begin) => {
                let job = Some(handle(job)).filter(|job| waits(*job));
                round.amended.extend(job.map(|job| Amendment { job, change: Change::Begin(begin) }));
            }
            NaiveChange::Estimate(job, estimate) => {
                let job = handle(job);
                let ends = round.ended.iter().any(|ended| ended.job == job);
                let there = self.ledger().get(job).is_some() && !round.withdrawn.contains(&job);
                let change = Change::Estimate(estimate);
                round.amended.extend((there && !ends).then_some(Amendment { job, change }));
            }
            NaiveChange::Request(job, demand, estimate) => {
                let job = handle(job);
                // A job that ran ahead of its start keeps its request.
                if !waits(job) || !self.ledger().entry(job).is_untouched() {
                    return;
                }
                // A change before it in the same round stays.
                let mut request = self.ledger().entry(job).request.clone();
                for amendment in round.amended.iter().filter(|amendment| amendment.job == job) {
                    match &amendment.change {
                        Change::Begin(begin) => request.constraints.begin = *begin,
                        Change::Request { request: before, .. } => request = (**before).clone(),
                        Change::Sizes(sizes) => request.sizes = Some(*sizes),
                        Change::Estimate(_) => {}
                    }
                }
                (request.demand, request.estimate) = (demand, estimate);
                let change = Change::Request { request: Box::new(request), keeps_promise: false };
                round.amended.push(Amendment { job, change });
            }
            NaiveChange::Capacity(capacity) => round.fault = Some(Fault::Capacity { queue: 0, capacity }),
        }
    }
}

/// How much there is then, if no more than `capacity` is left.
pub(crate) fn there_is(machine: &Machine, at: Time) -> Resources {
    machine.calendar().unwrap().at(at).least(&machine.capacity())
}

/// Returns whether a job waits at its promised start because an overdue one is in its way.
///
/// There is no wake-up for such a start, so its window is moved in the next round of its queue. A
/// round that only parks opportunistic jobs does not count.
pub(crate) fn is_blocked(now: Time, ledger: &Ledger) -> bool {
    let is_overdue =
        |entry: &Entry| matches!(entry.state, State::Running { expected: Expected::Overdue { .. }, .. });
    let is_due = |entry: &Entry| entry.promise.is_some_and(|promise| promise.best <= now);
    ledger.running().any(|job| is_overdue(ledger.entry(job)))
        && ledger.waiting().any(|job| is_due(ledger.entry(job)))
}
