//! The resources of finished jobs, and their use, summed over parts.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use miserly_api::model::{Failure, JobView, KilledBy, Phase};
use serde::Serialize;

/// The parts into which jobs are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageBy {
    /// By user.
    User,
    /// By queue.
    Queue,
    /// By the name of the job.
    Name,
    /// By the day of the end.
    Day,
    /// By the month of the end.
    Month,
}

/// The sums over the jobs of one part.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UsageSums {
    /// The user, the queue, the name, the day or the month.
    pub part: String,
    /// The jobs that ended.
    pub jobs: u64,
    /// Of these, those that failed by themselves, were lost or were killed; not those of `cancelled`.
    pub failed: u64,
    /// Of these, those that a user cancelled or a stop of the daemon ended, and those that never ran because their latest start passed or a job
    /// before them did not end as required.
    pub cancelled: u64,
    /// The processors of the jobs times the time for which their last attempts had them, in hours.
    pub cpu_hours: f64,
    /// The GPUs of the jobs times this time, in hours.
    pub gpu_hours: f64,
    /// The time on processors, in hours, of jobs with a known use.
    pub used_cpu_hours: f64,
    /// `cpu_hours` of the jobs with a known use. The use of other users' jobs is private.
    pub known_cpu_hours: f64,
    /// The requested memory times the time, in GiB hours, of jobs with a known peak.
    pub known_memory_hours: f64,
    /// The same with the peak of the used memory.
    pub used_memory_hours: f64,
    /// The sum of the waits from the submission to the start, in hours.
    pub wait_hours: f64,
    /// The jobs that started.
    pub started: u64,
    /// The jobs that started, and had a promise.
    pub promised: u64,
    /// Of these, those with a kept promise.
    pub kept: u64,
}

impl UsageSums {
    /// Returns the mean wait in seconds, if a job started.
    pub fn mean_wait(&self) -> Option<f64> {
        (self.started > 0).then(|| 3600.0 * self.wait_hours / self.started as f64)
    }

    /// Returns the share of the processors that the jobs used, where it is known.
    pub fn cpu_share(&self) -> Option<f64> {
        (self.known_cpu_hours > 0.0).then(|| self.used_cpu_hours / self.known_cpu_hours)
    }

    /// Returns the share of the memory that the jobs used at most, where it is known.
    pub fn memory_share(&self) -> Option<f64> {
        (self.known_memory_hours > 0.0).then(|| self.used_memory_hours / self.known_memory_hours)
    }

    fn add(&mut self, job: &JobView) {
        self.jobs += 1;
        match &job.phase {
            phase if phase.succeeded() => {}
            Phase::Killed { by: KilledBy::User | KilledBy::Shutdown, .. }
            | Phase::Failed { why: Failure::Dependency | Failure::NotInTime, .. } => self.cancelled += 1,
            _ => self.failed += 1,
        }
        let Some((start, end)) = ran(&job.phase) else { return };
        if let Some(promise) = &job.promise {
            self.promised += 1;
            self.kept += u64::from(promise.at_risk.is_none() && job.late.is_none());
        }
        let hours = hours_between(start, end);
        self.started += 1;
        self.wait_hours += hours_between(job.submitted, start);
        let cpu_hours = hours * job.cpus as f64;
        self.cpu_hours += cpu_hours;
        self.gpu_hours += hours * job.gpus as f64;
        // Of several runs, the use is that of all, and the time that of the last one.
        let Some(used) = job.usage.as_ref().filter(|_| job.runs == 1).map(|usage| usage.total) else {
            return;
        };
        self.known_cpu_hours += cpu_hours;
        self.used_cpu_hours += (used.user + used.system) / 3600.0;
        if let Some(peak) = used.memory_peak.filter(|_| job.memory > 0) {
            self.known_memory_hours += gib(job.memory) * hours;
            self.used_memory_hours += gib(peak) * hours;
        }
    }
}

/// Returns the sums by part, and those over all jobs. Days and months are in their order, other parts by falling processor hours.
///
/// Jobs that have not ended are left out. `zone` is that of the days and months.
pub fn usage_sums(jobs: &[JobView], by: UsageBy, zone: &TimeZone) -> (Vec<UsageSums>, UsageSums) {
    let mut parts: BTreeMap<String, UsageSums> = BTreeMap::new();
    let mut all = UsageSums { part: "all".to_owned(), ..UsageSums::default() };
    for job in jobs {
        let Some(ended) = job.phase.ended() else { continue };
        let part = part_of(job, ended, by, zone);
        parts.entry(part.clone()).or_insert_with(|| UsageSums { part, ..UsageSums::default() }).add(job);
        all.add(job);
    }
    let mut parts: Vec<UsageSums> = parts.into_values().collect();
    if !matches!(by, UsageBy::Day | UsageBy::Month) {
        parts.sort_by(|one, other| other.cpu_hours.total_cmp(&one.cpu_hours));
    }
    (parts, all)
}

