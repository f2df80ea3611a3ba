//! Descriptions and checks as JSON. Times are in seconds, shares between 0 and 1; unknown values
//! are null.

use miserly_core::Procs;
use miserly_workload::check::{Anomaly, Finding};
use miserly_workload::describe::{
    Active, ArrivalTimes, Common, EstimateQuality, ExtraStats, LogClock, Proportion, ValueSpread,
};
use miserly_workload::{CheckReport, Description};
use serde_json::{Map, Value, json};

use super::month::month_json;
use super::sizes::{buckets_json, histogram_json, interesting_json, run_lengths_json, runtimes_json};

/// Returns a description of a log as JSON.
///
/// `studied` are the estimates in seconds whose jobs are studied separately; by default the three
/// commonest.
pub fn describe_json(log: &Description, studied: &[u64]) -> Value {
    let missing = log.missing.iter().map(|(field, count)| (field.name().to_owned(), json!(count)));
    let statuses = log.statuses.iter().map(|(status, count)| (status.to_string(), json!(count)));
    json!({
        "name": log.name,
        "computer": log.computer,
        "installation": log.installation,
        "jobs": log.jobs,
        "malformed": log.malformed,
        "procs": log.procs.map(Procs::get),
        "first_submit": log.span.map(|span| span.first_submit),
        "last_submit": log.span.map(|span| span.last_submit),
        "last_end": log.span.map(|span| span.last_end),
        "work": work(log.work),
        "load": log.load(),
        "sizes": {
            "spread": spread(log.sizes.spread),
            "serial": share(log.sizes.serial),
            "powers_of_two": share(log.sizes.powers_of_two),
            "distinct": log.sizes.distinct,
            "common": commons(&log.sizes.common),
            "histogram": histogram_json(&log.sizes.by_size),
            "interesting": interesting_json(&log.sizes.interesting),
        },
        "runtimes": {
            "spread": spread(log.runtimes.spread),
            "under_a_minute": share(log.runtimes.under_a_minute),
            "by_size": runtimes_json(&log.sizes.by_size),
            "buckets": buckets_json(&log.runtimes.buckets),
        },
        "run_lengths": run_lengths_json(&log.run_lengths),
        "estimates": estimates(&log.estimates),
        "study": study(log, studied),
        "waits": { "spread": spread(log.waits) },
        "users": active(&log.users),
        "groups": active(&log.groups),
        "queues": active(&log.queues),
        "partitions": active(&log.partitions),
        "arrivals": arrivals(&log.arrivals),
        "statuses": statuses.collect::<Map<_, _>>(),
        "memory": { "requested": share(log.requested_memory), "used": share(log.used_memory) },
        "extras": log.extras.iter().map(extra).collect::<Vec<_>>(),
        "month": log.month.as_ref().map(month_json),
        "missing": missing.collect::<Map<_, _>>(),
    })
}

/// Returns the findings of a log check as JSON, with all lines. Kinds without findings are omitted.
pub fn check_json(report: &CheckReport) -> Value {
    let findings: Vec<_> = report.findings.iter().map(|(&kind, finding)| one(kind, finding)).collect();
    json!({
        "name": report.name,
        "procs": report.procs.map(Procs::get),
        "lines": report.lines,
        "read": report.read,
        "left_out": report.left_out,
        "findings": findings,
    })
}

/// Returns a whole number, or a float beyond the range of JSON readers.
fn work(work: u128) -> Value {
    u64::try_from(work).map_or_else(|_| json!(work as f64), |work| json!(work))
}

fn one(kind: Anomaly, finding: &Finding) -> Value {
    json!({
        "kind": kind.name(),
        "severity": kind.severity().name(),
        "about": kind.about(),
        "count": finding.count,
        "lines": finding.lines,
        "details": finding.details,
    })
}

fn estimates(estimates: &EstimateQuality) -> Value {
    json!({
        "known": share(estimates.known),
        "spread": spread(estimates.spread),
        "ran_past": share(estimates.ran_past),
        "exact": share(estimates.exact),
        "median_factor": estimates.median_factor,
        "p80_factor": estimates.p80_factor,
        "round": share(estimates.round),
        "distinct": estimates.distinct,
        "common": commons(&estimates.common),
    })
}

fn study(log: &Description, studied: &[u64]) -> Value {
    let study = &log.study;
    let estimates =
        study.estimates.iter().map(|common| (common.value, common.share.count)).collect::<Vec<_>>();
    let histogram =
        study.runtime_histogram.iter().map(|bin| json!({ "from": bin.from, "to": bin.to, "jobs": bin.jobs }));
    json!({
        "round_share": study.round.fraction(),
        "jobs_with_estimate": study.round.of,
        "estimates": estimates,
        "runtime_histogram": histogram.collect::<Vec<_>>(),
        "runtime_cdf": study.runtimes,
        "estimate_cdf": study.estimated,
        "by_estimate": studied_or_common(log, studied).into_iter().map(|estimate| of_estimate(log, estimate)).collect::<Vec<_>>(),
    })
}

