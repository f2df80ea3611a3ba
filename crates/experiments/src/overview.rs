//! The page of a few runs that were not planned as an experiment: `simulate --report` and `compare --report`.

use miserly_report::chart::{Body, Chart};
use miserly_report::page::{Block, Page, Section};
use miserly_report::{TableStyle, group_blocks, summary_blocks};
use miserly_run::RunDoc;

use crate::difference::{Difference, default_pair};
use crate::group_grid::{distinct, properties};
use crate::present::number_charts;
use crate::recording::Recording;
use crate::run_charts::RunCharts;
use crate::run_result::secs;

/// How long the window of the Gantt charts is where none is given, seconds.
const WINDOW: f64 = 86_400.0;

/// The content of the page.
pub struct Overview<'a> {
    /// The command that makes it.
    pub command: String,
    /// The logs, all under the same policies.
    pub logs: Vec<LogRuns<'a>>,
    /// The two policies whose schedules are compared job by job; else EASY and the best one.
    pub difference: Option<[String; 2]>,
    /// The window of the Gantt charts, in the log's seconds; else the day of the longest queue.
    pub window: Option<[i64; 2]>,
}

/// The runs of a log.
pub struct LogRuns<'a> {
    /// The recorded schedule, if the log has one.
    pub recorded: Option<&'a RunDoc>,
    /// The jobs of the recorded schedule, for its chart.
    pub recorded_jobs: Option<&'a Recording>,
    /// The verdict on the runs, if there is one.
    pub verdict: Option<String>,
    /// The breakdowns to show as tables.
    pub by: Vec<String>,
    /// The grouping of the heat maps, by its keyword.
    pub groups: &'a str,
    /// The runs, made with details, and their recordings.
    pub runs: Vec<(&'a RunDoc, &'a Recording)>,
}

