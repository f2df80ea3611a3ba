//! Planned windows, which shims begin and end even if no daemon runs: those of opportunistic jobs, and of jobs whose shims wait.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::{Amendment, Change, Round, Span, Time};
use miserly_marks::mark;

use crate::dependency::expected_ends::ExpectedEnds;
use crate::{
    Action, Attempt, AttemptOutcome, BEGIN_DELAY, BegunWindow, Engine, HeldWindow, Journal, Launcher, Now,
    PlannedWindow, Record,
};

/// The windows of shims, until they begin.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentWindows {
    /// Those that were sent last. A daemon that starts knows none of them.
    sent: BTreeMap<Attempt, PlannedWindow>,
    /// Those that the shims have, as far as they have told.
    held: BTreeMap<Attempt, HeldWindow>,
}

impl SentWindows {
    /// Takes note of an action that is given to the launcher.
    pub(crate) fn note(&mut self, attempt: Attempt, action: &Action) {
        let window = match action {
            Action::Launch(launch) => launch.planned_window.clone(),
            Action::PlanWindow(window) => Some(window.clone()),
            Action::RevokeWindow
            | Action::BeginWindow { .. }
            | Action::Kill { .. }
            | Action::WriteOut { .. }
            | Action::EndOverdue { .. }
            | Action::Withdraw
            | Action::Forget => None,
            _ => return,
        };
        match window {
            Some(window) => drop(self.sent.insert(attempt, window)),
            None => drop(self.sent.remove(&attempt)),
        }
        if matches!(action, Action::BeginWindow { .. } | Action::Forget) {
            self.held.remove(&attempt);
        }
    }

    /// Takes note of what shims hold.
    pub(crate) fn hold(&mut self, held: Vec<(Attempt, Option<HeldWindow>)>) {
        for (attempt, window) in held {
            match window {
                Some(window) => drop(self.held.insert(attempt, window)),
                None => drop(self.held.remove(&attempt)),
            }
        }
    }

    pub(crate) fn get(&self, attempt: Attempt) -> Option<&PlannedWindow> {
        self.sent.get(&attempt)
    }

    /// Returns the processors of windows that begin before an instant, but for those of one attempt.
    pub(crate) fn cpus_before(&self, end: Time, attempt: Option<Attempt>) -> BTreeSet<u32> {
        let others = self.sent.iter().filter(|(of, window)| Some(**of) != attempt && window.start < end);
        others.flat_map(|(_, window)| &window.cpus).copied().collect()
    }
}

/// A job that waits for its window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) job: i64,
    /// The attempt whose shim has the window, or will have it.
    pub(crate) attempt: Attempt,
    /// Whether there is such a shim.
    pub(crate) has_shim: bool,
    /// The promised start.
    pub(crate) start: Time,
    /// The time limit.
    pub(crate) time: Span,
    /// The time for which its resources are planned.
    pub(crate) planned: Span,
    pub(crate) cpus: u64,
}

