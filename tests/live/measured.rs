//! `miserly reproduce miser-1999`: short measurements, and what they leave behind.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::support::{SOON, cpus, has_two_cpus, processes, until};

/// A folder for the results and the temporary files of a measurement.
struct Lab(TempDir);

impl Lab {
    fn new() -> Lab {
        let lab = Lab(TempDir::new().expect("a temporary folder"));
        fs::create_dir(lab.temporary()).expect("a folder");
        lab
    }

    fn temporary(&self) -> std::path::PathBuf {
        self.0.path().join("tmp")
    }

    /// Returns the short version of one part.
    fn command(&self, part: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_miserly"));
        command.args(["reproduce", "miser-1999", "--quick", "--scale", "0.3", "--only", part]);
        command.args(["-o", "results"]).current_dir(self.0.path()).env("TMPDIR", self.temporary());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn start(&self, part: &str) -> Child {
        self.command(part).spawn().expect("a program that starts")
    }

    fn run(&self, part: &str) -> Output {
        self.command(part).output().expect("a program that starts")
    }

    fn results(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join("results").join(name)).expect("a file of the results")
    }

    /// Checks that no process names the temporary folder, and that it is empty.
    #[track_caller]
    fn is_clean(&self) {
        let left = processes::describe(&self.temporary());
        assert_eq!(left, "", "processes are left");
        assert_eq!(entries(&self.temporary()), 0, "files are left");
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        processes::kill_all(&self.temporary());
    }
}

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

#[test]
fn copies_run_in_their_windows_and_nothing_is_left() {
    if !has_two_cpus() {
        return;
    }
    let lab = Lab::new();
    let run = lab.run("3-throughput");
    let (stdout, stderr) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert_eq!(run.status.code(), Some(0), "{stdout}\n{stderr}");
    for holds in ["Each kernel had the result", "Each job ended by itself", "Each command ran in the window"]
    {
        let holds_there = |line: &str| line.starts_with(&format!("| {holds}")) && line.contains("| holds |");
        assert!(stdout.lines().any(holds_there), "{holds}: {stdout}");
    }
    assert!(
        stdout.contains("## Figure 7: five copies as a batch") && !stdout.contains("## Figure 6"),
        "{stdout}"
    );
    assert!(lab.results("charts/figure-7.svg").starts_with("<svg"));
    // Five copies of three kernels in three ways, and the line of the names.
    assert_eq!(lab.results("runs.csv").lines().count(), 5 * 3 * 3 + 1);
    lab.is_clean();
}

#[test]
fn figures_3_and_4_have_the_values_of_the_kernel() {
    if !has_two_cpus() {
        return;
    }
    let lab = Lab::new();
    let run = lab.run("5-pools");
    let (stdout, stderr) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert_eq!(run.status.code(), Some(0), "{stdout}\n{stderr}");
    let cells = |step: &str| -> Vec<String> {
        let line = stdout.lines().find(|line| line.starts_with(&format!("| {step} "))).expect("a step");
        line.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    // Job 1 is in its window, and job 2 before its own.
    let permitted = cells("c: job 2 before its window")[5].clone();
    let (one, two) = permitted.split_once("; ").expect("two jobs");
    assert!(one.contains("normal class") && two.contains("idle class"), "{permitted}");
    let number = |step: &str, column: usize| cells(step)[column].parse::<f64>().expect("a number");
    assert!(
        number("d: the batch job in its window", 3) > number("c: the batch job before its window", 3) + 40.0
    );
    for picture in ["figure-3", "figure-3-enforced", "figure-4", "figure-4-enforced"] {
        assert!(lab.results(&format!("charts/{picture}.svg")).starts_with("<svg"), "{picture}");
    }
    lab.is_clean();
}

#[test]
fn an_interrupt_ends_the_daemon_its_jobs_and_the_burners() {
    if !has_two_cpus() {
        return;
    }
    let lab = Lab::new();
    let mut measurement = lab.start("4-latency");
    let pid = Pid::from_child(&measurement);
    let children = || processes_below(measurement.id());
    // The daemon, the guard, and two burners for each processor.
    let burning = until("the burners run", SOON, || {
        Some(children()).filter(|children| children.len() > 2 * cpus().len() + 1)
    });
    assert!(!processes::of_daemon(&lab.temporary()).is_empty(), "a daemon runs in the folder");
    kill_process(pid, Signal::INT).expect("the measurement runs");
    assert_eq!(measurement.wait().expect("it ends").code(), Some(130));
    lab.is_clean();
    for child in burning {
        assert_eq!(processes::stat(child, 4), None, "process {child} is left");
    }
}

#[test]
fn a_killed_measurement_takes_all_along() {
    if !has_two_cpus() {
        return;
    }
    let lab = Lab::new();
    let mut measurement = lab.start("4-latency");
    let children = || processes_below(measurement.id());
    let burners = until("the burners run", SOON, || {
        let burners: Vec<u32> = children().into_iter().filter(|child| is_burner(*child)).collect();
        Some(burners).filter(|burners| burners.len() >= 2 * cpus().len())
    });
    measurement.kill().expect("it runs");
    measurement.wait().expect("it ends");
    for burner in burners {
        let is_gone = || processes::stat(burner, 3).is_none_or(|state| state == "Z").then_some(());
        until("a burner ends", SOON, is_gone);
    }
    // The guard ends the daemon and the jobs, and then itself.
    let left = || processes::describe(&lab.temporary());
    until("the daemon ends", SOON, || left().is_empty().then_some(()));
    lab.is_clean();
}

#[test]
fn one_processor_and_options_of_other_papers_are_refused() {
    let lab = Lab::new();
    let refused = |arguments: &[&str]| {
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", &cpus()[0].to_string(), env!("CARGO_BIN_EXE_miserly")]);
        let output =
            command.args(arguments).current_dir(lab.0.path()).output().expect("a program that starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, message) = refused(&["reproduce", "miser", "--quick"]);
    assert_eq!(code, Some(2));
    assert!(message.contains("needs two processors; this process may use 1"), "{message}");
    let (code, message) = refused(&["reproduce", "zotkin-2000", "--quick"]);
    assert_eq!(code, Some(2));
    assert!(message.contains("--quick is an option of miser-1999 only"), "{message}");
    let (code, message) = refused(&["reproduce", "miser-1999", "--only", "5-none"]);
    assert_eq!(code, Some(2));
    assert!(message.contains("the parts of miser-1999 are 1-load, 2-interactive"), "{message}");
}

/// Returns the children of a process.
fn processes_below(parent: u32) -> Vec<u32> {
    let pids = fs::read_dir("/proc").expect("/proc").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| processes::stat(*pid, 4).is_some_and(|field| field == parent.to_string())).collect()
}

/// Returns whether a process has become a burner with its parent's death signal: it is in a session of its own.
fn is_burner(pid: u32) -> bool {
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let is_own_session = processes::stat(pid, 6).is_some_and(|session| session == pid.to_string());
    is_own_session && command.split(|byte| *byte == 0).any(|word| word == b"burn")
}
