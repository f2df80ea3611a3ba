//! Checks of submissions, and the records of their jobs.

use std::sync::Arc;

use miserly_api::model::{Problem, ProblemCode, Retry, Submission};
use miserly_core::{Kind, Span, Time};
use miserly_units::duration;

use crate::dependency::conditions::Waits;
use crate::request::problems::refused_field;
use crate::submission::size;
use crate::submission::size::ARRAY_MOST;
use crate::{ArrayMember, Caller, EndedJobs, JobMemory, JobState, Now, Queue, Record, Snapshot};

/// The maximum size of an array's jobs in the journal, in bytes.
const ARRAY_BYTES: usize = 256 << 20;

impl Snapshot {
    /// Checks a submission and returns the records of its jobs.
    ///
    /// `launchable` is [`Launcher::check`](crate::Launcher::check), and `ended` has the finished jobs.
    pub(crate) fn records_of(
        &self,
        now: Now,
        caller: &Caller,
        submission: &Submission,
        launchable: &dyn Fn(&Submission, &str) -> Result<(), Problem>,
        ended: &dyn EndedJobs,
    ) -> Result<Vec<Record>, Problem> {
        self.info.check_identity(caller)?;
        let queue = self.queue_for(caller, submission.queue.as_deref())?;
        self.info.may_submit(caller)?;
        self.stopped.check(&queue.name)?;
        size::check(submission)?;
        check_script(submission)?;
        let name = submission.job_name();
        launchable(submission, &name)?;
        let (time, memory) = check(queue, submission)?;
        check_gpus(queue, submission)?;
        self.check_deadline(queue, submission)?;
        check_overrun(queue, submission)?;
        let longest_wait = longest_wait(submission)?;
        let begin = submission.begin.map(|at| now.ticks_at(at));
        let indexes = indexes_of(submission)?;
        let required = self.required(caller, submission, indexes.len(), ended)?;
        let shared = Arc::new(submission.clone());
        let (name, in_queue): (Arc<str>, Arc<str>) = (name.into(), queue.name.as_str().into());
        let limits = self.setup.user_limits.tables_of(caller);
        let first = self.values.next_number();
        let state = if submission.hold { JobState::Held } else { JobState::Deferred };
        let record = |(number, index): (i64, Option<u32>)| {
            let Waits { after, ok, not_ok } = required.waits(index)?;
            Ok(Record {
                array: index.map(|index| ArrayMember { first, index }),
                uid: caller.uid,
                group: caller.first_group(),
                credential: caller.credential.clone(),
                name: Arc::clone(&name),
                queue: Arc::clone(&in_queue),
                limits: limits.clone(),
                submitted: now.wall,
                time,
                memory,
                begin,
                deadline: submission.deadline.map(|at| now.ticks_at(at)),
                start_by: longest_wait.map(|wait| wait_until(now.ticks, begin, wait)),
                after: after.into_iter().collect(),
                after_ok: ok.into_iter().collect(),
                after_not_ok: not_ok.into_iter().collect(),
                ..Record::new(number, state.clone(), Arc::clone(&shared))
            })
        };
        (first..).zip(indexes).map(record).collect()
    }

