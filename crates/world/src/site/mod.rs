//! The machine of attempts: its clocks, its disk, the shims and the processes of jobs. All of them outlive the daemon.

mod earlier;

mod wire;

mod disk;

mod child;

mod processes;

mod shim;

mod home;

mod launcher;

mod windows;

mod faults;

mod later;

mod programs;
mod records;
mod seals;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::panic::resume_unwind;
use std::rc::Rc;
use std::time::Duration;

use jiff::Timestamp;
use miserly_attempt::shim::Shim;
use miserly_attempt::{BootId, BootTime, Identity, ProgramKind};
use miserly_core::draw;
use miserly_engine::Attempt;
use miserly_launcher::Clocks;
use miserly_marks::mark;

pub(crate) use self::home::Home;
pub(crate) use self::later::Beside;
pub(crate) use self::launcher::{NoLauncher, Processes, Shims};
pub(crate) use self::windows::{Placed, Window};

use self::disk::Folder;
use self::later::Later;
use self::processes::Main;
use self::programs::Runner;
use self::seals::Seals;
use self::shim::ShimHost;
use self::wire::End;
use crate::effects::{Effects, Killed};
use crate::step::{Habit, SECOND};

/// The wall time at which a world begins, seconds since 1970.
const BEGIN: i64 = 1_000_000_000;
/// The most steps of processes at one instant.
const RESTLESS: u32 = 10_000;

/// Returns a duration in ticks.
pub(crate) fn ticks(length: Duration) -> i64 {
    i64::try_from(length.as_micros()).unwrap_or(i64::MAX)
}

/// The machine.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    /// The ticks of the daemon's clock. They continue while no daemon runs.
    now: Cell<i64>,
    boot: Cell<u32>,
    /// The ticks at which the machine booted.
    boot_at: Cell<i64>,
    /// The wall clock beside the other one.
    wall: Cell<i64>,
    full: Cell<bool>,
    shuts_down: Cell<bool>,
    /// Whether attempts have control groups.
    has_groups: Cell<bool>,
    last_pid: Cell<u32>,
    places: RefCell<BTreeMap<Attempt, Rc<Place>>>,
    /// The records that were set aside. They are never removed.
    ended: RefCell<BTreeMap<Attempt, Folder>>,
    /// Removed folders that a power failure may bring back.
    removed: RefCell<BTreeMap<Attempt, Folder>>,
    /// The habits of the jobs of each submission, by their runs. The command names the submission.
    habits: RefCell<BTreeMap<u32, Vec<Habit>>>,
    begun: RefCell<BTreeMap<Attempt, i64>>,
    /// The attempts that a signal from outside stopped before their commands.
    held_back: RefCell<BTreeSet<Attempt>>,
    /// The jobs whose starts blocked until their shims ended them, and for how long.
    blocked: RefCell<BTreeMap<i64, i64>>,
    /// The jobs among them that were launched again.
    repeated: RefCell<BTreeMap<i64, i64>>,
    /// The work of attempts until an instant, and the processors since then.
    work: RefCell<BTreeMap<Attempt, (i64, i64, i64)>>,
    broken: RefCell<Vec<String>>,
    notes: RefCell<Vec<(i64, String)>>,
    effects: Effects,
    later: Later,
    /// When the programs began, by attempt and name.
    programs: RefCell<BTreeMap<(Attempt, &'static str), i64>>,
    /// The attempts of jobs that were written out last, and the time for which they still had to compute.
    saved: RefCell<BTreeMap<i64, (u32, i64)>>,
    seals: Seals,
}

