//! A chart's drawing as a reader has it: an outline of its elements, and positions by the labels of its axes.

use miserly_report::chart::{
    Axis, Bar, BarSeries, Body, Chart, ColourBy, DataSeries, GanttJob, GroupBar, svg,
};
use roxmltree::{Document, Node};

use crate::svg::path;

fn classes<'a>(node: Node<'a, '_>) -> Vec<&'a str> {
    node.attribute("class").unwrap_or_default().split_whitespace().collect()
}

fn number(node: Node, attribute: &str) -> f64 {
    node.attribute(attribute)
        .unwrap_or_default()
        .parse()
        .unwrap_or_else(|_| panic!("{attribute} of {node:?}"))
}

/// Returns the elements of a drawing with their classes and texts, and without their positions and style.
///
/// Neighbours that are alike are one line with their number.
pub(crate) fn outline(chart: &Chart) -> String {
    let svg = svg(chart);
    let document = Document::parse(&svg).unwrap();
    let mut lines = vec![];
    add_outline(document.root_element(), 0, &mut lines);
    let alike = lines.chunk_by(|one, other| one == other);
    let line = |alike: &[String]| match alike.len() {
        1 => alike[0].clone(),
        count => format!("{} ×{count}", alike[0]),
    };
    alike.map(line).collect::<Vec<_>>().join("\n")
}

fn add_outline(node: Node, depth: usize, lines: &mut Vec<String>) {
    if !node.is_element() || node.has_tag_name(("http://www.w3.org/2000/svg", "style")) {
        return;
    }
    let name = [vec![node.tag_name().name()], classes(node)].concat().join(".");
    let text = node.text().map(str::trim).filter(|text| !text.is_empty());
    let text = text.map(|text| format!(" {text:?}")).unwrap_or_default();
    lines.push(format!("{}{name}{text}", "  ".repeat(depth)));
    node.children().for_each(|child| add_outline(child, depth + 1, lines));
}

/// The linear map from an axis's values to positions, by its first and its last label.
struct Scale {
    labels: [(f64, f64); 2],
}

/// Returns the figure of a label: "1.5", or "1m30s" in seconds.
fn figure(label: &str) -> f64 {
    miserly_units::parse_duration(label).unwrap_or_else(|error| panic!("{error}")).as_secs_f64()
}

impl Scale {
    /// Reads the labels of an axis, `x` or `y`. A logarithmic axis has `f64::log10` as `value`.
    fn read(document: &Document, axis: &str, value: fn(f64) -> f64) -> Scale {
        let is_axis = |node: &Node| classes(*node) == ["ticks", axis];
        let ticks = document.descendants().find(is_axis).expect("an axis with ticks");
        let texts = ticks.children().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "text")));
        let label = |text: Node| {
            let line = text.prev_sibling_element().expect("a label stands behind its line");
            let of_value = figure(text.text().expect("a label"));
            (value(of_value), number(line, &format!("{axis}1")))
        };
        let labels: Vec<(f64, f64)> = texts.map(label).collect();
        Scale { labels: [labels[0], *labels.last().unwrap()] }
    }

    fn position(&self, value: f64) -> f64 {
        let [(low, from), (high, to)] = self.labels;
        from + (value - low) / (high - low) * (to - from)
    }

    /// Checks a position against that of a value, to the digits of the drawing.
    #[track_caller]
    fn check(&self, position: f64, value: f64) {
        let expected = self.position(value);
        assert!((position - expected).abs() < 0.02, "{value} is at {position}, not at {expected}");
    }
}

fn chart(x: Axis, y: Axis, body: Body) -> String {
    svg(&Chart { id: "c".into(), title: "A title".into(), caption: None, x, y, body })
}

fn log10(value: f64) -> f64 {
    value.log10()
}

fn itself(value: f64) -> f64 {
    value
}

