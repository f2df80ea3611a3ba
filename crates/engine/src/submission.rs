//! Submissions and quotes.

use std::sync::Arc;

use miserly_api::model::{Accepted, Problem, ProblemCode, Quote, Submission, Submitted, Window};
use miserly_core::{Effect, JobId, Kind, Round, Span, Time};
use miserly_units::duration;

use crate::effects::refusal_message;
use crate::requests::{Handled, RequestError};
use crate::submission_size;
use crate::{ArrayMember, Caller, DaemonReply, Engine, JobState, Journal, Launcher, Now, Queue, Record};

/// The maximum number of jobs in an array.
const ARRAY_MOST: usize = 10_000;

/// The maximum size of an array's jobs in the journal, in bytes.
const ARRAY_BYTES: usize = 256 << 20;

impl<L: Launcher, J: Journal> Engine<L, J> {
    pub(crate) fn submit(&mut self, now: Now, caller: &Caller, submission: &Submission) -> Handled {
        if self.values.draining {
            let message = "the daemon accepts no new jobs (miserly drain --undo)";
            return Err(Problem::new(ProblemCode::Unavailable, message).into());
        }
        // Due events are played first: a job to depend on may finish then.
        let at = self.fresh(now)?;
        if let Some(submitted) = self.submitted_before(now, caller, submission)? {
            return Ok(DaemonReply::Submitted(submitted));
        }
        let records = self.records_of(now, caller, submission)?;
        self.check_user_limits(caller, &records)?;
        self.check_known_begin(at, &records[0])?;
        // An array is accepted as a whole or not at all, so it is tried on a copy first.
        if records.len() > 1 {
            self.trial_windows(now, at, &records)?;
        }
        let numbers: Vec<i64> = records.iter().map(|record| record.number).collect();
        self.values.reserve_numbers(records.len());
        let mut round = Round::default();
        for record in records {
            self.enter(at, record, &mut round);
        }
        let effects = if round.is_empty() { vec![] } else { self.play(now, at, round)? };
        if let [only] = numbers[..]
            && let Some(why) = refused(&effects, only)
        {
            // It was never accepted. Only the journal mentions it.
            self.batch.withdraw(only);
            return Err(why.into());
        }
        self.request_ids.add(caller.uid, numbers[0], submission);
        let jobs = numbers.into_iter().filter_map(|number| self.accepted(now, number)).collect();
        Ok(DaemonReply::Submitted(Submitted { jobs }))
    }

    /// Returns the promises that a submission would get now.
    pub(crate) fn quote(&mut self, now: Now, caller: &Caller, submission: &Submission) -> Handled {
        let at = self.fresh(now)?;
        let records = self.records_of(now, caller, submission)?;
        self.check_known_begin(at, &records[0])?;
        let windows = self.trial_windows(now, at, &records)?;
        Ok(DaemonReply::Quote(Quote { windows }))
    }

    /// Adds an accepted job: to its queue, or to the deferred jobs. A held job waits for its release.
    pub(crate) fn enter(&mut self, at: Time, record: Record, round: &mut Round) {
        let number = record.number;
        let held = record.state == (JobState::Held);
        let enters = !held && self.enters_at_once(&record, at);
        if !held && !enters {
            self.dependencies.track(&record);
        }
        self.batch.touch(number);
        self.jobs.insert(record);
        if enters {
            self.submit_record(at, number, round);
        }
    }

    /// Checks that a job with a deadline gets a window now. A held one gets it at its release.
    fn check_known_begin(&self, at: Time, record: &Record) -> Result<(), Problem> {
        if record.deadline.is_none() || record.state == JobState::Held || self.enters_at_once(record, at) {
            return Ok(());
        }
        let unknown = record.after.iter().find(|other| self.latest_end(**other, at).is_none());
        let other = unknown.map_or_else(|| "a job".to_owned(), |other| format!("job {other}"));
        let message =
            format!("it waits for {other}, whose end is not known, so no end by a deadline can be promised");
        Err(refused_field("deadline", message))
    }

    pub(crate) fn accepted(&self, now: Now, number: i64) -> Option<Accepted> {
        let record = self.jobs.get(number)?;
        let promise = record.entry.as_ref().and_then(|entry| entry.entry().promise);
        Some(Accepted {
            number,
            index: record.array.map(|array| array.index),
            promise: promise.map(|promise| record.window(now, promise.best)),
            started: self.jobs.is_running(number),
        })
    }

