//! The checks of requests against the limits of their users.

use miserly_api::model::{Problem, ProblemCode};
use miserly_core::{Span, Time};
use miserly_units::{duration, memory};

use super::settings::Bound;
use super::used_time::UsedTime;
use super::{CpuHours, Limits, Scope, UserLimits};
use crate::dependency::conditions::MOST;
use crate::job::table::Usage;
use crate::request::problems::refused_field;
use crate::{Caller, Engine, Journal, Launcher, Record};

/// A change of the sums of unfinished jobs.
#[derive(Clone, Copy, Debug, Default)]
struct Added {
    usage: Usage,
    /// The jobs that begin to wait.
    waiting: u64,
    /// The processor time of windows that end with it, and that of GPUs.
    ended: i128,
    ended_gpus: i128,
}

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Checks that a user with these further jobs is within the limits.
    pub(crate) fn check_user_limits(
        &self,
        at: Time,
        caller: &Caller,
        records: &[Record],
    ) -> Result<(), Problem> {
        self.check_waits(caller, records)?;
        // All jobs of a submission are alike.
        let Some(first) = records.first() else { return Ok(()) };
        self.setup.user_limits.check_one(first)?;
        let mut added = Added { waiting: records.len() as u64, ..Added::default() };
        for record in records {
            added.usage.add(record);
        }
        self.check_added(at, first, added)
    }

    /// Checks that the user of a job is within the limits with another record of it. A job that becomes smaller may exceed them.
    pub(crate) fn check_changed_usage(
        &self,
        at: Time,
        before: &Record,
        after: &Record,
    ) -> Result<(), Problem> {
        if after.submission.cpus > before.submission.cpus || after.gpus() > before.gpus() {
            self.setup.user_limits.check_one(after)?;
            self.check_larger_place(after)?;
        }
        let (old, new) = (Usage::new(before), Usage::new(after));
        let (cpu_time, gpu_time) = (new.cpu_time - old.cpu_time, new.gpu_time - old.gpu_time);
        if cpu_time <= 0 && gpu_time <= 0 {
            return Ok(());
        }
        let usage = Usage { cpu_time, gpu_time, ..Usage::default() };
        self.check_added(at, after, Added { usage, ..Added::default() })
    }

    /// Checks that a running job may run again: it waits then, and its window counts.
    pub(crate) fn check_another_run(&self, at: Time, record: &Record) -> Result<(), Problem> {
        let entry = self.entry(record.number);
        let work = entry.map_or(0, |entry| entry.done(at));
        let gpu_time = entry.map_or(0, |entry| record.gpu_time(entry, at));
        let [ended, ended_gpus] = [work, gpu_time].map(|time| i128::try_from(time).unwrap_or(i128::MAX));
        self.check_added(at, record, Added { waiting: 1, ended, ended_gpus, ..Added::default() })
    }

    /// Checks that a job with a deadline gets its window when it is released.
    pub(crate) fn check_place_of_release(&self, record: &Record) -> Result<(), Problem> {
        if record.deadline.is_none() || self.dependencies.has_place_for(record) {
            return Ok(());
        }
        let message = format!(
            "job {} has no place now ({}), so no end by its deadline can be promised; release it when another job has ended",
            record.number,
            self.setup.user_limits.place_names(record).join(", ")
        );
        Err(refused_field("deadline", message))
    }

    /// Checks that a job that becomes larger has room where it has a place.
    fn check_larger_place(&self, after: &Record) -> Result<(), Problem> {
        if !after.is_in_ledger() || self.dependencies.has_place_for(after) {
            return Ok(());
        }
        let message = format!(
            "job {} has a place under {}, which has no room for {} cpus and {} GPUs now; hold it, change it, and release it",
            after.number,
            self.setup.user_limits.place_names(after).join(" and "),
            after.submission.cpus,
            after.gpus()
        );
        Err(refused_field("cpus", message))
    }

    /// Checks that a change of the sums for jobs like this one exceeds no limit.
    fn check_added(&self, at: Time, record: &Record, added: Added) -> Result<(), Problem> {
        let limits = &self.setup.user_limits;
        let (has, more) = (|scope: &Scope| self.jobs.usage(scope), added.usage);
        let is = |of: &Bound<u64>, field: &str| format!("{}.{field} is {}", of.table, of.most);
        if more.jobs > 0 {
            for of in limits.bounds_of(record, |limits| limits.jobs) {
                let jobs = has(&of.scope).jobs + more.jobs;
                of.check(jobs > of.most, || format!("{jobs} unfinished jobs, and {}", is(&of, "jobs")))?;
            }
            for of in limits.bounds_of(record, |limits| limits.bytes) {
                let bytes = has(&of.scope).bytes.saturating_add(more.bytes);
                let is = || format!("{}.bytes is {}", of.table, memory(of.most));
                of.check(bytes > of.most, || format!("jobs of {}, and {}", memory(bytes), is()))?;
            }
        }
        if added.waiting > 0 {
            for of in limits.bounds_of(record, |limits| limits.queued) {
                let running = self.jobs.running_in(&of.scope);
                let waiting = has(&of.scope).jobs.saturating_sub(running) + added.waiting;
                of.check(waiting > of.most, || format!("{waiting} waiting jobs, and {}", is(&of, "queued")))?;
            }
        }
        if more.cpu_time > 0 {
            for of in limits.bounds_of(record, |limits| limits.cpu_time) {
                let time = has(&of.scope).cpu_time + more.cpu_time;
                let is = || format!("{}.cpu-time is {}", of.table, shown(of.most.into()));
                let would = || format!("unfinished jobs of {} of processor time, and {}", shown(time), is());
                of.check(time > of.most.into(), would)?;
            }
        }
        let Added { ended, ended_gpus, usage, waiting, .. } = added;
        // What does not become more is not refused.
        if waiting > 0 || usage.cpu_time > 0 {
            let sum = |of: &Scope| has(of).cpu_time.saturating_add(usage.cpu_time);
            self.check_hours(at, record, &Hours::cpus(&self.used_time, ended), sum)?;
        }
        if record.gpus() > 0 && (waiting > 0 || usage.gpu_time > 0) {
            let sum = |of: &Scope| has(of).gpu_time.saturating_add(usage.gpu_time);
            self.check_hours(at, record, &Hours::gpus(&self.used_gpu_time, ended_gpus), sum)?;
        }
        Ok(())
    }

    /// Checks the time of one kind within a period: that of the windows that have ended, and of the unfinished jobs.
    fn check_hours(
        &self,
        at: Time,
        record: &Record,
        hours_of: &Hours<'_>,
        unfinished: impl Fn(&Scope) -> i128,
    ) -> Result<(), Problem> {
        let Hours { field, what, .. } = hours_of;
        for of in self.setup.user_limits.bounds_of(record, hours_of.kind) {
            let ended = i128::from(hours_of.times.within(&of.scope, of.most, at)) + hours_of.ended;
            let sum = ended.saturating_add(unfinished(&of.scope));
            let most = hours(of.most.most.into());
            let would = || {
                format!(
                    "{} of {what}, {} of it used in the last {} days (miserly limits), and {}.{field} is {most}",
                    // Rounded up, so that it exceeds the limit in the text, too.
                    hours(sum.saturating_add(HUNDREDTH - 1)),
                    hours(ended),
                    of.most.days,
                    of.table
                )
            };
            of.check(sum > of.most.most.into(), would)?;
        }
        Ok(())
    }

    /// Checks that the jobs of a user, with these further ones, do not wait for too many others. No setting raises this limit.
    fn check_waits(&self, caller: &Caller, records: &[Record]) -> Result<(), Problem> {
        let new: usize = records.iter().map(|record| record.after.len()).sum();
        let all = self.dependencies.waits(caller.uid).saturating_add(new);
        if new == 0 || all <= MOST {
            return Ok(());
        }
        let message = format!(
            "your jobs would wait for {all} jobs in total, and the most is {MOST}; let one job wait for many, and others for that \
             one"
        );
        Err(Problem::new(ProblemCode::Refused, message))
    }
}

