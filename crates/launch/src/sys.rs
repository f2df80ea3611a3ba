//! The system calls that rustix does not provide.
//!
//! > **Architecture invariant:** all unsafe code of this crate is in this module.

pub(crate) mod pam;

use miserly_attempt::ProcessUsage;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CapabilitySet, UnshareFlags, remove_capability_from_bounding_set, unshare_unsafe};

/// Removes from the calling thread, for good, what programs with file capabilities or the set-user-ID bit could gain.
///
/// # Errors
/// The thread has no right to do so (`CAP_SETPCAP`).
pub fn empty_bounding_set() -> io::Result<()> {
    for bit in 0..u64::BITS {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << bit)) {
            Ok(()) => {}
            // The kernel has no capability of this number, and none above it.
            Err(Errno::INVAL) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// An instruction of a filter of system calls: code, jumps if true and false, and operand.
pub type FilterInstruction = (u16, u8, u8, u32);

/// Installs a filter of system calls for the calling thread and all that it starts, for good.
///
/// Unlike the functions of libraries it leaves the programs with the set-user-ID bit their rights, so it needs those of root.
///
/// # Errors
/// The kernel has no filters, or refuses this one.
pub fn install_filter(instructions: &[FilterInstruction]) -> io::Result<()> {
    let mut filter: Vec<libc::sock_filter> =
        instructions.iter().map(|&(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k }).collect();
    let length = filter.len().try_into().map_err(io::Error::other)?;
    let program = libc::sock_fprog { len: length, filter: filter.as_mut_ptr() };
    #[allow(unsafe_code, reason = "rustix has no seccomp")]
    // SAFETY: the kernel only reads the program and its instructions, which outlive the call.
    let result =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) };
    checked(result)
}

/// Puts a thread into the idle class (`SCHED_IDLE`) or back into the normal one.
///
/// `None` is the calling thread.
///
/// # Errors
/// `EPERM` if the kernel does not let the thread leave the class; `ESRCH` if the thread has exited.
pub(crate) fn set_idle(thread: Option<Pid>, idle: bool) -> io::Result<()> {
    set_class(thread, if idle { libc::SCHED_IDLE } else { libc::SCHED_OTHER }, 0)
}

/// Puts a thread into the class of round robin (`SCHED_RR`), with the lowest priority. `None` is the calling thread.
///
/// # Errors
/// `EPERM` without the right to do so, or if the thread's control group has no time for real-time threads; `ESRCH` if the thread
/// has exited.
pub(crate) fn set_real_time(thread: Option<Pid>) -> io::Result<()> {
    set_class(thread, libc::SCHED_RR, 1)
}

fn set_class(thread: Option<Pid>, class: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: priority };
    #[allow(unsafe_code, reason = "rustix has no sched_setscheduler")]
    // SAFETY: the kernel only reads the parameter, which outlives the call. The system call is made
    // directly because musl has no wrapper.
    let result = unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, Pid::as_raw(thread), class, &raw const parameter)
    };
    checked(result)
}

/// Returns whether a thread is in the idle class.
///
/// # Errors
/// `ESRCH` if the thread has exited.
pub(crate) fn is_idle(thread: Pid) -> io::Result<bool> {
    #[allow(unsafe_code, reason = "rustix has no sched_getscheduler")]
    // SAFETY: the call takes a number and accesses no memory of this process.
    let class = unsafe { libc::syscall(libc::SYS_sched_getscheduler, thread.as_raw_pid()) };
    checked(class)?;
    Ok(class & !libc::c_long::from(libc::SCHED_RESET_ON_FORK) == libc::c_long::from(libc::SCHED_IDLE))
}

