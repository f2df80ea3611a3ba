//! The processes that run the programs of queues in attempts.

use std::rc::Rc;
use std::time::Duration;

use miserly_attempt::{Connection, ProgramFailure, ProgramKind, ProgramReport, QueueProgram, QueuePrograms};
use miserly_engine::Attempt;
use miserly_executor::{LaunchRequest, QueueRules};

use super::disk::Lock;
use super::processes::EXIT;
use super::wire::End;
use super::{Machine, Place, ticks};
use crate::step::{Habit, ProgramHabit};

/// The time limit of a prolog, and the longest one of an epilog.
const LIMIT: Duration = Duration::from_secs(2);

/// Returns the programs of an attempt with a habit.
pub(super) fn programs(habit: &Habit, request: &LaunchRequest) -> Option<QueuePrograms> {
    let program = |limit| QueueProgram { path: "/etc/program".into(), argv: vec!["program".into()], limit };
    let longest = QueueRules::longest_epilog(request.cleanup).max(Duration::from_secs(1));
    let prolog = habit.prolog.map(|_| program(LIMIT));
    let epilog = habit.epilog.map(|_| program(LIMIT.min(longest)));
    let checkpoint = habit.checkpoint.map(|_| program(Duration::MAX));
    let has_any = prolog.is_some() || epilog.is_some() || checkpoint.is_some();
    has_any.then(|| QueuePrograms { env: vec![], prolog, epilog, checkpoint })
}

/// The process that runs a program. It holds the lock of the attempt.
pub(super) struct Runner {
    pub(super) pid: u32,
    kind: ProgramKind,
    shim: End,
    stage: Stage,
    habit: ProgramHabit,
    /// Whether it has reported a success.
    has_succeeded: bool,
    lock: Option<Lock>,
}

#[derive(Clone, Debug)]
enum Stage {
    /// It waits until the shim has chosen its processors.
    Waiting,
    /// The program ends at an instant, with or without a failure.
    Running {
        ends_at: i64,
        failure: Option<ProgramFailure>,
    },
    /// It has exited, and is to be reaped.
    Exited,
    Reaped,
}

impl Runner {
    /// Moves all instants.
    pub(super) fn shift(&mut self, by: i64) {
        if let Stage::Running { ends_at, .. } = &mut self.stage {
            *ends_at += by;
        }
    }

    pub(super) fn lives(&self) -> bool {
        matches!(self.stage, Stage::Waiting | Stage::Running { .. })
    }

    /// Returns whether it writes a job out.
    pub(super) fn is_saving(&self) -> bool {
        self.kind == ProgramKind::Checkpoint && self.lives()
    }

    pub(super) fn is_reaped(&self) -> bool {
        matches!(self.stage, Stage::Reaped)
    }

    pub(super) fn next(&self, now: i64) -> Option<i64> {
        match &self.stage {
            Stage::Waiting | Stage::Running { .. } if self.shim.inbox().is_ready() => Some(now),
            Stage::Running { ends_at, .. } => Some(*ends_at),
            _ => None,
        }
    }

    /// Takes the steps that are due. Returns whether the program begins.
    fn advance(&mut self, now: i64) -> bool {
        match &self.stage {
            Stage::Waiting => match self.shim.receive::<Duration>() {
                Ok(Some(limit)) => {
                    let failure = match self.habit.code {
                        _ if self.habit.ticks >= ticks(limit) => Some(ProgramFailure::TimeLimit { limit }),
                        0 => None,
                        code => Some(ProgramFailure::Code(code)),
                    };
                    let ends_at = now + self.habit.ticks.min(ticks(limit));
                    self.stage = Stage::Running { ends_at, failure };
                    return true;
                }
                Ok(None) => {}
                Err(_) => self.kill(),
            },
            // The shim sends nothing more: it is dead.
            Stage::Running { .. } if self.shim.inbox().is_ready() => self.kill(),
            Stage::Running { ends_at, failure } if *ends_at <= now => {
                let report = ProgramReport { failure: failure.clone(), output: String::new() };
                self.has_succeeded = report.failure.is_none();
                // A shim that has died does not receive it.
                let _ = self.shim.send(&report);
                self.kill();
            }
            _ => {}
        }
        false
    }

    /// Ends the program, as a request to end does.
    pub(super) fn terminate(&mut self, now: i64) {
        if let Stage::Running { ends_at, failure } = &mut self.stage
            && *ends_at > now + EXIT
        {
            (*ends_at, *failure) = (now + EXIT, Some(ProgramFailure::Signal(15)));
        }
    }

    /// Exits. The program is dead then.
    pub(super) fn kill(&mut self) {
        if self.lives() {
            self.stage = Stage::Exited;
            self.lock = None;
        }
    }

    /// Returns whether it has exited, once.
    pub(super) fn reap(&mut self) -> bool {
        let has_exited = matches!(self.stage, Stage::Exited);
        if has_exited {
            self.stage = Stage::Reaped;
        }
        has_exited
    }
}

