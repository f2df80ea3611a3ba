//! Preemption by suspension, as Slurm's `PreemptMode=SUSPEND,GANG` has it between partitions.

use std::borrow::Cow;
use std::cmp::Reverse;

use fixedbitset::FixedBitSet;
use miserly_core::{
    Context, Host, JobId, Kind, Ledger, Placement, Request, Resources, Share, SlotId, Span, State, Time,
    Violation,
};

use super::SlurmLike;
use super::plan::CyclePlan;
use super::preemption::Mode;
use crate::shared::{Waiting, head_start_reason};

/// The room of the hosts for a job.
#[derive(Clone)]
pub(super) struct Room {
    /// What running jobs leave.
    beside_running: Vec<Resources>,
    /// The processors of suspended jobs on each host; none without such jobs. They may be more than the running jobs leave.
    suspended: Vec<u64>,
}

impl Room {
    /// Returns the room for a job that may use the processors of some jobs.
    pub(super) fn new(ledger: &Ledger, lends: impl Fn(&Request) -> bool) -> Room {
        let mut beside_running = ledger.free_hosts().each().to_vec();
        let shares = |job: JobId| ledger.entry(job).placement().into_iter().flat_map(Placement::shares);
        let is_lent = |job: &JobId| {
            let entry = ledger.entry(*job);
            matches!(entry.state, State::Running { released: false, .. }) && lends(&entry.request)
        };
        for share in ledger.running().filter(is_lent).flat_map(shares) {
            let room = &mut beside_running[share.host.index()];
            *room = room.with(Kind::Cpus, room.get(Kind::Cpus) + share.amount.get(Kind::Cpus));
        }
        let mut suspended = vec![];
        if ledger.suspended_count() > 0 {
            suspended.resize(beside_running.len(), 0);
            for share in ledger.suspended().filter(|job| !lends(ledger.request(*job))).flat_map(shares) {
                suspended[share.host.index()] += share.amount.get(Kind::Cpus);
            }
        }
        Room { beside_running, suspended }
    }

    /// Takes a running job off its hosts.
    pub(super) fn leave(&mut self, placement: &Placement) {
        for share in placement.shares() {
            let room = &mut self.beside_running[share.host.index()];
            *room = room.plus(&share.amount);
        }
    }

    /// Returns the free resources of each host. Suspended jobs count beside the running ones, as far as the host has their processors.
    pub(super) fn free(&self) -> Cow<'_, [Resources]> {
        if self.suspended.is_empty() {
            return Cow::Borrowed(&self.beside_running);
        }
        let beside = |(room, suspended): (&Resources, &u64)| {
            room.with(Kind::Cpus, room.get(Kind::Cpus).saturating_sub(*suspended))
        };
        self.beside_running.iter().zip(&self.suspended).map(beside).collect()
    }
}

/// Takes what suspended jobs hold beside the running ones off the free resources of the hosts. Returns their ends by their limits, as if
/// they were not suspended, and what becomes free then.
pub(super) fn suspended_until(now: Time, ledger: &Ledger, free: &mut [Resources]) -> Vec<(Time, Placement)> {
    let leave = |job: JobId| {
        let entry = ledger.entry(job);
        let end = entry.progress.at + entry.left(now, entry.request.procs());
        let share = |share: &Share| {
            let room = &mut free[share.host.index()];
            let cpus = room.get(Kind::Cpus).min(share.amount.get(Kind::Cpus));
            *room = room.with(Kind::Cpus, room.get(Kind::Cpus) - cpus);
            Share { amount: share.amount.with(Kind::Cpus, cpus), ..share.clone() }
        };
        let shares = entry.placement()?.shares().iter().map(share).collect();
        Some((end.max(now + Span::TICK), Placement::across(SlotId(0), shares)))
    };
    ledger.suspended().filter_map(leave).collect()
}