/// Blocks the maskable signals of the calling thread, except those for program faults.
///
/// Returns a descriptor that is readable after a child has changed its state, or after a signal of
/// a shutdown. Signals are blocked, not ignored, because spawned programs would inherit ignored
/// signals.
pub(crate) fn signals() -> io::Result<OwnedFd> {
    let faults = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT, libc::SIGTRAP];
    #[allow(unsafe_code, reason = "rustix has no signal masks and no signalfd")]
    // SAFETY: `sigfillset` and `sigemptyset` initialise both sets before use. The new descriptor
    // has no other owner.
    unsafe {
        let (mut blocked, mut read) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        libc::sigfillset(blocked.as_mut_ptr());
        libc::sigemptyset(read.as_mut_ptr());
        for fault in faults {
            libc::sigdelset(blocked.as_mut_ptr(), fault);
        }
        for signal in [libc::SIGCHLD, libc::SIGTERM, libc::SIGPWR] {
            libc::sigaddset(read.as_mut_ptr(), signal);
        }
        match libc::pthread_sigmask(libc::SIG_BLOCK, blocked.as_ptr(), std::ptr::null_mut()) {
            0 => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
        let fd = libc::signalfd(-1, read.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        checked(fd.into())?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Signals that a shim handles.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Signals {
    /// A child has changed its state.
    pub(crate) child: bool,
    /// The machine or the session shuts down (`SIGTERM`, `SIGPWR`).
    pub(crate) shutdown: bool,
}

/// Consumes the pending signals of such a descriptor.
pub(crate) fn take_signals(fd: &OwnedFd) -> Signals {
    const SIZE: usize = size_of::<libc::signalfd_siginfo>();
    // The kernel merges signals of one kind, so at most three are pending.
    let mut buffer = [0; 3 * SIZE];
    let read = rustix::io::read(fd, &mut buffer).unwrap_or(0);
    let mut signals = Signals::default();
    for info in buffer[..read].chunks_exact(SIZE) {
        // The number of the signal is the first field.
        match info.first_chunk().map(|number| u32::from_ne_bytes(*number)) {
            Some(number) if number == libc::SIGCHLD.unsigned_abs() => signals.child = true,
            _ => signals.shutdown = true,
        }
    }
    signals
}

/// A child that has exited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reaped {
    pub(crate) pid: u32,
    /// The status, as `wait` returns it.
    pub(crate) status: i32,
    /// What it used, with the children that it waited for.
    pub(crate) usage: ProcessUsage,
}

/// Reaps a child that has exited, if there is one.
///
/// # Errors
/// `ECHILD` if there is no child at all, `EINTR`.
pub(crate) fn reap() -> io::Result<Option<Reaped>> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    #[allow(unsafe_code, reason = "rustix has no wait4")]
    // SAFETY: the kernel writes the status and the usage, which outlive the call. All bits of a usage may be zero.
    let (pid, usage) = unsafe {
        let pid = libc::wait4(-1, &raw mut status, libc::WNOHANG, usage.as_mut_ptr());
        (pid, usage.assume_init())
    };
    checked(pid.into())?;
    let time = |of: libc::timeval| {
        let seconds = Duration::from_secs(u64::try_from(of.tv_sec).unwrap_or(0));
        seconds + Duration::from_micros(u64::try_from(of.tv_usec).unwrap_or(0))
    };
    let usage = ProcessUsage {
        user: time(usage.ru_utime),
        system: time(usage.ru_stime),
        memory_peak: u64::try_from(usage.ru_maxrss).unwrap_or(0).saturating_mul(1024),
    };
    Ok((pid > 0).then_some(Reaped { pid: pid.unsigned_abs(), status, usage }))
}

/// Sets the processors of a thread from a set of bits in words.
///
/// # Errors
/// The kernel rejects the set, or the thread has exited.
pub(crate) fn set_affinity(thread: Option<Pid>, set: &[libc::c_ulong]) -> io::Result<()> {
    #[allow(unsafe_code, reason = "the sets of rustix have 1024 processors")]
    // SAFETY: the kernel only reads the set, whose size is passed.
    let result = unsafe {
        libc::syscall(libc::SYS_sched_setaffinity, Pid::as_raw(thread), size_of_val(set), set.as_ptr())
    };
    checked(result)
}

/// Returns the processors of a thread as a set of bits in `words` words.
///
/// # Errors
/// `EINVAL` if the kernel's set is larger.
pub(crate) fn affinity(thread: Option<Pid>, words: usize) -> io::Result<Vec<libc::c_ulong>> {
    let mut set = vec![0; words];
    #[allow(unsafe_code, reason = "the sets of rustix have 1024 processors")]
    // SAFETY: the kernel writes at most the size that is passed.
    let result = unsafe {
        let size = size_of_val(set.as_slice());
        libc::syscall(libc::SYS_sched_getaffinity, Pid::as_raw(thread), size, set.as_mut_ptr())
    };
    checked(result)?;
    Ok(set)
}

/// Resets every signal to its default action and unblocks all.
///
/// The job inherits neither the mask of the shim nor signals that a shell or `nohup` ignores.
pub(crate) fn default_signals() {
    #[allow(unsafe_code, reason = "rustix has no signal masks and does not set the actions of signals")]
    // SAFETY: `sigemptyset` initialises the set before use, and no handler is installed. The call
    // fails without effect for `SIGKILL` and `SIGSTOP`.
    unsafe {
        for signal in 1..=libc::SIGRTMAX() {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none = MaybeUninit::uninit();
        libc::sigemptyset(none.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
    }
}

/// Copies this process, which has one thread. Returns the number of the copy, and `None` in the copy.
///
/// # Errors
/// `EAGAIN` or `ENOMEM`: there is no room for another process.
pub(crate) fn fork() -> io::Result<Option<u32>> {
    #[allow(unsafe_code, reason = "rustix does not copy processes")]
    // SAFETY: without another thread no lock is held that the copy lacks the owner of, so the copy may call any function.
    let pid = unsafe { libc::fork() };
    checked(pid.into())?;
    Ok((pid > 0).then_some(pid.unsigned_abs()))
}

/// Closes all files of a copy of a process but the first three, including those inherited by the daemon. The copy uses no
/// value that owns one of them.
///
/// Has no effect on kernels before 5.9.
pub(crate) fn close_files() {
    const FIRST: libc::c_long = 3;
    const LAST: libc::c_long = libc::c_uint::MAX as libc::c_long;
    #[allow(unsafe_code, reason = "rustix has no close_range")]
    // SAFETY: the call accesses no memory. The owners of the files are values of the other process, and are not dropped here.
    unsafe {
        libc::syscall(libc::SYS_close_range, FIRST, LAST, 0);
    }
}

/// Takes mounts and System V IPC of the machine away from this process, which has one thread. It keeps copies of the mounts.
///
/// # Errors
/// `EPERM` without the right to do so.
pub(crate) fn unshare_mounts_and_ipc() -> io::Result<()> {
    #[allow(unsafe_code, reason = "the function of rustix is unsafe for the sake of shared file descriptors")]
    // SAFETY: the table of descriptors stays shared.
    let unshared = unsafe { unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::NEWIPC) };
    Ok(unshared?)
}

/// Gives this process a session keyring of its own, so that it shares none with the daemon.
///
/// # Errors
/// `ENOSYS` on a kernel without keys.
pub(crate) fn join_new_session_keyring() -> io::Result<()> {
    const JOIN_SESSION_KEYRING: libc::c_long = 1;
    #[allow(unsafe_code, reason = "rustix has no keyctl")]
    // SAFETY: a null name asks for a keyring without a name; no memory is accessed.
    let result = unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, std::ptr::null::<u8>()) };
    checked(result)
}

/// Converts the result of a call that returns -1 on failure.
fn checked(result: libc::c_long) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
