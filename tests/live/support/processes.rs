//! The processes that a daemon has left.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

/// Ends the shims and jobs of the daemon in this folder; twice, since the first time a shim may be just about to start something.
pub(crate) fn kill_all(folder: &Path) {
    for _ in 0..2 {
        for pid in of(folder) {
            // It may have gone.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// The shims and jobs of the daemon in this folder: they have its path in their arguments or in their environment.
pub(crate) fn of(folder: &Path) -> Vec<Pid> {
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

/// What the processes of the daemon in this folder are, and in which state.
pub(crate) fn told(folder: &Path) -> String {
    let read = |pid: &Pid, file: &str| {
        let bytes = fs::read(format!("/proc/{}/{file}", pid.as_raw_nonzero())).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ")
    };
    let line = |pid: Pid| format!("{}  {}", read(&pid, "stat").trim_end(), read(&pid, "cmdline"));
    of(folder).into_iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A field of `/proc/PID/stat`, by its number in proc(5), which begins with 3 here; none where the process has gone.
pub(crate) fn stat(pid: u32, field: usize) -> Option<String> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    line.rsplit_once(')')?.1.split_whitespace().nth(field - 3).map(str::to_owned)
}

/// Its state, as a letter.
pub(crate) fn state(pid: u32) -> Option<String> {
    stat(pid, 3)
}

/// Returns the scheduling class of a process, or `None` where it has gone.
pub(crate) fn class(pid: u32) -> Option<String> {
    stat(pid, 41)
}

/// Returns whether a class is the idle one.
pub(crate) fn is_idle_class(class: &str) -> bool {
    class == "5"
}

/// Whether it is of the idle class.
pub(crate) fn is_idle(pid: u32) -> bool {
    class(pid).is_some_and(|class| is_idle_class(&class))
}

/// The processor time that it has had, in clock ticks.
pub(crate) fn ticks(pid: u32) -> u64 {
    let field = |number| stat(pid, number).and_then(|text| text.parse().ok()).unwrap_or(0_u64);
    field(14) + field(15)
}

/// The processors that it may run on, as the kernel lists them.
pub(crate) fn allowed(pid: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap_or_default().trim().to_owned()
}

/// The shims of the daemon in this folder.
pub(crate) fn shims(folder: &Path) -> Vec<Pid> {
    let is_shim = |pid: &Pid| {
        let bytes = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
        bytes.split(|byte| *byte == 0).any(|word| word == b"shim")
    };
    of(folder).into_iter().filter(is_shim).collect()
}
