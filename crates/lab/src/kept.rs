//! What is kept of a run: its document, and the jobs of a window of time.

use std::io;

use miserly_core::{PeSet, Request, Span, Time};
use miserly_report::Outcome;
use miserly_sim::{Finished, Observer};
use serde::Serialize;
use serde_json::Value;

/// A run as it is kept.
#[derive(Serialize)]
pub(crate) struct Kept<'a> {
    pub(crate) key: &'a str,
    pub(crate) run: Value,
    /// The window of the Gantt chart, and the jobs in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gantt_window: Option<[i64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gantt: Option<Vec<GanttRow>>,
}

/// A job of the window of a Gantt chart. Times in seconds after the first submission.
#[derive(Serialize)]
pub(crate) struct GanttRow {
    job: i64,
    user: Option<u32>,
    submit: f64,
    start: f64,
    end: f64,
    reason: String,
    /// First and last processor of each range.
    pes: Vec<(u32, u32)>,
}

/// The document of the run without what differs from run to run.
pub(crate) fn document(outcome: &Outcome) -> Value {
    // Plain data: it has a JSON form.
    let mut document = serde_json::to_value(outcome).unwrap_or_default();
    if let Some(fields) = document.as_object_mut() {
        fields.remove("timing");
    }
    document
}

/// Collects the jobs that run in a window of time.
pub(crate) struct Window {
    from: Span,
    to: Span,
    origin: Option<Time>,
    pub(crate) rows: Vec<GanttRow>,
}

impl Window {
    /// From and to in seconds after the first submission.
    pub(crate) fn new(from: i64, to: i64) -> Window {
        let span = |secs| Span::from_secs(secs).unwrap_or(Span::MAX);
        Window { from: span(from), to: span(to), origin: None, rows: Vec::new() }
    }
}

impl Observer for Window {
    fn submitted(&mut self, now: Time, _request: &Request) {
        self.origin.get_or_insert(now);
    }

    fn finished(&mut self, job: &Finished) -> io::Result<()> {
        let origin = self.origin.unwrap_or(job.request.submit);
        if job.start < origin + self.to && job.end > origin + self.from {
            let secs = |time: Time| (time - origin).as_secs_f64();
            self.rows.push(GanttRow {
                job: job.request.number,
                user: job.request.user,
                submit: secs(job.request.submit),
                start: secs(job.start),
                end: secs(job.end),
                reason: job.reason.as_str().to_owned(),
                pes: job.pes.iter().flat_map(PeSet::ranges).copied().collect(),
            });
        }
        Ok(())
    }
}
