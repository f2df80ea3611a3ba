//! The page of a few runs that were not planned as an experiment: `simulate --report` and `compare --report`.

use miserly_core::Time;
use miserly_report::page::{Block, Page, Section};
use miserly_report::{TableStyle, group_blocks, summary_blocks};
use miserly_run::RunDoc;

use crate::difference::{Difference, default_pair};
use crate::group_grid::{distinct, properties};
use crate::present::number_charts;
use crate::recording::Recording;
use crate::run_charts::RunCharts;

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
        let window = self.window.unwrap_or_else(|| log.window());
        let schedules = different.iter().flat_map(|(outcome, recording)| {
            let schedule = recording.schedule(window);
            RunCharts::slots(outcome, &schedule).into_iter().chain([charts.schedule(outcome, &schedule)])
        });
        let section = |heading: &str, charts: Vec<_>| Section {
            heading: heading.into(),
            blocks: charts.into_iter().map(Block::Chart).collect(),
        };
        let mut sections = vec![
            section("Waits and slowdowns", charts.distributions()),
            section(&format!("Bounded slowdown by {}", properties(log.groups)), charts.by_group()),
            section("Over time", charts.over_time()),
            section("Schedules", schedules.collect()),
        ];
        if outcomes.len() == 1 {
            // The groups of a single run come first.
            sections.swap(0, 1);
        }
        sections.extend(self.difference(log, &charts, window));
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

    /// Returns the window of all Gantt charts: the day of the longest queue; the day with the most slots if no job ever
    /// waits.
    ///
    /// Of several policies, the one with the shortest such queue decides. The others have jobs waiting then, too.
    fn window(&self) -> [i64; 2] {
        let longest = self.runs.iter().filter_map(|(outcome, _)| busiest(outcome));
        if let Some((_, day)) = longest.min_by(|(one, _), (other, _)| one.total_cmp(other)) {
            return day;
        }
        let most_slots = self.runs.iter().find_map(|(_, recording)| recording.most_slots());
        day_around(most_slots.map_or(0.0, |at| (at - Time::ZERO).as_secs_f64()))
    }
}

/// Returns the longest queue and the day around it, in the seconds of the log; `None` if no job ever waits.
fn busiest(outcome: &RunDoc) -> Option<(f64, [i64; 2])> {
    let series = &outcome.details.as_ref()?.series;
    let waiting = series.waiting.iter().copied().enumerate();
    let (longest, most) = waiting.fold((0, 0.0), |most, one| if one.1 > most.1 { one } else { most });
    (most > 0.0).then(|| (most, day_around(series.from + (longest as f64 + 0.5) * series.step)))
}

fn day_around(middle: f64) -> [i64; 2] {
    let from = (middle - WINDOW / 2.0).max(0.0);
    // Seconds of a log fit by far.
    #[allow(clippy::cast_possible_truncation)]
    [from as i64, (from + WINDOW) as i64]
}
