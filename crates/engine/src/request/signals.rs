//! Signals to running jobs, and pauses of them.

use miserly_api::model::{JobIds, Problem, ProblemCode, SignalRequest};
use miserly_marks::mark;

use crate::request::handler::Handled;
use crate::{Action, Attempt, Caller, DaemonReply, Engine, Journal, Launcher, Now, Record, SentSignal};

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Sends a signal to the processes of a running job.
    pub(crate) fn signal(&mut self, caller: &Caller, job: i64, request: SignalRequest) -> Handled {
        self.owned_job(caller, job)?.check_runs("no process can get the signal")?;
        if let Some(run) = self.jobs.run_mut(job) {
            let sent = SentSignal { nth: run.signal.map_or(1, |last| last.nth.saturating_add(1)), request };
            run.signal = Some(sent);
            self.batch.act(Attempt { job, nth: run.nth }, Action::Signal(sent));
            self.batch.touch(job);
        }
        Ok(DaemonReply::JobIds(JobIds { jobs: vec![job] }))
    }

    /// Stops the processes of a job in its window, or lets them continue. The window goes on, so no plan changes.
    pub(crate) fn pause(&mut self, now: Now, caller: &Caller, job: i64, on: bool) -> Handled {
        // What is due is played first: it may be the start of the job.
        self.fresh(now)?;
        let record = self.owned_job(caller, job)?;
        record.check_runs("there is nothing to pause")?;
        let may_pause = self.setup.queue(&record.queue).is_none_or(|queue| queue.terms.pause);
        if on && !may_pause {
            let message = format!("queue {} lets no job pause", record.queue);
            return Err(Problem::new(ProblemCode::Refused, message).into());
        }
        let run = record.run.as_ref();
        let problem = if self.is_gang(&record.queue) {
            Some("takes turns with others, so it cannot pause")
        } else if run.is_some_and(|run| !run.in_window) {
            Some("runs ahead of its window, where it cannot pause; `miserly requeue` ends it")
        } else if run.is_some_and(|run| run.paused == on) {
            Some(if on { "is paused already" } else { "is not paused" })
        } else {
            None
        };
        if let Some(problem) = problem {
            mark!("refused: it cannot pause or go on");
            return Err(Problem::new(ProblemCode::Conflict, format!("job {job} {problem}")).into());
        }
        let end = self.window_end(job);
        if let Some(run) = self.jobs.run_mut(job) {
            run.paused = on;
            let attempt = Attempt { job, nth: run.nth };
            if on || run.stopped {
                self.batch.act(attempt, Action::Stop);
            } else {
                // A stop lets other programs on its processors; the window keeps them off again.
                let cpus = run.cpus.clone();
                if let Some(end) = end {
                    self.batch.act(attempt, Action::BeginWindow { cpus, end });
                }
                self.batch.act(attempt, Action::Continue);
            }
            self.batch.touch(job);
        }
        Ok(DaemonReply::JobIds(JobIds { jobs: vec![job] }))
    }
}

impl Record {
    /// Checks that the job has processes, and that its end was not requested.
    pub(crate) fn check_runs(&self, consequence: &str) -> Result<(), Problem> {
        if self.run.as_ref().is_some_and(|run| run.ending.is_none()) {
            return Ok(());
        }
        mark!("refused: a signal to a job that does not run");
        let message = format!("job {} does not run, so {consequence}", self.number);
        Err(Problem::new(ProblemCode::Conflict, message))
    }
}