/// Returns the page of some runs.
pub fn overview(overview: &Overview<'_>) -> Page {
    let names = overview.names();
    let (lead, mut sections) = if let [log] = &overview.logs[..] {
        (log.verdict.clone(), overview.parts(log))
    } else {
        let section =
            |(log, name): (&LogRuns<'_>, &String)| joined(name, log.verdict.clone(), overview.parts(log));
        (None, overview.logs.iter().zip(&names).map(section).collect())
    };
    number_charts(&mut sections);
    Page { title: overview.title(&names), lead, sections, provenance: overview.provenance(&names) }
}

/// Returns the parts of the page of several logs that one log has, as one section.
fn joined(log: &str, verdict: Option<String>, parts: Vec<Section>) -> Section {
    let part = |part: Section| std::iter::once(Block::Heading(part.heading)).chain(part.blocks);
    let verdict = verdict.map(Block::Text).into_iter();
    Section { heading: log.to_owned(), blocks: verdict.chain(parts.into_iter().flat_map(part)).collect() }
}

impl Overview<'_> {
    /// Returns the sections of a log.
    fn parts(&self, log: &LogRuns<'_>) -> Vec<Section> {
        let outcomes = log.outcomes();
        let style = TableStyle { all_measures: true, ..TableStyle::default() };
        let summary = Section { heading: "Summary".into(), blocks: summary_blocks(&outcomes, style) };
        let tables = log.breakdowns().into_iter().map(|by| {
            let heading = format!("By {}", properties(&by));
            Section { heading, blocks: group_blocks(&by, &outcomes, style) }
        });
        let charts = self.charts(log);
        let sections = std::iter::once(summary).chain(charts).chain(tables);
        sections.filter(|section| !section.blocks.is_empty()).collect()
    }

    fn charts(&self, log: &LogRuns<'_>) -> Vec<Section> {
        let different = log.different_runs();
        let outcomes: Vec<&RunDoc> = different.iter().map(|(outcome, _)| *outcome).collect();
        let charts = RunCharts { runs: &outcomes, recorded: log.recorded, groups: log.groups };
        let Drawn { window, why } = self.window.map_or_else(|| log.window(), Drawn::chosen);
        let slots = different
            .iter()
            .filter_map(|(outcome, recording)| RunCharts::slots(outcome, &recording.schedule(window)));
        let schedules = log.drawn_schedules(&charts, window).into_iter().chain(slots);
        let section = |heading: &str, charts: Vec<_>| Section {
            heading: heading.into(),
            blocks: charts.into_iter().map(Block::Chart).collect(),
        };
        let mut schedules = section("Schedules", schedules.collect());
        schedules.blocks.insert(0, Block::Text(why));
        let mut sections = vec![
            section("Waits and slowdowns", charts.distributions()),
            section(&format!("Bounded slowdown by {}", properties(log.groups)), charts.by_group()),
            section("Over time", charts.over_time()),
            schedules,
        ];
        if outcomes.len() == 1 {
            // The groups of a single run come first.
            sections.swap(0, 1);
        }
        sections.extend(self.difference(log, &charts, window));
        let blocks = sections.iter_mut().flat_map(|section| &mut section.blocks);
        Body::share_scales(blocks.filter_map(|block| match block {
            Block::Chart(chart) => Some(&mut chart.body),
            _ => None,
        }));
        sections
    }

    /// Returns the difference of two schedules of a log; nothing with a single policy.
    fn difference(&self, log: &LogRuns<'_>, charts: &RunCharts<'_>, window: [i64; 2]) -> Option<Section> {
        let outcomes: Vec<&RunDoc> = log.runs.iter().map(|(outcome, _)| *outcome).collect();
        let default = || default_pair(&outcomes).map(|pair| pair.map(str::to_owned));
        let [a, b] = self.difference.clone().or_else(default)?;
        let run = |name: &str| log.runs.iter().find(|(outcome, _)| outcome.policy == name).copied();
        let pair = [run(&a)?, run(&b)?];
        let (of_b, recording) = pair[1];
        let schedule = charts.schedule(of_b, &recording.schedule(window));
        let blocks = Difference::new(pair, log.groups).blocks(schedule);
        Some(Section { heading: "Difference of two schedules".into(), blocks })
    }

    /// Returns the names of the logs, numbered where another one before it has the same.
    fn names(&self) -> Vec<String> {
        let names: Vec<&str> = self.logs.iter().map(LogRuns::name).collect();
        let name =
            |(at, name): (usize, &&str)| match names[..at].iter().filter(|other| *other == name).count() {
                0 => (*name).to_owned(),
                before => format!("{name} ({})", before + 1),
            };
        names.iter().enumerate().map(name).collect()
    }

    /// Returns the title: the policies, or their number if they are many.
    fn title(&self, names: &[String]) -> String {
        let policies = self.logs.first().map(LogRuns::policies).unwrap_or_default();
        let policies = match policies.len() {
            0..=2 => policies.join(" and "),
            number => format!("{number} policies"),
        };
        format!("{policies} on {}", names.join(", "))
    }

    fn provenance(&self, names: &[String]) -> Vec<(String, String)> {
        let mut lines = vec![
            ("command".to_owned(), self.command.clone()),
            (
                "program".to_owned(),
                format!("miserly {}, sources {}", env!("CARGO_PKG_VERSION"), env!("MISERLY_SOURCES")),
            ),
        ];
        for (log, name) in self.logs.iter().zip(names) {
            let Some((outcome, _)) = log.runs.first() else { continue };
            let settings = serde_json::to_string(&outcome.settings).unwrap_or_default();
            lines.push((format!("log {name}"), format!("SHA-256 {}", outcome.trace.sha256)));
            lines.push((format!("settings on {name}"), settings));
        }
        lines
    }
}

