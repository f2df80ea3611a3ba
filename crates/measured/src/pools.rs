//! Part 5: processors and memory move between interactive work and batch (Figures 3 and 4), as the kernel reports them.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use miserly_api::model::Submission;
use miserly_run::Stopwatch;

use crate::bench::{Bench, LONG};
use crate::checks::{Mechanism, numbers};
use crate::daemon::Daemon;
use crate::error::MeasureError;

/// The time between two looks at the kernel's figures.
const LOOK: Duration = Duration::from_millis(250);
/// The looks of a step: the state settles in the first ones.
const LOOKS: usize = 12;
/// The first look of a step whose figures count.
const SETTLED: usize = 4;
/// Limit of the time until a job has begun, or its memory is there.
const BEGIN: Duration = Duration::from_mins(1);

/// The memory of the interactive program, and of the batch job before its window and in addition in it, megabytes.
const HELD: [u32; 3] = [50, 48, 44];
/// The memory that the batch job requests, bytes.
const REQUESTED: u64 = 100_000_000;

/// A step of a figure: what happened, and the figures of the kernel.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Its letter, and what happened at its begin.
    pub(crate) text: &'static str,
    /// For each program: the figure over the step, after it has settled.
    pub(crate) means: Vec<f64>,
    /// What the kernel permits to each batch job, in words.
    pub(crate) permitted: Vec<String>,
}

/// A figure whose values were read from the kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Readings {
    /// The programs.
    pub(crate) names: Vec<&'static str>,
    pub(crate) steps: Vec<Step>,
    /// For each program: the time since the begin in seconds, and the figure.
    pub(crate) points: Vec<Vec<(f64, f64)>>,
}

/// The result of the part.
#[derive(Clone, Debug)]
pub(crate) struct Pools {
    /// Figure 3: processors that each used.
    pub(crate) processors: Readings,
    /// Figure 4: megabytes that each held, and megabytes that the kernel keeps for the batch job.
    pub(crate) memory: Readings,
    /// Whether the kernel keeps memory for a job in its window.
    pub(crate) keeps_memory: bool,
}

/// Measures the part.
pub(crate) fn measure(bench: &mut Bench<'_>) -> Result<Pools, MeasureError> {
    bench.note("5-pools: processors");
    bench.next_run();
    let processors = processors(bench)?;
    bench.note("5-pools: memory");
    bench.next_run();
    let (memory, keeps_memory) = memory(bench)?;
    Ok(Pools { processors, memory, keeps_memory })
}

/// The sessions of some programs, and their figures so far.
struct Watch {
    began: Stopwatch,
    readings: Readings,
    /// The leaders of the sessions of each program. None: it does not run.
    sessions: Vec<Vec<u32>>,
}

