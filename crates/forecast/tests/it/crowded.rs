//! Coverage of the bounds that a daemon gives on a crowded queue, in simulated time.

use std::collections::BTreeMap;
use std::io;

use miserly_core::{Effect, JobNumber, Span, System, Time, draw};
use miserly_forecast::{Forecaster, Given};
use miserly_policies::PolicySpec;
use miserly_sim::{Finished, Observer};
use miserly_workload::TraceError;

use crate::{Row, lines, queue_at, setup};

/// The futures of a forecast.
const DRAWS: u64 = 20;

/// What a daemon does: it forecasts each job when it begins to wait, and learns from starts and ends.
struct Daemon {
    policy: PolicySpec,
    forecaster: Forecaster,
    /// The time of a job that is no time of its command: launch and cleanup. The forecaster does not see it.
    overhead: Span,
    open: BTreeMap<JobNumber, (Time, Given)>,
    started: Vec<JobNumber>,
    seen: i64,
    /// The outcomes: whether the bounds were calibrated, and whether those of 80 and 95 % held.
    outcomes: Vec<(bool, [bool; 2])>,
}

impl Daemon {
    fn settle(&mut self, now: Time) {
        for job in std::mem::take(&mut self.started) {
            let Some((made, given)) = self.open.remove(&job) else { continue };
            let wait = (now - made).ticks().unsigned_abs().div_ceil(1_000_000);
            self.forecaster.settle(&given, made.secs(), wait);
            self.outcomes.push((given.calibrated, [wait <= given.bounds[1], wait <= given.bounds[2]]));
        }
    }

    /// Returns the share of bounds of 80 and of 95 % that held, in percent, and the number of them.
    fn coverage(&self, calibrated: bool) -> (usize, [usize; 2]) {
        let counted: Vec<[bool; 2]> =
            self.outcomes.iter().filter(|(shown, _)| *shown == calibrated).map(|(_, held)| *held).collect();
        let share =
            |level: usize| counted.iter().filter(|held| held[level]).count() * 100 / counted.len().max(1);
        (counted.len(), [share(0), share(1)])
    }
}

impl Observer for Daemon {
    fn effect(&mut self, _: Time, job: JobNumber, effect: &Effect) {
        if matches!(effect, Effect::Started { .. }) {
            self.started.push(job);
        }
    }

    fn system(&mut self, now: Time, system: &System) {
        self.settle(now);
        let ledger = system.queues()[0].ledger();
        let is_new = |job| ledger.request(job).number > self.seen;
        if !ledger.waiting().any(is_new) {
            return;
        }
        let queue = queue_at(&self.policy, now, ledger);
        for given in self.forecaster.forecasts(&queue, DRAWS, &|_| true) {
            if given.job > self.seen {
                self.open.insert(given.job, (now, given));
            }
        }
        let newest = ledger.waiting().map(|job| ledger.request(job).number).max();
        self.seen = newest.map_or(self.seen, |newest| newest.max(self.seen));
    }

    fn finished(&mut self, job: &Finished) -> io::Result<()> {
        let ran = (job.runtime - self.overhead).max(Span::TICK);
        self.forecaster.learn(&job.request, ran);
        Ok(())
    }
}

/// Returns jobs of minutes, in bursts, with a mean time between two. Users have habits, and request far more time.
fn crowd(jobs: u64, burst: u64, gap: u64) -> Vec<Row> {
    let below = |number: u64, which, limit: u64| {
        u32::try_from(draw(11, i64::try_from(number).expect("a number"), which) % limit).expect("small")
    };
    let row = |number: u64| {
        let user = below(number, 0, 5);
        let runtime = 5 + 12 * user + below(number, 1, 40);
        let gap = if number.is_multiple_of(burst) { gap * burst } else { 0 };
        (u32::try_from(gap).expect("small"), runtime, 1 + below(number, 2, 4), 2 + below(number, 3, 3), user)
    };
    (0..jobs).map(row).collect()
}

/// Follows a crowded queue.
fn follow(policy: &str, [jobs, burst, gap]: [u64; 3], overhead: u32) -> Daemon {
    let setup = setup(&lines(&crowd(jobs, burst, gap), 100, 1));
    let policy: PolicySpec = policy.parse().expect("a policy");
    let mut daemon = Daemon {
        policy: policy.clone(),
        forecaster: Forecaster::default(),
        overhead: Span::from_ticks(i64::from(overhead) * 1_000_000),
        open: BTreeMap::new(),
        started: vec![],
        seen: 0,
        outcomes: vec![],
    };
    let mut simulation = setup.simulation(&policy).expect("a simulation");
    let mut jobs = setup.jobs().expect("jobs").map(|job| Ok::<_, TraceError>(job.expect("a job")));
    simulation.run(&mut jobs, &mut [&mut daemon]).expect("a run");
    daemon
}

/// Checks the bounds that are shown for 700 jobs: how many there are at least, and that they hold.
#[track_caller]
fn check(policy: &str, [burst, gap]: [u64; 2], overhead: u32, least: usize) {
    let daemon = follow(policy, [700, burst, gap], overhead);
    let (shown, [most, nearly_all]) = daemon.coverage(true);
    let (simulated, [_, simulated_held]) = daemon.coverage(false);
    let what = format!("{policy}, {burst} at once each {} s, {overhead} s more", burst * gap);
    println!("{what}: {shown} shown, {most} % and {nearly_all} % held; {simulated} not, {simulated_held} %");
    assert!(shown >= least && shown + simulated > 600, "{what}: {shown} shown, {simulated} not");
    assert!(shown == 0 || nearly_all >= 95, "{what}: {nearly_all} % of {shown} held");
    assert!(shown == 0 || most >= 65, "{what}: {most} % of {shown} held");
}

/// More jobs than the machine can run come one by one, or some at once.
#[test]
fn bounds_that_are_shown_hold_as_often_as_they_say_on_a_crowded_queue() {
    for policy in ["easy", "conservative", "fcfs"] {
        check(policy, [1, 12], 0, 400);
        check(policy, [1, 12], 4, 400);
        check(policy, [10, 15], 4, 400);
        check(policy, [20, 12], 4, 200);
    }
}

/// Jobs of one instant have one future. A few such futures are too few for a bound.
#[test]
fn a_few_bursts_show_no_bound() {
    for policy in ["easy", "conservative", "fcfs"] {
        let (shown, _) = follow(policy, [700, 150, 12], 4).coverage(true);
        assert_eq!(shown, 0, "{policy}");
    }
}
