//! The orders of the benchmark's tables.

use std::ops::Range;
use std::sync::Arc;

use crate::episode::Episode;
use crate::log::{Job, JobLog};

/// An order of the published tables. The job with the smallest key is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By submission.
    Fcfs,
    /// WFP3 as it was published: a defect turns it over, for the wait of a job that has not started is -1 minus its submission.
    Wfp3Published,
    /// UNICEP as it was published, with the same defect.
    UnicepPublished,
    /// By estimate, then by submission.
    Sjf,
    /// F1 of Carastan-Santos and de Camargo, SC 2017.
    F1,
    /// WFP3 with the true wait.
    Wfp3,
    /// UNICEP with the true wait.
    Unicep,
}

impl Order {
    /// Every order, in the order of the columns.
    pub const ALL: [Order; 7] = [
        Order::Fcfs,
        Order::Wfp3Published,
        Order::UnicepPublished,
        Order::Sjf,
        Order::F1,
        Order::Wfp3,
        Order::Unicep,
    ];

    /// Returns the name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Order::Fcfs => "FCFS",
            Order::Wfp3Published => "WFP3*",
            Order::UnicepPublished => "UNICEP*",
            Order::Sjf => "SJF",
            Order::F1 => "F1",
            Order::Wfp3 => "WFP3",
            Order::Unicep => "UNICEP",
        }
    }

    /// Returns the key of a job at an instant; the smallest is the first.
    pub fn key(self, job: &Job, now: i64) -> (f64, i64) {
        let (estimate, procs) = (job.estimate as f64, f64::from(job.procs));
        let (submit, wait) = (job.submit as f64, (now - job.submit) as f64);
        let turned = -1.0 - submit;
        let key = match self {
            Order::Fcfs => submit,
            Order::Sjf => return (estimate, job.submit),
            Order::F1 => libm::log10(positive(estimate)) * procs + 870.0 * libm::log10(positive(submit)),
            Order::Wfp3Published => wfp3(turned, estimate, procs),
            Order::Wfp3 => wfp3(wait, estimate, procs),
            Order::UnicepPublished => unicep(turned, estimate, procs),
            Order::Unicep => unicep(wait, estimate, procs),
        };
        (key, 0)
    }

    /// Schedules a window in this order.
    pub fn schedule(self, log: &Arc<JobLog>, window: Range<usize>, backfills: bool) -> Episode {
        let mut episode = Episode::new(Arc::clone(log), window, backfills);
        loop {
            episode.sort_by_key(|job, now| self.key(job, now));
            if !episode.commit(0) {
                return episode;
            }
        }
    }
}

/// Returns an argument of a logarithm.
fn positive(value: f64) -> f64 {
    if value > 0.0 { value } else { 0.1 }
}

fn wfp3(wait: f64, estimate: f64, procs: f64) -> f64 {
    -libm::pow(wait / estimate, 3.0) * procs
}

/// The small numbers keep a job of one processor, whose logarithm is 0, in the order.
fn unicep(wait: f64, estimate: f64, procs: f64) -> f64 {
    -(wait + 1e-15) / (libm::log2(procs + 1e-15) * estimate)
}
