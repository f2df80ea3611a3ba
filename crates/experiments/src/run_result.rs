//! The stored result of a run: its document, and the jobs of a window of time.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;

use miserly_core::{Request, Span, Time};
use miserly_run::RunDoc;
use miserly_sim::{Finished, MatrixRecord, Observer, PlaceHeld};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::queue_record::QueueRow;

/// The stored result of a run.
#[derive(Serialize)]
pub(crate) struct RunResult<'a> {
    pub(crate) key: &'a str,
    pub(crate) run: Value,
    #[serde(flatten)]
    pub(crate) schedule: Option<Schedule>,
    /// Runtime and wait, in seconds, of the jobs that waited longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) longest_waits: Option<Vec<(f64, f64)>>,
}

/// The jobs of a run in the window of its Gantt chart.
#[derive(Deserialize, Serialize)]
pub(crate) struct Schedule {
    #[serde(rename = "gantt_window")]
    pub(crate) window: [i64; 2],
    #[serde(rename = "gantt")]
    pub(crate) jobs: Vec<GanttRow>,
    /// The waiting jobs.
    #[serde(default, rename = "gantt_queue")]
    pub(crate) queue: Vec<QueueRow>,
    /// The matrix, where the policy slices time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) matrix: Option<MatrixRows>,
}

/// A job of the window of a Gantt chart. Times in the log's seconds.
#[derive(Deserialize, Serialize)]
pub(crate) struct GanttRow {
    pub(crate) job: i64,
    pub(crate) user: Option<u32>,
    pub(crate) submit: f64,
    pub(crate) start: f64,
    pub(crate) end: f64,
    pub(crate) reason: Cow<'static, str>,
    /// The latest start that was promised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) promised: Option<f64>,
    /// Whether it was killed at its limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) killed: bool,
    /// The number of processors, which are not known one by one of a recorded job.
    #[serde(skip)]
    pub(crate) procs: u64,
    /// First and last processor of each range, in the end.
    pub(crate) pes: Vec<(u32, u32)>,
    /// The allocations, unless there was one from the start to the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) stays: Vec<StayRow>,
}

/// An allocation of a job.
#[derive(Deserialize, Serialize)]
pub(crate) struct StayRow {
    pub(crate) start: f64,
    pub(crate) end: f64,
    pub(crate) pes: Vec<(u32, u32)>,
    /// Begin and end of its work there, unless it worked all the time. It is swapped in before, or out afterwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) worked: Option<[f64; 2]>,
}

/// A matrix over the window of a Gantt chart. Times in the log's seconds.
#[derive(Deserialize, Serialize)]
pub(crate) struct MatrixRows {
    pub(crate) procs: u32,
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// Whether it ends before the window does, since it would have had too many places.
    pub(crate) cut: bool,
    /// The jobs, in the order in which they come.
    pub(crate) jobs: Vec<MatrixJobRow>,
    pub(crate) places: Vec<PlaceRow>,
}

#[derive(Deserialize, Serialize)]
pub(crate) struct MatrixJobRow {
    pub(crate) job: i64,
    pub(crate) user: Option<u32>,
    pub(crate) submit: f64,
}

#[derive(Deserialize, Serialize)]
pub(crate) struct PlaceRow {
    /// Which of the jobs.
    pub(crate) of: usize,
    pub(crate) slot: u32,
    /// Whether it is the job's own slot; else an alternate slot, as long as no other job needs its processors.
    pub(crate) own: bool,
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) pes: Vec<(u32, u32)>,
}

impl MatrixRows {
    pub(crate) fn from_record(record: &MatrixRecord) -> MatrixRows {
        let (mut jobs, mut known) = (Vec::new(), BTreeMap::new());
        let mut row = |held: &PlaceHeld| {
            let place = &held.place;
            let of = *known.entry(place.admission).or_insert_with(|| {
                jobs.push(MatrixJobRow { job: place.number, user: place.user, submit: secs(place.submit) });
                jobs.len() - 1
            });
            PlaceRow {
                of,
                slot: place.slot.0,
                own: place.own,
                from: secs(held.from),
                to: secs(held.to),
                pes: place.pes.ranges().to_vec(),
            }
        };
        let places = record.places.iter().map(&mut row).collect();
        MatrixRows {
            procs: u32::try_from(record.procs).unwrap_or(u32::MAX),
            from: secs(record.from),
            to: secs(record.to),
            cut: record.cut,
            jobs,
            places,
        }
    }
}

/// Returns the document of the run without its timing, which differs each time.
pub(crate) fn document(outcome: &RunDoc) -> Value {
    // Plain data: it has a JSON form.
    let mut document = serde_json::to_value(outcome).unwrap_or_default();
    if let Some(fields) = document.as_object_mut() {
        fields.remove("timing");
    }
    document
}

/// Collects the runtimes and waits of the measured jobs. Memory grows with the log.
pub(crate) struct LongestWaits {
    warmup: Span,
    share: f64,
    /// The first job to be measured is submitted then or later.
    measured_from: Option<Time>,
    waits: Vec<(Span, Span)>,
}

impl LongestWaits {
    /// This share of the jobs that are submitted after the warm-up.
    pub(crate) fn new(share: f64, warmup: Span) -> LongestWaits {
        LongestWaits { warmup, share, measured_from: None, waits: Vec::new() }
    }

    /// Runtime and wait, in seconds: the share that waited longest, longest first.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub(crate) fn pairs(mut self) -> Vec<(f64, f64)> {
        self.waits.sort_unstable_by(|one, other| other.cmp(one));
        // A share of a length is no longer.
        self.waits.truncate((self.waits.len() as f64 * self.share).ceil() as usize);
        self.waits.iter().map(|(wait, runtime)| (runtime.as_secs_f64(), wait.as_secs_f64())).collect()
    }
}

impl Observer for LongestWaits {
    fn submitted(&mut self, now: Time, _request: &Request) {
        self.measured_from.get_or_insert(now + self.warmup);
    }

    fn finished(&mut self, job: &Finished) -> io::Result<()> {
        if self.measured_from.is_some_and(|from| job.request.submit >= from) {
            self.waits.push((job.wait(), job.runtime));
        }
        Ok(())
    }
}

pub(crate) fn secs(time: Time) -> f64 {
    (time - Time::ZERO).as_secs_f64()
}
