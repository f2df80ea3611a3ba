//! The request of a launch, and the specification of an attempt that follows from it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::Duration;

use miserly_api::model::{self, OutputNames, Submission};
use miserly_launch::{
    AttemptSpec, BootTime, CriticalPriority, EarlySignal, IdleRule, Interaction, MachineClock as _,
    OutputFile, ResizeNotice, ResourceLimits, RunMode,
};
use serde::{Deserialize, Serialize};

use crate::gpus::indexes;
use crate::seal::Issue;
use crate::used_seals::SealUse;
use crate::{AttemptId, JobGroups};

/// The longest duration in a request: a hundred years.
const LONGEST: Duration = Duration::from_hours(100 * 366 * 24);

/// The request of a launch.
///
/// The submission defines the command: program, script, folder, environment, outputs, umask and name. The other fields are
/// numbers and queues, and choose neither a program nor a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LaunchRequest {
    /// The attempt.
    pub attempt: AttemptId,
    /// The submission of the job.
    pub submission: Box<Submission>,
    /// The sealed user of the job, for an executor.
    pub credential: Option<String>,
    /// The queue of the job.
    pub queue: String,
    /// The queue of the configuration whose rules apply. For a reservation it is the queue whose pool has its resources.
    pub configured_queue: String,
    /// The number of the first job of its array, and its index.
    pub array: Option<(i64, u32)>,
    /// Whether its outputs follow those of an earlier attempt that ran.
    pub append: bool,
    /// The number of the run of the command, from 1.
    pub ordinal: u32,
    /// Whether the queue's program continues the job where it was written out, in place of its own command.
    #[serde(default)]
    pub restart: bool,
    /// Memory in kilobytes, not 0; `None` for no limit.
    pub memory: Option<u64>,
    /// Whether it has processors of its own, even when they idle.
    pub strict: bool,
    /// The GPUs of the job, by index; `None` where there are none for jobs.
    #[serde(default)]
    pub gpus: Option<Vec<u32>>,
    /// The soft limit of open files; `None` is that of the shim.
    pub files: Option<u64>,
    /// Processors and window.
    pub mode: RunMode,
    /// The grace period before the end.
    pub grace: Duration,
    /// The time after the window until other jobs may have the resources. It limits the epilog.
    pub cleanup: Duration,
    /// How long it stays stopped when no daemon runs.
    pub orphan_resume_delay: Duration,
    /// What happens to the job while it uses almost no processor time.
    #[serde(default)]
    pub idle: Option<IdleRule>,
    /// The running time of a time-sliced job.
    pub run_limit: Option<Duration>,
}

/// The most indexes of an array, as the engine accepts them.
const MOST_INDEXES: u64 = 10_000;

/// Variable of the job's folder, for scripts that know it from Slurm. A folder need not be UTF-8 text.
const SUBMIT_FOLDER: &str = "SLURM_SUBMIT_DIR";

/// The variables with the indexes of the GPUs of a job.
pub(crate) const GPU_INDEXES: [&str; 2] = ["MISERLY_GPUS", "SLURM_JOB_GPUS"];
/// The variables by which libraries choose among the GPUs that they can open. Without a value a program finds none.
pub(crate) const VISIBLE_GPUS: [&str; 2] = ["CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"];

/// The beginnings of the names of variables that only jobs of arrays have.
const ARRAY_PREFIXES: [&str; 2] = ["MISERLY_ARRAY_", "SLURM_ARRAY_"];

/// A number in a request that cannot be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}; nothing was launched")]
pub(crate) struct InvalidRequest(String);

