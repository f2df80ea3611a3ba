//! The cost of a launch: with and without a control group, a user of its own and private folders.
//!
//! `launch-cost SHIM [LAUNCHES [TREE]]`: the program of the shims, the launches of each kind, and a folder of cgroup v2 or
//! `systemd` for its scopes. As root. The kinds take turns, so that a slow moment of the machine meets all of them.

use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use miserly_cgroup::Tree;
use miserly_cgroup::systemd::Scopes;
use miserly_launch::{
    AttemptSpec, BootTime, CgroupSpec, CriticalPriority, JobUser, MachineClock as _, OutputFile,
    PrivateFolders, ResourceLimits, RunMode, launch, usable_cpus,
};
use rustix::event::{PollFd, PollFlags, poll};

/// The user of jobs of another user. It needs no account.
const OTHER: u32 = 61_234;
/// The memory of a job, in bytes.
const MEMORY: u64 = 64 << 20;

/// The pause before each launch. The kernel moves a process to a group faster if it has moved another one a moment before.
const PAUSE: Duration = Duration::from_millis(50);

/// A kind of launch.
struct Kind {
    name: &'static str,
    in_group: bool,
    of_user: bool,
    in_folders: bool,
}

const KINDS: [Kind; 4] = [
    Kind { name: "processes only", in_group: false, of_user: false, in_folders: false },
    Kind { name: "+ control group", in_group: true, of_user: false, in_folders: false },
    Kind { name: "+ another user", in_group: true, of_user: true, in_folders: false },
    Kind { name: "+ own namespaces and folders", in_group: true, of_user: true, in_folders: true },
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let shim =
        PathBuf::from(arguments.next().ok_or("give the program of the shims: target/release/launch-shim")?);
    let launches: u32 = arguments.next().map_or(Ok(200), |number| number.parse())?;
    let tree = match arguments.next().as_deref() {
        Some("systemd") => Some(Scopes::open()?),
        Some(folder) => Some(Tree::open(Path::new(folder))?),
        None => None,
    };
    let cpus = usable_cpus()?;
    let group = tree.as_ref().map(|tree| group(tree, cpus[0])).transpose()?;
    let folder = tempfile::tempdir()?;
    let mut times: Vec<Vec<[Duration; 2]>> = vec![vec![]; KINDS.len()];
    for round in 0..launches {
        for (kind, times) in KINDS.iter().zip(&mut times) {
            if kind.in_group && group.is_none() {
                continue;
            }
            std::thread::sleep(PAUSE);
            let spec = spec(kind, u64::from(round) + 1, &cpus, group.as_ref());
            let attempt = folder.path().join(format!("{}-{round}", kind.name));
            times.push(timed(&shim, &attempt, &spec)?);
            if let Some(tree) = tree.as_ref().filter(|_| kind.in_group) {
                let _ = tree.job(spec.job, spec.attempt).remove();
            }
        }
    }
    if let Some(group) = &group {
        println!("{launches} launches of each kind; the kernel's groups can: {:?}", group.can);
    }
    println!(
        "| launch of `true` | until it is told, ms: p10 | p50 | p99 | until its end, ms: p10 | p50 | p99 |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|");
    for (kind, times) in KINDS.iter().zip(times).filter(|(_, times)| !times.is_empty()) {
        let column = |nth: usize| {
            let mut all: Vec<Duration> = times.iter().map(|times| times[nth]).collect();
            all.sort_unstable();
            let at = |share: usize| all[(all.len() * share / 100).min(all.len() - 1)].as_secs_f64() * 1000.0;
            format!("{:.1} | {:.1} | {:.1}", at(10), at(50), at(99))
        };
        println!("| {} | {} | {} |", kind.name, column(0), column(1));
    }
    Ok(())
}

/// Returns the group of each job: as the daemon asks for one.
fn group(tree: &Tree, cpu: u32) -> Result<CgroupSpec, Box<dyn Error>> {
    Ok(CgroupSpec {
        tree: tree.group().path().to_owned(),
        shims: Some(tree.shims().path().to_owned()),
        can: tree.probe(cpu)?.present(),
        memory: Some(MEMORY),
        pids: Some(512),
        early_on_all: false,
        raises: false,
        strict: false,
        hides_devices: false,
    })
}

fn spec(kind: &Kind, job: u64, cpus: &[u32], group: Option<&CgroupSpec>) -> AttemptSpec {
    let user = JobUser {
        name: "nobody-else".to_owned(),
        uid: OTHER,
        gid: OTHER,
        groups: vec![OTHER],
        no_new_privileges: true,
        pam: None,
    };
    AttemptSpec {
        job,
        attempt: 1,
        argv: vec![OsString::from("/bin/true")],
        script: None,
        cwd: "/".into(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        stdin: None,
        interaction: None,
        stdout: OutputFile { path: "/dev/null".into(), append: true },
        stderr: None,
        umask: 0o022,
        limits: ResourceLimits::default(),
        mode: RunMode::Reserved { cpus: cpus.to_vec(), end: BootTime::now().after(Duration::from_mins(1)) },
        critical_priority: CriticalPriority::Off,
        grace: Duration::from_secs(1),
        orphan_resume_delay: Duration::from_mins(1),
        early_signal: None,
        run_limit: None,
        idle: None,
        resize_notice: None,
        cgroup: group.filter(|_| kind.in_group).cloned(),
        user: kind.of_user.then_some(user),
        private_folders: kind.in_folders.then_some(PrivateFolders { size: Some(MEMORY) }),
        queue_programs: None,
    }
}

/// Launches a job, and returns the times until its launch is told and until its shim has ended.
fn timed(shim: &Path, folder: &Path, spec: &AttemptSpec) -> Result<[Duration; 2], Box<dyn Error>> {
    let began = BootTime::now();
    let shim = launch(shim, folder, spec)?;
    let told = BootTime::now().since(began);
    poll(&mut [PollFd::from_borrowed_fd(shim.fd(), PollFlags::IN)], None)?;
    let ended = BootTime::now().since(began);
    let end = shim.end()?.ok_or("no record of the end")?;
    if end.exit != miserly_launch::Exit::Code(0) {
        return Err(format!("{}: {:?}", spec.job, end.exit).into());
    }
    Ok([told, ended])
}
