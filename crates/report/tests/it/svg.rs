//! Charts as SVG: appearance, and validity for any data.

use miserly_report::chart::{
    Axis, Bar, BarSeries, Body, Chart, ColourBy, DataSeries, GanttJob, GroupBar, MatrixJob, MatrixPlace,
    QueueStep, Ramp, svg,
};
use proptest::prelude::*;

use crate::drawing::outline;
use crate::sample;

fn chart(x: Axis, y: Axis, body: Body) -> Chart {
    Chart { id: "c".into(), title: "A title".into(), caption: Some("What to see.".into()), x, y, body }
}

/// The drawing without its style, a line for each element.
fn drawing(chart: &Chart) -> String {
    let svg = svg(chart);
    let (head, rest) = svg.split_once("<style>").unwrap();
    let (_, tail) = rest.split_once("</style>").unwrap();
    format!("{head}{tail}").replace("><", ">\n<")
}

#[test]
fn a_curve_with_a_band() {
    let series = vec![
        DataSeries::line("easy", vec![(1.0, 40.0), (2.0, 30.0)])
            .with_band(vec![(1.0, 38.0, 42.0), (2.0, 29.0, 31.0)]),
        DataSeries::steps("fcfs", vec![(1.0, 10.0), (1.5, 20.0), (2.0, 20.0)]),
    ];
    insta::assert_snapshot!(outline(&chart(
        Axis::linear("R"),
        Axis::linear("slowdown"),
        Body::Lines { series }
    )));
}

#[test]
fn a_curve_below_another_one_is_wider() {
    let line = |name: &str, last| DataSeries::line(name, vec![(1.0, 40.0), (2.0, last)]);
    let lines = |last| {
        let series = vec![line("easy", 30.0), line("fcfs", last)];
        outline(&chart(Axis::linear("R"), Axis::linear("slowdown"), Body::Lines { series }))
    };
    let wider = |text: String| text.matches("line.under").count();
    assert_eq!((wider(lines(30.0)), wider(lines(31.0))), (1, 0));
}

#[test]
fn a_heat_map() {
    let names = |names: [&str; 2]| names.map(String::from).to_vec();
    let body = Body::Heat {
        cells: vec![vec![Some(1.0), None], vec![Some(2.5), Some(f64::NAN)]],
        ramp: Ramp::Log,
        decimals: 1,
    };
    insta::assert_snapshot!(outline(&chart(
        Axis::category("procs", names(["1", "2"])),
        Axis::category("runtime", names(["short", "long"])),
        body
    )));
}

#[test]
fn a_schedule() {
    let job = |number, pes, start, end, reason: &str| GanttJob {
        number,
        pes,
        start,
        end,
        reason: reason.into(),
        ..GanttJob::default()
    };
    let jobs = vec![
        job(1, vec![(0, 3)], 0.0, 60.0, "immediate"),
        job(2, vec![(4, 4), (6, 7)], 30.0, 90.0, "backfilled"),
        job(3, vec![(0, 7)], 90.0, 500.0, "reserved"),
    ];
    let body = |hosts| Body::Gantt {
        tops: [0; 3],
        by: ColourBy::Reason,
        queue: vec![],
        procs: 8,
        hosts,
        slots: 1,
        from: 0.0,
        to: 120.0,
        jobs: jobs.clone(),
    };
    let schedule = |hosts| chart(Axis::seconds("time"), Axis::linear("processor"), body(hosts));
    let plain = drawing(&schedule(vec![]));
    // Lines between hosts and their names change nothing else, and too many are none.
    let named = |(low, name): (u32, &str)| (low, name.to_owned());
    let hosts = drawing(&schedule([(0, "a"), (4, "b"), (6, "c")].map(named).to_vec()));
    let lines: Vec<&str> = hosts.lines().filter(|line| !plain.contains(line)).collect();
    assert!(
        lines
            .iter()
            .all(|line| line.contains("marks") || line.contains("mark") || line.contains("dasharray")),
        "{lines:?}"
    );
    assert_eq!((hosts.matches("class=\"border\"").count(), hosts.matches("class=\"mark\"").count()), (2, 3));
    assert_eq!(drawing(&schedule((0..64).map(|low| (low, "x".to_owned())).collect())), plain);
    insta::assert_snapshot!(outline(&schedule(vec![])));
}

