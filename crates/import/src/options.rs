//! Options of a conversion.

use std::sync::Arc;

use jiff::tz::{Offset, TimeZone};
use miserly_core::{Procs, named_enum};

use crate::table::ColumnMap;

named_enum! {
    /// The time that counts as a job's submission.
    #[derive(Default)]
    pub enum SubmitAt {
        /// Submission by the user.
        #[default]
        Submit "submit",
        /// Eligibility: no dependency, begin time or hold delays the job.
        Eligible "eligible",
    }
}

/// Returns the time zone of that name in the database of time zones, or with that offset, such as `+05:30`.
///
/// # Errors
/// There is none.
pub fn find_time_zone(name: &str) -> Result<TimeZone, &'static str> {
    let zone = offset(name).map(TimeZone::fixed).or_else(|| TimeZone::get(name).ok());
    zone.ok_or("unknown time zone; write it as Europe/Berlin or UTC, or as an offset such as +05:30")
}

/// Parses an offset east of Greenwich: `+05:30`, `+0530` or `+05`.
fn offset(text: &str) -> Option<Offset> {
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let digits = text.strip_prefix(['+', '-'])?;
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) if minutes.len() == 2 => (hours, minutes),
        Some(_) => return None,
        None => (digits.get(..2)?, digits.get(2..).filter(|rest| rest.len() != 1)?),
    };
    let number = |text: &str, most: i32| {
        let is_number = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i32>().ok().filter(|number| is_number && *number < most)
    };
    let minutes = if minutes.is_empty() { 0 } else { number(minutes, 60)? };
    Offset::from_seconds(sign * (number(hours, 24)? * 3600 + minutes * 60)).ok()
}

/// Returns the name of a time zone, as [`find_time_zone`] reads it.
pub(crate) fn zone_name(zone: &TimeZone) -> Option<String> {
    let offset = || {
        let seconds = zone.to_fixed_offset().ok()?.seconds();
        let minutes = seconds.unsigned_abs() / 60;
        let sign = if seconds < 0 { '-' } else { '+' };
        Some(format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60))
    };
    zone.iana_name().map(str::to_owned).or_else(offset)
}

/// Options of a conversion. A format that has no use for an option ignores it.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// Processors of the machine, which accounting does not contain.
    pub procs: Option<Procs>,
    /// Nodes of the machine.
    pub nodes: Option<u32>,
    /// Processors of a node, for jobs whose size is a number of nodes.
    pub cpus_per_node: Option<u32>,
    /// Time zone of the cluster, for the header and for times without an offset.
    pub time_zone: Option<TimeZone>,
    /// Separator of the columns of `sacct`, if it is not that of the header.
    pub delimiter: Option<String>,
    /// Time that counts as a job's submission.
    pub submit_at: SubmitAt,
    /// Whether jobs, users and groups keep their ids instead of numbers in order of appearance.
    pub keep_ids: bool,
    /// Whether invalid lines are skipped and counted.
    pub lenient: bool,
    /// The meaning of the columns, if the log is a table.
    pub columns: Option<Arc<ColumnMap>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_zones_by_name_and_by_offset() {
        let check = |text: &str, expect: Option<&str>| {
            let found = find_time_zone(text).ok().and_then(|zone| zone_name(&zone));
            assert_eq!(found.as_deref(), expect, "{text}");
        };
        check("Europe/Berlin", Some("Europe/Berlin"));
        check("UTC", Some("UTC"));
        check("+05:30", Some("+05:30"));
        check("-0330", Some("-03:30"));
        check("+01", Some("+01:00"));
        check("-00:00", Some("UTC"));
        for wrong in
            ["", "+", "+5", "+5:30", "+05:3", "+053", "+24:00", "+05:60", "05:30", "+0x:00", "Mars", "+é5:00"]
        {
            check(wrong, None);
        }
    }
}
