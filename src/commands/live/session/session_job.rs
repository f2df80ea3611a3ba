//! A job with a client, from its submission to its end.

use std::io::{IsTerminal, stdin};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::bail;
use miserly_api::client::{Client, ClientError};
use miserly_api::model::{Failure, JobView, Phase, ProblemCode};
use miserly_launch::frame::{ClientFrame, RelayHello};
use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, poll};

use super::escape::EscapeKeys;
use super::followers::{Followers, output_files};
use super::interact::{Interaction, Parting};
use super::link::Link;
use super::messages::Messages;
use super::raw_mode::RawMode;
use super::reminder;
use super::signals::{Signals, code};
use super::start::{self, Started, runs};
use crate::args::DaemonArgs;
use crate::commands::live::output_file::is_away;
use crate::commands::live::{UNKNOWN, wait};
use crate::failure::print_failure;

/// The pause before another request to a job that is starting.
const PAUSE: Duration = Duration::from_millis(100);

/// The number of pauses in which an attempt ends after its connection.
const LOOKS: u32 = 100;

/// A job, and this command as its client.
pub(super) struct SessionJob<'a> {
    client: Client,
    daemon: &'a DaemonArgs,
    job: i64,
    signals: &'a Signals,
    messages: Messages,
    /// Whether this command has submitted the job.
    owns: bool,
    /// Whether its start is still to come.
    waits: bool,
    /// The number of bytes of the output file that were printed.
    printed: u64,
    /// The attempt that printed them.
    printed_attempt: u32,
    /// Whether all output was printed.
    has_followed: bool,
    /// How the job ended.
    ended: Option<Phase>,
}

/// The outcome of one attempt of the job.
enum Outcome {
    /// The attempt has ended, or is about to.
    Ended,
    /// The command ends before the job.
    Leaves(ExitCode),
}

