//! One seed simulates the whole daemon: its machine, its users and their faults.
//!
//! A [`Script`] is a list of steps. [`script()`] draws one from a seed, and [`run()`] plays it over the engine, the launcher and
//! the shims of the daemon. The journal is in memory, or a store in a folder. The machine has a disk and processes, and outlives the daemon. After each
//! step the rules of `checks` hold. Once the faults cease, everything comes to an end, and the simulator repeats all decisions. [`shrink()`] makes a failing script short.
//!
//! Nothing here has a clock or a thread: the same script gives the same trace, byte for byte.

mod step;

mod draw;

mod effects;

mod site;

mod daemon;
mod journals;

mod restored;

mod world;

mod checks;

mod asked;

mod limits;

mod replayed;

mod shrink;

pub use draw::{script, write_out};
pub use shrink::shrink;
pub use step::{
    Condition, Event, Habit, MachineSetup, MainSignal, ProgramHabit, Request, SECOND, Script, Step, Wish,
};
pub use world::{Failure, Outcome, run};
