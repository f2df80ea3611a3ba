//! The report of shadows: starts on the machine beside those in the shadow, by day, user and size.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use miserly_api::model::{ShadowGroup, ShadowReport, ShadowView};
use miserly_core::Span;
use miserly_engine::wall_span;
use miserly_forecast::SizeClass;

use super::follow::Progress;
use crate::users;

/// The runtime below which a slowdown does not count shorter jobs as longer waits.
const LEAST_RUNTIME: Span = Span::from_ticks(10_000_000);

/// The difference from which two starts count as different.
const DIFFERENT: Span = Span::from_ticks(1_000_000);

/// A job on a machine and in a shadow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComparedJob {
    /// The submission.
    pub submitted: Timestamp,
    /// The user.
    pub uid: u32,
    /// The processors.
    pub procs: u64,
    /// The start on the machine, if it has started.
    pub start: Option<Timestamp>,
    /// The start in the shadow, if it has started.
    pub shadow_start: Option<Timestamp>,
    /// The runtime, if it is known.
    pub runtime: Option<Span>,
    /// Whether the shadow's policy refused it.
    pub refused: bool,
}

/// Returns the report of a shadow over jobs that have ended. `since` and `until` are the ends of the report.
pub fn of_jobs(
    queue: String,
    [policy, real_policy]: [String; 2],
    jobs: impl IntoIterator<Item = ComparedJob>,
    [since, until]: [Timestamp; 2],
) -> ShadowView {
    let mut sums = Summed::default();
    let zone = TimeZone::system();
    for job in jobs {
        sums.add(&job, until, &zone);
    }
    let progress = Progress { real_policy: Some(real_policy), until: Some(until), ..Progress::default() };
    sums.view(queue, policy, since, progress, &users::name)
}

/// The jobs of one shadow, in sums.
#[derive(Default)]
pub(super) struct Summed {
    all: Sum,
    days: BTreeMap<jiff::civil::Date, Sum>,
    users: BTreeMap<u32, Sum>,
    sizes: BTreeMap<SizeClass, Sum>,
}

/// Sums over jobs.
#[derive(Clone, Debug, Default)]
struct Sum {
    jobs: u64,
    waits: [i128; 2],
    slowdowns: [f64; 2],
    /// The jobs with a slowdown.
    measured: u64,
    earlier: u64,
    later: u64,
    waits_in_shadow: u64,
    waits_on_machine: u64,
    refused: u64,
}

impl Summed {
    /// Adds a job of a shadow that has reached an instant.
    pub(super) fn add(&mut self, job: &ComparedJob, until: Timestamp, zone: &TimeZone) {
        let day = job.submitted.to_zoned(zone.clone()).date();
        let size = SizeClass::new(job.procs);
        let day = self.days.entry(day).or_default();
        let (user, size) = (self.users.entry(job.uid).or_default(), self.sizes.entry(size).or_default());
        for sum in [&mut self.all, day, user, size] {
            sum.add(job, until);
        }
    }

    /// Returns the report of a shadow. `user` names users.
    pub(super) fn view(
        self,
        queue: String,
        policy: String,
        since: Timestamp,
        progress: Progress,
        user: &dyn Fn(u32) -> String,
    ) -> ShadowView {
        let users = self.users.iter().map(|(uid, sum)| (Some(*uid), sum.group(user(*uid))));
        ShadowView {
            queue,
            policy,
            real_policy: progress.real_policy,
            since,
            until: progress.until,
            behind: progress.behind,
            waits_for: progress.waits_for,
            problem: progress.problem,
            all: self.all.group("all".to_owned()),
            days: self.days.iter().map(|(day, sum)| sum.group(day.to_string())).collect(),
            users: users.map(|(uid, group)| ShadowGroup { uid, ..group }).collect(),
            sizes: self.sizes.iter().map(|(size, sum)| sum.group(size.name().to_owned())).collect(),
        }
    }
}

impl Sum {
    fn add(&mut self, job: &ComparedJob, until: Timestamp) {
        // The machine is ahead of the shadow. What the shadow has not reached is not compared.
        let start = job.start.filter(|start| *start <= until);
        if job.refused {
            self.refused += 1;
            return;
        }
        let (start, shadow) = match (start, job.shadow_start) {
            (Some(start), Some(shadow)) => (start, shadow),
            (Some(_), None) => return self.waits_in_shadow += 1,
            (None, Some(_)) => return self.waits_on_machine += 1,
            (None, None) => return,
        };
        self.jobs += 1;
        let waits = [start, shadow].map(|start| wall_span(job.submitted, start).max(Span::ZERO));
        for (sum, wait) in self.waits.iter_mut().zip(waits) {
            *sum += i128::from(wait.ticks());
        }
        self.earlier += u64::from(wall_span(shadow, start) >= DIFFERENT);
        self.later += u64::from(wall_span(start, shadow) >= DIFFERENT);
        if let Some(runtime) = job.runtime {
            self.measured += 1;
            for (sum, wait) in self.slowdowns.iter_mut().zip(waits) {
                let slowdown = (wait + runtime).as_secs_f64() / runtime.max(LEAST_RUNTIME).as_secs_f64();
                *sum += slowdown.max(1.0);
            }
        }
    }

    fn group(&self, name: String) -> ShadowGroup {
        #[expect(clippy::cast_precision_loss, reason = "a mean")]
        let mean = |sum: f64, of: u64| (of > 0).then(|| sum / of as f64);
        #[expect(clippy::cast_precision_loss, reason = "a mean")]
        let waits = self.waits.map(|sum| mean(sum as f64 / 1e6, self.jobs));
        let slowdowns = self.slowdowns.map(|sum| mean(sum, self.measured));
        ShadowGroup {
            name,
            uid: None,
            jobs: self.jobs,
            mean_wait: waits[0],
            shadow_mean_wait: waits[1],
            mean_slowdown: slowdowns[0],
            shadow_mean_slowdown: slowdowns[1],
            earlier: self.earlier,
            later: self.later,
            waits_in_shadow: self.waits_in_shadow,
            waits_on_machine: self.waits_on_machine,
            refused: self.refused,
        }
    }
}

/// Removes what a user may not see: the rows of others.
pub(super) fn only_own(report: &mut ShadowReport, uid: u32) {
    for shadow in &mut report.shadows {
        shadow.users.retain(|group| group.uid == Some(uid));
    }
}
