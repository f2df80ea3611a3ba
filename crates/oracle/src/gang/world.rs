//! The event loop, and the places and the progress of all jobs.

use miserly_core::{EventOrder, Machine, Resources, Span, Time};

use super::fraction::Fraction;
use super::{NaiveGang, NaiveGangLife};
use crate::NaiveJob;
use crate::order::{arrival, sorted};

/// The machine and its jobs, each identified by its position in `jobs`.
pub(super) struct World<'a> {
    pub(super) procs: usize,
    capacity: Resources,
    pub(super) jobs: &'a [NaiveJob],
    pub(super) rules: &'a NaiveGang,
    pub(super) now: Time,
    future: Vec<usize>,
    pub(super) waiting: Vec<usize>,
    /// The running jobs, in the order of the starts.
    pub(super) running: Vec<Running>,
    /// The slots that are filled from the right.
    pub(super) from_right: Vec<usize>,
    lives: Vec<Option<NaiveGangLife>>,
}

/// A job in the matrix.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub(super) job: usize,
    pub(super) start: Time,
    pub(super) slot: usize,
    pub(super) pes: Vec<bool>,
    /// The number of its alternate slots.
    pub(super) further: usize,
    /// The processor-ticks done by `at`.
    done: Fraction,
    at: Time,
    pace: Fraction,
    noticed: bool,
    /// Whether it ends at this instant, as expected.
    pub(super) gone: bool,
}

fn ticks(span: Span) -> u128 {
    u128::from(span.ticks().max(0).unsigned_abs())
}

impl Running {
    pub(super) fn new(job: usize, now: Time, slot: usize, pes: Vec<bool>) -> Running {
        Running {
            job,
            start: now,
            slot,
            pes,
            further: 0,
            done: Fraction::whole(0),
            at: now,
            pace: Fraction::whole(1),
            noticed: false,
            gone: false,
        }
    }

    pub(super) fn size(&self) -> usize {
        self.pes.iter().filter(|mine| **mine).count()
    }

    fn speed(&self) -> Fraction {
        self.pace.times(Fraction::whole(self.size() as u128))
    }

    /// Adds the work done until now, and continues at this pace.
    pub(super) fn go_on(&mut self, now: Time, pace: Fraction) {
        let since = Fraction::whole(ticks(now - self.at));
        self.done = self.done.plus(since.times(self.speed()));
        (self.at, self.pace) = (self.at.max(now), pace);
    }

    /// Pauses the job for `cost` from now on.
    pub(super) fn rest(&mut self, now: Time, cost: Span) {
        self.go_on(now, self.pace);
        self.at = self.at.max(now + cost);
    }

    /// Returns the instant at which it has done the work of this length on its processors.
    fn when(&self, length: Span) -> Time {
        let work = Fraction::whole(ticks(length) * self.size() as u128);
        let left = work.less(self.done).ceil_div(self.speed());
        self.at + Span::from_ticks(i64::try_from(left).expect("an end"))
    }
}

