//! Part 3: five copies started together: a plain batch, promised windows, and opportunistic work (Figure 7).

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use miserly_api::model::{JobView, Submission};
use miserly_kernels::Kernel;

use crate::bench::{Bench, Conditions, Placement, seconds_between};
use crate::checks::Mechanism;
use crate::error::MeasureError;
use crate::interactive::{COPIES, CopyTimes};
use crate::plan::Plan;
use crate::program::Record;
use crate::simulated::{SimulatedTimes, simulate};
use crate::statistics::Sample;

/// The time limit of a copy, seconds.
pub(crate) const LIMIT: f64 = 60.0;

/// Time between two looks at the copies of a plain batch.
const PAUSE: Duration = Duration::from_millis(2);

miserly_core::listed_enum! {
    /// How the copies are scheduled.
    pub(crate) enum Batch {
        /// In order, as many at a time as there are processors for.
        Plain "plain batch",
        /// Jobs of Miserly, in their windows only.
        Promised "promised windows only",
        /// Jobs of Miserly, also on idle processors before their windows.
        Opportunistic "promised and opportunistic",
    }
}

/// The times of a copy, seconds since the submission of the first one: a sample over the repetitions.
#[derive(Debug, Default)]
pub(crate) struct CopyDay {
    pub(crate) submitted: Sample,
    pub(crate) promised: Sample,
    pub(crate) start: Sample,
    pub(crate) end: Sample,
}

/// The result of the part.
#[derive(Debug, Default)]
pub(crate) struct Throughput {
    pub(crate) times: BTreeMap<(Kernel, Batch), CopyTimes>,
    /// The days of the copies under the daemon.
    pub(crate) days: BTreeMap<(Kernel, Batch), Vec<CopyDay>>,
    /// The same days simulated.
    pub(crate) simulated: BTreeMap<(Kernel, Batch), Vec<SimulatedTimes>>,
    /// The run times in promised windows, from which the simulation starts, seconds.
    pub(crate) alone: BTreeMap<Kernel, Sample>,
}

/// Measures the part, and simulates it.
pub(crate) fn measure(bench: &mut Bench<'_>) -> Result<Throughput, MeasureError> {
    let mut result = Throughput::default();
    let plan = Plan::new(bench.options.seed, bench.options.repeats(), &Kernel::ALL, &Batch::ALL);
    for (done, (repeat, kernel, batch)) in plan.runs.iter().copied().enumerate() {
        bench.note(&format!("3-throughput: run {} of {}", done + 1, plan.runs.len()));
        bench.next_run();
        let variant = batch.name();
        let conditions = Conditions { part: "3-throughput", variant, kernel, load: 0, repeat };
        let (since, records) = match batch {
            Batch::Plain => plain(bench, kernel)?,
            Batch::Promised | Batch::Opportunistic => promised(bench, &mut result, kernel, batch)?,
        };
        for record in &records {
            bench.keep(&conditions, record);
        }
        if batch == Batch::Promised {
            let alone = result.alone.entry(kernel).or_default();
            for record in &records {
                alone.push(record.seconds);
            }
        }
        result.times.entry((kernel, batch)).or_default().push(since, &records);
    }
    simulate_days(bench, &mut result)?;
    Ok(result)
}

/// Runs the copies in order. The next one starts when its processors are free.
fn plain(bench: &mut Bench<'_>, kernel: Kernel) -> Result<(i64, Vec<Record>), MeasureError> {
    let threads = bench.site.threads();
    let most = bench.site.all.len() / threads;
    let since = Timestamp::now().as_microsecond();
    let (mut waiting, mut running, mut records) = (COPIES, vec![], vec![]);
    while records.len() < COPIES {
        while waiting > 0 && running.len() < most {
            running.push(bench.start(kernel, threads, Placement::default())?);
            waiting -= 1;
        }
        let mut left = vec![];
        for one in running {
            match bench.ended(&one)? {
                Some(record) => records.push(record),
                None => left.push(one),
            }
        }
        running = left;
        thread::sleep(PAUSE);
    }
    Ok((since, records))
}

/// Submits the copies together, and waits for their ends.
fn promised(
    bench: &mut Bench<'_>,
    result: &mut Throughput,
    kernel: Kernel,
    batch: Batch,
) -> Result<(i64, Vec<Record>), MeasureError> {
    let early = batch == Batch::Opportunistic;
    let daemon = bench.daemon(bench.site.threads())?;
    let copy = Submission { no_opportunistic: !early, ..bench.job(&daemon, kernel, LIMIT) };
    let since = Timestamp::now().as_microsecond();
    let numbers = (0..COPIES).map(|_| daemon.submit(&copy)).collect::<Result<Vec<_>, _>>()?;
    let mut ended = vec![];
    for number in numbers {
        ended.push(bench.finish_job(&daemon, kernel, number, early)?);
    }
    daemon.stop()?;
    if early && miserly_launch::leaves_idle() {
        let count = ended.iter().filter(|(job, record)| began_before_its_window(job, record)).count();
        bench.checks.add(Mechanism::EarlyCopies, count > 0, || format!("{}: no copy", kernel.as_str()));
    }
    let days = result.days.entry((kernel, batch)).or_default();
    days.resize_with(COPIES, CopyDay::default);
    for (day, (job, record)) in days.iter_mut().zip(&ended) {
        day.submitted.push(seconds_between(since, job.submitted.as_microsecond()).max(0.0));
        let promised = job.promise.as_ref().map(|promise| promise.promised.start.as_microsecond());
        if let Some(start) = promised {
            day.promised.push(seconds_between(since, start));
        }
        day.start.push(seconds_between(since, record.begin));
        day.end.push(seconds_between(since, record.end));
    }
    Ok((since, ended.into_iter().map(|(_, record)| record).collect()))
}

fn began_before_its_window(job: &JobView, record: &Record) -> bool {
    let window = job.promise.as_ref().map(|promise| promise.now.unwrap_or(promise.promised));
    window.is_some_and(|window| record.begin < window.start.as_microsecond())
}

/// Simulates the days with the submissions measured, and one run time for all copies of a kernel.
fn simulate_days(bench: &Bench<'_>, result: &mut Throughput) -> Result<(), MeasureError> {
    for ((kernel, batch), days) in &result.days {
        let Some(alone) = result.alone.get(kernel).and_then(Sample::mean) else { continue };
        let submitted: Vec<f64> = days.iter().map(|day| day.submitted.mean().unwrap_or(0.0)).collect();
        let times = simulate(&bench.site, &submitted, alone, LIMIT, *batch == Batch::Opportunistic)?;
        result.simulated.insert((*kernel, *batch), times);
    }
    Ok(())
}
