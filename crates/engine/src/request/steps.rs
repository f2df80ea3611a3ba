//! Steps of jobs, which `srun` begins and ends inside them.

use miserly_api::model::{BeginStepRequest, EndStepRequest, Problem, ProblemCode, StepNumber};
use miserly_marks::mark;

use crate::request::handler::Handled;
use crate::{Caller, DaemonReply, Engine, Journal, Launcher, Now};

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Records the start of a step.
    pub(crate) fn begin_step(
        &mut self,
        now: Now,
        caller: &Caller,
        job: i64,
        step: BeginStepRequest,
    ) -> Handled {
        self.owned_job(caller, job)?.check_runs("it has no steps")?;
        mark!("a step begins");
        let Some(record) = self.jobs.get_mut(job) else { return Err(no_step(job).into()) };
        let nth = record.run.as_ref().map_or(0, |run| run.nth);
        let step = record.steps.get_or_insert_default().begin(nth, now.wall, step);
        self.batch.touch(job);
        Ok(DaemonReply::Step(StepNumber { step }))
    }

    /// Records the end of a step.
    pub(crate) fn end_step(&mut self, now: Now, caller: &Caller, job: i64, end: EndStepRequest) -> Handled {
        self.owned_job(caller, job)?;
        let record = self.jobs.get_mut(job);
        let steps = record.and_then(|record| record.steps.as_deref_mut());
        if !steps.is_some_and(|steps| steps.end(now.wall, end)) {
            mark!("refused: no such step runs");
            return Err(no_step(job).into());
        }
        self.batch.touch(job);
        Ok(DaemonReply::Step(StepNumber { step: end.step }))
    }
}

fn no_step(job: i64) -> Problem {
    Problem::new(ProblemCode::Conflict, format!("job {job} has no such step that runs"))
}
