//! The processes that a daemon left behind.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

/// Ends the shims and jobs of the daemon in this folder. Does so twice, because a shim may just start a process.
pub(crate) fn kill_all(folder: &Path) {
    for _ in 0..2 {
        for pid in of_daemon(folder) {
            // It may have ended.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Returns the shims and jobs of the daemon in this folder. Its path is in their arguments or environment.
pub(crate) fn of_daemon(folder: &Path) -> Vec<Pid> {
    let needle = folder.as_os_str().as_encoded_bytes();
    let has = |pid: &Pid, file: &str| {
        let bytes = fs::read(format!("/proc/{}/{file}", pid.as_raw_nonzero())).unwrap_or_default();
        bytes.windows(needle.len()).any(|part| part == needle)
    };
    let numbers = fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    let own = rustix::process::getpid();
    numbers.filter(|pid| *pid != own && (has(pid, "cmdline") || has(pid, "environ"))).collect()
}

/// Describes the processes of the daemon in this folder, with their states.
pub(crate) fn describe(folder: &Path) -> String {
    let read = |pid: &Pid, file: &str| {
        let bytes = fs::read(format!("/proc/{}/{file}", pid.as_raw_nonzero())).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ")
    };
    let line = |pid: Pid| format!("{}  {}", read(&pid, "stat").trim_end(), read(&pid, "cmdline"));
    of_daemon(folder).into_iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns an argument of a process by its number, or `None` if it has ended.
pub(crate) fn argument(pid: Pid, nth: usize) -> Option<String> {
    let bytes = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).ok()?;
    bytes.split(|byte| *byte == 0).nth(nth).map(|word| String::from_utf8_lossy(word).into_owned())
}

/// Returns a field of `/proc/PID/stat` by its number in proc(5), from 3 on, or `None` if the process has ended.
pub(crate) fn stat(pid: u32, field: usize) -> Option<String> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    line.rsplit_once(')')?.1.split_whitespace().nth(field - 3).map(str::to_owned)
}

/// Returns the state of a process, as a letter.
pub(crate) fn state(pid: u32) -> Option<String> {
    stat(pid, 3)
}

/// Returns the scheduling class of a process, or `None` if it has ended.
pub(crate) fn class(pid: u32) -> Option<String> {
    stat(pid, 41)
}

/// Returns whether a class is the idle one.
pub(crate) fn is_idle_class(class: &str) -> bool {
    class == "5"
}

/// Returns whether a process is in the idle class.
pub(crate) fn is_idle(pid: u32) -> bool {
    class(pid).is_some_and(|class| is_idle_class(&class))
}

/// Returns the processors that it may use, as the kernel lists them.
pub(crate) fn allowed(pid: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap_or_default().trim().to_owned()
}

/// Returns the shims of the daemon in this folder, without the programs that are about to become their commands.
pub(crate) fn shims(folder: &Path) -> Vec<Pid> {
    let is_shim = |pid: &Pid| {
        let bytes = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
        bytes.split(|byte| *byte == 0).any(|word| word == b"shim")
    };
    let all: Vec<Pid> = of_daemon(folder).into_iter().filter(is_shim).collect();
    let numbers: Vec<String> = all.iter().map(|pid| pid.as_raw_nonzero().to_string()).collect();
    let parent = |pid: &Pid| stat(pid.as_raw_nonzero().get().unsigned_abs(), 4);
    all.iter().copied().filter(|pid| parent(pid).is_none_or(|parent| !numbers.contains(&parent))).collect()
}
