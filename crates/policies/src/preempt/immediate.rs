//! Immediate service: a short quantum for whoever comes, around any backfill policy.

use std::collections::BTreeSet;

use miserly_core::{
    Context, Event, HostId, JobId, Kind, Ledger, Persistent, Placement, Policy, Resources, Span, State, Time,
    Violation,
};

use super::victims::{Chance, chances};
use crate::backfill::Backfilling;
use crate::shared::Key;

/// How a quantum is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// How long it is.
    pub quantum: Span,
    /// The most memory that a job has in it, kB.
    pub memory: u64,
    /// A job is preempted for it only if it has run so long without interruption; nobody is, if there is no such time.
    pub preempt_after: Option<Span>,
    /// It is given only if no promised start moves, and then what the policy within promises is promised.
    pub keep_promises: bool,
    /// What a job has done in it stays done.
    pub keep_work: bool,
}

/// Gives every job a quantum on the processors that it asks for, around a policy that knows of none (Chiang and Vernon
/// §2.4, and §4.3 for the variant `soon`).
///
/// # Immediate
/// A job that comes and cannot start gets its quantum at once, with no more memory than the quantum has. For that, jobs are
/// preempted on the host where it leaves the fewest processors idle (`victims::chances`). They keep all but their processors, and have
/// these back when the quantum is over: when its job has ended, or else at its end (with `keep_promises` then only, because promises
/// count on what they left). No other quantum is given that would keep them from it; a job that was to end by then, and does not, can. If there is no such host, the job waits.
///
/// # Soon
/// Without preemption, a job gets its quantum as soon as a host has room for it. Those who wait for it are served in the
/// order in which they came; who does not fit is passed.
///
/// # The quantum's end
/// A job that has not ended then, or that uses more memory than it was given, is put back into the queue. What it has done
/// is lost, or kept. It gets no second quantum.
///
/// # The policy within
/// It hears of a quantum and of a victim as of changes of what jobs hold ([`Event::Changed`]); it plans with the quantum's
/// processors taken, and with a victim's from the end of the quantum on. It cannot keep promises: they are not told. With
/// `keep_promises` they are, and a quantum is given only where no promised start would have to move.
///
/// A job that comes and cannot start costs O(jobs that run + hosts).
pub struct Immediate {
    name: &'static str,
    inner: Box<dyn Backfilling>,
    service: Service,
    /// Jobs that are to have a quantum, in the order in which they came.
    expecting: BTreeSet<(Key, JobId)>,
    /// The quanta that run, by their ends.
    quanta: BTreeSet<(Time, JobId)>,
    /// The preempted jobs, in the order in which they are to have their processors back.
    preempted: BTreeSet<(Time, u64, JobId)>,
}

impl Immediate {
    /// This service around that policy.
    pub fn new(name: &'static str, inner: Box<dyn Backfilling>, service: Service) -> Immediate {
        let (expecting, quanta, preempted) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        Immediate { name, inner, service, expecting, quanta, preempted }
    }

    /// Takes jobs off the machine whose quantum is over.
    fn end_quanta(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let over: Vec<_> =
            self.quanta.iter().copied().take_while(|(until, _)| *until <= context.now()).collect();
        for (until, job) in over {
            // It ends at this instant by itself: that is still to be told.
            if matches!(context.ledger().entry(job).state, State::Running { released: true, .. }) {
                continue;
            }
            self.quanta.remove(&(until, job));
            context.requeue(job, self.service.keep_work)?;
            self.inner.event(context.now(), Event::Changed(job), context.ledger());
        }
        Ok(())
    }

    /// Lets preempted jobs run on whose quantum is over, as far as their processors are free.
    fn resume(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let now = context.now();
        let in_quantum: BTreeSet<u64> =
            self.quanta.iter().map(|(_, job)| context.ledger().entry(*job).admitted).collect();
        for (until, admitted, job) in self.preempted.clone() {
            let State::Suspended { by, ref placement, .. } = context.ledger().entry(job).state else {
                continue;
            };
            // What was promised counts on the processors until then.
            let early = !self.service.keep_promises && !in_quantum.contains(&by);
            let over = until <= now || early;
            let free = context.ledger().free_hosts();
            let fits =
                placement.shares().iter().all(|s| s.amount.cpus_count() <= free.on(s.host).cpus_count());
            if over && fits {
                context.resume(job)?;
                self.preempted.remove(&(until, admitted, job));
                self.inner.event(now, Event::Changed(job), context.ledger());
            }
        }
        Ok(())
    }

    /// Gives quanta to those who expect one and still wait; whether anybody got one.
    fn serve(&mut self, context: &mut Context<'_>) -> Result<bool, Violation> {
        let mut any = false;
        for (key, job) in self.expecting.clone() {
            let waits = context.ledger().get(job).is_some_and(|entry| entry.state == State::Waiting);
            let served = waits && self.serve_one(context, job)?;
            // Immediate service is now or not at all.
            if served || !waits || self.service.preempt_after.is_some() {
                self.expecting.remove(&(key, job));
            }
            any |= served;
        }
        Ok(any)
    }

    fn pass_within(&mut self, context: &mut Context<'_>) -> Result<Option<Time>, Violation> {
        let mut within = context.for_inner_policy(self.service.keep_promises);
        self.inner.pass(&mut within)?;
        Ok(within.wake())
    }

