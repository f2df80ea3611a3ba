//! The tasks of `srun` inside a job: processes beside each other on the processors of the job.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, IsTerminal, Read, Write, stdin};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use miserly_api::client::{Client, ClientError};
use miserly_api::model::{BeginStepRequest, EndStepRequest, Exit, ProblemCode, program_name};
use nix::sys::signal::{SigHandler, SigSet, Signal, kill, killpg, signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, getsid};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::FdFlags;

use super::columns::cell_width;
use super::facts::stamp;
use super::jobs::own_uid;
use super::options::Given;
use super::pmi::Space;
use super::submission::{amount, export, user};
use super::times::{self, is_unlimited};
use super::{host, note_end_of_task};
use crate::commands::live::{AWAY, is_away};

/// The signals that are passed on to the tasks.
const PASSED: [Signal; 8] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
    Signal::SIGWINCH,
];

/// The tries to record the begin or the end of a step, each a second after the one before. The daemon may be away.
const TRIES: u32 = 10;

/// The time after a signal that ends the step until the tasks are killed; that of `scontrol show config`.
pub(super) const KILL_WAIT: Duration = Duration::from_secs(10);

/// The step: its job, its number, and the number of its tasks.
struct Step<'a> {
    given: &'a Given,
    job: &'a str,
    number: u64,
    tasks: u64,
    host: String,
    limit: Option<Duration>,
    mpi: Mpi,
}

/// How the tasks of a program of MPI find each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mpi {
    /// Not at all.
    None,
    /// By a socket of each task.
    Pmi,
    /// By the launcher of Open MPI, which starts the tasks.
    Mpirun,
}

/// The types of `--mpi`, as Slurm lists them.
pub(super) const MPI_TYPES: &str = "MPI plugin types are...\n\tnone\n\tpmi2\n\tpmix\n";

/// Sets the variables of a task that the launcher of Open MPI starts.
const AS_TASK: &str =
    "export SLURM_PROCID=$OMPI_COMM_WORLD_RANK SLURM_LOCALID=$OMPI_COMM_WORLD_LOCAL_RANK; exec \"$@\"";

/// A running task.
struct Task {
    nth: u64,
    child: Child,
    status: Option<ExitStatus>,
}

/// Runs the tasks of a step, and exits as the worst of them.
pub(super) fn run(given: &Given, job: &str) -> anyhow::Result<ExitCode> {
    let number = |text: String| text.parse::<u64>().ok().filter(|number| *number > 0);
    let variable = |name: &str| std::env::var(name).ok().and_then(number);
    let option = |long: &str| match given.value(long) {
        Some(text) => number(text.to_owned())
            .map(Some)
            .with_context(|| format!("Invalid numeric value \"{text}\" for --{long}.")),
        None => Ok(None),
    };
    if let Some(nodes) = option("nodes").unwrap_or(None).filter(|nodes| *nodes > 1) {
        bail!(
            "Unable to create step for job {job}: More nodes requested than permitted: {nodes}, and a job runs on one machine"
        );
    }
    let per_task = option("cpus-per-task")?;
    let tasks = option("ntasks")?.or(option("ntasks-per-node")?).or(variable("SLURM_NTASKS")).unwrap_or(1);
    let cpus = tasks.saturating_mul(per_task.unwrap_or(1));
    if let Some(most) = variable("MISERLY_CPUS").filter(|most| *most < cpus) {
        bail!(
            "Unable to create step for job {job}: More processors requested than permitted: {cpus}, and the job has {most}"
        );
    }
    given
        .value("export")
        .map(export)
        .transpose()
        .map_err(|message| anyhow::anyhow!("--export: {message}"))?;
    let (limit, mpi) = (limit(given)?, mpi(given)?);
    check_memory(given, job, cpus)?;
    let signals = block_signals().context("cannot read signals")?;
    // Without a number the tasks may use all processors of the job.
    let is_exact = per_task.is_some() || given.has("exact");
    let own = variable("MISERLY_CPUS").filter(|_| !is_exact).unwrap_or(cpus);
    let name = given.value("job-name").map(str::to_owned);
    let name = name.unwrap_or_else(|| program_name(&given.words[0].to_string_lossy()));
    let request = BeginStepRequest { name, tasks, cpus: own, limit: limit.map(|limit| limit.as_secs()) };
    let record = Recorded::begin(job, &request)?;
    let number = record.as_ref().map_or_else(|| std::process::id().into(), |record| record.step.into());
    let step = Step { given, job, number, tasks, host: host(), limit, mpi };
    let ended = step.run(&signals);
    if let Some(record) = record {
        record.end(*ended.as_ref().unwrap_or(&StepEnd { code: 1, ..StepEnd::default() }));
    }
    Ok(ended?.code())
}

