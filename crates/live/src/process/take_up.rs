//! Taking over the attempts of an earlier daemon, all at once.

use std::thread;
use std::time::Duration;

use miserly_engine::{Absence, Attempt, BegunWindow};
use miserly_executor::FindFailure;
use miserly_launch::{BootTime, FoundAttempt, MachineClock as _, Shim, ShimCommand, ShimReply};

use super::attempt::Begin;
use super::home::{outcome, used};
use super::{Processes, queue_programs};
use crate::clock::BootClock;

/// The time for all attempts together. An attempt that needs longer is taken over later.
const LONGEST: Duration = Duration::from_secs(5);
/// The pause between looks at attempts of unknown state.
const PAUSE: Duration = Duration::from_millis(5);

/// A shim that was asked for its state.
struct Asked {
    attempt: Attempt,
    shim: Box<Shim>,
}

impl Processes {
    /// Takes over the attempts of an earlier daemon. Returns those that have ended and those that
    /// are in a window.
    ///
    /// No attempt waits for another one. An attempt without an answer after some seconds is
    /// supervised, and its window is unknown.
    pub fn take_up(&mut self, attempts: &[Attempt]) -> Absence {
        let until = BootTime::now().after(LONGEST);
        let mut absence = Absence::default();
        let (mut unknown, mut asked) = (attempts.to_vec(), vec![]);
        loop {
            unknown.retain(|attempt| !self.find_one(*attempt, &mut asked, &mut absence));
            asked = asked.into_iter().filter_map(|one| self.answered(one, &mut absence)).collect();
            if (unknown.is_empty() && asked.is_empty()) || BootTime::now() >= until {
                break;
            }
            thread::sleep(PAUSE);
        }
        for attempt in unknown {
            tracing::warn!("job {} cannot be taken up yet", attempt.job);
            self.supervise(attempt, Begin::Find);
        }
        for Asked { attempt, shim } in asked {
            tracing::warn!("job {}: its shim does not answer yet", attempt.job);
            self.supervise(attempt, Begin::Alive(shim));
        }
        absence
    }

    /// Finds out the state of an attempt without a wait. Returns whether it is known.
    fn find_one(&mut self, attempt: Attempt, asked: &mut Vec<Asked>, absence: &mut Absence) -> bool {
        match self.home.executor.find(attempt, Duration::ZERO) {
            Ok(FoundAttempt::Alive(shim)) => asked.extend(self.ask(attempt, shim)),
            Ok(found) => {
                absence.used.extend(used(&self.home, attempt, &found).map(|used| (attempt, used)));
                let failed = queue_programs::note_found(&self.home, attempt, &found);
                absence.epilogs.extend(failed.map(|why| (attempt, why)));
                absence.ended.push((attempt, outcome(&self.home, attempt, found)));
            }
            Err(error @ FindFailure::Final(_)) => {
                tracing::error!("job {} cannot be taken up: {error}", attempt.job);
                absence.ended.push((attempt, self.home.failed(error.to_string())));
            }
            Err(_) => return false,
        }
        true
    }

    /// Requests the state of a shim. A stopped one is continued, since it could not answer.
    fn ask(&mut self, attempt: Attempt, shim: Shim) -> Option<Asked> {
        if shim.is_stopped().unwrap_or(false) {
            tracing::warn!("job {}: its shim is stopped; it is continued", attempt.job);
            if let Err(error) = self.home.executor.wake(attempt, &shim) {
                tracing::warn!("job {}: its shim cannot be continued: {error}", attempt.job);
            }
        }
        let shim = Box::new(shim);
        let mut one = Asked { attempt, shim };
        if one.shim.send(&ShimCommand::Status).is_ok() {
            return Some(one);
        }
        // It is ending, or its connection breaks; both are the business of its supervision.
        self.supervise(attempt, Begin::Alive(one.shim));
        None
    }

    /// Supervises a shim once it has answered. Returns it if it has not.
    fn answered(&mut self, mut one: Asked, absence: &mut Absence) -> Option<Asked> {
        match one.shim.receive() {
            Ok(None) => return Some(one),
            Ok(Some(answer)) => absence.begun.extend(begun(&self.home.clock, one.attempt, answer.reply)),
            Err(_) => {}
        }
        self.supervise(one.attempt, Begin::Alive(one.shim));
        None
    }
}

/// Returns the window of an attempt, as its shim has it. Returns `None` if it is in no window.
fn begun(clock: &BootClock, attempt: Attempt, reply: ShimReply) -> Option<BegunWindow> {
    let ShimReply::Done(state) = reply else { return None };
    Some(BegunWindow { attempt, cpus: state.cpus, end: clock.ticks(state.end?) })
}
