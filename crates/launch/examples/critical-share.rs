//! The share of its processors that a job in its window gets beside burners of processor time, by its priority.
//!
//! `critical-share SHIM [BURNERS [SECONDS [CPUS [TREE]]]]`: the program of the shims, the burners (8), the seconds of each of three
//! measurements (5), the processors of the job (1), which has as many busy processes, and a folder of cgroup v2 for its control
//! group. Each burner has a session of its own and may run anywhere. The kernel counts the time of the job (`/proc/PID/schedstat` of
//! each process).

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use miserly_cgroup::Tree;
use miserly_launch::{
    AttemptSpec, BootTime, CgroupSpec, CriticalPriority, MachineClock as _, OutputFile, ResourceLimits,
    RunMode, ShimCommand, launch, usable_cpus,
};
use rustix::process::setsid;

const REPEATS: u32 = 3;

/// The time for the processes to spread over the processors.
const SETTLE: Duration = Duration::from_millis(500);

/// A burner, which ends with this.
struct Burner(Child);

impl Burner {
    fn start() -> Result<Burner, Box<dyn Error>> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        #[expect(unsafe_code, reason = "the session begins between fork and exec")]
        // SAFETY: `setsid` is one system call.
        unsafe {
            command.pre_exec(|| Ok(setsid().map(drop)?));
        }
        Ok(Burner(command.spawn()?))
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the repetitions have in common.
struct Setup {
    shim: PathBuf,
    burners: u32,
    /// Of each measurement, seconds.
    length: u32,
    cpus: Vec<u32>,
    group: Option<CgroupSpec>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let shim = arguments.first().ok_or("give the program of the shims: target/release/launch-shim")?;
    let number = |nth: usize, default: u32| arguments.get(nth).map_or(Ok(default), |text| text.parse());
    let mut cpus = usable_cpus()?;
    let all = cpus.len();
    cpus.truncate(number(3, 1)?.try_into()?);
    let group = arguments.get(4).map(|folder| group(Path::new(folder), cpus[0])).transpose()?;
    let setup = Setup { shim: shim.into(), burners: number(1, 8)?, length: number(2, 5)?, cpus, group };
    let folder = tempfile::tempdir()?;
    println!("{} burners, a job of {} of {all} processors", setup.burners, setup.cpus.len());
    println!("| critical priority | share of its processors' time, % |");
    println!("|---|--:|");
    let kinds = [
        ("none", CriticalPriority::Off),
        ("auto", CriticalPriority::Auto),
        ("real-time", CriticalPriority::RealTime),
    ];
    for (nth, (name, priority)) in kinds.into_iter().enumerate() {
        let shares = shares(&setup, &folder.path().join(name), nth as u64 + 1, priority)?;
        let shares: Vec<String> = shares.iter().map(|share| format!("{:.2}", 100.0 * share)).collect();
        println!("| {name} | {} |", shares.join(", "));
    }
    Ok(())
}

/// Returns the group of each job: as the daemon asks for one.
fn group(tree: &Path, cpu: u32) -> Result<CgroupSpec, Box<dyn Error>> {
    let tree = Tree::open(tree)?;
    let can = tree.probe(cpu)?.present();
    tree.settle_weight()?;
    let (memory, pids) = (None, None);
    let tree = tree.group().path().to_owned();
    Ok(CgroupSpec {
        tree,
        shims: None,
        can,
        memory,
        pids,
        early_on_all: false,
        raises: true,
        strict: false,
        hides_devices: false,
    })
}

/// Returns the share of each repetition.
fn shares(
    setup: &Setup,
    folder: &Path,
    job: u64,
    priority: CriticalPriority,
) -> Result<Vec<f64>, Box<dyn Error>> {
    let _burners = (0..setup.burners).map(|_| Burner::start()).collect::<Result<Vec<_>, _>>()?;
    let pids = folder.with_extension("pids");
    let mut shim = launch(&setup.shim, folder, &spec(setup, job, priority, &pids))?;
    let pids = loop {
        let text = fs::read_to_string(&pids).unwrap_or_default();
        let found: Vec<String> = text.lines().map(str::to_owned).collect();
        if found.len() == setup.cpus.len() {
            break found;
        }
        thread::sleep(Duration::from_millis(20));
    };
    thread::sleep(SETTLE);
    let mut shares = vec![];
    for _ in 0..REPEATS {
        let (before, began) = (time_of(&pids)?, BootTime::now());
        thread::sleep(Duration::from_secs(setup.length.into()));
        let (used, passed) = (time_of(&pids)?.saturating_sub(before), BootTime::now().since(began));
        shares.push(used.as_secs_f64() / passed.as_secs_f64() / setup.cpus.len() as f64);
    }
    shim.request(&ShimCommand::Kill { grace: Duration::ZERO })?;
    Ok(shares)
}

/// Returns the processor time of processes so far.
fn time_of(pids: &[String]) -> Result<Duration, Box<dyn Error>> {
    let mut sum = Duration::ZERO;
    for pid in pids {
        let text = fs::read_to_string(format!("/proc/{pid}/schedstat"))?;
        sum += Duration::from_nanos(text.split(' ').next().ok_or("no time")?.parse()?);
    }
    Ok(sum)
}

/// Returns a job with a busy process for each processor. They write their numbers into a file.
fn spec(setup: &Setup, job: u64, priority: CriticalPriority, pids: &Path) -> AttemptSpec {
    let busy = format!("sh -c 'echo $$ >> {}; while :; do :; done' & ", pids.display());
    let script = busy.repeat(setup.cpus.len()) + "wait";
    AttemptSpec {
        job,
        attempt: 1,
        argv: ["/bin/sh", "-c", &script].map(OsString::from).to_vec(),
        script: None,
        cwd: "/".into(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        stdin: None,
        interaction: None,
        stdout: OutputFile { path: "/dev/null".into(), append: true },
        stderr: None,
        umask: 0o022,
        limits: ResourceLimits::default(),
        mode: RunMode::Reserved {
            cpus: setup.cpus.clone(),
            end: BootTime::now().after(Duration::from_hours(1)),
        },
        critical_priority: priority,
        idle: None,
        resize_notice: None,
        grace: Duration::from_secs(1),
        orphan_resume_delay: Duration::from_mins(1),
        early_signal: None,
        run_limit: None,
        cgroup: setup.group.clone(),
        user: None,
        private_folders: None,
        queue_programs: None,
    }
}
