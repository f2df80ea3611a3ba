//! Tests of the forecasts of waiting jobs, on queues in the middle of a run.

use miserly_core::{Entry, JobId, Ledger, Request, Span, System, Time};
use miserly_forecast::{Forecaster, Given, LEVELS, LiveQueue, SystemCopy, check_policy};
use miserly_policies::PolicySpec;
use miserly_sim::Observer;
use miserly_workload::TraceError;

use crate::{Row, lines, setup};

/// Keeps the state of the system once so many jobs wait.
struct Catch {
    waiting: usize,
    copy: Option<SystemCopy>,
}

impl Observer for Catch {
    fn system(&mut self, now: Time, system: &System) {
        let queue = &system.queues()[0];
        if self.copy.is_none() && queue.ledger().waiting_count() >= self.waiting {
            let ledger = queue.ledger().clone();
            self.copy = Some(SystemCopy { now, ledger, wake: Some(now + Span::TICK) });
        }
    }

    fn has_enough(&self) -> bool {
        self.copy.is_some()
    }
}

/// Returns the queue of a policy at the first instant at which so many jobs wait.
fn queue(policy: &str, waiting: usize) -> LiveQueue {
    let number = u32::try_from(waiting).expect("a small number");
    let rows: Vec<Row> =
        (0..4 * number).map(|n| (n * 37 % 90, 200 + n * 53 % 900, 1 + n % 8, 1 + n % 3, 1 + n % 3)).collect();
    let setup = setup(&lines(&rows, 100, 1));
    let policy: PolicySpec = policy.parse().expect("a policy");
    let mut simulation = setup.simulation(&policy).expect("a simulation");
    let mut catch = Catch { waiting, copy: None };
    let mut jobs = setup.jobs().expect("jobs").map(|job| Ok::<_, TraceError>(job.expect("a job")));
    simulation.run(&mut jobs, &mut [&mut catch]).expect("a run");
    let copy = catch.copy.expect("so many jobs wait");
    LiveQueue { policy, copy }
}

/// A forecaster that knows jobs of each user, which took half of their estimates.
fn forecaster(queue: &LiveQueue) -> Forecaster {
    let mut forecaster = Forecaster::default();
    let ledger = &queue.copy.ledger;
    for job in ledger.waiting().chain(ledger.running()) {
        let request: &Request = ledger.request(job);
        forecaster.learn(request, Span::from_ticks(request.estimate.ticks() / 2));
    }
    forecaster
}

#[test]
fn no_bound_is_later_than_the_promise_and_all_jobs_have_one() {
    for policy in ["conservative", "easy", "fcfs", "easy(backfill=shortest, predict=last2)"] {
        let queue = queue(policy, 12);
        let given = forecaster(&queue).forecasts(&queue, 6, &|_| true);
        let ledger = &queue.copy.ledger;
        assert_eq!(given.len(), ledger.waiting_count(), "{policy}");
        for Given { job, draws, bounds, .. } in &given {
            assert_eq!(draws.len(), 6);
            assert!(bounds.windows(2).all(|pair| pair[0] <= pair[1]) && bounds.len() == LEVELS.len());
            let waits = ledger.waiting().find(|waits| ledger.request(*waits).number == *job);
            if let Some(promise) = waits.and_then(|waits| ledger.entry(waits).promise) {
                let latest = (promise.best - queue.copy.now).as_secs_f64().ceil();
                assert!(bounds[2] as f64 <= latest, "{policy} {job}");
            }
        }
        assert_eq!(given, forecaster(&queue).forecasts(&queue, 6, &|_| true), "{policy}");
    }
}

#[test]
fn a_future_that_is_cut_gives_no_wrong_forecast() {
    let queue = queue("easy", 12);
    let all = forecaster(&queue).forecasts(&queue, 6, &|_| true);
    // Nothing of the third draw is simulated.
    assert_eq!(forecaster(&queue).forecasts(&queue, 6, &|future| future != 3), []);
    let asked = std::cell::Cell::new(0);
    let some = forecaster(&queue).forecasts(&queue, 6, &|future| {
        asked.set(if future == 3 { asked.get() + 1 } else { asked.get() });
        asked.get() < 6
    });
    assert!(some.len() < all.len() && some.iter().all(|given| given.draws.len() == 6), "{}", some.len());
}

#[test]
fn a_queue_compared_with_itself_is_no_different() {
    // Above 300 jobs both run under easy.
    for (policy, waiting) in [("conservative", 12), ("easy", 12), ("conservative", 310)] {
        let queue = queue(policy, waiting);
        let same = forecaster(&queue).compare(&queue, &queue, 3, &|_| true).expect("a comparison");
        assert_eq!((same.jobs.len(), same.not_compared), (queue.copy.ledger.waiting_count(), 0));
        let mean = same.mean.expect("a mean");
        assert_eq!((mean.median, mean.range), (Span::ZERO, [Span::ZERO; 2]), "{policy}");
    }
}

#[test]
fn another_policy_makes_a_difference_and_some_cannot_be_compared() {
    let before = queue("fcfs", 12);
    let after = |policy: &str| LiveQueue { policy: policy.parse().expect("a policy"), ..before.clone() };
    let forecaster = forecaster(&before);
    let compared = forecaster.compare(&before, &after("easy"), 4, &|_| true).expect("a comparison");
    assert!(compared.jobs.iter().any(|job| job.before != job.after), "{compared:?}");
    assert!(compared.mean.is_some_and(|mean| mean.median < Span::ZERO), "{:?}", compared.mean);
    let refused = forecaster.compare(&before, &after("ss"), 4, &|_| true).expect_err("a refusal");
    assert!(refused.to_string().contains("it suspends jobs"), "{refused}");
}

#[test]
fn outcomes_of_others_bring_no_forecast_before_the_earliest_start() {
    let LiveQueue { policy, copy } = queue("conservative", 12);
    let ledger = &copy.ledger;
    let mut entries: Vec<(JobId, Entry)> =
        ledger.running().chain(ledger.waiting()).map(|job| (job, ledger.entry(job).clone())).collect();
    let (_, last) = entries.last_mut().expect("a job");
    let number = last.request.number;
    last.request.constraints.begin = Some(copy.now + Span::from_secs(200_000).expect("a span"));
    (last.promise, last.planned, last.planned_on) = (None, None, None);
    let ledger = Ledger::restored(ledger.machine().clone(), entries).expect("a ledger");
    let queue = LiveQueue { policy, copy: SystemCopy { ledger, ..copy } };
    let mut forecaster = forecaster(&queue);
    let given = |forecaster: &Forecaster| {
        forecaster.forecast(&queue, number, 6, &|_| true).expect("a forecast of the job")
    };
    let before = given(&forecaster);
    // All jobs have started at once.
    for second in 0..200 {
        forecaster.settle(&before, second * 100, 0);
    }
    assert!(given(&forecaster).calibrated && !before.calibrated);
    assert!(given(&forecaster).bounds[0] >= 200_000, "{:?}", given(&forecaster));
}

#[test]
fn a_policy_that_slices_time_has_no_forecasts() {
    let check = |policy: &str| check_policy(&policy.parse().expect("a policy"));
    assert!(check("easy").is_ok() && check("slurm").is_ok());
    let refused = check("gang").expect_err("a refusal").to_string();
    assert!(refused.starts_with("policy gang: no forecasts, because it "), "{refused}");
}
