//! Predictions when the rules of a queue change.

use miserly_core::{
    Driver, EventOrder, JobId, Ledger, Machine, Prediction, Request, Resources, Round, Span, Submission, Time,
};
use miserly_policies::PolicySpec;

const HOUR: Span = Span::from_ticks(3_600_000_000);

/// Returns a driver of a policy over a ledger.
fn driver(policy: &str, ledger: Ledger) -> Driver {
    let policy = policy.parse::<PolicySpec>().unwrap().build(ledger.machine(), 0).unwrap();
    Driver::new(ledger, policy, EventOrder::Batched)
}

/// Returns the spans for which the running and the waiting job are planned, under one policy and then under another one.
fn planned(before: &str, after: &str) -> [Vec<Span>; 2] {
    let jobs = [JobId(0), JobId(1)];
    let submitted = jobs.map(|job| {
        let request = Request::new(job.0.into(), Time::ZERO, HOUR, Resources::cpus(2));
        Submission { job, request }
    });
    let mut first = driver(before, Ledger::new(Machine::plain(2)));
    let mut round = Round { submitted: submitted.into(), ..Round::default() };
    first.round(Time::ZERO, &mut round, &mut vec![]).unwrap();
    let of = |ledger: &Ledger| {
        assert_eq!((ledger.running_count(), ledger.waiting_count()), (1, 1));
        jobs.map(|job| ledger.entry(job).prediction.map_or(HOUR, |Prediction { planned, .. }| planned)).into()
    };
    let mut second = driver(after, first.ledger().clone());
    second.round(Time::from_ticks(1), &mut Round::default(), &mut vec![]).unwrap();
    [of(first.ledger()), of(second.ledger())]
}

#[test]
fn other_rules_plan_the_jobs_again() {
    let second = Span::from_ticks(1_000_000);
    let [predicted, requested, both, guarded] =
        ["predicted", "requested", "both", "guarded"].map(|book| format!("easy(predict=0, book={book})"));
    let spans = [
        (&predicted, [second, second]),
        (&requested, [HOUR, HOUR]),
        (&both, [second, HOUR]),
        (&guarded, [HOUR, second]),
    ];
    for (before, first) in spans {
        for (after, then) in spans {
            assert_eq!(planned(before, after), [first.to_vec(), then.to_vec()], "{before}, {after}");
        }
    }
}

#[test]
fn a_policy_without_predictions_drops_them() {
    let [_, then] = planned("easy(predict=0, book=guarded)", "easy");
    assert_eq!(then, [HOUR, HOUR]);
    // And with predictions, jobs that waited without are planned by them.
    let [_, then] = planned("easy", "easy(predict=0, book=guarded)");
    assert_eq!(then, [HOUR, Span::from_ticks(1_000_000)]);
}
