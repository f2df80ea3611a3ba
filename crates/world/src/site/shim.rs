//! The shims, which live on when the daemon dies.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use miserly_attempt::shim::{
    CpuTime, CpuTimes, Events, Host, Reaped, Recipients, Shim, Signal, StopScan, ThreadClass,
};
use miserly_attempt::{AttemptSpec, BootTime, Exit, Identity, JobUser, ProcessUsage, ProgramKind};
use miserly_cgroup::{CgroupError, Limits, Processors, Usage};
use miserly_core::draw;
use miserly_engine::Attempt;
use miserly_marks::mark;

use super::disk::{Lock, OpenFolder, User};
use super::processes::Main;
use super::wire::End;
use super::{Machine, Place, ticks};
use crate::effects::{Killed, panic_text};

/// Of how many attempts with a control group the kernel refuses the limits of one once.
const ONE_REFUSED: u64 = 8;

impl Machine {
    /// Begins a shim. It may be killed.
    pub(super) fn begin_shim(self: &Rc<Machine>, place: &Rc<Place>, launcher: End) {
        place.shim_pid.set(Some(self.new_pid()));
        let launcher = launcher.of_version(place.habit.get().version);
        let host = ShimHost { machine: Rc::clone(self), place: Rc::clone(place) };
        let folder = OpenFolder::new(self, place, User::Shim);
        let begun = catch_unwind(AssertUnwindSafe(|| Shim::begin(Ok((host, folder)), Some(launcher))));
        let shim = match begun {
            Ok(begun) => begun.ok(),
            Err(payload) => {
                self.shim_unwound(place, &*payload);
                None
            }
        };
        if shim.is_none() {
            self.shim_exited(place);
        }
        place.shim.replace(shim);
    }

    /// Runs the due steps of a shim.
    pub(super) fn step_shim(&self, place: &Rc<Place>) {
        let Some(mut shim) = place.shim.take() else { return };
        let stepped = catch_unwind(AssertUnwindSafe(|| shim.step()));
        if let Err(payload) = &stepped {
            self.shim_unwound(place, &**payload);
        }
        if stepped.is_ok() && shim.host().is_some() {
            place.shim.replace(Some(shim));
        } else {
            drop(shim);
            self.shim_exited(place);
        }
    }

    fn shim_unwound(&self, place: &Place, payload: &(dyn std::any::Any + Send)) {
        let (job, nth) = (place.attempt.job, place.attempt.nth);
        if payload.is::<Killed>() {
            mark!("a shim is killed at an effect");
            self.blocked.borrow_mut().remove(&job);
            self.note(format!("the shim of {job}.{nth} is killed"));
        } else {
            self.broken(format!("the shim of {job}.{nth} panics: {}", panic_text(payload)));
        }
    }

    /// Kills a shim between two steps. The processes of its job live on.
    pub(super) fn kill_shim_now(&self, place: &Place) {
        drop(place.shim.take());
        self.blocked.borrow_mut().remove(&place.attempt.job);
        self.shim_exited(place);
    }

    fn shim_exited(&self, place: &Place) {
        place.shim_pid.set(None);
        place.kill_in.set(None);
        place.is_shim_stopped.set(false);
        drop(place.listener.take());
        // The preparing program dies with its shim, even if it is stopped.
        if place.main.borrow().as_ref().is_some_and(Main::is_preparing) {
            place.kill_main(self.now());
        }
        self.note(format!("the shim of {}.{} is gone", place.attempt.job, place.attempt.nth));
    }
}

impl Place {
    /// Returns the instant at which its shim has something to do.
    pub(super) fn shim_next(&self, now: i64, boot_at: i64) -> Option<i64> {
        let shim = self.shim.borrow();
        let shim = shim.as_ref().filter(|_| !self.is_shim_stopped.get())?;
        let has_event = self.has_child_event.get()
            || self.has_group_event.get()
            || self.shuts_down.get()
            || self.listener.borrow().as_ref().is_some_and(|waiting| !waiting.is_empty())
            || shim.connections().any(|connection| connection.inbox().is_ready());
        if has_event { Some(now) } else { Some(shim.next()?.0.saturating_add(boot_at)) }
    }
}

/// The machine of a shim.
pub(super) struct ShimHost {
    machine: Rc<Machine>,
    place: Rc<Place>,
}

/// Returns the folder of the control group of an attempt.
fn group_path(attempt: Attempt) -> PathBuf {
    PathBuf::from(format!("/groups/{}.{}", attempt.job, attempt.nth))
}

