//! The system calls that rustix does not offer.
//!
//! > Everything unsafe of this crate is in here.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Duration;

use rustix::process::Pid;

/// Puts a thread into the idle class (`SCHED_IDLE`) or back into the ordinary one; the calling thread for `None`.
///
/// # Errors
/// `EPERM` for a way back that the kernel does not grant; `ESRCH` if the thread has gone.
pub(crate) fn set_idle(thread: Option<Pid>, idle: bool) -> io::Result<()> {
    let class = if idle { libc::SCHED_IDLE } else { libc::SCHED_OTHER };
    let parameter = libc::sched_param { sched_priority: 0 };
    #[allow(unsafe_code, reason = "rustix has no sched_setscheduler")]
    // SAFETY: the kernel only reads the parameter, which lives until the call is over. The call itself, not libc's, which
    // musl leaves out.
    let result = unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, Pid::as_raw(thread), class, &raw const parameter)
    };
    checked(result)
}

/// Whether a thread is of the idle class.
///
/// # Errors
/// `ESRCH` if it has gone.
pub(crate) fn is_idle(thread: Pid) -> io::Result<bool> {
    #[allow(unsafe_code, reason = "rustix has no sched_getscheduler")]
    // SAFETY: the call takes a number and touches no memory of ours.
    let class = unsafe { libc::syscall(libc::SYS_sched_getscheduler, thread.as_raw_pid()) };
    checked(class)?;
    Ok(class & !libc::c_long::from(libc::SCHED_RESET_ON_FORK) == libc::c_long::from(libc::SCHED_IDLE))
}

/// Blocks every signal that can be blocked and does not tell of a fault of this program, for the calling thread; a
/// descriptor that is readable when a child has changed its state.
///
/// Blocked, not ignored: what is ignored stays so in the programs that a process starts.
pub(crate) fn only_children() -> io::Result<OwnedFd> {
    let faults = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT, libc::SIGTRAP];
    #[allow(unsafe_code, reason = "rustix has no signal masks and no signalfd")]
    // SAFETY: both sets are initialised by sigfillset and sigemptyset before use; the descriptor is new, and ours alone.
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

/// Takes what such a descriptor has to tell; whether it was anything.
pub(crate) fn take_signals(fd: &OwnedFd) -> bool {
    let mut buffer = [0; size_of::<libc::signalfd_siginfo>()];
    // Signals of one kind are told of once, so there is one to take at most.
    matches!(rustix::io::read(fd, &mut buffer), Ok(read) if read > 0)
}

/// Gives every signal its default action and blocks none: neither what the shim blocks nor what a shell or `nohup` made the
/// daemon ignore is the job's affair.
pub(crate) fn default_signals() {
    #[allow(unsafe_code, reason = "rustix has no signal masks and does not set the actions of signals")]
    // SAFETY: the set is initialised by sigemptyset before use; no handler is installed, only the default, and for KILL and
    // STOP that fails and nothing changes.
    unsafe {
        for signal in 1..=libc::SIGRTMAX() {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none = MaybeUninit::uninit();
        libc::sigemptyset(none.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
    }
}

/// Leaves every open file behind at the next exec but the first three: what the daemon's own parents left open in it.
///
/// Kernels before 5.11 cannot; the files stay open there.
pub(crate) fn leave_files_behind() {
    const FIRST: libc::c_long = 3;
    const LAST: libc::c_long = libc::c_uint::MAX as libc::c_long;
    #[allow(unsafe_code, reason = "rustix has no close_range")]
    // SAFETY: no file is closed now, and no memory is touched.
    unsafe {
        libc::syscall(libc::SYS_close_range, FIRST, LAST, libc::c_long::from(libc::CLOSE_RANGE_CLOEXEC));
    }
}

/// What the children that were waited for, and theirs, have used.
pub(crate) struct Usage {
    pub(crate) user: Duration,
    pub(crate) system: Duration,
    /// The largest resident set of any one, in bytes.
    pub(crate) max_rss: u64,
}

/// What the children that were waited for, and theirs, have used.
pub(crate) fn used_by_children() -> Usage {
    #[allow(unsafe_code, reason = "rustix has no getrusage")]
    // SAFETY: the struct is plain numbers, for which all zeros is a value, and the kernel writes no more than it.
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

/// What a call that returns -1 on failure says.
fn checked(result: libc::c_long) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
