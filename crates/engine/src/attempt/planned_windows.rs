//! Planned windows of opportunistic jobs, which their shims begin and end even if no daemon runs.

use std::collections::BTreeSet;

use miserly_core::{Amendment, Change, Fault, Round, Span, Time};
use miserly_marks::mark;

use crate::dependency::expected_ends::ExpectedEnds;
use crate::{
    Attempt, AttemptOutcome, BEGIN_DELAY, BegunWindow, Engine, EngineError, Journal, Launcher, Now,
    PlannedWindow, Record, SentWindow,
};

/// An opportunistic job that waits for its window.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    job: i64,
    /// The promised start.
    start: Time,
    /// The time limit.
    time: Span,
    /// The time for which its resources are planned.
    planned: Span,
    cpus: u64,
}

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Adds to the batch the planned windows of opportunistic jobs, where the batch may have changed them.
    ///
    /// The dispatch after the commit sends them to the shims.
    pub(crate) fn add_planned_windows(&mut self) {
        if !self.batch.jobs_changed() {
            return;
        }
        for (number, window) in self.planned_windows() {
            let sent = Some(SentWindow::new(&window));
            if self.jobs.run(number).is_some_and(|run| run.sent_window != sent)
                && let Some(run) = self.jobs.run_mut(number)
            {
                mark!("a planned window is sent");
                run.sent_window = sent;
                self.batch.touch(number);
                self.batch.plan_window(Attempt { job: number, nth: run.nth }, window);
            }
        }
    }

    fn planned_windows(&mut self) -> Vec<(i64, PlannedWindow)> {
        let ahead = self.jobs.ahead();
        let records = ahead.into_iter().filter_map(|number| self.jobs.get(number));
        let candidates: Vec<Candidate> = records.filter_map(|record| self.candidate(record)).collect();
        if candidates.is_empty() {
            return vec![];
        }
        let held = self.jobs.running().filter_map(|number| self.held_until(number)).collect();
        assign_windows(candidates, self.cpus.free(), held, |free, count| self.cpus.choose(free, count))
    }

    /// Returns an opportunistic job with a promised start.
    fn candidate(&self, record: &Record) -> Option<Candidate> {
        record.run.as_ref().filter(|run| !run.in_window && run.ending.is_none())?;
        let promise = self.entry(record.number)?.promise?;
        (promise.best < Time::MAX).then(|| Candidate {
            job: record.number,
            start: promise.best,
            time: record.time,
            planned: record.planned(self.setup.cleanup_time),
            cpus: record.submission.cpus,
        })
    }

    /// Returns the processors of a running job and the instant at which they are free.
    fn held_until(&self, number: i64) -> Option<(Time, Vec<u32>)> {
        let run = self.jobs.run(number)?;
        let end = self.expected_end(number).unwrap_or(Time::from_ticks(i64::MIN));
        Some((end, run.cpus.clone()))
    }

    /// Forgets the planned windows that an earlier daemon sent. It is unknown whether they arrived.
    pub(crate) fn forget_planned_windows(&mut self) {
        let sent = |record: &Record| record.run.as_ref().is_some_and(|run| run.sent_window.is_some());
        let records = self.jobs.records().filter(|record| sent(record));
        for number in records.map(|record| record.number).collect::<Vec<_>>() {
            if let Some(run) = self.jobs.run_mut(number) {
                run.sent_window = None;
                self.batch.touch(number);
            }
        }
    }

    /// Returns the windows that shims have begun by themselves, because this daemon did not: it was stopped, or had no room to
    /// store its decisions. `ended` attempts have none.
    pub(crate) fn windows_begun(
        &mut self,
        now: Now,
        ended: &[(Attempt, AttemptOutcome)],
    ) -> Vec<BegunWindow> {
        let ahead = self.jobs.ahead();
        let begun = |number: i64| {
            let run = self.jobs.run(number).filter(|run| !run.in_window && run.ending.is_none())?;
            let attempt = Attempt { job: number, nth: run.nth };
            let SentWindow { start, end, cpus } = run.sent_window.clone()?;
            let has_begun = start + BEGIN_DELAY <= now.ticks && now.ticks < end;
            let lives = !ended.iter().any(|(one, _)| *one == attempt);
            (has_begun && lives).then_some(BegunWindow { attempt, cpus, end })
        };
        ahead.into_iter().filter_map(begun).collect()
    }

    /// Applies windows that began without a daemon: each job keeps its processors, for the rest of its window.
    pub(crate) fn apply_begun_windows(&mut self, at: Time, windows: Vec<BegunWindow>, round: &mut Round) {
        for mut begun in windows {
            let number = begun.attempt.job;
            let Some(record) = self.jobs.get(number) else { continue };
            let planned = record
                .run
                .as_ref()
                .is_some_and(|run| run.nth == begun.attempt.nth && !run.in_window && run.ending.is_none());
            let cleanup_time = record.cleanup_time(self.setup.cleanup_time);
            let Some(job) = self.jobs.handle(number).filter(|_| planned && self.is_waiting(number)) else {
                continue;
            };
            if self.cpus.has_own(&record.queue) {
                mark!("a begun window of a queue with its own processors");
                // The policy names them as it starts the job.
                begun.cpus.clear();
            }
            // Those of an adopted attempt are withheld for it.
            if !self.unrecorded.is_adopted(begun.attempt) && !self.cpus.take_all_of(&begun.cpus) {
                mark!("a begun window has lost its processors");
                // Another job held them when they were sent, and no later plan arrived. The job moves.
                begun.cpus = self.cpus.take(begun.cpus.len() as u64);
            }
            mark!("a shim began a window");
            let left = (begun.end + cleanup_time - at).max(Span::TICK);
            round.amended.push(Amendment { job, change: Change::Estimate(left) });
            self.batch.begun.insert(number, begun);
        }
    }

    /// Reverts the begun windows that the system did not start, because an overdue job is there. Their jobs wait as before.
    pub(crate) fn revert_begun_windows(&mut self, now: Now) -> Result<(), EngineError> {
        let mut round = Round { fault: Some(Fault::Away), ..Round::default() };
        let mut doubtful = std::mem::take(&mut self.batch.doubtful);
        for (number, begun) in std::mem::take(&mut self.batch.begun) {
            mark!("a begun window has no start in the ledger");
            if !self.unrecorded.is_adopted(begun.attempt) {
                self.cpus.give(&begun.cpus);
            }
            if let Some((latest, cause)) = doubtful.remove(&number) {
                mark!("a promise breaks although its window began");
                self.batch.touch(number);
                self.record_promise(now, number, latest, Some(cause));
            }
            if let (Some(record), Some(job)) = (self.jobs.get(number), self.jobs.handle(number)) {
                let change = Change::Estimate(record.planned(self.setup.cleanup_time));
                round.amended.push(Amendment { job, change });
            }
        }
        if !round.amended.is_empty() {
            self.play_now(now, round)?;
        }
        Ok(())
    }
}

