//! `miserly forecast`: the forecasts of a log, audited.

use anyhow::Context;
use miserly_questions::forecast;
use miserly_report::{AtomicFile, forecast_page};
use miserly_workload::Estimates;

use crate::args::ForecastArgs;
use crate::commands::live::forecast as ask_daemon;
use crate::output::{print, print_json, refuse_the_input_itself};
use crate::page::{check_page, provenance, write_page};
use crate::progress::Progress;
use crate::run_options::prepare;

pub(crate) fn run(args: &ForecastArgs) -> anyhow::Result<()> {
    let Some(policy) = &args.policy else { return ask_daemon(args) };
    if let Some(path) = &args.jobs {
        refuse_the_input_itself(&args.trace, "--jobs", path)?;
    }
    if let Some(path) = &args.report {
        check_page(path)?;
    }
    let setup = prepare(&args.trace, &args.run, Estimates::default())?;
    let setup = setup.with_checksum(args.report.is_some())?;
    let progress = Progress::new(setup.survey.records);
    let answer = forecast(&setup, policy, args.draws, &mut |jobs| progress.add(jobs))?;
    drop(progress);
    if let Some(path) = &args.jobs {
        let written = AtomicFile::write(path, |output| answer.write_jobs(output));
        written.with_context(|| format!("--jobs {}", path.display()))?;
    }
    if let Some(path) = &args.report {
        let page =
            forecast_page(&answer.document, &answer.machine, setup.dates().as_ref(), provenance(&setup));
        write_page(path, &page)?;
    }
    if args.json {
        return print_json(&answer.document);
    }
    print(&answer.table(args.table.style()))
}