/// Time within a period that is limited.
struct Hours<'a> {
    field: &'static str,
    what: &'static str,
    kind: fn(&Limits) -> Option<CpuHours>,
    times: &'a UsedTime,
    /// The time of windows that end with the request.
    ended: i128,
}

impl Hours<'_> {
    fn cpus(times: &UsedTime, ended: i128) -> Hours<'_> {
        Hours { field: "cpu-hours", what: "processor time", kind: |limits| limits.cpu_hours, times, ended }
    }

    fn gpus(times: &UsedTime, ended: i128) -> Hours<'_> {
        Hours { field: "gpu-hours", what: "GPU time", kind: |limits| limits.gpu_hours, times, ended }
    }
}

impl UserLimits {
    /// Checks that a job could have a place if no other job had one.
    fn check_one(&self, record: &Record) -> Result<(), Problem> {
        for of in self.bounds_of(record, |limits| limits.running) {
            if of.most == 0 {
                let message = format!("{}.running is 0, so no such job may run; ask the operators", of.table);
                return Err(Problem::new(ProblemCode::Refused, message));
            }
        }
        let gpus = record.gpus();
        if let Some(of) = self.bounds_of(record, |limits| limits.gpus).into_iter().find(|of| gpus > of.most) {
            let message = format!("{gpus} GPUs, and {}.gpus is {}; request fewer", of.table, of.most);
            return Err(refused_field("gpus", message));
        }
        let cpus = record.submission.cpus;
        match self.bounds_of(record, |limits| limits.cpus).into_iter().find(|of| cpus > of.most) {
            None => Ok(()),
            Some(of) => {
                let message = format!("{cpus} cpus, and {}.cpus is {}; request fewer", of.table, of.most);
                Err(refused_field("cpus", message))
            }
        }
    }

