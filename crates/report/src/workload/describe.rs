//! The description of a log as text.

use miserly_workload::Description;
use miserly_workload::describe::{Active, ExtraStats, LogClock, OfEstimate, Proportion, ValueSpread};
use miserly_workload::swf::{Extra, Field};

use super::json::studied_or_common;
use super::month::month_text;
use super::sizes::sizes_text;
use super::text::{LABEL, bar, commons, duration, labelled, percent, share, short};
use crate::numbers::{count, decimals};

const BAR: u64 = 24;

const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Formats a description of a log as plain text of up to 96 columns.
///
/// `studied` are the estimates in seconds whose jobs are studied separately; by default the three
/// commonest.
///
/// ```
/// use miserly_workload::{ProcsField, Trace, describe};
///
/// let log = "; MaxProcs: 10\n1 100 -1 60 6 -1 -1 6 90 -1 1 1 -1 -1 -1 -1 -1 -1\n";
/// let log = describe(&Trace::memory("example", log.into()), None, ProcsField::Allocated)?;
/// let text = miserly_report::describe_text(&log, &[]);
/// assert!(text.contains("Machine       10 processors\n"));
/// # Ok::<(), miserly_workload::TraceError>(())
/// ```
pub fn describe_text(log: &Description, studied: &[u64]) -> String {
    let mut parts = vec![
        head(log),
        spreads(log),
        sizes(log),
        sizes_text(log),
        estimates(log, studied),
        people(log),
        hours(log),
        weekdays(log),
    ];
    if !log.extras.is_empty() {
        parts.insert(6, extras(log));
    }
    parts.extend(log.month.as_ref().map(month_text));
    parts.push(missing(log));
    parts.join("\n")
}

fn head(log: &Description) -> String {
    let mut text = format!("{}\n", log.name);
    let known: Vec<_> = [&log.computer, &log.installation].into_iter().flatten().cloned().collect();
    if !known.is_empty() {
        text += &labelled("Computer", &known);
    }
    text += &labelled("Jobs", &[log.jobs.to_string()]);
    if log.malformed > 0 {
        let lines = format!("{} malformed lines, not counted below", log.malformed);
        text += &labelled("Malformed", &[lines]);
    }
    if let Some(span) = log.span {
        let [submissions, whole] = [span.submissions(), span.whole()].map(|seconds| duration(seconds as f64));
        let span = format!("{submissions} from the first submission to the last; {whole} to the last end");
        text += &labelled("Span", &[span]);
    }
    let procs = log.procs.map_or_else(|| "unknown size".to_owned(), |procs| format!("{procs} processors"));
    text += &labelled("Machine", &[procs]);
    let load = log.load().map_or_else(|| "unknown".to_owned(), |load| format!("{load:.3}"));
    text += &labelled("Offered load", &[format!("{load} ({} processor-seconds)", log.work)]);
    text
}

fn spreads(log: &Description) -> String {
    let row = |label: &str, cells: [String; 6]| {
        let line = format!("{label:LABEL$}");
        cells.iter().fold(line, |line, cell| line + &format!(" {cell:>10}")) + "\n"
    };
    let unknown = || std::array::from_fn(|_| "-".to_owned());
    let spread = |label: &str, spread: Option<ValueSpread>, show: fn(f64) -> String| {
        let cells = spread.map_or_else(unknown, |spread| {
            let exact = |value: u64| show(value as f64);
            let ValueSpread { min, median, mean, p95, p99, max, .. } = spread;
            [exact(min), exact(median), show(mean), exact(p95), exact(p99), exact(max)]
        });
        row(label, cells)
    };
    let names = ["min", "median", "mean", "p95", "p99", "max"].map(str::to_owned);
    [
        row("", names),
        spread("Processors", log.sizes.spread, short),
        spread("Runtime", log.runtimes.spread, duration),
        spread("Estimate", log.estimates.spread, duration),
        spread("Recorded wait", log.waits, duration),
    ]
    .concat()
}

fn sizes(log: &Description) -> String {
    let sizes = &log.sizes;
    let kinds = [
        format!("{} different", sizes.distinct),
        format!("serial {}", percent(sizes.serial)),
        format!("powers of two {}", percent(sizes.powers_of_two)),
    ];
    let under_a_minute = format!("under a minute {}", percent(log.runtimes.under_a_minute));
    let commonest = commons(&sizes.common, |size| size.to_string());
    [labelled("Sizes", &kinds), labelled("  commonest", &commonest), labelled("Runtimes", &[under_a_minute])]
        .concat()
}