impl<'a> LogRuns<'a> {
    fn name(&self) -> &'a str {
        self.runs.first().map_or("", |(outcome, _)| &outcome.trace.name)
    }

    /// Returns the breakdowns that are tables. A single run has a table of the groups of its heat maps.
    fn breakdowns(&self) -> Vec<String> {
        let shown = (self.policies().len() == 1).then_some(self.groups);
        distinct(self.by.iter().map(String::as_str).chain(shown))
    }

    fn policies(&self) -> Vec<String> {
        distinct(self.runs.iter().map(|(outcome, _)| outcome.policy.as_str()))
    }

    /// Returns the schedules: the recorded one, if there is one, and the runs.
    fn outcomes(&self) -> Vec<&'a RunDoc> {
        self.recorded.into_iter().chain(self.runs.iter().map(|(outcome, _)| *outcome)).collect()
    }

    /// Returns the first run of each policy.
    fn different_runs(&self) -> Vec<(&'a RunDoc, &'a Recording)> {
        let first =
            |policy: &String| self.runs.iter().find(|(outcome, _)| outcome.policy == *policy).copied();
        self.policies().iter().filter_map(first).collect()
    }

    /// Returns the schedules in a window, or else in that of a page without a chosen one: the recorded one, and one of each policy.
    pub fn schedules(&self, window: Option<[i64; 2]>) -> Vec<Chart> {
        let different = self.different_runs();
        let outcomes: Vec<&RunDoc> = different.iter().map(|(outcome, _)| *outcome).collect();
        let charts = RunCharts { runs: &outcomes, recorded: self.recorded, groups: self.groups };
        self.drawn_schedules(&charts, window.unwrap_or_else(|| self.window().window))
    }

    fn drawn_schedules(&self, charts: &RunCharts<'_>, window: [i64; 2]) -> Vec<Chart> {
        let recorded = self.recorded.zip(self.recorded_jobs);
        let shown = recorded.into_iter().chain(self.different_runs());
        shown.map(|(outcome, recording)| charts.schedule(outcome, &recording.schedule(window))).collect()
    }

    /// Returns the window of all Gantt charts: the day of the longest queue; the day with the most slots if no job ever
    /// waits.
    ///
    /// Of several policies, the one with the shortest such queue decides. The others have jobs waiting then, too.
    fn window(&self) -> Drawn {
        let time = self.time();
        let longest = self.runs.iter().filter_map(|(outcome, _)| Some((busiest(outcome)?, *outcome)));
        let least = longest.min_by(|((one, _), _), ((other, _), _)| one.total_cmp(other));
        let (middle, of_what) = if let Some(((_, middle), outcome)) = least {
            let of_several = if self.policies().len() > 1 {
                format!(" under {}, whose longest queue is the shortest of these policies", outcome.policy)
            } else {
                String::new()
            };
            (middle, format!("the longest queue{of_several}"))
        } else {
            let most_slots = self.runs.iter().find_map(|(_, recording)| recording.most_slots());
            (most_slots.map_or(0.0, secs), "the most slots".to_owned())
        };
        let window = day_around(middle, time);
        let is_all = time.is_some_and(|[first, last]| last - first <= WINDOW);
        let why = if is_all {
            "The schedules show all the time of the runs.".to_owned()
        } else {
            format!("The schedules show the day about {of_what}. The option --window chooses another time.")
        };
        Drawn { window, why }
    }

    /// Returns the time of all runs, in the seconds of the log.
    fn time(&self) -> Option<[f64; 2]> {
        let times = self.runs.iter().filter_map(|(outcome, _)| {
            let series = &outcome.details.as_ref()?.series;
            Some([series.from, series.from + series.step * series.waiting.len() as f64])
        });
        times.reduce(|one, other| [one[0].min(other[0]), one[1].max(other[1])])
    }
}

/// The window of Gantt charts, and why it is drawn.
struct Drawn {
    window: [i64; 2],
    why: String,
}

impl Drawn {
    fn chosen(window: [i64; 2]) -> Drawn {
        Drawn { window, why: "The schedules show the time that the option --window chooses.".to_owned() }
    }
}

/// Returns the longest queue and the middle of its time, in the seconds of the log; `None` if no job ever waits.
fn busiest(outcome: &RunDoc) -> Option<(f64, f64)> {
    let series = &outcome.details.as_ref()?.series;
    let waiting = series.waiting.iter().copied().enumerate();
    let (longest, most) = waiting.fold((0, 0.0), |most, one| if one.1 > most.1 { one } else { most });
    (most > 0.0).then_some((most, series.from + (longest as f64 + 0.5) * series.step))
}

/// Returns the day about an instant, within the time of the runs: all of it if that is shorter.
fn day_around(middle: f64, time: Option<[f64; 2]>) -> [i64; 2] {
    let [first, last] = time.unwrap_or([0.0, f64::INFINITY]);
    let length = WINDOW.min(last - first).max(1.0);
    let from = (middle - length / 2.0).min(last - length).max(first).max(0.0);
    // Seconds of a log fit by far.
    #[allow(clippy::cast_possible_truncation)]
    [from.floor() as i64, (from + length).ceil() as i64]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_within_the_time_of_the_runs() {
        let day = 86_400;
        assert_eq!(day_around(5e5, None), [500_000 - day / 2, 500_000 + day / 2]);
        assert_eq!(day_around(100.0, Some([0.0, 1e6])), [0, day]);
        assert_eq!(day_around(9.99e5, Some([0.0, 1e6])), [1_000_000 - day, 1_000_000]);
        assert_eq!(day_around(3000.0, Some([60.0, 7200.0])), [60, 7200], "a log of two hours");
    }
}