/// An attempt: its folder, its shim and its main process.
#[derive(Default)]
struct Place {
    attempt: Attempt,
    folder: RefCell<Option<Folder>>,
    is_locked: Cell<bool>,
    shim: RefCell<Option<Shim<ShimHost>>>,
    /// The number of the shim, as long as it lives.
    shim_pid: Cell<Option<u32>>,
    is_shim_stopped: Cell<bool>,
    /// The effects after which the shim is killed.
    kill_in: Cell<Option<u32>>,
    /// The connections that the shim has not accepted, if it listens.
    listener: RefCell<Option<VecDeque<End>>>,
    main: RefCell<Option<Main>>,
    has_child_event: Cell<bool>,
    has_group_event: Cell<bool>,
    is_frozen: Cell<bool>,
    /// Whether its user has sent it signals: only the user knows then whether it is stopped.
    is_of_user: Cell<bool>,
    /// Whether the kernel has refused limits of its control group.
    was_refused: Cell<bool>,
    /// Whether its shim has been told that the machine shuts down.
    shuts_down: Cell<bool>,
    /// The process that runs a program of the queue.
    runner: RefCell<Option<Runner>>,
    habit: Cell<Habit>,
    gpus: RefCell<Vec<u32>>,
    /// Its share of the memory of its GPU, bytes; `None` if it has whole ones.
    gpu_share: Cell<Option<u64>>,
    cpus: RefCell<Vec<u32>>,
    /// The instant since which it has them in its window.
    placed_at: Cell<i64>,
    /// Whether its running time is limited, because it takes turns with others.
    takes_turns: Cell<bool>,
    is_idle: Cell<bool>,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.attempt.job, self.attempt.nth)
    }
}

impl Place {
    fn new(attempt: Attempt) -> Place {
        Place { attempt, ..Place::default() }
    }

    /// Passes a place at which the shim can die.
    fn effect(&self) {
        match self.kill_in.get() {
            Some(0) => {
                self.kill_in.set(None);
                resume_unwind(Box::new(Killed));
            }
            left => self.kill_in.set(left.map(|left| left - 1)),
        }
    }

    /// Kills the processes of the job. Returns the numbers of those that lived.
    fn kill_main(&self, now: i64) -> Vec<u32> {
        let killed = self.main.borrow_mut().as_mut().map(|main| main.kill(now)).unwrap_or_default();
        self.has_child_event.set(self.has_child_event.get() || !killed.is_empty());
        killed
    }

    /// Moves the instants of its processes.
    fn shift(&self, by: i64) {
        self.placed_at.update(|at| at + by);
        if let Some(main) = self.main.borrow_mut().as_mut() {
            main.shift(by);
        }
        if let Some(runner) = self.runner.borrow_mut().as_mut() {
            runner.shift(by);
        }
    }

    fn lives(&self) -> bool {
        self.main.borrow().as_ref().is_some_and(Main::has_process)
            || self.with_runner(|runner| runner.lives())
    }

    /// Returns the instant at which one of its processes has something to do.
    fn next(&self, now: i64, boot_at: i64) -> Option<i64> {
        let main = self.main.borrow().as_ref().and_then(|main| main.next(now));
        let runner = self.runner.borrow().as_ref().and_then(|runner| runner.next(now));
        main.into_iter().chain(runner).chain(self.shim_next(now, boot_at)).min()
    }
}

/// The clocks of the machine.
#[derive(Clone, Debug)]
pub(crate) struct MachineClocks(Rc<Machine>);

impl Clocks for MachineClocks {
    fn boot(&self) -> BootTime {
        self.0.boot_time()
    }

    fn wall(&self) -> Timestamp {
        self.0.wall()
    }
}

impl Machine {
    /// Returns a machine that has just booted.
    pub(crate) fn new(effects: Effects, has_groups: bool) -> Rc<Machine> {
        let machine = Machine { effects, has_groups: Cell::new(has_groups), ..Machine::default() };
        machine.boot_at.set(-SECOND);
        Rc::new(machine)
    }

    pub(crate) fn clocks(self: &Rc<Machine>) -> MachineClocks {
        MachineClocks(Rc::clone(self))
    }

    pub(crate) fn now(&self) -> i64 {
        self.now.get()
    }

    pub(crate) fn set_now(&self, now: i64) {
        self.now.set(now.max(self.now()));
    }

    /// Follows the clock of a daemon: the ticks continue by it after a boot. Instants of the kernel's clock and wall times stay.
    ///
    /// Returns by how much the ticks differ. A restored state may be of an earlier boot, so that processes run.
    pub(crate) fn follow(&self, ticks: i64) -> i64 {
        let shift = ticks - self.now();
        self.now.set(ticks);
        self.boot_at.update(|at| at + shift);
        self.wall.update(|wall| wall - shift);
        self.places.borrow().values().for_each(|place| place.shift(shift));
        shift
    }

