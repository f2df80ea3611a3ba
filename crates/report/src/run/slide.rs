//! A verdict as one picture, for a slide.

use maud::{Markup, PreEscaped, html};
use miserly_run::{GroupChangeDoc, RunDoc};
use miserly_scene::{rules, used_rules};

use super::change::{Change, least_for_ratio, time};
use super::verdict::{Compared, GroupChanges, noise, significance};
use crate::chart::{Chart, bars_alone};
use crate::numbers::count;

/// The size of the picture.
const SIZE: [f64; 2] = [1_280.0, 720.0];

/// The distance of all content from the left and the right edge.
const EDGE: f64 = 64.0;

/// The left end of the bars.
const BARS: f64 = 480.0;

/// The greatest length of a bar. Its figures stand behind it.
const LONGEST: f64 = 430.0;

/// The width of a schedule, and the height of its rows.
const SCHEDULE: [f64; 2] = [560.0, 130.0];

/// The most letters of the name of a policy.
const NAME: usize = 34;

/// The colours of the base, the best policy, and others: apart for colour-blind readers too.
const COLOURS: [&str; 3] = ["#6b7280", "#08519c", "#9ecae1"];

/// Returns a verdict as an SVG picture: the question, the waits of up to three policies, the schedules of the base and of the best policy, who
/// gains and who pays. With two policies, the recorded schedule is beside them if it is a baseline. Returns `None` if there are no two policies
/// to compare. `schedules` has Gantt charts with the policies as titles.
pub fn slide(compared: &Compared<'_>, schedules: &[Chart]) -> Option<String> {
    let (best, base) = compared.best_and_base()?;
    let shown = shown_runs(compared, best, base);
    let most = shown.iter().filter_map(|run| run.metrics.wait.mean).fold(0.0, f64::max);
    let headline = headline(best, base)?;
    let warmup = match best.settings.warmup {
        0 => String::new(),
        seconds => format!(" after a warm-up of {}", time(seconds as f64)),
    };
    let facts = format!(
        "{}, {} jobs{warmup}, {} processors.",
        best.trace.name,
        count(best.jobs.measured),
        count(best.settings.procs.into())
    );
    let groups = compared.group_changes(best, base);
    let [gains, pays] = groups.most();
    let picture = html! {
        rect width=(SIZE[0]) height=(SIZE[1]) fill="#ffffff" {}
        (text([EDGE, 64.0], 36, "#111827", "Which policy lets jobs wait least?"))
        (text([EDGE, 106.0], 26, COLOURS[1], &headline))
        (text([BARS, 138.0], 18, "#4b5563", "mean wait"))
        @for (at, run) in shown.iter().enumerate() { (bar(run, 146.0 + 50.0 * at as f64, most, colour(run, best, base))) }
        @for (run, left) in [(base, EDGE), (best, SIZE[0] - EDGE - SCHEDULE[0])] {
            @if let Some((drawn, _)) = schedules.iter().find(|chart| chart.title == run.policy).and_then(|chart| bars_alone(chart, SCHEDULE[0], SCHEDULE[1])) {
                g class="scene" font-size="12" transform=(format!("translate({left:.1} 304)")) { (drawn) }
            }
        }
        (group("Who gains", &groups, gains, 588.0, "shorter"))
        (group("Who pays", &groups, pays, 620.0, "longer"))
        (text([EDGE, 652.0], 16, "#4b5563", &facts))
        (text([EDGE, 674.0], 16, "#4b5563", significance(noise(best, base))))
        (text([EDGE, 696.0], 16, "#4b5563", &groups.test()))
    };
    let style = used_rules(&rules(false, ""), &picture.0);
    let head = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" \
         font-family=\"Helvetica, Arial, sans-serif\"><style>{style}</style>",
        SIZE[0], SIZE[1]
    );
    Some(html! { (PreEscaped(head)) (picture) (PreEscaped("</svg>\n")) }.into_string())
}

/// Returns `easy: 35 % shorter than fcfs`, or the two waits if no ratio is of them.
fn headline(best: &RunDoc, base: &RunDoc) -> Option<String> {
    let (value, baseline) = (best.metrics.wait.mean?, base.metrics.wait.mean?);
    let change = Change { value, baseline, least: least_for_ratio(base) };
    let [best, base] = [best, base].map(|run| shortened(&run.policy));
    Some(match change.than() {
        Some(than) => format!("{best}: {than} {base}"),
        None => format!("{best}: {}, against {} under {base}", time(value), time(baseline)),
    })
}

/// Returns the base, the best policy, and the next one; with two policies the record before them, if it is a baseline.
fn shown_runs<'a>(compared: &Compared<'a>, best: &'a RunDoc, base: &'a RunDoc) -> Vec<&'a RunDoc> {
    let others =
        compared.ranked().into_iter().filter(|run| run.policy != best.policy && run.policy != base.policy);
    let mut shown: Vec<&RunDoc> = [base, best].into_iter().chain(others).take(3).collect();
    if shown.len() == 2 {
        shown.splice(..0, compared.recorded.filter(|recorded| recorded.is_comparable()));
    }
    shown
}

fn colour(run: &RunDoc, best: &RunDoc, base: &RunDoc) -> &'static str {
    match &run.policy {
        policy if *policy == base.policy => COLOURS[0],
        policy if *policy == best.policy => COLOURS[1],
        _ => COLOURS[2],
    }
}

/// Draws the mean wait of a schedule, with its longest wait.
fn bar(run: &RunDoc, top: f64, most: f64, colour: &str) -> Markup {
    let wait = run.metrics.wait;
    let length = wait.mean.filter(|_| most > 0.0).map_or(0.0, |mean| LONGEST * mean / most).max(2.0);
    let figure = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), time);
    let longest = format!("longest {}", figure(wait.max));
    html! {
        (text([EDGE, top + 26.0], 22, "#111827", &shortened(&run.policy)))
        rect x=(BARS) y=(top) width=(format!("{length:.1}")) height="40" fill=(colour) {}
        (text([BARS + length + 14.0, top + 18.0], 22, "#111827", &figure(wait.mean)))
        (text([BARS + length + 14.0, top + 37.0], 16, "#4b5563", &longest))
    }
}

/// Writes the change of a group of jobs, or that no group waits significantly `longer`.
fn group(head: &str, groups: &GroupChanges, found: Option<&GroupChangeDoc>, top: f64, how: &str) -> Markup {
    let words = match found {
        Some(found) => {
            let (name, jobs) = (shortened(&groups.name(found)), count(found.jobs));
            format!("{name} ({jobs} jobs): {} instead of {}", time(found.after), time(found.before))
        }
        None if groups.is_tested() => format!("no group of jobs waits significantly {how}"),
        None => "unknown".to_owned(),
    };
    html! {
        (text([EDGE, top], 22, "#111827", head))
        (text([EDGE + 150.0, top], 22, "#111827", &words))
    }
}

fn text([x, y]: [f64; 2], size: u32, colour: &str, words: &str) -> Markup {
    html! { text x=(format!("{x:.1}")) y=(format!("{y:.1}")) font-size=(size) fill=(colour) { (words) } }
}

/// Returns a name that fits beside the bars.
fn shortened(name: &str) -> String {
    let letters = name.chars().count();
    if letters <= NAME { name.to_owned() } else { name.chars().take(NAME - 1).chain(['…']).collect() }
}
