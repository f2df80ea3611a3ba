//! The processes of a job: the shim's descendants and all processes in the session.
//!
//! The shim adopts orphans (`PR_SET_CHILD_SUBREAPER`), so a process that leaves the session is
//! still found.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, Write};

use miserly_attempt::shim::{CRITICAL_NICE, CpuTime, CpuTimes, Recipients, StopScan, ThreadClass};
use miserly_cgroup::Capability;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Signal, kill_process, kill_process_group, pidfd_getfd, pidfd_open,
    setpriority_process,
};

use super::job_cgroup::JobCgroup;
use crate::cpus;
use crate::identity::{self, raw};
use crate::procfs::{self, Stat};
use crate::sys;

/// A number that no process has.
const NO_PROCESS: u32 = u32::MAX;

/// Limit of scans for a job that creates threads faster than they can be moved.
const MAX_SCANS: u32 = 100;

/// The processes of a job.
pub(super) struct JobProcesses {
    /// Main process, which leads the session.
    pub(super) main: u32,
    shim: u32,
    pub(super) cgroup: Option<JobCgroup>,
    /// The process that runs a program of the queue, as long as it runs.
    pub(super) program: Option<u32>,
}

impl JobProcesses {
    /// Returns the processes before the main process exists.
    pub(super) fn none() -> JobProcesses {
        JobProcesses::new(NO_PROCESS, None)
    }

    pub(super) fn new(main: u32, cgroup: Option<JobCgroup>) -> JobProcesses {
        JobProcesses { main, shim: std::process::id(), cgroup, program: None }
    }

    /// Returns the control group, if it can do something.
    fn cgroup(&self, can: Capability) -> Option<&JobCgroup> {
        self.cgroup.as_ref().filter(|cgroup| cgroup.can(can))
    }

    /// Returns the control group, unless it was removed by somebody else and reports nothing.
    pub(super) fn watched_cgroup(&self) -> Option<&JobCgroup> {
        self.cgroup.as_ref().filter(|cgroup| cgroup.is_watched())
    }

    /// As `Host::kill_program`.
    pub(super) fn kill_program(&self) -> io::Result<()> {
        let Some(runner) = self.program else { return Ok(()) };
        let all = procfs::processes()?;
        let members = procfs::descendants(&all, BTreeSet::from([runner]));
        for stat in all.iter().filter(|stat| members.contains(&stat.pid) && !stat.is_dead()) {
            send(stat, Signal::KILL)?;
        }
        Ok(())
    }

    /// Returns the processes that are not dead, without those of a program of the queue. Only these are stopped.
    fn stoppable(&self) -> io::Result<Vec<Stat>> {
        let mut living = self.living()?;
        if let Some(runner) = self.program {
            let members = procfs::descendants(&living, BTreeSet::from([runner]));
            living.retain(|stat| !members.contains(&stat.pid));
        }
        Ok(living)
    }

    /// Returns the processes that are not dead, with those of a program of the queue.
    fn living(&self) -> io::Result<Vec<Stat>> {
        Ok(self.all()?.into_iter().filter(|stat| !stat.is_dead()).collect())
    }

    /// Returns all processes, with those that are dead and that their parents have not waited for.
    fn all(&self) -> io::Result<Vec<Stat>> {
        let all = procfs::processes()?;
        let mut members = BTreeSet::from([self.shim]);
        members.extend(all.iter().filter(|stat| stat.session == self.main).map(|stat| stat.pid));
        if let Some(cgroup) = &self.cgroup {
            members.extend(cgroup.processes()?);
        }
        let mut members = procfs::descendants(&all, members);
        members.remove(&self.shim);
        Ok(all.into_iter().filter(|stat| members.contains(&stat.pid)).collect())
    }

    /// As `Host::are_gone`: the shim adopts orphans, so without a child it has no descendant either. A process that another
    /// program moved into the control group is none. Only for such a process all processes of the machine are read.
    pub(super) fn are_gone(&self) -> io::Result<bool> {
        let Some(cgroup) = &self.cgroup else { return Ok(true) };
        Ok(cgroup.processes()?.is_empty() || self.living()?.is_empty())
    }

    /// As `Host::kill`.
    pub(super) fn kill(&self) -> io::Result<()> {
        if let Some(cgroup) = self.cgroup(Capability::Kill) {
            cgroup.kill()?;
        }
        self.signal(Signal::KILL, Recipients::All)
    }

    /// As `Host::signal`.
    pub(super) fn signal(&self, signal: Signal, to: Recipients) -> io::Result<()> {
        match (to, raw(self.main)) {
            // The process may not lead a group yet, or may be dead and alone in it.
            (Recipients::Group, Some(group)) => {
                let _ = kill_process_group(group, signal);
            }
            // Its number cannot be reused before it is reaped.
            (Recipients::Main, Some(main)) => kill_process(main, signal)?,
            (Recipients::Group | Recipients::Main, None) => {}
            (Recipients::All, _) => self.living()?.iter().try_for_each(|stat| send(stat, signal))?,
            (Recipients::Others, _) => {
                let living = self.living()?;
                let mut others = living.iter().filter(|stat| stat.group != self.main);
                others.try_for_each(|stat| send(stat, signal))?;
            }
        }
        Ok(())
    }