    fn serve_one(&mut self, context: &mut Context<'_>, job: JobId) -> Result<bool, Violation> {
        // What a victim gives back is not free then.
        if context.ledger().missing() != Resources::NONE {
            return Ok(false);
        }
        let (now, until) = (context.now(), context.now() + self.service.quantum);
        let need = self.need(context.ledger(), job);
        let Service { preempt_after, .. } = self.service;
        let after = preempt_after.unwrap_or(Span::MAX);
        let chances = match preempt_after {
            Some(_) => chances(context.ledger(), now, &need, after, true),
            None if need.cpus_count() > context.ledger().free_hosts().most_cpus() => vec![],
            None => chances(context.ledger(), now, &need, after, false),
        };
        let ledger = context.ledger();
        let chance =
            chances.into_iter().find(|chance| self.moves_nobody(ledger, now, until, job, &need, chance));
        let Some(chance) = chance else { return Ok(false) };
        let by = context.ledger().entry(job).admitted;
        for victim in chance.victims {
            context.suspend(victim, until, by)?;
            self.preempted.insert((until, context.ledger().entry(victim).admitted, victim));
            self.inner.event(now, Event::Changed(victim), context.ledger());
        }
        context.start_for_quantum(job, Placement::on(chance.host, need), until)?;
        context.set_job_state(job, &Served(true))?;
        self.quanta.insert((until, job));
        self.inner.event(now, Event::Changed(job), context.ledger());
        Ok(true)
    }

    /// What a job has in its quantum.
    fn need(&self, ledger: &Ledger, job: JobId) -> Resources {
        let demand = ledger.machine().demand(ledger.request(job));
        demand.with(Kind::Memory, demand.get(Kind::Memory).min(self.service.memory))
    }

    /// Whether those who are preempted already have their processors back when they are to have them, and, if promises are
    /// kept, every promised start can stay where it is.
    fn moves_nobody(
        &self,
        ledger: &Ledger,
        now: Time,
        until: Time,
        job: JobId,
        need: &Resources,
        chance: &Chance,
    ) -> bool {
        let keep = self.service.keep_promises;
        if !keep && ledger.suspended_count() == 0 {
            return true;
        }
        let own = ledger.entry(job).promise;
        if keep && own.is_some_and(|promise| promise.best < until) {
            return false;
        }
        let mut trial = self.inner.trial(chance.host, keep);
        for victim in &chance.victims {
            trial.postpone(now, until, *victim, ledger);
        }
        trial.take(now, until - now, &Placement::on(chance.host, *need));
        trial.is_possible()
    }

    fn wake(&self, context: &mut Context<'_>, within: Option<Time>) -> Result<(), Violation> {
        let ends = self.quanta.iter().map(|(until, _)| *until);
        let next = ends
            .chain(self.preempted.iter().map(|(until, ..)| *until))
            .filter(|at| *at > context.now())
            .min();
        next.into_iter().chain(within).try_for_each(|at| context.wake_at(at))
    }
}

impl Policy for Immediate {
    fn name(&self) -> &str {
        self.name
    }

    fn kept_hosts(&self, ledger: &Ledger) -> Vec<HostId> {
        self.inner.kept_hosts(ledger)
    }

    fn rebuild(&mut self, now: Time, ledger: &Ledger) {
        self.inner.rebuild(now, ledger);
        self.expecting.clear();
        if self.service.preempt_after.is_none() {
            let unserved = ledger.waiting().filter(|job| !ledger.entry(*job).policy_state.get::<Served>().0);
            self.expecting = unserved.map(|job| (Key::arrival(ledger.entry(job)), job)).collect();
        }
        let quantum = |job: JobId| match ledger.entry(job).state {
            State::Running { quantum: Some(until), .. } => Some((until, job)),
            _ => None,
        };
        self.quanta = ledger.running().filter_map(quantum).collect();
        let preempted = |job: JobId| match ledger.entry(job).state {
            State::Suspended { until, .. } => Some((until, ledger.entry(job).admitted, job)),
            _ => None,
        };
        self.preempted = ledger.suspended().filter_map(preempted).collect();
    }

    fn event(&mut self, now: Time, event: Event, ledger: &Ledger) {
        match event {
            Event::Submitted(job) => {
                self.expecting.insert((Key::arrival(ledger.entry(job)), job));
            }
            Event::Ended(ended) => {
                let entry = ledger.entry(ended.job);
                self.expecting.remove(&(Key::arrival(entry), ended.job));
                match entry.state {
                    State::Running { quantum: Some(until), .. } => {
                        self.quanta.remove(&(until, ended.job));
                    }
                    State::Suspended { until, .. } => {
                        self.preempted.remove(&(until, entry.admitted, ended.job));
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        self.inner.event(now, event, ledger);
    }

    fn pass(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        self.end_quanta(context)?;
        self.resume(context)?;
        let mut wake = self.pass_within(context)?;
        if self.serve(context)? {
            // What the quanta leave is for whoever fits there; and nothing is left to be done at a later pass.
            wake = self.pass_within(context)?;
        }
        self.wake(context, wake)
    }
}

/// Whether a job has had its quantum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Served(bool);

impl Persistent for Served {
    const NAME: &'static str = "immediate/served";
    const VERSION: u32 = 1;

    fn encode(&self, words: &mut Vec<u64>) {
        words.push(self.0.into());
    }

    fn decode(_version: u32, words: &[u64]) -> Option<Served> {
        Some(Served(words == [1]))
    }
}