impl Watch {
    fn new(names: &[&'static str]) -> Watch {
        let readings = Readings { names: names.to_vec(), steps: vec![], points: vec![vec![]; names.len()] };
        Watch { began: Stopwatch::start(), readings, sessions: vec![vec![]; names.len()] }
    }

    /// Looks for the length of a step. `look` returns the figures of all programs, over the seconds since the last look.
    fn step(&mut self, text: &'static str, mut look: impl FnMut(&[Vec<u32>], f64) -> Vec<f64>) {
        let mut sums = vec![0.0; self.sessions.len()];
        look(&self.sessions, 1.0);
        let mut last = self.began.elapsed().as_secs_f64();
        for nth in 0..LOOKS {
            thread::sleep(LOOK);
            let now = self.began.elapsed().as_secs_f64();
            let figures = look(&self.sessions, now - last);
            last = now;
            for (number, figure) in figures.into_iter().enumerate() {
                self.readings.points[number].push((now, figure));
                if nth >= SETTLED {
                    sums[number] += figure / (LOOKS - SETTLED) as f64;
                }
            }
        }
        let jobs = self.sessions.iter().skip(1).filter_map(|leaders| leaders.first());
        let permitted = jobs.map(|leader| permitted(*leader)).collect();
        self.readings.steps.push(Step { text, means: sums, permitted });
    }
}

/// Figure 3: burners on all processors, and batch jobs that come and go.
fn processors(bench: &mut Bench<'_>) -> Result<Readings, MeasureError> {
    let (threads, all) = (bench.site.threads(), bench.site.all.len());
    let daemon = bench.daemon(threads)?;
    let burners = bench.burners(all, &[])?;
    let mut watch = Watch::new(&["interactive programs", "job 1", "job 2"]);
    watch.sessions[0] = burners.sessions()?;
    let mut before: Vec<f64> = vec![0.0; 3];
    let mut look = |sessions: &[Vec<u32>], seconds: f64| {
        let used: Vec<f64> = sessions.iter().map(|sessions| processor_time(sessions)).collect();
        let rates = used.iter().zip(&before).map(|(now, before)| (now - before).max(0.0) / seconds).collect();
        before = used;
        rates
    };
    watch.step("a: interactive programs alone", &mut look);
    let burn = ["kernel", "burn", "--threads", &threads.to_string()].map(str::to_owned).to_vec();
    let one = Batch::submit(bench, &daemon, "one", &burn, threads, |job| Submission {
        no_opportunistic: true,
        ..job
    })?;
    watch.sessions[1] = vec![one.leader()?];
    watch.step("b: job 1 in its window", &mut look);
    let two = Batch::submit(bench, &daemon, "two", &burn, threads, |job| job)?;
    watch.sessions[2] = vec![two.leader()?];
    watch.step("c: job 2 before its window", &mut look);
    let is_idle =
        |leader: u32| stat(leader, 41).as_deref() == Some("5") || group_value(leader, "cpu.idle") == Some(1);
    let early = is_idle(two.leader()?);
    bench.checks.add(Mechanism::Early, early, || "job 2 was not in the idle class".into());
    one.cancel(&daemon)?;
    watch.sessions[1].clear();
    watch.step("d: job 1 has ended, job 2 in its window", &mut look);
    let (leader, pool) = (two.leader()?, bench.site.pool.clone());
    let allowed = allowed(leader);
    bench.checks.add(Mechanism::Processors, numbers(&allowed) == pool && !is_idle(leader), || {
        format!("job 2 is on {allowed} in its window")
    });
    two.cancel(&daemon)?;
    watch.sessions[2].clear();
    watch.step("e: job 2 has ended", &mut look);
    daemon.stop()?;
    Ok(watch.readings)
}

/// Figure 4: an interactive program with memory, and a batch job before, in and after its window.
fn memory(bench: &mut Bench<'_>) -> Result<(Readings, bool), MeasureError> {
    let threads = bench.site.threads();
    let daemon = bench.daemon(threads)?;
    let mut watch = Watch::new(&["interactive program", "batch job", "kept for the batch job"]);
    let look = |sessions: &[Vec<u32>], _: f64| {
        let kept = sessions[1].first().and_then(|leader| group_value(*leader, "memory.min")).unwrap_or(0);
        vec![megabytes(&sessions[0]), megabytes(&sessions[1]), kept as f64 / 1e6]
    };
    watch.step("a: nothing", look);
    let interactive = bench.hold(HELD[0])?;
    watch.sessions[0] = interactive.sessions()?;
    until(|| megabytes(&watch.sessions[0]) >= f64::from(HELD[0]))?;
    watch.step("b: an interactive program", look);
    let burn = ["kernel", "burn"].map(str::to_owned);
    let first = Batch::submit(bench, &daemon, "first", &burn, threads, |job| Submission {
        no_opportunistic: true,
        ..job
    })?;
    first.leader()?;
    let more = first.file.with_extension("more");
    // Two processes: the second one takes its memory in the window.
    let script = format!(
        "\"$0\" kernel hold --rounds {} & until [ -e '{}' ]; do sleep 0.05; done; \"$0\" kernel hold --rounds {} & wait",
        HELD[1],
        more.display(),
        HELD[2]
    );
    let arguments = ["-c".to_owned(), script, bench.options.exe.display().to_string()];
    let batch = Batch::submit_of(bench, &daemon, "second", Path::new("/bin/sh"), &arguments, 1, |job| {
        Submission { memory: Some(REQUESTED), ..job }
    })?;
    watch.sessions[1] = vec![batch.leader()?];
    until(|| megabytes(&watch.sessions[1]) >= f64::from(HELD[1]))?;
    watch.step("c: the batch job before its window", look);
    first.cancel(&daemon)?;
    fs::write(&more, "").map_err(MeasureError::io(more.display().to_string()))?;
    until(|| megabytes(&watch.sessions[1]) >= f64::from(HELD[1] + HELD[2]))?;
    watch.step("d: the batch job in its window", look);
    let leader = batch.leader()?;
    let keeps = group_value(leader, "memory.min").is_some();
    batch.cancel(&daemon)?;
    watch.sessions[1].clear();
    watch.step("e: the batch job has ended", look);
    daemon.stop()?;
    let mut readings = watch.readings;
    if !keeps {
        readings.names.truncate(2);
        readings.points.truncate(2);
        readings.steps.iter_mut().for_each(|step| step.means.truncate(2));
    }
    Ok((readings, keeps))
}

/// A batch job whose main process writes its number into a file.
struct Batch {
    job: i64,
    file: PathBuf,
}

impl Batch {
    /// Submits this program with arguments.
    fn submit(
        bench: &mut Bench<'_>,
        daemon: &Daemon,
        name: &str,
        arguments: &[String],
        cpus: usize,
        change: impl FnOnce(Submission) -> Submission,
    ) -> Result<Batch, MeasureError> {
        let exe = bench.options.exe.clone();
        Batch::submit_of(bench, daemon, name, &exe, arguments, cpus, change)
    }

