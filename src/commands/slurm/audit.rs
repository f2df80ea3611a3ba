//! `miserly slurm audit`: forecasts against the starts that followed.

use std::fs;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::thread::park_timeout;
use std::time::Duration;

use anyhow::Context;
use miserly_forecast::check_policy;
use miserly_report::AtomicFile;
use miserly_run::Stopwatch;
use miserly_slurm::{Audit, AuditSummary, Calibration, Cluster, Limits, Observed, Poller, Record};

use super::signals::{end_at_signal, is_signalled};
use super::{counted, learned, seconds, warn, warn_of_preemption};
use crate::args::{FutureArgs, SlurmAuditArgs};
use crate::failure::INTERRUPTED;
use crate::output::{print, print_json};

pub(super) fn audit(args: &SlurmAuditArgs) -> anyhow::Result<()> {
    let slurm = args.cluster.slurm();
    let FutureArgs { policy, history, draws, calibrate } = &args.futures;
    policy.as_ref().map_or(Ok(()), check_policy)?;
    let calibration = calibration(calibrate)?;
    let mut audit = Audit::new(learned(&slurm, *history).unwrap_or_default(), calibration);
    let mut poller = Poller::new(slurm.clone());
    let starts = |jobs: &[String]| Cluster::starts(&slurm, jobs);
    let observe = |cluster: &Cluster| Observed::read(&slurm, cluster);
    let clock = Stopwatch::start();
    let shown = std::io::stderr().is_terminal();
    poller.poll()?;
    if let Some(cluster) = poller.cluster() {
        warn(cluster.configuration.untested_version());
        let limits = Limits::read(&slurm, cluster).unwrap_or_default();
        warn_of_preemption(cluster, &limits.qualities);
    }
    let write = |rows: &[Record]| args.jobs.as_ref().map_or(Ok(()), |path| write_rows(path, rows));
    write(&[])?;
    end_at_signal();
    loop {
        if let Some(cluster) = poller.cluster()
            && audit.follow(cluster, policy.as_ref(), &observe, *draws, &starts)
        {
            write(&audit.records(cluster.configuration.now))?;
        }
        if shown {
            eprint!("\r{} audited, {} left ", audit.audited(), seconds(left(args.period, &clock)));
        }
        if is_signalled() || clock.elapsed() + poller.pause() > args.period {
            break;
        }
        park_timeout(poller.pause());
        // The signal may have ended the commands of this reading too.
        if let Err(error) = poller.poll()
            && !is_signalled()
        {
            note!("warning: {error}");
        }
    }
    if shown {
        eprintln!();
    }
    if let Some(cluster) = poller.cluster() {
        write(&audit.records(cluster.configuration.now))?;
    }
    let summary = audit.summary();
    if args.json {
        print_json(&summary)?;
    } else {
        print(&audit_text(&summary))?;
    }
    if is_signalled() {
        std::process::exit(INTERRUPTED);
    }
    Ok(())
}

/// Returns the calibration by the records of files.
pub(super) fn calibration(paths: &[PathBuf]) -> anyhow::Result<Calibration> {
    let mut records = vec![];
    for path in paths {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        records.extend(Record::read(&text).with_context(|| path.display().to_string())?);
    }
    Ok(Calibration::new(&records))
}

fn left(period: Duration, clock: &Stopwatch) -> i64 {
    i64::try_from(period.saturating_sub(clock.elapsed()).as_secs()).unwrap_or(i64::MAX)
}

fn write_rows(path: &Path, rows: &[Record]) -> anyhow::Result<()> {
    let written = AtomicFile::write(path, |output| {
        writeln!(output, "{}", Record::header())?;
        rows.iter().try_for_each(|row| writeln!(output, "{row}"))
    });
    written.with_context(|| format!("cannot write {}", path.display()))
}

fn audit_text(summary: &AuditSummary) -> String {
    let AuditSummary {
        jobs,
        simulated,
        calibrated,
        kept,
        mean_error,
        with_slurm,
        mean_error_of_these,
        slurm_mean_error,
    } = summary;
    if *jobs == 0 {
        return "no job with a forecast has started in this time\n".to_owned();
    }
    let shares = |kept: &[u64; 3], of: u64| kept.map(|kept| 100.0 * kept as f64 / of as f64);
    let time =
        |seconds: &Option<f64>| seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.0} s"));
    let [by_50, by_80, by_95] = shares(simulated, *jobs);
    let mut text = format!(
        "{} audited\nstarted by the simulated median: {by_50:.1} %; by 80 % of the futures: {by_80:.1} %; by 95 %: {by_95:.1} %\n",
        counted(*jobs, "job"),
    );
    if *calibrated > 0 {
        let [by_50, by_80, by_95] = shares(kept, *calibrated);
        text += &format!(
            "of {} with calibrated bounds, started by the median: {by_50:.1} %; by the bound of 80 %: {by_80:.1} %; of 95 %: {by_95:.1} %\n",
            counted(*calibrated, "job"),
        );
    }
    text += &format!("mean distance of the median from the start: {}\n", time(mean_error));
    if *with_slurm > 0 {
        text += &format!(
            "of the {} for which Slurm expected a start: median {}, Slurm {}\n",
            counted(*with_slurm, "job"),
            time(mean_error_of_these),
            time(slurm_mean_error)
        );
    }
    text
}
