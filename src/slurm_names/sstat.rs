//! `sstat`: running jobs. Their usage is known at their end, so columns of usage are empty until then.

use std::borrow::Cow;
use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::bail;
use jiff::Timestamp;

use super::columns::{accounting_columns, cell};
use super::facts::{Facts, Part};
use super::jobs::{self, NamedJob};
use super::sacct::{names, running_steps};
use super::{client, given, host, refused};
use crate::output::print;

/// The columns.
const COLUMNS: &str = "JobID,MaxVMSize,AveVMSize,MaxRSS,MaxRSSNode,MaxRSSTask,AveRSS,AveCPU,NTasks,ConsumedEnergy,MaxDiskRead,\
                       AveDiskRead,MaxDiskWrite,AveDiskWrite,NodeList,TRESUsageInTot";

pub(super) fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let Some(given) = given("sstat", words, false)? else { return Ok(ExitCode::SUCCESS) };
    if given.has("helpformat") {
        print(&names(COLUMNS.split(',')))?;
        return Ok(ExitCode::SUCCESS);
    }
    let named = NamedJob::list(given.all("jobs")).map_err(anyhow::Error::msg)?;
    if named.is_empty() {
        bail!("You didn't give me any jobs to stat.");
    }
    let format = match (given.value("format").or(given.value("fields")), given.has("pidformat")) {
        (Some(format), _) => format.to_owned(),
        (None, true) => "JobID,NodeList".to_owned(),
        (None, false) => COLUMNS.to_owned(),
    };
    let columns = accounting_columns(&format).map_err(anyhow::Error::msg)?;
    let found = jobs::named(&client()?, &named).map_err(|error| refused("slurm_load_jobs error", error))?;
    let running: Vec<_> = found.iter().filter(|job| job.phase.ended().is_none()).collect();
    for one in named.iter().filter(|one| !running.iter().any(|job| one.admits(job))) {
        note!("sstat: error: couldn't get steps for job {}", one.job);
    }
    let host = host();
    let is_parsable = given.has("parsable") || given.has("parsable2");
    let line = |cells: Vec<(String, isize)>| {
        if is_parsable {
            let cells: Vec<String> = cells.into_iter().map(|(text, _)| text).collect();
            cells.join("|") + if given.has("parsable") { "|\n" } else { "\n" }
        } else {
            cells.into_iter().map(|(text, width)| cell(&text, width) + " ").collect::<String>() + "\n"
        }
    };
    let mut text = String::new();
    if !given.has("noheader") {
        text += &line(columns.iter().map(|(column, width)| (column.name.to_owned(), *width)).collect());
        if !is_parsable {
            text +=
                &line(columns.iter().map(|(_, width)| ("-".repeat(width.unsigned_abs()), *width)).collect());
        }
    }
    for job in running {
        let of = Facts { job: Cow::Borrowed(job), now: Timestamp::now(), host: &host, indexes: None };
        let wanted = named.iter().filter(|one| one.admits(job)).find_map(|one| one.step.as_deref());
        let is_wanted = |part: &Part| wanted.is_none_or(|step| part.suffix()[1..] == *step);
        let mut running: Vec<Part> = running_steps(&of).filter(is_wanted).collect();
        if !given.has("allsteps") {
            // Steps of srun come before the script.
            running.sort_by_key(|part| matches!(part, Part::Script));
            running.truncate(1);
        }
        if let Some(step) = wanted.filter(|_| running.is_empty()) {
            note!("sstat: error: StepId={}.{step} not found running.", of.id());
        }
        for part in running {
            text +=
                &line(columns.iter().map(|(column, width)| ((column.value)(&of, part), *width)).collect());
        }
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}