/// Assigns processors to planned windows, in the order of their starts. `choose` chooses some of the free ones.
///
/// The ledger guarantees enough processors at each start, and processors are interchangeable. So each candidate gets a window,
/// unless an overdue job holds processors that the plan considers free.
fn assign_windows(
    mut candidates: Vec<Candidate>,
    mut free: BTreeSet<u32>,
    mut held: Vec<(Time, Vec<u32>)>,
    choose: impl Fn(&BTreeSet<u32>, usize) -> Vec<u32>,
) -> Vec<(i64, PlannedWindow)> {
    candidates.sort_by_key(|candidate| (candidate.start, candidate.job));
    let mut windows = vec![];
    for Candidate { job, start, time, planned, cpus } in candidates {
        for (_, cpus) in held.extract_if(.., |(end, _)| *end <= start) {
            free.extend(cpus);
        }
        let count = usize::try_from(cpus).unwrap_or(usize::MAX);
        let cpus = choose(&free, count);
        if cpus.len() == count {
            for cpu in &cpus {
                free.remove(cpu);
            }
            held.push((start + planned, cpus.clone()));
            windows.push((job, PlannedWindow { start, end: start + time, cpus }));
        }
    }
    windows
}

impl SentWindow {
    fn new(window: &PlannedWindow) -> SentWindow {
        SentWindow { start: window.start, end: window.end, cpus: window.cpus.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A candidate whose resources are kept one tick longer than its time limit.
    fn candidate(job: i64, start: i64, time: i64, cpus: u64) -> Candidate {
        let time = Span::from_ticks(time);
        Candidate { job, start: Time::from_ticks(start), time, planned: time + Span::TICK, cpus }
    }

    #[track_caller]
    fn check(candidates: Vec<Candidate>, free: &[u32], held: &[(i64, &[u32])], expect: &[(i64, &[u32])]) {
        let held = held.iter().map(|(end, cpus)| (Time::from_ticks(*end), cpus.to_vec())).collect();
        let lowest = |free: &BTreeSet<u32>, count| free.iter().copied().take(count).collect();
        let windows = assign_windows(candidates, free.iter().copied().collect(), held, lowest);
        let assigned: Vec<(i64, &[u32])> =
            windows.iter().map(|(job, window)| (*job, &window.cpus[..])).collect();
        assert_eq!(assigned, expect);
    }

    #[test]
    fn the_earliest_start_gets_the_lowest_processors() {
        check(vec![candidate(1, 20, 5, 1), candidate(2, 10, 50, 1)], &[3, 4], &[], &[(2, &[3]), (1, &[4])]);
    }

    #[test]
    fn processors_are_reused_once_they_are_free() {
        let two = vec![candidate(1, 10, 5, 1), candidate(2, 16, 5, 1)];
        check(two, &[], &[(10, &[7])], &[(1, &[7]), (2, &[7])]);
        let too_early = vec![candidate(1, 10, 5, 1), candidate(2, 15, 5, 1)];
        check(too_early, &[], &[(10, &[7])], &[(1, &[7])]);
    }

    #[test]
    fn a_job_without_enough_processors_takes_none_from_the_next() {
        check(vec![candidate(1, 10, 5, 2), candidate(2, 11, 5, 1)], &[0], &[], &[(2, &[0])]);
    }
}