    fn submit_of(
        bench: &mut Bench<'_>,
        daemon: &Daemon,
        name: &str,
        program: &Path,
        arguments: &[String],
        cpus: usize,
        change: impl FnOnce(Submission) -> Submission,
    ) -> Result<Batch, MeasureError> {
        let file = bench.new_path(name);
        let script = format!("echo $$ >'{}'; exec \"$0\" \"$@\"", file.display());
        let mut command = vec!["-c".to_owned(), script, program.display().to_string()];
        command.extend_from_slice(arguments);
        let job = change(daemon.job(Path::new("/bin/sh"), command, cpus, LONG));
        Ok(Batch { job: daemon.submit(&job)?, file })
    }

    /// Waits for the main process, which leads the session of the job. Returns its number.
    fn leader(&self) -> Result<u32, MeasureError> {
        let read = || fs::read_to_string(&self.file).ok()?.trim().parse().ok();
        until(|| read().is_some())?;
        read().ok_or_else(|| MeasureError::Daemon(format!("job {} has not begun", self.job)))
    }

    fn cancel(self, daemon: &Daemon) -> Result<(), MeasureError> {
        daemon.client().cancel(self.job, false)?;
        daemon.wait(self.job).map(drop)
    }
}

/// Waits until a condition holds.
fn until(holds: impl Fn() -> bool) -> Result<(), MeasureError> {
    let watch = Stopwatch::start();
    while !holds() {
        if watch.elapsed() > BEGIN {
            return Err(MeasureError::Daemon("a job of Figure 3 or 4 has not begun".into()));
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Returns a field of the `stat` of a process, counted as in its documentation, from 3 on.
fn stat(process: u32, field: usize) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program may contain anything but is in parentheses.
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_whitespace().nth(field - 3).map(str::to_owned)
}

/// Returns the processes of sessions.
fn processes(sessions: &[u32]) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let session = |process: u32| stat(process, 6)?.parse::<u32>().ok();
    if sessions.is_empty() {
        return vec![];
    }
    all.filter(|process| session(*process).is_some_and(|one| sessions.contains(&one))).collect()
}

/// Returns the processor time of all threads of sessions so far, seconds (`schedstat`).
fn processor_time(sessions: &[u32]) -> f64 {
    let threads =
        |process: u32| fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let time = |thread: fs::DirEntry| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    };
    processes(sessions).into_iter().flat_map(threads).filter_map(time).sum::<f64>() / 1e9
}

/// Returns the memory that the processes of sessions have for themselves, megabytes (`RssAnon`).
fn megabytes(sessions: &[u32]) -> f64 {
    let held = |process: u32| {
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
        line.trim().strip_suffix(" kB")?.parse::<f64>().ok()
    };
    processes(sessions).into_iter().filter_map(held).sum::<f64>() * 1024.0 / 1e6
}

/// Returns the processors that a process may use, as the kernel lists them.
fn allowed(process: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap_or_default().trim().to_owned()
}

/// Returns a number in a file of the control group of a process; `None` if there is no such file.
fn group_value(process: u32, file: &str) -> Option<u64> {
    let groups = fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mount = fs::read_to_string("/proc/self/mounts").ok()?;
    let mount = mount.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let folder = mount.into_iter().find(|fields| fields.get(2) == Some(&"cgroup2"))?;
    let path = Path::new(folder.get(1)?).join(own.trim_start_matches('/')).join(file);
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Returns what the kernel permits to a batch job.
fn permitted(leader: u32) -> String {
    let class = match stat(leader, 41).as_deref() {
        Some("0") => "normal class",
        Some("2") => "real time",
        Some("5") => "idle class",
        _ => "unknown class",
    };
    let nice = stat(leader, 19).unwrap_or_default();
    let weight = |file| group_value(leader, file).map(|value| format!(", {file} {value}"));
    let group = [weight("cpu.idle"), weight("cpu.weight")].into_iter().flatten().collect::<String>();
    format!("cpus {}, {class}, nice {nice}{group}", allowed(leader))
}
