//! Effects of a round: changes of records, and actions for attempts.

use std::sync::Arc;

use miserly_api::model::{Failure, Phase, PromiseChangeReason};
use miserly_core::{BreachCause, Effect, Holds, Refusal, Span, StartReason, State, Time};
use miserly_marks::{mark, mark_variant};

use crate::job::output_path;
use crate::job::unrecorded::UnrecordedJobs;
use crate::{
    Action, Attempt, Ending, Engine, JobStart, JobState, Journal, Launch, Launcher, Now, Queue, Record, Run,
};

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Applies one effect on a job.
    pub(crate) fn apply_effect(&mut self, now: Now, at: Time, number: i64, effect: Effect) {
        // These two are stored with the ledger entry that has them.
        if !matches!(effect, Effect::Promised { .. } | Effect::Planned { .. }) {
            self.batch.touch(number);
        }
        mark_variant!(
            &effect,
            Effect {
                Started,
                Promised,
                PromiseBroken,
                Suspended,
                Resumed,
                Requeued,
                OpportunisticProcs,
                Refused,
                Moved,
                Planned,
                Resized,
                SwappedOut,
                PaceChanged,
                EndMoved,
            }
        );
        match effect {
            Effect::Started { reason, .. } => self.start(now, at, number, reason),
            Effect::Promised { latest, .. } => self.record_promise(now, number, latest, None),
            Effect::PromiseBroken { latest, why, .. } => self.record_promise(now, number, latest, Some(why)),
            Effect::Suspended { .. } => match self.write_out_end(at, number) {
                Some(until) => self.write_out(at, number, until),
                None => self.suspend(at, number),
            },
            Effect::Resumed { .. } => self.resume(now, at, number),
            Effect::Requeued { .. } => self.displace(number),
            Effect::OpportunisticProcs { procs, .. } => {
                self.run_opportunistically(now, at, number, procs.get());
            }
            Effect::Refused { why, .. } => self.refuse(now, number, why),
            Effect::Moved { .. } => self.move_to_placement(number),
            Effect::Resized { .. } => self.resize(at, number),
            Effect::SwappedOut { .. } => self.vacate(number),
            // The ledger has the plan, the pace and the expected end.
            Effect::Planned { .. } | Effect::PaceChanged { .. } | Effect::EndMoved { .. } => {}
        }
    }

    fn start(&mut self, now: Now, at: Time, number: i64, reason: StartReason) {
        self.jobs.set_running(number);
        let (cause, begun) = (self.promise_cause(BreachCause::Away), self.batch.begun.get(&number));
        let begun = begun.map(|begun| begun.end);
        let Some(record) = self.jobs.get_mut(number) else { return };
        if record.run.as_ref().is_some_and(Run::is_displaced) {
            // The start of that attempt. Its end begins the window.
            record.started = None;
        }
        self.batch.starts.push(JobStart::of_window(record, now, at));
        // A window that began without a daemon was in time, although the ledger is late, unless its command began later.
        let window = begun.map(|end| end - record.limit());
        let actual = match record.started {
            Some(started) if self.batch.shims_begun.contains(&number) => at.min(started),
            started => {
                window.map_or(at, |window| at.min(started.map_or(window, |started| started.max(window))))
            }
        };
        record.started.get_or_insert(at);
        record.start_reason = Some(reason.into());
        let wall = now.wall;
        record.promise.start(&mut self.values.promises, number, wall, actual, cause);
        self.begin_window(now, at, number);
    }

    /// Allocates the processors of a job that has started, and runs it on them.
    ///
    /// If an earlier attempt of the job is still ending, that end begins the window.
    pub(crate) fn begin_window(&mut self, now: Now, at: Time, number: i64) {
        let Some(record) = self.jobs.get(number) else { return };
        if record.run.as_ref().is_some_and(|run| run.ending.is_some()) {
            mark!("a window begins while its attempt is ended");
            return;
        }
        if let Some(attempt) = record.attempt() {
            self.release_adopted(attempt);
        }
        let Some(record) = self.jobs.get(number) else { return };
        let slack = self.slack(number, now.ticks - at);
        let has_rest = record.restarts || self.resizes(&record.queue);
        let end_of_work = self.end_of_work(at, number).filter(|_| has_rest);
        let whole = end_of_work.map_or_else(|| record.end_of_window(at + slack), |end| end + slack);
        let (cpus, end) = match self.batch.begun.remove(&number) {
            Some(begun) if begun.cpus.is_empty() => (self.allocate_cpus(number), begun.end),
            Some(begun) => (begun.cpus, begun.end),
            None => (self.allocate_planned_cpus(number), whole),
        };
        if end <= at {
            mark!("a window is over at its begin");
            self.cpus.give(&cpus);
            return self.batch.expired.push(number);
        }
        let Some(record) = self.jobs.get_mut(number) else { return };
        match &mut record.run {
            Some(run) => {
                mark!("an early run enters its window");
                run.in_window = true;
                run.stopped = false;
                run.cpus.clone_from(&cpus);
                self.batch.act(Attempt { job: number, nth: run.nth }, Action::BeginWindow { cpus, end });
            }
            None => match self.take_waiting_shim(number) {
                Some(nth) => {
                    if let Some(record) = self.jobs.get_mut(number) {
                        record.run = Some(Run::new(nth, cpus.clone(), true));
                    }
                    self.batch.act(Attempt { job: number, nth }, Action::BeginWindow { cpus, end });
                }
                None => self.launch(number, cpus, Some(end)),
            },
        }
    }

    /// Allocates the processors of a job: those that its policy chose, or else the lowest free ones.
    pub(crate) fn allocate_cpus(&mut self, number: i64) -> Vec<u32> {
        let Some(record) = self.jobs.get(number) else { return vec![] };
        let pes = self.entry(number).and_then(|entry| entry.placement()?.pes()).cloned();
        match &pes {
            Some(pes) if self.is_gang(&record.queue) => self.cpus.take_shared(&record.queue, pes),
            Some(pes) if self.cpus.has_own(&record.queue) => self.cpus.take_named(&record.queue, pes),
            _ => {
                let end = record.end_of_window(self.values.last_instant());
                let others = self.windows.cpus_before(end, record.last_shim());
                self.cpus.take(self.count_of(record), &others)
            }
        }
    }

    /// Allocates the processors of a job whose window begins: those that were planned for it, if they are free.
    fn allocate_planned_cpus(&mut self, number: i64) -> Vec<u32> {
        let Some(record) = self.jobs.get(number) else { return vec![] };
        let window = record.last_shim().and_then(|attempt| self.windows.get(attempt));
        let planned = window.map(|window| window.cpus.clone());
        let planned = planned.filter(|cpus| cpus.len() as u64 == self.count_of(record));
        match planned.filter(|cpus| self.cpus.take_all_of(cpus)) {
            Some(cpus) => cpus,
            None => self.allocate_cpus(number),
        }
    }

    /// Allocates the processors of a running job again. Returns its attempt and the processors, if they changed.
    ///
    /// If none is left it keeps those that it has. The kernel has moved it, or others use them, too.
    pub(crate) fn reallocate_cpus(&mut self, number: i64) -> Option<(Attempt, Vec<u32>)> {
        let before = self.jobs.run(number)?.cpus.clone();
        self.cpus.give(&before);
        let cpus = self.allocate_cpus(number);
        if cpus.is_empty() {
            mark!("a job has no processor left");
            self.cpus.take_these(&before);
            return None;
        }
        let run = self.jobs.run_mut(number).filter(|_| cpus != before)?;
        run.cpus.clone_from(&cpus);
        self.batch.touch(number);
        Some((Attempt { job: number, nth: run.nth }, cpus))
    }

    /// Returns the number of processors of a job: those that it has in its ledger, else the requested ones.
    pub(crate) fn count_of(&self, record: &Record) -> u64 {
        self.procs_of(record.number).unwrap_or(record.submission.cpus)
    }

    /// Returns the number of processors that a running job has in its ledger.
    fn procs_of(&self, number: i64) -> Option<u64> {
        let shares = self.entry(number)?.placement()?.shares();
        Some(shares.iter().map(|share| share.amount.cpus_count().get()).sum())
    }

    /// Returns whether the policy of a queue resizes running jobs.
    pub(crate) fn resizes(&self, queue: &str) -> bool {
        self.setup.queue(queue).is_some_and(|queue| queue.policy.needs().resizing)
    }

    /// Returns the end of the window of a job that is resized: its limit bounds its work, so it has more time on fewer processors.
    fn end_of_work(&self, at: Time, number: i64) -> Option<Time> {
        let (record, entry) = (self.jobs.get(number)?, self.entry(number)?);
        let end = at + entry.left(at, entry.working()) - record.cleanup_time(self.setup.cleanup_time);
        Some(record.by_deadline(end))
    }

    /// Moves a job to as many processors as it has in its ledger now. It keeps as many of its own as possible.
    fn resize(&mut self, at: Time, number: i64) {
        let (Some(count), Some(end)) = (self.procs_of(number), self.end_of_work(at, number)) else { return };
        let Some(run) = self.jobs.run(number).filter(|run| run.ending.is_none()) else { return };
        let (attempt, cpus) = (Attempt { job: number, nth: run.nth }, self.cpus.resize(&run.cpus, count));
        mark!("a job is resized");
        if let Some(run) = self.jobs.run_mut(number) {
            run.cpus.clone_from(&cpus);
        }
        self.batch.touch(number);
        self.batch.act(attempt, Action::Move(cpus));
        self.batch.act(attempt, Action::EndAt(end));
    }

    /// Gives jobs whose policy resizes them the processors that their ledger has for them, and that an ending attempt still had.
    ///
    /// O(r) for r running jobs.
    pub(crate) fn fill_up(&mut self, at: Time) {
        if !self.setup.queues.iter().any(|queue| queue.policy.needs().resizing) {
            return;
        }
        for number in self.jobs.running().collect::<Vec<_>>() {
            let Some(record) = self.jobs.get(number).filter(|record| self.resizes(&record.queue)) else {
                continue;
            };
            let has = record.run.as_ref().filter(|run| run.in_window).map(|run| run.cpus.len() as u64);
            if has.is_some_and(|has| self.procs_of(number).is_some_and(|count| has < count))
                && !self.cpus.free().is_empty()
            {
                mark!("a job gets the processors of an ended attempt");
                self.resize(at, number);
            }
        }
    }

    /// Launches a job as another attempt.
    pub(crate) fn launch(&mut self, number: i64, cpus: Vec<u32>, end: Option<Time>) {
        let gpus = self.choose_gpus(number);
        let Some(record) = self.jobs.get_mut(number) else { return };
        record.attempts += 1;
        let nth = record.attempts;
        record.run = Some(Run { gpus, ..Run::new(nth, cpus, end.is_some()) });
        if end.is_none() {
            self.jobs.set_ahead(number);
        }
        self.act_launch(number, nth, end, false);
    }

    /// Adds the launch of an attempt of a job, or of a shim that only waits.
    pub(crate) fn act_launch(&mut self, number: i64, nth: u32, end: Option<Time>, waits: bool) {
        let gang = self.jobs.get(number).is_some_and(|record| self.is_gang(&record.queue));
        let queue = self.jobs.get(number).and_then(|record| self.setup.queue(&record.queue));
        let strict = queue.is_some_and(|queue| queue.terms.strict);
        let idle = queue.and_then(|queue| queue.terms.idle);
        let memory =
            self.jobs.get(number).zip(queue).and_then(|(record, queue)| record.memory.limit_in(queue));
        let Some(record) = self.jobs.get(number) else { return };
        let run = record.run.as_ref().filter(|_| !waits);
        let (gpus, cpus) = run.map(|run| (run.gpus.clone(), run.cpus.clone())).unwrap_or_default();
        // A withdrawn shim before it has not ended yet. If its command has begun, this attempt is killed.
        let withdrawn = record.waits.as_ref().is_some_and(|waits| waits.nth != nth);
        let ordinal = nth - record.never_ran - u32::from(withdrawn);
        let launch = Launch {
            submission: Arc::clone(&record.submission),
            name: record.name.to_string(),
            queue: record.queue.to_string(),
            configured_queue: self.setup.configured_queue(&record.queue).to_owned(),
            array: record.array,
            uid: record.uid,
            credential: record.credential.clone(),
            output: output_path::output(record),
            append: ordinal > 1 || record.submission.append,
            waits,
            restart: record.restarts,
            ordinal,
            error: record.submission.error.is_some().then(|| output_path::error(record)),
            memory,
            strict,
            gpus: (self.setup.gpus > 0).then_some(gpus),
            cpus: match end {
                Some(_) => cpus,
                None if waits => vec![],
                None => self.setup.opportunistic_cpus.clone(),
            },
            end,
            planned_window: None,
            grace: record.grace(self.setup.grace),
            cleanup_time: record.cleanup_time(self.setup.cleanup_time),
            orphan_resume_delay: self.setup.orphan_resume_delay,
            idle,
            limit: gang.then(|| record.limit()),
        };
        self.batch.touch(number);
        self.batch.act(Attempt { job: number, nth }, Action::Launch(Box::new(launch)));
    }

    /// Returns the GPUs of a job: those that its ledger names, or the free ones with the lowest indexes, if the ledger counts them. It
    /// guarantees that there are enough.
    ///
    /// An attempt has its GPUs until its end, so none is given twice. O(n) for n unfinished jobs, only for jobs with GPUs.
    fn choose_gpus(&self, number: i64) -> Vec<u32> {
        let Some(record) = self.jobs.get(number).filter(|record| record.gpus() > 0) else { return vec![] };
        let count = record.gpus();
        let queue = self.setup.queue(&record.queue);
        if let Some(gpus) = queue.and_then(Queue::classed_gpus) {
            let placement = self.entry(number).and_then(|entry| entry.placement());
            return placement.map(|placement| gpus.indexes_of(placement)).unwrap_or_default();
        }
        let others = self.jobs.records().filter(|record| record.number != number);
        let mut held = self.unrecorded.gpus();
        held.extend(others.filter_map(|record| record.run.as_ref()).flat_map(|run| &run.gpus));
        let all = 0..u32::try_from(self.setup.gpus).unwrap_or(u32::MAX);
        let of_queue = queue.and_then(|queue| queue.gpus.as_ref()).map(|gpus| gpus.indexes());
        let is_free =
            |gpu: &u32| !held.contains(gpu) && of_queue.as_ref().is_none_or(|all| all.contains(gpu));
        all.filter(is_free).take(usize::try_from(count).unwrap_or(usize::MAX)).collect()
    }

    /// Runs an opportunistic job on idle resources, or parks it if there are none.
    fn run_opportunistically(&mut self, now: Now, at: Time, number: i64, procs: u64) {
        let Some(record) = self.jobs.get_mut(number) else { return };
        let Some(run) = &mut record.run else {
            if procs > 0 {
                mark!("an early run begins");
                self.batch.starts.push(JobStart::opportunistic(record, now, at));
                record.started.get_or_insert(at);
                match self.take_waiting_shim(number) {
                    Some(nth) => self.run_shim_early(number, nth),
                    None => self.launch(number, vec![], None),
                }
            }
            return;
        };
        if run.ending.is_some() || run.stopped == (procs == 0) {
            return;
        }
        run.stopped = procs == 0;
        let action = if run.stopped { Action::Stop } else { Action::Continue };
        self.batch.act(Attempt { job: number, nth: run.nth }, action);
    }

    fn record_promise(&mut self, now: Now, number: i64, latest: Time, broken: Option<BreachCause>) {
        if broken.is_some() && self.batch.begun.contains_key(&number) {
            mark!("only the ledger is late");
            // The window began without a daemon, as promised. Only the ledger is late.
            return;
        }
        let broken = broken.map(|cause| self.promise_cause(cause));
        let wall = now.wall;
        let Some(record) = self.jobs.get_mut(number) else { return };
        match broken {
            Some(_) if self.stopped.contains(&record.queue) => {
                mark!("the promises of a stopped queue");
                record.promise.move_plan(wall, latest, PromiseChangeReason::Stopped);
            }
            Some(cause) => record.promise.move_plan(wall, latest, cause),
            None => {
                let slack = self.setup.promise_slack(&record.queue);
                record.promise.give(&mut self.values.promises, wall, latest, slack);
            }
        }
    }

    fn suspend(&mut self, at: Time, number: i64) {
        self.jobs.set_stopped(number);
        let end = self.end_if_orphaned(at, number);
        let is_over = |run: &Run| run.ending.is_some_and(Ending::makes_room);
        let Some(run) = self.jobs.run_mut(number).filter(|run| !is_over(run)) else { return };
        run.stopped = true;
        self.cpus.give(&std::mem::take(&mut run.cpus));
        let attempt = Attempt { job: number, nth: run.nth };
        self.batch.act(attempt, Action::Stop);
        // The window must not end before the job is resumed.
        if let Some(end) = end {
            self.batch.act(attempt, end);
        }
    }

    /// Returns the instant by which a job that is suspended has to be written out; `None` if it keeps its memory.
    ///
    /// The instant is past if other jobs may have its resources already.
    pub(crate) fn write_out_end(&self, at: Time, number: i64) -> Option<Time> {
        match self.entry(number)?.state {
            State::Suspended { holds: Holds::All { until }, .. } => Some(until),
            State::Suspended { holds: Holds::Nothing, .. } => Some(at),
            _ => None,
        }
    }

    /// Ends the attempt of a job that is suspended and written out. The ledger has its resources until an instant.
    fn write_out(&mut self, at: Time, number: i64, until: Time) {
        if self.jobs.run(number).is_none_or(|run| run.ending.is_some()) {
            return self.suspend(at, number);
        }
        self.jobs.set_stopped(number);
        let Some(run) = self.jobs.run_mut(number) else { return };
        mark!("a job is to be written out");
        run.ending = Some(Ending::WrittenOut);
        self.batch.act(Attempt { job: number, nth: run.nth }, Action::WriteOut { until });
    }

    /// Frees the processors of a suspended job whose time to be written out is over. Its attempt ends now.
    fn vacate(&mut self, number: i64) {
        if let Some(run) = self.jobs.run_mut(number).filter(|run| run.ending == Some(Ending::WrittenOut)) {
            self.cpus.give(&std::mem::take(&mut run.cpus));
        }
    }

    /// Returns the latest end of a suspended job, also if it resumes by itself because no daemon runs.
    pub(crate) fn end_if_orphaned(&self, at: Time, number: i64) -> Option<Action> {
        let entry = self.entry(number)?;
        let State::Suspended { until, .. } = entry.state else { return None };
        let record = self.jobs.get(number)?;
        let left =
            entry.left(at, record.submission.cpus.into()) - record.cleanup_time(self.setup.cleanup_time);
        Some(Action::EndIfOrphaned { end: until + self.setup.orphan_resume_delay + left, left })
    }

    fn resume(&mut self, now: Now, at: Time, number: i64) {
        self.jobs.set_running(number);
        // A job that was written out, or displaced and suspended at one instant, has no attempt, or one whose end begins the window.
        if self.jobs.run(number).is_none_or(|run| run.ending.is_some_and(Ending::makes_room)) {
            mark!("a job continues without an attempt");
            return self.begin_window(now, at, number);
        }
        let end = self.window_end(number).unwrap_or(at);
        let cpus = self.allocate_cpus(number);
        let Some(run) = self.jobs.run_mut(number) else { return };
        run.stopped = false;
        run.cpus.clone_from(&cpus);
        let (attempt, paused) = (Attempt { job: number, nth: run.nth }, run.paused);
        self.batch.act(attempt, Action::BeginWindow { cpus, end });
        self.batch.act(attempt, if paused { Action::Stop } else { Action::Continue });
    }

    /// Ends the attempt of a job that its policy requeued. The job starts from the beginning later.
    fn displace(&mut self, number: i64) {
        self.jobs.set_stopped(number);
        let kill = self.kill(Ending::Displaced);
        let Some(record) = self.jobs.get_mut(number) else { return };
        (record.started, record.start_reason) = (None, None);
        mark!("a job is displaced");
        record.promise.renew(PromiseChangeReason::Displaced);
        let Some(run) = &mut record.run else { return };
        self.cpus.give(&std::mem::take(&mut run.cpus));
        run.ending = Some(Ending::Displaced);
        self.batch.act(Attempt { job: number, nth: run.nth }, kill);
    }

    fn refuse(&mut self, now: Now, number: i64, why: Refusal) {
        mark_variant!(why, Refusal { BeyondClasses, TooLarge, NoWindow, Deadline, Preempted });
        let message = refusal_message(why, &self.unrecorded);
        self.kill_early_run(number);
        self.finish(number, Phase::Failed { at: now.wall, why: Failure::Refused, message });
    }

    /// Ends the attempt that a job has ahead of a window that never comes. Its end concerns no job then.
    pub(crate) fn kill_early_run(&mut self, number: i64) {
        let kill = self.kill(Ending::Cancelled);
        let Some(run) = self.jobs.get_mut(number).and_then(|record| record.run.take()) else { return };
        self.cpus.give(&run.cpus);
        self.batch.act(Attempt { job: number, nth: run.nth }, kill);
    }

    /// Finishes a job.
    pub(crate) fn finish(&mut self, number: i64, phase: Phase) {
        let Some(mut record) = self.jobs.remove(number) else { return };
        self.dependencies.untrack(number);
        self.dependencies.leave_place(number);
        self.latest_starts.set(number, None);
        self.overruns.set(number, None);
        if let Some(attempt) = record.waiting_attempt() {
            // Its end concerns no job then. If its window has begun, the command ends, too.
            self.batch.act(attempt, Action::Kill { grace: Span::ZERO });
        }
        if let Some(run) = record.run.take() {
            self.cpus.give(&run.cpus);
            self.batch.act(Attempt { job: number, nth: run.nth }, Action::Forget);
        }
        record.judge_end(&mut self.values.promises, &phase);
        record.entry = None;
        record.state = JobState::Finished(Box::new(phase));
        record.drop_secrets();
        if let Some(job) = self.jobs.handle(number)
            && self.system.queue_of(job).is_none()
        {
            self.jobs.handles_mut().free(job);
        }
        self.batch.finish(record);
    }
}

/// Returns the message for a job that its policy will never start, as the pools are now.
pub(crate) fn refusal_message(why: Refusal, unrecorded: &UnrecordedJobs) -> String {
    let adopted = unrecorded.memory() > 0 || unrecorded.has_cpus();
    let lacks = why == Refusal::TooLarge && adopted;
    let text = reason(why);
    if lacks { format!("{text} while adopted jobs run (`miserly status`)") } else { text.to_owned() }
}

/// Returns why a policy will never start a job.
const fn reason(why: Refusal) -> &'static str {
    match why {
        Refusal::BeyondClasses => "it asks for more than the largest of the policy's job classes",
        Refusal::TooLarge => "it asks for more than its queue's pool ever has",
        Refusal::NoWindow => "there is no window for it within the queue's horizon",
        Refusal::Deadline => "there is no window for it that ends by its deadline",
        Refusal::Preempted => "it was preempted, and its policy does not run it again",
    }
}
