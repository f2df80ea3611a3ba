//! The options of a run as an experiment file writes them.

use std::fmt::Display;

use miserly_core::{EventOrder, Procs, Sharing, Spread};
use miserly_policies::shared::Profile;
use miserly_sim::{BatchRule, Grouping, GroupingError};
use miserly_workload::{ArrivalScaling, Feedback, JobOptions, MOST_SHAKE, Overrun, ProcsField};

use super::file::{Options, Record};
use super::machines::Machines;
use miserly_machine_file::{MachineSpec, value_of};
use miserly_run::{BatchSettings, RunOptions};

impl Options {
    /// Returns these options where they are given, else those of `below`.
    pub(super) fn over(&self, below: &Options) -> Options {
        // Each of a pair excludes the other.
        let below = Options {
            procs: below.procs.filter(|_| self.machine.is_none()),
            machine: below.machine.clone().filter(|_| self.procs.is_none()),
            warmup: below.warmup.filter(|_| self.batches.is_none()),
            batches: below.batches.filter(|_| self.warmup.is_none()),
            ..below.clone()
        };
        let own = self.clone();
        macro_rules! first_given {
            ($($field:ident)*) => { Options { $($field: own.$field.or(below.$field),)* } };
        }
        first_given! {
            procs machine span sharing overrun event_order procs_field drop lenient from to users queues
            scale_load offline feedback shake warmup batches
        }
    }

    /// Returns the options of a run, except for its machine.
    ///
    /// # Errors
    /// The first option that is not understood.
    pub(super) fn run_options(&self) -> Result<RunOptions, String> {
        let drop = self
            .drop
            .iter()
            .flatten()
            .map(|filter| filter.parse().map_err(text))
            .collect::<Result<_, _>>()?;
        if self.procs.is_some_and(|procs| !(1..=Profile::MOST).contains(&procs)) {
            return Err(format!("procs must be 1 to {}", Profile::MOST));
        }
        if self.procs.is_some() && self.machine.is_some() {
            return Err("give procs or machine, not both".into());
        }
        self.placement()?;
        if self.feedback.is_some() && self.batches.is_some() {
            return Err(
                "give feedback or batches, not both: with feedback the log has no end in the run".into()
            );
        }
        let feedback = self.feedback.as_deref().map(|word| value_of(&Feedback::ALL, "feedback", word));
        let jobs = JobOptions {
            overrun: word(self.overrun.as_deref(), "overrun", &Overrun::ALL)?,
            procs_field: word(self.procs_field.as_deref(), "procs-field", &ProcsField::ALL)?,
            drop,
            lenient: self.lenient.unwrap_or_default(),
            from: self.from,
            to: self.to,
            users: self.users.clone().unwrap_or_default(),
            queues: self.queues.clone().unwrap_or_default(),
            arrivals: self.arrivals()?,
            shake: self.shake()?,
            ..JobOptions::default()
        };
        Ok(RunOptions {
            procs: self.procs.map(u64::from).map(Procs::new),
            jobs,
            feedback: feedback.transpose()?,
            event_order: word(self.event_order.as_deref(), "event-order", &EventOrder::ALL)?,
            warmup: self.warmup,
            batches: self.batches()?,
            ..RunOptions::default()
        })
    }

    /// Returns the machine of a run, if the options name one.
    ///
    /// # Errors
    /// If they have a placement of jobs, and no machine.
    pub(super) fn machine(&self, machines: &Machines) -> Result<Option<MachineSpec>, String> {
        let (spread, sharing) = self.placement()?;
        match self.machine.as_ref().and_then(|word| machines.get(word)) {
            Some(spec) => Ok(Some(spec.clone().with(spread, sharing))),
            None if self.span.is_some() || self.sharing.is_some() => {
                Err("span and sharing need a machine; give machine or machines".into())
            }
            None => Ok(None),
        }
    }

    /// Returns the processors of the machine, if the options name one.
    pub(crate) fn processors(&self, machines: &Machines) -> Option<Procs> {
        let named = self.machine.as_ref().and_then(|word| machines.get(word));
        named.map(MachineSpec::procs).or(self.procs.map(u64::from).map(Procs::new))
    }

    /// Returns the placement of jobs on the machine, if the options have one.
    fn placement(&self) -> Result<(Option<Spread>, Option<Sharing>), String> {
        let spread = self.span.as_deref().map(|word| value_of(&Spread::ALL, "span", word));
        let sharing = self.sharing.as_deref().map(|word| value_of(&Sharing::ALL, "sharing", word));
        Ok((spread.transpose()?, sharing.transpose()?))
    }
}

impl Record {
    /// Returns the groupings of the jobs.
    ///
    /// # Errors
    /// The first word that is not understood.
    pub(super) fn groupings(&self) -> Result<Vec<Grouping>, GroupingError> {
        self.by.iter().map(|word| word.parse()).collect()
    }
}

impl Options {
    fn batches(&self) -> Result<Option<BatchRule>, String> {
        let Some(BatchSettings { jobs, count, discard }) = self.batches else { return Ok(None) };
        if self.warmup.is_some() {
            return Err("give warmup or batches, not both; discarded batches are the warm-up".into());
        }
        if ![jobs, count].iter().all(|number| (1..=MOST_IN_BATCHES).contains(number))
            || discard > MOST_IN_BATCHES
        {
            return Err(format!(
                "batches: jobs and count must be 1 to {MOST_IN_BATCHES}, discard 0 to {MOST_IN_BATCHES}"
            ));
        }
        Ok(Some(BatchRule { jobs, count, discard }))
    }

    fn shake(&self) -> Result<u32, String> {
        let secs = self.shake.unwrap_or_default();
        if secs > 0 && self.offline.unwrap_or_default() {
            return Err("give offline or shake, not both".into());
        }
        let given = u32::try_from(secs).ok().filter(|secs| *secs <= MOST_SHAKE);
        given.ok_or_else(|| "shake must be 0 to 1 d".into())
    }

    fn arrivals(&self) -> Result<ArrivalScaling, String> {
        match (self.offline.unwrap_or_default(), self.scale_load) {
            (true, None) => Ok(ArrivalScaling::Offline),
            (true, Some(_)) => Err("give offline or scale-load, not both".into()),
            (false, None) => Ok(ArrivalScaling::Logged),
            (false, Some(factor)) => factor.to_string().parse().map(ArrivalScaling::Scaled).map_err(text),
        }
    }
}

/// More batches, and more jobs in one, than any log has.
const MOST_IN_BATCHES: u64 = 1_000_000_000;

/// Returns the value of that name; the default without one.
fn word<T: Copy + Default + Display>(written: Option<&str>, name: &str, all: &[T]) -> Result<T, String> {
    written.map_or(Ok(T::default()), |written| value_of(all, name, written))
}

// By value, as `map_err` gives it.
#[allow(clippy::needless_pass_by_value)]
fn text(error: impl ToString) -> String {
    error.to_string()
}
