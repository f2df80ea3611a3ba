//! What an option's value means.

use jiff::Zoned;
use miserly_units::UnitError;

use super::instant::instant;
use super::options::Subject;
use super::quantity::{Dialect, amount, array, job_numbers, time};
use super::wishes::{Export, Memory, Wishes};

/// Wishes as they are gathered from directives of one kind.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    wishes: Wishes,
    tasks: Option<u64>,
    cpus_per_task: Option<u64>,
}

impl Gathered {
    /// Takes up an option. What it had to leave out, if anything.
    ///
    /// # Errors
    /// What the value should be.
    pub(super) fn set(
        &mut self,
        subject: Subject,
        value: &str,
        dialect: Dialect,
        now: &Zoned,
    ) -> Result<Option<String>, String> {
        let wishes = &mut self.wishes;
        match subject {
            Subject::Name => wishes.name = Some(value.to_owned()),
            Subject::Cpus => wishes.cpus = Some(count(value)?),
            Subject::CpusPerTask => self.cpus_per_task = Some(count(value)?),
            Subject::Tasks => self.tasks = Some(count(value)?),
            Subject::Nodes => return nodes(value),
            Subject::Memory => wishes.memory = Some(Memory::Job(amount(value, dialect).map_err(text)?)),
            Subject::MemoryPerCpu => {
                wishes.memory = Some(Memory::PerCpu(amount(value, dialect).map_err(text)?))
            }
            Subject::Time => wishes.time = Some(time(value, dialect).map_err(text)?),
            Subject::Queue => wishes.queue = Some(value.to_owned()),
            Subject::Begin => wishes.begin = Some(instant(value, now)?),
            Subject::Deadline => wishes.deadline = Some(instant(value, now)?),
            Subject::After => wishes.after = Some(job_numbers(value)?),
            Subject::Dependency => return self.depend(value),
            Subject::Array => return self.repeat(value, dialect),
            Subject::Restartable => wishes.restartable = Some(true),
            Subject::NotRestartable => wishes.restartable = Some(false),
            Subject::NoOpportunistic => wishes.no_opportunistic = Some(true),
            Subject::Hold => wishes.hold = Some(true),
            Subject::Output => wishes.output = Some(value.into()),
            Subject::Error => wishes.error = Some(value.into()),
            Subject::Directory => wishes.directory = Some(value.into()),
            Subject::Export => wishes.export = Some(Export::parse(value)?),
        }
        Ok(None)
    }

    /// `afterany:12:13`: those who only would run after a failure, or not after one, cannot be had.
    fn depend(&mut self, value: &str) -> Result<Option<String>, String> {
        let mut jobs = Vec::new();
        for part in value.split(',') {
            let (kind, numbers) = part.split_once(':').unwrap_or((part, ""));
            if kind != "afterany" {
                return Err(format!(
                    "{kind} is not among what a job can wait for here; write afterany:JOB, the end of a job, however it ends"
                ));
            }
            jobs.extend(job_numbers(&numbers.replace(':', ","))?);
        }
        self.wishes.after = Some(jobs);
        Ok(None)
    }

    /// An array; of Slurm's limit of how many run at once nothing can be made.
    fn repeat(&mut self, value: &str, dialect: Dialect) -> Result<Option<String>, String> {
        let (range, limit) = match value.split_once('%') {
            Some((range, limit)) if dialect == Dialect::Slurm => (range, Some(limit)),
            _ => (value, None),
        };
        self.wishes.array = Some(array(range)?);
        Ok(limit.map(|limit| format!("%{limit} is not heeded: all jobs of an array may run at once")))
    }

    /// The wishes, with the processors that tasks come to.
    ///
    /// # Errors
    /// More processors than can be counted.
    pub(super) fn wishes(self) -> Result<Wishes, String> {
        let of_tasks = match (self.tasks, self.cpus_per_task) {
            (None, None) => None,
            (tasks, cpus) => Some(
                tasks.unwrap_or(1).checked_mul(cpus.unwrap_or(1)).ok_or("more tasks than can be counted")?,
            ),
        };
        Ok(Wishes { cpus: self.wishes.cpus.or(of_tasks), ..self.wishes })
    }
}

// By value, as `map_err` gives it.
#[allow(clippy::needless_pass_by_value)]
fn text(error: UnitError) -> String {
    error.to_string()
}

fn count(value: &str) -> Result<u64, String> {
    let count = value.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| format!("{value:?} is no number above 0"))
}

/// A job lies on one machine.
fn nodes(value: &str) -> Result<Option<String>, String> {
    match value {
        "1" | "1-1" => Ok(None),
        _ => Err("a job runs on one machine; write 1, or nothing".to_owned()),
    }
}