    /// Returns the windows that new jobs would get in their queue, from a trial on a copy.
    fn trial_windows(
        &self,
        now: Now,
        at: Time,
        records: &[Record],
    ) -> Result<Vec<Option<Window>>, RequestError> {
        let Some(queue) = self.setup.position(&records[0].queue) else {
            return Ok(vec![]);
        };
        // The jobs of an array are deferred together, and a deferred job has no window.
        if !self.enters_at_once(&records[0], at) {
            return Ok(vec![None; records.len()]);
        }
        let mut round = Round::default();
        let base = self.jobs.unused_handle();
        for (handle, record) in (base..).zip(records) {
            let begin = self.earliest_begin(record, at);
            let request = record.request(&self.setup, 0, at, begin);
            round.submitted.push(miserly_core::Submission { job: JobId(handle), request });
        }
        let (trial, effects) = self.play_trial(queue, at, round)?;
        let numbered = |effect: Effect| {
            let nth = usize::try_from(effect.job().0.checked_sub(base)?).ok()?;
            Some((records.get(nth)?.number, effect))
        };
        let effects: Vec<_> = effects.into_iter().filter_map(numbered).collect();
        if let Some(problem) = records.iter().find_map(|record| refused(&effects, record.number)) {
            return Err(problem.into());
        }
        let ledger = trial.queues()[0].ledger();
        let window = |(handle, record): (u32, &Record)| {
            let promise = ledger.get(JobId(handle))?.promise?;
            Some(record.window(now, promise.best))
        };
        Ok((base..).zip(records).map(window).collect())
    }

    /// Checks a submission and returns the records of its jobs.
    fn records_of(&self, now: Now, caller: &Caller, submission: &Submission) -> Result<Vec<Record>, Problem> {
        self.check_identity(caller)?;
        let queue = self.queue_for(caller, submission.queue.as_deref())?;
        self.may_submit(caller)?;
        self.stopped_problem(&queue.name).map_or(Ok(()), Err)?;
        submission_size::check(submission)?;
        check_script(submission)?;
        self.launcher.check(submission, &name_of(submission))?;
        let (time, memory) = check(queue, submission)?;
        self.check_deadline(queue, submission)?;
        let indexes = indexes_of(submission)?;
        for other in &submission.after {
            if *other >= self.values.next_number || *other < 1 {
                return Err(Problem::with_field("after", format!("there is no job {other} to wait for")));
            }
        }
        let after: Vec<i64> =
            submission.after.iter().copied().filter(|other| self.jobs.contains(*other)).collect();
        let shared = Arc::new(submission.clone());
        let first = self.values.next_number;
        let state = if submission.hold { JobState::Held } else { JobState::Deferred };
        let record = |(number, index): (i64, Option<u32>)| Record {
            array: index.map(|index| ArrayMember { first, index }),
            uid: caller.uid,
            name: name_of(submission),
            queue: queue.name.clone(),
            submitted: now.wall.as_microsecond(),
            time: time.ticks(),
            memory,
            begin: submission.begin.map(|at| now.ticks_at(at).ticks()),
            deadline: submission.deadline.map(|at| now.ticks_at(at).ticks()),
            after: after.clone(),
            ..Record::new(number, state.clone(), Arc::clone(&shared))
        };
        Ok((first..).zip(indexes).map(record).collect())
    }

    /// Checks that the queue keeps deadlines, if the submission has one.
    fn check_deadline(&self, queue: &Queue, submission: &Submission) -> Result<(), Problem> {
        if submission.deadline.is_none() || queue.knows_begin() {
            return Ok(());
        }
        let keep = self.setup.queues.iter().filter(|other| other.knows_begin());
        let keep: Vec<&str> = keep.map(|other| other.name.as_str()).collect();
        let remedy = match keep[..] {
            [] => "no queue here does".to_owned(),
            [only] => format!("queue {only} does"),
            [..] => format!("queues {} do", keep.join(", ")),
        };
        let message =
            format!("the policy of queue {}, {}, keeps no deadlines; {remedy}", queue.name, queue.policy);
        Err(refused_field("deadline", message))
    }

    fn queue_for(&self, caller: &Caller, name: Option<&str>) -> Result<&Queue, Problem> {
        let first = self.setup.queues.first().map_or("", |queue| &queue.name);
        let queue = self.queue_called(name.unwrap_or(first))?;
        self.may_use(caller, queue)?;
        Ok(queue)
    }

    /// Returns the queue with a name.
    pub(crate) fn queue_called(&self, name: &str) -> Result<&Queue, Problem> {
        self.setup.queue(name).ok_or_else(|| {
            let names: Vec<&str> = self.setup.queues.iter().map(|queue| queue.name.as_str()).collect();
            let message = format!("there is no queue {name:?}; there is {}", names.join(", "));
            Problem { code: ProblemCode::NotFound, ..Problem::with_field("queue", message) }
        })
    }
}

