//! Immediate service: a short quantum for each arriving job, around any backfill policy.

use std::collections::BTreeSet;

use miserly_core::{
    Context, Event, HostId, JobId, Kind, Ledger, Persistent, Placement, Policy, Resources, Span, State, Time,
    Violation,
};

use super::victims::{Chance, chances};
use crate::backfill::Backfilling;
use crate::shared::Key;

/// The rules of immediate service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// The length of the quantum.
    pub quantum: Span,
    /// The most memory of a job in its quantum, kB.
    pub memory: u64,
    /// The uninterrupted run time after which a job may be preempted. `None`: no job is preempted.
    pub preempt_after: Option<Span>,
    /// Whether a quantum is given only if no promised start moves. Then the promises of the inner
    /// policy are given.
    pub keep_promises: bool,
    /// Whether the work done in a quantum is kept.
    pub keep_work: bool,
}

/// A quantum for every job on its requested processors, around a policy without quanta (Chiang and
/// Vernon §2.4, and §4.3 for the variant `soon`).
///
/// # Immediate
/// A job that arrives and cannot start gets its quantum at once, with no more memory than the
/// quantum has. For that, jobs are preempted on the host where the fewest processors stay idle
/// (`victims::chances`). The victims keep all but their processors. They resume when the quantum's
/// job has ended, or else at the quantum's end. With `keep_promises` they resume only at the
/// quantum's end, because promises count on the processors until then. A quantum that would delay
/// their resumption is not given. A running job that exceeds its expected end can delay it. If
/// there is no suitable host, the job waits.
///
/// # Soon
/// Without preemption, a job gets its quantum as soon as a host has sufficient free resources. The
/// waiting jobs are served in order of arrival. Jobs that do not fit are skipped.
///
/// # The quantum's end
/// A job is requeued if it has not ended then, or if it uses more memory than the quantum has. Its
/// work is lost, or kept. It gets no second quantum. A job gets none at all if its request forbids
/// it ([`Constraints::no_quantum`](miserly_core::Constraints)).
///
/// # The inner policy
/// Quanta and preemptions reach the inner policy as changes of the jobs' allocations
/// ([`Event::Changed`]). It plans with the quantum's processors taken, and with a victim's from the
/// end of the quantum on. Without `keep_promises` its promises are withheld, because they cannot be
/// kept. With it they are given, and no quantum may move a promised start.
///
/// A job that arrives and cannot start costs O(jobs that run + hosts).
pub struct Immediate {
    name: &'static str,
    inner: Box<dyn Backfilling>,
    service: Service,
    /// Jobs that wait for a quantum, in the order of arrival.
    expecting: BTreeSet<(Key, JobId)>,
    /// The running quanta, by their ends.
    quanta: BTreeSet<(Time, JobId)>,
    /// The preempted jobs, in the order of their planned resumption.
    preempted: BTreeSet<(Time, u64, JobId)>,
}

impl Immediate {
    /// Returns this service around that policy.
    pub fn new(name: &'static str, inner: Box<dyn Backfilling>, service: Service) -> Immediate {
        let (expecting, quanta, preempted) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        Immediate { name, inner, service, expecting, quanta, preempted }
    }

    /// Requeues the jobs whose quantum is over.
    fn end_quanta(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let over: Vec<_> =
            self.quanta.iter().copied().take_while(|(until, _)| *until <= context.now()).collect();
        for (until, job) in over {
            // The job ends by itself at this instant. Its end event follows.
            if matches!(context.ledger().entry(job).state, State::Running { released: true, .. }) {
                continue;
            }
            self.quanta.remove(&(until, job));
            context.requeue(job, self.service.keep_work)?;
            self.inner.event(context.now(), Event::Changed(job), context.ledger());
        }
        Ok(())
    }

    /// Resumes preempted jobs whose quantum is over, if their processors are free.
    fn resume(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let now = context.now();
        let in_quantum: BTreeSet<u64> =
            self.quanta.iter().map(|(_, job)| context.ledger().entry(*job).admitted).collect();
        for (until, admitted, job) in self.preempted.clone() {
            let State::Suspended { by, ref placement, .. } = context.ledger().entry(job).state else {
                continue;
            };
            // Promises count on the processors until then.
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

    /// Gives quanta to the jobs that still wait for one. Returns whether any job got one.
    fn serve(&mut self, context: &mut Context<'_>) -> Result<bool, Violation> {
        let mut any = false;
        for (key, job) in self.expecting.clone() {
            let waits = context.ledger().get(job).is_some_and(|entry| entry.state == State::Waiting);
            let served = waits && self.serve_one(context, job)?;
            // Immediate service is given at once or never.
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
        // Processors that a victim releases may be lost, and are then not free.
        if context.ledger().request(job).constraints.no_quantum
            || context.ledger().missing() != Resources::NONE
        {
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

    /// Returns the resources of a job in its quantum.
    fn need(&self, ledger: &Ledger, job: JobId) -> Resources {
        let demand = ledger.machine().amount(ledger.request(job));
        demand.with(Kind::Memory, demand.get(Kind::Memory).min(self.service.memory))
    }

    /// Returns whether all victims can resume on time and, with `keep_promises`, all promised
    /// starts stay.
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

    fn gives_quanta(&self) -> bool {
        true
    }

    fn usage_half_life(&self) -> Option<Span> {
        self.inner.usage_half_life()
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
            // Jobs may fit on the resources that the quanta leave. No work is left for a later
            // pass.
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
