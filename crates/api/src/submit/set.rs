//! The values of options.

use jiff::Zoned;
use miserly_units::UnitError;

use super::instant::instant;
use super::options::Subject;
use super::quantity::{Dialect, amount, array, job_numbers, time};
use super::submit_options::{Export, Memory, SubmitOptions};

/// Collects submit options from directives of one kind.
#[derive(Debug, Default)]
pub(super) struct OptionCollector {
    options: SubmitOptions,
    tasks: Option<u64>,
    cpus_per_task: Option<u64>,
}

impl OptionCollector {
    /// Sets an option. Returns a remark if a part of it is ignored.
    ///
    /// # Errors
    /// The expected form of the value.
    pub(super) fn set(
        &mut self,
        subject: Subject,
        value: &str,
        dialect: Dialect,
        now: &Zoned,
    ) -> Result<Option<String>, String> {
        let options = &mut self.options;
        match subject {
            Subject::Name => options.name = Some(value.to_owned()),
            Subject::Cpus => options.cpus = Some(count(value)?),
            Subject::CpusPerTask => self.cpus_per_task = Some(count(value)?),
            Subject::Tasks => self.tasks = Some(count(value)?),
            Subject::Nodes => return nodes(value),
            Subject::Memory => options.memory = Some(Memory::Job(amount(value, dialect).map_err(text)?)),
            Subject::MemoryPerCpu => {
                options.memory = Some(Memory::PerCpu(amount(value, dialect).map_err(text)?));
            }
            Subject::Time => options.time = Some(time(value, dialect).map_err(text)?),
            Subject::Queue => options.queue = Some(value.to_owned()),
            Subject::Begin => options.begin = Some(instant(value, now)?),
            Subject::Deadline => options.deadline = Some(instant(value, now)?),
            Subject::After => options.after = Some(job_numbers(value)?),
            Subject::Dependency => return self.depend(value),
            Subject::Array => return self.repeat(value, dialect),
            Subject::Restartable => options.restartable = Some(true),
            Subject::NotRestartable => options.restartable = Some(false),
            Subject::NoOpportunistic => options.no_opportunistic = Some(true),
            Subject::Hold => options.hold = Some(true),
            Subject::Output => options.output = Some(value.into()),
            Subject::Error => options.error = Some(value.into()),
            Subject::Directory => options.directory = Some(value.into()),
            Subject::Export => options.export = Some(Export::parse(value)?),
        }
        Ok(None)
    }

    /// Sets dependencies such as `afterany:12:13`. Other kinds are not supported.
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
        self.options.after = Some(jobs);
        Ok(None)
    }

    /// Sets the array. Slurm's limit of simultaneous jobs is ignored with a remark.
    fn repeat(&mut self, value: &str, dialect: Dialect) -> Result<Option<String>, String> {
        let (range, limit) = match value.split_once('%') {
            Some((range, limit)) if dialect == Dialect::Slurm => (range, Some(limit)),
            _ => (value, None),
        };
        self.options.array = Some(array(range)?);
        Ok(limit.map(|limit| format!("%{limit} is not heeded: all jobs of an array may run at once")))
    }

    /// Returns the options, with the processors of all tasks.
    ///
    /// # Errors
    /// If the number of processors overflows.
    pub(super) fn options(self) -> Result<SubmitOptions, String> {
        let of_tasks = match (self.tasks, self.cpus_per_task) {
            (None, None) => None,
            (tasks, cpus) => Some(
                tasks.unwrap_or(1).checked_mul(cpus.unwrap_or(1)).ok_or("more tasks than can be counted")?,
            ),
        };
        Ok(SubmitOptions { cpus: self.options.cpus.or(of_tasks), ..self.options })
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

/// Accepts one node only.
fn nodes(value: &str) -> Result<Option<String>, String> {
    match value {
        "1" | "1-1" => Ok(None),
        _ => Err("a job runs on one machine; write 1, or nothing".to_owned()),
    }
}
