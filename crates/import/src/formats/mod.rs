//! The readers of the formats.

mod sacct;

mod sacct_json;

mod pbs;

mod positions;

mod batsim;

#[cfg(test)]
mod tests;

use miserly_workload::Trace;

pub use batsim::batsim;
pub(crate) use pbs::is_pbs;
pub(crate) use positions::{is_grid_engine, is_lsf};
pub(crate) use sacct::is_accounting;
pub use sacct::{columns, command};

use crate::error::ImportError;
use crate::format::Format;
use crate::log::{Imported, ImportedLog, Report};
use crate::options::ImportOptions;
use crate::table::{TableFormat, no_map, tables};

/// Converts a log of this format, and holds it in memory.
///
/// # Errors
/// As [`imported`].
pub fn import(trace: &Trace, format: Format, options: &ImportOptions) -> Result<ImportedLog, ImportError> {
    imported(trace, format, options)?.held()
}

/// Converts the accounting of Slurm, and holds it in memory.
///
/// # Errors
/// As [`imported`].
pub fn slurm(trace: &Trace, options: &ImportOptions) -> Result<ImportedLog, ImportError> {
    import(trace, Format::Slurm, options)
}

/// Converts a log of this format. Jobs that do not fit into some hundred megabytes of memory are in a temporary file.
///
/// # Errors
/// The input is unreadable, is not of the format, or has no job to write, or a temporary file cannot be written. Without
/// `lenient`, also if a line is invalid. [`Format::Swf`] needs no conversion, and is read as a header of accounting.
pub fn imported(trace: &Trace, format: Format, options: &ImportOptions) -> Result<Imported, ImportError> {
    match format {
        Format::Slurm | Format::Swf => sacct::slurm(trace, options),
        Format::SlurmJson => sacct_json::slurm_json(trace, options),
        Format::Pbs => pbs::pbs(trace, options),
        Format::Lsf => positions::lsf(trace, options),
        Format::GridEngine => positions::grid_engine(trace, options),
        Format::Batsim => batsim(trace, options)?.sorted(),
        Format::Table => match &options.columns {
            None => Err(no_map(trace)?),
            Some(map) if map.form.format == Some(TableFormat::Pbs) => {
                map.check()?;
                pbs::pbs(trace, options)
            }
            Some(map) => tables(trace, map, options),
        },
    }
}

/// Returns a log in the Standard Workload Format, converted if it has another format, with the report of the conversion.
///
/// # Errors
/// As [`imported`], and if the format of the log is unknown.
pub fn converted(trace: Trace, options: &ImportOptions) -> Result<(Trace, Option<Report>), ImportError> {
    let format = if options.columns.is_some() { Format::Table } else { Format::of(&trace)? };
    if format == Format::Swf {
        return Ok((trace, None));
    }
    let Imported { log, report } = imported(&trace, format, options)?;
    Ok((trace.with_conversion(log), Some(report)))
}

/// Returns a time in seconds in the notation of the rows.
fn clock(seconds: i64) -> String {
    format!("0:0:{seconds}")
}
