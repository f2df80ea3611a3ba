//! A job of two processes that meet at a barrier all the time and record when they did not run.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// A second in nanoseconds.
pub(crate) const SECOND: u64 = 1_000_000_000;

/// The shortest gap in which a process did not run, in nanoseconds. Shorter gaps are interrupts.
const AWAY: u64 = 50_000;

/// The counters of both processes, each in its own cache line.
const LINE: usize = 8;
const BYTES: usize = 2 * LINE * 8;

/// One process of a job.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// The file of the shared memory. The records of the processes are in files beside it.
    pub(crate) file: PathBuf,
    /// The processor of each process.
    pub(crate) cpus: [u32; 2],
    /// The index of the process. The first process starts the second.
    pub(crate) process: usize,
    /// The begin and the end of the measurement, by [`now`].
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

/// The record of a process.
#[derive(Debug, Default)]
pub(crate) struct Spun {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// The number of barriers.
    pub(crate) met: u64,
    /// The intervals in which it did not run.
    pub(crate) away: Vec<(u64, u64)>,
}

impl Task {
    /// Returns the task of a command line, if it has one.
    pub(crate) fn from_arguments(arguments: &[String]) -> Option<Task> {
        let [word, file, first, second, process, begin, end] = arguments else { return None };
        let number = |text: &String| text.parse::<u64>().ok();
        let cpu = |text: &String| text.parse().ok();
        Some(Task {
            file: (word == "--spin").then(|| file.into())?,
            cpus: [cpu(first)?, cpu(second)?],
            process: process.parse().ok()?,
            begin: number(begin)?,
            end: number(end)?,
        })
    }

    pub(crate) fn arguments(&self) -> Vec<String> {
        let Task { file, cpus: [first, second], process, begin, end } = self;
        let numbers = [u64::from(*first), u64::from(*second), *process as u64, *begin, *end];
        let file = file.to_string_lossy().into_owned();
        ["--spin".into(), file].into_iter().chain(numbers.map(|number| number.to_string())).collect()
    }

    /// Returns the records of both processes.
    pub(crate) fn spun(&self) -> Vec<Spun> {
        [0, 1].map(|process| Spun::read(&Task { process, ..self.clone() })).into()
    }

    fn notes(&self) -> PathBuf {
        self.file.with_extension(self.process.to_string())
    }
}

impl Spun {
    /// Returns the number of barriers per second.
    pub(crate) fn rate(&self) -> f64 {
        self.met as f64 / (self.end - self.begin) as f64 * SECOND as f64
    }

    /// Returns the share of the time in which it ran.
    pub(crate) fn share(&self) -> f64 {
        let within = |(from, to): &(u64, u64)| to.min(&self.end).saturating_sub(*from.max(&self.begin));
        let away: u64 = self.away.iter().map(within).sum();
        1.0 - away as f64 / (self.end - self.begin) as f64
    }

    fn read(task: &Task) -> Spun {
        let text = fs::read_to_string(task.notes()).expect("what a process saw");
        let mut spun = Spun { begin: task.begin, end: task.end, ..Spun::default() };
        for line in text.lines() {
            let mut numbers = line.split(' ').map(|number| number.parse().expect("a number"));
            match (numbers.next(), numbers.next()) {
                (Some(from), Some(to)) => spun.away.push((from, to)),
                (met, _) => spun.met = met.unwrap_or(0),
            }
        }
        spun
    }
}

/// Returns the nanoseconds of a monotonic clock.
pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * SECOND + now.tv_nsec.unsigned_abs()
}

/// Runs as one of the two processes until the end.
pub(crate) fn run(task: &Task) {
    let other = (task.process == 0).then(|| {
        File::create(&task.file).and_then(|file| file.set_len(BYTES as u64)).expect("shared memory");
        let second = Task { process: 1, ..task.clone() };
        let exe = std::env::current_exe().expect("this program");
        Command::new(exe).args(second.arguments()).stdin(Stdio::null()).spawn().expect("a second process")
    });
    let mut set = CpuSet::new();
    set.set(task.cpus[task.process] as usize);
    sched_setaffinity(None, &set).expect("a processor of the job");
    let spun = spin(task, shared(task));
    let away = spun.away.iter().map(|(from, to)| format!("{from} {to}\n"));
    let text: String = [format!("{}\n", spun.met)].into_iter().chain(away).collect();
    fs::write(task.notes(), text).expect("a file that can be written");
    if let Some(mut other) = other {
        assert!(other.wait().expect("a child that can be waited for").success());
    }
}

/// Returns the counters in the shared memory.
fn shared(task: &Task) -> &'static [AtomicU64] {
    let file = File::options().read(true).write(true).open(&task.file).expect("shared memory");
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the mapping has the requested length and is never removed. Zeroed memory is counters of 0. Both processes
    // access it as atomic counters only.
    #[allow(unsafe_code, reason = "processes have no memory in common but what is mapped")]
    unsafe {
        let memory = libc::mmap(std::ptr::null_mut(), BYTES, access, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(memory, libc::MAP_FAILED, "shared memory");
        std::slice::from_raw_parts(memory.cast(), BYTES / 8)
    }
}

/// Meets the other process at the barrier until the end.
fn spin(task: &Task, counters: &[AtomicU64]) -> Spun {
    let (own, others) = (&counters[task.process * LINE], &counters[(1 - task.process) * LINE]);
    let mut spun = Spun { begin: task.begin, end: task.end, ..Spun::default() };
    let (mut met, mut at_begin, mut last) = (0, None, now());
    loop {
        met += 1;
        own.store(met, Ordering::Release);
        loop {
            let now = now();
            if now - last > AWAY {
                spun.away.push((last, now));
            }
            last = now;
            if now >= task.begin && at_begin.is_none() {
                at_begin = Some(met);
            }
            if now >= task.end {
                spun.met = met - at_begin.unwrap_or(met);
                return spun;
            }
            if others.load(Ordering::Acquire) >= met {
                break;
            }
            std::hint::spin_loop();
        }
    }
}