impl ShimHost {
    /// Moves the job to processors, and, if it is in its window, out of the idle class.
    fn move_to(&self, cpus: &[u32], in_window: bool) {
        let moves = *self.place.cpus.borrow() != cpus || (in_window && self.place.is_idle.get());
        if moves {
            self.place.placed_at.set(self.machine.now());
        }
        self.machine.count_work(self.place.attempt, cpus.len());
        self.place.cpus.replace(cpus.to_owned());
        if in_window {
            self.place.is_idle.set(false);
        }
    }

    /// Returns whether the kernel refuses to limit the group this time: once for some attempts whose command has begun.
    fn refuses_limits(&self) -> bool {
        let Attempt { job, nth } = self.place.attempt;
        let may =
            draw(8, job, nth.into()).is_multiple_of(ONE_REFUSED) && self.with_main(|main| main.is_command());
        may && !self.place.was_refused.replace(true)
    }

    fn with_main<T: Default>(&self, then: impl FnOnce(&mut Main) -> T) -> T {
        self.place.main.borrow_mut().as_mut().map(then).unwrap_or_default()
    }
}

impl Host for ShimHost {
    type Files = OpenFolder;
    type Connection = End;

    fn now(&self) -> BootTime {
        self.machine.boot_time()
    }

    fn awake(&self) -> Duration {
        self.now().since(BootTime(0))
    }

    fn pause(&mut self, length: Duration) {
        self.machine.set_now(self.machine.now().saturating_add(ticks(length)));
    }

    fn wait_for(&mut self, _connection: &End, _until: BootTime) -> io::Result<()> {
        self.place.effect();
        Ok(())
    }

    fn identity(&self) -> io::Result<Identity> {
        Ok(self.machine.identity(self.place.shim_pid.get().unwrap_or(0)))
    }

    fn is_shortage(&self, error: &io::Error) -> bool {
        error.kind() == io::ErrorKind::StorageFull
    }

    fn log(&self, message: &dyn Display) {
        let (job, nth) = (self.place.attempt.job, self.place.attempt.nth);
        self.machine.note(format!("shim of {job}.{nth}: {message}"));
    }

    fn listen(&mut self, _files: &OpenFolder) -> io::Result<()> {
        self.place.effect();
        if self.machine.full.get() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.place.listener.replace(Some(<_>::default()));
        Ok(())
    }

    fn accept(&mut self) -> Option<End> {
        let connection = self.place.listener.borrow_mut().as_mut()?.pop_front()?;
        Some(connection.of_version(self.place.habit.get().version))
    }

    fn start_main(&mut self, spec: &AttemptSpec) -> io::Result<(u32, End)> {
        self.place.effect();
        let (ours, theirs) = End::pair();
        let pids = [self.machine.new_pid(), self.machine.new_pid()];
        let job = self.place.attempt.job;
        if let Some(blocked) = self.machine.blocked.borrow_mut().remove(&job) {
            self.machine.repeated.borrow_mut().insert(job, blocked);
        }
        let habit = self.place.habit.get();
        let main = Main::new(&self.place, habit, pids, theirs, self.machine.now());
        self.place.main.replace(Some(main));
        self.place.takes_turns.set(spec.run_limit.is_some());
        Ok((pids[0], ours))
    }

    fn main_identity(&self) -> io::Result<(Identity, Option<String>)> {
        Ok((self.machine.identity(self.with_main(|main| main.pid)), None))
    }