    /// Checks that the queue keeps deadlines, if the submission has one.
    pub(crate) fn check_deadline(&self, queue: &Queue, submission: &Submission) -> Result<(), Problem> {
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

    pub(crate) fn queue_for(&self, caller: &Caller, name: Option<&str>) -> Result<&Queue, Problem> {
        let first = self.setup.queues.first().map_or("", |queue| &queue.name);
        let queue = self.queue_called(name.unwrap_or(first))?;
        self.info.may_use(caller, queue)?;
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

/// Checks a submission against its queue. Returns its time limit and its memory.
pub(crate) fn check(queue: &Queue, submission: &Submission) -> Result<(Span, JobMemory), Problem> {
    let time = time_of(queue, submission.time)?;
    let most = queue.pool.most();
    if submission.cpus == 0 {
        return Err(Problem::with_field("cpus", "a job has at least one cpu"));
    }
    if submission.retry.as_ref().is_some_and(|retry| !(1..=Retry::MOST).contains(&retry.limit)) {
        let message = format!("a job runs again 1 to {} times", Retry::MOST);
        return Err(Problem::with_field("retry", message));
    }
    if submission.signal.is_some_and(|signal| span_from_secs(signal.before).is_none()) {
        let message = "the signal comes a number of seconds before the end, 0 or more";
        return Err(Problem::with_field("signal", message));
    }
    if submission.tasks.is_some_and(|tasks| tasks == 0 || tasks > submission.cpus) {
        return Err(Problem::with_field("tasks", "a job has 1 task to one for each of its cpus"));
    }
    if submission.resizable.is_some_and(|least| least == 0 || least > submission.cpus) {
        let message = format!("a resizable job has 1 processor at least, and {} at most", submission.cpus);
        return Err(Problem::with_field("resizable", message));
    }
    if submission.resizable.is_some() && !queue.policy.needs().resizing {
        let message = format!(
            "queue {} resizes no job: its policy is {}; submit it to a queue with eqspatial, or without resizable",
            queue.name, queue.policy
        );
        return Err(Problem::with_field("resizable", message));
    }
    if queue.policy.needs().swapping && !submission.restartable {
        let message = format!(
            "queue {} writes suspended jobs out, and one that is not written out begins anew: submit it with --restartable, \
             or to another queue",
            queue.name
        );
        return Err(refused_field("restartable", message));
    }
    if submission.resize_signal.is_some() && submission.resizable.is_none() {
        return Err(Problem::with_field(
            "resize_signal",
            "the job is not resizable, so it never gets the signal",
        ));
    }
    if submission.cpus > most.cpus_count().get() {
        let message =
            format!("{} cpus: queue {} has at most {}", submission.cpus, queue.name, most.cpus_count());
        return Err(refused_field("cpus", message));
    }
    let (gpus, most_gpus) = (submission.gpus.unwrap_or(0), most.get(Kind::Gpus));
    if gpus > most_gpus {
        let has = if most_gpus == 0 { "none".to_owned() } else { format!("at most {most_gpus}") };
        return Err(refused_field("gpus", format!("{gpus} GPUs: queue {} has {has}", queue.name)));
    }
    Ok((time, JobMemory::requested(queue, submission.memory)?))
}

/// Checks that the queue can give a job the GPUs that it requests.
pub(crate) fn check_gpus(queue: &Queue, submission: &Submission) -> Result<(), Problem> {
    let Submission { gpu_type, gpu_memory, .. } = submission;
    let field = gpu_type.as_ref().map(|_| "gpu_type").or(gpu_memory.map(|_| "gpu_memory"));
    if let Some(field) = field.filter(|_| submission.gpu_count() == 0) {
        return Err(refused_field(field, "the job requests no GPUs; give their number, too".to_owned()));
    }
    queue.device_demand(submission).map(drop)
}

/// Checks that a job of the queue can run on past its time limit, if the submission asks for that.
pub(crate) fn check_overrun(queue: &Queue, submission: &Submission) -> Result<(), Problem> {
    if !submission.overrun_if_idle || !queue.takes_processors() {
        return Ok(());
    }
    let message = format!(
        "queue {} takes running jobs off their processors (its policy is {}), so no place is idle; submit it without \
         overrun_if_idle, or to another queue",
        queue.name, queue.policy
    );
    Err(refused_field("overrun_if_idle", message))
}

/// Returns the latest start: the longest wait after the submission, or after a later earliest start.
pub(crate) fn wait_until(submitted: Time, begin: Option<Time>, wait: Span) -> Time {
    begin.map_or(submitted, |at| at.max(submitted)) + wait
}

/// Returns the longest wait of a submission.
pub(crate) fn longest_wait(submission: &Submission) -> Result<Option<Span>, Problem> {
    let wrong = || Problem::with_field("start_within", "the longest wait is a number of seconds, 0 or more");
    submission.start_within.map(|secs| span_from_secs(secs).ok_or_else(wrong)).transpose()
}

/// Returns the array indexes of the jobs of a submission; a single `None` without an array.
fn indexes_of(submission: &Submission) -> Result<Vec<Option<u32>>, Problem> {
    let Some(array) = &submission.array else { return Ok(vec![None]) };
    if array.ranges().any(|range| range.step == 0) {
        return Err(Problem::with_field("array", "the step of an array is at least 1"));
    }
    if array.limit == Some(0) {
        return Err(Problem::with_field("array", "at least one job of an array runs at a time"));
    }
    if array.ranges().any(|range| range.first > range.last) || array.count() > ARRAY_MOST as u64 {
        return Err(Problem::with_field("array", format!("an array has 1 to {ARRAY_MOST} jobs")));
    }
    let indexes: Vec<Option<u32>> = array.indexes().into_iter().map(Some).collect();
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
    let time = match (requested, queue.terms.default_time) {
        (Span::ZERO, Some(time)) => time,
        (Span::ZERO, None) => {
            let message = format!(
                "the time limit is missing, and queue {0} has no default; give --time, such as --time 2h, or a line \
                 `#MISERLY --time 2h` in the script. An administrator sets a default by `default-time = \"1h\"` for queue {0} in \
                 the configuration, and `miserly reload`",
                queue.name
            );
            return Err(Problem::with_field("time", message));
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
    queue.terms.most_time.unwrap_or(Span::from_ticks(i64::MAX / 8))
}

/// Returns a number of seconds as a span, if it is a valid duration.
pub(crate) fn span_from_secs(secs: f64) -> Option<Span> {
    let micros = std::time::Duration::try_from_secs_f64(secs).ok()?.as_micros();
    i64::try_from(micros).ok().map(Span::from_ticks)
}