/// Returns the time limit of a step; none is that of its job.
fn limit(given: &Given) -> anyhow::Result<Option<Duration>> {
    let text = given.value("time").filter(|text| !is_unlimited(text));
    let secs = text.map(times::limit).transpose().map_err(anyhow::Error::msg)?;
    Ok(secs.map(Duration::from_secs))
}

fn mpi(given: &Given) -> anyhow::Result<Mpi> {
    let variable = std::env::var("SLURM_MPI_TYPE").ok();
    match given.value("mpi").or(variable.as_deref()).unwrap_or("pmi2") {
        "none" => Ok(Mpi::None),
        "pmi2" => Ok(Mpi::Pmi),
        "openmpi" => Ok(Mpi::Mpirun),
        other if other.starts_with("pmix") => Ok(Mpi::Mpirun),
        other => bail!("Invalid MPI type '{other}', --mpi=list for acceptable types"),
    }
}

/// Checks that a step requests no more memory than its job has, for all tasks together.
fn check_memory(given: &Given, job: &str, cpus: u64) -> anyhow::Result<()> {
    let amount = |long| amount(given, long).map_err(anyhow::Error::msg);
    let of_cpus = amount("mem-per-cpu")?.map(|of_each| of_each.saturating_mul(cpus));
    let Some(wanted) = amount("mem")?.or(of_cpus).filter(|wanted| *wanted > 0) else { return Ok(()) };
    let Ok(view) = super::client().and_then(|client| Ok(client.job(job.parse()?)?)) else { return Ok(()) };
    if view.memory > 0 && wanted > view.memory {
        bail!("Unable to create step for job {job}: Memory required by task is not available");
    }
    if given.has("verbose") {
        note!("srun: the tasks may use all memory of their job");
    }
    Ok(())
}

/// The worst end of the tasks of a step.
#[derive(Clone, Copy, Default)]
struct StepEnd {
    code: u8,
    signal: Option<i32>,
    by_time: bool,
}

impl StepEnd {
    fn code(self) -> ExitCode {
        ExitCode::from(self.code)
    }

    fn exit(self) -> Exit {
        self.signal.map_or(Exit::Code(self.code.into()), Exit::Signal)
    }
}

/// A step that the daemon has recorded.
struct Recorded {
    client: Client,
    job: i64,
    step: u32,
}

impl Recorded {
    /// Records the start of a step. Without a daemon, or with one of an older version, the step is not in the accounting.
    ///
    /// # Errors
    /// If the job does not run.
    fn begin(job: &str, request: &BeginStepRequest) -> anyhow::Result<Option<Recorded>> {
        let recorded = || -> anyhow::Result<Recorded> {
            let (job, client) = (job.parse()?, super::client()?);
            let step = while_away(|| client.begin_step(job, request))?.step;
            Ok(Recorded { client, job, step })
        };
        match recorded() {
            Ok(recorded) => Ok(Some(recorded)),
            // The variables are those of another job, or of one that has ended.
            Err(error)
                if matches!(
                    error.downcast_ref(),
                    Some(ClientError::Refused(problem)) if problem.code != ProblemCode::Malformed
                ) =>
            {
                Err(error.context(format!("Unable to create step for job {job}: Job/step is not running")))
            }
            Err(error) => {
                note!("srun: warning: the accounting will not have this step: {error}");
                Ok(None)
            }
        }
    }

