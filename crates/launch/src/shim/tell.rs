//! What the daemon tells, and what it is answered.

use rustix::process::Signal;

use super::course::Due;
use super::owner::Owner;
use super::processes::Look;
use super::stop::Stop;
use crate::identity::raw;
use crate::line::Line;
use crate::order::{Mode, Window};
use crate::sys;
use crate::time::BootTime;
use crate::told::{Answer, Message, Phase, Refusal, Reply, State, Told};

/// A message that is answered now, or why not.
pub(super) type Done = Result<(), Refusal>;

impl Owner {
    /// Takes up connections: the latest is the daemon's.
    pub(super) fn accept(&mut self) {
        while let Ok((stream, _)) = self.begun.listener.accept() {
            let Ok(line) = Line::new(stream) else { continue };
            // What the one before said holds.
            self.listen();
            self.daemon = Some(line);
            self.course.daemon_away(None);
            if let Some(stop) = &mut self.stop {
                // It was the one before who wanted to know.
                stop.number = None;
            }
        }
    }

    /// Does what the daemon says, if it says anything.
    pub(super) fn listen(&mut self) {
        loop {
            match self.daemon.as_mut().map(Line::receive::<Message>) {
                None | Some(Ok(None)) => return,
                Some(Ok(Some(message))) => self.told(message),
                Some(Err(_)) => self.lose_daemon(),
            }
        }
    }

    fn lose_daemon(&mut self) {
        self.daemon = None;
        self.course.daemon_away(Some(BootTime::now()));
    }

    fn answer(&mut self, number: u64, reply: Reply) {
        let sent = self.daemon.as_mut().map(|line| line.send(&Answer { number, reply }));
        if let Some(Err(_)) = sent {
            self.lose_daemon();
        }
    }

    fn told(&mut self, Message { number, told }: Message) {
        let now = BootTime::now();
        let over =
            self.finish.is_some() || (self.course.ending().is_some() && !matches!(told, Told::Kill { .. }));
        let done = match told {
            Told::Hello => Ok(()),
            _ if over => Err(Refusal::Ending),
            Told::Stop => return self.begin_stop(number, now),
            told => self.carry_out(told, now),
        };
        let reply = done.map_or_else(Reply::Refused, |()| Reply::Done(self.state()));
        self.answer(number, reply);
    }

    /// Does what is answered at once.
    fn carry_out(&mut self, told: Told, now: BootTime) -> Done {
        match told {
            Told::Continue if self.course.is_stopped() => return self.go_on(),
            // One that goes on may have stopped processes of its own.
            Told::Hello | Told::Stop | Told::Continue => {}
            Told::Critical { cpus, end } => return self.critical(cpus, end, now),
            Told::Window(window) => return self.ahead(window),
            Told::Cpus { cpus } => return self.move_to(cpus),
            Told::EndAt { end, left } => {
                self.course.end_at(end);
                self.course.left_alone(left);
            }
            Told::RunFor { limit } => self.course.run_for(now, limit),
            Told::Kill { grace, cause } => self.course.kill(now, grace, cause),
        }
        Ok(())
    }

    /// Stops at one stroke what can be stopped so; the rest as it is found.
    pub(super) fn stop_together(&self) {
        if self.main.exit.is_none() {
            self.processes.signal_group(Signal::STOP);
        }
    }

    fn critical(&mut self, cpus: Vec<u32>, end: BootTime, now: BootTime) -> Done {
        // What is there already may have placed its threads itself.
        if !matches!(&self.mode, Mode::Critical { cpus: there, .. } if *there == cpus) {
            self.place(&cpus, true)?;
        }
        self.mode = Mode::Critical { cpus, end };
        self.course.start_at(None);
        self.course.end_at(end);
        self.weigh(0, now);
        if self.course.is_stopped() { self.go_on() } else { Ok(()) }
    }