impl Place {
    pub(super) fn with_runner<T: Default>(&self, then: impl FnOnce(&mut Runner) -> T) -> T {
        self.runner.borrow_mut().as_mut().map(then).unwrap_or_default()
    }

    /// Kills the process that runs a program.
    pub(super) fn kill_runner(&self) {
        let lived = self.with_runner(|runner| {
            let lived = runner.lives();
            runner.kill();
            lived
        });
        self.has_child_event.set(self.has_child_event.get() || lived);
    }
}

impl Machine {
    /// Starts the process that runs a program of an attempt. Returns its number and the connection to it.
    pub(super) fn start_runner(&self, place: &Place, kind: ProgramKind, lock: &Lock) -> Option<(u32, End)> {
        let habit = place.habit.get();
        let habit = match kind {
            ProgramKind::Prolog => habit.prolog,
            ProgramKind::Epilog => habit.epilog,
            ProgramKind::Checkpoint => habit.checkpoint,
        }?;
        let (ours, shim) = End::pair();
        let pid = self.new_pid();
        let lock = Some(lock.clone());
        let (stage, has_succeeded) = (Stage::Waiting, false);
        place.runner.replace(Some(Runner { pid, kind, shim, stage, habit, has_succeeded, lock }));
        Some((pid, ours))
    }

    /// Runs the due steps of the program of an attempt.
    pub(super) fn advance_runner(&self, place: &Rc<Place>) {
        let (begins, ends, kind, has_succeeded) = {
            let mut runner = place.runner.borrow_mut();
            let Some(runner) = runner.as_mut().filter(|runner| runner.lives()) else { return };
            let begins = runner.advance(self.now());
            (begins, !runner.lives(), runner.kind, runner.has_succeeded)
        };
        let (job, nth) = (place.attempt.job, place.attempt.nth);
        if begins {
            self.note(format!("the {} of {job}.{nth} begins", kind.name()));
            self.check_program(place, kind);
        }
        if ends {
            self.note(format!("the {} of {job}.{nth} ends", kind.name()));
            place.has_child_event.set(true);
        }
        if ends && kind == ProgramKind::Checkpoint && has_succeeded {
            let left = place.main.borrow().as_ref().map_or(0, |main| main.left(self.now()));
            self.saved.borrow_mut().insert(job, (nth, left));
        }
    }

    /// Returns the time for which an attempt computes that continues where its job was written out.
    pub(super) fn rest_of(&self, attempt: Attempt) -> i64 {
        let job = attempt.job;
        let last = self.begun.borrow().keys().filter(|of| of.job == job).map(|of| of.nth).max();
        let saved = self.saved.borrow().get(&job).copied();
        self.note(format!("job {job} restarts, and was written out: {saved:?}"));
        match saved {
            Some((nth, left)) if Some(nth) == last => left,
            saved => {
                let Attempt { job, nth } = attempt;
                self.broken(format!("attempt {job}.{nth} continues {last:?}, and written out is {saved:?}"));
                0
            }
        }
    }

    /// Takes note that a job begins anew, if it was written out.
    pub(super) fn begin_anew(&self, job: i64) {
        self.saved.borrow_mut().remove(&job);
    }

    /// A program runs once, the prolog before the command, the checkpoint command beside it, and the epilog after the job.
    fn check_program(&self, place: &Place, kind: ProgramKind) {
        let (job, nth) = (place.attempt.job, place.attempt.nth);
        let has_epilog = kind == ProgramKind::Epilog;
        if self.programs.borrow_mut().insert((place.attempt, kind.name()), self.now()).is_some() {
            self.broken(format!("the {} of attempt {job}.{nth} runs twice", kind.name()));
        }
        let has_job = place.main.borrow().as_ref().is_some_and(super::Main::has_process);
        if has_epilog && has_job {
            self.broken(format!("the epilog of attempt {job}.{nth} runs beside its job"));
        }
        let has_begun = self.begun_at(place.attempt).is_some();
        if kind == ProgramKind::Prolog && has_begun {
            self.broken(format!("the prolog of attempt {job}.{nth} runs after its command"));
        }
        if kind == ProgramKind::Checkpoint && !has_begun {
            self.broken(format!("attempt {job}.{nth} is written out before its command"));
        }
    }

    /// A command begins only after a prolog that succeeded.
    pub(super) fn check_prolog(&self, place: &Place) {
        let Some(habit) = place.habit.get().prolog else { return };
        let (job, nth) = (place.attempt.job, place.attempt.nth);
        let has_run = self.programs.borrow().contains_key(&(place.attempt, ProgramKind::Prolog.name()));
        let runs = place.with_runner(|runner| runner.kind == ProgramKind::Prolog && runner.lives());
        let fails = habit.code != 0 || habit.ticks >= ticks(LIMIT);
        if !has_run || runs || fails {
            self.broken(format!("the command of attempt {job}.{nth} begins without its prolog"));
        }
    }
}