    /// Records the end. A step without one ends with its job.
    fn end(&self, ended: StepEnd) {
        let request = EndStepRequest { step: self.step, exit: ended.exit(), by_time: ended.by_time };
        if let Err(error) = while_away(|| self.client.end_step(self.job, &request)) {
            note!("srun: warning: the accounting has no end of this step: {error}");
        }
    }
}

/// Asks a daemon that may be away for a while.
fn while_away<T>(ask: impl Fn() -> Result<T, ClientError>) -> Result<T, ClientError> {
    for _ in 1..TRIES {
        match ask() {
            Err(error) if is_away(&error) => std::thread::sleep(AWAY),
            answer => return answer,
        }
    }
    ask()
}

/// Lets signals be read in place of being delivered. Tasks get the default actions, also where the script ignores a signal.
fn block_signals() -> nix::Result<SignalFd> {
    let mut read: SigSet = PASSED.into_iter().collect();
    for passed in PASSED {
        // SAFETY: the default action is no function.
        #[allow(unsafe_code)]
        unsafe { signal(passed, SigHandler::SigDfl) }?;
    }
    read.add(Signal::SIGCHLD);
    read.thread_block()?;
    SignalFd::with_flags(&read, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
}

impl Step<'_> {
    fn run(&self, signals: &SignalFd) -> anyhow::Result<StepEnd> {
        let mut tasks = vec![];
        let ended = self.run_tasks(&mut tasks, signals);
        if ended.is_err() {
            end(&mut tasks, Signal::SIGKILL);
        }
        ended
    }

    fn run_tasks(&self, tasks: &mut Vec<Task>, signals: &SignalFd) -> anyhow::Result<StepEnd> {
        let shared = self.shared_files()?;
        let mut printers = vec![];
        let mut inputs = vec![];
        let space = (self.mpi == Mpi::Pmi).then(|| Space::new(self.job, self.number, self.tasks));
        let mut served = space.as_ref();
        let processes = if self.mpi == Mpi::Mpirun { 1 } else { self.tasks };
        for nth in 0..processes {
            let socket = self.socket(&mut served)?;
            match self.start(nth, &shared, served.zip(socket).as_ref()) {
                Ok(mut child) => {
                    if self.given.has("label") {
                        printers.extend(labelled(nth, &mut child)?);
                    }
                    inputs.extend(child.stdin.take());
                    tasks.push(Task { nth, child, status: None });
                }
                Err(error) => {
                    end(tasks, Signal::SIGKILL);
                    let word = self.given.words[0].display();
                    note!("slurmstepd: error: execve(): {word}: {error}");
                    let code = u8::try_from(error.raw_os_error().unwrap_or(1)).unwrap_or(1);
                    note_end_of_task(&self.host, nth, Exit::Code(code.into()));
                    return Ok(StepEnd { code, ..StepEnd::default() });
                }
            }
        }
        if !inputs.is_empty() {
            small_thread().spawn(move || broadcast(inputs))?;
        }
        let ended = self.wait(tasks, signals, space.as_deref())?;
        for printer in printers {
            // A task that has ended may have left a process that holds its output.
            let _ = printer.join();
        }
        Ok(ended)
    }

    /// Returns a task's end of its socket, if the tasks are served. Without one, no more tasks are served.
    ///
    /// # Errors
    /// If the kernel refuses a socket or a thread, and the sockets are requested.
    fn socket(&self, served: &mut Option<&Arc<Space>>) -> anyhow::Result<Option<OwnedFd>> {
        let Some(space) = *served else { return Ok(None) };
        let error = match space.serve() {
            Ok(socket) => return Ok(Some(socket)),
            Err(error) => error,
        };
        if self.given.has("mpi") || std::env::var_os("SLURM_MPI_TYPE").is_some() {
            let context = format!("Unable to create step for job {}: no socket for --mpi=pmi2", self.job);
            return Err(anyhow::Error::from(error).context(context));
        }
        if self.given.has("verbose") {
            note!("srun: the tasks have no sockets of PMI: {error}");
        }
        *served = None;
        space.give_up();
        Ok(None)
    }

    /// Waits for all tasks, ends them at the time limit, and passes on the signals from processes of the job.
    fn wait(&self, tasks: &mut [Task], signals: &SignalFd, space: Option<&Space>) -> anyhow::Result<StepEnd> {
        let kills = self.given.value("kill-on-bad-exit").is_some_and(|value| value != "0");
        let rest =
            self.given.value("wait").and_then(|secs| secs.parse::<u64>().ok()).filter(|secs| *secs > 0);
        let mut worst = StepEnd::default();
        let limit = self.limit.and_then(|limit| now().checked_add(limit));
        let mut due = Due { limit, ..Due::default() };
        loop {
            for task in tasks.iter_mut().filter(|task| task.status.is_none()) {
                let Some(status) = task.child.try_wait()? else { continue };
                task.status = Some(status);
                let code = self.code(task.nth, status);
                if code > worst.code {
                    (worst.code, worst.signal) = (code, status.signal());
                }
                let rest = || rest.and_then(|secs| now().checked_add(Duration::from_secs(secs)));
                due.rest = due.rest.or_else(rest);
            }
            if tasks.iter().all(|task| task.status.is_some()) {
                return Ok(worst);
            }
            if worst.code > 0 && kills {
                end(tasks, Signal::SIGTERM);
            }
            let timeout = due.next().map(|at| at.saturating_duration_since(now()));
            let timeout = timeout.map(|left| Timespec {
                tv_sec: left.as_secs().cast_signed(),
                tv_nsec: left.subsec_nanos().into(),
            });
            let ready =
                poll(&mut [PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN)], timeout.as_ref());
            if ready.is_ok_and(|ready| ready == 0) {
                worst.by_time |= self.end_in_time(tasks, &mut due);
            }
            while let Some(info) = signals.read_signal()? {
                let (number, sender) = (info.ssi_signo.cast_signed(), info.ssi_pid.cast_signed());
                if let Ok(passed) = Signal::try_from(number)
                    && passed != Signal::SIGCHLD
                    && is_passed_on(sender)
                {
                    end(tasks, passed);
                }
            }
            // A task may ignore the signal that ends the step.
            if space.is_some_and(Space::has_ended) {
                due.kill = due.kill.or_else(|| now().checked_add(KILL_WAIT));
            }
        }
    }

    /// Signals the tasks whose time is over. Returns whether the time limit has passed.
    fn end_in_time(&self, tasks: &mut [Task], due: &mut Due) -> bool {
        let now = now();
        let is_over = |at: &mut Option<Instant>| at.take_if(|at| *at <= now).is_some();
        if is_over(&mut due.rest) {
            note!("srun: error: the time of --wait is over; the other tasks are ended");
            end(tasks, Signal::SIGKILL);
        }
        if is_over(&mut due.kill) {
            end(tasks, Signal::SIGKILL);
        }
        if !is_over(&mut due.limit) {
            return false;
        }
        let at = stamp(Some(jiff::Timestamp::now()));
        let (job, step, host) = (self.job, self.number, &self.host);
        note!("slurmstepd: error: *** STEP {job}.{step} ON {host} CANCELLED AT {at} DUE TO TIME LIMIT ***");
        end(tasks, Signal::SIGTERM);
        due.kill = now.checked_add(KILL_WAIT);
        true
    }

    /// Returns the exit code of a task, and reports a failure.
    fn code(&self, nth: u64, status: ExitStatus) -> u8 {
        let exit = status.signal().map_or_else(|| Exit::Code(status.code().unwrap_or(1)), Exit::Signal);
        note_end_of_task(&self.host, nth, exit);
        let code = match exit {
            Exit::Code(code) => code,
            Exit::Signal(signal) => 128 + signal,
        };
        u8::try_from(code).unwrap_or(u8::MAX)
    }

    /// Returns the command of a task, or that of the launcher that starts them all.
    fn command(&self) -> Command {
        let words = &self.given.words;
        if self.mpi != Mpi::Mpirun {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]);
            return command;
        }
        // Debian has several launchers, each with a name of its own.
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there = |name: &&str| std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
        let launcher = Some("mpirun.openmpi").filter(is_there).unwrap_or("mpirun");
        let mut command = Command::new(launcher);
        command
            .args(["-np", &self.tasks.to_string(), "--oversubscribe", "sh", "-c", AS_TASK, "sh"])
            .args(words);
        if own_uid() == 0 {
            command
                .envs(["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"].map(|name| (name, "1")));
        }
        command
    }

    fn start(
        &self,
        nth: u64,
        shared: &Files,
        served: Option<&(&Arc<Space>, OwnedFd)>,
    ) -> std::io::Result<Child> {
        let given = self.given;
        let mut command = self.command();
        if let Some(folder) = given.value("chdir") {
            command.current_dir(folder);
        }
        if let Some(export) = given.value("export").and_then(|text| export(text).ok()) {
            let of_job = |name: &str| name.starts_with("SLURM_") || name.starts_with("MISERLY_");
            // Only text can be selected by its name.
            let text = |(name, value): (OsString, OsString)| {
                Some((name.into_string().ok()?, value.into_string().ok()?))
            };
            let all: BTreeMap<String, String> = std::env::vars_os().filter_map(text).collect();
            let of_job: Vec<_> = all.clone().into_iter().filter(|(name, _)| of_job(name)).collect();
            command.env_clear().envs(export.environment(all)).envs(of_job);
        }
        command.envs(self.variables(nth));
        if let Some((space, socket)) = served {
            command.envs(space.variables(nth, socket));
        }
        let inherited = served.map(|(_, socket)| socket.as_raw_fd());
        let output = shared.output.of_task(self, nth)?;
        let error = match shared.error.of_task(self, nth)? {
            Some(error) => Some(error),
            // Without a file of its own, the error output goes where the output goes.
            None if given.has("output") && !given.has("error") => {
                output.as_ref().map(File::try_clone).transpose()?
            }
            None => None,
        };
        let labelled = || if given.has("label") { Stdio::piped() } else { Stdio::inherit() };
        command.stdout(output.map_or_else(labelled, Stdio::from));
        command.stderr(error.map_or_else(labelled, Stdio::from));
        command.stdin(self.input(nth)?);
        if has_groups() {
            command.process_group(0);
        }
        // SAFETY: the closure only makes system calls, and the socket is open.
        #[allow(unsafe_code)]
        unsafe {
            command.pre_exec(move || {
                if let Some(socket) = inherited {
                    rustix::io::fcntl_setfd(BorrowedFd::borrow_raw(socket), FdFlags::empty())?;
                }
                SigSet::empty().thread_set_mask().map_err(Into::into)
            })
        };
        command.spawn()
    }

    fn input(&self, nth: u64) -> std::io::Result<Stdio> {
        match self.given.value("input") {
            None | Some("all") if self.tasks == 1 => Ok(Stdio::inherit()),
            None | Some("all") if stdin().is_terminal() => {
                Ok(if nth == 0 { Stdio::inherit() } else { Stdio::null() })
            }
            None | Some("all") => Ok(Stdio::piped()),
            Some("none") => Ok(Stdio::null()),
            Some(text) => match text.parse::<u64>() {
                Ok(task) => Ok(if task == nth { Stdio::inherit() } else { Stdio::null() }),
                Err(_) => Ok(File::open(self.path(text, nth))?.into()),
            },
        }
    }

    fn variables(&self, nth: u64) -> Vec<(String, String)> {
        let mut variables: Vec<(String, String)> = [
            ("SLURM_STEP_ID", self.number.to_string()),
            ("SLURM_STEPID", self.number.to_string()),
            ("SLURM_STEP_NUM_TASKS", self.tasks.to_string()),
            ("SLURM_STEP_NUM_NODES", "1".to_owned()),
            ("SLURM_STEP_TASKS_PER_NODE", self.tasks.to_string()),
            ("SLURM_STEP_NODELIST", self.host.clone()),
            ("SLURM_NTASKS", self.tasks.to_string()),
            ("SLURM_NPROCS", self.tasks.to_string()),
            ("SLURM_PROCID", nth.to_string()),
            ("SLURM_LOCALID", nth.to_string()),
            ("SLURM_NODEID", "0".to_owned()),
            ("SLURM_GTIDS", (0..self.tasks).map(|nth| nth.to_string()).collect::<Vec<_>>().join(",")),
            ("SLURMD_NODENAME", self.host.clone()),
            ("SLURM_JOB_NODELIST", self.host.clone()),
            ("SLURM_NODELIST", self.host.clone()),
            ("SLURM_JOB_NUM_NODES", "1".to_owned()),
            ("SLURM_NNODES", "1".to_owned()),
            ("SLURM_TASKS_PER_NODE", self.tasks.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        if let Some(cpus) = self.given.value("cpus-per-task") {
            variables.push(("SLURM_CPUS_PER_TASK".to_owned(), cpus.to_owned()));
        }
        variables
    }

    /// Returns the file of a pattern for a task.
    fn path(&self, pattern: &str, nth: u64) -> PathBuf {
        let variable = |name: &str| std::env::var(name).ok();
        let array = || variable("SLURM_ARRAY_JOB_ID").unwrap_or_else(|| self.job.to_owned());
        let mut filled = String::new();
        let mut letters = pattern.chars();
        while let Some(letter) = letters.next() {
            if letter != '%' {
                filled.push(letter);
                continue;
            }
            let mut code = letters.next();
            let mut width = String::new();
            while let Some(digit) = code.filter(char::is_ascii_digit) {
                width.push(digit);
                code = letters.next();
            }
            let number = |text: String| format!("{text:0>width$}", width = cell_width(&width).unwrap_or(0));
            filled += &match code {
                Some('j') => number(self.job.to_owned()),
                Some('J') => format!("{}.{}", self.job, self.number),
                Some('A') => number(array()),
                Some('a') => {
                    number(variable("SLURM_ARRAY_TASK_ID").unwrap_or_else(|| "4294967294".to_owned()))
                }
                Some('s') => number(self.number.to_string()),
                Some('t') => number(nth.to_string()),
                Some('n') => number("0".to_owned()),
                Some('N') => self.host.clone(),
                Some('u') => user(),
                Some('x') => variable("SLURM_JOB_NAME").unwrap_or_default(),
                Some('%') | None => "%".to_owned(),
                Some(other) => format!("%{other}"),
            };
        }
        let folder = self.given.value("chdir").map(PathBuf::from).unwrap_or_default();
        folder.join(filled)
    }

    fn shared_files(&self) -> anyhow::Result<Files> {
        let of = |long: &str| Output::new(self, self.given.value(long)).with_context(|| format!("--{long}"));
        Ok(Files { output: of("output")?, error: of("error")? })
    }

    fn open(&self, pattern: &str, nth: u64) -> std::io::Result<File> {
        let mode = self
            .given
            .value("open-mode")
            .map(str::to_owned)
            .or_else(|| std::env::var("SLURM_OPEN_MODE").ok());
        let appends = mode.is_some_and(|mode| mode.starts_with('a'));
        let mut options = OpenOptions::new();
        // Several tasks may have the same file.
        options.create(true).append(true);
        let path = self.path(pattern, nth);
        if !appends {
            File::create(&path)?;
        }
        options.open(path)
    }
}

#[allow(clippy::disallowed_methods, reason = "a step measures its own run")]
fn now() -> Instant {
    Instant::now()
}

/// The instants at which tasks are signalled.
#[derive(Default)]
struct Due {
    /// The end of the time after the first end of a task.
    rest: Option<Instant>,
    /// The time limit.
    limit: Option<Instant>,
    /// The end of the time after the signal at the time limit.
    kill: Option<Instant>,
}

impl Due {
    fn next(&self) -> Option<Instant> {
        [self.rest, self.limit, self.kill].into_iter().flatten().min()
    }
}

/// The files of the outputs.
struct Files {
    output: Output,
    error: Output,
}

/// Where an output of the tasks goes.
enum Output {
    /// To that of this process.
    Own,
    /// To one file.
    Shared(File),
    /// To a file for each task.
    Each(String),
    /// That of one task to that of this process.
    OfTask(u64),
}

impl Output {
    fn new(step: &Step, pattern: Option<&str>) -> std::io::Result<Output> {
        match pattern {
            None | Some("all") => Ok(Output::Own),
            Some("none") => Ok(Output::Shared(File::options().write(true).open("/dev/null")?)),
            Some(pattern) => match pattern.parse() {
                Ok(task) => Ok(Output::OfTask(task)),
                Err(_) if pattern.contains('%') => Ok(Output::Each(pattern.to_owned())),
                Err(_) => step.open(pattern, 0).map(Output::Shared),
            },
        }
    }

    fn of_task(&self, step: &Step, nth: u64) -> std::io::Result<Option<File>> {
        match self {
            Output::Own => Ok(None),
            Output::Shared(file) => file.try_clone().map(Some),
            Output::Each(pattern) => {
                // Without the number of the task in its name, the file is one for all.
                let is_first = step.path(pattern, nth) != step.path(pattern, 0) || nth == 0;
                if is_first {
                    step.open(pattern, nth).map(Some)
                } else {
                    OpenOptions::new().append(true).open(step.path(pattern, nth)).map(Some)
                }
            }
            Output::OfTask(task) if *task == nth => Ok(None),
            Output::OfTask(_) => File::options().write(true).open("/dev/null").map(Some),
        }
    }
}

/// Returns whether the tasks do not get a signal from this sender themselves. The kernel, as the sender of those of a terminal, is 0.
fn is_passed_on(sender: i32) -> bool {
    if sender == 0 { has_groups() } else { !is_outer_ancestor(sender) }
}

/// Returns whether a process is an ancestor of this one outside the session of the job: the shim, whose signals all processes get.
fn is_outer_ancestor(sender: i32) -> bool {
    let in_job = getsid(Some(Pid::from_raw(sender))).is_ok_and(|session| getsid(None) == Ok(session));
    let parent = |pid: &i32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name before it may have any character.
        text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok().filter(|pid| *pid > 1)
    };
    !in_job && std::iter::successors(Some(std::process::id().cast_signed()), parent).any(|pid| pid == sender)
}