/// Processors that are held until an instant, by an attempt if it is known.
#[derive(Clone, Debug)]
struct Held {
    until: Time,
    cpus: Vec<u32>,
    attempt: Option<Attempt>,
}

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Adds to the batch the planned windows, and the shims that wait for them, where the batch may have changed them.
    ///
    /// The dispatch after the commit sends them to the shims.
    pub(crate) fn add_planned_windows(&mut self) {
        if !self.batch.jobs_changed() && !self.shims.is_changed() {
            return;
        }
        let ahead = self.jobs.ahead();
        let records = ahead.into_iter().filter_map(|number| self.jobs.get(number));
        let mut candidates: Vec<Candidate> = records.filter_map(|record| self.candidate(record)).collect();
        let early: BTreeSet<i64> = candidates.iter().map(|candidate| candidate.job).collect();
        let shims = self.shim_plan();
        candidates.extend(shims.candidates());
        let windows = self.assigned(candidates);
        let (mut kept, mut waiting) = (BTreeSet::new(), vec![]);
        for (candidate, window) in windows {
            if early.contains(&candidate.job) {
                kept.insert(candidate.attempt);
                self.plan_window(candidate.attempt, window);
            } else {
                waiting.push((candidate, window));
            }
        }
        self.plan_shims(&shims, waiting, &mut kept);
        let lost = self.windows.sent.keys().filter(|of| !kept.contains(of) && self.is_to_begin(**of));
        for attempt in lost.copied().collect::<Vec<_>>() {
            self.batch.act(attempt, Action::RevokeWindow);
        }
    }

    /// Returns whether an attempt is to begin its window.
    fn is_to_begin(&self, attempt: Attempt) -> bool {
        self.jobs.get(attempt.job).is_some_and(|record| record.waits_in(attempt))
    }

    /// Takes note that shims of an earlier daemon may have any window.
    pub(crate) fn expect_windows(&mut self) {
        let attempts = self.jobs.records().flat_map(|record| [record.attempt(), record.waiting_attempt()]);
        let any = PlannedWindow {
            start: Time::MAX,
            end: Time::MAX,
            cpus: vec![],
            after: vec![],
            latest: Time::MAX,
        };
        self.windows.sent = attempts.flatten().map(|attempt| (attempt, any.clone())).collect();
    }

    /// Adds the planned window of an attempt with a shim to the batch, if it is another one than before.
    pub(crate) fn plan_window(&mut self, attempt: Attempt, window: PlannedWindow) {
        if self.windows.get(attempt) != Some(&window) {
            mark!("a planned window is sent");
            self.batch.plan_window(attempt, window);
        }
    }

    /// Assigns processors to candidates.
    fn assigned(&self, candidates: Vec<Candidate>) -> Vec<(Candidate, PlannedWindow)> {
        if candidates.is_empty() {
            return vec![];
        }
        let held = self.jobs.running().filter_map(|number| self.held_until(number)).collect();
        assign_windows(candidates, self.cpus.free(), held, |free, candidate, count| {
            // A window that keeps its processors needs no message.
            let before = self.windows.get(candidate.attempt);
            let before = before.filter(|window| window.cpus.iter().all(|cpu| free.contains(cpu)));
            match before.filter(|window| window.cpus.len() == count) {
                Some(window) => window.cpus.clone(),
                None => self.cpus.choose(free, count),
            }
        })
    }

    /// Returns an opportunistic job with a promised start.
    fn candidate(&self, record: &Record) -> Option<Candidate> {
        record.run.as_ref().filter(|run| !run.in_window && run.ending.is_none())?;
        self.candidate_of(record, record.attempt()?, true)
    }

    /// Returns a waiting job with a promised start.
    pub(crate) fn candidate_of(
        &self,
        record: &Record,
        attempt: Attempt,
        has_shim: bool,
    ) -> Option<Candidate> {
        let promise = self.entry(record.number)?.promise?;
        // A shim would begin a window without a daemon although the job is given up before.
        let begins = promise.best < Time::MAX && !record.is_too_late(promise.best);
        begins.then(|| Candidate {
            job: record.number,
            attempt,
            has_shim,
            start: promise.best,
            time: record.time,
            planned: record.planned(self.setup.cleanup_time),
            cpus: record.submission.cpus,
        })
    }

    /// Returns the processors of a running job and the instant at which they are free.
    fn held_until(&self, number: i64) -> Option<Held> {
        let record = self.jobs.get(number)?;
        let run = record.run.as_ref()?;
        let until = self.expected_end(number).unwrap_or(Time::from_ticks(i64::MIN));
        Some(Held { until, cpus: run.cpus.clone(), attempt: record.attempt() })
    }

    /// Returns the windows that shims have begun by themselves, because this daemon did not: it was stopped, or had no room to
    /// store its decisions. `ended` attempts have none. `reported` are those of which their shims have told.
    pub(crate) fn windows_begun(
        &mut self,
        now: Now,
        ended: &[(Attempt, AttemptOutcome)],
        reported: Vec<BegunWindow>,
    ) -> Vec<BegunWindow> {
        let has_begun =
            |window: &&HeldWindow| window.start + BEGIN_DELAY <= now.ticks && now.ticks < window.end;
        // A withdrawn shim reports that it has begun.
        let withdrawn = |attempt: &Attempt| {
            self.jobs.get(attempt.job).and_then(|of| of.waits).is_some_and(|of| of.is_withdrawn)
        };
        let due = self.windows.held.iter().filter(|(of, window)| has_begun(window) && !withdrawn(of));
        let due = due.map(|(attempt, window)| BegunWindow {
            attempt: *attempt,
            cpus: window.cpus.clone(),
            end: window.end,
        });
        let mut begun: BTreeMap<Attempt, BegunWindow> = due.map(|begun| (begun.attempt, begun)).collect();
        begun.extend(reported.into_iter().map(|begun| (begun.attempt, begun)));
        let lives = |begun: &BegunWindow| !ended.iter().any(|(one, _)| *one == begun.attempt);
        let begun: Vec<BegunWindow> =
            begun.into_values().filter(|begun| self.is_to_begin(begun.attempt) && lives(begun)).collect();
        for BegunWindow { attempt, .. } in &begun {
            if let Some(start) = self.windows.held.get(attempt).map(|window| window.start) {
                self.begin_waiting(*attempt, start + BEGIN_DELAY);
            }
        }
        begun
    }

    /// Applies windows that began without a daemon: each job keeps its processors, for the rest of its window.
    pub(crate) fn apply_begun_windows(&mut self, at: Time, windows: Vec<BegunWindow>, round: &mut Round) {
        for mut begun in windows {
            let number = begun.attempt.job;
            let Some(record) = self.jobs.get(number) else { continue };
            let planned = record.waits_in(begun.attempt) && !self.unrecorded.is_adopted(begun.attempt);
            let cleanup_time = record.cleanup_time(self.setup.cleanup_time);
            let Some(job) = self.jobs.handle(number).filter(|_| planned && self.is_waiting(number)) else {
                continue;
            };
            if self.cpus.has_own(&record.queue) {
                mark!("a begun window of a queue with its own processors");
                // The policy names them as it starts the job.
                begun.cpus.clear();
            }
            if !self.cpus.take_all_of(&begun.cpus) {
                mark!("a begun window has lost its processors");
                // Another job held them when they were sent, and no later plan arrived. The job moves.
                begun.cpus = self.cpus.take(begun.cpus.len() as u64, &BTreeSet::new());
            }
            mark!("a shim began a window");
            let left = (begun.end + cleanup_time - at).max(Span::TICK);
            round.amended.push(Amendment { job, change: Change::Estimate(left) });
            self.batch.begun.insert(number, begun);
        }
    }
}

