//! The benchmark against its published tables, and against a slow second simulator.

mod gate;

use std::collections::BTreeSet;
use std::sync::Arc;

use miserly_gym::published::{LOGS, PUBLISHED, WINDOW_JOBS, WINDOWS};
use miserly_gym::{Episode, Job, JobLog, Order, schedule_with};
use miserly_policies::backfill::{BackfillRules, ReservationDepth, backfill};
use miserly_policies::{Needs, Order as QueueOrder, PolicySpec};
use miserly_test_support::Traces;
use miserly_workload::Trace;
use proptest::prelude::*;

/// Returns the log of that file.
fn read(traces: &Traces, file: &str) -> Option<Arc<JobLog>> {
    let path = traces.log(file.trim_end_matches(".swf"))?;
    let trace = Trace::open(&path).expect("a log");
    Some(Arc::new(JobLog::read(&trace).expect("a log of the benchmark")))
}

#[test]
fn all_but_one_of_the_published_cells_are_equal() {
    let Some(traces) = Traces::find() else { return };
    let mut different = Vec::new();
    for row in &PUBLISHED {
        let file = LOGS.iter().find(|log| log.name == row.log).expect("a log").file;
        let Some(log) = read(&traces, file) else { return };
        for (column, order) in Order::ALL[..5].iter().enumerate() {
            let episodes: Vec<Episode> = WINDOWS
                .iter()
                .map(|first| order.schedule(&log, *first..first + WINDOW_JOBS, row.backfills))
                .collect();
            let mean = |of: fn(&Episode) -> f64| episodes.iter().map(of).sum::<f64>() / episodes.len() as f64;
            let ours = [
                (
                    format!("{:.2}", mean(Episode::mean_bounded_slowdown)),
                    format!("{:.2}", row.slowdown[column]),
                ),
                (format!("{:.3}", mean(Episode::utilization)), format!("{:.3}", row.utilization[column])),
            ];
            let unlike = ours.into_iter().filter(|(ours, published)| ours != published);
            different.extend(unlike.map(|cell| (row.log, row.backfills, order.name(), cell)));
        }
    }
    assert_eq!(different, [("SDSC-SP2", true, "SJF", ("0.660".to_owned(), "0.661".to_owned()))]);
}

#[test]
fn easy_has_the_slowdowns_that_an_independent_program_has() {
    let Some(traces) = Traces::find() else { return };
    let policy = "easy".parse().expect("a policy");
    for (row, expected) in LOGS.iter().zip(["271.40", "929.69", "84.69", "222.18"]) {
        let Some(log) = read(&traces, row.file) else { return };
        let window = |first: &usize| {
            schedule_with(&policy, &log, *first..first + WINDOW_JOBS).expect("a run").mean_bounded_slowdown()
        };
        let mean = WINDOWS.iter().map(window).sum::<f64>() / WINDOWS.len() as f64;
        assert_eq!(format!("{mean:.2}"), expected, "{}", row.name);
    }
}

