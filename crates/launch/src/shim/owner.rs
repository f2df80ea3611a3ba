//! The life of a shim: one loop over its children, its clock and the daemon.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Signal, getpid, set_child_subreaper};

use super::alarm::Alarm;
use super::begin::{self, Begun};
use super::course::{Course, Due};
use super::finish::Finish;
use super::main_process::{Go, MainProcess, Word};
use super::processes::{Processes, weigh_session};
use super::stop::Stop;
use crate::cpus;
use crate::end::Failure;
use crate::folder::{self, Started};
use crate::identity::{Identity, raw};
use crate::line::Line;
use crate::order::Mode;
use crate::procfs;
use crate::sys;
use crate::time::BootTime;
use crate::told::FirstWord;

/// How much an early session gives way to others.
const EARLY_NICE: i32 = 19;
/// How long the kernel wants to be left alone before a session's weight is changed again, and how soon processes are looked for
/// again of whose death nobody tells, or which could not be looked for.
pub(super) const AGAIN: std::time::Duration = std::time::Duration::from_millis(110);

/// A shim, and all that it has.
pub(super) struct Owner {
    pub(super) begun: Begun,
    pub(super) daemon: Option<Line>,
    pub(super) main: MainProcess,
    pub(super) processes: Processes,
    pub(super) course: Course,
    /// Where the job runs now; its end is in the course.
    pub(super) mode: Mode,
    pub(super) stop: Option<Stop>,
    /// It has been stopped, and all of it is in the group of the main process.
    pub(super) together: bool,
    /// The next look for processes that are to go on and could not be looked for.
    pub(super) others_at: Option<BootTime>,
    pub(super) finish: Option<Finish>,
    /// A weight of the session that the kernel did not take yet.
    pub(super) weight: Option<(i32, BootTime)>,
    /// The next look for processes of whose death nobody tells.
    look_at: Option<BootTime>,
    children: OwnedFd,
    alarm: Alarm,
}

/// Owns the attempt in a folder until it has ended.
pub(super) fn own(dir: &Path) -> Result<(), String> {
    let told = |error: io::Error| error.to_string();
    let children = sys::only_children().map_err(told)?;
    let mut launcher = begin::launcher().map_err(told)?;
    let begun = begin::begin(dir);
    // No file system is kept from being unmounted.
    std::env::set_current_dir("/").map_err(told)?;
    if let Some(line) = &mut launcher {
        let word =
            begun.as_ref().err().map_or(FirstWord::Begun, |refusal| FirstWord::Refused(refusal.clone()));
        // A launcher that has died does not hear it, and another will look.
        if line.send(&word).is_ok() && begun.is_ok() {
            begin::wait_for(line).map_err(told)?;
        }
    }
    let begun = begun.map_err(|refusal| refusal.to_string())?;
    Owner::new(begun, launcher, children).and_then(Owner::live).map_err(told)
}

impl Owner {
    fn new(begun: Begun, daemon: Option<Line>, children: OwnedFd) -> io::Result<Owner> {
        set_child_subreaper(Some(getpid()))?;
        let main = MainProcess::start(begun.folder.path())?;
        let order = &begun.order;
        let mut course = match order.limit {
            Some(limit) => Course::in_turns(limit, order.grace, order.alone),
            None => Course::new(order.mode.end(), order.grace, order.alone),
        };
        course.start_at(order.mode.window().map(|window| window.start));
        course.daemon_away(daemon.is_none().then(BootTime::now));
        Ok(Owner {
            processes: Processes::of_main(main.pid),
            mode: order.mode.clone(),
            alarm: Alarm::new()?,
            stop: None,
            together: false,
            others_at: None,
            finish: None,
            weight: None,
            look_at: None,
            begun,
            daemon,
            main,
            course,
            children,
        })
    }

    /// Lives until the end is on disk.
    fn live(mut self) -> io::Result<()> {
        while !self.is_finished(BootTime::now()) {
            self.alarm.set(self.next())?;
            self.sleep()?;
            self.alarm.hush()?;
            // The words of a process that has ended are still there when it is waited for.
            while let Some(word) = self.main.hear() {
                self.heard(word);
            }
            if let Err(error) = self.look_after_children().and_then(|()| self.act(BootTime::now())) {
                // No file is left in the system, or no memory: not a reason to let go of the job.
                super::complain(&error);
                self.look_at = Some(BootTime::now().after(AGAIN));
            }
            self.accept();
            self.listen();
        }
        Ok(())
    }