impl Record {
    /// Returns whether this attempt of the job is to begin its window: it is opportunistic, or its shim waits.
    pub(crate) fn waits_in(&self, attempt: Attempt) -> bool {
        let early = |run: &crate::Run| run.nth == attempt.nth && !run.in_window && run.ending.is_none();
        match &self.run {
            Some(run) => early(run),
            None => self.waiting_attempt() == Some(attempt),
        }
    }
}

/// Assigns processors to planned windows, in the order of their starts. `choose` chooses some of the free ones.
///
/// The ledger guarantees enough processors at each start, and processors are interchangeable. So each candidate gets a window,
/// unless an overdue job holds processors that the plan considers free.
fn assign_windows(
    mut candidates: Vec<Candidate>,
    mut free: BTreeSet<u32>,
    mut held: Vec<Held>,
    choose: impl Fn(&BTreeSet<u32>, &Candidate, usize) -> Vec<u32>,
) -> Vec<(Candidate, PlannedWindow)> {
    candidates.sort_by_key(|candidate| (candidate.start, candidate.job));
    let mut windows = vec![];
    // The last attempt on each processor, before the windows.
    let mut last: BTreeMap<u32, Attempt> = BTreeMap::new();
    for candidate in candidates {
        let Candidate { attempt, start, time, planned, cpus, .. } = candidate;
        for held in held.extract_if(.., |held| held.until <= start) {
            last.extend(held.cpus.iter().filter_map(|cpu| Some((*cpu, held.attempt?))));
            free.extend(held.cpus);
        }
        let count = usize::try_from(cpus).unwrap_or(usize::MAX);
        let cpus = choose(&free, &candidate, count);
        if cpus.len() == count {
            for cpu in &cpus {
                free.remove(cpu);
            }
            let after: BTreeSet<Attempt> = cpus.iter().filter_map(|cpu| last.get(cpu)).copied().collect();
            held.push(Held { until: start + planned, cpus: cpus.clone(), attempt: Some(attempt) });
            let (end, latest) = (start + time, start + (planned - time));
            let after = after.into_iter().collect();
            windows.push((candidate, PlannedWindow { start, end, cpus, after, latest }));
        }
    }
    windows
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A candidate whose resources are kept one tick longer than its time limit. Its shim is that of its first attempt.
    fn candidate(job: i64, start: i64, time: i64, cpus: u64) -> Candidate {
        let (time, start) = (Span::from_ticks(time), Time::from_ticks(start));
        let attempt = Attempt { job, nth: 1 };
        Candidate { job, attempt, has_shim: true, start, time, planned: time + Span::TICK, cpus }
    }

    fn assign(
        candidates: Vec<Candidate>,
        free: &[u32],
        held: &[(i64, &[u32])],
    ) -> Vec<(Candidate, PlannedWindow)> {
        let held = held.iter().map(|(end, cpus)| Held {
            until: Time::from_ticks(*end),
            cpus: cpus.to_vec(),
            attempt: Some(Attempt { job: 9, nth: 1 }),
        });
        let lowest = |free: &BTreeSet<u32>, _: &Candidate, count| free.iter().copied().take(count).collect();
        assign_windows(candidates, free.iter().copied().collect(), held.collect(), lowest)
    }

    #[track_caller]
    fn check(candidates: Vec<Candidate>, free: &[u32], held: &[(i64, &[u32])], expect: &[(i64, &[u32])]) {
        let windows = assign(candidates, free, held);
        let assigned: Vec<(i64, &[u32])> =
            windows.iter().map(|(candidate, window)| (candidate.job, &window.cpus[..])).collect();
        assert_eq!(assigned, expect);
    }

    #[test]
    fn a_window_names_the_attempts_before_it_on_its_processors() {
        let two = vec![candidate(1, 10, 5, 1), candidate(2, 16, 5, 2)];
        let windows = assign(two, &[3], &[(10, &[7])]);
        let after: Vec<Vec<i64>> =
            windows.iter().map(|(_, window)| window.after.iter().map(|of| of.job).collect()).collect();
        // Job 1 gets the free processor 3, and job 2 needs both.
        assert_eq!(after, [vec![], vec![1, 9]]);
        assert_eq!(windows[1].1.latest, Time::from_ticks(17));
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