impl LaunchRequest {
    /// Checks the numbers of the request against a machine with these processors.
    pub(crate) fn check(&self, online: &[u32]) -> Result<(), InvalidRequest> {
        let invalid = |text: String| Err(InvalidRequest(text));
        if !self.attempt.is_valid() || self.array.is_some_and(|(first, _)| first < 1) {
            return invalid(format!("there is no attempt {}.{}", self.attempt.job, self.attempt.nth));
        }
        if self.memory == Some(0) {
            return invalid("no job has 0 B of memory".to_owned());
        }
        // A program of root gets the name of the queue.
        if self.queue != self.configured_queue && !model::is_plain_name(&self.queue) {
            return invalid(format!("there is no queue {:?}", self.queue));
        }
        let planned = self.mode.window().map_or(&[][..], |window| &window.cpus);
        if let Some(cpu) = self.mode.cpus().iter().chain(planned).find(|cpu| !online.contains(cpu)) {
            return invalid(format!("processor {cpu} is not one of this machine"));
        }
        if self.mode.window().is_some_and(|window| window.start > window.end) {
            return invalid("the window ends before its start".to_owned());
        }
        let idle = self.idle.map(|rule| rule.after);
        let durations =
            [Some(self.grace), Some(self.cleanup), Some(self.orphan_resume_delay), self.run_limit, idle];
        match durations.into_iter().flatten().find(|duration| *duration > LONGEST) {
            Some(duration) => invalid(format!("{duration:?} is too long")),
            None => Ok(()),
        }
    }

    /// Checks that queue, memory and index are those of the submission, which its user has sealed.
    pub(crate) fn check_placement(&self) -> Result<(), InvalidRequest> {
        let submission = &self.submission;
        if submission.queue.as_ref().is_some_and(|queue| *queue != self.queue) {
            return Err(InvalidRequest(format!("its user did not submit it to queue {:?}", self.queue)));
        }
        let gpus = self.gpus.as_ref().map_or(0, Vec::len) as u64;
        if gpus > submission.gpu_count() {
            return Err(InvalidRequest("its user did not request so many GPUs".to_owned()));
        }
        let asked = submission.memory.filter(|bytes| *bytes > 0).map(|bytes| bytes.div_ceil(1024));
        if asked.is_some_and(|kilobytes| self.memory.is_none_or(|memory| memory > kilobytes.max(4))) {
            return Err(InvalidRequest("its user did not request so much memory".to_owned()));
        }
        let array = submission.array.as_ref().filter(|array| array.count() <= MOST_INDEXES);
        let is_member = match (self.array, array) {
            (None, None) => true,
            (Some((_, index)), Some(array)) => array.indexes().contains(&index),
            _ => false,
        };
        if !is_member {
            return Err(InvalidRequest("its user did not submit such a job of an array".to_owned()));
        }
        Ok(())
    }

    /// Returns the use of a seal by this launch.
    pub(crate) fn seal_use(&self, issue: Issue) -> SealUse {
        SealUse {
            serial: issue.number(),
            index: self.array.map_or(0, |(_, index)| index),
            issued: issue.at,
            may_retry: self.submission.retry.is_some(),
        }
    }

    /// Returns the specification of the attempt as the user of its shim. `socket` is the path of the daemon's socket.
    pub(crate) fn spec(&self, socket: &Path, groups: &JobGroups) -> AttemptSpec {
        let submission = &self.submission;
        let name = submission.job_name();
        let names = OutputNames { job: self.attempt.job, array: self.array, name: &name };
        let file = |path| OutputFile { path, append: self.append };
        AttemptSpec {
            job: self.attempt.job.unsigned_abs(),
            attempt: self.attempt.nth,
            argv: submission.command.iter().map(OsString::from).collect(),
            script: submission.script.clone(),
            cwd: submission.directory.clone(),
            env: self.environment(&name, socket, groups),
            stdin: names.input(submission),
            interaction: submission.interaction.map(interaction),
            stdout: file(names.output(submission)),
            stderr: submission.error.is_some().then(|| file(names.error(submission))),
            umask: submission.umask,
            limits: ResourceLimits {
                memory: self.memory.map(|kilobytes| kilobytes.saturating_mul(1024)),
                files: self.files,
                processes: None,
            },
            mode: self.mode.clone(),
            critical_priority: CriticalPriority::Off,
            grace: self.grace,
            orphan_resume_delay: self.orphan_resume_delay,
            run_limit: self.run_limit,
            idle: self.idle,
            early_signal: submission.signal.map(early_signal),
            resize_notice: self.resize_notice(),
            cgroup: groups.spec(self.memory, submission.cpus, self.strict),
            user: None,
            private_folders: None,
            queue_programs: None,
        }
    }

    /// Returns how the job learns that its processors have changed, without the file; `None` if it is not resizable.
    pub fn resize_notice(&self) -> Option<ResizeNotice> {
        let Submission { resizable, resize_signal, .. } = &*self.submission;
        resizable.map(|_| ResizeNotice {
            file: false,
            signal: resize_signal.map(|request| request.signal.number()),
            main_only: resize_signal.is_some_and(|request| request.main),
        })
    }

