//! What all parts of a measurement use: processes, the daemon, checks and rows.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use jiff::Timestamp;
use miserly_api::model::{JobView, Submission};
use miserly_kernels::Kernel;
use serde::Serialize;

use crate::checks::{Checks, Mechanism};
use crate::daemon::{Daemon, Settings, read_record};
use crate::disturbance::Disturbance;
use crate::error::MeasureError;
use crate::guard;
use crate::options::{Options, Site};
use crate::processes::{self, ChildId, Scope};
use crate::program::{Record, exact};

/// The time limit of a job that must not reach it, seconds.
pub(crate) const LONG: f64 = 900.0;

/// A measurement that goes on.
pub(crate) struct Bench<'a> {
    pub(crate) options: &'a Options,
    pub(crate) site: Site,
    pub(crate) checks: Checks,
    pub(crate) rows: Vec<Row>,
    scope: Scope,
    since: Timestamp,
    /// The exact figures of each kernel.
    expected: Vec<(Kernel, Vec<String>)>,
    files: u32,
    /// The load of other programs before each run, in order.
    disturbances: Vec<Disturbance>,
    note: &'a dyn Fn(&str),
}

/// The conditions of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Conditions {
    pub(crate) part: &'static str,
    pub(crate) variant: &'static str,
    pub(crate) kernel: Kernel,
    /// Burners of processor time.
    pub(crate) load: usize,
    /// The repetition, from 0.
    pub(crate) repeat: u32,
}

/// A run of a kernel, as a line of `runs.csv`. Times are in seconds since the start of the measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Row {
    run: usize,
    part: &'static str,
    kernel: &'static str,
    variant: &'static str,
    burners: usize,
    repeat: u32,
    begin: f64,
    end: f64,
    seconds: f64,
    /// Share of its processors that it got.
    received: f64,
    /// Shares of all processors before the run.
    others_before: f64,
    steal_before: f64,
    load_average: f64,
}

/// Where and how a kernel runs without the daemon.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Placement<'a> {
    /// The processors; all if there is none.
    pub(crate) cpus: &'a [u32],
    pub(crate) nice: Option<i32>,
}

/// A kernel that runs without the daemon.
#[derive(Debug)]
pub(crate) struct Running {
    kernel: Kernel,
    child: ChildId,
    output: PathBuf,
}

impl Burners {
    /// Returns the leaders of their sessions.
    pub(crate) fn sessions(&self) -> Result<Vec<u32>, MeasureError> {
        let pids = self.0.iter().map(|child| processes::pid(*child));
        pids.collect::<Result<_, _>>().map_err(MeasureError::io("a burner"))
    }
}

/// Programs that run until this ends: burners of processor time.
pub(crate) struct Burners(Vec<ChildId>);

impl Drop for Burners {
    fn drop(&mut self) {
        for child in self.0.drain(..) {
            // The end of the measurement kills what is left.
            let _ = processes::kill(child);
        }
    }
}