    fn start_program(&mut self, kind: ProgramKind, lock: &Lock) -> io::Result<(u32, End)> {
        self.place.effect();
        let started = self.machine.start_runner(&self.place, kind, lock);
        self.place.effect();
        started.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn kill_program(&mut self) -> io::Result<()> {
        self.place.effect();
        self.place.kill_runner();
        Ok(())
    }

    fn close_session(&mut self, _user: &JobUser) -> io::Result<()> {
        Ok(())
    }

    fn take_events(&mut self) -> Events {
        let (child, shutdown) = (self.place.has_child_event.take(), self.place.shuts_down.take());
        Events { child, shutdown, cgroup: self.place.has_group_event.take() }
    }

    fn reap(&mut self) -> io::Result<Reaped> {
        self.place.effect();
        let (has_exited, pid) = self.place.with_runner(|runner| (runner.reap(), runner.pid));
        if has_exited {
            return Ok(Reaped::Child { pid, exit: Exit::Code(0), usage: ProcessUsage::default() });
        }
        let has_runner = self.place.with_runner(|runner| !runner.is_reaped());
        let mut main = self.place.main.borrow_mut();
        let Some(main) = main.as_mut().filter(|main| !main.is_reaped()) else {
            return Ok(if has_runner { Reaped::Nothing } else { Reaped::NoChild });
        };
        let exited = main.reap();
        Ok(exited.map_or(Reaped::Nothing, |(pid, exit)| Reaped::Child {
            pid,
            exit,
            usage: ProcessUsage::default(),
        }))
    }

    fn signal(&mut self, signal: Signal, to: Recipients) -> io::Result<()> {
        self.place.effect();
        let now = self.machine.now();
        self.with_main(|main| match to {
            Recipients::All | Recipients::Group => main.signal_all(signal, now),
            Recipients::Main => main.signal(signal, now),
            Recipients::Others => {}
        });
        if (signal, to) == (Signal::Terminate, Recipients::All) {
            self.place.with_runner(|runner| runner.terminate(now));
        }
        Ok(())
    }

    fn kill(&mut self) -> io::Result<()> {
        self.place.effect();
        self.place.kill_main(self.machine.now());
        self.place.kill_runner();
        Ok(())
    }

    fn stop(&mut self, _sent: &mut BTreeSet<(u32, u64)>) -> io::Result<StopScan> {
        self.place.effect();
        let now = self.machine.now();
        let is_frozen = self.machine.has_groups.get();
        let ran = self.with_main(|main| {
            let ran = !main.running().is_empty();
            if !is_frozen {
                main.signal_all(Signal::Stop, now);
            }
            ran
        });
        Ok(StopScan { stopped: !ran, in_one_group: true })
    }

    fn running(&self) -> io::Result<Vec<u32>> {
        Ok(self.with_main(|main| main.running()))
    }

    fn are_gone(&self) -> io::Result<bool> {
        Ok(!self.with_main(|main| main.has_process()))
    }

    fn place(&mut self, cpus: &[u32], class: Option<ThreadClass>) -> io::Result<()> {
        self.place.effect();
        // The group has moved them.
        if !self.machine.has_groups.get() {
            self.move_to(cpus, class.is_some());
        }
        Ok(())
    }

    fn place_main(&mut self, cpus: &[u32]) -> io::Result<()> {
        self.place(cpus, None)
    }

    fn affinity(&self) -> Vec<u32> {
        self.place.cpus.borrow().clone()
    }

    fn set_idle(&mut self) -> io::Result<()> {
        self.place.effect();
        self.place.is_idle.set(true);
        Ok(())
    }

    fn set_class(&mut self, _class: ThreadClass) {}

    fn is_idle(&self) -> bool {
        self.place.is_idle.get()
    }

    fn set_nice(&mut self, _nice: i32) -> bool {
        true
    }

    fn cgroup(&self) -> Option<PathBuf> {
        self.machine.has_groups.get().then(|| group_path(self.place.attempt))
    }

    fn limit(&mut self, limits: &Limits) -> Vec<CgroupError> {
        self.place.effect();
        if self.refuses_limits() {
            mark!("the kernel refuses a limit");
            let path = group_path(self.place.attempt).join("cpuset.cpus");
            return vec![CgroupError::Io { path, error: io::ErrorKind::InvalidInput.into() }];
        }
        self.log(&format_args!("its group has {:?}, idle: {:?}", limits.cpus, limits.idle));
        if let Some(Processors::Shared(cpus) | Processors::Exclusive(cpus)) = &limits.cpus {
            self.move_to(cpus, limits.idle == Some(false));
        }
        if let Some(idle) = limits.idle {
            self.place.is_idle.set(idle);
        }
        vec![]
    }

    fn set_weight(&mut self, _raised: bool) {}

    fn freeze(&mut self, on: bool) -> io::Result<()> {
        self.place.effect();
        mark!("a group is frozen or thawed");
        let now = self.machine.now();
        self.with_main(|main| main.signal_all(if on { Signal::Stop } else { Signal::Continue }, now));
        self.place.is_frozen.set(on);
        self.place.has_group_event.set(true);
        Ok(())
    }

    fn usage(&self) -> Option<Usage> {
        self.machine.has_groups.get().then(Usage::default)
    }

    fn cpu_times(&self) -> io::Result<CpuTimes> {
        self.place.effect();
        // A lazy job waits, and any other one computes.
        let used = if self.place.habit.get().lazy { 0 } else { self.machine.boot_time().0 };
        Ok(vec![((0, 0), CpuTime::own(Duration::from_micros(used.unsigned_abs())))])
    }

    fn write_to_job(&mut self, text: &str) -> io::Result<()> {
        self.place.effect();
        self.log(&text.trim());
        Ok(())
    }
}
