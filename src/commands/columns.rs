//! `miserly workload columns`: what the columns of a job table mean.

use std::io::Write;

use anyhow::Context;
use miserly_import::{
    ColumnFacts, ImportOptions, PRESETS, Preset, Preview, Proposal, Report, find_preset, preview, propose,
};
use miserly_report::{AtomicFile, columns_text, import_json, import_text, preview_json, preview_text};
use serde_json::{Value, json};

use crate::args::ColumnsArgs;
use crate::output::{print, print_json, refuse_the_input_itself, to_file};
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
    let trace = open(input)?;
    let options = args.conversion.options();
    if let Some(map) = &options.columns {
        let options = ImportOptions { keep_ids: true, ..options.clone() };
        let (jobs, report) = preview(&trace, map, &options)?;
        return if args.json {
            print_json(&preview_document(&jobs, &report))
        } else {
            print(&preview_page(&jobs, &report))
        };
    }
    let proposal = propose(&trace, &options)?;
    if args.json {
        return print_json(&document(&proposal));
    }
    let Some(path) = to_file(args.output.as_deref()) else { return print(&text(&proposal)) };
    refuse_the_input_itself(input, "--output", path)?;
    let written = AtomicFile::write(path, |output| output.write_all(text(&proposal).as_bytes()));
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// Returns the jobs that a map gives, and the report of the conversion.
fn preview_page(jobs: &Preview, report: &Report) -> String {
    let head = format!("The first jobs as they are read, sorted by submission, of {}:\n", report.written);
    head + &preview_text(&jobs.header, &jobs.jobs) + "\n" + &import_text(report)
}

fn preview_document(jobs: &Preview, report: &Report) -> Value {
    json!({"jobs": preview_json(&jobs.header, &jobs.jobs), "report": import_json(report)})
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

/// Returns the map, and as comments below it the columns of the table and the jobs.
fn text(proposal: &Proposal) -> String {
    let jobs = match &proposal.jobs {
        Ok(jobs) => format!(
            "The first jobs as they would be read, sorted by submission; times without a zone as UTC:\n{}",
            preview_text(&jobs.header, &jobs.jobs)
        ),
        Err(error) => format!("No job can be read yet:\n{error}\n"),
    };
    let rows = proposal.columns.iter().map(|column| column.rows).max().unwrap_or(0);
    let columns = format!("The columns, by the first {rows} rows:\n{}", columns_text(&proposal.columns));
    let comments: Vec<String> =
        format!("{columns}\n{jobs}").lines().map(|line| format!("# {line}").trim_end().to_owned()).collect();
    format!("{}\n{}\n", proposal.toml, comments.join("\n"))
}

fn document(proposal: &Proposal) -> Value {
    let (jobs, error) = match &proposal.jobs {
        Ok(jobs) => (preview_json(&jobs.header, &jobs.jobs), Value::Null),
        Err(error) => (json!([]), json!(error)),
    };
    json!({
        "map": proposal.toml,
        "presets": proposal.presets,
        "columns": proposal.columns.iter().map(column_json).collect::<Vec<_>>(),
        "jobs": jobs,
        "error": error,
    })
}

fn column_json(column: &ColumnFacts) -> Value {
    let ColumnFacts { name, kind, rows, empty, distinct, examples, field } = column;
    let by = field.map(|(_, by_content)| if by_content { "content" } else { "name" });
    json!({
        "name": name, "kind": kind, "rows": rows, "empty": empty, "distinct": distinct, "examples": examples,
        "field": field.map(|(field, _)| field.name()), "by": by,
    })
}