fn part_of(job: &JobView, ended: Timestamp, by: UsageBy, zone: &TimeZone) -> String {
    let on = |format| ended.to_zoned(zone.clone()).strftime(format).to_string();
    match by {
        UsageBy::User => job.user.clone(),
        UsageBy::Queue => job.queue.clone(),
        UsageBy::Name => job.name.clone(),
        UsageBy::Day => on("%Y-%m-%d"),
        UsageBy::Month => on("%Y-%m"),
    }
}

/// Returns the processors of a finished job times the time for which its last attempt had them, in hours; 0 if it never ran.
pub fn cpu_hours(job: &JobView) -> f64 {
    ran(&job.phase).map_or(0.0, |(start, end)| hours_between(start, end) * job.cpus as f64)
}

/// Returns the start and the end of a finished job that ran.
pub(crate) fn ran(phase: &Phase) -> Option<(Timestamp, Timestamp)> {
    phase.started().zip(phase.ended())
}

/// Returns the hours between two instants, at least 0.
fn hours_between(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64().max(0.0) / 3600.0
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(hour: i64) -> Timestamp {
        Timestamp::from_second(3600 * hour).unwrap()
    }

    /// Returns a job of two processors and 4 GiB that ran from one hour to another, and used a quarter of both.
    fn job(user: &str, start: i64, end: i64, code: i32) -> JobView {
        let window = json!({"start": at(start), "end": at(end)});
        let cpu = 3600.0 * (end - start) as f64 / 2.0;
        let usage = json!({"user": cpu, "system": 0.0, "memory_peak": 1u64 << 30, "stops": 0, "source": "control_group"});
        serde_json::from_value(json!({
            "number": 1, "name": "sort", "uid": 1, "user": user, "queue": "batch", "cpus": 2, "memory": 4u64 << 30,
            "time": 36000.0, "script": false, "submitted": at(0), "restartable": false, "opportunistic": true,
            "phase": {"state": "done", "start": at(start), "end": at(end), "exit": {"code": code}},
            "attempts": 1, "runs": 1, "unenforced": [],
            "promise": {"promised": window, "now": window, "history": []},
            "usage": {"total": usage, "attempts": []},
        }))
        .unwrap()
    }

    #[test]
    fn a_job_that_others_ended_has_not_failed() {
        let ended = |phase| JobView { phase: serde_json::from_value(phase).unwrap(), ..job("ann", 1, 3, 0) };
        let killed = |by: &str| ended(json!({"state": "killed", "start": at(1), "end": at(3), "by": by}));
        let not_run = |why: &str| ended(json!({"state": "failed", "why": why, "at": at(3), "message": ""}));
        let jobs = [killed("user"), killed("shutdown"), killed("time"), not_run("dependency")];
        let (_, all) = usage_sums(&jobs, UsageBy::User, &TimeZone::UTC);
        assert_eq!((all.jobs, all.failed, all.cancelled), (4, 1, 3));
    }

    fn near(value: Option<f64>, expected: f64) {
        assert!((value.unwrap() - expected).abs() < 1e-9, "{value:?}");
    }

    #[test]
    fn sums_of_parts() {
        let jobs = [
            JobView { gpus: 2, ..job("ann", 1, 3, 0) },
            job("ben", 2, 26, 1),
            JobView { usage: None, gpus: 1, ..job("ann", 5, 6, 0) },
        ];
        let (parts, all) = usage_sums(&jobs, UsageBy::User, &TimeZone::UTC);
        assert_eq!(
            parts.iter().map(|part| (&*part.part, part.jobs, part.failed)).collect::<Vec<_>>(),
            [("ben", 1, 1), ("ann", 2, 0)]
        );
        near(Some(parts[1].cpu_hours), 6.0);
        for (part, hours) in [(&parts[0], 0.0), (&parts[1], 5.0), (&all, 5.0)] {
            near(Some(part.gpu_hours), hours);
        }
        near(Some(parts[1].known_cpu_hours), 4.0);
        near(parts[1].cpu_share(), 0.25);
        near(parts[1].memory_share(), 0.25);
        near(parts[1].mean_wait(), 3.0 * 3600.0);
        assert_eq!((all.jobs, all.promised, all.kept), (3, 3, 3));
        near(Some(all.cpu_hours), 54.0);
        let (days, _) = usage_sums(&jobs, UsageBy::Day, &TimeZone::UTC);
        assert_eq!(
            days.iter().map(|day| (&*day.part, day.jobs)).collect::<Vec<_>>(),
            [("1970-01-01", 2), ("1970-01-02", 1)]
        );
    }
}
