//! Gang scheduling against time-sharing by the kernel: three jobs of two processes on two processors. The processes
//! of a job wait for each other at a barrier all the time.
//!
//! `cargo bench --features full -p miserly --bench gang -- --seconds 60` runs one job alone, the three jobs without control, and the
//! three jobs in time slices under the daemon. It prints for each job the number of barriers and the share of the time
//! in which it ran, and the duration of a context switch, all as recorded by the processes.

#[path = "../../tests/live/support/mod.rs"]
#[allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "what the tests of the running daemon share, in part"
)]
mod support;

mod spin;

mod switch;

use std::path::Path;
use std::process::{Command, Stdio};

use miserly_api::model::Submission;
use tempfile::TempDir;

use self::spin::{Spun, Task};
use self::switch::Switches;
use support::{Daemon, cpus, sh};

/// The time that is sufficient for the start of the jobs.
const LEAD: u64 = 3;

const NAMES: [&str; 3] = ["x", "y", "z"];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(task) = Task::from_arguments(&arguments) {
        return spin::run(&task);
    }
    let mut seconds = 60;
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seconds" => {
                let value = arguments.next().and_then(|value| value.parse().ok());
                seconds = value.expect("--seconds is a number");
            }
            "--test" => seconds = 7,
            // Cargo passes this to every benchmark.
            "--bench" => {}
            other => panic!("{other}: there is --seconds N"),
        }
    }
    match cpus()[..] {
        [first, second, ..] => measure([first, second], seconds),
        _ => println!("skipped: there are not two processors"),
    }
}

fn measure(cpus: [u32; 2], seconds: u64) {
    println!("{:24} {:>14} {:>8}", "", "barriers/s", "ran");
    let alone = uncontrolled(cpus, &NAMES[..1], seconds.min(10));
    print_figures("alone", &alone);
    print_figures("time-sharing", &uncontrolled(cpus, &NAMES, seconds));
    let gang = in_turns(cpus, seconds);
    print_figures("gang, quantum 1 s", &gang);
    println!("{}", Switches::between(&gang));
}

fn print_figures(how: &str, jobs: &[Vec<Spun>]) {
    for (name, processes) in NAMES.iter().zip(jobs) {
        let one = &processes[0];
        let ran = processes.iter().map(Spun::share).fold(f64::INFINITY, f64::min);
        println!("{:24} {:>14.0} {:>7.2} %", format!("{how}, {name}"), one.rate(), 100.0 * ran);
    }
}

/// Runs these jobs at the same time, scheduled by the kernel only.
fn uncontrolled(cpus: [u32; 2], names: &[&str], seconds: u64) -> Vec<Vec<Spun>> {
    let folder = TempDir::new().expect("a temporary folder");
    let tasks = tasks(folder.path(), cpus, names, seconds);
    let start = |task: &Task| Command::new(exe()).args(task.arguments()).stdin(Stdio::null()).spawn();
    let children: Vec<_> = tasks.iter().map(|task| start(task).expect("a program that starts")).collect();
    for mut child in children {
        assert!(child.wait().expect("a child that can be waited for").success());
    }
    tasks.iter().map(Task::spun).collect()
}

/// Runs the three jobs under a daemon, each in its own slot.
fn in_turns(cpus: [u32; 2], seconds: u64) -> Vec<Vec<Spun>> {
    let daemon = Daemon::new(
        "cleanup-time = 1\n[pool]\ncpus = 2\n[[queue]]\nname = \"batch\"\npolicy = \"gang(quantum=1s)\"\ndefault-memory = \"64MB\"\n",
    );
    let tasks = tasks(&daemon.path(""), cpus, &NAMES, seconds);
    let submit = |task: &Task| {
        let command = [vec![exe()], task.arguments()].concat();
        daemon.submit(&Submission { command, cpus: 2, directory: daemon.path(""), ..sh("", 3600.0) })
    };
    let jobs: Vec<i64> = tasks.iter().map(submit).collect();
    for job in jobs {
        daemon.wait(job);
    }
    tasks.iter().map(Task::spun).collect()
}

fn tasks(folder: &Path, cpus: [u32; 2], names: &[&str], seconds: u64) -> Vec<Task> {
    let begin = spin::now() + LEAD * spin::SECOND;
    let end = begin + seconds * spin::SECOND;
    names.iter().map(|name| Task { file: folder.join(name), cpus, process: 0, begin, end }).collect()
}

fn exe() -> String {
    let path = std::env::current_exe().expect("this program");
    path.to_string_lossy().into_owned()
}
