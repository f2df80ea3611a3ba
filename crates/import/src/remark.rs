//! What could not be carried over: its kinds, and how often each was met.

use std::collections::BTreeMap;

/// How many examples of a kind are kept.
const EXAMPLES: usize = 5;

/// What became of the jobs that a remark is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sort {
    /// They are not in the log.
    LeftOut,
    /// They are in the log, without something that they had.
    Changed,
}

impl Sort {
    /// Every sort.
    pub const ALL: [Sort; 2] = [Sort::LeftOut, Sort::Changed];

    /// The name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Sort::LeftOut => "left_out",
            Sort::Changed => "changed",
        }
    }
}

macro_rules! remarks {
    ($($variant:ident $name:literal $sort:ident $about:literal,)*) => {
        /// A kind of remark, those that left jobs out first.
        #[expect(clippy::doc_markdown, reason = "the same words are shown to users, without backticks")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Remark {
            $(#[doc = $about] $variant,)*
        }

        impl Remark {
            /// Every kind.
            pub const ALL: &[Remark] = &[$(Remark::$variant),*];

            /// The name in output, and for scripts.
            pub const fn name(self) -> &'static str {
                match self { $(Remark::$variant => $name,)* }
            }

            /// One line on what it is and what becomes of it.
            pub const fn about(self) -> &'static str {
                match self { $(Remark::$variant => $about,)* }
            }

            /// What became of the jobs.
            pub const fn sort(self) -> Sort {
                match self { $(Remark::$variant => Sort::$sort,)* }
            }
        }
    };
}

remarks! {
    Malformed "malformed" LeftOut
        "a line that cannot be a job",
    Step "step" LeftOut
        "a step of a job, not a job; sacct -X does not print them",
    Unfinished "unfinished" LeftOut
        "pending, running or suspended when the accounting was read",
    Elsewhere "elsewhere" LeftOut
        "revoked: another cluster of the federation ran it",
    NoSubmitTime "no_submit_time" LeftOut
        "submit time unknown",
    Repeated "repeated" LeftOut
        "the same run of the same job again, as from periods that overlap",
    NoDuration "no_duration" LeftOut
        "its profile computes or communicates, so only a platform tells how long it takes; delays alone have a runtime",
    NeverStarted "never_started" Changed
        "ended before it started: written without a runtime, with the wait until its end; a simulation leaves it out",
    RunAgain "run_again" Changed
        "a further run of the same job, requeued or resized; each run is a job, submitted when Slurm put it back",
    Delayed "delayed" Changed
        "not eligible at its submission (dependency, begin time, hold, array limit); see --submit-at",
    NeverEligible "never_eligible" Changed
        "the time at which it became eligible is unknown; its submission stands for it",
    StartedEarly "started_early" Changed
        "started before it was submitted; the wait is unknown",
    Suspended "suspended" Changed
        "was suspended; the runtime is without that time",
    NoTimeLimit "no_time_limit" Changed
        "without a time limit of its own; the estimate is unknown",
    NoWalltime "no_walltime" Changed
        "without a walltime; the estimate is unknown",
    UnknownState "unknown_state" Changed
        "in a state that is not known here; the status is unknown",
    ManyNodes "many_nodes" Changed
        "ran on several nodes; the format counts processors only",
    GenericResources "generic_resources" Changed
        "had GPUs or other generic resources; the format has no place for them",
    LocalTime "local_time" Changed
        "times without a zone, taken as if they were UTC; see --time-zone, or ask sacct for SLURM_TIME_FORMAT=%s",
    Rounded "rounded" Changed
        "times with fractions of seconds, rounded half up",
    Renumbered "renumbered" Changed
        "ids that are no distinct numbers; the jobs are numbered from 1 in the order of submission",
}

/// How often a kind was met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many jobs.
    pub count: u64,
    /// The first few of them, each as `line 7` with what else there is to say.
    pub examples: Vec<String>,
}

/// Remarks by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remarks(BTreeMap<Remark, Tally>);

impl Remarks {
    /// Notes one job; `example` is only asked for the first few.
    pub(crate) fn add(&mut self, remark: Remark, example: impl FnOnce() -> String) {
        let tally = self.0.entry(remark).or_default();
        tally.count += 1;
        if tally.examples.len() < EXAMPLES {
            tally.examples.push(example());
        }
    }

    /// How many jobs a remark was made of.
    pub fn count(&self, remark: Remark) -> u64 {
        self.0.get(&remark).map_or(0, |tally| tally.count)
    }

    /// The remarks of a sort that were made.
    pub fn of(&self, sort: Sort) -> impl Iterator<Item = (Remark, &Tally)> {
        self.0.iter().map(|(&remark, tally)| (remark, tally)).filter(move |(remark, _)| remark.sort() == sort)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn left_out_first_and_named_once() {
        assert!(Remark::ALL.is_sorted_by_key(|remark| remark.sort()));
        let mut names: Vec<_> = Remark::ALL.iter().map(|remark| remark.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Remark::ALL.len());
    }

    #[test]
    fn all_are_counted_and_few_told() {
        let mut remarks = Remarks::default();
        (1..=7).for_each(|line| remarks.add(Remark::Step, || format!("line {line}")));
        let told: Vec<_> = remarks.of(Sort::LeftOut).collect();
        assert_eq!((told.len(), told[0].1.count, told[0].1.examples.len()), (1, 7, 5));
        assert_eq!((remarks.count(Remark::Step), remarks.of(Sort::Changed).count()), (7, 0));
    }
}
