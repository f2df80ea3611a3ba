//! Starts that come later than they were recorded: a window begins with its job.

use miserly_api::model::PromiseChangeReason;
use miserly_core::{Amendment, Change, Fault, Round, Span, State, Time, span_of_work, work};
use miserly_marks::mark;

use crate::dependency::expected_ends::ExpectedEnds;
use crate::view::pools::{Window, held};
use crate::{Action, Attempt, AttemptOutcome, Engine, Journal, Launcher, Now};

/// The longest delay of a round that needs no record: a window begins and ends by so much later, within the cleanup time.
///
/// A longer delay counts as an absence of the daemon.
pub(crate) const LONGEST_DELAY: Span = Span::from_ticks(250_000);

/// Returns whether an attempt ended earlier than [`LONGEST_DELAY`] ago: nothing has followed its end since.
pub(crate) fn has_late_end(now: Now, ends: &[(Attempt, AttemptOutcome)]) -> bool {
    ends.iter().filter_map(|(_, outcome)| outcome.at()).any(|at| at + LONGEST_DELAY < now.ticks)
}

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Returns whether the engine is later than [`LONGEST_DELAY`] for something that is due: it was stopped, or starved.
    pub(crate) fn has_stalled(&self, now: Now) -> bool {
        self.next_due().is_some_and(|due| due + LONGEST_DELAY < now.ticks)
    }

    /// Returns the part of a delay by which a window ends later. The cleanup time absorbs it.
    pub(crate) fn slack(&self, number: i64, delay: Span) -> Span {
        let cleanup = self.jobs.get(number).map(|record| record.cleanup_time(self.setup.cleanup_time));
        delay.min(LONGEST_DELAY).min(cleanup.unwrap_or(Span::ZERO)).max(Span::ZERO)
    }

    /// Moves the windows of jobs that were launched later than their recorded starts.
    ///
    /// They belong to a round with everything that was due meanwhile. Before it, the policy would take jobs for ended that
    /// are overdue. Of a job that has `ended` since, only the delay is recorded.
    pub(crate) fn move_late_windows(
        &mut self,
        now: Now,
        launches: &[(Attempt, Time)],
        ended: &[(Attempt, AttemptOutcome)],
        round: &mut Round,
    ) {
        for (attempt, at) in launches {
            self.note_late_start(*attempt, *at);
            let Some(missed) = self.missed(*attempt, *at) else { continue };
            mark!("a window moves because its job was launched late");
            let Some(end) = self.delay_window(now, *at, attempt.job, round) else { continue };
            if ended.iter().any(|(one, _)| one == attempt) || self.has_lost_cpus(attempt.job) {
                continue;
            }
            // A job whose window is over already is overdue.
            if end > now.ticks {
                round.amended.extend(self.lengthened(attempt.job, missed));
            }
            self.batch.act(*attempt, Action::EndAt(end));
        }
    }

    /// Takes note of the start of a command that began late, and was asked to end before. Its window does not move.
    fn note_late_start(&mut self, attempt: Attempt, at: Time) {
        let Some(record) = self.jobs.get_mut(attempt.job) else { return };
        let run = record.run.as_ref().filter(|run| run.nth == attempt.nth && !run.is_displaced());
        let ends = run.is_some_and(|run| run.ending.is_some());
        if ends && record.started.is_some_and(|started| at - started > LONGEST_DELAY) {
            mark!("a job that is to end began late");
            record.started = Some(at);
            self.batch.touch(attempt.job);
        }
    }

    /// Returns whether one of these launches came so late that its window moves.
    pub(crate) fn has_late_launch(&self, launches: &[(Attempt, Time)]) -> bool {
        launches.iter().any(|(attempt, at)| self.missed(*attempt, *at).is_some())
    }

    /// Returns what a job that was launched at `at` lacks of its window, if that is more than [`LONGEST_DELAY`].
    fn missed(&self, attempt: Attempt, at: Time) -> Option<Span> {
        let run = self.jobs.run(attempt.job)?;
        let in_window = run.nth == attempt.nth && run.in_window && run.ending.is_none();
        let expected = self.expected_end(attempt.job).filter(|_| in_window)?;
        // The time of a job that continues is what its ledger says.
        let record = self.jobs.get(attempt.job).filter(|record| !record.restarts)?;
        let missed = if self.resizes(&record.queue) {
            // Its end depends on its processors, which may be others since its launch.
            let late = record.started.map_or(Span::ZERO, |started| at - started);
            Some(self.work_missed(at, attempt.job)?).filter(|_| late > LONGEST_DELAY)?
        } else {
            at + record.planned(self.setup.cleanup_time) - expected
        };
        Some(missed).filter(|missed| *missed > LONGEST_DELAY)
    }

    /// Returns the time on its requested processors that the ledger of a running job has by `at`, and that it did not have.
    fn work_missed(&self, at: Time, number: i64) -> Option<Span> {
        let (entry, record) = (self.entry(number)?, self.jobs.get(number)?);
        // An earlier late start has lengthened the estimate by what was missed before it.
        let lengthened = entry.request.estimate - record.planned(self.setup.cleanup_time);
        Some(span_of_work(entry.done(at), entry.request.procs()) - lengthened)
    }

    /// Launches a job whose recorded start led to no launch: the daemon was killed between the two, or lacked a resource.
    ///
    /// The jobs behind it may be delayed for the same cause.
    pub(crate) fn begin_late(&mut self, now: Now, at: Time, attempt: Attempt, round: &mut Round) {
        let (number, never) = (attempt.job, AttemptOutcome::NeverRan);
        if self.jobs.get(number).is_some_and(|record| record.restarts) {
            mark!("a lost restart is repeated in its window");
            return match self.window_end(number).filter(|end| *end > at) {
                end @ Some(_) => self.launch_again(attempt, end),
                None => self.resubmit(at, attempt, &never, PromiseChangeReason::Lost, round),
            };
        }
        let Some(missed) = self.work_missed(at, number) else { return };
        // An overdue job has no window any more.
        if missed <= LONGEST_DELAY
            && let Some(end) = self.window_end(number)
        {
            mark!("a lost start is made up within the slack");
            return self.launch_again(attempt, Some(end + self.slack(number, missed)));
        }
        if !self.has_room(at, number) {
            mark!("a lost start has no room in a later window");
            self.take_start_back(number);
            return self.resubmit(at, attempt, &never, PromiseChangeReason::Lost, round);
        }
        let Some(end) = self.delay_window(now, at, number, round) else { return };
        if end <= at {
            mark!("a late window is over");
            return self.expire(now, number, round);
        }
        mark!("a lost start begins a later window");
        round.amended.extend(self.lengthened(number, missed));
        self.launch_again(attempt, Some(end));
    }

    /// Returns whether the window of a running job fits from `at` on beside those of the other running ones.
    ///
    /// A reservation may have begun meanwhile, or begins within the window. The shim of another job may have begun its window.
    fn has_room(&self, at: Time, number: i64) -> bool {
        if self.has_lost_cpus(number) || self.is_in_window_of_shim(at, number) {
            return false;
        }
        let queue_of = |number| self.jobs.get(number).and_then(|record| self.setup.queue(&record.queue));
        let Some(queue) = queue_of(number).filter(|queue| queue.policy.needs().calendar) else { return true };
        let window = |job| {
            let record = self.jobs.get(job).filter(|record| *record.queue == *queue.name)?;
            let State::Running { placement, .. } = &self.entry(job)?.state else { return None };
            let begin = if job == number { at } else { record.started? };
            let end = record.end_of_window(begin) + record.cleanup_time(self.setup.cleanup_time);
            Some(Window { start: at, end, amount: placement.total() })
        };
        let windows: Vec<Window> = self.jobs.running().filter_map(window).collect();
        let last = windows.iter().map(|window| window.end).max().unwrap_or(at);
        let changes = queue.pool.changes_after(at).take_while(|change| *change < last);
        let instants = [at].into_iter().chain(changes).collect();
        held(instants, windows).iter().all(|(at, held)| held.fits_in(&queue.pool.at(*at)))
    }

    /// Returns whether another shim has begun its window on processors of a job.
    fn has_lost_cpus(&self, number: i64) -> bool {
        let adopted = self.unrecorded.cpus();
        let is_taken = |cpu: &u32| adopted.contains(cpu) || self.batch.taken.contains(cpu);
        self.jobs.run(number).is_some_and(|run| run.cpus.iter().any(is_taken))
    }

    /// Returns whether another shim was sent a window on processors of a job that it may have begun by `at`, and not told yet.
    fn is_in_window_of_shim(&self, at: Time, number: i64) -> bool {
        let Some(record) = self.jobs.get(number) else { return false };
        let others = self.windows.cpus_before(at + Span::TICK, record.last_shim());
        record.run.as_ref().is_some_and(|run| run.cpus.iter().any(|cpu| others.contains(cpu)))
    }

    /// Records that the window of a job begins only at `at`, because the daemon was away. Returns the end of the window.
    fn delay_window(&mut self, now: Now, at: Time, number: i64, round: &mut Round) -> Option<Time> {
        round.fault.get_or_insert(Fault::Away);
        self.judge_start_again(now, at, number);
        let record = self.jobs.get_mut(number)?;
        record.started = Some(at);
        self.batch.touch(number);
        let record = self.jobs.get(number)?;
        let cleanup = record.cleanup_time(self.setup.cleanup_time);
        let entry = self.entry(number).filter(|_| self.resizes(&record.queue));
        // A job with fewer processors than it requests has more time.
        let end = entry.map(|entry| {
            at + span_of_work(work(record.planned(cleanup), entry.request.procs()), entry.working()) - cleanup
        });
        Some(end.map_or_else(|| record.end_of_window(at), |end| record.by_deadline(end)))
    }

    /// Returns the amendment by which the ledger plans a job for longer.
    fn lengthened(&self, number: i64, by: Span) -> Option<Amendment> {
        let (job, entry) = (self.jobs.handle(number)?, self.entry(number)?);
        Some(Amendment { job, change: Change::Estimate(entry.request.estimate + by) })
    }
}
