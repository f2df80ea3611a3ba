//! The processors that a resizable job wants.

use miserly_api::model::{JobIds, Problem, ProblemCode};
use miserly_core::{Amendment, Change, Round};
use miserly_marks::mark;

use crate::request::handler::Handled;
use crate::{Caller, DaemonReply, Engine, Journal, Launcher, Now};

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Changes the most processors that a resizable job wants: fewer, or again up to those of its submission.
    pub(crate) fn resize_wanted(&mut self, now: Now, caller: &Caller, job: i64, cpus: u64) -> Handled {
        let at = self.fresh(now)?;
        let record = self.owned_job(caller, job)?;
        let most = record.submission.cpus;
        let Some(least) = record.submission.resizable.filter(|_| self.resizes(&record.queue)) else {
            mark!("refused: a job that is not resizable");
            let message =
                format!("job {job} keeps its processors: it is not resizable, or its queue resizes no job");
            return Err(Problem::new(ProblemCode::Conflict, message).into());
        };
        if !(least..=most).contains(&cpus) {
            mark!("refused: a size beyond the bounds");
            let message = format!("job {job} has {least} to {most} processors, as it was submitted");
            return Err(Problem::with_field("cpus", message).into());
        }
        let sizes = self.jobs.get_mut(job).map(|record| {
            record.wanted = Some(cpus).filter(|cpus| *cpus < most);
            record.sizes()
        });
        self.batch.touch(job);
        if let Some((handle, sizes)) = self.jobs.handle(job).zip(sizes) {
            let amended = vec![Amendment { job: handle, change: Change::Sizes(sizes) }];
            self.play(now, at, Round { amended, ..Round::default() })?;
        }
        Ok(DaemonReply::JobIds(JobIds { jobs: vec![job] }))
    }
}
