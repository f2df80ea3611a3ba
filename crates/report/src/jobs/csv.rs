//! The job table of Batsim, which evalys reads, with further columns at the end.

use std::io::{self, Write};

use miserly_core::Span;
use miserly_run::RunSetup;
use miserly_sim::{Finished, Interruptions, Sink};
use miserly_workload::TraceError;
use miserly_workload::swf::{Extra, Extras, Record};

use super::lines::Lines;

/// Columns: those of Batsim in their order, then further ones.
const COLUMNS: [&str; 28] = [
    "job_id",
    "workload_name",
    "profile",
    "submission_time",
    "requested_number_of_resources",
    "requested_time",
    "success",
    "final_state",
    "starting_time",
    "execution_time",
    "finish_time",
    "waiting_time",
    "turnaround_time",
    "stretch",
    "allocated_resources",
    "consumed_energy",
    "metadata",
    "start_reason",
    "promised_start",
    "suspensions",
    "lost_work",
    "suspended_time",
    "overhead_time",
    "slots",
    "rows",
    "run_fraction",
    "user",
    "queue",
];

/// A writer of one row per job. Times are in seconds of the log, with decimals only if needed.
///
/// The profile is named after the runtime, as Batsim's converter names the delays of a log. The
/// consumed energy is -1 for unknown. The stretch of a job of zero length is empty. The slots, rows
/// and run fraction are empty without time slicing or for zero residence time. An unknown user or
/// queue is empty, and so is a missing extra field of the log.
///
/// The extra fields come from a second pass over the log, so the jobs must arrive in the order of their submission.
pub struct CsvJobs<'a, W> {
    output: W,
    workload: String,
    extras: Vec<Extra>,
    /// The lines with these fields, if there are any.
    lines: Option<Lines<Records<'a>>>,
}

type Records<'a> = Box<dyn Iterator<Item = Result<Record, TraceError>> + 'a>;

impl<'a, W: Write> CsvJobs<'a, W> {
    /// Writes the header line. `output` should be buffered.
    ///
    /// # Errors
    /// The output fails, or the log cannot be opened again.
    pub fn new(mut output: W, setup: &'a RunSetup) -> io::Result<CsvJobs<'a, W>> {
        let extras: Vec<Extra> = setup.survey.header.extra_columns().known().collect();
        let records = |setup: &'a RunSetup| setup.records().map(|records| Box::new(records) as Records<'a>);
        let lines = (!extras.is_empty()).then(|| records(setup)).transpose().map_err(io::Error::other)?;
        output.write_all(COLUMNS.join(",").as_bytes())?;
        write_names(&mut output, &extras)?;
        writeln!(output)?;
        Ok(CsvJobs { output, workload: quoted(setup.trace.stem()), extras, lines: lines.map(Lines::new) })
    }

    /// Returns the output.
    pub fn into_inner(self) -> W {
        self.output
    }
}

impl<W: Write> Sink for CsvJobs<'_, W> {
    fn job(&mut self, job: &Finished) -> io::Result<()> {
        let request = &job.request;
        let execution = job.runtime;
        let (success, state) =
            if job.killed { (0, "COMPLETED_WALLTIME_REACHED") } else { (1, "COMPLETED_SUCCESSFULLY") };
        let output = &mut self.output;
        write!(output, "{},{},{execution},{},", request.number, self.workload, request.submit)?;
        write!(output, "{},{},{success},{state},", request.procs(), request.estimate)?;
        write!(output, "{},{execution},{},{},{},", job.start, job.end, job.wait(), job.response())?;
        if execution > Span::ZERO {
            write!(output, "{}", job.response().as_secs_f64() / execution.as_secs_f64())?;
        }
        output.write_all(b",")?;
        if let Some(pes) = &job.pes {
            write!(output, "{pes}")?;
        }
        write!(output, ",-1,,{},", job.reason_word())?;
        if let Some(promised) = job.promised {
            write!(output, "{promised}")?;
        }
        let Interruptions { count, suspended, overhead } = job.interruptions;
        write!(output, ",{count},{},{suspended},{overhead}", processor_seconds(job.lost))?;
        let slices = job.slices.unwrap_or_default();
        for figure in [slices.slots(), slices.used_slots(), slices.run_fraction(execution)] {
            output.write_all(b",")?;
            if let Some(figure) = figure {
                write!(output, "{figure}")?;
            }
        }
        for number in [request.user, request.queue] {
            output.write_all(b",")?;
            if let Some(number) = number {
                write!(output, "{number}")?;
            }
        }
        if let Some(lines) = &mut self.lines {
            write_extras(output, &self.extras, lines.of(job)?.extras())?;
        }
        writeln!(output)
    }
}

/// Writes the names of further columns.
pub(super) fn write_names(output: &mut impl Write, extras: &[Extra]) -> io::Result<()> {
    extras.iter().try_for_each(|extra| write!(output, ",{extra}"))
}

/// Writes the values of further columns.
pub(super) fn write_extras(output: &mut impl Write, columns: &[Extra], extras: &Extras) -> io::Result<()> {
    columns.iter().try_for_each(|extra| {
        write!(output, ",{}", extras.text(*extra).map_or_else(String::new, |text| quoted(&text)))
    })
}

/// Converts work to processor-seconds, with decimals only if needed.
fn processor_seconds(work: u128) -> Span {
    // Saturation is far beyond the work of one job.
    i64::try_from(work).map_or(Span::MAX, Span::from_ticks)
}

/// Quotes a CSV field if needed.
pub(crate) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_has_decimals_only_where_there_are_any() {
        let seconds = |ticks| processor_seconds(ticks).to_string();
        assert_eq!([0, 240_000_000, 1_500_000].map(seconds), ["0", "240", "1.5"]);
    }
}