    /// The window begins, and nobody says so but the clock.
    pub(super) fn begin_window(&mut self, now: BootTime) {
        let Some(window) = self.mode.window().cloned() else { return };
        if let Err(refusal) = self.critical(window.cpus, window.end, now) {
            super::complain(&refusal);
            // Wherever it runs, it is over at the end of its window.
            let cpus = self.mode.cpus().to_owned();
            self.mode = Mode::Critical { cpus, end: window.end };
            self.course.end_at(window.end);
            if self.course.is_stopped()
                && let Err(refusal) = self.go_on()
            {
                super::complain(&refusal);
            }
        }
    }

    fn ahead(&mut self, told: Window) -> Done {
        Refusal::check(&told.cpus)?;
        match &mut self.mode {
            Mode::Early { window, .. } => {
                self.course.start_at(Some(told.start));
                *window = Some(told);
            }
            Mode::Critical { end, .. } => {
                *end = told.end;
                self.course.end_at(told.end);
            }
        }
        Ok(())
    }

    fn move_to(&mut self, cpus: Vec<u32>) -> Done {
        self.place(&cpus, false)?;
        match &mut self.mode {
            Mode::Critical { cpus: before, .. } | Mode::Early { cpus: before, .. } => *before = cpus,
        }
        Ok(())
    }

    fn place(&self, cpus: &[u32], out_of_idle: bool) -> Done {
        Refusal::check(cpus)?;
        self.processes.place(cpus, out_of_idle).map_err(|error| Refusal::cpus(cpus, &error))
    }

    fn begin_stop(&mut self, number: u64, now: BootTime) {
        self.drop_stop();
        self.together = false;
        self.others_at = None;
        self.stop_together();
        self.course.stopped(BootTime::now(), true);
        self.stop = Some(Stop::new(number, now));
    }

    /// Looks whether all have stopped, if somebody waits for it.
    pub(super) fn prove_stop(&mut self, now: BootTime) {
        let Some(stop) = self.stop.as_mut().filter(|stop| stop.look_at <= now) else { return };
        let (until, number) = (stop.until, stop.number);
        stop.wait(now);
        let look = self.processes.stop(&mut stop.sent).unwrap_or(Look { stopped: false, together: false });
        let stopped = look.stopped;
        // What is stopped makes no processes, and joins no other group.
        self.together = stopped && look.together;
        if !stopped && now >= until {
            self.drop_stop();
        } else if let (true, Some(number)) = (stopped, number) {
            self.stop = None;
            // It has just been looked at, if nothing else has become of it.
            let is_all = self.finish.is_none() && self.course.ending().is_none();
            let state = if is_all { self.state_in(Phase::Stopped) } else { self.state() };
            self.answer(number, Reply::Done(state));
        } else if stopped {
            self.stop = None;
        }
    }

    /// Answers a stop that was not proved, and never will be.
    pub(super) fn drop_stop(&mut self) {
        let Some(number) = self.stop.take().and_then(|stop| stop.number) else { return };
        let state = self.state();
        let running = self.processes.running().unwrap_or_default();
        self.answer(number, Reply::NotStopped { state, running });
    }

    /// What is due to a job that is stopped, or was to be, is due at once.
    pub(super) fn overtake(&mut self, due: Due) {
        self.drop_stop();
        if due == Due::Term {
            self.course.stopped(BootTime::now(), false);
        }
    }

    fn state(&self) -> State {
        self.state_in(self.phase())
    }

    fn state_in(&self, phase: Phase) -> State {
        State {
            phase,
            idle: raw(self.main.pid).is_some_and(|main| sys::is_idle(main).unwrap_or(false)),
            cpus: self.mode.cpus().to_owned(),
            end: self.course.end(),
            window: self.mode.window().cloned(),
        }
    }

    fn phase(&self) -> Phase {
        match (&self.finish, self.course.ending()) {
            (Some(finish), _) => Phase::Ended(Box::new(finish.end.clone())),
            (None, Some(ending)) => Phase::Ending(ending.cause),
            _ if self.course.is_stopped() => match self.processes.running() {
                Ok(running) if running.is_empty() => Phase::Stopped,
                _ => Phase::Stopping,
            },
            _ if self.main.line.is_some() => Phase::Starting,
            _ => Phase::Running,
        }
    }
}
