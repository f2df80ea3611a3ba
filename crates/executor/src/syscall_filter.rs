//! The system calls that the executor, its shims and their jobs no longer make.
//!
//! A filter is inherited and cannot be removed. So it forbids only what changes the machine as a whole, which no job may do in any
//! case, and what an executor or a shim that was taken over would use against the kernel. A job of a queue with
//! `no-new-privileges = false` cannot do this through `sudo` either.

use std::collections::BTreeMap;
use std::io;

use miserly_launch::{FilterInstruction, install_filter};
use rustix::io::Errno;
use seccompiler::{BackendError, BpfProgram, SeccompAction, SeccompFilter};

/// The system calls that are forbidden.
const FORBIDDEN: &[libc::c_long] = &[
    // Code in the kernel.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_bpf,
    // The machine.
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_open_by_handle_at,
];

/// Those that one processor has more.
#[cfg(target_arch = "x86_64")]
const FORBIDDEN_HERE: &[libc::c_long] = &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_kexec_file_load];
#[cfg(not(target_arch = "x86_64"))]
const FORBIDDEN_HERE: &[libc::c_long] = &[];

/// Forbids these calls to this thread and all that it starts, for good.
///
/// # Errors
/// The kernel has no such filters, or there is none for this kind of processor.
pub(crate) fn apply() -> io::Result<()> {
    install(&[])
}

/// Forbids these calls but the one that hides devices from control groups.
///
/// # Errors
/// As [`apply`].
pub(crate) fn apply_for_devices() -> io::Result<()> {
    install(&[libc::SYS_bpf])
}

fn install(permitted: &[libc::c_long]) -> io::Result<()> {
    let program = program(permitted).map_err(io::Error::other)?;
    let instructions: Vec<FilterInstruction> =
        program.iter().map(|one| (one.code, one.jt, one.jf, one.k)).collect();
    install_filter(&instructions)
}

fn program(permitted: &[libc::c_long]) -> Result<BpfProgram, BackendError> {
    let refusal = SeccompAction::Errno(Errno::PERM.raw_os_error().unsigned_abs());
    let calls = FORBIDDEN.iter().chain(FORBIDDEN_HERE).filter(|call| !permitted.contains(call));
    let calls: BTreeMap<_, _> = calls.map(|call| (*call, Vec::new())).collect();
    SeccompFilter::new(calls, SeccompAction::Allow, refusal, std::env::consts::ARCH.try_into()?)?.try_into()
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::thread;

    use miserly_test_support::Requirement;
    use rustix::process::geteuid;
    use rustix::thread::no_new_privs;
    use rustix::time::{ClockId, Timespec, clock_settime};

    use super::*;

    /// The filter is on the thread that applies it, and not on the other tests.
    #[test]
    fn a_thread_with_the_filter_starts_programs_and_does_not_change_the_machine() {
        if !Requirement::Root.is_met(geteuid().is_root(), "needs root") {
            return;
        }
        let filtered = || {
            apply().unwrap();
            assert!(!no_new_privs().unwrap(), "programs with the set-user-ID bit keep their rights");
            // Without a filter this instant would be refused as such (EINVAL), also to root.
            let invalid = Timespec { tv_sec: -1, tv_nsec: -1 };
            assert_eq!(clock_settime(ClockId::Realtime, invalid), Err(Errno::PERM));
            assert!(Command::new("true").status().unwrap().success());
        };
        thread::spawn(filtered).join().unwrap();
    }
}
