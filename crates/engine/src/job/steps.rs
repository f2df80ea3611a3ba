//! The steps of a run of a job.

use jiff::Timestamp;
use miserly_api::model::{BeginStepRequest, EndStepRequest, StepEnd, StepView, is_blank, is_invisible};
use serde::{Deserialize, Serialize};

/// The most steps that are remembered of a run.
const MOST_STEPS: usize = 500;

/// The most characters of the name of a step.
const MOST_NAME: usize = 128;

/// The steps of the last run that had some.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct StepLog {
    /// The number of the attempt.
    attempt: u32,
    /// The number of the next step.
    next: u32,
    /// The steps, by number.
    steps: Vec<StepView>,
}

impl StepLog {
    /// Adds a step of an attempt, whose earlier ones are forgotten if they are of another. Returns its number.
    pub(crate) fn begin(&mut self, attempt: u32, at: Timestamp, step: BeginStepRequest) -> u32 {
        if self.attempt != attempt {
            *self = StepLog { attempt, ..StepLog::default() };
        }
        if self.steps.len() >= MOST_STEPS {
            // Those that run are needed for their ends.
            let ended = self.steps.iter().position(|step| step.ended.is_some());
            self.steps.remove(ended.unwrap_or(0));
        }
        let number = self.next;
        self.next = number.saturating_add(1);
        let BeginStepRequest { name, tasks, cpus, limit } = step;
        // The name is that of a program, or of a user: all see it as it is.
        let name: String = name.replace(is_invisible, "?").chars().take(MOST_NAME).collect();
        let name = if is_blank(&name) { "?".to_owned() } else { name };
        self.steps.push(StepView { step: number, name, tasks, cpus, started: at, limit, ended: None });
        number
    }

    /// Ends a step. Returns whether it ran.
    pub(crate) fn end(&mut self, at: Timestamp, end: EndStepRequest) -> bool {
        let mut running = self.steps.iter_mut().filter(|step| step.ended.is_none());
        let Some(step) = running.find(|step| step.step == end.step) else { return false };
        step.ended = Some(StepEnd { at, exit: end.exit, by_time: end.by_time });
        true
    }

    /// Returns the steps of an attempt.
    pub(crate) fn of_attempt(&self, attempt: u32) -> &[StepView] {
        if self.attempt == attempt { &self.steps } else { &[] }
    }
}

#[cfg(test)]
mod tests {
    use miserly_api::model::Exit;

    use super::*;

    #[test]
    fn a_run_remembers_its_last_steps_and_those_that_run() {
        let mut log = StepLog::default();
        let at = Timestamp::UNIX_EPOCH;
        let begin = |log: &mut StepLog, attempt| {
            log.begin(attempt, at, BeginStepRequest { name: "x".repeat(500), tasks: 2, cpus: 4, limit: None })
        };
        let end = |step| EndStepRequest { step, exit: Exit::Code(0), by_time: false };
        assert_eq!(begin(&mut log, 1), 0);
        for step in 1..=600 {
            assert_eq!(begin(&mut log, 1), step);
            assert!(log.end(at, end(step)) && !log.end(at, end(step)));
        }
        let steps = log.of_attempt(1);
        assert_eq!((steps.len(), steps[0].step, steps[1].step, steps[0].name.len()), (500, 0, 102, 128));
        assert!(log.of_attempt(2).is_empty());
        assert!(log.end(at, end(0)));
        assert_eq!(begin(&mut log, 2), 0);
        assert_eq!(log.of_attempt(2).len(), 1);
        assert!(!log.end(at, end(600)));
    }

    #[test]
    fn a_name_is_shown_as_it_is() {
        let mut log = StepLog::default();
        for name in ["a\u{202e}b\nc", " "] {
            log.begin(
                1,
                Timestamp::UNIX_EPOCH,
                BeginStepRequest { name: name.to_owned(), tasks: 1, cpus: 1, limit: None },
            );
        }
        let names: Vec<&str> = log.of_attempt(1).iter().map(|step| &step.name[..]).collect();
        assert_eq!(names, ["a?b?c", "?"]);
    }
}
