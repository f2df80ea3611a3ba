//! `miserly bench`: the score of a policy on made windows.

use std::collections::BTreeMap;

use miserly_gym::gate::PolicyKind;
use miserly_gym::score::{ScoredMeasure, run_window, score};
use miserly_gym::study::StudyError;
use miserly_report::page::{Block, Section, TableCell, TableData, TableFormat, exported};

use crate::args::BenchArgs;
use crate::output::print;

pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<()> {
    let score = score(args.windows, &args.policy.to_string(), PolicyKind::Written, &args.against, |setup| {
        run_window(setup, &args.policy).map_err(StudyError::from)
    })?;
    if args.json {
        return print(&(serde_json::to_string(&score)? + "\n"));
    }
    let table = |what: &str, rows: &BTreeMap<&'static str, ScoredMeasure>| TableData {
        caption: None,
        header: vec![vec![what.to_owned(), score.policy.clone(), score.against.clone(), "difference".into()]],
        rows: rows.iter().map(|(name, measure)| row(name, measure)).collect(),
    };
    let measures = table("measure", &score.measures);
    let classes = table("mean wait of", &score.classes);
    let pays = if score.who_pays.is_empty() { "none".to_owned() } else { score.who_pays.join(", ") };
    let notes = format!(
        "12 windows of 512 jobs of lublin99 on 256 processors ({}); differences with 95 % intervals, by window. Times are in \
         seconds. Classes that wait longer beyond chance: {pays}.",
        score.windows
    );
    let blocks = vec![Block::Table(measures), Block::Table(classes), Block::Text(notes)];
    print(&exported(&[Section { heading: String::new(), blocks }], TableFormat::Markdown))
}

fn row(name: &str, measure: &ScoredMeasure) -> Vec<TableCell> {
    let number = |value: f64| TableCell::number(format!("{value:.3}"));
    let difference = format!("{:+.3} ± {:.3}", measure.difference, measure.half_width);
    vec![
        TableCell::text(name.replace('_', " ")),
        number(measure.mean),
        number(measure.reference),
        TableCell::number(difference),
    ]
}
