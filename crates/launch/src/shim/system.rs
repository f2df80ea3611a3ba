//! The machine of a shim: the kernel.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use miserly_attempt::shim::{
    CpuTimes, Events, Host, Reaped, Recipients, Shim, Signal, StopScan, ThreadClass,
};
use miserly_attempt::{AttemptSpec, BootTime, Exit, Files as _, Identity, JobUser, ProgramKind};
use miserly_cgroup::{CgroupError, Limits, Usage};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{Signal as KernelSignal, getpid, set_child_subreaper, umask};
use rustix::time::{ClockId, clock_gettime};

use super::alarm::Alarm;
use super::job_cgroup::JobCgroup;
use super::job_processes::{JobProcesses, set_class, set_session_nice};
use super::{copy, exec, pam_session, program_runner};
use crate::clock::MachineClock as _;
use crate::connection::Connection;
use crate::folder::{AttemptLock, Folder};
use crate::identity::{self, raw};
use crate::shortage::{LaunchStep, is_shortage};
use crate::{cpus, procfs, sys, wait};

/// Of -1000, never killed, to 1000.
const OUT_OF_MEMORY_SCORE: &str = "-900";

/// The kernel, as a shim uses it.
pub(super) struct System {
    dir: PathBuf,
    signals: OwnedFd,
    alarm: Alarm,
    listener: Option<UnixListener>,
    processes: JobProcesses,
    /// Whether the last wait has reported an event of the control group.
    has_cgroup_event: Cell<bool>,
}

impl System {
    /// Blocks the signals of this process, opens the folder of its attempt and leaves its directory.
    pub(super) fn new(dir: &Path) -> Result<(System, Folder), String> {
        let text = |error: io::Error| error.to_string();
        let signals = sys::signals().map_err(text)?;
        umask(Mode::RWXG | Mode::RWXO);
        let folder = Folder::open(dir).map_err(|error| error.to_string())?;
        // The shim must not keep a file system mounted.
        std::env::set_current_dir("/").map_err(text)?;
        let system = System {
            dir: folder.path().to_owned(),
            signals,
            alarm: Alarm::new().map_err(text)?,
            listener: None,
            processes: JobProcesses::none(),
            has_cgroup_event: Cell::new(false),
        };
        Ok((system, folder))
    }

    /// Waits for a reason for the next step of a shim.
    pub(super) fn wait(&self, shim: &Shim<System>) -> io::Result<()> {
        self.alarm.set(shim.next())?;
        let mut polled =
            vec![PollFd::new(&self.signals, PollFlags::IN), PollFd::new(&self.alarm, PollFlags::IN)];
        polled.extend(self.listener.as_ref().map(|listener| PollFd::new(listener, PollFlags::IN)));
        polled.extend(shim.connections().map(|connection| PollFd::new(connection, PollFlags::IN)));
        // The last one, so that its result is found.
        let cgroup = self.processes.watched_cgroup();
        polled.extend(cgroup.map(|cgroup| PollFd::new(cgroup, PollFlags::PRI)));
        match poll(&mut polled, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let has_events = polled.last().is_some_and(|last| last.revents().contains(PollFlags::PRI));
        if let Some(cgroup) = cgroup.filter(|_| has_events) {
            self.has_cgroup_event.set(true);
            cgroup.clear_events();
        }
        self.alarm.clear()
    }
}

impl Host for System {
    type Files = Folder;
    type Connection = Connection;

    fn now(&self) -> BootTime {
        BootTime::now()
    }

    fn awake(&self) -> Duration {
        clock_gettime(ClockId::Monotonic).try_into().unwrap_or_default()
    }

    fn pause(&mut self, length: Duration) {
        thread::sleep(length);
    }

    fn wait_for(&mut self, connection: &Connection, until: BootTime) -> io::Result<()> {
        wait::readable(&[connection.as_fd()], until).map(|_| ())
    }

    fn identity(&self) -> io::Result<Identity> {
        identity::of(std::process::id())
    }

    fn is_shortage(&self, error: &io::Error) -> bool {
        is_shortage(error)
    }

    fn log(&self, message: &dyn Display) {
        super::log(message);
    }

    fn listen(&mut self, folder: &Folder) -> io::Result<()> {
        LaunchStep::Claim.pass(&self.dir)?;
        let listener = folder.listen()?;
        listener.set_nonblocking(true)?;
        self.listener = Some(listener);
        Ok(())
    }

    fn accept(&mut self) -> Option<Connection> {
        loop {
            let (stream, _) = self.listener.as_ref()?.accept().ok()?;
            if let Ok(connection) = Connection::new(stream) {
                return Some(connection);
            }
        }
    }

    fn start_main(&mut self, spec: &AttemptSpec) -> io::Result<(u32, Connection)> {
        set_child_subreaper(Some(getpid()))?;
        // Only root may become a late choice of the kernel's out-of-memory killer. The command resets it.
        let _ = std::fs::write("/proc/self/oom_score_adj", OUT_OF_MEMORY_SCORE);
        let cgroup = JobCgroup::begin(spec)?;
        LaunchStep::SpawnCommand.pass(&self.dir)?;
        let (ours, theirs) = UnixStream::pair()?;
        let ours = Connection::new(ours)?;
        let main = copy(&self.dir, Some(&OwnedFd::from(theirs)), exec::become_command)?;
        self.processes = JobProcesses::new(main, cgroup);
        Ok((main, ours))
    }