/// Returns whether each task has a process group of its own. At a terminal, only the group of this process may read from it.
fn has_groups() -> bool {
    !stdin().is_terminal()
}

/// Sends a signal to the processes of the running tasks.
fn end(tasks: &mut [Task], signal: Signal) {
    for task in tasks.iter().filter(|task| task.status.is_none()) {
        let leader = Pid::from_raw(task.child.id().cast_signed());
        // It may have ended.
        let _ = if has_groups() { killpg(leader, signal) } else { kill(leader, signal) };
    }
}

/// Prints the lines of a task with its number before them.
fn labelled(nth: u64, child: &mut Child) -> std::io::Result<Vec<JoinHandle<()>>> {
    let output = child.stdout.take().map(|output| Box::new(output) as Box<dyn Read + Send>);
    let error = child.stderr.take().map(|error| Box::new(error) as Box<dyn Read + Send>);
    let print = |from: Box<dyn Read + Send>, to_error: bool| {
        small_thread().spawn(move || {
            for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
                let line = [format!("{nth}: ").as_bytes(), &line, b"\n"].concat();
                let printed = if to_error {
                    std::io::stderr().write_all(&line)
                } else {
                    std::io::stdout().write_all(&line)
                };
                // Where the reader has gone, the task learns it as without a label.
                if printed.is_err() {
                    break;
                }
            }
        })
    };
    let output = output.map(|output| print(output, false));
    output.into_iter().chain(error.map(|error| print(error, true))).collect()
}

/// Returns a thread with a small stack: the memory of the job may be small.
pub(super) fn small_thread() -> std::thread::Builder {
    std::thread::Builder::new().stack_size(64 << 10)
}

/// Copies the input of this process to all tasks.
fn broadcast(mut inputs: Vec<std::process::ChildStdin>) {
    let mut bytes = [0; 8192];
    let mut own = stdin().lock();
    while let Ok(count @ 1..) = own.read(&mut bytes) {
        inputs.retain_mut(|input| input.write_all(&bytes[..count]).is_ok());
    }
}
