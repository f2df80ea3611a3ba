//! What the attempts of a machine use, seen from outside.

use std::collections::BTreeSet;

use miserly_engine::Attempt;

use super::processes::Main;
use super::{Machine, Place};

/// An attempt that runs in its window.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Window {
    pub(crate) attempt: Attempt,
    pub(crate) cpus: Vec<u32>,
    pub(crate) gpus: Vec<u32>,
    /// Its share of the memory of its GPU, bytes; `None` if it has whole ones.
    pub(crate) gpu_share: Option<u64>,
    /// The instant since which it runs on them.
    pub(crate) since: i64,
    /// Whether it takes turns with others.
    pub(crate) takes_turns: bool,
    /// Whether it was asked to end.
    pub(crate) is_ending: bool,
    /// Whether its user has sent it signals, and may have let it continue.
    pub(crate) is_of_user: bool,
    /// Whether its shim lives and is not stopped.
    pub(crate) obeys: bool,
}

/// The command of an attempt whose shim lives and obeys.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    /// The processors on which it may run.
    pub(crate) cpus: BTreeSet<u32>,
    /// Whether it is in the idle class.
    pub(crate) is_idle: bool,
    /// Whether it is stopped, unless its user has sent it signals.
    pub(crate) is_stopped: Option<bool>,
    /// Whether it takes turns with others.
    pub(crate) takes_turns: bool,
}

impl Place {
    fn obeys(&self) -> bool {
        self.shim_pid.get().is_some() && !self.is_shim_stopped.get()
    }
}

impl Machine {
    /// Returns where the command of an attempt runs, if it does, nobody has asked it to end, and its shim obeys.
    pub(crate) fn placed(&self, attempt: Attempt) -> Option<Placed> {
        let place = self.place(attempt)?;
        let main = place.main.borrow();
        // A job that is written out runs until that has ended.
        let obeys = place.obeys() && !place.with_runner(|runner| runner.is_saving());
        let main = main.as_ref().filter(|main| obeys && main.is_command() && !main.is_ending())?;
        Some(Placed {
            cpus: place.cpus.borrow().iter().copied().collect(),
            is_idle: place.is_idle.get(),
            is_stopped: (!place.is_of_user.get()).then(|| !main.is_running()),
            takes_turns: place.takes_turns.get(),
        })
    }

    /// Returns the attempts that run in their windows, with their processors.
    pub(crate) fn windows(&self) -> Vec<Window> {
        let places = self.places.borrow();
        let window = |place: &std::rc::Rc<Place>| {
            let main = place.main.borrow();
            let main = main.as_ref().filter(|main| main.uses_processors() && !place.is_idle.get())?;
            Some(Window {
                attempt: place.attempt,
                cpus: place.cpus.borrow().clone(),
                gpus: place.gpus.borrow().clone(),
                gpu_share: place.gpu_share.get(),
                since: main.running_since().max(place.placed_at.get()),
                takes_turns: place.takes_turns.get(),
                is_ending: main.is_ending(),
                is_of_user: place.is_of_user.get(),
                obeys: place.obeys(),
            })
        };
        places.values().filter_map(window).collect()
    }

    /// Takes note that an attempt is on other processors from now on.
    pub(super) fn count_work(&self, attempt: Attempt, cpus: usize) {
        let now = self.now();
        let worked = self.worked(attempt, now);
        self.work.borrow_mut().insert(attempt, (worked, now, i64::try_from(cpus).unwrap_or(i64::MAX)));
    }

    /// Returns the processor-ticks for which an attempt has had its processors by an instant after its last change.
    pub(crate) fn worked(&self, attempt: Attempt, by: i64) -> i64 {
        let work = self.work.borrow();
        work.get(&attempt).map_or(0, |(done, at, cpus)| done + (by - at).max(0) * cpus)
    }

    /// Returns the processor-ticks of the last attempt of a job that has had processors.
    pub(crate) fn worked_at_last(&self, job: i64, by: i64) -> i64 {
        let last = self.work.borrow().keys().filter(|attempt| attempt.job == job).max().copied();
        last.map_or(0, |attempt| self.worked(attempt, by))
    }

    /// Returns the attempts that take turns and wait for theirs, with the instants since which they are stopped.
    pub(crate) fn waiting_for_turns(&self) -> Vec<(Attempt, i64)> {
        let places = self.places.borrow();
        let sliced =
            places.values().filter(|place| place.takes_turns.get() && place.shim_pid.get().is_some());
        let stopped = |place: &std::rc::Rc<Place>| place.main.borrow().as_ref().and_then(Main::stopped_since);
        sliced.filter_map(|place| Some((place.attempt, stopped(place)?))).collect()
    }
}