/// Returns the estimates to study: the given ones, else the three commonest.
pub(super) fn studied_or_common(log: &Description, studied: &[u64]) -> Vec<u64> {
    if studied.is_empty() {
        return log.study.estimates.iter().take(3).map(|common| common.value).collect();
    }
    studied.to_vec()
}

fn of_estimate(log: &Description, estimate: u64) -> Value {
    let study = log.study.of_estimate(estimate);
    json!({
        "estimate": study.estimate,
        "jobs": study.jobs,
        "overestimation": { "median": study.median, "p80": study.p80, "max": study.max },
        "runtime_cdf": study.runtimes,
    })
}

fn arrivals(arrivals: &ArrivalTimes) -> Value {
    let (clock, zone, offset) = match &arrivals.clock {
        LogClock::Zone(name) => ("zone", Some(name), None),
        LogClock::Offset(seconds) => ("offset", None, Some(seconds)),
        LogClock::SinceStart => ("since_start", None, None),
    };
    json!({
        "clock": clock,
        "zone": zone,
        "offset": offset,
        "by_hour": arrivals.by_hour,
        "by_weekday": arrivals.by_weekday,
    })
}

fn spread(spread: Option<ValueSpread>) -> Value {
    spread.map_or(Value::Null, |spread| {
        let ValueSpread { count, min, median, mean, p95, p99, max } = spread;
        json!({
            "count": count, "min": min, "median": median, "mean": mean, "p95": p95, "p99": p99, "max": max,
        })
    })
}

fn extra(stats: &ExtraStats) -> Value {
    let one = |(value, share): &(String, Proportion)| json!({ "value": value, "count": share.count, "share": share.fraction() });
    json!({
        "field": stats.extra.name(),
        "about": stats.extra.about(),
        "known": share(stats.known),
        "distinct": stats.distinct,
        "common": stats.common.iter().map(one).collect::<Vec<_>>(),
        "total": stats.total,
        "hours": stats.hours,
    })
}

pub(super) fn share(share: Proportion) -> Value {
    json!({ "count": share.count, "of": share.of, "share": share.fraction() })
}

fn commons(common: &[Common]) -> Vec<Value> {
    let one = |common: &Common| json!({ "value": common.value, "count": common.share.count, "share": common.share.fraction() });
    common.iter().map(one).collect()
}

fn active(active: &Active) -> Value {
    let one = |common: &Common| {
        let name = u32::try_from(common.value).ok().and_then(|number| active.names.get(number));
        json!({
            "value": common.value, "name": name, "count": common.share.count, "share": common.share.fraction(),
        })
    };
    json!({ "distinct": active.distinct, "top": active.top.iter().map(one).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use miserly_workload::{ProcsField, Trace, check, describe};

    use super::*;

    const LOG: &str = "; MaxProcs: 4\n; User: 7 ann\n1 0 5 60 8 1 9 8 90 9 1 7 1 1 1 1 -1 -1\n";

    fn trace() -> Trace {
        Trace::memory("toy", LOG.into())
    }

    #[test]
    fn a_description() {
        let json = describe_json(&describe(&trace(), None, ProcsField::Allocated).unwrap(), &[]);
        assert_eq!(json["study"]["by_estimate"][0]["estimate"], 90);
        assert_eq!(json["jobs"], 1);
        assert_eq!(json["load"], Value::Null);
        assert_eq!(json["sizes"]["spread"]["median"], 8);
        assert_eq!(json["estimates"]["ran_past"], json!({ "count": 0, "of": 1, "share": 0.0 }));
        assert_eq!(json["arrivals"]["clock"], "since_start");
        assert_eq!(json["missing"]["think_time"], 1);
        assert_eq!(json["statuses"], json!({ "1": 1 }));
        assert_eq!(json["users"]["top"][0], json!({ "value": 7, "name": "ann", "count": 1, "share": 1.0 }));
        assert_eq!(json["groups"]["top"][0]["name"], Value::Null);
    }

    #[test]
    fn a_check() {
        let json = check_json(&check(&trace(), None, ProcsField::Allocated).unwrap());
        assert_eq!(json["left_out"], 1);
        assert_eq!(json["findings"][0]["kind"], "too_wide");
        assert_eq!(json["findings"][0]["severity"], "skipped");
        assert_eq!(json["findings"][0]["lines"], json!([3]));
    }
}