impl<'a> SessionJob<'a> {
    pub(super) fn new(
        client: Client,
        daemon: &'a DaemonArgs,
        job: i64,
        signals: &'a Signals,
        messages: Messages,
    ) -> SessionJob<'a> {
        let (owns, waits, printed, printed_attempt, has_followed) = (false, false, 0, 0, false);
        SessionJob {
            client,
            daemon,
            job,
            signals,
            messages,
            owns,
            waits,
            printed,
            printed_attempt,
            has_followed,
            ended: None,
        }
    }

    /// Returns whether the job had not started by its latest start.
    pub(super) fn is_given_up(&self) -> bool {
        matches!(self.ended, Some(Phase::Failed { why: Failure::NotInTime, .. }))
    }

    /// Waits for the start of the job and attaches to each of its attempts. A signal before the start cancels the job.
    ///
    /// `waits`: whether it had not started at its submission.
    pub(super) fn run(&mut self, waits: bool) -> anyhow::Result<ExitCode> {
        self.owns = true;
        self.waits = waits;
        self.serve()
    }

    /// Attaches to a job. It starts with the last part of the output, and a signal before the start leaves the job alone.
    pub(super) fn attached(&mut self) -> anyhow::Result<ExitCode> {
        let view = self.client.job(self.job)?;
        if view.phase.ended().is_some() {
            bail!("job {} has ended; `miserly logs {0}` prints its output", self.job);
        }
        if !runs(&view.phase)
            && let Err(ClientError::Refused(problem)) = self.client.attach(self.job)
            && problem.code == ProblemCode::Forbidden
        {
            // Its start would change nothing.
            return Err(ClientError::Refused(problem).into());
        }
        self.serve()
    }

    fn serve(&mut self) -> anyhow::Result<ExitCode> {
        let mut last = 0;
        loop {
            let view = match self.next_start(last)? {
                Started::Runs(view) => view,
                Started::Ended(view) => return self.end(&view),
                Started::Interrupted(signal) => return Ok(self.interrupted(signal)),
            };
            if last == 0 && self.owns {
                self.messages.started(self.job, self.waits);
            }
            last = view.attempts;
            match self.attempt(&view)? {
                Outcome::Ended => {}
                Outcome::Leaves(code) => return Ok(code),
            }
        }
    }

    /// Waits for an attempt after `last`, or for the end of the job.
    fn next_start(&self, last: u32) -> anyhow::Result<Started> {
        let (job, messages) = (self.job, self.messages);
        start::wait(&self.client, job, last, self.signals, |window| messages.promised(job, window))
    }

    /// Cancels a job of this command that has no client. That may be after its start. Returns the exit code.
    fn interrupted(&self, signal: Signal) -> ExitCode {
        if self.owns {
            self.cancel();
        }
        ExitCode::from(code(signal))
    }

    /// Prints the output that no connection has brought. Returns the exit code of the ended job.
    fn end(&mut self, job: &JobView) -> anyhow::Result<ExitCode> {
        self.ended = Some(job.phase.clone());
        // Before the first attempt the file may have other content.
        let never_ran = matches!(job.phase, Phase::Failed { .. } | Phase::Killed { exit: None, .. });
        let has_run = job.attempts > 0 && !never_ran;
        if self.owns && !self.has_followed && has_run {
            let was_printed = self.printed_attempt == job.attempts;
            for mut output in output_files(job, self.daemon) {
                output.passed = self.printed;
                // A file of the same attempt that is shorter was truncated by another program.
                let has_more = |length| length > self.printed || !was_printed;
                if output.path.metadata().map_or(true, |found| found.is_file() && has_more(found.len())) {
                    output.pass_on()?;
                }
            }
        }
        self.messages.ended(job);
        Ok(ExitCode::from(wait::code(&job.phase)))
    }

    /// Attaches to an attempt that runs.
    fn attempt(&mut self, job: &JobView) -> anyhow::Result<Outcome> {
        match self.connect(job.attempts)? {
            ControlFlow::Continue((link, hello)) if hello.terminal => self.at_terminal(job, link, hello),
            ControlFlow::Continue((link, _)) => self.at_input(job, link),
            ControlFlow::Break(outcome) => Ok(outcome),
        }
    }

    /// Returns a connection to the relay of an attempt, with its first frame, or why there is none.
    fn connect(&self, attempt: u32) -> anyhow::Result<ControlFlow<Outcome, (Link, RelayHello)>> {
        match self.attach(attempt)? {
            ControlFlow::Continue(link) => self.greeting(link, attempt),
            ControlFlow::Break(outcome) => Ok(ControlFlow::Break(outcome)),
        }
    }

    /// Returns a connection to the relay, unless the attempt has ended before.
    fn attach(&self, attempt: u32) -> anyhow::Result<ControlFlow<Outcome, Link>> {
        loop {
            match self.client.attach(self.job) {
                // The client that submitted the job sees all of its output, any other the last part.
                Ok(attached) => {
                    return Ok(ControlFlow::Continue(Link::open(attached, self.owns.then_some(0))));
                }
                Err(error) if is_away(&error) => thread::sleep(PAUSE),
                Err(ClientError::Refused(problem)) if problem.code == ProblemCode::Conflict => {
                    let view = self.client.job(self.job)?;
                    if self.owns || !runs(&view.phase) || view.attempts != attempt {
                        return Ok(ControlFlow::Break(Outcome::Ended));
                    }
                    return Err(ClientError::Refused(problem).into());
                }
                Err(error) => return Err(error.into()),
            }
            if let Some(signal) = self.signals.next_end() {
                return Ok(ControlFlow::Break(Outcome::Leaves(self.interrupted(signal))));
            }
        }
    }

    /// Waits for the first frame of the relay.
    fn greeting(
        &self,
        mut link: Link,
        attempt: u32,
    ) -> anyhow::Result<ControlFlow<Outcome, (Link, RelayHello)>> {
        while link.hello.is_none() && !link.is_over {
            let mut polled = [link.poll(), PollFd::new(self.signals, PollFlags::IN)];
            // Interrupted, or ready.
            let _ = poll(&mut polled, None);
            if !polled[1].revents().is_empty()
                && let Some(signal) = self.signals.next_end()
            {
                return Ok(ControlFlow::Break(Outcome::Leaves(self.interrupted(signal))));
            }
            link.flush();
            link.receive();
            link.greet()?;
        }
        Ok(match link.hello {
            Some(hello) => ControlFlow::Continue((link, hello)),
            None if link.is_replaced => ControlFlow::Break(self.part(Parting::Replaced, attempt)?),
            None => ControlFlow::Break(self.lost(attempt)?),
        })
    }

    /// Passes the terminal of the job on, with this one in raw mode.
    fn at_terminal(&mut self, job: &JobView, link: Link, hello: RelayHello) -> anyhow::Result<Outcome> {
        if !stdin().is_terminal() {
            bail!(
                "job {} has a terminal, and standard input is none; `miserly logs` prints its output",
                self.job
            );
        }
        if let Some(end) = reminder::end(&job.phase) {
            self.messages.terminal(self.job, end);
        }
        let escape = Some(EscapeKeys::default());
        let reminder = reminder::reminder(job, self.daemon);
        let mut interaction =
            Interaction { escape, reminder, ..Interaction::new(link, self.signals, true, None) };
        let raw = RawMode::enter()?;
        let parted = interaction.run();
        drop(raw);
        self.printed = hello.base + hello.from + interaction.printed;
        self.printed_attempt = job.attempts;
        self.part(parted?, job.attempts)
    }

    /// Passes the input of the job on, and prints its output from the files.
    fn at_input(&mut self, job: &JobView, mut link: Link) -> anyhow::Result<Outcome> {
        let followers = Followers::start(job, self.daemon, self.owns)?;
        let has_input = !stdin().is_terminal();
        if !has_input && self.owns {
            link.send(&ClientFrame::EndOfInput);
        }
        let mut interaction = Interaction::new(link, self.signals, has_input, Some(&followers.over));
        interaction.outlives_link = !self.owns;
        let mut last = job.attempts;
        let parting = loop {
            match interaction.run()? {
                Parting::Cancel if !interaction.is_cancelled => {
                    note!("job {}: cancelled", self.job);
                    self.cancel();
                    // The output up to the end. Another interrupt ends the command.
                    interaction.is_cancelled = true;
                }
                Parting::Lost => {
                    if let Some(code) = self.next_attempt(&mut interaction, &mut last)? {
                        return Ok(Outcome::Leaves(code));
                    }
                }
                parting => break parting,
            }
        };
        drop(interaction);
        if parting == Parting::Ended {
            followers.join()?;
            self.has_followed = true;
        }
        self.part(parting, last)
    }

    /// Attaches to the next attempt after `last`, or finds that there is none. Returns an exit code if the command ends before.
    ///
    /// Input that an attempt before has got is gone.
    fn next_attempt(
        &self,
        interaction: &mut Interaction<'_>,
        last: &mut u32,
    ) -> anyhow::Result<Option<ExitCode>> {
        loop {
            let view = match self.next_start(*last)? {
                Started::Runs(view) => view,
                Started::Ended(_) => {
                    interaction.outlives_link = true;
                    return Ok(None);
                }
                Started::Interrupted(signal) if interaction.is_cancelled => {
                    return Ok(Some(ExitCode::from(code(signal))));
                }
                Started::Interrupted(signal) => return Ok(Some(self.interrupted(signal))),
            };
            *last = view.attempts;
            match self.connect(*last)? {
                ControlFlow::Continue((link, _)) => {
                    interaction.link = link;
                    if interaction.read > 0 {
                        note!(
                            "job {}: attempt {last} gets no input, because one before it got some",
                            self.job
                        );
                        interaction.has_input = false;
                    }
                    if !interaction.has_input {
                        interaction.link.send(&ClientFrame::EndOfInput);
                    }
                    return Ok(None);
                }
                ControlFlow::Break(Outcome::Ended) => {}
                ControlFlow::Break(Outcome::Leaves(code)) => return Ok(Some(code)),
            }
        }
    }

    fn part(&self, parting: Parting, attempt: u32) -> anyhow::Result<Outcome> {
        let job = self.job;
        let code = match parting {
            Parting::Ended => return Ok(Outcome::Ended),
            Parting::Lost => return self.lost(attempt),
            Parting::Detached => {
                note!("detached from job {job}, which continues; `miserly attach {job}` attaches again");
                return Ok(Outcome::Leaves(ExitCode::SUCCESS));
            }
            Parting::Replaced => {
                note!("another client has attached to job {job}");
                UNKNOWN
            }
            Parting::Cancel => code(Signal::SIGINT),
            Parting::Signal(signal) => {
                note!("job {job} continues; `miserly attach {job}` attaches again");
                code(signal)
            }
        };
        Ok(Outcome::Leaves(ExitCode::from(code)))
    }

    /// Waits for the end of an attempt after the connection has ended without a reason.
    fn lost(&self, attempt: u32) -> anyhow::Result<Outcome> {
        for _ in 0..LOOKS {
            if let Some(signal) = self.signals.next_end() {
                return Ok(Outcome::Leaves(ExitCode::from(code(signal))));
            }
            match self.client.job(self.job) {
                Ok(view) if !runs(&view.phase) || view.attempts != attempt => return Ok(Outcome::Ended),
                Err(error) if !is_away(&error) => return Err(error.into()),
                _ => thread::sleep(PAUSE),
            }
        }
        note!(
            "the connection to job {0} is lost, and the job continues; `miserly attach {0}` attaches again",
            self.job
        );
        Ok(Outcome::Leaves(ExitCode::from(UNKNOWN)))
    }

    fn cancel(&self) {
        if let Err(error) = self.client.cancel(self.job, false) {
            print_failure(false, Some(self.job), &error.into());
        }
    }
}
