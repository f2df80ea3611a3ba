//! Submissions.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;

use miserly_core::{Effect, Kind, Request, Resources, Round, Span, System, Terms, Time};
use miserly_launch::{CommandSpec, SpecError};
use miserly_units::duration;

use super::asks::Asked;
use super::effects::refusal;
use super::{Engine, EngineError, Hands, Queue, Record, Setup, Stands, problem};
use crate::clock::Now;
use crate::model::{Accepted, Problem, ProblemCode, Quote, Submission, Submitted, Window};
use crate::service::{Caller, Reply};
use crate::users;

/// More jobs than anybody means in one array.
const ARRAY_MOST: usize = 10_000;

/// The bytes of an array's jobs together.
const ARRAY_BYTES: usize = 256 << 20;

impl<H: Hands> Engine<H> {
    pub(super) fn submit(&mut self, now: Now, caller: Caller, submission: &Submission) -> Asked {
        if self.draining {
            return Ok(Err(problem(
                ProblemCode::Unavailable,
                "the daemon accepts no new jobs (miserly drain --undo)",
            )));
        }
        // What is due is played first: a job to come after may be over then.
        let at = self.fresh(now)?;
        let records = match self.records_of(now, caller, submission) {
            Ok(records) => records,
            Err(problem) => return Ok(Err(problem)),
        };
        // All of an array or nothing: tried first where some could be refused.
        if records.len() > 1
            && let Err(problem) = self.tried(now, at, &records)?
        {
            return Ok(Err(problem));
        }
        let numbers: Vec<i64> = records.iter().map(|record| record.number).collect();
        self.next_number += i64::try_from(records.len()).unwrap_or(i64::MAX);
        let mut round = Round::default();
        for record in records {
            self.enter(at, record, &mut round);
        }
        let effects = if round.is_empty() { vec![] } else { self.play(now, at, round)? };
        if let [only] = numbers[..]
            && let Some(why) = refused(&effects, only)
        {
            // It was never accepted: nothing of it stays but its line in the journal.
            self.turn.over.remove(&only);
            self.turn.touched.remove(&only);
            return Ok(Err(why));
        }
        let jobs = numbers.into_iter().filter_map(|number| self.accepted(now, number)).collect();
        Ok(Ok(Reply::Submitted(Submitted { jobs })))
    }

    /// What it would be promised, without a commitment.
    pub(super) fn quote(&mut self, now: Now, caller: Caller, submission: &Submission) -> Asked {
        let at = self.fresh(now)?;
        let records = match self.records_of(now, caller, submission) {
            Ok(records) => records,
            Err(problem) => return Ok(Err(problem)),
        };
        let tried = self.tried(now, at, &records)?;
        Ok(tried.map(|windows| Reply::Quote(Quote { windows })))
    }

    /// Enters a job that is accepted.
    pub(super) fn enter(&mut self, at: Time, record: Record, round: &mut Round) {
        let number = record.number;
        let free = !matches!(record.stands, Stands::Back { held: true });
        self.turn.touched.insert(number);
        self.records.insert(number, record);
        if !free {
            return;
        }
        if self.enters_at_once(&self.records[&number], at) {
            self.submit_record(at, number, round);
        } else {
            self.tied.insert(number);
        }
    }

    /// Whether a job that is not held is its policy's to know now: its begin has come, or is for the policy to heed.
    fn enters_at_once(&self, record: &Record, at: Time) -> bool {
        let knows = self.setup.queues.iter().any(|q| q.name == record.queue && q.knows_begin());
        let due = record.begin_alone().is_some_and(|begin| begin <= at || knows);
        due || (!record.after.is_empty() && self.knows_ends_before(record, at))
    }

    fn accepted(&self, now: Now, number: i64) -> Option<Accepted> {
        let record = self.records.get(&number)?;
        let promise = record.entry.as_ref().and_then(|entry| entry.entry().promise);
        Some(Accepted {
            number,
            index: record.array.map(|(_, index)| index),
            promise: promise.map(|promise| record.window(now, promise.best)),
            started: self.running.contains(&number),
        })
    }

    /// What would come of these jobs in their queue as it is now.
    fn tried(
        &self,
        now: Now,
        at: Time,
        records: &[Record],
    ) -> Result<Result<Vec<Option<Window>>, Problem>, EngineError> {
        let Some(queue) = self.setup.queues.iter().position(|queue| queue.name == records[0].queue) else {
            return Ok(Ok(vec![]));
        };
        // What they have in common says whether they would be kept back, and none of them has a window then.
        if !self.enters_at_once(&records[0], at) {
            return Ok(Ok(vec![None; records.len()]));
        }
        let mut trial = self.trial(queue);
        let mut round = Round::default();
        let base = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        for (handle, record) in (base..).zip(records) {
            let begin = self.begin_of(record, at);
            let request = record.request(&self.setup, 0, at, begin);
            round.submitted.push(miserly_core::Submission { job: miserly_core::JobId(handle), request });
        }
        let mut effects = vec![];
        trial.round(at, &mut round, &mut effects)?;
        let numbered = |effect: Effect| {
            let nth = usize::try_from(effect.job().0.checked_sub(base)?).ok()?;
            Some((records.get(nth)?.number, effect))
        };
        let effects: Vec<_> = effects.into_iter().filter_map(numbered).collect();
        if let Some(problem) = records.iter().find_map(|record| refused(&effects, record.number)) {
            return Ok(Err(problem));
        }
        let ledger = trial.queues()[0].ledger();
        let window = |(handle, record): (u32, &Record)| {
            let promise = ledger.get(miserly_core::JobId(handle))?.promise?;
            Some(record.window(now, promise.best))
        };
        Ok(Ok((base..).zip(records).map(window).collect()))
    }

