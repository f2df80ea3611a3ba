//! The values of options.

use jiff::Zoned;
use miserly_units::UnitError;

use super::after::after;
use super::instant::instant;
use super::mail::{mail_address, mail_events};
use super::options::Subject;
use super::quantity::{Dialect, amount, array, retry, time};
use super::quantity::{gpus, gres};
use super::signal::early_signal;
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
            Subject::Reservation => options.reservation = Some(value.to_owned()),
            Subject::Begin => options.begin = Some(instant(value, now)?),
            Subject::Deadline => options.deadline = Some(instant(value, now)?),
            Subject::After | Subject::Dependency => options.after = Some(after(value)?),
            Subject::Array => options.array = Some(array(value)?),
            Subject::Restartable => options.restartable = Some(true),
            Subject::Gpus => options.gpus = Some(gpus(value)?),
            Subject::Gres => options.gpus = Some(gres(value)?),
            Subject::Retry => options.retry = Some(retry(value)?),
            Subject::Mail => options.mail = Some(mail_events(value)?),
            Subject::MailTo => options.mail_to = Some(mail_address(value)?),
            Subject::Signal => options.signal = Some(early_signal(value)?),
            Subject::NotRestartable => options.restartable = Some(false),
            Subject::NoOpportunistic => options.no_opportunistic = Some(true),
            Subject::Hold => options.hold = Some(true),
            Subject::Input => options.input = Some(value.into()),
            Subject::Output => options.output = Some(value.into()),
            Subject::Error => options.error = Some(value.into()),
            Subject::Directory => options.directory = Some(value.into()),
            Subject::Export => options.export = Some(Export::parse(value)?),
        }
        Ok(None)
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
        let (cpus, tasks) = match self.options.cpus {
            Some(cpus) => (Some(cpus), None),
            None => (of_tasks, self.tasks),
        };
        Ok(SubmitOptions { cpus, tasks, ..self.options })
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
