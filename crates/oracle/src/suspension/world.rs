//! The event loop, and the state of every job.

use miserly_core::{EventOrder, Machine, Span, Time};

use crate::NaiveJob;
use crate::order::arrival;

use super::life::NaiveLife;
use super::{NaiveRule, NaiveSuspension};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Future,
    Waiting,
    Running,
    Suspended,
    Over,
}

/// The state of a job.
pub(super) struct Standing {
    pub(super) state: State,
    /// Its working time by `works_from`.
    ran: Span,
    /// The beginning of its present work. It is swapped in until then.
    pub(super) works_from: Time,
    /// Its present or last processors.
    pub(super) pes: Vec<bool>,
    /// The number of jobs that started before it.
    rank: usize,
    /// Its expected end, from the information of a policy.
    pub(super) expected: Time,
    /// Whether the job was reported as overdue.
    noticed: bool,
    /// Whether it ends now, as expected. Its resources then count as free.
    pub(super) gone: bool,
    /// The end of its swap-out.
    pub(super) writes_until: Option<Time>,
    /// Whether it was swapped out. It then holds no resources and must be swapped in.
    pub(super) out: bool,
    /// The job for which it was last suspended.
    pub(super) suspended_for: Option<usize>,
    /// Its claim: the future processors, and the instant at which the swap-outs for it are
    /// complete.
    pub(super) claim: Option<(Time, Vec<bool>)>,
    pub(super) life: NaiveLife,
}

/// The state of the run. Jobs are identified by their positions in `jobs`.
pub(super) struct World<'a> {
    pub(super) machine: &'a Machine,
    pub(super) jobs: &'a [NaiveJob],
    pub(super) rules: &'a NaiveSuspension,
    pub(super) now: Time,
    pub(super) standing: Vec<Standing>,
    /// The slowdowns of the ended jobs, each with its category.
    pub(super) slowdowns: Vec<(usize, u128)>,
    /// The new jobs, for immediate service.
    pub(super) new: Vec<usize>,
    wake: Option<Time>,
}

impl<'a> World<'a> {
    pub(super) fn new(machine: &'a Machine, jobs: &'a [NaiveJob], rules: &'a NaiveSuspension) -> World<'a> {
        let standing = |_: &NaiveJob| Standing {
            state: State::Future,
            ran: Span::ZERO,
            works_from: Time::ZERO,
            pes: vec![],
            rank: 0,
            expected: Time::ZERO,
            noticed: false,
            gone: false,
            writes_until: None,
            out: false,
            suspended_for: None,
            claim: None,
            life: NaiveLife::default(),
        };
        let standing = jobs.iter().map(standing).collect();
        World { machine, jobs, rules, now: Time::ZERO, standing, slowdowns: vec![], new: vec![], wake: None }
    }

    /// Runs to the end. Ends that a round causes at its own instant form the next round.
    pub(super) fn run(mut self, event_order: EventOrder) -> Vec<NaiveLife> {
        while let Some(now) = self.next_instant() {
            self.now = now;
            match event_order {
                EventOrder::Batched => self.batch(),
                EventOrder::Sequential => self.sequential(),
            }
        }
        assert!(self.standing.iter().all(|job| job.state == State::Over), "some jobs never end");
        self.standing.into_iter().map(|job| job.life).collect()
    }

    fn next_instant(&self) -> Option<Time> {
        let submits = self.those(State::Future).into_iter().map(|job| self.jobs[job].request.submit);
        let ends = self.those(State::Running).into_iter().map(|job| self.end_of(job));
        let overdue = self.those(State::Running).into_iter().filter(|&job| self.will_be_overdue(job));
        let overdue = overdue.map(|job| self.standing[job].expected);
        submits.chain(ends).chain(overdue).chain(self.wake).min()
    }

    /// Handles all events, then runs one pass.
    fn batch(&mut self) {
        let (ended, submitted) = (self.ending(), self.coming());
        for job in ended {
            let life = self.standing[job].life.clone();
            self.end(job, life);
        }
        self.notice();
        for job in submitted {
            self.submit(job);
        }
        self.pass();
    }

    /// Handles one event at a time, each followed by a pass.
    fn sequential(&mut self) {
        let (ended, submitted) = (self.ending(), self.coming());
        let timer = self.wake == Some(self.now);
        // A pass of this round has no visible effect on a job that ends in the round.
        let lives: Vec<NaiveLife> = ended.iter().map(|&job| self.standing[job].life.clone()).collect();
        for &job in &ended {
            self.standing[job].gone = self.standing[job].expected == self.now;
        }
        if self.notice() {
            self.pass();
        }
        for job in submitted {
            self.submit(job);
            self.pass();
        }
        for (job, life) in ended.into_iter().zip(lives) {
            self.end(job, life);
            self.pass();
        }
        if timer {
            self.pass();
        }
    }

    /// Returns the jobs that end now, in the order of the starts.
    fn ending(&self) -> Vec<usize> {
        let mut ending = self.those(State::Running);
        ending.retain(|&job| self.end_of(job) == self.now);
        ending.sort_by_key(|&job| self.standing[job].rank);
        ending
    }

    fn coming(&self) -> Vec<usize> {
        let mut coming = self.those(State::Future);
        coming.retain(|&job| self.jobs[job].request.submit == self.now);
        coming.sort_by_key(|&job| arrival(job, self.jobs));
        coming
    }

    fn submit(&mut self, job: usize) {
        self.standing[job].state = State::Waiting;
        self.new.push(job);
    }

    /// Ends a job, even if it was suspended at this instant.
    fn end(&mut self, job: usize, life: NaiveLife) {
        let now = self.now;
        self.slowdowns.push((self.category(job), self.slowdown_at_end(job)));
        let standing = &mut self.standing[job];
        (standing.state, standing.writes_until, standing.claim) = (State::Over, None, None);
        standing.life = life;
        standing.life.leave(now);
        standing.life.end = Some(now);
    }

    /// Reports overdue jobs and returns whether there are any.
    fn notice(&mut self) -> bool {
        let mut overdue = self.those(State::Running);
        overdue.retain(|&job| self.will_be_overdue(job) && self.standing[job].expected == self.now);
        for &job in &overdue {
            self.standing[job].noticed = true;
        }
        !overdue.is_empty()
    }

    fn pass(&mut self) {
        self.vacate();
        self.serve_claims();
        match self.rules.rule {
            NaiveRule::Slices { slice } => self.pass_with_slices(slice),
            NaiveRule::Xfactor { .. } | NaiveRule::Remaining => self.pass_by_rank(),
        }
        self.wake = self.next_wake();
    }

    /// Returns the end of the next transfer or the next multiple of the period. The latter counts
    /// even without an effect.
    fn next_wake(&self) -> Option<Time> {
        let written = self.standing.iter().filter_map(|job| job.writes_until);
        let read = self.those(State::Running).into_iter().map(|job| self.standing[job].works_from);
        let read = read.filter(|at| *at > self.now);
        match self.rules.rule {
            NaiveRule::Slices { .. } => written.min(),
            NaiveRule::Remaining => written.chain(read).min(),
            NaiveRule::Xfactor { period, .. } => {
                let multiple = |period: Span| {
                    let periods = self.now.ticks() / period.ticks() + 1;
                    Time::from_ticks(periods * period.ticks())
                };
                let period = period.filter(|_| !self.idle().is_empty());
                written.chain(read).chain(period.map(multiple)).min()
            }
        }
    }
}

/// Queries of the state.
impl World<'_> {
    /// Returns the jobs in this state, in the order of their admission.
    pub(super) fn those(&self, state: State) -> Vec<usize> {
        let mut those: Vec<usize> = (0..self.jobs.len()).collect();
        those.retain(|&job| self.standing[job].state == state);
        those.sort_by_key(|&job| arrival(job, self.jobs));
        those
    }