/// Returns a body with these jobs on eight processors from 0 to 120 s, and this number of waiting jobs.
fn body_of(jobs: Vec<GanttJob>, waiting: i64) -> Body {
    Body::Gantt {
        tops: [0; 3],
        by: ColourBy::Reason,
        queue: vec![QueueStep { at: 0, jobs: waiting, procs: 4 * waiting }],
        procs: 8,
        hosts: vec![],
        slots: 1,
        from: 0.0,
        to: 120.0,
        jobs,
    }
}

#[test]
fn schedules_share_the_scale_of_their_curves() {
    let job = |promised| GanttJob { number: 1, procs: 4, end: 60.0, promised, ..GanttJob::default() };
    let mut bodies = [body_of(vec![job(None)], 3), body_of(vec![job(Some(30.0))], 70)];
    let titles = |body: &Body| {
        let svg = svg(&chart(Axis::seconds("time"), Axis::linear("processor"), body.clone()));
        let scaled = svg.split("scale to ").skip(1).filter_map(|rest| rest.split('<').next());
        scaled.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(titles(&bodies[0]), ["5", "20"]);
    assert_eq!(titles(&bodies[1]), ["100", "500", "1"], "with the starts before their promises");
    Body::share_scales(&mut bodies);
    assert_eq!(titles(&bodies[0]), ["100", "500"]);
    assert_eq!(titles(&bodies[1]), ["100", "500", "1"]);
}

/// A recorded job has no processors by number, and gets the lowest free rows.
#[test]
fn a_job_without_numbered_processors_is_drawn() {
    let job = |number, procs, start| GanttJob { number, procs, start, end: 90.0, ..GanttJob::default() };
    let drawn = drawing(&chart(
        Axis::seconds("time"),
        Axis::linear("processor"),
        body_of(vec![job(1, 6, 0.0), job(2, 4, 30.0)], 0),
    ));
    assert!(drawn.contains("8 processors") && drawn.contains("(2)"), "two bars: {drawn}");
}

/// Best fit in Figure 9 of Feitelson (1996), in seconds.
fn figure_9() -> (Vec<MatrixJob>, Vec<MatrixPlace>) {
    let job =
        |number| MatrixJob { number, submit: f64::from(i32::try_from(number - 1).unwrap()), user: None };
    let place = |job, slot, own, from, to, pes| MatrixPlace { job, slot, own, from, to, pes: vec![pes] };
    let places = vec![
        place(0, 0, true, 0.0, 200.0, (0, 4)),
        place(1, 1, true, 1.0, 100.0, (0, 3)),
        place(2, 2, true, 2.0, 200.0, (0, 5)),
        place(3, 2, true, 3.0, 200.0, (6, 7)),
        place(3, 1, false, 3.0, 100.0, (6, 7)),
        place(4, 0, true, 4.0, 200.0, (5, 7)),
    ];
    ((1..=5).map(job).collect(), places)
}

#[test]
fn a_matrix() {
    let (jobs, places) = figure_9();
    let body = Body::Matrix { procs: 8, from: 0.0, to: 200.0, jobs, places };
    insta::assert_snapshot!(outline(&chart(Axis::linear("processors"), Axis::linear("slot"), body)));
}

#[test]
fn slots_over_time() {
    let (jobs, places) = figure_9();
    let jobs = sample::over_time(&jobs, &places, 8);
    let body = Body::Gantt {
        tops: [0; 3],
        by: ColourBy::Slot,
        queue: vec![],
        procs: 8,
        hosts: vec![],
        slots: 3,
        from: 0.0,
        to: 200.0,
        jobs,
    };
    insta::assert_snapshot!(outline(&chart(Axis::seconds("time"), Axis::linear("processor"), body)));
}

#[test]
fn bars_on_a_logarithmic_axis() {
    let bins = [(0.0, 10.0, 1_000.0), (10.0, 20.0, 30.0), (20.0, 30.0, 0.0)];
    let bins = bins.map(|(from, to, value)| Bar { from, to, value }).to_vec();
    insta::assert_snapshot!(outline(&chart(Axis::linear("minutes"), Axis::log("jobs"), Body::Bars { bins })));
}

#[test]
fn without_data_there_is_an_empty_frame() {
    let nothing = [
        Body::Lines { series: Vec::new() },
        Body::Lines { series: vec![DataSeries::line("none", vec![(f64::NAN, 1.0)])] },
        Body::Bars { bins: Vec::new() },
        Body::Heat { cells: Vec::new(), ramp: Ramp::Log, decimals: 0 },
        Body::Gantt {
            tops: [0; 3],
            by: ColourBy::Reason,
            queue: vec![],
            procs: 0,
            hosts: vec![],
            slots: 1,
            from: 0.0,
            to: 0.0,
            jobs: Vec::new(),
        },
        Body::Matrix { procs: 8, from: 0.0, to: 9.0, jobs: Vec::new(), places: Vec::new() },
        Body::Matrix { procs: 8, from: 300.0, to: 400.0, jobs: figure_9().0, places: figure_9().1 },
        Body::Gantt {
            tops: [0; 3],
            by: ColourBy::Reason,
            queue: vec![],
            procs: 4,
            hosts: vec![(2, "b".into())],
            slots: 1,
            from: f64::NAN,
            to: f64::INFINITY,
            jobs: Vec::new(),
        },
    ];
    for body in nothing {
        let chart = chart(Axis::linear("x"), Axis::linear("y"), body);
        assert!(svg(&chart).contains(">no data<"), "{chart:?}");
        check(&chart);
    }
}

#[test]
fn more_series_than_can_be_told_apart_are_not_drawn_in_silence() {
    let series =
        (0..13).map(|n| DataSeries::line(n.to_string(), vec![(0.0, 0.0), (1.0, f64::from(n))])).collect();
    let svg = svg(&chart(Axis::linear("x"), Axis::linear("y"), Body::Lines { series }));
    assert!(svg.contains("3 more series are not drawn"));
}

#[test]
fn what_has_no_place_on_a_logarithmic_axis_is_counted() {
    let series = vec![DataSeries::points("jobs", vec![(1.0, 1.0), (1.0, 0.0), (0.0, 1.0), (10.0, 10.0)])];
    let svg = svg(&chart(Axis::log("x"), Axis::log("y"), Body::Lines { series }));
    assert!(svg.contains("2 points not drawn"));
}

#[test]
fn a_crowded_schedule_has_few_elements() {
    let svg = svg(&sample::crowded());
    assert!(svg.matches("<path").count() < 20 && svg.len() < 500_000, "{} bytes", svg.len());
}

#[test]
fn the_samples_are_drawings() {
    sample::charts().iter().for_each(check);
    check(&sample::crowded());
}

/// Well-formed, nothing that is not a number, every place on the paper.
#[track_caller]
fn check(chart: &Chart) {
    let svg = svg(chart);
    let document = roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("{error}\n{svg}"));
    let root = document.root_element();
    let [wide, tall] = ["width", "height"].map(|name| root.attribute(name).unwrap().parse::<f64>().unwrap());
    for node in root.descendants().filter(roxmltree::Node::is_element) {
        // Places within a transformed group are relative.
        let moved = node.ancestors().any(|node| node.attribute("transform").is_some());
        for attribute in node.attributes() {
            let on_paper = |value: f64, limit: f64| {
                assert!((-0.01..=limit + 0.01).contains(&value) || moved, "{attribute:?} of {limit}\n{svg}");
            };
            match attribute.name() {
                "x" | "x1" | "x2" | "cx" | "width" => on_paper(attribute.value().parse().unwrap(), wide),
                "y" | "y1" | "y2" | "cy" | "height" => on_paper(attribute.value().parse().unwrap(), tall),
                "d" => path(attribute.value()).into_iter().for_each(|(x, y)| {
                    on_paper(x, wide);
                    on_paper(y, tall);
                }),
                "transform" => {
                    assert!(!attribute.value().contains("NaN") && !attribute.value().contains("inf"));
                }
                _ => {}
            }
        }
    }
}

