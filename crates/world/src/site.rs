//! The attempts of the machine: their shims and processes, which outlive the daemon.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use miserly_api::model::{Exit, Failure, KilledBy, LostBy, Problem, Submission};
use miserly_core::{Span, Time};
use miserly_engine::{
    Absence, Action, Attempt, AttemptOutcome, BEGIN_DELAY, BegunWindow, Input, Launch, Launcher,
    PlannedWindow, SlotSchedule,
};

use crate::effects::Effects;
use crate::step::Habit;

/// The time from a launch to the begin of the command, in ticks.
const LAUNCH: i64 = 8_000;
/// The time from a request to end to the exit of a process that obeys.
const EXIT: i64 = 3_000;

/// The attempts of the machine. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Site(pub(crate) Rc<RefCell<Attempts>>, pub(crate) Effects);

/// All attempts that have a folder, and what the daemon does not know yet.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    pub(crate) now: i64,
    pub(crate) all: BTreeMap<Attempt, Process>,
    /// Every attempt that was ever launched, with the instant at which its command began.
    pub(crate) begun: BTreeMap<Attempt, Option<i64>>,
    pub(crate) reports: VecDeque<Input>,
    /// The instant since which no daemon is there.
    pub(crate) absent: Option<i64>,
    /// What the jobs of each submission do, by their runs. The command names the submission.
    pub(crate) habits: BTreeMap<u32, Vec<Habit>>,
    /// What broke a rule.
    pub(crate) broken: Vec<String>,
    /// The actions of the daemon, for the trace.
    pub(crate) acted: Vec<String>,
}

/// One attempt.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) launch: Box<Launch>,
    habit: Habit,
    /// The instant at which the command begins or began.
    begins: i64,
    pub(crate) started: bool,
    pub(crate) cpus: Vec<u32>,
    /// The end of its window, if it is in its window.
    pub(crate) end: Option<i64>,
    planned: Option<PlannedWindow>,
    halted: bool,
    /// The latest end and the rest of a stopped attempt without a daemon.
    orphan: Option<(Time, Span)>,
    /// The time that it still computes.
    left: i64,
    since: i64,
    kill_at: Option<i64>,
    by: Option<KilledBy>,
    /// Whether it was stopped when it was asked to end. It continues to end, on processors that others have.
    lingers: bool,
    /// The instant at which it exits after a request.
    exits_at: Option<i64>,
    /// The end, as its shim recorded it.
    pub(crate) ended: Option<AttemptOutcome>,
}

impl Process {
    /// Returns whether processes of the job exist.
    pub(crate) fn lives(&self) -> bool {
        self.ended.is_none()
    }

    /// Returns whether it has the processors of its window.
    pub(crate) fn holds_window(&self, now: i64) -> bool {
        let is_killed = self.lingers || self.kill_at.is_some_and(|at| at <= now);
        self.lives() && !self.halted && self.end.is_some() && !is_killed
    }

    fn runs(&self) -> bool {
        self.started && !self.halted
    }

    fn begin_at(&self, absent: bool) -> Option<i64> {
        let start = self.planned.as_ref()?.start.ticks();
        self.end.is_none().then_some(if absent { start } else { start + BEGIN_DELAY.ticks() })
    }

    fn term_at(&self) -> Option<i64> {
        let grace = self.launch.grace.ticks();
        self.end.filter(|_| self.kill_at.is_none()).map(|end| end - grace)
    }

    fn resume_at(&self, absent: Option<i64>) -> Option<i64> {
        absent.filter(|_| self.halted).map(|since| since + self.launch.orphan_resume_delay.ticks())
    }

    /// Returns the next instant at which something happens.
    fn next(&self, absent: Option<i64>) -> Option<i64> {
        if !self.lives() {
            return None;
        }
        let begins = (!self.started).then_some(self.begins);
        let done = self.runs().then_some(self.since + self.left);
        let begin = self.begin_at(absent.is_some());
        let all = [begins, done, begin, self.term_at(), self.kill_at, self.exits_at, self.resume_at(absent)];
        all.into_iter().flatten().min()
    }

    fn halt(&mut self, now: i64, halted: bool) {
        if self.runs() {
            self.left = (self.left - (now - self.since)).max(0);
        }
        (self.halted, self.since) = (halted, now);
    }

