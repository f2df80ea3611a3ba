//! `miserly workload columns`: what the columns of a job table mean.

use miserly_import::{ImportOptions, PRESETS, Preset, Proposal, find_preset, propose};
use miserly_report::{preview_json, preview_text};
use serde_json::{Value, json};

use crate::args::ColumnsArgs;
use crate::output::{print, print_json};
use crate::read_log::open;

pub(crate) fn run(args: &ColumnsArgs) -> anyhow::Result<()> {
    if args.presets {
        return list_presets(args.json);
    }
    if let Some(name) = &args.map {
        return print(find_preset(name).map_err(anyhow::Error::msg)?.text);
    }
    // Without an input, the parser requires another option.
    let Some(input) = &args.input else { return Ok(()) };
    let options = ImportOptions {
        time_zone: args.time_zone.clone(),
        delimiter: args.delimiter.clone(),
        ..ImportOptions::default()
    };
    let proposal = propose(&open(input)?, &options)?;
    if args.json { print_json(&document(&proposal)) } else { print(&text(&proposal)) }
}

fn list_presets(as_json: bool) -> anyhow::Result<()> {
    let of = |preset: &Preset| -> anyhow::Result<(String, Value)> {
        let map = preset.map().map_err(anyhow::Error::msg)?;
        let line = format!("{:12} {}\n", preset.name, map.about());
        Ok((
            line,
            json!({"name": preset.name, "about": map.about(), "notes": map.notes(), "map": preset.text}),
        ))
    };
    let presets = PRESETS.iter().map(of).collect::<anyhow::Result<Vec<_>>>()?;
    let (lines, documents): (Vec<String>, Vec<Value>) = presets.into_iter().unzip();
    if as_json { print_json(&documents) } else { print(&lines.concat()) }
}

/// Returns the map, and the jobs as comments below it.
fn text(proposal: &Proposal) -> String {
    let jobs = match &proposal.jobs {
        Ok(jobs) => format!(
            "The first jobs as they would be read, sorted by submission; times without a zone as UTC:\n{}",
            preview_text(jobs)
        ),
        Err(error) => format!("No job can be read yet: {error}\n"),
    };
    let comments: Vec<String> = jobs.lines().map(|line| format!("# {line}")).collect();
    format!("{}\n{}\n", proposal.toml, comments.join("\n"))
}

fn document(proposal: &Proposal) -> Value {
    let columns = proposal
        .columns
        .iter()
        .map(|[name, kind, example]| json!({"name": name, "kind": kind, "example": example}));
    let (jobs, error) = match &proposal.jobs {
        Ok(jobs) => (preview_json(jobs), Value::Null),
        Err(error) => (json!([]), json!(error)),
    };
    json!({
        "map": proposal.toml,
        "presets": proposal.presets,
        "columns": columns.collect::<Vec<_>>(),
        "jobs": jobs,
        "error": error,
    })
}