    /// A queue as it is now, to try something on.
    pub(super) fn trial(&self, queue: usize) -> System {
        let ledger = self.system.queues()[queue].ledger().clone();
        System::new(vec![self.setup.queues[queue].driver_over(ledger)])
    }

    /// The jobs that a submission asks for, checked.
    fn records_of(&self, now: Now, caller: Caller, submission: &Submission) -> Result<Vec<Record>, Problem> {
        self.may_submit(caller)?;
        let queue = self.queue_for(caller, submission.queue.as_deref())?;
        let (time, memory) = check(queue, submission)?;
        let indexes = indexes_of(submission)?;
        for other in &submission.after {
            if *other >= self.next_number || *other < 1 {
                return Err(Problem::with_field("after", format!("there is no job {other} to wait for")));
            }
        }
        let after: Vec<i64> =
            submission.after.iter().copied().filter(|other| self.records.contains_key(other)).collect();
        let shared = Arc::new(submission.clone());
        let first = self.next_number;
        let record = |(number, index): (i64, Option<u32>)| Record {
            number,
            array: index.map(|index| (first, index)),
            uid: caller.uid,
            name: name_of(submission),
            queue: queue.name.clone(),
            submitted: now.wall.as_microsecond(),
            time: time.ticks(),
            handover: None,
            memory,
            begin: submission.begin.map(|at| now.ticks_at(at).ticks()),
            deadline: submission.deadline.map(|at| now.ticks_at(at).ticks()),
            after: after.clone(),
            stands: Stands::Back { held: submission.hold },
            entry: None,
            run: None,
            attempts: 0,
            started: None,
            away: None,
            told: vec![],
            late: None,
            submission: Arc::clone(&shared),
        };
        Ok((first..).zip(indexes).map(record).collect())
    }

    /// Whether jobs of this user run as this user: the launcher has no rights to run them as anybody but the daemon's.
    fn may_submit(&self, caller: Caller) -> Result<(), Problem> {
        if caller.uid == self.owner {
            return Ok(());
        }
        let told = format!(
            "this daemon runs jobs as {} only, and you are {}: have a daemon of your own",
            users::name(self.owner),
            users::name(caller.uid)
        );
        Err(problem(ProblemCode::Forbidden, told))
    }

    fn queue_for(&self, caller: Caller, name: Option<&str>) -> Result<&Queue, Problem> {
        let first = self.setup.queues.first().map_or("", |queue| &queue.name);
        let queue = self.queue_called(name.unwrap_or(first))?;
        if !queue.users.is_empty() && caller.uid != 0 && !queue.users.contains(&caller.uid) {
            let told = format!("queue {} is not yours to use", queue.name);
            return Err(Problem { code: ProblemCode::Forbidden, ..Problem::with_field("queue", told) });
        }
        Ok(queue)
    }

    /// The queue of that name.
    pub(super) fn queue_called(&self, name: &str) -> Result<&Queue, Problem> {
        let known =
            || self.setup.queues.iter().map(|queue| queue.name.as_str()).collect::<Vec<_>>().join(", ");
        self.setup.queues.iter().find(|queue| queue.name == name).ok_or_else(|| Problem {
            code: ProblemCode::NotFound,
            ..Problem::with_field("queue", format!("there is no such queue; there is {}", known()))
        })
    }
}

/// The time and the memory, kilobytes, that a submission asks for, when all of it makes sense.
fn check(queue: &Queue, submission: &Submission) -> Result<(Span, u64), Problem> {
    check_command(submission)?;
    let time = time_of(queue, submission.time)?;
    let most = queue.pool.most();
    if submission.cpus == 0 {
        return Err(Problem::with_field("cpus", "a job has at least one cpu"));
    }
    if submission.cpus > most.cpus_count().get() {
        let told =
            format!("{} cpus: queue {} has at most {}", submission.cpus, queue.name, most.cpus_count());
        return Err(refused_field("cpus", told));
    }
    let memory = submission.memory.map_or(queue.default_memory, |bytes| bytes.div_ceil(1024));
    let most_memory = most.get(Kind::Memory);
    if most_memory > 0 && memory > most_memory {
        let shown = |kilobytes: u64| miserly_units::memory(kilobytes.saturating_mul(1024));
        let told =
            format!("{} of memory: queue {} has at most {}", shown(memory), queue.name, shown(most_memory));
        return Err(refused_field("memory", told));
    }
    Ok((time, memory))
}