impl<'a> World<'a> {
    pub(super) fn new(machine: &Machine, jobs: &'a [NaiveJob], rules: &'a NaiveGang) -> World<'a> {
        let capacity = machine.capacity();
        World {
            procs: usize::try_from(capacity.cpus_count().get()).expect("a small machine"),
            capacity,
            jobs,
            rules,
            now: Time::ZERO,
            future: (0..jobs.len()).collect(),
            waiting: vec![],
            running: vec![],
            from_right: vec![],
            lives: vec![None; jobs.len()],
        }
    }

    pub(super) fn run(mut self, event_order: EventOrder) -> Vec<NaiveGangLife> {
        while let Some(now) = self.next_instant() {
            self.now = now;
            match event_order {
                EventOrder::Batched => self.batch(),
                EventOrder::Sequential => self.sequential(),
            }
        }
        self.lives.into_iter().map(|life| life.expect("every job ends")).collect()
    }

    fn end_of(&self, running: &Running) -> Time {
        running.when(self.jobs[running.job].runtime.0)
    }

    fn expected_end_of(&self, running: &Running) -> Time {
        running.when(self.jobs[running.job].request.planned())
    }

    fn outlives(&self, running: &Running) -> bool {
        !running.noticed && self.expected_end_of(running) < self.end_of(running)
    }

    fn next_instant(&self) -> Option<Time> {
        let submits = self.future.iter().map(|job| self.jobs[*job].request.submit);
        let ends = self.running.iter().map(|running| self.end_of(running));
        let notices = self.running.iter().filter(|running| self.outlives(running));
        submits.chain(ends).chain(notices.map(|running| self.expected_end_of(running))).min()
    }

    fn take_submitted(&mut self) -> Vec<usize> {
        let due = |job: &usize| self.jobs[*job].request.submit == self.now;
        let (mut now, later): (Vec<usize>, Vec<usize>) = self.future.iter().copied().partition(due);
        self.future = later;
        now.sort_by_key(|job| arrival(*job, self.jobs));
        now
    }

    /// Returns the jobs that end now.
    fn ending(&self) -> Vec<usize> {
        let ended = self.running.iter().filter(|running| self.end_of(running) == self.now);
        ended.map(|running| running.job).collect()
    }

    /// Reports overdue jobs and returns whether there are any.
    fn notice(&mut self) -> bool {
        let late = |running: &Running| self.outlives(running) && self.expected_end_of(running) == self.now;
        let late: Vec<bool> = self.running.iter().map(late).collect();
        self.running.iter_mut().zip(&late).for_each(|(running, late)| running.noticed |= late);
        late.contains(&true)
    }

    fn batch(&mut self) {
        let ending = self.ending();
        self.notice();
        let submitted = self.take_submitted();
        let vacated: Vec<usize> = ending.iter().map(|job| self.end(*job)).collect();
        let moved = !vacated.is_empty() || !submitted.is_empty();
        self.waiting.extend(submitted);
        if moved {
            self.pass(&vacated);
        }
    }

    fn sequential(&mut self) {
        let ending = self.ending();
        let certain: Vec<bool> = self
            .running
            .iter()
            .map(|running| {
                ending.contains(&running.job) && !running.noticed && self.expected_end_of(running) == self.now
            })
            .collect();
        let pes = |job| self.running.iter().find(|running| running.job == job).map(|r| r.pes.clone());
        let were: Vec<Vec<bool>> = ending.iter().filter_map(|job| pes(*job)).collect();
        self.running.iter_mut().zip(certain).for_each(|(running, certain)| running.gone = certain);
        self.forget_unused();
        self.notice();
        for job in self.take_submitted() {
            self.waiting.push(job);
            self.pass(&[]);
        }
        for (job, pes) in ending.into_iter().zip(were) {
            let vacated = self.end(job);
            // A move at the instant of its end has no effect on the job.
            self.lives[job].iter_mut().for_each(|life| life.pes.clone_from(&pes));
            self.pass(&[vacated]);
        }
    }

    /// Removes a job and returns its slot.
    fn end(&mut self, job: usize) -> usize {
        let at = self.running.iter().position(|running| running.job == job).expect("it runs");
        let Running { start, slot, pes, .. } = self.running.remove(at);
        self.lives[job] = Some(NaiveGangLife { start, end: self.now, pes });
        self.forget_unused();
        slot
    }

    /// Resets the fill direction of unused slots.
    pub(super) fn forget_unused(&mut self) {
        let used = self.used();
        self.from_right.retain(|slot| used.contains(slot));
    }

    /// Returns the jobs that have places, in the order of their arrival.
    pub(super) fn residents(&self) -> Vec<&Running> {
        let mut all: Vec<&Running> = self.running.iter().filter(|running| !running.gone).collect();
        all.sort_by_key(|running| arrival(running.job, self.jobs));
        all
    }

    /// Returns the slots in which some job has a place, from the lowest on.
    pub(super) fn used(&self) -> Vec<usize> {
        let mut used: Vec<usize> = self.residents().iter().map(|running| running.slot).collect();
        used.sort_unstable();
        used.dedup();
        used
    }

    /// Returns the processors of a slot on which no job has a place.
    pub(super) fn open(&self, slot: usize) -> Vec<bool> {
        let mut open = vec![true; self.procs];
        for running in self.residents().into_iter().filter(|running| running.slot == slot) {
            for pe in (0..self.procs).filter(|pe| running.pes[*pe]) {
                assert!(open[pe], "processor {pe} has one job in a row");
                open[pe] = false;
            }
        }
        open
    }

    /// Returns the waiting jobs in queue order.
    pub(super) fn queue(&self) -> Vec<usize> {
        sorted(self.waiting.clone(), self.jobs, self.rules.order, self.now)
    }

    /// Returns whether the resources besides processors suffice for one more job.
    pub(super) fn has_rest(&self, job: usize) -> bool {
        let held = self.residents().into_iter().map(|running| running.job).chain([job]);
        let sum = held.fold(Resources::NONE, |sum, job| sum.plus(&self.jobs[job].request.demand));
        let none = |kind| self.capacity.get(kind) == 0;
        miserly_core::Kind::ALL[1..]
            .iter()
            .all(|kind| none(*kind) || sum.get(*kind) <= self.capacity.get(*kind))
    }

    /// Gives each job the pace of its slots.
    pub(super) fn settle(&mut self) {
        let (rows, now) = (self.used().len() as u128, self.now);
        let NaiveGang { quantum, switch, .. } = *self.rules;
        let useful = Fraction::new(ticks(quantum), ticks(quantum) + ticks(switch));
        for running in self.running.iter_mut().filter(|running| !running.gone) {
            let ran_in = 1 + running.further as u128;
            let share = Fraction::new(ran_in, rows);
            // A job that runs in all slots is never interrupted.
            running.go_on(now, if ran_in == rows { share } else { share.times(useful) });
        }
    }
}
