//! The program of the jobs: a kernel, a burner of processor time, or a stamp of the time.

use std::fs;
use std::hint;
use std::io;
use std::thread;

use jiff::Timestamp;
use miserly_kernels::Kernel;
use miserly_run::Stopwatch;
use rustix::process::{Signal, getppid, set_parent_process_death_signal, setpriority_process, setsid};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// A run of the program.
#[derive(Clone, Debug)]
pub struct Program {
    /// What it does.
    pub task: ProgramTask,
    /// Its threads.
    pub threads: usize,
    /// The processors to run on; by default those of its parent.
    pub cpus: Vec<u32>,
    /// The nice value of the process and of its session.
    pub nice: Option<i32>,
    /// The process with which it ends. It then has a session of its own, so that the kernel does not weight it with others.
    pub parent: Option<i32>,
}

/// What the program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramTask {
    /// Computes so many rounds of a kernel.
    Kernel(Kernel, u32),
    /// Records the time.
    Stamp,
    /// Uses processor time until it is killed.
    Burn,
    /// Holds so many megabytes until it is killed.
    Hold(u32),
}

/// What the program reports of itself.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Record {
    /// The start of the command, microseconds since 1970.
    pub begin: i64,
    /// The end of the computation, microseconds since 1970.
    pub end: i64,
    /// The run time, seconds.
    pub seconds: f64,
    /// The processor time of all threads, seconds.
    pub cpu_seconds: f64,
    /// The figures of the result, exact.
    pub figures: Vec<String>,
    /// Whether the kernel verified its result.
    pub verified: bool,
    /// The processors that it may use at its end, as the kernel lists them.
    pub cpus: String,
    /// Whether it is in the idle class at its end.
    pub idle: bool,
}

impl Record {
    /// Returns the share of so many processors that it got over its run time.
    pub(crate) fn received(&self, threads: usize) -> f64 {
        self.cpu_seconds / (self.seconds * threads as f64)
    }
}

/// Runs the program and returns its record.
///
/// # Errors
/// If the system does not permit the processors or the nice value, or the parent has ended.
pub fn run_program(program: &Program) -> io::Result<Record> {
    let (watch, begin) = (Stopwatch::start(), Timestamp::now().as_microsecond());
    prepare(program)?;
    let outcome = match program.task {
        ProgramTask::Kernel(kernel, rounds) => Some(kernel.run(rounds, program.threads)),
        ProgramTask::Stamp => None,
        ProgramTask::Burn => burn(program.threads),
        ProgramTask::Hold(megabytes) => hold(megabytes),
    };
    let (seconds, end) = (watch.elapsed().as_secs_f64(), Timestamp::now().as_microsecond());
    let own = OwnStat::read();
    Ok(Record {
        begin,
        end,
        seconds,
        cpu_seconds: own.cpu_seconds,
        figures: outcome.as_ref().map(|outcome| outcome.figures.map(exact).to_vec()).unwrap_or_default(),
        verified: outcome.is_none_or(|outcome| outcome.verified),
        cpus: own.cpus,
        idle: own.idle,
    })
}

/// Returns a number as the shortest text that is exact.
pub(crate) fn exact(figure: f64) -> String {
    format!("{figure:e}")
}

fn prepare(program: &Program) -> io::Result<()> {
    if let Some(parent) = program.parent {
        // A child of a process group's leader is no leader itself.
        setsid()?;
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid().is_none_or(|pid| pid.as_raw_nonzero().get() != parent) {
            return Err(io::Error::other("the process that started this one has ended"));
        }
    }
    if !program.cpus.is_empty() {
        let mut set = CpuSet::new();
        for cpu in &program.cpus {
            let cpu = usize::try_from(*cpu).unwrap_or(usize::MAX);
            if cpu >= CpuSet::MAX_CPU {
                return Err(io::Error::other(format!("no processor {cpu}")));
            }
            set.set(cpu);
        }
        sched_setaffinity(None, &set)?;
    }
    if let Some(nice) = program.nice {
        setpriority_process(None, nice)?;
        // With autogroups, the nice value of a process counts within its session only.
        if fs::exists("/proc/self/autogroup")? {
            fs::write("/proc/self/autogroup", nice.to_string())?;
        }
    }
    Ok(())
}

/// Never returns: the program is killed.
fn burn<T>(threads: usize) -> T {
    for _ in 1..threads {
        thread::spawn(|| {
            loop {
                hint::spin_loop();
            }
        });
    }
    loop {
        hint::spin_loop();
    }
}

/// Never returns: the program is killed.
fn hold<T>(megabytes: u32) -> T {
    // Not zeros, which would take no memory.
    let held = vec![1_u8; usize::try_from(megabytes).unwrap_or(usize::MAX).saturating_mul(1_000_000)];
    loop {
        hint::black_box(&held);
        thread::park();
    }
}

/// What the kernel reports of this process.
struct OwnStat {
    cpu_seconds: f64,
    idle: bool,
    cpus: String,
}

impl OwnStat {
    fn read() -> OwnStat {
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        // The name of the program may contain anything but is in parentheses. Fields are counted from 3 behind it.
        let fields: Vec<&str> =
            stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
        let number =
            |field: usize| fields.get(field - 3).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let cpus =
            status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
        let used = clock_gettime(ClockId::ProcessCPUTime);
        OwnStat {
            cpu_seconds: used.tv_sec as f64 + used.tv_nsec as f64 / 1e9,
            idle: number(41) == 5,
            cpus: cpus.trim().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(task: ProgramTask) -> Program {
        Program { task, threads: 1, cpus: vec![], nice: None, parent: None }
    }

    #[test]
    fn a_kernel_reports_its_result_and_its_time() {
        let record = run_program(&program(ProgramTask::Kernel(Kernel::Bt, 1))).unwrap();
        assert!(record.verified && !record.idle, "{record:?}");
        assert_eq!(record.figures, Kernel::Bt.run(1, 1).figures.map(exact));
        assert!(record.begin <= record.end && record.seconds > 0.0, "{record:?}");
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap().figures, record.figures);
    }

    #[test]
    fn a_processor_that_does_not_exist_is_refused() {
        let far = Program { cpus: vec![60_000], ..program(ProgramTask::Stamp) };
        assert!(run_program(&far).unwrap_err().to_string().contains("no processor 60000"));
    }
}
