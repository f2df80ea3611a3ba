//! `miserly slurm twin` and `miserly slurm shadow`: the accounting of a cluster under a policy.

mod shadow;
mod site;
mod twin;

use anyhow::bail;
use jiff::{SignedDuration, Timestamp};
use miserly_core::{Span, Time};
use miserly_import::{ImportOptions, ImportedLog, SubmitAt};
use miserly_slurm::{Slurm, log};
use miserly_workload::swf::{Field, Record};

pub(super) use self::shadow::shadow;
pub(super) use self::twin::twin;
use crate::args::PeriodArgs;
use crate::commands::live::{counted, local};
use crate::commands::slurm::check_period;

/// The accounting before a period that is simulated too.
const WARM_UP: SignedDuration = SignedDuration::from_hours(24);

/// The accounting of a period, and of a day before it.
struct Accounting {
    log: ImportedLog,
    /// The ids of its jobs. Their numbers in the log are their places in it, because the runs of a requeued job have one id.
    ids: Vec<i64>,
    /// The wall time of the instant 0.
    begin: Timestamp,
}

impl Accounting {
    /// Returns the number of its jobs that became eligible in the period.
    fn eligible(&self, period: &PeriodArgs) -> u64 {
        let since = self.instant(period.since);
        let eligible = self.log.records.iter().filter_map(times).map(|(submit, _)| submit);
        eligible.filter(|submit| *submit >= since).count() as u64
    }

    /// Returns the instant of a wall time, to the second.
    fn instant(&self, wall: Timestamp) -> Time {
        Time::from_secs(wall.as_second() - self.begin.as_second()).unwrap_or(Time::MAX)
    }

    /// Checks that there are such jobs.
    fn check(&self, period: &PeriodArgs) -> anyhow::Result<()> {
        if self.eligible(period) > 0 {
            return Ok(());
        }
        let until = period.until.map_or_else(|| "now".to_owned(), local);
        bail!(
            "no ended job of the accounting became eligible to start from {} to {until}: give another period",
            local(period.since)
        )
    }
}

/// Returns the accounting of a period. That of a day before it is there too, so that the cluster is not idle at its begin.
fn accounting(slurm: &Slurm, period: &PeriodArgs) -> anyhow::Result<Accounting> {
    check_period(period)?;
    let options = ImportOptions { submit_at: SubmitAt::Eligible, keep_ids: true, ..ImportOptions::default() };
    let mut log = log(slurm, with_warm_up(period), period.until, &options)?;
    let ids = log.records.iter().map(|record| record.get(Field::Job)).collect();
    for (place, record) in (1..).zip(&mut log.records) {
        record.set(Field::Job, place);
    }
    let begin = Timestamp::from_second(from_the_hour(&mut log)).unwrap_or_default();
    Ok(Accounting { log, ids, begin })
}

/// Moves the instants of a log so that its instant 0 is an hour of the clock: Slurm rounds reservations to the clock. Returns that
/// hour, in seconds since 1970.
fn from_the_hour(log: &mut ImportedLog) -> i64 {
    const START: &str = "; UnixStartTime: ";
    let (mut hour, mut late) = (0, 0);
    for comment in &mut log.comments {
        if let Some(start) = comment.strip_prefix(START).and_then(|start| start.parse::<i64>().ok()) {
            late = start.rem_euclid(3_600);
            hour = start - late;
            *comment = format!("{START}{hour}");
        }
    }
    for record in &mut log.records {
        let submit = record.get(Field::Submit);
        if submit >= 0 {
            record.set(Field::Submit, submit + late);
        }
    }
    hour
}

fn with_warm_up(period: &PeriodArgs) -> Timestamp {
    period.since.saturating_sub(WARM_UP).unwrap_or(period.since)
}

/// Returns the submission of a record and its start, if they are known.
fn times(record: &Record) -> Option<(Time, Time)> {
    let known = |field| Some(record.get(field)).filter(|value| *value >= 0);
    let submit = Time::from_secs(known(Field::Submit)?)?;
    Some((submit, submit + Span::from_secs(known(Field::Wait)?)?))
}

/// Returns a part of a number as a percentage.
fn share(part: u64, of: u64) -> String {
    if of == 0 { "-".to_owned() } else { format!("{:.1} %", 100.0 * part as f64 / of as f64) }
}

/// Returns a line on the jobs that were not simulated, if there are any.
fn left_out_text(not_simulated: u64) -> String {
    if not_simulated == 0 {
        return String::new();
    }
    format!(
        "not simulated: {} without processors, wider than the cluster is now, or refused by the policy\n",
        counted(not_simulated, "job")
    )
}
