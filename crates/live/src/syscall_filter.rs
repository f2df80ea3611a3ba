//! The system calls that a daemon without rights no longer makes.
//!
//! The filter is on this process and its threads. The executor is started before, and jobs are its children: neither has it.
//! It forbids what a program that was taken over would use against the kernel and other processes. All else stays allowed,
//! because libraries change which ordinary calls they make.

use std::io;

use libc::c_long;
use rustix::io::Errno;
use rustix::net::AddressFamily;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter, sock_filter,
};

/// The system calls that are forbidden.
const FORBIDDEN: &[c_long] = &[
    // Other programs.
    libc::SYS_execve,
    libc::SYS_execveat,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_open_by_handle_at,
    // Large parts of the kernel that a daemon does not need.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_vmsplice,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_personality,
    // The machine.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
];

/// Those that one processor has more.
#[cfg(target_arch = "x86_64")]
const FORBIDDEN_HERE: &[c_long] = &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt];
#[cfg(not(target_arch = "x86_64"))]
const FORBIDDEN_HERE: &[c_long] = &[];

/// The flags of clone(2) that make namespaces.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// The first number of the x32 calls of x86-64, which have numbers of their own.
const X32: u32 = 0x4000_0000;

/// Instructions of filters: load a word, jump if it is not less than a number, return.
const LOAD: u16 = 0x20;
const JUMP_UNLESS_LESS: u16 = 0x35;
const RETURN: u16 = 0x06;

/// Forbids these calls to this thread and all that it starts, for good.
///
/// # Errors
/// The kernel has no such filters, or there is none for this kind of processor.
pub(crate) fn apply() -> io::Result<()> {
    for program in programs().map_err(io::Error::other)? {
        apply_filter(&program).map_err(io::Error::other)?;
    }
    Ok(())
}

/// Returns the filters. A call is allowed if all of them allow it.
fn programs() -> Result<Vec<BpfProgram>, seccompiler::BackendError> {
    let all = |calls: &[c_long]| calls.iter().map(|call| (*call, vec![])).collect::<Vec<_>>();
    let mut refused = all(FORBIDDEN);
    refused.extend(all(FORBIDDEN_HERE));
    refused.push((libc::SYS_socket, vec![other_sockets()?]));
    refused.push((libc::SYS_clone, namespaces()?));
    Ok(vec![
        x32(),
        program(refused, Errno::PERM)?,
        // Its flags are in memory, which no filter reads. Without it, threads are started by clone(2).
        program(all(&[libc::SYS_clone3]), Errno::NOSYS)?,
    ])
}

fn program(
    calls: Vec<(c_long, Vec<SeccompRule>)>,
    answer: Errno,
) -> Result<BpfProgram, seccompiler::BackendError> {
    let filter = SeccompFilter::new(
        calls.into_iter().collect(),
        SeccompAction::Allow,
        refusal(answer),
        std::env::consts::ARCH.try_into()?,
    )?;
    filter.try_into()
}

fn refusal(answer: Errno) -> SeccompAction {
    SeccompAction::Errno(answer.raw_os_error().unsigned_abs())
}

/// Returns the rule for a socket that is neither local nor one of the kernel's own.
fn other_sockets() -> Result<SeccompRule, seccompiler::BackendError> {
    let is_not = |family: AddressFamily| {
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, u64::from(family.as_raw()))
    };
    SeccompRule::new(vec![is_not(AddressFamily::UNIX)?, is_not(AddressFamily::NETLINK)?])
}

/// Returns a rule for each kind of namespace that clone(2) makes.
fn namespaces() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let rule = |flag: &i32| {
        let flag = u64::from(flag.unsigned_abs());
        let is_set = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(flag), flag)?;
        SeccompRule::new(vec![is_set])
    };
    NAMESPACES.iter().map(rule).collect()
}

/// Returns the filter that refuses all calls by the numbers of x32, which the other filters do not know.
fn x32() -> BpfProgram {
    let instruction = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        // The number of the call is the first field.
        instruction(LOAD, 0, 0, 0),
        instruction(JUMP_UNLESS_LESS, 0, 1, X32),
        instruction(RETURN, 0, 0, refusal(Errno::PERM).into()),
        instruction(RETURN, 0, 0, SeccompAction::Allow.into()),
    ]
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::unix::net::UnixStream;
    use std::process::Command;
    use std::thread;

    use rustix::net::{SocketType, socket};
    use rustix::thread::{UnshareFlags, unshare_unsafe};

    use super::*;

    /// The filter is on the thread that applies it, and not on the other tests.
    #[test]
    fn a_thread_with_the_filter_makes_ordinary_calls_only() {
        let filtered = || {
            apply().unwrap();
            let refused = |result: io::Result<()>| result.unwrap_err().kind();
            assert_eq!(refused(UdpSocket::bind("127.0.0.1:0").map(drop)), io::ErrorKind::PermissionDenied);
            assert_eq!(refused(Command::new("true").spawn().map(drop)), io::ErrorKind::PermissionDenied);
            assert_eq!(refused(unshared()), io::ErrorKind::PermissionDenied);
            assert!(UnixStream::pair().is_ok());
            assert!(socket(AddressFamily::NETLINK, SocketType::DGRAM, None).is_ok());
            // A thread is started, and has the filter too.
            let below = thread::spawn(|| UdpSocket::bind("127.0.0.1:0").is_err());
            assert!(below.join().unwrap());
        };
        thread::spawn(filtered).join().unwrap();
        assert!(UdpSocket::bind("127.0.0.1:0").is_ok());
    }

    /// Tries a new namespace of the host's name, which changes nothing of the other threads.
    fn unshared() -> io::Result<()> {
        // SAFETY: the flag changes the names that this thread sees, and no memory or descriptor.
        #[allow(unsafe_code, reason = "rustix has no safe form of this call")]
        unsafe { unshare_unsafe(UnshareFlags::NEWUTS) }.map_err(Into::into)
    }
}