fn estimates(log: &Description, studied: &[u64]) -> String {
    let estimates = &log.estimates;
    let known = labelled("Estimates", &[share(estimates.known)]);
    if estimates.known.count == 0 {
        return known;
    }
    let factor = |factor: Option<f64>| factor.map_or_else(|| "-".to_owned(), short);
    let (median, p80) = (factor(estimates.median_factor), factor(estimates.p80_factor));
    let kinds = [
        format!("{} different", estimates.distinct),
        format!("multiples of 5 min {}", percent(estimates.round)),
        format!("of 5 min to an hour, of 1 h above {}", percent(log.study.round)),
    ];
    let lines_by_estimate =
        studied_or_common(log, studied).into_iter().map(|estimate| over_by(&log.study.of_estimate(estimate)));
    [
        known,
        labelled("  ran past", &[share(estimates.ran_past)]),
        labelled("  ran exactly", &[share(estimates.exact)]),
        labelled("  over by", &[format!("a factor of {median} (median), {p80} (80th percentile)")]),
        labelled("  values", &kinds),
        labelled("  commonest", &commons(&estimates.common, |value| duration(value as f64))),
        lines_by_estimate.map(|line| labelled("  over by", &[line])).collect(),
    ]
    .concat()
}

/// Returns the factors by which an estimate exceeds the runtimes.
fn over_by(study: &OfEstimate) -> String {
    let factor = |factor: Option<f64>| factor.map_or_else(|| "-".to_owned(), short);
    let (estimate, jobs) = (duration(study.estimate as f64), study.jobs);
    format!(
        "at {estimate} ({jobs} jobs) {} (median), {} (80th percentile)",
        factor(study.median),
        factor(study.p80)
    )
}

fn people(log: &Description) -> String {
    let statuses = log.statuses.iter().map(|(&status, &count)| {
        let share = Proportion { count, of: log.jobs };
        format!("{} {count} ({})", status_name(status), percent(share))
    });
    let statuses: Vec<_> = statuses.collect();
    [
        active("Users", &log.users),
        active("Groups", &log.groups),
        active("Queues", &log.queues),
        active("Partitions", &log.partitions),
        labelled("Statuses", &statuses),
        memory(log),
    ]
    .concat()
}

fn memory(log: &Description) -> String {
    let known = [("requested", log.requested_memory), ("used", log.used_memory)];
    if known.iter().all(|(_, share)| share.count == 0) {
        return labelled("Memory", &["none known".to_owned()]);
    }
    labelled("Memory", &known.map(|(name, known)| format!("{name} {}", share(known))))
}

/// Returns a line for each extra field: the jobs with it, values, total, and hours.
fn extras(log: &Description) -> String {
    let line = |stats: &ExtraStats| {
        let mut items = vec![share(stats.known)];
        if stats.known.count > 0 {
            let common = |(value, share): &(String, Proportion)| {
                format!("{} ({})", value.replace(char::is_control, "\u{fffd}"), percent(*share))
            };
            let mut values: Vec<_> = stats.common.iter().map(common).collect();
            values[0] = format!("{} different; most jobs: {}", count(stats.distinct), values[0]);
            items.append(&mut values);
        }
        let unit = match stats.extra {
            Extra::Gpus => Some("GPU hours"),
            Extra::Nodes => Some("node hours"),
            _ => None,
        };
        items.extend(unit.zip(stats.hours).map(|(unit, hours)| format!("{} {unit}", decimals(hours, 1))));
        labelled(&format!("  {}", stats.extra), &items)
    };
    "Extra fields\n".to_owned() + &log.extras.iter().map(line).collect::<String>()
}

fn active(label: &str, active: &Active) -> String {
    if active.distinct == 0 {
        return labelled(label, &["none known".to_owned()]);
    }
    let mut items = commons(&active.top, |number| active.names.with_name(number));
    items[0] = format!("{}; most jobs: {}", active.distinct, items[0]);
    labelled(label, &items)
}

fn status_name(status: i64) -> String {
    let name = match status {
        -1 => "unknown",
        0 => "failed",
        1 => "completed",
        2 => "partial, to be continued",
        3 => "partial, last, completed",
        4 => "partial, last, failed",
        5 => "cancelled",
        _ => return format!("status {status}"),
    };
    name.to_owned()
}