/// Checks a submission against its queue. Returns its time limit and its memory in kilobytes.
fn check(queue: &Queue, submission: &Submission) -> Result<(Span, u64), Problem> {
    let time = time_of(queue, submission.time)?;
    let most = queue.pool.most();
    if submission.cpus == 0 {
        return Err(Problem::with_field("cpus", "a job has at least one cpu"));
    }
    if submission.cpus > most.cpus_count().get() {
        let message =
            format!("{} cpus: queue {} has at most {}", submission.cpus, queue.name, most.cpus_count());
        return Err(refused_field("cpus", message));
    }
    let memory = submission.memory.map_or(queue.default_memory, |bytes| bytes.div_ceil(1024));
    let most_memory = most.get(Kind::Memory);
    if most_memory > 0 && memory > most_memory {
        let shown = |kilobytes: u64| miserly_units::memory(kilobytes.saturating_mul(1024));
        let message =
            format!("{} of memory: queue {} has at most {}", shown(memory), queue.name, shown(most_memory));
        return Err(refused_field("memory", message));
    }
    Ok((time, memory))
}

/// Returns the array indexes of the jobs of a submission; a single `None` without an array.
fn indexes_of(submission: &Submission) -> Result<Vec<Option<u32>>, Problem> {
    let Some(array) = submission.array else { return Ok(vec![None]) };
    if array.step == 0 {
        return Err(Problem::with_field("array", "the step of an array is at least 1"));
    }
    let indexes: Vec<Option<u32>> = array.indexes().take(ARRAY_MOST + 1).map(Some).collect();
    if indexes.is_empty() || indexes.len() > ARRAY_MOST {
        return Err(Problem::with_field("array", format!("an array has 1 to {ARRAY_MOST} jobs")));
    }
    // Each job of an array has a row of its own.
    let bytes = || serde_json::to_string(submission).map_or(0, |text| text.len());
    if indexes.len() > 1 && bytes().saturating_mul(indexes.len()) > ARRAY_BYTES {
        let message = "it is too large for so many jobs: have them run a script that is in a file";
        return Err(Problem::with_field("array", message));
    }
    Ok(indexes)
}

/// Checks that the system finds the interpreter of a script.
fn check_script(submission: &Submission) -> Result<(), Problem> {
    let first = submission.script.as_deref().and_then(|script| script.split('\n').next());
    if first.is_some_and(|line| line.ends_with('\r')) {
        let message = "the script has the line ends of DOS (CR LF), so its interpreter would not be found; remove them, \
                       such as with dos2unix";
        return Err(Problem::with_field("script", message));
    }
    Ok(())
}

fn time_of(queue: &Queue, secs: f64) -> Result<Span, Problem> {
    let most = longest_time(queue);
    let Some(requested) = span_from_secs(secs) else {
        return Err(Problem::with_field("time", "the time is a number of seconds above 0"));
    };
    if requested == Span::ZERO && secs > 0.0 {
        return Err(Problem::with_field("time", "the time is at least a microsecond"));
    }
    let time = match (requested, queue.default_time) {
        (Span::ZERO, Some(time)) => time,
        (Span::ZERO, None) => {
            return Err(Problem::with_field("time", "say for how long it may run, such as --time 2h"));
        }
        (requested, _) => requested,
    };
    if time > most {
        let message = format!("{}: queue {} allows at most {}", duration(time), queue.name, duration(most));
        return Err(refused_field("time", message));
    }
    Ok(time)
}

/// Returns the longest time limit in a queue. It is short enough that sums of instants do not overflow.
pub(crate) fn longest_time(queue: &Queue) -> Span {
    queue.most_time.unwrap_or(Span::from_ticks(i64::MAX / 8))
}

/// Returns a number of seconds as a span, if it is a valid duration.
pub(crate) fn span_from_secs(secs: f64) -> Option<Span> {
    let micros = std::time::Duration::try_from_secs_f64(secs).ok()?.as_micros();
    i64::try_from(micros).ok().map(Span::from_ticks)
}

fn refused_field(field: &str, message: String) -> Problem {
    Problem { code: ProblemCode::Refused, ..Problem::with_field(field, message) }
}

/// Returns the name of a job: the requested one, or that of the program.
fn name_of(submission: &Submission) -> String {
    let program = || {
        let program = submission.command.first().filter(|_| submission.script.is_none());
        program.map_or("script", |program| program.rsplit('/').next().unwrap_or(program)).to_owned()
    };
    submission.name.clone().unwrap_or_else(program)
}

fn refused(effects: &[(i64, Effect)], number: i64) -> Option<Problem> {
    effects.iter().find_map(|(of, effect)| match effect {
        Effect::Refused { why, .. } if *of == number => {
            Some(Problem::new(ProblemCode::Refused, refusal_message(*why)))
        }
        _ => None,
    })
}

impl Record {
    /// Returns the window that begins at `start`.
    pub(crate) fn window(&self, now: Now, start: Time) -> Window {
        Window { start: now.wall_at(start), end: now.wall_at(start + Span::from_ticks(self.time)) }
    }
}
