//! The limits of users.

use std::collections::BTreeSet;
use std::ops::Range;

use miserly_api::model::is_plain_name;
use miserly_core::Span;
use miserly_engine::{CpuHours, LimitTable, Limits, UserLimits};
use miserly_machine_file::file::Account;
use miserly_machine_file::kilobytes;
use serde::Deserialize;
use toml::{Spanned, Value};

use super::accounts;
use super::error::{Problem, of_field};
use super::file::{File, Written};
use super::values::time;

/// The period of `cpu-hours` and `gpu-hours` without `period`, in days.
const DEFAULT_DAYS: u32 = 30;

/// The ticks of a day.
const DAY: i64 = 86_400_000_000;

/// Declares a table with limits and with further fields. The error about an unknown field lists all of them, so no part of
/// the table is a struct of its own.
macro_rules! table_of_limits {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
        pub(super) struct $name {
            $(pub(super) $field: $type,)*
            jobs: Option<u64>,
            queued: Option<u64>,
            running: Option<u64>,
            cpus: Option<u64>,
            bytes: Option<Spanned<Value>>,
            cpu_time: Option<Spanned<Value>>,
            cpu_hours: Option<Spanned<f64>>,
            gpus: Option<u64>,
            gpu_hours: Option<Spanned<f64>>,
            period: Option<Spanned<Value>>,
        }

        impl $name {
            /// Returns the limits for jobs.
            fn limits(&self) -> Result<Limits, Problem> {
                let period = self.period.as_ref();
                if let Some(written) = period.filter(|_| self.cpu_hours.is_none() && self.gpu_hours.is_none()) {
                    let problem = "it has a meaning only with cpu-hours or gpu-hours";
                    return Err(of_field(written, "period", &problem));
                }
                Ok(Limits {
                    jobs: self.jobs,
                    bytes: self.bytes.as_ref().map(bytes).transpose()?,
                    cpu_time: time(self.cpu_time.as_ref(), "cpu-time")?.map(Span::ticks),
                    queued: self.queued,
                    running: self.running,
                    cpus: self.cpus,
                    cpu_hours: hours(self.cpu_hours.as_ref(), "cpu-hours", period)?,
                    gpus: self.gpus,
                    gpu_hours: hours(self.gpu_hours.as_ref(), "gpu-hours", period)?,
                })
            }
        }
    };
}

table_of_limits! {
    /// The table `[user-limits]`, as it is written.
    UserLimitsFile { requests_per_minute: Option<u32> }
}

table_of_limits! {
    /// A table `[[limit]]`, as it is written.
    LimitFile {
        name: Written<String>,
        users: Vec<Spanned<Account>>,
        groups: Vec<Spanned<Account>>,
        together: bool,
    }
}

/// Returns the limits of all users.
pub(super) fn user_limits(file: &File) -> Result<UserLimits, Problem> {
    let mut names = BTreeSet::new();
    let mut tables = vec![];
    for written in &file.limits {
        let table = limit_table(written.get_ref(), written.span())?;
        if !names.insert(table.name.to_string()) {
            return Err(Problem::new(written.span(), format!("name: a second limit {:?}", &*table.name)));
        }
        tables.push(table);
    }
    Ok(UserLimits { each: file.user_limits.limits()?, tables })
}

fn limit_table(written: &LimitFile, span: Range<usize>) -> Result<LimitTable, Problem> {
    let Some(name) = &written.name else {
        return Err(Problem::new(span, "name: a limit needs one".to_owned()));
    };
    let text = name.get_ref();
    if !is_plain_name(text) || text == UserLimits::DEFAULT {
        let problem =
            format!("{text:?} is no name of a limit: letters, digits, - and _, but not user-limits");
        return Err(of_field(name, "name", &problem));
    }
    if written.users.is_empty() && written.groups.is_empty() {
        let problem = format!("limit {text} names no users and no groups; [user-limits] is for all");
        return Err(Problem::new(span, problem));
    }
    let limits = written.limits()?;
    if limits == Limits::default() {
        return Err(Problem::new(
            span,
            format!("limit {text} limits nothing; set jobs, running, cpus or another"),
        ));
    }
    let users = accounts::list(&written.users, &written.groups);
    Ok(LimitTable { name: text.as_str().into(), users, together: written.together, limits })
}

fn bytes(written: &Spanned<Value>) -> Result<u64, Problem> {
    let amount = kilobytes(written.get_ref()).map_err(|error| of_field(written, "bytes", &error));
    amount.map(|kilobytes| kilobytes.saturating_mul(1024))
}

/// Returns the limit of the time of processors or GPUs within a period.
#[expect(clippy::cast_possible_truncation, reason = "a cast saturates")]
fn hours(
    hours: Option<&Spanned<f64>>,
    field: &str,
    period: Option<&Spanned<Value>>,
) -> Result<Option<CpuHours>, Problem> {
    let days = match (time(period, "period")?, period) {
        (Some(span), Some(written)) => {
            let days = u32::try_from(span.ticks() / DAY).unwrap_or(u32::MAX);
            if span.ticks() % DAY != 0 || !(1..=CpuHours::MOST_DAYS).contains(&days) {
                let problem = format!("a period is 1 to {} whole days, such as \"30d\"", CpuHours::MOST_DAYS);
                return Err(of_field(written, "period", &problem));
            }
            days
        }
        _ => DEFAULT_DAYS,
    };
    let Some(written) = hours else { return Ok(None) };
    let hours = *written.get_ref();
    if !hours.is_finite() || hours < 0.0 {
        return Err(of_field(written, field, &"it is a number of hours, 0 or more"));
    }
    Ok(Some(CpuHours { most: (hours * 3.6e9) as i64, days }))
}