    /// Returns the names of the limits on places that apply to a job.
    pub(crate) fn place_names(&self, record: &Record) -> Vec<String> {
        let running = self.bounds_of(record, |limits| limits.running);
        let cpus = self.bounds_of(record, |limits| limits.cpus);
        let gpus = self.bounds_of(record, |limits| limits.gpus.filter(|_| record.gpus() > 0));
        let running = running.iter().map(|of| format!("{}.running", of.table));
        let cpus = cpus.iter().map(|of| format!("{}.cpus", of.table));
        running.chain(cpus).chain(gpus.iter().map(|of| format!("{}.gpus", of.table))).collect()
    }
}

impl<T> Bound<T> {
    /// Returns a refusal if the limit would be exceeded.
    fn check(&self, exceeded: bool, would: impl FnOnce() -> String) -> Result<(), Problem> {
        if !exceeded {
            return Ok(());
        }
        let (subject, which) = match self.scope {
            Scope::Table(_) => (format!("the users of limit {} together", self.table), "these"),
            Scope::User(_) | Scope::Array(_) => ("you".to_owned(), "your"),
        };
        let message = format!(
            "{subject} would have {}; repeat the request when some of {which} jobs have ended",
            would()
        );
        Err(Problem::new(ProblemCode::Refused, message))
    }
}

fn shown(ticks: i128) -> String {
    duration(Span::from_ticks(i64::try_from(ticks).unwrap_or(i64::MAX)))
}

/// A hundredth of an hour, in ticks.
const HUNDREDTH: i128 = 36_000_000;

/// Returns processor-ticks as hours with two decimals, rounded down.
fn hours(ticks: i128) -> String {
    let hundredths = ticks / HUNDREDTH;
    format!("{}.{:02} hours", hundredths / 100, hundredths % 100)
}