/// The indexes of the jobs that a submission is for; one without, if it is for no array.
fn indexes_of(submission: &Submission) -> Result<Vec<Option<u32>>, Problem> {
    let Some(array) = submission.array else { return Ok(vec![None]) };
    let indexes: Vec<Option<u32>> = array.indexes().take(ARRAY_MOST + 1).map(Some).collect();
    if indexes.is_empty() || indexes.len() > ARRAY_MOST {
        let told = format!("an array has 1 to {ARRAY_MOST} jobs");
        return Err(Problem::with_field("array", told));
    }
    // Each job of it has its own row.
    let bytes = || serde_json::to_string(submission).map_or(0, |text| text.len());
    if indexes.len() > 1 && bytes().saturating_mul(indexes.len()) > ARRAY_BYTES {
        let told = "it is too large for so many jobs: have them run a script that is in a file";
        return Err(Problem::with_field("array", told));
    }
    Ok(indexes)
}

/// What the launcher would not run is refused here, before anything is promised.
fn check_command(submission: &Submission) -> Result<(), Problem> {
    let name = name_of(submission);
    let variables = submission.environment.iter().map(|(name, value)| (OsStr::new(name), OsStr::new(value)));
    let draft = CommandSpec {
        argv: submission.command.iter().map(OsStr::new).collect(),
        has_script: submission.script.is_some(),
        cwd: &submission.directory,
        // Its name is told in its environment.
        env: variables.chain([(OsStr::new("MISERLY_JOB_NAME"), OsStr::new(&name))]).collect(),
        outputs: [&submission.output, &submission.error]
            .into_iter()
            .flatten()
            .map(PathBuf::as_path)
            .collect(),
        umask: submission.umask,
    };
    let field = |error: &SpecError| match error {
        SpecError::Relative(_) | SpecError::ZeroByte { what: "the working directory", .. } => "directory",
        SpecError::Variable(_) | SpecError::ZeroByte { what: "in the environment,", .. } => "environment",
        SpecError::ZeroByte { what: "the output file", .. } => "output",
        SpecError::Range { .. } => "umask",
        _ => "command",
    };
    draft.check().map_err(|error| Problem::with_field(field(&error), error.to_string()))
}

fn time_of(queue: &Queue, secs: f64) -> Result<Span, Problem> {
    let most = most_time(queue);
    let Some(asked) = span_of(secs) else {
        return Err(Problem::with_field("time", "the time is a number of seconds above 0"));
    };
    let time = match (asked, queue.default_time) {
        (Span::ZERO, Some(time)) => time,
        (Span::ZERO, None) => {
            return Err(Problem::with_field("time", "say for how long it may run, such as --time 2h"));
        }
        (asked, _) => asked,
    };
    if time > most {
        let told = format!("{}: queue {} allows at most {}", duration(time), queue.name, duration(most));
        return Err(refused_field("time", told));
    }
    Ok(time)
}

/// For how long a job of the queue may run at most: not for so long that sums of times would pass the end of time.
pub(super) fn most_time(queue: &Queue) -> Span {
    queue.most_time.unwrap_or(Span::from_ticks(i64::MAX / 8))
}

/// So many seconds, to the tick; nothing, if they are no length of time.
pub(super) fn span_of(secs: f64) -> Option<Span> {
    let micros = std::time::Duration::try_from_secs_f64(secs).ok()?.as_micros();
    i64::try_from(micros).ok().map(Span::from_ticks)
}

fn refused_field(field: &str, told: String) -> Problem {
    Problem { code: ProblemCode::Refused, ..Problem::with_field(field, told) }
}

/// What people call it: what they say, or the name of the program.
fn name_of(submission: &Submission) -> String {
    let program = || {
        let program = submission.command.first().filter(|_| submission.script.is_none());
        program.map_or("script", |program| program.rsplit('/').next().unwrap_or(program)).to_owned()
    };
    submission.name.clone().unwrap_or_else(program)
}

fn refused(effects: &[(i64, Effect)], number: i64) -> Option<Problem> {
    effects.iter().find_map(|(of, effect)| match effect {
        Effect::Refused { why, .. } if *of == number => Some(problem(ProblemCode::Refused, refusal(*why))),
        _ => None,
    })
}

impl Record {
    /// What is asked of the policy.
    pub(super) fn request(&self, setup: &Setup, queue: usize, at: Time, begin: Option<Time>) -> Request {
        let demand = Resources::cpus(self.submission.cpus).with(Kind::Memory, self.memory);
        let terms = Terms {
            begin,
            // Its resources are kept a little longer than that, but it is over by then.
            deadline: self.deadline.map(|at| Time::from_ticks(at) + self.handover(setup.handover)),
            in_window_only: self.submission.no_opportunistic || setup.early.is_none(),
            restartable: self.submission.restartable,
        };
        let user = Some(self.uid);
        let queue = u32::try_from(queue).ok();
        Request { user, queue, terms, ..Request::new(self.number, at, self.planned(setup.handover), demand) }
    }

    /// The window that begins then.
    pub(super) fn window(&self, now: Now, start: Time) -> Window {
        Window { start: now.wall_at(start), end: now.wall_at(start + Span::from_ticks(self.time)) }
    }
}