    /// The next instant at which there is something to do.
    fn next(&self) -> Option<BootTime> {
        let stop = self.stop.as_ref().map(|stop| stop.look_at);
        let finish = self.finish.as_ref().map(|finish| finish.try_at);
        let weight = self.weight.map(|(_, at)| at);
        [self.course.next(), stop, finish, weight, self.look_at, self.others_at].into_iter().flatten().min()
    }

    /// Waits until there is.
    fn sleep(&self) -> io::Result<()> {
        let lines = [self.daemon.as_ref(), self.main.line.as_ref()];
        let mut polled = vec![
            PollFd::new(&self.children, PollFlags::IN),
            PollFd::new(&self.alarm, PollFlags::IN),
            PollFd::new(&self.begun.listener, PollFlags::IN),
        ];
        polled.extend(
            lines.into_iter().flatten().map(|line| PollFd::from_borrowed_fd(line.as_fd(), PollFlags::IN)),
        );
        match poll(&mut polled, None) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The main process leads its session: makes its start durable, gives it its place, and lets it go.
    fn heard(&mut self, word: Word) {
        let failure = match word {
            Word::Here => self.let_go().err(),
            Word::Failed(failure) => Some(failure),
        };
        if let Some(failure) = failure {
            self.main.failure = Some(failure);
            // Without the word to go it ends.
            self.main.line = None;
        }
    }

    fn let_go(&mut self) -> Result<(), Failure> {
        if self.course.ending().is_some() {
            return Err(Failure::Ended);
        }
        let pid = self.main.pid;
        let setup = |what: &str, error: &dyn ToString| Failure::Setup {
            what: what.to_owned(),
            error: error.to_string(),
        };
        let main = Identity::of(pid).map_err(|error| setup("its identity", &error))?;
        let started = Started { main, sid: pid, autogroup: procfs::autogroup(pid), at: BootTime::now() };
        self.begun.folder.write(folder::STARTED, &started).map_err(|error| setup("its start", &error))?;
        cpus::confine(raw(pid), self.mode.cpus())
            .map_err(|error| setup(&format!("the cpus {:?}", self.mode.cpus()), &error))?;
        if matches!(self.mode, Mode::Early { .. }) {
            sys::set_idle(raw(pid), true).map_err(|error| setup("the idle class", &error))?;
            self.weigh(EARLY_NICE, BootTime::now());
        }
        if self.course.is_stopped() {
            // It becomes the command when it goes on.
            self.stop_together();
        }
        self.main.gone_ahead = true;
        match &mut self.main.line {
            Some(line) => line.send(&Go).map_err(|error| setup("the word to go", &error)),
            None => Ok(()),
        }
    }

    /// Weighs the session, now or when the kernel takes it.
    pub(super) fn weigh(&mut self, nice: i32, now: BootTime) {
        let taken = weigh_session(self.main.pid, nice);
        self.weight = (!taken).then(|| (nice, now.after(AGAIN)));
    }

    /// Waits for children that have ended, kills what is to be killed, and sees whether anything is left.
    fn look_after_children(&mut self) -> io::Result<()> {
        let (now, had_main) = (BootTime::now(), self.main.exit.is_none());
        let due = self.look_at.is_some_and(|at| at <= now);
        if !(sys::take_signals(&self.children) || due) || self.finish.is_some() {
            return Ok(());
        }
        let children = self.main.reap()?;
        self.look_at = None;
        if self.course.ending().is_some_and(|ending| ending.killed) {
            // What was made since the last look.
            self.processes.signal(Signal::KILL)?;
        }
        if self.main.exit.is_none() {
            return Ok(());
        }
        match (self.processes.living()?.is_empty(), children) {
            (true, false) => self.finish = Some(Finish::new(self.end(now), now)),
            (_, true) if had_main => self.course.leave(now),
            (_, true) => {}
            // Nobody tells of the death of one that is not a child.
            (false, false) => self.look_at = Some(now.after(AGAIN)),
        }
        Ok(())
    }

    /// Does what is due.
    fn act(&mut self, now: BootTime) -> io::Result<()> {
        while let Some(due) = self.course.due(now) {
            self.overtake(due);
            match due {
                Due::Begin => self.begin_window(now),
                Due::Term => {
                    self.processes.signal(Signal::TERM)?;
                    // What is stopped gets the signal when it goes on, before anything else.
                    self.processes.signal(Signal::CONT)?;
                }
                Due::Kill => self.processes.signal(Signal::KILL)?,
                Due::Continue => self.go_on_together()?,
            }
        }
        self.prove_stop(now);
        match self.weight {
            Some((nice, at)) if at <= now => self.weigh(nice, now),
            _ => {}
        }
        self.look_for_others(now)
    }
}