/// The places that a path goes through.
pub(crate) fn path(d: &str) -> Vec<(f64, f64)> {
    let mut places = vec![];
    let (mut x, mut y) = (0.0, 0.0);
    for command in d.split_inclusive(|c: char| c.is_ascii_alphabetic()).collect::<Vec<_>>().windows(2) {
        let numbers = command[1].trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let numbers: Vec<f64> = numbers.split_whitespace().map(|number| number.parse().unwrap()).collect();
        match (command[0].chars().last().unwrap(), numbers.as_slice()) {
            ('M' | 'L', &[to_x, to_y]) => (x, y) = (to_x, to_y),
            ('h', &[by]) => x += by,
            ('v', &[by]) => y += by,
            ('H', &[to]) => x = to,
            ('V', &[to]) => y = to,
            ('Z', &[]) => {}
            other => panic!("{other:?} in {d}"),
        }
        places.push((x, y));
    }
    places
}

fn value() -> impl Strategy<Value = f64> {
    let odd = [
        0.0,
        -0.0,
        1.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        5e-324,
        1e16,
        1e16 + 2.0,
    ];
    prop_oneof![2 => -1e3..1e3, 2 => prop::sample::select(odd.to_vec()), 1 => prop::num::f64::ANY]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{0,8}",
        Just("<script>\"&'</script>".to_owned()),
        any::<String>(),
        Just("w".repeat(200))
    ]
}