/// The starts of a window, second by second: each second ends jobs, takes arrivals, and starts what the rules let start.
///
/// It shares nothing with the product but the type of a job. It takes no arrival before the committed job started at an
/// instant, and no two jobs may arrive or end in one second.
fn starts_second_by_second(jobs: &[Job], procs: u32, key: impl Fn(&Job) -> i64, backfills: bool) -> Vec<i64> {
    let mut starts = vec![None; jobs.len()];
    let (mut committed, mut shadow) = (None, 0);
    for now in jobs[0].submit.. {
        if starts.iter().all(Option::is_some) {
            break;
        }
        loop {
            let running =
                |index: &usize| starts[*index].is_some_and(|start: i64| start + jobs[*index].runtime > now);
            let mut free =
                procs - (0..jobs.len()).filter(running).map(|index| jobs[index].procs).sum::<u32>();
            let mut waiting: Vec<usize> = (0..jobs.len())
                .filter(|index| starts[*index].is_none() && jobs[*index].submit <= now)
                .collect();
            if committed.is_none() {
                committed = waiting.iter().copied().min_by_key(|index| (key(&jobs[*index]), *index));
                let Some(chosen) = committed else { break };
                let mut ends: Vec<(i64, u32)> = (0..jobs.len())
                    .filter(running)
                    .map(|index| (starts[index].expect("a start") + jobs[index].estimate, jobs[index].procs))
                    .collect();
                ends.sort_unstable();
                let mut then = free;
                shadow = now;
                for (end, freed) in ends {
                    if then >= jobs[chosen].procs {
                        break;
                    }
                    then += freed;
                    shadow = end;
                }
            }
            let Some(chosen) = committed else { break };
            if jobs[chosen].procs <= free {
                starts[chosen] = Some(now);
                committed = None;
                continue;
            }
            if backfills {
                waiting.sort_by_key(|index| (jobs[*index].submit, *index));
                for index in waiting {
                    if now + jobs[index].estimate < shadow && jobs[index].procs <= free {
                        free -= jobs[index].procs;
                        starts[index] = Some(now);
                    }
                }
            }
            break;
        }
    }
    starts.into_iter().map(|start| start.expect("every job starts")).collect()
}

prop_compose! {
    /// Jobs none of which arrives when another one arrives or ends.
    fn logs()(rows in prop::collection::vec((1_i64..30, 1_i64..40, 0_i64..30, 1_u32..=8), 1..25)) -> Vec<Job> {
        let count = i64::try_from(rows.len()).expect("a few");
        let mut submit = 0;
        rows.into_iter().zip(1..).map(|((gap, runtime, longer, procs), number)| {
            submit += gap * (2 * count + 1);
            // The instants of a job have a residue of their own.
            let runtime = runtime * (2 * count + 1);
            let estimate = runtime + longer * (2 * count + 1);
            Job { number, submit: submit + number, runtime, estimate, procs, labels: [-1; 4] }
        }).collect()
    }
}

proptest! {
    #[test]
    fn values_computed_before_are_the_order_that_they_write_down(jobs in logs()) {
        let values = jobs.iter().map(|job| (job.number, job.estimate as f64)).collect();
        let order = QueueOrder::by_values(values);
        let given = PolicySpec::from_fn("given", Needs::NONE, move |machine, _| {
            backfill("given", machine, BackfillRules::recomputed(order.clone(), ReservationDepth::First(1)))
        });
        let count = jobs.len();
        let log = JobLog { name: "made".into(), longest: 1, greatest: [1; 4], procs: 8, jobs };
        let starts = |policy: &PolicySpec| -> Vec<f64> {
            let scheduled = schedule_with(policy, &log, 0..count).expect("a run");
            scheduled.jobs.iter().map(|(_, start)| *start).collect()
        };
        prop_assert_eq!(starts(&given), starts(&"easy(order=shortest)".parse().expect("a policy")));
    }

    #[test]
    fn each_job_starts_as_second_by_second(jobs in logs(), backfills: bool, shortest: bool) {
        let key = |job: &Job| if shortest { job.estimate } else { job.submit };
        let expected = starts_second_by_second(&jobs, 8, key, backfills);
        // Where two events share a second, their order decides, and the slow simulator has none.
        let ends = jobs.iter().zip(&expected).map(|(job, start)| start + job.runtime);
        let events: BTreeSet<i64> = ends.chain(jobs.iter().map(|job| job.submit)).collect();
        prop_assume!(events.len() == 2 * jobs.len());
        let log = JobLog { name: "made".into(), longest: 1, greatest: [1; 4], procs: 8, jobs };
        let count = log.jobs.len();
        let mut episode = Episode::new(Arc::new(log), 0..count, backfills);
        loop {
            episode.sort_by_key(|job, _| (key(job), job.number));
            if !episode.commit(0) {
                break;
            }
        }
        let starts: Vec<i64> = episode.started().map(|(_, start)| start).collect();
        prop_assert_eq!(starts, expected);
    }
}