    /// Returns the environment of the job: that of its submission, and variables that describe the job. Some have the names
    /// that scripts know from Slurm, too.
    fn environment(&self, job_name: &str, socket: &Path, groups: &JobGroups) -> Vec<(OsString, OsString)> {
        let mut environment = self.submission.environment.clone();
        // A job may be submitted by a job of an array.
        environment.retain(|name, _| !ARRAY_PREFIXES.iter().any(|prefix| name.starts_with(prefix)));
        // A job may be submitted by a job of Slurm.
        environment.remove(SUBMIT_FOLDER);
        let mut set = |names: &[&str], value: String| {
            for name in names {
                environment.insert((*name).to_owned(), value.clone());
            }
        };
        let cpus = self.submission.cpus;
        let tasks = self.submission.tasks.unwrap_or(1).max(1);
        set(&["MISERLY_JOB_ID", "SLURM_JOB_ID", "SLURM_JOBID"], self.attempt.job.to_string());
        set(&["MISERLY_JOB_NAME", "SLURM_JOB_NAME"], job_name.to_owned());
        set(&["MISERLY_CPUS", "SLURM_CPUS_ON_NODE", "SLURM_JOB_CPUS_PER_NODE"], cpus.to_string());
        set(&["MISERLY_TASKS"], tasks.to_string());
        // As in Slurm: programs take its presence for a start by srun.
        if self.submission.tasks.is_some() {
            set(&["SLURM_NTASKS", "SLURM_NPROCS"], tasks.to_string());
        }
        set(&["SLURM_CPUS_PER_TASK"], (cpus / tasks).max(1).to_string());
        set(&["MISERLY_QUEUE", "SLURM_JOB_PARTITION"], self.queue.clone());
        set(&["MISERLY_ATTEMPT"], self.ordinal.to_string());
        // Slurm sets it in a job that was requeued only.
        if let Some(restarts) = self.ordinal.checked_sub(1).filter(|restarts| *restarts > 0) {
            set(&["SLURM_RESTART_COUNT"], restarts.to_string());
        }
        set(&["MISERLY_SOCKET"], socket.to_string_lossy().into_owned());
        if let Some(gpus) = &self.gpus {
            set(&GPU_INDEXES, indexes(gpus));
            set(&VISIBLE_GPUS, groups.visible_gpus(gpus));
            set(&["SLURM_GPUS_ON_NODE"], gpus.len().to_string());
        }
        if let Some((first, index)) = self.array {
            set(&["MISERLY_ARRAY_ID", "SLURM_ARRAY_JOB_ID"], first.to_string());
            let names = ["MISERLY_ARRAY_INDEX", "MISERLY_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_ID"];
            set(&names, index.to_string());
        }
        if let Some(array) = self.submission.array.as_ref().filter(|array| array.count() <= MOST_INDEXES) {
            let indexes = array.indexes();
            let [least, most] =
                [indexes.first(), indexes.last()].map(|index| index.copied().unwrap_or_default());
            set(&["MISERLY_ARRAY_COUNT", "SLURM_ARRAY_TASK_COUNT"], indexes.len().to_string());
            set(&["MISERLY_ARRAY_MIN", "SLURM_ARRAY_TASK_MIN"], least.to_string());
            set(&["MISERLY_ARRAY_MAX", "SLURM_ARRAY_TASK_MAX"], most.to_string());
            set(&["SLURM_ARRAY_TASK_STEP"], array.step.to_string());
        }
        let raw = self.submission.environment_bytes.iter();
        let raw =
            raw.map(|raw| (OsString::from_vec(raw.name.clone()), OsString::from_vec(raw.value.clone())));
        // Of two variables of the same name the later one counts.
        let folder = (SUBMIT_FOLDER.into(), self.submission.directory.clone().into_os_string());
        let described = environment.into_iter().map(|(name, value)| (name.into(), value.into()));
        raw.chain(described).chain([folder]).collect()
    }
}

