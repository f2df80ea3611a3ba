//! A daemon: its engine, and its launcher with the tasks that run beside them.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::rc::Rc;

use miserly_core::Time;
use miserly_engine::{Engine, EngineError, Input};
use miserly_launcher::BootClock;

use crate::journals::WorldJournal;
use crate::site::{Beside, Machine, MachineClocks, Processes, Shims};

/// The time that a batch takes, in ticks.
pub(crate) const BATCH: i64 = 60;

/// The inputs that wait for a daemon. Clones are the same.
pub(crate) type Inputs = Rc<RefCell<VecDeque<Input>>>;

/// The payload of the unwinding that ends a daemon whose task was under way.
#[derive(Debug)]
pub(crate) struct Ended(pub(crate) EngineError);

/// A daemon. All of it is gone when it dies.
pub(crate) struct Daemon {
    pub(crate) engine: RefCell<Engine<Processes, WorldJournal>>,
    pub(crate) shims: Shims,
    pub(crate) inputs: Inputs,
    pub(crate) clock: BootClock<MachineClocks>,
    pub(crate) machine: Rc<Machine>,
    pub(crate) batches: Rc<Cell<u64>>,
}

impl Daemon {
    /// Runs the due steps.
    ///
    /// # Errors
    /// The error that ends the daemon.
    pub(crate) fn turn(&self) -> Result<(), EngineError> {
        if self.next().is_none_or(|at| at > self.machine.now()) {
            return Ok(());
        }
        self.shims.turn();
        if self.engine_next().is_some_and(|at| at <= self.machine.now()) {
            self.process_batch()?;
        }
        Ok(())
    }

    fn engine_next(&self) -> Option<i64> {
        if self.inputs.borrow().is_empty() {
            self.engine.borrow().next_wakeup().map(Time::ticks)
        } else {
            Some(self.machine.now())
        }
    }

    fn process_batch(&self) -> Result<(), EngineError> {
        let inputs: Vec<Input> = self.inputs.borrow_mut().drain(..).collect();
        for input in &inputs {
            if !matches!(input, Input::Request { .. }) {
                self.machine.note(format!("{input:?}"));
            }
        }
        self.batches.update(|count| count + 1);
        let now = self.clock.read();
        self.machine.set_now(self.machine.now() + BATCH);
        self.engine.borrow_mut().process_batch(now, inputs)
    }
}

impl Beside for Daemon {
    fn next(&self) -> Option<i64> {
        self.engine_next().into_iter().chain(self.shims.next()).min()
    }

    fn turn(&self) {
        if let Err(error) = Daemon::turn(self) {
            resume_unwind(Box::new(Ended(error)));
        }
    }
}
