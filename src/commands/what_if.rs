//! `miserly what-if`: the difference that a change makes to a log.

use anyhow::{Context, ensure};
use miserly_questions::Question;
use miserly_report::page::exported;
use miserly_report::{AtomicFile, what_if_sections, what_if_table};
use miserly_workload::Estimates;

use crate::args::WhatIfArgs;
use crate::commands::live::what_if as ask_daemon;
use crate::output::{print, print_json, refuse_the_input_itself};
use crate::progress::Progress;
use crate::run_options::prepare;
use crate::warnings::warn_of_missing_facts;

pub(crate) fn run(args: &WhatIfArgs) -> anyhow::Result<()> {
    let Some(trace) = &args.trace else {
        ensure!(args.table.format().is_none(), "--markdown, --latex and --csv: give a log");
        return ask_daemon(args);
    };
    if let Some(path) = &args.jobs {
        refuse_the_input_itself(trace, "--jobs", path)?;
    }
    let question = Question {
        policies: &args.policy,
        change: &args.change,
        feedback: args.feedback,
        by: args.by,
        copies: args.copies,
    };
    let setup = prepare(trace, &args.run, Estimates::default())?;
    let progress = Progress::with_unit("simulations", 2 * (args.copies + 1));
    let answer = question.answer(setup, &|runs| progress.add(runs))?;
    drop(progress);
    warn_of_missing_facts(answer.runs.iter().map(|(setup, policy, jobs)| (setup, policy, *jobs)))?;
    if let Some(path) = &args.jobs {
        let written = AtomicFile::write(path, |output| answer.write_jobs(output));
        written.with_context(|| format!("--jobs {}", path.display()))?;
    }
    let (document, style) = (&answer.document, args.table.style());
    match args.table.format() {
        _ if args.json => print_json(document),
        Some(format) => print(&exported(&what_if_sections(document, style), format)),
        None => print(&what_if_table(document, style)),
    }
}
