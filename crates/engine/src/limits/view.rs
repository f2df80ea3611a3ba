//! The limits and the use of one user.

use miserly_api::model::{LimitUnit, LimitUse, LimitsReport};
use miserly_core::State;

use super::settings::Bound;
use super::used_time::UsedTime;
use super::{CpuHours, Limits, Scope};
use crate::job::table::Usage;
use crate::{Caller, Now, Record, Snapshot};

/// The ticks of an hour.
const HOUR: f64 = 3.6e9;

impl Snapshot {
    /// Returns the limits that apply to the next jobs of a caller, and their use. O(n) for n unfinished jobs.
    pub(crate) fn limits_of(&self, now: Now, caller: &Caller) -> LimitsReport {
        let settings = &self.setup.user_limits;
        let names = settings.tables_of(caller);
        let mut limits = vec![];
        let bounds = |kind: fn(&Limits) -> Option<u64>| settings.bounds(caller.uid, &names, kind);
        for of in bounds(|limits| limits.jobs) {
            limits.push(of.shown(
                "jobs",
                LimitUnit::Jobs,
                of.most as f64,
                self.usage_in(&of.scope).0.jobs as f64,
            ));
        }
        for of in bounds(|limits| limits.queued) {
            let (usage, running) = self.usage_in(&of.scope);
            let waiting = usage.jobs.saturating_sub(running);
            limits.push(of.shown("queued", LimitUnit::Jobs, of.most as f64, waiting as f64));
        }
        let taken = |scope: &Scope| self.taken.get(scope).copied().unwrap_or_default();
        for of in bounds(|limits| limits.running) {
            limits.push(of.shown("running", LimitUnit::Jobs, of.most as f64, taken(&of.scope).jobs as f64));
        }
        for of in bounds(|limits| limits.cpus) {
            limits.push(of.shown("cpus", LimitUnit::Cpus, of.most as f64, taken(&of.scope).cpus as f64));
        }
        for of in bounds(|limits| limits.gpus) {
            limits.push(of.shown("gpus", LimitUnit::Gpus, of.most as f64, taken(&of.scope).gpus as f64));
        }
        for of in bounds(|limits| limits.bytes) {
            limits.push(of.shown(
                "bytes",
                LimitUnit::Bytes,
                of.most as f64,
                self.usage_in(&of.scope).0.bytes as f64,
            ));
        }
        for of in settings.bounds(caller.uid, &names, |limits| limits.cpu_time) {
            let time = self.usage_in(&of.scope).0.cpu_time as f64 / HOUR;
            limits.push(of.shown("cpu-time", LimitUnit::CpuHours, of.most as f64 / HOUR, time));
        }
        let hours = |of: &Bound<CpuHours>, field: &str, unit, times: &UsedTime, unfinished: i128| {
            let used = times.within(&of.scope, of.most, now.ticks);
            let less_at = times.next_less(&of.scope, of.most, now.ticks);
            LimitUse {
                unfinished: Some(unfinished as f64 / HOUR),
                days: Some(of.most.days),
                less_at: less_at.map(|at| now.wall_at(at)),
                ..of.shown(field, unit, of.most.most as f64 / HOUR, used as f64 / HOUR)
            }
        };
        for of in settings.bounds(caller.uid, &names, |limits| limits.cpu_hours) {
            let unfinished = self.usage_in(&of.scope).0.cpu_time;
            limits.push(hours(&of, "cpu-hours", LimitUnit::CpuHours, &self.used_time, unfinished));
        }
        for of in settings.bounds(caller.uid, &names, |limits| limits.gpu_hours) {
            let unfinished = self.usage_in(&of.scope).0.gpu_time;
            limits.push(hours(&of, "gpu-hours", LimitUnit::GpuHours, &self.used_gpu_time, unfinished));
        }
        LimitsReport { user: (self.info.users.0)(caller.uid), uid: caller.uid, limits }
    }

    /// Returns the sums of the jobs that a limit counts, and the number of those in their windows.
    fn usage_in(&self, scope: &Scope) -> (Usage, u64) {
        let (mut usage, mut running) = (Usage::default(), 0);
        for record in self.jobs.iter().filter(|record| record.scopes().any(|of| of == *scope)) {
            usage.add(record);
            running += u64::from(record.runs_in_window());
        }
        (usage, running)
    }
}

impl Record {
    fn runs_in_window(&self) -> bool {
        matches!(self.ledger_entry().map(|entry| entry.state), Some(State::Running { .. }))
    }
}

impl<T> Bound<T> {
    fn shown(&self, field: &str, unit: LimitUnit, most: f64, used: f64) -> LimitUse {
        LimitUse {
            limit: format!("{}.{field}", self.table),
            together: matches!(self.scope, Scope::Table(_)),
            unit,
            most,
            used,
            unfinished: None,
            days: None,
            less_at: None,
        }
    }
}
