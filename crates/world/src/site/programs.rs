//! The processes that run the prolog and the epilog of an attempt.

use std::rc::Rc;
use std::time::Duration;

use miserly_attempt::{
    AttemptSpec, Connection, ProgramFailure, ProgramKind, ProgramReport, QueueProgram, QueuePrograms,
};
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
    (prolog.is_some() || epilog.is_some()).then(|| QueuePrograms { env: vec![], prolog, epilog })
}

/// The process that runs a program. It holds the lock of the attempt.
pub(super) struct Runner {
    pub(super) pid: u32,
    kind: ProgramKind,
    shim: End,
    stage: Stage,
    habit: ProgramHabit,
    limit: Duration,
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
    pub(super) fn lives(&self) -> bool {
        matches!(self.stage, Stage::Waiting | Stage::Running { .. })
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
            Stage::Waiting => match self.shim.receive_line() {
                Ok(Some(_)) => {
                    let limit = ticks(self.limit);
                    let failure = match self.habit.code {
                        _ if self.habit.ticks >= limit => {
                            Some(ProgramFailure::TimeLimit { limit: self.limit })
                        }
                        0 => None,
                        code => Some(ProgramFailure::Code(code)),
                    };
                    self.stage = Stage::Running { ends_at: now + self.habit.ticks.min(limit), failure };
                    return true;
                }
                Ok(None) => {}
                Err(_) => self.kill(),
            },
            // The shim sends nothing more: it is dead.
            Stage::Running { .. } if self.shim.inbox().is_ready() => self.kill(),
            Stage::Running { ends_at, failure } if *ends_at <= now => {
                let report = ProgramReport { failure: failure.clone(), output: String::new() };
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
        }?;
        let limit = place.program_limits.get()[usize::from(kind == ProgramKind::Epilog)];
        let (ours, shim) = End::pair();
        let pid = self.new_pid();
        let lock = Some(lock.clone());
        place.runner.replace(Some(Runner { pid, kind, shim, stage: Stage::Waiting, habit, limit, lock }));
        Some((pid, ours))
    }

    /// Takes note of the programs of an attempt.
    pub(super) fn set_programs(place: &Place, spec: &AttemptSpec) {
        let limit = |kind| spec.queue_programs.as_ref().and_then(|programs| Some(programs.get(kind)?.limit));
        let limits = [ProgramKind::Prolog, ProgramKind::Epilog].map(|kind| limit(kind).unwrap_or_default());
        place.program_limits.set(limits);
    }

    /// Runs the due steps of the program of an attempt.
    pub(super) fn advance_runner(&self, place: &Rc<Place>) {
        let (begins, ends, kind) = {
            let mut runner = place.runner.borrow_mut();
            let Some(runner) = runner.as_mut().filter(|runner| runner.lives()) else { return };
            let begins = runner.advance(self.now());
            (begins, !runner.lives(), runner.kind)
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
    }

    /// A program runs once, the prolog before the command, and the epilog after the job.
    fn check_program(&self, place: &Place, kind: ProgramKind) {
        let (job, nth) = (place.attempt.job, place.attempt.nth);
        let has_epilog = kind == ProgramKind::Epilog;
        if self.programs.borrow_mut().insert((place.attempt, has_epilog), self.now()).is_some() {
            self.broken(format!("the {} of attempt {job}.{nth} runs twice", kind.name()));
        }
        let has_job = place.main.borrow().as_ref().is_some_and(super::Main::has_process);
        if has_epilog && has_job {
            self.broken(format!("the epilog of attempt {job}.{nth} runs beside its job"));
        }
        if !has_epilog && self.begun_at(place.attempt).is_some() {
            self.broken(format!("the prolog of attempt {job}.{nth} runs after its command"));
        }
    }

    /// A command begins only after a prolog that succeeded.
    pub(super) fn check_prolog(&self, place: &Place) {
        let Some(habit) = place.habit.get().prolog else { return };
        let (job, nth) = (place.attempt.job, place.attempt.nth);
        let has_run = self.programs.borrow().contains_key(&(place.attempt, false));
        let runs = place.with_runner(|runner| runner.kind == ProgramKind::Prolog && runner.lives());
        let fails = habit.code != 0 || habit.ticks >= ticks(LIMIT);
        if !has_run || runs || fails {
            self.broken(format!("the command of attempt {job}.{nth} begins without its prolog"));
        }
    }
}
