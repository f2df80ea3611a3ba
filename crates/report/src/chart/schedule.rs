//! Gantt charts: a schedule drawn by the scene of the pages of machines and runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use maud::html;
use miserly_scene::{
    Bars, Clock, ColourBy, Embedded, Job, Part, Picture, Pool, QueueStep, Schedule, State, Whole,
};

use super::data::{AxisScale, Chart, GanttJob};
use super::draw::Drawing;
use super::frame::{PlotFrame, WIDTH};
use super::matrix::drawable;
use super::readout::{JobReadout, Readout};
use super::scale::Extent;

/// Least and greatest height of the rows, and preferred height of a row.
const TALL: (f64, f64, f64) = (120.0, 380.0, 16.0);

/// The seconds of a log are closer to zero.
const LATEST: f64 = 1e12;

/// The drawn part of a schedule.
pub(super) struct ScheduleView<'a> {
    pub(super) procs: u32,
    pub(super) hosts: &'a [(u32, String)],
    pub(super) slots: u32,
    /// Begin and end in seconds.
    pub(super) window: [f64; 2],
    pub(super) jobs: &'a [GanttJob],
    pub(super) by: ColourBy,
    pub(super) queue: &'a [QueueStep],
}

pub(super) fn draw(chart: &Chart, view: &ScheduleView<'_>) -> Drawing {
    let (slots, notes) = drawable(view.slots);
    let [from, to] = view.window;
    let shown = |job: &&GanttJob| {
        job.start < to && job.end > from && [job.submit, job.start, job.end].iter().all(|at| is_known(*at))
    };
    let jobs: Vec<&GanttJob> = view.jobs.iter().filter(shown).collect();
    if view.procs == 0 || !is_known(from) || !is_known(to) || to - from < 0.001 || jobs.is_empty() {
        let frame = PlotFrame::new(chart, 0.0, TALL.0, [None::<Extent>, None]);
        return Drawing { marks: frame.empty(), foot: frame.foot(), notes, ..Drawing::default() };
    }
    let clock = match &chart.x.scale {
        AxisScale::Dates(clock) => {
            Clock::Shifted(clock.shifts().map(|(from, shift)| (from * 1000, shift * 1000)).collect())
        }
        _ => Clock::SinceStart,
    };
    let wholes = wholes(view.jobs);
    let schedule = Schedule {
        now: millis(to),
        clock: clock.clone(),
        live: false,
        uid: None,
        pools: vec![Pool { name: String::new(), cpus: view.procs.into(), slots, hosts: view.hosts.to_vec() }],
        jobs: jobs.iter().map(|job| Arc::new(of_scene(job, &wholes))).collect(),
        queue: Some(view.queue.to_vec()),
    };
    let bars = Bars::new(&schedule);
    let row = |rows: u32| (f64::from(rows) * TALL.2).clamp(TALL.0, TALL.1) / f64::from(rows.max(1));
    let rows: Vec<f64> = bars.groups.iter().map(|group| row(group.rows)).collect();
    let (marks, foot) =
        Picture::new(&bars, &clock, [from, to].map(|at| at * 1000.0), WIDTH, &rows, view.by).draw();
    let readout = Readout::Gantt {
        scene: Embedded::new(&bars, &clock, [from, to].map(millis)),
        by: view.by,
        jobs: jobs.iter().map(|job| JobReadout::new(job, millis(job.start), millis(job.submit))).collect(),
    };
    Drawing {
        marks: html! { (marks) },
        foot,
        notes,
        readout: Some(readout),
        is_scene: true,
        description: None,
    }
}

fn is_known(at: f64) -> bool {
    at.is_finite() && at.abs() < LATEST
}

/// Returns seconds in milliseconds.
fn millis(secs: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "the seconds of a log fit by far")]
    let millis = (secs * 1000.0).round() as i64;
    millis
}

/// The whole jobs of which the chart has several parts.
type Wholes = BTreeMap<(i64, i64), (Whole, usize)>;

fn key(job: &GanttJob) -> (i64, i64) {
    (job.number, millis(job.submit))
}

/// Returns the time of each job in all its parts.
fn wholes(jobs: &[GanttJob]) -> Wholes {
    let mut wholes = Wholes::new();
    // A place in another slot is at the same time as one in the own slot.
    for job in jobs.iter().filter(|job| job.part != Part::Alternate) {
        let (start, end) = (millis(job.start), millis(job.end));
        let ran = if job.part == Part::Run { end.saturating_sub(start) } else { 0 };
        let (whole, parts) = wholes.entry(key(job)).or_insert((Whole { start, end, ran: 0 }, 0));
        *whole = Whole {
            start: whole.start.min(start),
            end: whole.end.max(end),
            ran: whole.ran.saturating_add(ran),
        };
        *parts += 1;
    }
    wholes
}

/// Returns a job or an allocation as the scene has it.
fn of_scene(job: &GanttJob, wholes: &Wholes) -> Job {
    let promised = job.promised.map(millis);
    let whole = wholes.get(&key(job)).filter(|(_, parts)| *parts > 1).map(|(whole, _)| *whole);
    let (start, end) = (millis(job.start), millis(job.end));
    Job {
        number: job.number,
        label: job.number.to_string(),
        name: job.reason.clone(),
        reason: job.reason.clone(),
        user: job.user.as_ref().map(|user| format!("user {user}")).unwrap_or_default(),
        procs: job.pes.iter().map(|(low, high)| u64::from(high.saturating_sub(*low)) + 1).sum(),
        limit: end.saturating_sub(start),
        state: State::Ended,
        word: if job.killed { "killed" } else { "done" }.to_owned(),
        submitted: millis(job.submit),
        start: Some(start),
        end: Some(end),
        promised,
        promised_first: promised,
        unkept: promised.is_some_and(|promised| whole.map_or(start, |whole| whole.start) > promised),
        cpus: job.pes.clone(),
        part: job.part,
        whole,
        compared: job.compared.map(millis),
        ..Job::default()
    }
}
