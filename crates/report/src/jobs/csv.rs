//! The job table of Batsim, which evalys reads, with further columns at the end.

use std::io::{self, Write};

use miserly_core::Span;
use miserly_sim::{Finished, Interruptions, Sink};

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
/// queue is empty.
pub struct CsvJobs<W> {
    output: W,
    workload: String,
}

impl<W: Write> CsvJobs<W> {
    /// Writes the header line. `output` should be buffered.
    ///
    /// # Errors
    /// The output fails.
    pub fn new(mut output: W, workload: &str) -> io::Result<CsvJobs<W>> {
        writeln!(output, "{}", COLUMNS.join(","))?;
        Ok(CsvJobs { output, workload: quoted(workload) })
    }

    /// Returns the output.
    pub fn into_inner(self) -> W {
        self.output
    }
}

impl<W: Write> Sink for CsvJobs<W> {
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
        writeln!(output)
    }
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