#[test]
fn points_are_where_the_labels_of_their_axes_say() {
    let points = vec![(1.0, 12.0), (3.0, 700.0), (4.0, 85.0), (9.5, 10.0)];
    for (y, of_y) in [(Axis::linear("y"), itself as fn(f64) -> f64), (Axis::log("y"), log10)] {
        let body = Body::Lines { series: vec![DataSeries::points("jobs", points.clone())] };
        let svg = chart(Axis::linear("x"), y, body);
        let document = Document::parse(&svg).unwrap();
        let [across, up] = [Scale::read(&document, "x", itself), Scale::read(&document, "y", of_y)];
        let dots = document.descendants().find(|node| classes(*node).contains(&"dots")).expect("points");
        let starts = dots.attribute("d").expect("a path").split('M').skip(1);
        let position = |start: &str| {
            let mut numbers = start.split(|c: char| c.is_whitespace() || c.is_ascii_alphabetic());
            let mut next = || numbers.next().and_then(|number| number.parse::<f64>().ok());
            (next().expect("x"), next().expect("y"))
        };
        let drawn: Vec<(f64, f64)> = starts.map(position).collect();
        assert_eq!(drawn.len(), points.len(), "{dots:?}");
        for ((x, y), (of_x, value)) in drawn.into_iter().zip(&points) {
            across.check(x, *of_x);
            up.check(y, of_y(*value));
        }
    }
}

#[test]
fn jobs_are_where_their_processors_and_their_time_are() {
    let job = |number, pes, start, end| GanttJob {
        number,
        pes: vec![pes],
        submit: 0.0,
        start,
        end,
        user: None,
        ..GanttJob::default()
    };
    let jobs = vec![job(1, (0, 3), 0.0, 60.0), job(2, (4, 6), 30.0, 90.0), job(3, (7, 7), 70.0, 120.0)];
    let body = Body::Gantt {
        tops: [0; 3],
        by: ColourBy::Reason,
        queue: vec![],
        procs: 8,
        hosts: vec![],
        slots: 1,
        from: 0.0,
        to: 120.0,
        jobs: jobs.clone(),
    };
    let svg = chart(Axis::linear("time"), Axis::linear("processor"), body);
    let document = Document::parse(&svg).unwrap();
    let of_class = |class: &str| {
        let nodes = document.descendants().filter(|node| classes(*node).contains(&class));
        nodes.collect::<Vec<Node>>()
    };
    // Each tick has the time of the log beside it.
    let ticks = of_class("tick");
    let times = of_class("muted").into_iter().filter_map(|time| {
        let tick = ticks.iter().find(|tick| (number(**tick, "x") + 3.0 - number(time, "x")).abs() < 0.01)?;
        let parts: Vec<f64> = time.text()?.split(':').map(|part| part.parse().expect("a time")).collect();
        Some((parts[1] * 60.0 + parts[2], number(*tick, "x")))
    });
    let times: Vec<(f64, f64)> = times.collect();
    let [(first, left), (last, right)] = [times[0], times[times.len() - 1]];
    let across = |time: f64| left + (time - first) / (last - first) * (right - left);
    let rows = of_class("rule")[0];
    let (top, tall) = (number(rows, "y") + 0.5, number(rows, "height") - 1.0);
    let up = |processor: u32| top + tall * (1.0 - f64::from(processor) / 8.0);
    let paths: Vec<&str> = of_class("part").into_iter().filter_map(|node| node.attribute("d")).collect();
    let drawn: Vec<String> =
        paths.iter().flat_map(|path| path.split_inclusive('Z')).map(str::to_owned).collect();
    assert_eq!(drawn.len(), jobs.len());
    for (drawn, job) in drawn.into_iter().zip(&jobs) {
        let (mut xs, mut ys): (Vec<f64>, Vec<f64>) = path(&drawn).into_iter().unzip();
        xs.sort_by(f64::total_cmp);
        ys.sort_by(f64::total_cmp);
        let (low, high) = job.pes[0];
        // A gap of a pixel lies between two jobs.
        let expect = [across(job.start), across(job.end), up(high + 1), up(low) - 1.0];
        for (found, expect) in [xs[0], xs[xs.len() - 1], ys[0], ys[ys.len() - 1]].into_iter().zip(expect) {
            assert!((found - expect).abs() < 0.05, "{found} and {expect} of {job:?}");
        }
    }
}

