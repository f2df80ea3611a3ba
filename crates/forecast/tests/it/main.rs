//! Tests of forecasts on small logs.

mod present;

mod crowded;

mod conformal;

use std::fmt::Write;

use miserly_core::{Ledger, Resources, Span, Time, draw};
use miserly_forecast::{
    ForecastError, Forecasts, LiveQueue, SystemCopy, Variant, added_job, forecast_log, what_if,
};
use miserly_policies::PolicySpec;
use miserly_run::{RunOptions, RunSetup};
use miserly_sim::Grouping;
use miserly_workload::Trace;
use proptest::prelude::*;

/// A job: seconds since the one before, runtime, processors, estimate over runtime, user.
type Row = (u32, u32, u32, u32, u32);

const PROCS: u32 = 8;

fn rows(jobs: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Row>> {
    prop::collection::vec((0..400u32, 1..2000u32, 1..=PROCS, 1..4u32, 1..4u32), jobs)
}

/// Returns the jobs of a ledger at an instant under a policy, which is called again at once.
fn queue_at(policy: &PolicySpec, now: Time, ledger: &Ledger) -> LiveQueue {
    let copy = SystemCopy { now, ledger: ledger.clone(), wake: Some(now + Span::TICK) };
    LiveQueue { policy: policy.clone(), copy }
}

/// Returns the log of these jobs, submitted from `start` on and numbered from `first`.
fn lines(rows: &[Row], mut start: u32, first: usize) -> String {
    let mut text = String::new();
    for (number, (gap, runtime, procs, factor, user)) in rows.iter().enumerate() {
        start += gap;
        let estimate = runtime * factor;
        let number = first + number;
        let fields = format!("{number} {start} -1 {runtime} {procs} -1 -1 {procs} {estimate} -1 1 {user}");
        writeln!(text, "{fields} -1 -1 -1 -1 -1 -1").expect("in memory");
    }
    text
}

fn setup(lines: &str) -> RunSetup {
    let text = format!("; MaxProcs: {PROCS}\n{lines}");
    RunSetup::new(Trace::memory("log", text.into_bytes()), RunOptions::default()).expect("a log")
}

fn forecast(lines: &str, policy: &str) -> Result<Forecasts, ForecastError> {
    forecast_log(&setup(lines), &policy.parse::<PolicySpec>().expect("a policy"), 4, &mut |_| {})
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// No forecast uses what was not known: other jobs in the future leave each forecast of the past as it is.
    #[test]
    fn two_futures_of_one_past(past in rows(1..60), one in rows(0..40), other in rows(0..40)) {
        for policy in ["easy", "conservative", "easy(backfill=shortest, predict=last2)"] {
            let now = past.iter().map(|row| row.0).sum::<u32>() + 1;
            let of = |future: &[Row]| {
                let log = lines(&past, 0, 1) + &lines(future, now, past.len() + 1);
                let mut jobs = forecast(&log, policy).unwrap().jobs;
                jobs.truncate(past.len());
                // The wait is the outcome, which is in the future.
                for job in &mut jobs {
                    (job.wait, job.level) = (None, None);
                }
                jobs
            };
            prop_assert_eq!(of(&one), of(&other), "{}", policy);
        }
    }

    /// A runtime that ends after the submission of a job is not known at that time.
    #[test]
    fn a_later_end_changes_nothing(rows in rows(2..60), longer in 1..500u32) {
        // All jobs run beyond the last submission.
        let span: u32 = rows.iter().map(|row| row.0).sum();
        let log = |more: u32| {
            let late = |row: &Row| (row.0, row.1 + span + more, row.2, 1, row.4);
            let estimated: Vec<Row> = rows.iter().map(late).collect();
            // The estimates are the same.
            let most = 2000 + span + 500;
            let text = lines(&estimated, 0, 1);
            let with_estimate = |line: &str| {
                let mut fields: Vec<String> = line.split(' ').map(str::to_owned).collect();
                fields[8] = most.to_string();
                fields.join(" ")
            };
            text.lines().map(with_estimate).collect::<Vec<_>>().join("\n")
        };
        let bounds = |text: String| {
            let jobs = forecast(&text, "conservative").unwrap().jobs;
            jobs.into_iter().map(|job| (job.number, job.bounds, job.promise, job.bmbp)).collect::<Vec<_>>()
        };
        prop_assert_eq!(bounds(log(0)), bounds(log(longer)));
    }

    #[test]
    fn no_bound_is_later_than_the_promise(rows in rows(1..80)) {
        for job in forecast(&lines(&rows, 0, 1), "conservative").unwrap().jobs {
            prop_assert!(job.bounds.is_sorted());
            prop_assert!(job.promise.is_some_and(|promise| job.bounds.iter().all(|bound| *bound <= promise)));
            prop_assert!(job.wait <= job.promise);
            prop_assert!(!job.at_once || job.wait == Some(0));
        }
    }
}

/// Bounds hold as often as they say on a long log of habits.
#[test]
fn bounds_hold_on_a_log_of_habits() {
    let below = |number: u64, which, limit: u64| {
        u32::try_from(draw(5, i64::try_from(number).unwrap(), which) % limit).unwrap()
    };
    let row = |number: u64| {
        let user = below(number, 0, 6);
        // Each user has a habit, and a request that is far above it.
        let runtime = 200 * (user + 1) + below(number, 1, 100);
        (below(number, 2, 560), runtime, 1 + below(number, 3, 4), 5, user)
    };
    let rows: Vec<Row> = (0..3000).map(row).collect();
    let forecasts = forecast(&lines(&rows, 0, 1), "easy").unwrap();
    let all = forecasts.audit.all();
    assert!(all.jobs > 2500 && all.at_once < all.jobs / 2, "{all:?}");
    for (quantile, least) in all.levels.iter().zip([0.45, 0.75, 0.93]) {
        assert!(quantile.coverage().unwrap() >= least, "{quantile:?}");
    }
    // Closer than the baseline.
    assert!(all.levels[2].pinball().unwrap() < all.bmbp.pinball().unwrap());
}

#[test]
fn the_number_of_threads_does_not_show() {
    let rows: Vec<Row> = (0..300)
        .map(|number| (number * 7 % 50, 100 + number * 31 % 900, 1 + number % 8, 3, number % 5))
        .collect();
    let text = lines(&rows, 0, 1);
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| forecast(&text, "easy").unwrap())
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn unsuitable_policies_are_refused() {
    for (policy, reason) in [
        ("ss", "it suspends jobs"),
        ("gang", "it slices time"),
        ("easy(predict=exact)", "it knows the actual runtimes"),
    ] {
        let error = forecast(&lines(&[(0, 10, 1, 1, 1)], 0, 1), policy).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Without a change there is no difference, in the log and in its copies.
    #[test]
    fn no_change_makes_no_difference(rows in rows(1..60), policy in 0..3usize) {
        let (setup, policy) = (setup(&lines(&rows, 100, 1)), policy_of(policy));
        let same = Variant { setup: &setup, policy: &policy, added: None };
        let result = what_if(same, same, grouping(), 3, &|_| {}).unwrap();
        prop_assert_eq!(result.all.jobs, rows.len() as u64);
        prop_assert_eq!(result.all.longer + result.all.shorter, 0);
        prop_assert!(result.jobs.iter().all(|job| job.range == Some([Span::ZERO; 2])));
    }

    /// No difference is outside its own range, and it is that of the two runs, without the jobs of the warm-up.
    #[test]
    fn a_difference_is_inside_its_range(rows in rows(1..60), policies in (0..3usize, 0..3usize), copies in 1..4_u64, warmup in 0..2000_i64) {
        let mut setup = setup(&lines(&rows, 100, 1));
        let options = RunOptions { warmup: Some(warmup), ..setup.options().clone() };
        setup = setup.with_options(options).unwrap();
        let [before, after] = [policy_of(policies.0), policy_of(policies.1)];
        let variant = |policy| Variant { setup: &setup, policy, added: None };
        let result = what_if(variant(&before), variant(&after), grouping(), copies, &|_| {}).unwrap();
        let groups = result.by_group.values().chain(result.by_user.values()).chain([&result.all]);
        for spread in groups.map(|group| &group.difference).chain([&result.slowdown_difference]) {
            prop_assert!(spread.range().is_none_or(|[low, high]| low <= spread.value && spread.value <= high), "{spread:?}");
        }
        for job in &result.jobs {
            let (difference, [low, high]) = (job.difference().unwrap(), job.range.unwrap());
            prop_assert!(low <= difference && difference <= high, "{job:?}");
        }
        // The groups are those of the run without the change.
        let setup = setup.grouped(&[grouping()]);
        let of_run = setup.outcome(&before, false, &mut []).unwrap().by.remove(&grouping().to_string()).unwrap();
        let of_run = of_run.iter().filter(|group| group.jobs > 0);
        let found = result.by_group.iter().map(|(key, group)| (key.to_string(), group.jobs));
        prop_assert_eq!(found.collect::<Vec<_>>(), of_run.clone().map(|group| (group.group.clone(), group.jobs)).collect::<Vec<_>>());
        for (group, found) in of_run.zip(result.by_group.values()) {
            prop_assert!((found.before - group.metrics.wait.mean.unwrap()).abs() < 1e-6);
        }
        let wait = |policy| setup.outcome(policy, false, &mut []).unwrap().metrics.wait.mean;
        if let (Some(one), Some(other)) = (wait(&before), wait(&after)) {
            prop_assert!((result.all.difference.value - (other - one)).abs() < 1e-6);
        }
    }

    /// A job that is added at an instant leaves each job as it is that started before.
    #[test]
    fn an_added_job_leaves_the_past(rows in rows(1..60), at in 0..8000i64, policy in 0..3usize) {
        let (setup, policy) = (setup(&lines(&rows, 100, 1)), policy_of(policy));
        let at = Time::from_secs(at).unwrap();
        let limit = Span::from_secs(900).unwrap();
        let job = added_job(at, Resources::cpus(u64::from(PROCS) / 2), limit, limit);
        let before = Variant { setup: &setup, policy: &policy, added: None };
        let after = Variant { added: Some(&job), ..before };
        let result = what_if(before, after, grouping(), 0, &|_| {}).unwrap();
        prop_assert_eq!(result.all.jobs, rows.len() as u64);
        prop_assert!(result.added.is_some_and(|added| added.wait.is_some()));
        for job in result.jobs {
            if job.before.is_some_and(|wait| job.submit + wait < at) {
                prop_assert_eq!(job.before, job.after);
            }
        }
    }
}

fn grouping() -> Grouping {
    "runtime:5m+procs:1,4".parse().expect("a grouping")
}

fn policy_of(number: usize) -> PolicySpec {
    ["easy", "conservative", "fcfs"][number].parse().expect("a policy")
}

/// A thread more or less changes nothing.
#[test]
fn a_question_has_one_answer() {
    let rows: Vec<Row> =
        (0..80).map(|n| (n * 37 % 90, 100 + n * 53 % 900, 1 + n % PROCS, 1 + n % 3, 1 + n % 3)).collect();
    let setup = setup(&lines(&rows, 100, 1));
    let [easy, conservative] = [0, 1].map(policy_of);
    let answer = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        let variant = |policy| Variant { setup: &setup, policy, added: None };
        pool.install(|| {
            what_if(variant(&easy), variant(&conservative), grouping(), 5, &|_| {}).expect("an answer")
        })
    };
    let one = answer(1);
    assert!(one.all.longer + one.all.shorter > 0, "{:?}", one.all);
    assert_eq!(one, answer(3));
}
