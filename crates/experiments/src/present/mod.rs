//! The presentation of the results of an experiment: tables, charts and claims, in the order of its file.

mod drawn;

mod chart;

pub(crate) mod gantt;

pub(crate) mod matrix;

mod claim;

mod table;

mod lines;

pub(crate) use chart::{blocks, id as chart_id};
use std::collections::BTreeMap;

use miserly_report::page::{Block, Page, Section};
use toml::Spanned;

use crate::experiment::{Experiment, ExperimentError};
use crate::results::Results;

/// The page of an experiment. With `bars`, each table of figures is also drawn as bars.
///
/// # Errors
/// If a table, chart or claim asks for runs or figures that there are not; the message names its line.
pub fn page(experiment: &Experiment, results: &Results, bars: bool) -> Result<Page, ExperimentError> {
    let about = experiment.file.about.trim();
    Ok(Page {
        title: experiment.file.title.clone(),
        lead: (!about.is_empty()).then(|| about.to_owned()),
        sections: sections(experiment, results, bars)?,
        provenance: provenance(results),
    })
}

/// The parts of the page by where they stand in the file.
fn sections(experiment: &Experiment, results: &Results, bars: bool) -> Result<Vec<Section>, ExperimentError> {
    let file = &experiment.file;
    let mut placed: Vec<(usize, Section)> = Vec::new();
    for entry in &file.tables {
        let blocks = of_entry(experiment, entry, |table| table::blocks(experiment, table, results, bars))?;
        placed.push((entry.span().start, Section { heading: entry.get_ref().title.clone(), blocks }));
    }
    for entry in &file.charts {
        let blocks = of_entry(experiment, entry, |chart| blocks(&chart.request(), results))?;
        placed.push((entry.span().start, Section { heading: entry.get_ref().title.clone(), blocks }));
    }
    let mut claims = Vec::new();
    for entry in &file.claims {
        claims.push(of_entry(experiment, entry, |claim| claim::decide(experiment, claim, results))?);
    }
    if let Some(first) = file.claims.first() {
        let blocks = vec![Block::Claims(claims)];
        placed.push((first.span().start, Section { heading: format!("Claims: {}", file.title), blocks }));
    }
    placed.sort_by_key(|(at, _)| *at);
    let mut sections: Vec<Section> = placed.into_iter().map(|(_, section)| section).collect();
    table::explain_half_widths(&mut sections, results);
    number_charts(&mut sections);
    Ok(sections)
}

/// Numbers charts of the same name, so that each has a file of its own.
pub fn number_charts(sections: &mut [Section]) {
    let mut seen = BTreeMap::new();
    for block in sections.iter_mut().flat_map(|section| &mut section.blocks) {
        if let Block::Chart(chart) = block {
            let times = seen.entry(chart.id.clone()).and_modify(|times| *times += 1).or_insert(1);
            if *times > 1 {
                chart.id = format!("{}-{times}", chart.id);
            }
        }
    }
}

/// Returns the result of `show` for an entry of the file. An error gets its line.
fn of_entry<T, S>(
    experiment: &Experiment,
    entry: &Spanned<T>,
    show: impl Fn(&T) -> Result<S, String>,
) -> Result<S, ExperimentError> {
    show(entry.get_ref()).map_err(|problem| experiment.wrong(entry, problem))
}

fn provenance(results: &Results) -> Vec<(String, String)> {
    let index = &results.index;
    let mut lines = vec![
        ("command".to_owned(), index.command.clone()),
        ("program".to_owned(), format!("miserly {}, sources {}", index.version, index.sources)),
        ("experiment".to_owned(), index.file.clone()),
        ("runs".to_owned(), results.count().to_string()),
    ];
    for trace in &index.traces {
        let what = match (&trace.sha256, &trace.missing) {
            (Some(sha256), _) => format!("SHA-256 {sha256}"),
            (None, missing) => format!("missing: {}", missing.as_deref().unwrap_or("unknown")),
        };
        lines.push((format!("log {}", trace.name), what));
    }
    lines.push(("seeds".to_owned(), results.seeds().join(", ")));
    lines
}
