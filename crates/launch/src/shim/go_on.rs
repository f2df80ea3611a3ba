//! Letting a job go on: at one stroke what can be, and the others as they are found.

use std::io;

use rustix::process::Signal;

use super::owner::{AGAIN, Owner};
use super::tell::Done;
use crate::time::BootTime;
use crate::told::Refusal;

impl Owner {
    /// Lets it go on because the daemon says so, or its window begins.
    ///
    /// # Errors
    /// If not all its processes could be looked for. It counts as running all the same, and they are looked for again.
    pub(super) fn go_on(&mut self) -> Done {
        self.drop_stop();
        // Its time counts from the first of its processes that runs.
        self.course.stopped(BootTime::now(), false);
        self.go_on_together().map_err(|error| Refusal::blind(&error))
    }

    /// Lets all go on: at one stroke what can be, and then the others. It does not look for them where there are none, since looking takes a processor
    /// on which one of those would go on that it has just let.
    pub(super) fn go_on_together(&mut self) -> io::Result<()> {
        let together = std::mem::take(&mut self.together);
        if self.main.exit.is_none() {
            self.processes.signal_group(Signal::CONT);
            if together {
                return Ok(());
            }
        }
        self.find_others()
    }

    /// Looks once more for those that are to go on, if it is time to.
    pub(super) fn look_for_others(&mut self, now: BootTime) -> io::Result<()> {
        match self.others_at {
            Some(at) if at <= now => self.find_others(),
            _ => Ok(()),
        }
    }

    /// Lets those go on that were not at one stroke. Where it cannot look for them it does so later.
    fn find_others(&mut self) -> io::Result<()> {
        let found = match self.main.exit {
            None => self.processes.signal_others(Signal::CONT),
            Some(_) => self.processes.signal(Signal::CONT),
        };
        self.others_at = found.is_err().then(|| BootTime::now().after(AGAIN));
        found
    }
}
