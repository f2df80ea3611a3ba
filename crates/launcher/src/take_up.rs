//! Taking over the attempts of an earlier daemon, all at once.

use std::time::Duration;

use miserly_engine::{Absence, Attempt, BegunWindow};
use miserly_executor::FindFailure;
use miserly_launch::{AttemptState, ReplyMessage, ShimCommand, ShimReply};
use miserly_marks::mark;

use crate::attempt::Begin;
use crate::clock::{BootClock, Clocks};
use crate::outcome::{failed, launched, outcome, used};
use crate::queue_programs;
use crate::site::{Found, Host, ShimHandle, Supervisor};
use crate::supervise::wake;

/// The time for all attempts together. An attempt that needs longer is taken over later.
const LONGEST: Duration = Duration::from_secs(5);
/// The pause between looks at attempts of unknown state.
pub(crate) const PAUSE: Duration = Duration::from_millis(5);

/// A shim that was asked for its state.
struct Asked<T> {
    attempt: Attempt,
    shim: T,
}

/// Takes over the attempts of an earlier daemon. Returns those that have ended and those that are in a window. Each living one
/// is passed to the supervisor.
///
/// No attempt waits for another one. An attempt without an answer after some seconds is supervised, and its window is unknown.
pub(crate) fn take_up<H: Host>(
    host: &H,
    supervisor: &impl Supervisor<H::Shim>,
    attempts: &[Attempt],
) -> Absence {
    let mut take_up = TakeUp { host, supervisor, absence: Absence::default() };
    take_up.run(attempts);
    take_up.absence
}

struct TakeUp<'a, H, S> {
    host: &'a H,
    supervisor: &'a S,
    absence: Absence,
}

impl<H: Host, S: Supervisor<H::Shim>> TakeUp<'_, H, S> {
    fn run(&mut self, attempts: &[Attempt]) {
        let clock = self.host.clock();
        let until = clock.boot_now().after(LONGEST);
        let (mut unknown, mut asked) = (attempts.to_vec(), vec![]);
        loop {
            unknown.retain(|attempt| !self.find_one(*attempt, &mut asked));
            asked = asked.into_iter().filter_map(|one| self.answered(one)).collect();
            if (unknown.is_empty() && asked.is_empty()) || clock.boot_now() >= until {
                break;
            }
            self.host.pause(PAUSE);
        }
        for attempt in unknown {
            mark!("an attempt is found later");
            tracing::warn!("job {} cannot be taken up yet", attempt.job);
            self.supervisor.supervise(attempt, Begin::Find);
        }
        for Asked { attempt, shim } in asked {
            mark!("a shim does not answer");
            tracing::warn!("job {}: its shim does not answer yet", attempt.job);
            self.supervisor.supervise(attempt, Begin::Alive(shim, None));
        }
    }

    /// Finds out the state of an attempt without a wait. Returns whether it is known.
    fn find_one(&mut self, attempt: Attempt, asked: &mut Vec<Asked<H::Shim>>) -> bool {
        let found = self.host.find(attempt, Duration::ZERO);
        let absence = &mut self.absence;
        if found.is_ok() {
            absence.launched.extend(launched(self.host, attempt).map(|at| (attempt, at)));
        }
        match found {
            Ok(Found::Alive(shim)) => {
                mark!("an attempt is alive");
                asked.extend(self.ask(attempt, shim));
            }
            Ok(found) => {
                mark!("an attempt is over");
                absence.used.extend(used(self.host, attempt, &found).map(|used| (attempt, used)));
                let failed = queue_programs::note_found(self.host, attempt, &found);
                absence.epilogs.extend(failed.map(|why| (attempt, why)));
                absence.ended.push((attempt, outcome(self.host, attempt, &found)));
            }
            Err(error @ FindFailure::Final(_)) => {
                mark!("an attempt cannot be taken up");
                tracing::error!("job {} cannot be taken up: {error}", attempt.job);
                absence.ended.push((attempt, failed(self.host, error.to_string())));
            }
            Err(_) => return false,
        }
        true
    }

    /// Requests the state of a shim. A stopped one is continued, since it could not answer.
    fn ask(&self, attempt: Attempt, mut shim: H::Shim) -> Option<Asked<H::Shim>> {
        wake(self.host, attempt, &shim);
        if shim.send(&ShimCommand::Status).is_ok() {
            return Some(Asked { attempt, shim });
        }
        mark!("a shim that ends is taken up");
        // It is ending, or its connection breaks; both are the business of its supervision.
        self.supervisor.supervise(attempt, Begin::Alive(shim, None));
        None
    }

    /// Supervises a shim once it has answered. Returns it if it has not.
    fn answered(&mut self, mut one: Asked<H::Shim>) -> Option<Asked<H::Shim>> {
        let state = match one.shim.receive() {
            Ok(None) => return Some(one),
            Ok(Some(ReplyMessage { reply: ShimReply::Done(state), .. })) => {
                mark!("a shim answers");
                Some(state)
            }
            Ok(Some(_)) | Err(_) => None,
        };
        let begun = |state| begun(self.host.clock(), one.attempt, state);
        self.absence.begun.extend(state.as_ref().and_then(begun));
        self.supervisor.supervise(one.attempt, Begin::Alive(one.shim, state));
        None
    }
}

/// Returns the window of an attempt, as its shim has it. Returns `None` if it is in no window.
fn begun(clock: &BootClock<impl Clocks>, attempt: Attempt, state: &AttemptState) -> Option<BegunWindow> {
    Some(BegunWindow { attempt, cpus: state.cpus.clone(), end: clock.ticks(state.end?) })
}