fn interaction(of_submission: model::Interaction) -> Interaction {
    match of_submission {
        model::Interaction::Stdin => Interaction::Stdin,
        model::Interaction::Terminal { rows, columns } => Interaction::Terminal { rows, columns },
    }
}

/// Returns the instant that is a duration from now, at most [`LONGEST`].
pub(crate) fn until(wait: Duration) -> BootTime {
    BootTime::now().after(wait.min(LONGEST))
}

/// Returns the early signal of a submission for its shim.
fn early_signal(signal: model::EarlySignal) -> EarlySignal {
    let before = Duration::try_from_secs_f64(signal.before).unwrap_or_default();
    EarlySignal { signal: signal.signal.number(), main_only: signal.main, before }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::PathBuf;

    use miserly_launch::{ReservedWindow, usable_cpus};

    use super::*;

    /// Returns the launch of `true` as the first attempt of job 1.
    pub(crate) fn request() -> LaunchRequest {
        LaunchRequest {
            attempt: AttemptId { job: 1, nth: 1 },
            submission: Box::new(Submission {
                command: vec!["true".into()],
                directory: "/".into(),
                cpus: 1,
                ..Submission::default()
            }),
            credential: None,
            queue: "queue".into(),
            configured_queue: "queue".into(),
            array: None,
            append: false,
            ordinal: 1,
            restart: false,
            memory: None,
            strict: false,
            gpus: None,
            files: None,
            mode: RunMode::Reserved { cpus: usable_cpus().unwrap(), end: BootTime::MAX },
            grace: Duration::ZERO,
            cleanup: Duration::ZERO,
            orphan_resume_delay: Duration::ZERO,
            idle: None,
            run_limit: None,
        }
    }

    #[track_caller]
    fn invalid(request: &LaunchRequest, says: &str) {
        let problem = request.check(&usable_cpus().unwrap()).unwrap_err().to_string();
        assert!(problem.contains(says), "{problem}");
    }

    #[test]
    fn numbers_that_cannot_be_right_are_refused() {
        request().check(&usable_cpus().unwrap()).unwrap();
        let attempt = |job, nth| LaunchRequest { attempt: AttemptId { job, nth }, ..request() };
        invalid(&attempt(0, 1), "no attempt 0.1");
        invalid(&attempt(-1, 1), "no attempt -1.1");
        invalid(&attempt(1, 0), "no attempt 1.0");
        invalid(&LaunchRequest { array: Some((0, 1)), ..request() }, "no attempt");
        invalid(&LaunchRequest { memory: Some(0), ..request() }, "0 B of memory");
        let mode = |cpus, window| RunMode::Opportunistic { cpus, window };
        let strange = 1_000_000;
        invalid(&LaunchRequest { mode: mode(vec![strange], None), ..request() }, "processor 1000000");
        let window = |start, end, cpus| Some(ReservedWindow { start, end, cpus, after: None });
        let cpus = usable_cpus().unwrap();
        let planned = window(BootTime(1), BootTime(2), vec![strange]);
        invalid(&LaunchRequest { mode: mode(cpus.clone(), planned), ..request() }, "processor 1000000");
        let planned = window(BootTime(2), BootTime(1), cpus.clone());
        invalid(&LaunchRequest { mode: mode(cpus, planned), ..request() }, "ends before its start");
        invalid(&LaunchRequest { grace: Duration::MAX, ..request() }, "too long");
        invalid(&LaunchRequest { run_limit: Some(Duration::MAX), ..request() }, "too long");
    }

    #[test]
    fn queue_memory_and_index_are_those_that_the_user_sealed() {
        let mut sealed = LaunchRequest { memory: Some(2048), ..request() };
        sealed.submission.queue = Some("queue".into());
        sealed.submission.memory = Some(2 << 20);
        sealed.check_placement().unwrap();
        let refused = |request: LaunchRequest, says: &str| {
            let problem = request.check_placement().unwrap_err().to_string();
            assert!(problem.contains(says), "{problem}");
        };
        refused(LaunchRequest { queue: "other".into(), ..sealed.clone() }, "did not submit it to queue");
        for memory in [None, Some(2049)] {
            refused(LaunchRequest { memory, ..sealed.clone() }, "so much memory");
        }
        // Each index would be another use of the seal.
        refused(LaunchRequest { array: Some((1, 5)), ..sealed.clone() }, "such a job of an array");
        let mut array = LaunchRequest { array: Some((1, 5)), ..sealed };
        array.submission.array = Some(model::Array::range(1, 5, 2));
        array.check_placement().unwrap();
        for other in [None, Some((1, 4)), Some((1, 7))] {
            refused(LaunchRequest { array: other, ..array.clone() }, "such a job of an array");
        }
    }

    #[test]
    fn the_job_of_an_array_has_its_names() {
        let mut request = LaunchRequest { array: Some((3, 7)), append: true, memory: Some(2), ..request() };
        request.attempt = AttemptId { job: 5, nth: 2 };
        request.ordinal = 2;
        request.submission.name = Some("a/b".into());
        request.submission.error = Some("e%x-%j".into());
        request.submission.array =
            serde_json::from_str(r#"{"first": 7, "last": 9, "step": 2, "more": [{"first": 1, "last": 1}]}"#)
                .unwrap();
        (request.submission.cpus, request.submission.tasks) = (8, Some(4));
        let spec = request.spec(Path::new("/s"), &JobGroups::none());
        assert_eq!(spec.stdout, OutputFile { path: "/miserly-3_7.out".into(), append: true });
        assert_eq!(spec.stderr, Some(OutputFile { path: "/ea_b-5".into(), append: true }));
        assert_eq!(spec.limits.memory, Some(2048));
        let value =
            |name: &str| spec.env.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone());
        for (name, expect) in [
            ("MISERLY_JOB_ID", "5"),
            ("MISERLY_JOB_NAME", "a/b"),
            ("MISERLY_ATTEMPT", "2"),
            ("SLURM_ARRAY_JOB_ID", "3"),
            ("SLURM_ARRAY_TASK_ID", "7"),
            ("MISERLY_ARRAY_TASK_ID", "7"),
            ("MISERLY_ARRAY_INDEX", "7"),
            ("SLURM_ARRAY_TASK_COUNT", "3"),
            ("MISERLY_ARRAY_MIN", "1"),
            ("SLURM_ARRAY_TASK_MAX", "9"),
            ("SLURM_CPUS_ON_NODE", "8"),
            ("SLURM_CPUS_PER_TASK", "2"),
            ("SLURM_NTASKS", "4"),
            ("SLURM_JOB_PARTITION", "queue"),
            ("SLURM_SUBMIT_DIR", "/"),
            ("MISERLY_SOCKET", "/s"),
        ] {
            assert_eq!(value(name), Some(expect.into()), "{name}");
        }
    }

    #[test]
    fn a_folder_need_not_be_text() {
        let folder = PathBuf::from(OsString::from_vec(b"/data/\xff".to_vec()));
        let mut request = request();
        request.submission.directory.clone_from(&folder);
        request.submission.output = Some(OsString::from_vec(b"\xfe-%j%%".to_vec()).into());
        request.submission.environment = [(SUBMIT_FOLDER.to_owned(), "/of/slurm".to_owned())].into();
        let text = serde_json::to_string(&request).unwrap();
        let spec =
            serde_json::from_str::<LaunchRequest>(&text).unwrap().spec(Path::new("/s"), &JobGroups::none());
        let output = PathBuf::from(OsString::from_vec(b"/data/\xff/\xfe-1%".to_vec()));
        assert_eq!((&spec.cwd, &spec.stdout.path), (&folder, &output));
        let folders: Vec<_> = spec.env.iter().filter(|(name, _)| name == SUBMIT_FOLDER).collect();
        assert_eq!(folders, [&(SUBMIT_FOLDER.into(), folder.into_os_string())]);
    }

    #[test]
    fn a_job_that_a_job_of_an_array_submitted_is_in_no_array() {
        let mut request = request();
        let inherited =
            ["SLURM_ARRAY_TASK_ID", "MISERLY_ARRAY_INDEX", "MISERLY_ARRAY_TASK_ID", "SLURM_TMPDIR"];
        request.submission.environment = inherited.map(|name| (name.into(), "7".into())).into();
        let spec = request.spec(Path::new("/s"), &JobGroups::none());
        let names: Vec<_> = spec.env.iter().filter(|(_, value)| value == "7").map(|(name, _)| name).collect();
        assert_eq!(names, ["SLURM_TMPDIR"]);
    }
}
