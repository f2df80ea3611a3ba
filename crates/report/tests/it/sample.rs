//! A page with every kind of chart and block, of made-up but lifelike figures.

use miserly_report::chart::{
    Axis, AxisScale, Bar, BarSeries, Body, Chart, ColourBy, DataSeries, GanttJob, GroupBar, LocalClock,
    MatrixJob, MatrixPlace, Part, QueueStep, Ramp,
};
use miserly_report::page::{Block, Claim, ClaimVerdict, Emphasis, Page, Section, TableCell, TableData};
use miserly_test_support::Draws;
use miserly_workload::LogDates;
use miserly_workload::swf::Header;

pub(crate) fn page() -> Page {
    let charts =
        Section { heading: "Charts".into(), blocks: charts().into_iter().map(Block::Chart).collect() };
    Page {
        title: "Do better estimates help backfilling?".into(),
        lead: Some("EASY and conservative backfilling on one log, with estimates from exact to ten times the runtime.".into()),
        sections: vec![summary(), charts],
        provenance: [("version", "miserly 0.1.0"), ("log", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"), ("command", "miserly report results/")]
            .map(|(name, value)| (name.into(), value.into()))
            .to_vec(),
    }
}

fn summary() -> Section {
    let header = [["", "mean wait", "", "slowdown", ""], ["policy", "R = 1", "R = 2", "R = 1", "R = 2"]];
    let row = |name: &str, figures: [&str; 4], best: usize| {
        let cell =
            |(n, text)| TableCell::number(text).with(if n == best { Emphasis::Good } else { Emphasis::None });
        std::iter::once(TableCell::text(name))
            .chain(figures.into_iter().enumerate().map(cell))
            .collect::<Vec<_>>()
    };
    let table = TableData {
        caption: Some("Means over all jobs; the least of a column stands out.".into()),
        header: header.iter().map(|row| row.map(String::from).to_vec()).collect(),
        rows: vec![
            row("fcfs", ["14 272 s", "14 272 s", "182.40", "182.40"], 9),
            row("easy", ["3 411 s", "3 102 s", "40.17", "31.72"], 1),
            row("conservative", ["3 870 s", "3 190 s", "46.08", "33.95"], 9),
        ],
    };
    let claim = |text: &str, verdict, figures: &str| Claim {
        text: text.into(),
        verdict,
        figures: figures.into(),
        ..Claim::default()
    };
    Section {
        heading: "Summary".into(),
        blocks: vec![
            Block::Text(
                "Wait is from submission to start.\n\nSlowdown is of jobs that ran for a minute at least."
                    .into(),
            ),
            Block::Table(table),
            Block::Claims(vec![
                claim(
                    "Doubling the estimates lowers the mean slowdown of EASY.",
                    ClaimVerdict::Holds,
                    "31.72 ± 1.1 against 40.17 ± 1.4",
                ),
                claim(
                    "Conservative backfilling keeps every promise with exact estimates.",
                    ClaimVerdict::DoesNotHold,
                    "3 of 28 489 promises broken",
                ),
                claim("The gain is the same on other logs.", ClaimVerdict::Unknown, ""),
            ]),
        ],
    }
}

/// One chart of each kind.
pub(crate) fn charts() -> Vec<Chart> {
    vec![
        slowdown(),
        cdf(),
        scatter(),
        queue(),
        histogram(),
        grouped(),
        heat(),
        change(),
        schedule(),
        matrix(),
        slots(),
        panels(),
        dated(),
    ]
}

fn chart(id: &str, title: &str, x: Axis, y: Axis, body: Body) -> Chart {
    Chart { id: id.into(), title: title.into(), caption: Some("Made-up figures.".into()), x, y, body }
}

pub(crate) fn slowdown() -> Chart {
    let factors = [1.0, 2.0, 4.0, 6.0, 8.0, 10.0];
    let series = |name: &str, figures: [f64; 6]| {
        let band = factors.iter().zip(figures).map(|(&x, y)| (x, y * 0.94, y * 1.06)).collect();
        DataSeries::line(name, factors.into_iter().zip(figures).collect()).with_band(band)
    };
    let series = vec![
        series("EASY", [40.2, 31.7, 29.9, 30.4, 31.6, 33.0]),
        series("conservative", [46.1, 34.0, 30.2, 28.8, 28.1, 27.9]),
        series("EASY, shortest first", [24.0, 21.1, 19.8, 20.2, 20.9, 21.5]),
    ];
    let x = Axis::linear("R, the estimate as a multiple of the runtime");
    chart(
        "slowdown",
        "Slowdown against R",
        x,
        Axis::linear("mean bounded slowdown").from_zero(),
        Body::Lines { series },
    )
}

fn cdf() -> Chart {
    let waits =
        |scale: f64| -> Vec<f64> { draws(3_000).map(|u| scale * (1.0 / (1.0 - u)).powf(0.9)).collect() };
    let series = vec![
        DataSeries::cdf("EASY", &waits(20.0)),
        DataSeries::cdf("conservative", &waits(60.0)),
        DataSeries::cdf("FCFS", &waits(700.0)),
    ];
    chart(
        "wait-cdf",
        "Distribution of waits",
        Axis::log_seconds("wait"),
        Axis::linear("share of the jobs").between(0.0, 1.0),
        Body::Lines { series },
    )
}

fn scatter() -> Chart {
    let point =
        |(u, v): (f64, f64)| ((u * 11.0).exp(), if v < 0.1 { 0.0 } else { (v * 9.0 + u * 2.0).exp() });
    let points = draws(20_000).step_by(2).zip(draws(20_000).skip(1).step_by(2)).map(point).collect();
    let series = vec![DataSeries::points("jobs", points)];
    chart(
        "wait-runtime",
        "Wait against runtime",
        Axis::log_seconds("runtime"),
        Axis::log_seconds("wait"),
        Body::Lines { series },
    )
}

fn queue() -> Chart {
    let hour = |n: u32| f64::from(n) * 3_600.0;
    let load = |n: u32, u: f64| (0.72 + 0.2 * (f64::from(n) / 3.8).sin() + 0.08 * u).clamp(0.0, 1.0);
    let points = (0..24 * 14).zip(draws(24 * 14)).map(|(n, u)| (hour(n), 100.0 * load(n, u))).collect();
    let series = vec![DataSeries::steps("utilisation", points)];
    chart(
        "utilisation",
        "Utilisation over time",
        Axis::seconds("time since the log's begin"),
        Axis::linear("busy processors, %").between(0.0, 100.0),
        Body::Lines { series },
    )
}

fn histogram() -> Chart {
    let height = |n: i32| (9_000.0 * (-0.35 * f64::from(n)).exp()).floor();
    let bins = (0..25)
        .map(|n| Bar { from: f64::from(n) * 4.0, to: f64::from(n + 1) * 4.0, value: height(n) })
        .collect();
    chart(
        "accuracy",
        "Runtime as a share of the estimate",
        Axis::linear("runtime / estimate, %").between(0.0, 100.0),
        Axis::log("jobs"),
        Body::Bars { bins },
    )
}

fn grouped() -> Chart {
    let bar =
        |(value, width): (f64, f64)| Some(GroupBar { value, interval: Some([value - width, value + width]) });
    let series =
        |name: &str, bars: [(f64, f64); 3]| BarSeries { name: name.into(), bars: bars.map(bar).to_vec() };
    let series = vec![
        series("EASY", [(4.9, 0.2), (2.1, 0.3), (11.4, 1.6)]),
        series("SJBF", [(3.9, 0.15), (1.7, 0.2), (9.8, 1.9)]),
        series("conservative", [(4.3, 0.3), (2.4, 0.2), (8.1, 1.1)]),
    ];
    let x = Axis::category("", ["KTH", "CTC", "SDSC"].map(String::from).to_vec());
    chart("grouped", "Mean wait, hours", x, Axis::linear("mean wait, hours"), Body::Groups { series })
}

fn categories() -> (Axis, Axis) {
    let names = |names: &[&str]| names.iter().map(|&name| name.into()).collect();
    let x = Axis::category("processors", names(&["1", "2–8", "9–32", "> 32"]));
    (x, Axis::category("runtime", names(&["< 10 min", "10 min – 1 h", "1 h – 8 h", "> 8 h"])))
}

fn heat() -> Chart {
    let (x, y) = categories();
    let cells = vec![
        vec![Some(12.4), Some(38.1), Some(140.9), Some(932.6)],
        vec![Some(3.1), Some(8.8), Some(31.0), Some(101.2)],
        vec![Some(1.6), Some(2.9), Some(7.7), None],
        vec![Some(1.1), Some(1.4), Some(2.2), Some(4.8)],
    ];
    chart("by-category", "Slowdown by category", x, y, Body::Heat { cells, ramp: Ramp::Log, decimals: 1 })
}

fn change() -> Chart {
    let (x, y) = categories();
    let cells = (0..4)
        .map(|row| (0..4).map(|column| Some(f64::from(row * 3 - column * 5) * 3.0)).collect())
        .collect();
    chart(
        "change",
        "Change against EASY, %",
        x,
        y,
        Body::Heat { cells, ramp: Ramp::Diverging { middle: 0.0 }, decimals: 0 },
    )
}

pub(crate) fn schedule() -> Chart {
    let (from, to) = (5.0 * 86_400.0, 6.0 * 86_400.0);
    let jobs = jobs(100, from - 20_000.0, to, 1);
    chart(
        "schedule",
        "A day of the schedule",
        Axis::seconds("time since the log's begin"),
        Axis::linear("processor"),
        Body::Gantt {
            tops: [0; 3],
            by: ColourBy::Reason,
            queue: waiting(5 * 86_400, 24),
            procs: 100,
            hosts: vec![],
            slots: 1,
            from,
            to,
            jobs,
        },
    )
}

/// Returns a day of a gang scheduler. Job n is in one half of slot n modulo 12, and in the slot of
/// job n - 1 while that runs.
pub(crate) fn matrix() -> Chart {
    let (jobs, places) = places();
    let body = Body::Matrix { procs: 64, from: 0.0, to: 86_400.0, jobs, places };
    chart("matrix", "Slots by processors", Axis::linear("processors"), Axis::linear("slot"), body)
}

/// Three series in panels, with dates on the axis.
fn panels() -> Chart {
    let series = |(n, name): (usize, &str)| {
        let values = draws(900).skip(n * 300).take(300);
        let points = (0..300_u32).zip(values).map(|(day, u)| (f64::from(day) * 86_400.0, 40.0 * u)).collect();
        DataSeries::steps(name, points)
    };
    let series = ["EASY", "conservative", "FCFS"].into_iter().enumerate().map(series).collect();
    let x = dates(0.0, 300.0 * 86_400.0).between(0.0, 300.0 * 86_400.0);
    chart("panels", "Jobs waiting", x, Axis::log("jobs").between(1.0, 100.0), Body::Panels { series })
}

/// A schedule with dates and with the colours of changes.
pub(crate) fn dated() -> Chart {
    let mut schedule = schedule();
    schedule.id = "dated".into();
    if let Body::Gantt { from, to, jobs, by, .. } = &mut schedule.body {
        schedule.x = dates(*from, *to);
        *by = ColourBy::Change;
        let changes = [-100_000.0, -30_000.0, -7_000.0, -600.0, 0.0, 600.0, 7_000.0, 30_000.0, 100_000.0];
        for (n, job) in jobs.iter_mut().enumerate() {
            job.compared = Some(job.start - changes[n % changes.len()]);
        }
    }
    schedule
}

/// Returns an axis of the dates of a log that starts on 2000-03-14 at 08:00 in Berlin.
pub(crate) fn dates(from: f64, to: f64) -> Axis {
    let mut header = Header::default();
    header.push("; UnixStartTime: 953017200");
    header.push("; TimeZoneString: Europe/Berlin");
    let clock = LocalClock::new(&LogDates::from_header(&header).unwrap(), from, to).unwrap();
    Axis { scale: AxisScale::Dates(clock.clone()), ..Axis::seconds(clock.label(from, to)) }
}

/// The same over time.
pub(crate) fn slots() -> Chart {
    let (jobs, places) = places();
    let jobs = over_time(&jobs, &places, 64);
    let body = Body::Gantt {
        tops: [0; 3],
        by: ColourBy::Slot,
        queue: vec![],
        procs: 64,
        hosts: vec![],
        slots: 12,
        from: 0.0,
        to: 86_400.0,
        jobs,
    };
    chart("slots", "Slots over time", Axis::seconds("time"), Axis::linear("processor"), body)
}

/// Returns the placements on `procs` processors as bars of a Gantt chart, slot above slot.
pub(crate) fn over_time(jobs: &[MatrixJob], places: &[MatrixPlace], procs: u32) -> Vec<GanttJob> {
    let bar = |place: &MatrixPlace| GanttJob {
        number: jobs[place.job].number,
        pes: place
            .pes
            .iter()
            .map(|(low, high)| (procs * place.slot + low, procs * place.slot + high))
            .collect(),
        submit: jobs[place.job].submit,
        start: place.from,
        end: place.to,
        user: jobs[place.job].user.clone(),
        part: if place.own { Part::Run } else { Part::Alternate },
        ..GanttJob::default()
    };
    places.iter().map(bar).collect()
}

fn places() -> (Vec<MatrixJob>, Vec<MatrixPlace>) {
    let (mut jobs, mut places) = (Vec::new(), Vec::new());
    let (mut random, mut last) = (draws(1_000), None);
    for number in 0..300_u32 {
        let [wide, long] = [(); 2].map(|()| random.next().unwrap_or(0.0));
        let from = f64::from(number) * 288.0;
        let (slot, low) = (number % 12, if number % 2 == 0 { 0 } else { 32 });
        // A number below 32.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let pes = vec![(low, low + (wide * 31.0) as u32)];
        let to = from + 60.0 + 3_300.0 * long;
        let job = jobs.len();
        jobs.push(MatrixJob { number: i64::from(number) + 1, submit: from, user: Some("7".into()) });
        places.push(MatrixPlace { job, slot, own: true, from, to, pes: pes.clone() });
        if let Some((before, until)) = last.replace((slot, to)).filter(|(_, until)| *until > from) {
            places.push(MatrixPlace { job, slot: before, own: false, from, to: to.min(until), pes });
        }
    }
    (jobs, places)
}

/// Returns waiting jobs that change every hour, from a second on.
fn waiting(from: i64, hours: i64) -> Vec<QueueStep> {
    let step = |n: i64| {
        let jobs = n * 7 % 12;
        QueueStep { at: 1000 * (from + n * 3_600), jobs, procs: jobs * 9 }
    };
    (0..hours).map(step).collect()
}

/// Five thousand jobs in a window.
pub(crate) fn crowded() -> Chart {
    let (from, to) = (0.0, 8.0 * 86_400.0);
    let mut jobs = jobs(430, from, to, 2);
    jobs.truncate(5_000);
    assert_eq!(jobs.len(), 5_000);
    chart(
        "crowded",
        "Eight crowded days",
        Axis::seconds("time"),
        Axis::linear("processor"),
        Body::Gantt {
            tops: [0; 3],
            by: ColourBy::Reason,
            queue: waiting(0, 192),
            procs: 430,
            hosts: vec![],
            slots: 1,
            from,
            to,
            jobs,
        },
    )
}

/// Jobs one after the other in lanes of several widths.
fn jobs(procs: u32, from: f64, to: f64, per_lane: u32) -> Vec<GanttJob> {
    let mut jobs = Vec::new();
    let mut random = draws(1_000_000);
    let mut low = 0;
    let reasons = ["immediate", "reserved", "backfilled"];
    for lane in 0.. {
        let wide = [1, 4, 8, 16, 2, 32][lane % 6].min(procs - low);
        let mut time = from;
        while time < to {
            let [gap, long, wait] = [(); 3].map(|()| random.next().unwrap_or(0.0));
            let start = time + 1_200.0 * gap;
            let end = start + (30_000.0 / f64::from(per_lane)) * long.powi(3) + 60.0;
            let number = i64::try_from(jobs.len()).unwrap() + 1;
            let user = Some(format!("{}", number % 17));
            let reason = reasons[jobs.len() % 3].into();
            jobs.push(GanttJob {
                number,
                pes: vec![(low, low + wide - 1)],
                submit: start - 9_000.0 * wait,
                start,
                end,
                user,
                reason,
                ..GanttJob::default()
            });
            time = end;
        }
        low += wide;
        if low == procs {
            return jobs;
        }
    }
    jobs
}

/// The same numbers between 0 and 1 every time.
fn draws(count: usize) -> impl Iterator<Item = f64> {
    let mut draws = Draws::new(1);
    std::iter::repeat_with(move || draws.fraction()).take(count)
}
