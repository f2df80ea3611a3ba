//! A whole measurement.

use std::io::Write;

use miserly_experiments::write_page;
use miserly_report::AtomicFile;
use miserly_report::page::Page;

use crate::bench::Bench;
use crate::error::MeasureError;
use crate::options::{Options, Site};
use crate::present::{self, Circumstances, Results};
use crate::{interactive, latency, load, pools, throughput};

/// A measurement that was made.
#[derive(Debug)]
pub struct Measured {
    /// The tables, charts and claims.
    pub page: Page,
    /// The mechanisms that failed, each an error of the program. Timings are none of them.
    pub failures: Vec<String>,
}

/// Measures, and writes the page and `runs.csv` into the folder of the results.
///
/// `note` receives the progress, a short line at a time.
///
/// # Errors
/// If the machine has one processor, or a process, the daemon or the folder fails.
pub fn measure(options: &Options, note: &dyn Fn(&str)) -> Result<Measured, MeasureError> {
    options.check()?;
    let cpus = miserly_launch::usable_cpus().map_err(MeasureError::io("the processors of this machine"))?;
    let site = Site::new(cpus, options.threads)?;
    let mut bench = Bench::new(options, site, note)?;
    let circumstances = Circumstances::find(&mut bench)?;
    let results = Results {
        load: options.has("1-load").then(|| load::measure(&mut bench)).transpose()?,
        interactive: options.has("2-interactive").then(|| interactive::measure(&mut bench)).transpose()?,
        throughput: options.has("3-throughput").then(|| throughput::measure(&mut bench)).transpose()?,
        latency: options.has("4-latency").then(|| latency::measure(&mut bench)).transpose()?,
        pools: options.has("5-pools").then(|| pools::measure(&mut bench)).transpose()?,
    };
    let page = present::page(&bench, &circumstances, &results);
    let runs = bench.csv()?;
    write_page(&options.folder, &page)?;
    AtomicFile::write(&options.folder.join("runs.csv"), |output| output.write_all(&runs))
        .map_err(MeasureError::io("runs.csv"))?;
    Ok(Measured { page, failures: bench.checks.failures() })
}
