//! `miserly limits`: the limits of the user, and their use.

use std::process::ExitCode;

use miserly_api::model::{LimitUnit, LimitUse, LimitsReport};
use miserly_report::decimals;
use miserly_units::memory;

use super::text::{local, plain, table};
use super::{client, print_answer};
use crate::args::AskArgs;

pub(crate) fn run(args: &AskArgs) -> anyhow::Result<ExitCode> {
    let report = client(&args.daemon)?.limits()?;
    print_answer(args.json, &report, || text(&report))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns a table of the limits.
fn text(report: &LimitsReport) -> String {
    if report.limits.is_empty() {
        return format!("no limits apply to the jobs of {}\n", plain(&report.user));
    }
    let header = ["LIMIT", "FOR", "MOST", "COUNTS", "NOTE"];
    let numbers = ["MOST", "COUNTS"];
    table(&header, &numbers, report.limits.iter().map(|limit| row(&report.user, limit)))
}

fn row(user: &str, limit: &LimitUse) -> Vec<String> {
    let users = if limit.together { "all its users together" } else { user };
    let counts = limit.used + limit.unfinished.unwrap_or(0.0);
    vec![
        plain(&limit.limit),
        plain(users),
        amount(limit.unit, limit.most),
        amount(limit.unit, counts),
        note(limit),
    ]
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
fn amount(unit: LimitUnit, of: f64) -> String {
    match unit {
        LimitUnit::Jobs | LimitUnit::Cpus | LimitUnit::Gpus => decimals(of, 0),
        LimitUnit::Bytes => memory(of as u64),
        LimitUnit::CpuHours | LimitUnit::GpuHours => format!("{} h", decimals(of, 2)),
    }
}

/// Returns the parts of processor time within a period.
fn note(limit: &LimitUse) -> String {
    let (Some(unfinished), Some(days)) = (limit.unfinished, limit.days) else { return String::new() };
    let hours = |hours: f64| amount(LimitUnit::CpuHours, hours);
    let less = limit.less_at.map_or_else(String::new, |at| format!("; less from {}", local(at)));
    format!("{} in {days} days, {} of unfinished jobs{less}", hours(limit.used), hours(unfinished))
}