    fn terminate(&mut self, now: i64, kill_at: i64, by: KilledBy) {
        self.kill_at = Some(self.kill_at.map_or(kill_at, |at| at.min(kill_at)));
        self.by.get_or_insert(by);
        if !self.started {
            let at = Time::from_ticks(now);
            let (why, message) = (Failure::System, "it was ended before its command began".to_owned());
            self.ended = Some(AttemptOutcome::Failed { at, why, message });
            return;
        }
        self.lingers |= self.halted;
        self.halt(now, false);
        if !self.habit.stubborn {
            self.exits_at.get_or_insert(now + EXIT);
        }
    }

    fn exit(&mut self, now: i64, exit: Exit) {
        let at = Time::from_ticks(now);
        self.ended = Some(AttemptOutcome::Ended { at, exit, by: self.by });
    }

    fn enter_window(&mut self, cpus: Vec<u32>, end: i64) {
        (self.cpus, self.end, self.planned) = (cpus, Some(end), None);
    }

    /// Takes the steps that are due. Returns whether the command has just begun.
    fn advance(&mut self, now: i64, absent: Option<i64>) -> bool {
        let mut begun = false;
        if !self.started && self.begins <= now && self.by.is_none() {
            (self.started, self.since, begun) = (true, now, true);
        }
        if self.begin_at(absent.is_some()).is_some_and(|at| at <= now)
            && let Some(window) = self.planned.take()
        {
            self.enter_window(window.cpus, window.end.ticks());
            self.halt(now, false);
        }
        if self.resume_at(absent).is_some_and(|at| at <= now) {
            self.halt(now, false);
            if let Some((end, left)) = self.orphan {
                self.end = Some(end.ticks().min(now + left.ticks()));
            }
        }
        if self.runs() && self.since + self.left <= now {
            let code = Exit::Code(self.habit.code);
            self.exit(now, code);
            return begun;
        }
        if self.exits_at.is_some_and(|at| at <= now) {
            self.exit(now, Exit::Signal(15));
            return begun;
        }
        if let Some(at) = self.term_at().filter(|at| *at <= now) {
            let grace = self.launch.grace.ticks();
            self.terminate(now, at + grace, KilledBy::Time);
        }
        if self.kill_at.is_some_and(|at| at <= now) {
            self.exit(now, Exit::Signal(9));
        }
        begun
    }
}

impl Attempts {
    /// Returns the next instant at which something happens by itself.
    pub(crate) fn next(&self) -> Option<i64> {
        self.all.values().filter_map(|process| process.next(self.absent)).min()
    }

    /// Takes the steps that are due.
    pub(crate) fn advance(&mut self, now: i64) {
        self.now = now;
        for (attempt, process) in &mut self.all {
            if process.next(self.absent).is_none_or(|at| at > now) {
                continue;
            }
            let begun = process.advance(now, self.absent);
            if begun {
                self.begun.insert(*attempt, Some(now));
                if self.absent.is_none() {
                    self.reports.push_back(Input::Launched(*attempt, Time::from_ticks(now)));
                }
            }
            if let Some(outcome) = process.ended.clone().filter(|_| self.absent.is_none()) {
                self.reports.push_back(Input::AttemptEnded(*attempt, outcome));
            }
        }
    }

    /// The daemon is gone. What it did not apply is found by the next one.
    pub(crate) fn lose_daemon(&mut self) {
        self.absent.get_or_insert(self.now);
        self.reports.clear();
    }

    /// A daemon takes up the attempts that it knows.
    pub(crate) fn take_up(&mut self, known: &[Attempt]) -> Absence {
        self.absent = None;
        let mut absence = Absence::default();
        for attempt in known {
            match self.all.get(attempt) {
                None => absence.ended.push((*attempt, AttemptOutcome::NeverRan)),
                Some(process) => match (&process.ended, process.end) {
                    (Some(outcome), _) => absence.ended.push((*attempt, outcome.clone())),
                    (None, Some(end)) => absence.begun.push(BegunWindow {
                        attempt: *attempt,
                        cpus: process.cpus.clone(),
                        end: Time::from_ticks(end),
                    }),
                    (None, None) => {}
                },
            }
        }
        self.all.retain(|attempt, _| known.contains(attempt));
        absence
    }

    /// The shim of an attempt dies, and with it its processes.
    pub(crate) fn kill_shim(&mut self, attempt: Attempt) {
        self.lose(attempt, LostBy::Shim);
    }

