//! Remarks on lost information, counted by kind.

use std::collections::BTreeMap;

use miserly_core::{described_enum, named_enum};

/// Maximum number of examples per kind.
const EXAMPLES: usize = 5;

named_enum! {
    /// The effect on the jobs of a remark.
    pub enum RemarkEffect {
        /// The jobs are not in the log.
        LeftOut "left_out",
        /// The jobs are in the log with a loss of information.
        Changed "changed",
    }
}

described_enum! {
    /// A kind of remark. The kinds that exclude jobs come first.
    pub enum Remark, effect: RemarkEffect {
        Malformed "malformed" LeftOut
            "a line that is not a valid job",
        Step "step" LeftOut
            "a step of a job, not a job; sacct -X does not print them",
        Event "event" LeftOut
            "a record of another event than the end of a job",
        WholeArray "whole_array" LeftOut
            "an array as a whole; its tasks are jobs",
        Unfinished "unfinished" LeftOut
            "pending, running or suspended when the accounting was read",
        Runaway "runaway" LeftOut
            "recorded as running without an end, more than a day past its limit (without one: after 30 days)",
        Dropped "dropped" LeftOut
            "by a rule of the column map",
        EarlierRun "earlier_run" LeftOut
            "an earlier run of a job whose last run counts",
        PartOfJob "part_of_job" LeftOut
            "a part of a job: its size is added to that of the first",
        Elsewhere "elsewhere" LeftOut
            "revoked: another cluster of the federation ran it",
        NoSubmitTime "no_submit_time" LeftOut
            "submit time unknown",
        Repeated "repeated" LeftOut
            "the same run of the same job again, as from periods that overlap",
        NoDuration "no_duration" LeftOut
            "its profile computes or communicates, so its runtime depends on the platform; only delays have a fixed runtime",
        NeverStarted "never_started" Changed
            "never ran: cancelled or failed while it waited; it is in the log with the wait until then and without a runtime, and a simulation skips it (no_runtime)",
        CancelledTask "cancelled_task" Changed
            "a task of an array that was cancelled before it ran; each is a job without a runtime",
        RunAgain "run_again" Changed
            "a further run of the same job, requeued or resized; each run is a job, submitted when Slurm put it back",
        Recycled "recycled" Changed
            "the number of an earlier job of another user, or submitted more than a day after it ended: another job",
        Delayed "delayed" Changed
            "not eligible at its submission (dependency, begin time, hold, array limit); see --submit-at",
        NeverEligible "never_eligible" Changed
            "the time at which it became eligible is unknown; its submission replaces it",
        StartedEarly "started_early" Changed
            "started before it was submitted; the wait is unknown",
        StartedIneligible "started_ineligible" Changed
            "started before it was eligible",
        EndsEarly "ends_early" Changed
            "ended before it started; the runtime is the elapsed time, or 0 without one",
        Suspended "suspended" Changed
            "was suspended; the runtime is without that time",
        NoTimeLimit "no_time_limit" Changed
            "without a time limit of its own; the estimate is unknown",
        NoWalltime "no_walltime" Changed
            "without a walltime; the estimate is unknown",
        UnknownState "unknown_state" Changed
            "in an unknown state; the status is unknown",
        ManyNodes "many_nodes" Changed
            "ran on several nodes; simulated by their processors",
        GenericResources "generic_resources" Changed
            "had GPUs or other generic resources; no policy sees them, and only GPUs are written",
        LocalTime "local_time" Changed
            "times without a zone, read as UTC; see --time-zone, or run sacct with SLURM_TIME_FORMAT=%s",
        RepeatedHour "repeated_hour" Changed
            "a local time in an hour that the clock shows twice; the first is used; run sacct with SLURM_TIME_FORMAT=%s",
        Rounded "rounded" Changed
            "a time with a fraction of a second, rounded half up; the format has whole seconds",
        PartOfProcessor "part_of_processor" Changed
            "a number of processors with a fraction, rounded up",
        Renumbered "renumbered" Changed
            "ids that are not distinct numbers: numbered from 1 in the order of submission; the header has the ids",
        NumberedAgain "numbered_again" Changed
            "the ids are texts or occur again: jobs are numbered from 1 in the order of submission",
    }
}

/// The frequency of a kind with examples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemarkCount {
    /// Number of jobs; of [`Remark::Rounded`], of times.
    pub count: u64,
    /// First jobs, each as `line 7` with details.
    pub examples: Vec<String>,
}

impl RemarkCount {
    /// Returns the number of jobs beside the examples. An example may be the place of several jobs: where there are fewer of them
    /// than are kept, they are all places.
    pub fn beside_examples(&self) -> u64 {
        if self.examples.len() < EXAMPLES { 0 } else { self.count - self.examples.len() as u64 }
    }

    /// Adds some jobs at one place.
    pub(crate) fn add(&mut self, jobs: u64, example: impl FnOnce() -> String) {
        self.count += jobs;
        if self.examples.len() < EXAMPLES {
            self.examples.push(example());
        }
    }
}

/// Remarks by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remarks(BTreeMap<Remark, RemarkCount>);

impl Remarks {
    /// Adds a job. `example` is called only for the first ones of a kind.
    pub(crate) fn add(&mut self, remark: Remark, example: impl FnOnce() -> String) {
        self.add_all(remark, 1, example);
    }

    /// Adds some jobs at one place.
    pub(crate) fn add_all(&mut self, remark: Remark, jobs: u64, example: impl FnOnce() -> String) {
        self.0.entry(remark).or_default().add(jobs, example);
    }

    /// Returns the number of jobs with a remark.
    pub fn count(&self, remark: Remark) -> u64 {
        self.0.get(&remark).map_or(0, |tally| tally.count)
    }

    /// Returns the remarks with this effect.
    pub fn with_effect(&self, effect: RemarkEffect) -> impl Iterator<Item = (Remark, &RemarkCount)> {
        self.0
            .iter()
            .map(|(&remark, tally)| (remark, tally))
            .filter(move |(remark, _)| remark.effect() == effect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn left_out_first_and_named_once() {
        assert!(Remark::ALL.is_sorted_by_key(|remark| remark.effect()));
        let mut names: Vec<_> = Remark::ALL.iter().map(|remark| remark.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Remark::ALL.len());
    }

    #[test]
    fn all_are_counted_with_few_examples() {
        let mut remarks = Remarks::default();
        (1..=7).for_each(|line| remarks.add(Remark::Step, || format!("line {line}")));
        let excluded: Vec<_> = remarks.with_effect(RemarkEffect::LeftOut).collect();
        assert_eq!((excluded.len(), excluded[0].1.count, excluded[0].1.examples.len()), (1, 7, 5));
        assert_eq!((remarks.count(Remark::Step), remarks.with_effect(RemarkEffect::Changed).count()), (7, 0));
    }
}