#[test]
fn bars_reach_from_the_axis_to_their_values() {
    let bins = [(0.0, 10.0, 1_000.0), (10.0, 20.0, 30.0)].map(|(from, to, value)| Bar { from, to, value });
    let svg = chart(Axis::linear("x"), Axis::log("y"), Body::Bars { bins: bins.to_vec() });
    let document = Document::parse(&svg).unwrap();
    let [across, up] = [Scale::read(&document, "x", itself), Scale::read(&document, "y", log10)];
    let bars = document.descendants().find(|node| classes(*node).contains(&"bars")).expect("bars");
    let bars: Vec<Node> = bars.children().filter(Node::is_element).collect();
    assert_eq!(bars.len(), bins.len());
    for (bar, bin) in bars.into_iter().zip(&bins) {
        let [x, y, width, height] = ["x", "y", "width", "height"].map(|name| number(bar, name));
        // A gap of a pixel lies between two bars.
        across.check(x - 0.5, bin.from);
        across.check(x + width + 0.5, bin.to);
        up.check(y, log10(bin.value));
        up.check(y + height, log10(10.0));
    }
}

#[test]
fn grouped_bars_stand_side_by_side_with_their_intervals() {
    let bar = |value, interval| Some(GroupBar { value, interval });
    let series = |name: &str, bars| BarSeries { name: name.into(), bars };
    let easy = series("easy", vec![bar(4.0, Some([3.0, 5.0])), bar(8.0, None)]);
    let fcfs = series("fcfs", vec![bar(6.0, Some([5.5, 6.5])), None]);
    let x = Axis::category("log", vec!["one".into(), "two".into()]);
    let svg = chart(x, Axis::linear("hours"), Body::Groups { series: vec![easy, fcfs] });
    let document = Document::parse(&svg).unwrap();
    let up = Scale::read(&document, "y", itself);
    let of_class = |class: &str| {
        let nodes = document.descendants().filter(|node| classes(*node).contains(&class));
        nodes.collect::<Vec<Node>>()
    };
    // The key of each series in the legend is before its bars.
    let rects = |class: &str| {
        let all = of_class(class).into_iter().flat_map(|group| group.children().filter(Node::is_element));
        all.filter(|rect| rect.first_element_child().is_some()).collect::<Vec<Node>>()
    };
    let (easy, fcfs) = (rects("s0"), rects("s1"));
    assert_eq!((easy.len(), fcfs.len()), (2, 1));
    for (rect, value) in [(easy[0], 4.0), (easy[1], 8.0), (fcfs[0], 6.0)] {
        up.check(number(rect, "y"), value);
        up.check(number(rect, "y") + number(rect, "height"), 0.0);
    }
    let end = |rect: Node| number(rect, "x") + number(rect, "width");
    assert!((end(easy[0]) - number(fcfs[0], "x")).abs() < 0.1, "side by side");
    assert!(end(fcfs[0]) < number(easy[1], "x"), "a gap between groups");
    let whiskers = of_class("whisker");
    assert_eq!(whiskers.len(), 2);
    for (whisker, [low, high], rect) in
        [(whiskers[0], [3.0, 5.0], easy[0]), (whiskers[1], [5.5, 6.5], fcfs[0])]
    {
        let places = path(whisker.attribute("d").expect("a path"));
        up.check(places[0].1, low);
        up.check(places[1].1, high);
        assert!((places[0].0 - f64::midpoint(number(rect, "x"), end(rect))).abs() < 0.1, "in the middle");
    }
    let titles: Vec<&str> = document
        .descendants()
        .filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "title")))
        .filter_map(|node| node.text())
        .collect();
    assert!(titles.contains(&"one, easy: 4.000 (3.000 to 5.000)"), "{titles:?}");
}
