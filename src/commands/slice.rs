//! `miserly workload slice`: the windows of a log, and one of them as a log.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, bail};
use miserly_report::{AtomicFile, count, slice_json, slice_text};
use miserly_units::{duration_rounded, span_of_seconds};
use miserly_workload::slice::{Slice, SliceOptions, Window, windows, with_load, write_window};
use miserly_workload::{LogDates, Survey, Trace, TraceError};

use crate::args::SliceArgs;
use crate::output::{as_json, print, refuse_the_input_itself, to_file};
use crate::read_log::read_to_write;

pub(super) fn run(args: &SliceArgs) -> anyhow::Result<()> {
    if let Some(output) = &args.output {
        refuse_the_input_itself(&args.trace, "--output", output)?;
    }
    let trace = read_to_write(&args.trace, &args.rewrite, args.procs)?;
    let survey = trace.survey()?;
    let procs = args.procs.or_else(|| survey.header.procs());
    let Some(procs) = procs else {
        return Err(TraceError::NoMachine { name: trace.name().to_owned() }.into());
    };
    let options = args.options(procs);
    let mut found = windows(&trace, &survey, &options)?;
    let all = found.len();
    if let Some([low, high]) = args.load {
        found.retain(|window| (low..=high).contains(&window.load));
        if found.is_empty() {
            bail!("{}: none of {all} windows has a load from {low} to {high}", trace.name());
        }
    }
    if let Some(number) = args.window {
        found.retain(|window| window.number == number);
        if found.is_empty() {
            bail!("--window {number}: the windows are 1 to {all}");
        }
    }
    let written = match &args.output {
        None => None,
        Some(path) => Some(write(&trace, &survey, &options, args.chosen(&found)?, path)?),
    };
    let dates = LogDates::of(&survey);
    let text = match (&written, &args.output) {
        (_, _) if args.json => {
            let written = written.as_ref().map(|(window, slice)| (window, slice));
            as_json(&slice_json(trace.name(), &options, &found, written))?
        }
        (Some((window, slice)), Some(path)) => {
            slice_text(&[*window], dates.as_ref()) + &report(path, &options, slice)
        }
        _ => slice_text(&found, dates.as_ref()),
    };
    let log_is_printed = args.output.is_some() && to_file(args.output.as_deref()).is_none();
    if log_is_printed {
        note!("{}", text.trim_end());
        return Ok(());
    }
    print(&text)
}

impl SliceArgs {
    /// Returns the window to write.
    fn chosen(&self, found: &[Window]) -> anyhow::Result<Window> {
        if let [only] = found {
            return Ok(*only);
        }
        let [low, high] = self.load.context("--output needs one window; choose it by --load or --window")?;
        with_load(found, low, high).context("no window has such a load")
    }
}

fn write(
    trace: &Trace,
    survey: &Survey,
    options: &SliceOptions,
    window: Window,
    path: &Path,
) -> anyhow::Result<(Window, Slice)> {
    let Some(path) = to_file(Some(path)) else {
        let mut output = BufWriter::new(io::stdout().lock());
        let slice = write_window(trace, survey, options, &window, &mut output)?;
        output.flush().context("cannot write to standard output")?;
        return Ok((window, slice));
    };
    let failed = || format!("cannot write {}", path.display());
    let (file, mut output) = AtomicFile::create(path).with_context(failed)?;
    let slice = write_window(trace, survey, options, &window, &mut output)?;
    file.commit(output).with_context(failed)?;
    Ok((window, slice))
}

/// Returns the content of a log that was written, and how it is measured.
fn report(path: &Path, options: &SliceOptions, slice: &Slice) -> String {
    let Slice { running, waiting, jobs, unknown } = *slice;
    let mut text = format!("\n{}: {} jobs", path.display(), count(jobs));
    if !options.cold {
        text += &format!(
            "; at its begin {} run with their remaining time, and {} wait",
            count(running),
            count(waiting)
        );
    }
    if unknown > 0 {
        text += &format!(
            "\n{} earlier jobs have no recorded start or runtime; they are not at its begin",
            count(unknown)
        );
    }
    if options.measured_from() > 0 {
        text += &format!(
            "\nIts header has a warm-up of {}, so that the jobs of the window are measured.",
            duration_rounded(span_of_seconds(options.measured_from() as f64))
        );
    }
    text + "\n"
}
