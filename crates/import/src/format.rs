//! Recognition of the format of a log by its first lines.

use miserly_core::described_enum;
use miserly_workload::Trace;
use serde::de::IgnoredAny;

use crate::error::ImportError;
use crate::formats::{is_accounting, is_grid_engine, is_lsf, is_pbs};
use crate::header::{is_preset_header, is_table_header};
use crate::table::PARQUET;

/// The number of bytes at the start of a log that decide its format.
const START: u64 = 1 << 16;

/// Whether a format is the one that a simulation reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Conversion {
    /// The log is read as it is.
    Native,
    /// The log is converted first.
    Imported,
}

described_enum! {
    /// The format of a log.
    pub enum Format, conversion: Conversion {
        Swf "swf" Native
            "Standard Workload Format",
        Slurm "slurm" Imported
            "Slurm accounting",
        SlurmJson "slurm_json" Imported
            "Slurm accounting in JSON",
        Pbs "pbs" Imported
            "PBS accounting",
        Lsf "lsf" Imported
            "LSF accounting",
        GridEngine "grid_engine" Imported
            "Grid Engine accounting",
        Batsim "batsim" Imported
            "Batsim workload",
        Table "table" Imported
            "job table",
    }
}

impl Format {
    /// Returns the format of a log.
    ///
    /// # Errors
    /// The log cannot be opened, or its first lines have no known format. An error further on is left to the reader.
    pub fn of(trace: &Trace) -> Result<Format, ImportError> {
        let start = trace.start(START)?;
        if start.starts_with(PARQUET) {
            return Ok(Format::Table);
        }
        let start = String::from_utf8_lossy(&start);
        Format::of_start(&start).ok_or_else(|| {
            let first = start.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
            ImportError::UnknownFormat { name: trace.name().into(), first: first.chars().take(60).collect() }
        })
    }

    /// Returns the format of a log that begins with this text. An empty one is in the Standard Workload Format.
    fn of_start(start: &str) -> Option<Format> {
        let text = start.trim_start_matches('\u{feff}').trim_start();
        if text.starts_with('{') {
            return Format::of_json(text);
        }
        if text.starts_with("[{") || text.starts_with('[') && text[1..].trim_start().starts_with('{') {
            return Some(Format::Table);
        }
        let is_content = |line: &&str| !line.is_empty() && !line.starts_with('#');
        let Some(line) = text.lines().map(str::trim).find(is_content) else { return Some(Format::Swf) };
        let begins_with_number =
            line.split_whitespace().next().is_some_and(|word| word.parse::<f64>().is_ok());
        // The reader of the format reports binary data.
        if line.starts_with(';') || begins_with_number || line.contains(is_binary) {
            return Some(Format::Swf);
        }
        // A record of Grid Engine has more fields than any header.
        match line {
            line if is_pbs(line) => Some(Format::Pbs),
            line if is_lsf(line) => Some(Format::Lsf),
            line if is_grid_engine(line) => Some(Format::GridEngine),
            line if is_accounting(line) && !is_preset_header(line) => Some(Format::Slurm),
            line => is_table_header(line).then_some(Format::Table),
        }
    }

    /// Returns the computer in the header of a converted log.
    pub(crate) const fn computer(self) -> &'static str {
        match self {
            Format::Slurm | Format::SlurmJson => "a cluster under Slurm",
            Format::Pbs => "a cluster under PBS",
            Format::Lsf => "a cluster under LSF",
            Format::GridEngine => "a cluster under Grid Engine",
            Format::Table => "unknown; a table of jobs",
            Format::Batsim | Format::Swf => "none; a workload of Batsim",
        }
    }

    /// Returns the format of a JSON document. The first job or the first profile is within the start.
    fn of_json(start: &str) -> Option<Format> {
        let has = |name: &str| start.contains(&format!("\"{name}\""));
        let is_batsim = has("subtime") || has("profiles") || has("nb_res");
        let is_slurm = has("job_id") && has("association") || has("jobs") && (has("meta") || has("metadata"));
        // The first of several objects, one behind the other.
        let mut objects = serde_json::Deserializer::from_str(start).into_iter::<IgnoredAny>();
        let mut is_table = || objects.next().is_some_and(|object| object.is_ok()) && objects.next().is_some();
        is_batsim
            .then_some(Format::Batsim)
            .or(is_slurm.then_some(Format::SlurmJson))
            .or_else(|| is_table().then_some(Format::Table))
    }
}

fn is_binary(letter: char) -> bool {
    letter == char::REPLACEMENT_CHARACTER || letter.is_control() && letter != '\t'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(start: &str, expect: Option<Format>) {
        assert_eq!(Format::of_start(start), expect, "{start:?}");
    }

    #[test]
    fn by_the_first_line() {
        check("", Some(Format::Swf));
        check("\u{feff}\n ; MaxProcs: 4\nanything", Some(Format::Swf));
        check("1 0 -1 1O", Some(Format::Swf));
        check("\u{7f}ELF\u{1}", Some(Format::Swf));
        check("# a comment\nJobIDRaw|Submit|Start|End|AllocCPUS|State\n", Some(Format::Slurm));
        check("{\"jobs\": [{\"id\": 1, \"subtime\": 0}]}", Some(Format::Batsim));
        check("{\"meta\": {}, \"jobs\": [", Some(Format::SlurmJson));
        check("{\"plan\": 1}", None);
        check("ConsumedEnergyRaw|CPUTimeRAW|ReqCPUS|Submit|State\n0|1|1|x|y", Some(Format::Slurm));
        check("03/01/2013 00:00:05;E;7.bw;user=u", Some(Format::Pbs));
        check("\"JOB_FINISH\" \"10.1\" 1700000000 7", Some(Format::Lsf));
        check(
            "# Version: 8.1.9\nall.q:n1:g:u:j:7:sge:0:1:2:3:0:0:1:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:p:d:NONE:1:0:0:0:0:NONE:0:NONE:0:0:0",
            Some(Format::GridEngine),
        );
        check("id,begin,finish,cores\n1,2,3,4", Some(Format::Table));
        check(
            "job_id,user,account,partition,qos,wallclock_req,nodes_req,processors_req,gpus_req,mem_req,submit_time,start_time,end_time,run_time,state,name,work_dir,submit_line",
            Some(Format::Table),
        );
        check("[\n {\"id\": 1}]", Some(Format::Table));
        check("{\"id\": 1}\n{\"id\": 2}", Some(Format::Table));
        check("a page, of text, with, commas", None);
        check("a page of text", None);
        check("<html>", None);
    }
}