    fn main_identity(&self) -> io::Result<(Identity, Option<String>)> {
        let main = self.processes.main;
        Ok((identity::of(main)?, procfs::autogroup(main)))
    }

    fn start_program(&mut self, kind: ProgramKind, lock: &AttemptLock) -> io::Result<(u32, Connection)> {
        let (ours, theirs) = UnixStream::pair()?;
        let ours = Connection::new(ours)?;
        let mut command = program_runner::runner(&self.dir, kind);
        let runner = command.stdin(OwnedFd::from(theirs)).stdout(lock.descriptor()?).spawn()?.id();
        self.processes.program = Some(runner);
        Ok((runner, ours))
    }

    fn kill_program(&mut self) -> io::Result<()> {
        self.processes.kill_program()
    }

    fn close_session(&mut self, user: &JobUser) -> io::Result<()> {
        pam_session::begin_close(&self.dir, user)
    }

    fn take_events(&mut self) -> Events {
        let sys::Signals { child, shutdown } = sys::take_signals(&self.signals);
        Events { child, shutdown, cgroup: self.has_cgroup_event.take() }
    }

    fn reap(&mut self) -> io::Result<Reaped> {
        loop {
            match sys::reap() {
                Ok(Some(sys::Reaped { pid, status, usage })) => {
                    self.processes.program.take_if(|program| *program == pid);
                    return Ok(Reaped::Child { pid, exit: exit(status), usage });
                }
                Ok(None) => return Ok(Reaped::Nothing),
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::INTR) => {}
                    Some(Errno::CHILD) => return Ok(Reaped::NoChild),
                    _ => return Err(error),
                },
            }
        }
    }

    fn signal(&mut self, signal: Signal, to: Recipients) -> io::Result<()> {
        let signal = match signal {
            Signal::Terminate => KernelSignal::TERM,
            Signal::Stop => KernelSignal::STOP,
            Signal::Continue => KernelSignal::CONT,
            Signal::Number(number) => match KernelSignal::from_named_raw(number.into()) {
                Some(signal) => signal,
                None => return Ok(()),
            },
        };
        self.processes.signal(signal, to)
    }

    fn kill(&mut self) -> io::Result<()> {
        self.processes.kill()
    }

    fn stop(&mut self, sent: &mut BTreeSet<(u32, u64)>) -> io::Result<StopScan> {
        self.processes.stop(sent)
    }

    fn running(&self) -> io::Result<Vec<u32>> {
        self.processes.running()
    }

    fn are_gone(&self) -> io::Result<bool> {
        self.processes.are_gone()
    }

    fn place(&mut self, cpus: &[u32], class: Option<ThreadClass>) -> io::Result<()> {
        self.processes.place(cpus, class)
    }

    fn place_main(&mut self, cpus: &[u32]) -> io::Result<()> {
        Ok(cpus::set_affinity(raw(self.processes.main), cpus)?)
    }

    fn affinity(&self) -> Vec<u32> {
        raw(self.processes.main).and_then(|main| cpus::affinity(Some(main)).ok()).unwrap_or_default()
    }

    fn set_idle(&mut self) -> io::Result<()> {
        sys::set_idle(raw(self.processes.main), true)
    }

    fn set_class(&mut self, class: ThreadClass) {
        set_class(raw(self.processes.main), class);
    }

    fn is_idle(&self) -> bool {
        raw(self.processes.main).is_some_and(|main| sys::is_idle(main).unwrap_or(false))
    }

    fn set_nice(&mut self, nice: i32) -> bool {
        set_session_nice(self.processes.main, nice)
    }

    fn cgroup(&self) -> Option<PathBuf> {
        self.processes.cgroup.as_ref().map(|cgroup| cgroup.path().to_owned())
    }

    fn limit(&mut self, limits: &Limits) -> Vec<CgroupError> {
        self.processes.cgroup.as_ref().map(|cgroup| cgroup.limit(limits)).unwrap_or_default()
    }

    fn set_weight(&mut self, raised: bool) {
        let cgroup = self.processes.cgroup.as_ref();
        if let Some(Err(error)) = cgroup.map(|cgroup| cgroup.set_weight(raised)) {
            self.log(&error);
        }
    }

    fn freeze(&mut self, on: bool) -> io::Result<()> {
        self.processes.cgroup.as_ref().map_or(Ok(()), |cgroup| cgroup.freeze(on))
    }

    fn usage(&self) -> Option<Usage> {
        self.processes.cgroup.as_ref().and_then(JobCgroup::usage)
    }

    fn cpu_times(&self) -> io::Result<CpuTimes> {
        self.processes.cpu_times()
    }

    fn write_to_job(&mut self, text: &str) -> io::Result<()> {
        self.processes.write_to_main(text)
    }
}

/// Returns the exit that a status of `wait` stands for.
fn exit(status: i32) -> Exit {
    if libc::WIFSIGNALED(status) {
        Exit::Signal { signal: libc::WTERMSIG(status), core: libc::WCOREDUMP(status) }
    } else {
        Exit::Code(libc::WEXITSTATUS(status))
    }
}