impl<'a> Bench<'a> {
    pub(crate) fn new(
        options: &'a Options,
        site: Site,
        note: &'a dyn Fn(&str),
    ) -> Result<Bench<'a>, MeasureError> {
        let scope = Scope::new().map_err(MeasureError::io("a temporary folder"))?;
        let own_group = options.cgroup.as_deref().filter(|group| Scope::own_group(group));
        guard::start(&options.exe, &scope.folder, own_group).map_err(MeasureError::io("the guard"))?;
        let expected =
            |kernel: Kernel| (kernel, kernel.run(options.rounds(kernel), 1).figures.map(exact).to_vec());
        let expected = Kernel::ALL.map(expected).to_vec();
        let (checks, rows, since) = (Checks::default(), vec![], Timestamp::now());
        Ok(Bench {
            options,
            site,
            checks,
            rows,
            scope,
            since,
            expected,
            files: 0,
            disturbances: vec![],
            note,
        })
    }

    /// Reports progress.
    pub(crate) fn note(&self, text: &str) {
        (self.note)(text);
    }

    /// Starts a daemon with so many processors for jobs. Its state is new.
    pub(crate) fn daemon(&mut self, cpus: usize) -> Result<Daemon, MeasureError> {
        let cgroup = self.options.cgroup.as_deref();
        self.daemon_with(&Settings { cpus, cgroup, priority: "auto" })
    }

    /// Starts a daemon with other settings.
    pub(crate) fn daemon_with(&mut self, settings: &Settings<'_>) -> Result<Daemon, MeasureError> {
        let folder = self.new_path("daemon");
        Daemon::start(&self.options.exe, &folder, settings)
    }

    pub(crate) fn new_path(&mut self, name: &str) -> PathBuf {
        self.files += 1;
        self.scope.folder.join(format!("{name}-{}", self.files))
    }

    /// Starts a kernel without the daemon, in a session of its own.
    pub(crate) fn start(
        &mut self,
        kernel: Kernel,
        threads: usize,
        placement: Placement<'_>,
    ) -> Result<Running, MeasureError> {
        let output = self.new_path("kernel");
        let file = File::create(&output).map_err(MeasureError::io(output.display().to_string()))?;
        let mut command = Command::new(&self.options.exe);
        command.args(kernel_arguments(kernel, self.options.rounds(kernel), threads));
        command.args(child_arguments(placement)).stdin(Stdio::null()).stdout(file);
        let child = processes::start(&mut command).map_err(MeasureError::io("a kernel"))?;
        Ok(Running { kernel, child, output })
    }

    /// Returns the record of a kernel that has ended, or `None` if it runs.
    pub(crate) fn ended(&mut self, running: &Running) -> Result<Option<Record>, MeasureError> {
        let status = processes::ended(running.child).map_err(MeasureError::io("a kernel"))?;
        status.map(|status| self.finished(running, status.success())).transpose()
    }

    /// Waits for the end of a kernel.
    pub(crate) fn finish(&mut self, running: &Running) -> Result<Record, MeasureError> {
        let status = processes::wait(running.child).map_err(MeasureError::io("a kernel"))?;
        self.finished(running, status.success())
    }

    fn finished(&mut self, running: &Running, success: bool) -> Result<Record, MeasureError> {
        if !success {
            return Err(MeasureError::Kernel(format!("{} failed", running.kernel.as_str())));
        }
        let record = read_record(&running.output)?;
        self.check_result(running.kernel, &record);
        Ok(record)
    }

    /// Starts burners on some processors, or on all if there is none.
    pub(crate) fn burners(&self, count: usize, cpus: &[u32]) -> Result<Burners, MeasureError> {
        let mut burners = Burners(vec![]);
        for _ in 0..count {
            burners.0.push(self.endless(&["burn"], cpus)?);
        }
        Ok(burners)
    }

    /// Starts a program that holds so many megabytes.
    pub(crate) fn hold(&self, megabytes: u32) -> Result<Burners, MeasureError> {
        Ok(Burners(vec![self.endless(&["hold", "--rounds", &megabytes.to_string()], &[])?]))
    }

    fn endless(&self, arguments: &[&str], cpus: &[u32]) -> Result<ChildId, MeasureError> {
        let mut command = Command::new(&self.options.exe);
        command.arg("kernel").args(arguments).args(child_arguments(Placement { cpus, nice: None }));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        processes::start(&mut command).map_err(MeasureError::io("a burner"))
    }

    /// Returns a job of a kernel, as wide as the pool.
    pub(crate) fn job(&self, daemon: &Daemon, kernel: Kernel, time: f64) -> Submission {
        let threads = self.site.threads();
        let arguments = kernel_arguments(kernel, self.options.rounds(kernel), threads);
        daemon.job(&self.options.exe, arguments, threads, time)
    }

    /// Waits for the end of a job of a kernel, and checks it.
    pub(crate) fn finish_job(
        &mut self,
        daemon: &Daemon,
        kernel: Kernel,
        job: i64,
        early: bool,
    ) -> Result<(JobView, Record), MeasureError> {
        let job = daemon.wait(job)?;
        let record = daemon.record(job.number)?;
        self.checks.add_job(&job, &record, &self.site.pool, early);
        self.check_result(kernel, &record);
        Ok((job, record))
    }

    fn check_result(&mut self, kernel: Kernel, record: &Record) {
        let expected = self.expected.iter().find(|(other, _)| *other == kernel);
        let is_right = record.verified && expected.is_some_and(|(_, figures)| *figures == record.figures);
        let what = || format!("{}: {:?}, not {:?}", kernel.as_str(), record.figures, expected);
        self.checks.add(Mechanism::Results, is_right, what);
    }

    /// Measures the load of other programs. Rows that are kept from now on are of the next run.
    pub(crate) fn next_run(&mut self) {
        let before = Disturbance::measure();
        self.note(&format!("before: {}", before.text()));
        self.disturbances.push(before);
    }

    /// Keeps a kernel of the run for `runs.csv`.
    pub(crate) fn keep(&mut self, conditions: &Conditions, record: &Record) {
        let Conditions { part, variant, kernel, load, repeat } = *conditions;
        let before = self.disturbances.last().copied().unwrap_or_default();
        let threads = if variant == crate::load::WIDE { self.site.all.len() } else { self.site.threads() };
        self.rows.push(Row {
            run: self.disturbances.len(),
            part,
            kernel: kernel.as_str(),
            variant,
            burners: load,
            repeat,
            begin: seconds_between(self.since.as_microsecond(), record.begin),
            end: seconds_between(self.since.as_microsecond(), record.end),
            seconds: record.seconds,
            received: record.received(threads),
            others_before: before.others,
            steal_before: before.steal,
            load_average: before.load,
        });
    }

    /// Returns the rows as CSV.
    pub(crate) fn csv(&self) -> Result<Vec<u8>, MeasureError> {
        let mut writer = csv::Writer::from_writer(vec![]);
        for row in &self.rows {
            writer.serialize(row).map_err(|error| MeasureError::io("runs.csv")(error.into()))?;
        }
        writer.into_inner().map_err(|error| MeasureError::io("runs.csv")(error.into_error()))
    }

    /// Returns the load of other programs before each run.
    pub(crate) fn disturbances(&self) -> &[Disturbance] {
        &self.disturbances
    }
}

/// Returns the seconds from one instant to another, both in microseconds.
pub(crate) fn seconds_between(from: i64, to: i64) -> f64 {
    (to - from) as f64 / 1e6
}

/// Returns the arguments of a kernel.
pub(crate) fn kernel_arguments(kernel: Kernel, rounds: u32, threads: usize) -> Vec<String> {
    ["kernel", kernel.as_str(), "--rounds", &rounds.to_string(), "--threads", &threads.to_string()]
        .map(str::to_owned)
        .to_vec()
}

/// Returns the arguments of a child of this process.
fn child_arguments(placement: Placement<'_>) -> Vec<String> {
    let mut arguments = vec!["--parent".to_owned(), std::process::id().to_string()];
    if !placement.cpus.is_empty() {
        let cpus: Vec<String> = placement.cpus.iter().map(u32::to_string).collect();
        arguments.extend(["--cpus".to_owned(), cpus.join(",")]);
    }
    arguments.extend(placement.nice.map(|nice| format!("--nice={nice}")));
    arguments
}