    fn boot_time(&self) -> BootTime {
        BootTime(self.now() - self.boot_at.get())
    }

    pub(crate) fn wall(&self) -> Timestamp {
        let wall = BEGIN * SECOND + self.now() + self.wall.get();
        Timestamp::from_microsecond(wall).unwrap_or(Timestamp::MAX)
    }

    pub(crate) fn set_wall(&self, by: i64) {
        self.wall.update(|wall| wall + by);
    }

    pub(crate) fn boot(&self) -> BootId {
        format!("boot {}", self.boot.get()).as_str().into()
    }

    fn identity(&self, pid: u32) -> Identity {
        Identity { pid, start_time: 1, boot_id: self.boot() }
    }

    fn new_pid(&self) -> u32 {
        self.last_pid.update(|pid| pid + 1);
        self.last_pid.get()
    }

    pub(crate) fn set_full(&self, full: bool) {
        self.full.set(full);
    }

    fn broken(&self, what: String) {
        self.broken.borrow_mut().push(what);
    }

    pub(crate) fn note(&self, what: String) {
        self.notes.borrow_mut().push((self.now(), what));
    }

    /// Returns the first rule that was broken since the last call.
    pub(crate) fn take_broken(&self) -> Option<String> {
        self.broken.take().into_iter().next()
    }

    /// Returns the events since the last call, with their instants, for the trace.
    pub(crate) fn take_notes(&self) -> Vec<(i64, String)> {
        self.notes.take()
    }

    pub(crate) fn set_habits(&self, tag: u32, habits: Vec<Habit>) {
        self.habits.borrow_mut().insert(tag, habits);
    }

    fn habit(&self, attempt: Attempt, tag: Option<u32>) -> Habit {
        let habits = self.habits.borrow();
        let habits = tag.and_then(|tag| habits.get(&tag)).map(Vec::as_slice).unwrap_or_default();
        let nth = usize::try_from(attempt.nth).unwrap_or(1).saturating_sub(1);
        habits.get(nth).or(habits.last()).copied().unwrap_or_default()
    }

    /// Returns the instants at which commands began.
    pub(crate) fn begun(&self) -> BTreeMap<Attempt, i64> {
        self.begun.borrow().clone()
    }

    /// Returns the instant at which the command of an attempt began.
    pub(crate) fn begun_at(&self, attempt: Attempt) -> Option<i64> {
        self.begun.borrow().get(&attempt).copied()
    }

    /// Returns whether a signal from outside kept the command of an attempt from its begin, although it was permitted.
    pub(crate) fn was_held_back(&self, attempt: Attempt) -> bool {
        self.held_back.borrow().contains(&attempt)
    }

    /// Returns the jobs that were launched again after their start had blocked until its end, and for how long it had.
    pub(crate) fn repeated(&self) -> BTreeMap<i64, i64> {
        self.repeated.borrow().clone()
    }

    fn begin_command(&self, place: &Place) {
        let attempt = place.attempt;
        self.note(format!("the command of {}.{} begins", attempt.job, attempt.nth));
        // A prolog is a part of the window.
        let prolog = (attempt, ProgramKind::Prolog.name());
        let begun = self.programs.borrow().get(&prolog).copied().unwrap_or_else(|| self.now());
        if self.begun.borrow_mut().insert(attempt, begun).is_some() {
            self.broken(format!("the command of attempt {}.{} runs twice", attempt.job, attempt.nth));
        }
        self.check_prolog(place);
        let places = self.places.borrow();
        let mut others =
            places.values().filter(|other| other.attempt.job == attempt.job && other.attempt != attempt);
        if others.any(|other| other.lives()) {
            self.broken(format!("job {} begins while an earlier attempt runs", attempt.job));
        }
    }

    /// Takes note of the removal of a folder.
    fn forgotten(&self, place: &Place) {
        if place.lives() {
            let (job, nth) = (place.attempt.job, place.attempt.nth);
            self.broken(format!("attempt {job}.{nth} is forgotten and lives"));
        }
        if place.shim_pid.get().is_none() {
            self.places.borrow_mut().remove(&place.attempt);
        }
    }

