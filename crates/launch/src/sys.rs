//! The system calls that rustix does not provide.
//!
//! > **Architecture invariant:** all unsafe code of this crate is in this module.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Duration;

use rustix::process::Pid;

/// Puts a thread into the idle class (`SCHED_IDLE`) or back into the normal one.
///
/// `None` is the calling thread.
///
/// # Errors
/// `EPERM` if the kernel does not let the thread leave the class; `ESRCH` if the thread has exited.
pub(crate) fn set_idle(thread: Option<Pid>, idle: bool) -> io::Result<()> {
    let class = if idle { libc::SCHED_IDLE } else { libc::SCHED_OTHER };
    let parameter = libc::sched_param { sched_priority: 0 };
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
/// Returns a descriptor that is readable after a child has changed its state. Signals are blocked,
/// not ignored, because spawned programs would inherit ignored signals.
pub(crate) fn child_signals() -> io::Result<OwnedFd> {
    let faults = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT, libc::SIGTRAP];
    #[allow(unsafe_code, reason = "rustix has no signal masks and no signalfd")]
    // SAFETY: `sigfillset` and `sigemptyset` initialise both sets before use. The new descriptor
    // has no other owner.
    unsafe {
        let (mut blocked, mut children) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        libc::sigfillset(blocked.as_mut_ptr());
        libc::sigemptyset(children.as_mut_ptr());
        for fault in faults {
            libc::sigdelset(blocked.as_mut_ptr(), fault);
        }
        libc::sigaddset(children.as_mut_ptr(), libc::SIGCHLD);
        match libc::pthread_sigmask(libc::SIG_BLOCK, blocked.as_ptr(), std::ptr::null_mut()) {
            0 => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
        let fd = libc::signalfd(-1, children.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        checked(fd.into())?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Consumes the pending signal of such a descriptor; `true` if there was one.
pub(crate) fn take_signals(fd: &OwnedFd) -> bool {
    let mut buffer = [0; size_of::<libc::signalfd_siginfo>()];
    // The kernel merges signals of one kind, so at most one is pending.
    matches!(rustix::io::read(fd, &mut buffer), Ok(read) if read > 0)
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

/// Marks all files but the first three as close-on-exec, including those inherited by the daemon.
///
/// Has no effect on kernels before 5.11.
pub(crate) fn close_files_on_exec() {
    const FIRST: libc::c_long = 3;
    const LAST: libc::c_long = libc::c_uint::MAX as libc::c_long;
    #[allow(unsafe_code, reason = "rustix has no close_range")]
    // SAFETY: the call closes no file now and accesses no memory.
    unsafe {
        libc::syscall(libc::SYS_close_range, FIRST, LAST, libc::c_long::from(libc::CLOSE_RANGE_CLOEXEC));
    }
}

/// The resource usage of reaped children and their descendants.
pub(crate) struct Usage {
    pub(crate) user: Duration,
    pub(crate) system: Duration,
    /// Largest resident set of a single process, in bytes.
    pub(crate) max_rss: u64,
}

/// Returns the resource usage of reaped children and their descendants.
pub(crate) fn children_usage() -> Usage {
    #[allow(unsafe_code, reason = "rustix has no getrusage")]
    // SAFETY: the struct consists of numbers, for which zero is valid, and the kernel writes only
    // within it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let max_rss = u64::try_from(usage.ru_maxrss).unwrap_or(0).saturating_mul(1024);
    Usage { user: duration(usage.ru_utime), system: duration(usage.ru_stime), max_rss }
}

fn duration(time: libc::timeval) -> Duration {
    let whole = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0));
    whole + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
}

/// Converts the result of a call that returns -1 on failure.
fn checked(result: libc::c_long) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
