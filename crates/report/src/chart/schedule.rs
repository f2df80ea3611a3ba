//! Gantt charts: a schedule drawn by the scene of the pages of machines and runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use maud::{Markup, html};
use miserly_scene::{Bars, Clock, Curves, Embedded, Job, Part, Picture, Pool, Schedule, State, Whole};

use super::data::{AxisScale, Body, Chart, GanttJob};
use super::draw::Drawing;
use super::frame::{PlotFrame, WIDTH};
use super::matrix::drawable;
use super::readout::{JobReadout, Readout};
use super::scale::Extent;

/// Least and greatest height of the rows, and preferred height of a row.
const TALL: (f64, f64, f64) = (120.0, 380.0, 16.0);

/// The seconds of a log are closer to zero.
const LATEST: f64 = 1e12;

/// Draws a Gantt chart.
pub(super) fn draw(chart: &Chart) -> Drawing {
    let Body::Gantt { slots, from, to, jobs, by, tops, .. } = &chart.body else { return Drawing::default() };
    let (slots, notes) = drawable(*slots);
    let Some(mut schedule) = of_body(&chart.body, clock_of(chart)) else {
        let frame = PlotFrame::new(chart, 0.0, TALL.0, [None::<Extent>, None]);
        return Drawing { marks: frame.empty(), foot: frame.foot(), notes, ..Drawing::default() };
    };
    schedule.pools[0].slots = slots;
    let bars = Bars::new(&schedule).with_tops(*tops);
    let row = |rows: u32| (f64::from(rows) * TALL.2).clamp(TALL.0, TALL.1) / f64::from(rows.max(1));
    let rows: Vec<f64> = bars.groups.iter().map(|group| row(group.rows)).collect();
    let window = [*from, *to];
    let (marks, foot) =
        Picture::new(&bars, &schedule.clock, window.map(|at| at * 1000.0), WIDTH, &rows, *by).draw();
    let readout = Readout::Gantt {
        scene: Embedded::new(&bars, &schedule.clock, window.map(millis)),
        by: *by,
        jobs: shown(jobs, window)
            .map(|job| JobReadout::new(job, millis(job.start), millis(job.submit)))
            .collect(),
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

/// Draws the bars of a Gantt chart without its curves, below its title, in this width. The rows have a height of `tall` together. Returns the
/// height, too; `None` of another chart, or without jobs.
pub(crate) fn bars_alone(chart: &Chart, width: f64, tall: f64) -> Option<(Markup, f64)> {
    let Body::Gantt { slots, from, to, by, .. } = &chart.body else { return None };
    let mut schedule = of_body(&chart.body, clock_of(chart))?;
    schedule.pools[0].slots = drawable(*slots).0;
    schedule.pools[0].name.clone_from(&chart.title);
    let mut bars = Bars::new(&schedule);
    bars.curves.clear();
    let rows: Vec<f64> = bars.groups.iter().map(|group| tall / f64::from(group.rows.max(1))).collect();
    let window = [*from, *to].map(|at| at * 1000.0);
    Some(Picture::new(&bars, &schedule.clock, window, width, &rows, *by).draw())
}

fn clock_of(chart: &Chart) -> Clock {
    match &chart.x.scale {
        AxisScale::Dates(clock) => {
            Clock::Shifted(clock.shifts().map(|(from, shift)| (from * 1000, shift * 1000)).collect())
        }
        _ => Clock::SinceStart,
    }
}

/// Returns the most values of the curves of a Gantt chart below the first one; `None` of another chart.
pub(super) fn most_of_curves(body: &Body) -> Option<[i64; 3]> {
    let schedule = of_body(body, Clock::SinceStart)?;
    Some(Curves::of_pools(&schedule).first()?.most())
}

/// Returns the jobs in a window whose times are known.
fn shown(jobs: &[GanttJob], [from, to]: [f64; 2]) -> impl Iterator<Item = &GanttJob> {
    jobs.iter().filter(move |job| {
        job.start < to && job.end > from && [job.submit, job.start, job.end].iter().all(|at| is_known(*at))
    })
}

/// Returns the schedule of a Gantt chart; `None` if it has none, or nothing can be drawn of it.
fn of_body(body: &Body, clock: Clock) -> Option<Schedule<'_>> {
    let Body::Gantt { procs, hosts, slots, from, to, jobs, queue, .. } = body else { return None };
    let wholes = wholes(jobs);
    let drawn: Vec<Arc<Job>> =
        shown(jobs, [*from, *to]).map(|job| Arc::new(of_scene(job, &wholes))).collect();
    if *procs == 0 || !is_known(*from) || !is_known(*to) || to - from < 0.001 || drawn.is_empty() {
        return None;
    }
    let pool = Pool {
        cpus: u64::from(*procs),
        slots: *slots,
        hosts: hosts.clone(),
        promises: drawn.iter().any(|job| job.promised.is_some()),
        ..Pool::default()
    };
    Some(Schedule {
        now: millis(*to),
        clock,
        live: false,
        uid: None,
        pools: vec![pool],
        jobs: drawn.into(),
        queue: Some(queue.clone()),
    })
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
        procs: job.held(),
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
