//! What happens to shims and processes from outside.

use miserly_attempt::shim::Signal;
use miserly_core::draw;

use super::Machine;
use crate::step::MainSignal;

/// The effects of a shim within which a request to kill it is carried out.
const SHIM_EFFECTS: u64 = 24;

impl Machine {
    /// Kills the shims of some jobs: at once, or at a later effect, by a draw.
    pub(crate) fn kill_shims(&self, jobs: &[i64]) {
        for place in self.places_of(jobs) {
            let Some(pid) = place.shim_pid.get() else { continue };
            let left = draw(pid.into(), self.now(), 1) % SHIM_EFFECTS;
            if left < SHIM_EFFECTS / 2 {
                self.kill_shim_now(&place);
            } else {
                place.kill_in.set(u32::try_from(left - SHIM_EFFECTS / 2).ok());
            }
        }
    }

    /// Takes back what was to happen later, and all requests to kill a shim later.
    pub(crate) fn calm(&self) {
        self.forget_later();
        for place in self.places.borrow().values() {
            place.kill_in.set(None);
        }
    }

    /// Returns whether nothing is to happen later, and no shim is stopped or about to be killed.
    pub(crate) fn is_calm(&self) -> bool {
        let places = self.places.borrow();
        let is_disturbed =
            |place: &std::rc::Rc<super::Place>| place.kill_in.get().is_some() || place.is_shim_stopped.get();
        self.later.next().is_none() && !places.values().any(is_disturbed)
    }

    /// Stops the shims of some jobs, or lets them continue.
    pub(crate) fn stop_shims(&self, jobs: &[i64], on: bool) {
        for place in self.places_of(jobs).iter().filter(|place| place.shim_pid.get().is_some()) {
            place.is_shim_stopped.set(on);
        }
    }

    /// Sends the signal of a shutdown to all shims and jobs.
    pub(crate) fn shut_down(&self) {
        self.shuts_down.set(true);
        let places: Vec<_> = self.places.borrow().values().cloned().collect();
        for place in places {
            place.shuts_down.set(true);
            if let Some(main) = place.main.borrow_mut().as_mut() {
                main.signal_all(Signal::Terminate, self.now());
            }
            place.with_runner(|runner| runner.terminate(self.now()));
        }
    }

    /// Sends a signal to the main processes of some jobs.
    pub(crate) fn signal_main(&self, jobs: &[i64], signal: MainSignal) {
        let now = self.now();
        for place in self.places_of(jobs) {
            let mut main = place.main.borrow_mut();
            let Some(main) = main.as_mut().filter(|main| main.lives()) else { continue };
            place.is_of_user.set(true);
            match signal {
                // A frozen process receives it when it thaws.
                MainSignal::Continue | MainSignal::Stop if place.is_frozen.get() => {}
                MainSignal::Stop => {
                    if main.is_preparing() {
                        self.held_back.borrow_mut().insert(place.attempt);
                    }
                    main.signal(Signal::Stop, now);
                }
                MainSignal::Continue => main.signal(Signal::Continue, now),
                MainSignal::Terminate => main.signal(Signal::Terminate, now),
                MainSignal::Kill => main.die(now),
            }
            place.has_child_event.set(place.has_child_event.get() || !main.lives());
        }
    }
}