impl<P: CyclePlan> SlurmLike<P> {
    /// Starts a job on the open hosts, on processors of jobs that it suspends. Returns whether it did.
    ///
    /// It uses the processors of the lowest queues only, if it can.
    pub(super) fn start_over(
        &mut self,
        context: &mut Context<'_>,
        job: &Waiting,
        open: &FixedBitSet,
    ) -> Result<bool, Violation> {
        let request = context.ledger().request(job.job).clone();
        let rules = &self.rules.preemption;
        if !rules.admit(&request, true) {
            return Ok(false);
        }
        let place_over = |below: usize| {
            let lends = |victim: &Request| self.level(victim) < below && rules.suspend(&request, victim);
            self.plan.place_in(context, job, open, &Room::new(context.ledger(), lends).free())
        };
        let levels = (1..=self.level(&request)).rev();
        let Some(place) = levels.map_while(place_over).last() else { return Ok(false) };
        let reason = head_start_reason(context, job.job);
        let placement = P::placement(context.ledger(), job.job, place.clone());
        self.suspend_for(context, Some((job, placement)))?;
        self.start(context, job, place, reason)?;
        self.plan.jobs_left(context.now(), context.ledger());
        // A job that it suspended may have left processors of others idle.
        self.share_processors(context)?;
        Ok(true)
    }

    /// Resumes the suspended jobs whose processors are free again.
    pub(super) fn share_processors(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        if context.ledger().suspended_count() == 0 {
            return Ok(());
        }
        for job in self.suspend_for(context, None)? {
            context.resume(job)?;
        }
        self.plan.jobs_left(context.now(), context.ledger());
        Ok(())
    }

    /// Suspends the running jobs whose processors jobs of higher queues use, with one that starts now. Returns the suspended jobs that fit
    /// beside the others.
    fn suspend_for(
        &self,
        context: &mut Context<'_>,
        new: Option<(&Waiting, Placement)>,
    ) -> Result<Vec<JobId>, Violation> {
        let (now, ledger) = (context.now(), context.ledger());
        let running = ledger.running().map(|job| (false, job));
        let holding = running.chain(ledger.suspended().map(|job| (true, job)));
        let rules = &self.rules.preemption;
        let by_whom = new.as_ref().map(|(job, _)| ledger.request(job.job));
        let may_leave = |request: &Request| match by_whom {
            Some(by) => rules.suspend(by, request),
            None => rules.mode(request) == Mode::Suspend,
        };
        let turn = |(is_suspended, job): (bool, JobId)| {
            let entry = ledger.entry(job);
            let (State::Running { start, placement, released: false, .. }
            | State::Suspended { start, placement, .. }) = &entry.state
            else {
                return None;
            };
            // All others keep their processors.
            let is_in_turn = is_suspended || may_leave(&entry.request);
            let level = Reverse(self.level(&entry.request));
            let key = (is_in_turn, level, is_suspended, *start, entry.admitted);
            Some((key, Some(job), placement.clone()))
        };
        let mut turns: Vec<_> = holding.filter_map(turn).collect();
        let by = new.as_ref().map_or(u64::MAX, |(job, _)| ledger.entry(job.job).admitted);
        let until = new.as_ref().map_or(Time::MAX, |(job, _)| now + job.span);
        turns.extend(new.map(|(job, placement)| {
            let key = (true, Reverse(self.level(ledger.request(job.job))), false, now, by);
            (key, None, placement)
        }));
        turns.sort_by_key(|(key, ..)| *key);
        let capacity = |host: &Host| host.capacity.get(Kind::Cpus);
        let mut room: Vec<u64> = ledger.machine().hosts().iter().map(capacity).collect();
        let (mut leave, mut resume) = (vec![], vec![]);
        for ((_, _, is_suspended, ..), job, placement) in &turns {
            let each =
                || placement.shares().iter().map(|share| (share.host.index(), share.amount.get(Kind::Cpus)));
            let fits = each().all(|(host, cpus)| cpus <= room[host]);
            if fits {
                each().for_each(|(host, cpus)| room[host] -= cpus);
            }
            match job {
                Some(job) if fits && *is_suspended => resume.push(*job),
                Some(job) if !fits && !is_suspended => leave.push(*job),
                _ => {}
            }
        }
        for job in leave {
            context.suspend(job, until, by)?;
        }
        Ok(resume)
    }

    /// Returns the level of the queue of a request: above those of all queues whose jobs its own preempt.
    fn level(&self, request: &Request) -> usize {
        request.queue.and_then(|queue| self.levels.get(&queue)).copied().unwrap_or(0)
    }
}