    fn lose(&mut self, attempt: Attempt, by: LostBy) {
        let Some(process) = self.all.get_mut(&attempt).filter(|process| process.lives()) else { return };
        let outcome = if process.started { AttemptOutcome::Lost(by) } else { AttemptOutcome::NeverRan };
        process.ended = Some(outcome.clone());
        if self.absent.is_none() {
            self.reports.push_back(Input::AttemptEnded(attempt, outcome));
        }
    }

    /// The machine loses its power.
    pub(crate) fn reboot(&mut self) {
        for attempt in self.all.keys().copied().collect::<Vec<_>>() {
            self.lose(attempt, LostBy::Reboot);
        }
    }

    fn launch(&mut self, attempt: Attempt, launch: Box<Launch>) {
        if self.begun.insert(attempt, None).is_some() {
            self.broken.push(format!("attempt {}.{} is launched twice", attempt.job, attempt.nth));
        }
        let others = self.all.iter().filter(|(other, _)| other.job == attempt.job);
        if others.into_iter().any(|(_, process)| process.lives()) {
            self.broken.push(format!("job {} is launched while it runs", attempt.job));
        }
        let tag = launch.submission.command.last().and_then(|tag| tag.parse().ok());
        let habits = tag.and_then(|tag: u32| self.habits.get(&tag)).cloned().unwrap_or_default();
        let nth = usize::try_from(attempt.nth).unwrap_or(1).saturating_sub(1);
        let habit = habits.get(nth).or(habits.last()).copied().unwrap_or_default();
        let begins = self.now + LAUNCH;
        self.all.insert(
            attempt,
            Process {
                habit,
                begins,
                started: false,
                cpus: launch.cpus.clone(),
                end: launch.end.map(Time::ticks),
                planned: launch.planned_window.clone(),
                halted: false,
                orphan: None,
                left: habit.ticks,
                since: begins,
                kill_at: None,
                by: None,
                lingers: false,
                exits_at: None,
                ended: None,
                launch,
            },
        );
    }

    fn act(&mut self, attempt: Attempt, action: Action) {
        let lived = self.all.get(&attempt).is_some_and(Process::lives);
        self.carry_out(attempt, action);
        if let Some(outcome) =
            self.all.get(&attempt).and_then(|process| process.ended.clone()).filter(|_| lived)
        {
            self.reports.push_back(Input::AttemptEnded(attempt, outcome));
        }
    }

    fn carry_out(&mut self, attempt: Attempt, action: Action) {
        let now = self.now;
        if let Action::Launch(launch) = action {
            return self.launch(attempt, launch);
        }
        if matches!(action, Action::Forget) {
            if self.all.get(&attempt).is_some_and(Process::lives) {
                self.broken.push(format!("attempt {}.{} is forgotten and lives", attempt.job, attempt.nth));
            }
            self.all.remove(&attempt);
            return;
        }
        let Some(process) = self.all.get_mut(&attempt).filter(|process| process.lives()) else { return };
        match action {
            Action::Stop => process.halt(now, true),
            Action::Continue => process.halt(now, false),
            Action::BeginWindow { cpus, end } => {
                process.enter_window(cpus, end.ticks());
                process.halt(now, false);
            }
            Action::PlanWindow(window) if process.end.is_none() => process.planned = Some(window),
            Action::PlanWindow(window) => process.end = Some(window.end.ticks()),
            Action::Move(cpus) => process.cpus = cpus,
            Action::EndAt(end) => process.end = Some(end.ticks()),
            Action::EndIfOrphaned { end, left } => process.orphan = Some((end, left)),
            Action::Kill { grace } => process.terminate(now, now + grace.ticks(), KilledBy::User),
            Action::EndOverdue { .. } => process.terminate(now, now, KilledBy::Time),
            Action::RunFor(_) | Action::Signal(_) | Action::Launch(_) | Action::Forget => {}
        }
    }
}

impl Launcher for Site {
    fn check(&self, _: &Submission, _: &str) -> Result<(), Problem> {
        Ok(())
    }

    fn act(&mut self, attempt: Attempt, action: Action) {
        self.1.pass();
        let mut attempts = self.0.borrow_mut();
        let text = if let Action::Launch(launch) = &action {
            format!("Launch on {:?} until {:?}, planned {:?}", launch.cpus, launch.end, launch.planned_window)
        } else {
            format!("{action:?}")
        };
        attempts.acted.push(format!("{}.{} {text}", attempt.job, attempt.nth));
        attempts.act(attempt, action);
    }

    fn rotate_slots(&mut self, _: &str, _: Option<&SlotSchedule>) {}
}