    /// Returns the waiting and suspended jobs, except those with a claim, in the order of their
    /// admission.
    pub(super) fn idle(&self) -> Vec<usize> {
        let mut idle = self.those(State::Waiting);
        idle.extend(self.those(State::Suspended));
        idle.retain(|&job| self.standing[job].claim.is_none() && self.standing[job].writes_until.is_none());
        idle.sort_by_key(|&job| arrival(job, self.jobs));
        idle
    }

    /// Returns the working time of a job.
    pub(super) fn ran(&self, job: usize) -> Span {
        let standing = &self.standing[job];
        let working = standing.state == State::Running;
        let since = (self.now - standing.works_from).max(Span::ZERO);
        if working { standing.ran + since } else { standing.ran }
    }

    /// Returns the time since its submission in which it did not work.
    pub(super) fn waited(&self, job: usize) -> Span {
        self.now - self.jobs[job].request.submit - self.ran(job)
    }

    /// Returns the remaining time, from the information of a policy. It is at least one tick.
    pub(super) fn left(&self, job: usize) -> Span {
        (self.jobs[job].request.planned() - self.ran(job)).max(Span::TICK)
    }

    /// Returns its actual end without further suspensions.
    fn end_of(&self, job: usize) -> Time {
        self.standing[job].works_from + (self.jobs[job].runtime.0 - self.standing[job].ran)
    }

    fn will_be_overdue(&self, job: usize) -> bool {
        !self.standing[job].noticed && self.standing[job].expected < self.end_of(job)
    }

    /// Lets it work from then on, on these processors.
    pub(super) fn goes_on(&mut self, job: usize, from: Time, pes: Vec<bool>) {
        let (now, expected) = (self.now, from + self.left(job));
        let rank = self.standing.iter().filter(|other| other.life.start.is_some()).count();
        let standing = &mut self.standing[job];
        if standing.life.start.is_none() {
            standing.rank = rank;
        }
        standing.life.come(now, &pes);
        (standing.state, standing.works_from, standing.pes) = (State::Running, from, pes);
        (standing.expected, standing.noticed, standing.gone) = (expected, false, false);
        (standing.out, standing.claim) = (false, None);
    }

    /// Stops its work.
    pub(super) fn stops(&mut self, job: usize) {
        let (now, ran) = (self.now, self.ran(job));
        let standing = &mut self.standing[job];
        (standing.state, standing.ran) = (State::Suspended, ran);
        standing.life.suspended.push(now);
    }
}