    fn place(&self, attempt: Attempt) -> Option<Rc<Place>> {
        self.places.borrow().get(&attempt).cloned()
    }

    /// Returns the attempts of some jobs.
    fn places_of(&self, jobs: &[i64]) -> Vec<Rc<Place>> {
        let places = self.places.borrow();
        places.values().filter(|place| jobs.contains(&place.attempt.job)).cloned().collect()
    }

    /// Flushes the names of all folders.
    fn flush_folders(&self) {
        self.removed.borrow_mut().clear();
        for place in self.places.borrow().values() {
            if let Ok(mut folder) = place.folder.try_borrow_mut()
                && let Some(folder) = folder.as_mut()
            {
                folder.is_durable = true;
            }
        }
    }

    /// Returns the next instant at which a process has something to do.
    pub(crate) fn next(&self) -> Option<i64> {
        let (now, boot_at) = (self.now(), self.boot_at.get());
        let next = self.places.borrow().values().filter_map(|place| place.next(now, boot_at)).min();
        next.into_iter().chain(self.later.next()).min().map(|next| next.max(now))
    }

    /// Runs the due steps of all processes.
    pub(crate) fn advance(&self) {
        let (now, boot_at) = (self.now(), self.boot_at.get());
        self.run_later();
        let due = |place: &&Rc<Place>| place.next(now, boot_at).is_some_and(|at| at <= now);
        let due: Vec<_> = self.places.borrow().values().filter(due).cloned().collect();
        for place in due {
            self.advance_main(&place);
            self.advance_runner(&place);
            if place.shim_next(now, boot_at).is_some_and(|at| at <= now) {
                self.step_shim(&place);
            }
            let is_empty = place.folder.borrow().is_none() && place.shim_pid.get().is_none();
            if is_empty && !place.lives() {
                self.places.borrow_mut().remove(&place.attempt);
            }
        }
    }

    /// Lets processes run until an instant, or until something is done. The daemon goes on, too: one of its threads waits here.
    fn run_until(&self, until: i64, is_done: impl Fn() -> bool) {
        let mut steps = 0;
        while !is_done() {
            let daemon = self.later.daemon();
            let next = self.next().into_iter().chain(daemon.as_ref().and_then(|daemon| daemon.next())).min();
            let next = next.map(|next| next.max(self.now()));
            let Some(next) = next.filter(|next| *next <= until) else { return self.set_now(until) };
            steps = if next > self.now() { 0 } else { steps + 1 };
            if steps > RESTLESS {
                return self.broken("a process never rests".into());
            }
            self.set_now(next);
            self.advance();
            if let Some(daemon) = daemon {
                daemon.turn();
            }
        }
    }

    /// Waits as a process that no other one waits for.
    fn pause(&self, length: i64) {
        self.run_until(self.now().saturating_add(length), || false);
    }

    /// Takes the power away. No process is left. The disk keeps flushed content, and a part of the rest.
    pub(crate) fn lose_power(&self) {
        self.lose_seals();
        // An end that is not on disk is unknown.
        self.blocked.take();
        self.shuts_down.set(false);
        let mut folders = self.removed.take();
        for (attempt, place) in self.places.take() {
            drop(place.shim.take());
            drop(place.main.take());
            drop(place.runner.take());
            drop(place.listener.take());
            if let Some(folder) = place.folder.take() {
                folders.insert(attempt, folder);
            }
        }
        for (attempt, folder) in folders {
            let drawn = draw(self.now().unsigned_abs(), attempt.job, attempt.nth.into());
            let Some(folder) = folder.after_power_failure(drawn) else {
                mark!("a folder is lost with the power");
                continue;
            };
            let place = Place::new(attempt);
            place.folder.replace(Some(folder));
            self.places.borrow_mut().insert(attempt, Rc::new(place));
        }
        self.boot.update(|boot| boot + 1);
    }

    /// Boots after a time without power.
    pub(crate) fn boot_after(&self, ticks: i64) {
        self.set_now(self.now() + ticks);
        self.boot_at.set(self.now());
    }
}