    /// As `Host::cpu_times`.
    pub(super) fn cpu_times(&self) -> io::Result<CpuTimes> {
        if let Some(usage) = self.cgroup.as_ref().and_then(JobCgroup::usage) {
            return Ok(vec![((0, 0), CpuTime::own(usage.cpu))]);
        }
        // The time of a dead process is its own until its parent waits for it.
        let times = self.all()?.into_iter().map(|stat| ((stat.pid, stat.start_time), stat.cpu_time()));
        Ok(times.collect())
    }

    /// As `Host::write_to_job`.
    pub(super) fn write_to_main(&self, text: &str) -> io::Result<()> {
        let Some(main) = raw(self.main) else { return Ok(()) };
        let process = pidfd_open(main, PidfdFlags::empty())?;
        // A copy has the rights with which the job opened it, and not those of this process.
        let error = pidfd_getfd(process, 2, PidfdGetfdFlags::empty())?;
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut polled = [PollFd::new(&error, PollFlags::OUT)];
        if poll(&mut polled, Some(&at_once))? == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        // Another writer may take the room, and a file of a network may wait: this process has windows to end.
        let text = text.to_owned();
        let write = move || {
            let _ = rustix::io::write(&error, text.as_bytes());
        };
        std::thread::Builder::new().stack_size(64 << 10).spawn(write).map(drop)
    }

    /// As `Host::stop`.
    pub(super) fn stop(&self, sent: &mut BTreeSet<(u32, u64)>) -> io::Result<StopScan> {
        if let Some(cgroup) = self.cgroup(Capability::Freeze) {
            return Ok(StopScan { stopped: cgroup.is_frozen(), in_one_group: false });
        }
        let mut scan = StopScan { stopped: true, in_one_group: true };
        for stat in &self.stoppable()? {
            scan.in_one_group &= stat.group == self.main;
            if !stat.is_halted() {
                scan.stopped &= !sent.insert((stat.pid, stat.start_time)) && stat.is_stopped();
                send(stat, Signal::STOP)?;
            }
        }
        Ok(scan)
    }

    /// As `Host::running`.
    pub(super) fn running(&self) -> io::Result<Vec<u32>> {
        if self.cgroup(Capability::Freeze).is_some_and(JobCgroup::is_frozen) {
            return Ok(vec![]);
        }
        Ok(self.stoppable()?.iter().filter(|stat| !stat.is_stopped()).map(|stat| stat.pid).collect())
    }

    /// As `Host::place`. Scans until no new thread is found, since a thread may create others before it is moved.
    pub(super) fn place(&self, cpus: &[u32], class: Option<ThreadClass>) -> io::Result<()> {
        let (keeps_cpus, keeps_class) =
            (self.cgroup(Capability::Cpus).is_some(), self.cgroup(Capability::Idle).is_some());
        let class = class.filter(|class| !(keeps_class && *class == ThreadClass::Normal));
        if keeps_cpus && class.is_none() {
            return Ok(());
        }
        let cpus = (!keeps_cpus).then_some(cpus);
        let mut placed = BTreeSet::new();
        // The weight of the main session is retried by the caller. The prolog may be in the session of the shim.
        let shim = Stat::from_pid(self.shim)?.map(|shim| shim.session);
        let mut sessions: BTreeSet<u32> = shim.into_iter().chain([self.main]).collect();
        for _ in 0..MAX_SCANS {
            let mut found_new = false;
            for process in self.living()? {
                if class.is_some_and(|class| class != ThreadClass::Normal) && sessions.insert(process.session)
                {
                    set_session_nice(process.pid, CRITICAL_NICE);
                }
                for thread in procfs::threads(process.pid)? {
                    if placed.insert((thread.pid, thread.start_time)) {
                        found_new = true;
                        place_thread(&thread, cpus, class)?;
                    }
                }
            }
            if !found_new {
                break;
            }
        }
        Ok(())
    }
}

fn send(stat: &Stat, signal: Signal) -> io::Result<()> {
    match identity::signal(stat, signal) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        other => other.map(|_| ()),
    }
}

/// Puts a thread into a class, as far as the kernel permits it. `None` is the calling thread.
pub(crate) fn set_class(thread: Option<Pid>, class: ThreadClass) {
    if class == ThreadClass::RealTime && sys::set_real_time(thread).is_ok() {
        return;
    }
    // The reply's state shows whether the kernel permitted this.
    let _ = sys::set_idle(thread, false);
    if class != ThreadClass::Normal {
        // The status of the daemon says whether it is permitted.
        let _ = setpriority_process(thread, CRITICAL_NICE);
    }
}

fn place_thread(thread: &Stat, cpus: Option<&[u32]>, class: Option<ThreadClass>) -> io::Result<()> {
    if let Some(class) = class {
        set_class(raw(thread.pid), class);
    }
    match cpus.map_or(Ok(()), |cpus| cpus::set_affinity(raw(thread.pid), cpus)) {
        // The thread has exited, or belongs to another user.
        Ok(()) | Err(Errno::SRCH | Errno::PERM) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// As `Host::set_nice`.
///
/// With `sched_autogroup`, the class and nice value of a process count only within its session. An
/// opportunistic job would then get as much as a reserved one.
pub(super) fn set_session_nice(main: u32, nice: i32) -> bool {
    let mut options = OpenOptions::new();
    let written = options
        .write(true)
        .open(format!("/proc/{main}/autogroup"))
        .and_then(|mut file| file.write_all(nice.to_string().as_bytes()));
    // After any other failure there are no autogroups.
    !matches!(written, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}
