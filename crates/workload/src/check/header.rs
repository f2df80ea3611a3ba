//! Checks of the header comments.

use std::collections::BTreeMap;

use miserly_core::Procs;

use super::{Anomaly, Findings};
use crate::local_time::{named_zone, offset_at};
use crate::swf::Header;

/// Line numbers of the header's values, by name in lower case.
pub(super) type HeaderLines = BTreeMap<String, u64>;

/// Checked names.
const NAMES: [&str; 6] = ["maxprocs", "maxnodes", "maxjobs", "maxrecords", "timezone", "timezonestring"];

/// A quarter of a year in seconds. A zone with summer time shows both offsets among four such
/// instants.
const QUARTER: i64 = 91 * 86_400;

/// Records the first line of a value.
pub(super) fn note(comment: &str, line: u64, lines: &mut HeaderLines) {
    let Some((name, _)) = comment.trim_start_matches(';').split_once(':') else { return };
    let name = name.trim().to_ascii_lowercase();
    if NAMES.contains(&name.as_str()) {
        lines.entry(name).or_insert(line);
    }
}

/// Checks the consistency of the header and the number of job lines.
pub(super) fn check(header: &Header, read: u64, lines: &HeaderLines, findings: &mut Findings) {
    check_size(header, lines, findings);
    check_counts(header, read, lines, findings);
    check_zone(header, lines, findings);
}

fn check_size(header: &Header, lines: &HeaderLines, findings: &mut Findings) {
    let Some(procs) = header.procs() else {
        return findings.add(Anomaly::NoMachineSize, None);
    };
    let stands_for = |name: &str| header.value(name).filter(|value| leads_with(value, procs));
    let Some((name, value)) = stands_for("MaxProcs")
        .map(|value| ("MaxProcs", value))
        .or_else(|| stands_for("MaxNodes").map(|value| ("MaxNodes", value)))
    else {
        return;
    };
    let line = lines.get(&name.to_ascii_lowercase()).copied();
    if name == "MaxNodes" {
        findings.add(Anomaly::SizeFromMaxNodes, line);
    }
    if value.parse() != Ok(procs.get()) {
        findings.add(Anomaly::SizeNotPlain, line);
        findings.add_detail(Anomaly::SizeNotPlain, || format!("{name} is {value:?}; used as {procs}"));
    }
}

/// Returns whether a text such as `338 (batch partition; 512 total)` begins with this number.
fn leads_with(value: &str, number: Procs) -> bool {
    let digits = value.split(|c: char| !c.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok()) == Some(number.get())
}

fn check_counts(header: &Header, read: u64, lines: &HeaderLines, findings: &mut Findings) {
    for name in ["MaxJobs", "MaxRecords"] {
        let Some(claimed) = header.value(name).and_then(|value| value.parse::<u64>().ok()) else { continue };
        if claimed != read {
            findings.add(Anomaly::CountDiffers, lines.get(&name.to_ascii_lowercase()).copied());
            findings.add_detail(Anomaly::CountDiffers, || {
                format!("{name} is {claimed}; there are {read} job lines")
            });
        }
    }
}

fn check_zone(header: &Header, lines: &HeaderLines, findings: &mut Findings) {
    let Some(name) = header.value("TimeZoneString") else { return };
    let Some((_, zone)) = named_zone(header) else {
        findings.add(Anomaly::UnknownZone, lines.get("timezonestring").copied());
        return findings.add_detail(Anomaly::UnknownZone, || format!("TimeZoneString is {name:?}"));
    };
    let Some((offset, start)) = header.time_zone().zip(header.unix_start()) else { return };
    let offsets = [0, 1, 2, 3].map(|quarters| offset_at(&zone, start.saturating_add(quarters * QUARTER)));
    if !offsets.contains(&offset) {
        findings.add(Anomaly::ZonesDiffer, lines.get("timezone").copied());
        findings.add_detail(Anomaly::ZonesDiffer, || {
            format!("TimeZone is {offset}; {name} is {} at first", offsets[0])
        });
    }
}