fn hours(log: &Description) -> String {
    let title = match &log.arrivals.clock {
        LogClock::Zone(name) => format!("Submissions by hour of the day ({name})"),
        LogClock::Offset(seconds) => {
            format!("Submissions by hour of the day (UTC {:+} h, no summer time)", *seconds as f64 / 3600.0)
        }
        LogClock::SinceStart => {
            "Submissions by hour since the log's start, modulo 24 (its time of day is unknown)".to_owned()
        }
    };
    let counts = &log.arrivals.by_hour;
    let cell = |hour: usize| counted(&format!("{hour:>4}"), counts[hour], counts);
    let rows = (0..12).map(|hour| format!("{:46}{}", cell(hour), cell(hour + 12)));
    table(&title, rows)
}

fn weekdays(log: &Description) -> String {
    let counts = &log.arrivals.by_weekday;
    let known = log.arrivals.clock != LogClock::SinceStart;
    let title =
        if known { "Submissions by weekday" } else { "Submissions by day since the log's start, modulo 7" };
    let name = |day: usize| if known { WEEKDAYS[day].to_owned() } else { format!("day {}", day + 1) };
    let rows = (0..7).map(|day| counted(&format!("  {:9}", name(day)), counts[day], counts));
    table(title, rows)
}

fn table(title: &str, rows: impl Iterator<Item = String>) -> String {
    rows.fold(format!("{title}\n"), |text, row| text + row.trim_end() + "\n")
}

/// Returns a label, a share and its bar.
fn counted(label: &str, count: u64, counts: &[u64]) -> String {
    let (of, most) = (counts.iter().sum(), counts.iter().copied().max().unwrap_or(0));
    format!("{label} {:>7} {}", percent(Proportion { count, of }), bar(count, most, BAR))
}

fn missing(log: &Description) -> String {
    let unknown = log.missing.iter().filter(|(_, count)| *count > 0);
    let item = |&(field, count): &(Field, u64)| {
        let some = Proportion { count, of: log.jobs };
        let share = if count == log.jobs { "all".to_owned() } else { format!("{count}, {}", percent(some)) };
        format!("{} ({share})", field.name())
    };
    let items: Vec<_> = unknown.map(item).collect();
    let items = if items.is_empty() { vec!["nothing".to_owned()] } else { items };
    labelled("Unknown (-1)", &items)
}

#[cfg(test)]
mod tests {
    use miserly_workload::{ProcsField, Trace, describe};

    use super::super::text::WIDTH;
    use super::*;

    fn text(log: &str) -> String {
        let trace = Trace::memory("toy", log.into());
        describe_text(&describe(&trace, None, ProcsField::Allocated).unwrap(), &[])
    }

    #[test]
    fn a_log_with_few_fields() {
        let text = text("1 0 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1");
        for part in [
            "Machine       unknown size\n",
            "Offered load  unknown (0 processor-seconds)\n",
            "Runtime                -          -",
            "Estimates     0 of 1 (0.0 %)\n",
            "Users         none known\n",
            "by hour since the log's start",
            "wait (all)",
        ] {
            assert!(text.contains(part), "{part:?} is missing in\n{text}");
        }
    }

    #[test]
    fn many_values_of_an_extra_field() {
        let jobs = (0..1_234).map(|job| format!("{job} 0 5 60 4 1 9 4 90 9 1 7 1 1 1 1 -1 -1 n{job}\n"));
        let text = text(&format!("; Extra: name\n{}", jobs.collect::<String>()));
        assert!(text.contains(" 1 234 different; most jobs: n"), "{text}");
    }

    #[test]
    fn a_log_with_many_fields() {
        let text = text(
            "; MaxProcs: 10\n; Computer: Toy\n; UnixStartTime: 0\n; TimeZone: 3600\n\
             1 0 5 60 4 1 9 4 90 9 1 7 1 1 1 1 -1 -1\n2 50 5 120 8 1 9 8 90 9 0 7 1 1 1 1 -1 -1\n",
        );
        for part in [
            "Processors             4          4          6          8          8          8\n",
            "Offered load  2.400 (1200 processor-seconds)\n",
            "  ran past    1 of 2 (50.0 %)\n",
            "  over by     a factor of 0.75 (median), 1.5 (80th percentile)\n",
            "Users         1; most jobs: 7 (100.0 %)\n",
            "Statuses      failed 1 (50.0 %), completed 1 (50.0 %)\n",
            "(UTC +1 h, no summer time)",
            "   1 100.0 % ########################           13   0.0 %\n",
            "  Thursday  100.0 % ########################\n",
        ] {
            assert!(text.contains(part), "{part:?} is missing in\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH && !line.ends_with(' ')), "{text}");
    }
}