fn axis() -> impl Strategy<Value = Axis> {
    let bound = || prop::option::weighted(0.2, value());
    (text(), 0..6, prop::collection::vec(text(), 0..5), bound(), bound()).prop_map(
        |(label, kind, names, from, to)| {
            let axis = match kind {
                0 => Axis::linear(label),
                1 => Axis::log(label),
                2 => Axis::seconds(label),
                3 => Axis::log_seconds(label),
                4 => sample::dates(-1e6, 1e9),
                _ => Axis::category(label, names),
            };
            Axis { from, to, ..axis }
        },
    )
}

fn series() -> impl Strategy<Value = DataSeries> {
    let points = prop::collection::vec((value(), value()), 0..50);
    let band = prop::collection::vec((value(), value(), value()), 0..5);
    (text(), 0..3, points, band).prop_map(|(name, kind, points, band)| {
        let series = match kind {
            0 => DataSeries::line(name, points),
            1 => DataSeries::steps(name, points),
            _ => DataSeries::points(name, points),
        };
        series.with_band(band)
    })
}

fn job() -> impl Strategy<Value = GanttJob> {
    let pes = prop::collection::vec((0_u32..50, 0_u32..50), 0..3);
    (any::<i64>(), pes, value(), value(), value(), prop::option::of(text()), text()).prop_map(
        |(number, pes, submit, start, end, user, key)| GanttJob {
            number,
            pes,
            submit,
            start,
            end,
            user,
            reason: key,
            ..GanttJob::default()
        },
    )
}

fn slots() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0_u32..9, 1 => any::<u32>()]
}

fn place() -> impl Strategy<Value = MatrixPlace> {
    let pes = prop::collection::vec((0_u32..50, 0_u32..50), 0..3);
    (0_usize..5, slots(), any::<bool>(), value(), value(), pes)
        .prop_map(|(job, slot, own, from, to, pes)| MatrixPlace { job, slot, own, from, to, pes })
}

fn body() -> impl Strategy<Value = Body> {
    let bins = prop::collection::vec(
        (value(), value(), value()).prop_map(|(from, to, value)| Bar { from, to, value }),
        0..20,
    );
    let cells = prop::collection::vec(prop::collection::vec(prop::option::of(value()), 0..6), 0..6);
    let ramp = prop_oneof![Just(Ramp::Log), value().prop_map(|middle| Ramp::Diverging { middle })];
    let jobs = prop::collection::vec(job(), 0..20);
    let places = prop::collection::vec(place(), 0..20);
    let hosts = prop::collection::vec((any::<u32>(), text()), 0..4);
    let ends = prop::option::of((value(), value()).prop_map(|(low, high)| [low, high]));
    let bar = (value(), ends).prop_map(|(value, interval)| GroupBar { value, interval });
    let bars = prop::collection::vec(prop::option::of(bar), 0..6);
    let bars = (text(), bars).prop_map(|(name, bars)| BarSeries { name, bars });
    prop_oneof![
        prop::collection::vec(bars, 0..12).prop_map(|series| Body::Groups { series }),
        prop::collection::vec(series(), 0..12).prop_map(|series| Body::Lines { series }),
        prop::collection::vec(series(), 0..12).prop_map(|series| Body::Panels { series }),
        bins.prop_map(|bins| Body::Bars { bins }),
        (cells, ramp, 0_usize..4).prop_map(|(cells, ramp, decimals)| Body::Heat { cells, ramp, decimals }),
        (any::<u32>(), hosts, slots(), value(), value(), jobs).prop_map(
            |(procs, hosts, slots, from, to, jobs)| Body::Gantt {
                tops: [0; 3],
                by: ColourBy::Reason,
                queue: vec![],
                procs,
                hosts,
                slots,
                from,
                to,
                jobs
            }
        ),
        (any::<u32>(), value(), value(), places).prop_map(|(procs, from, to, places)| {
            let job = MatrixJob { number: -7, submit: from, user: Some("<&>".into()) };
            Body::Matrix { procs, from, to, jobs: vec![job; 3], places }
        }),
    ]
}

proptest! {
    #[test]
    fn whatever_the_data_it_is_a_drawing(id in text(), title in text(), caption in prop::option::of(text()), x in axis(), y in axis(), body in body()) {
        let chart = Chart { id, title, caption, x, y, body };
        check(&chart);
        prop_assert_eq!(svg(&chart), svg(&chart));
    }
}
