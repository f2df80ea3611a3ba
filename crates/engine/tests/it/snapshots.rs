//! Snapshots: readers get the same answers as from an engine that loads the durable state.

use miserly_api::model::{Exit, Filter, KilledBy, Phase, Submission};
use miserly_core::draw;
use miserly_engine::{
    Action, Attempt, AttemptOutcome, Caller, DaemonReply, DaemonRequest, Input, MemoryJournal, Snapshot,
};

use super::life::{Life, early, job, seconds, wall};

const IMMEDIATE: &str = "immediate(policy=fcfs-backfill, quantum=30s, after=0s)";

/// Submits, cancels, holds, releases, extends and ends jobs at random.
fn disturb(life: &mut Life, seed: u64, step: i64) {
    let second = step * 3;
    let random = |nth: u64, most: u64| draw(seed, step, nth) % most;
    let number = 1 + i64::try_from(random(1, 1 + step.unsigned_abs())).unwrap();
    let submission = || {
        let some = if random(2, 2) == 0 { early } else { job };
        let begin = (random(3, 4) == 0).then(|| wall(second + 40));
        let after = if random(4, 4) == 0 { vec![1] } else { vec![] };
        Submission { begin, after, ..some(1 + random(5, 2), 5 + u32::try_from(random(6, 60)).unwrap()) }
    };
    let request = match random(0, 9) {
        0 => DaemonRequest::Cancel { job: number, array: false },
        1 => DaemonRequest::Hold { job: number, move_promises: true },
        2 => DaemonRequest::Release(number),
        3 => DaemonRequest::Extend { job: number, by: 5.0 },
        4 => return life.end(second, number),
        _ => DaemonRequest::Submit(submission()),
    };
    // A refusal is as good.
    let _ = life.ask(second, request);
}

/// Returns the answers to all requests that only read, of the snapshot and of an engine that loads the state.
fn answers(life: &Life, second: i64) -> [Vec<String>; 2] {
    let requests = [
        DaemonRequest::Jobs(Filter { all: true, details: true, ..Filter::default() }),
        DaemonRequest::Jobs(Filter { after: Some(2), limit: Some(3), ..Filter::default() }),
        DaemonRequest::Job(3),
        DaemonRequest::Pools,
        DaemonRequest::Status,
        DaemonRequest::Quote(job(2, 30)),
        DaemonRequest::Quote(Submission { after: vec![2], ..job(1, 7) }),
    ];
    let text = |snapshot: &Snapshot, request| match life.read(snapshot, second, request) {
        // Each daemon has begun at its own time.
        Ok(DaemonReply::Status(status)) => {
            let queue = &status.queues[0];
            // With time slices a loaded ledger has another mean of the processors in use, until its first event.
            let cpus = Some(queue.cpus_held).filter(|_| !queue.policy.starts_with("gang"));
            let held = (cpus, queue.memory_held, queue.running, queue.waiting);
            let judged =
                (status.promises, status.kept, status.late, status.lost, status.withdrawn, status.at_risk);
            format!("{:?}", (held, status.draining, judged, &status.missed))
        }
        other => format!("{other:?}"),
    };
    [life.snapshot(), life.loaded(second)]
        .map(|snapshot| requests.iter().map(|request| text(&snapshot, request)).collect())
}

#[test]
fn a_snapshot_answers_as_an_engine_that_loads_the_state() {
    for policy in
        ["miser", "conservative", "easy", "fcfs", "ss", "gang(quantum=1)", IMMEDIATE, "eqspatial(quantum=2s)"]
    {
        for seed in 0..4 {
            let mut life = Life::of_policy(policy, 3, 4);
            for step in 1..40 {
                disturb(&mut life, seed, step);
                let [snapshot, loaded] = answers(&life, step * 3);
                assert_eq!(snapshot, loaded, "{policy}, seed {seed}, step {step}");
            }
        }
    }
}

#[test]
fn a_displaced_job_waits_also_in_the_stored_state() {
    let mut life = Life::of_policy(IMMEDIATE, 4, 4);
    let [first, second] = [(3, 46), (2, 41)].map(|(cpus, time)| life.submit(1, job(cpus, time)));
    life.turn(32, vec![]);
    let killed = |job| life.actions(job).iter().any(|action| matches!(action, Action::Kill { .. }));
    let displaced = [first, second].into_iter().find(|job| killed(*job)).unwrap();
    let views = |life: &Life| {
        let request = DaemonRequest::Job(displaced);
        [life.snapshot(), life.loaded(33)].map(|snapshot| life.read(&snapshot, 33, &request).unwrap())
    };
    let is_queued =
        |reply: &DaemonReply| matches!(reply, DaemonReply::Job(job) if job.phase == Phase::Queued);
    assert!(views(&life).iter().all(is_queued), "{:?}", views(&life));
    let outcome = AttemptOutcome::Ended { at: seconds(32), exit: Exit::Signal(9), by: Some(KilledBy::User) };
    life.turn(33, vec![Input::AttemptEnded(Attempt { job: displaced, nth: 1 }, outcome)]);
    assert!(views(&life).iter().all(is_queued), "{:?}", views(&life));
}

#[test]
fn a_quote_is_what_a_submission_is_promised() {
    for seed in 0..6 {
        let mut life = Life::of_policy("miser", 3, 4);
        for step in 1..30 {
            disturb(&mut life, seed, step);
            let second = step * 3 + 1;
            let wanted = job(2, 20);
            let quoted = match life.ask(second, DaemonRequest::Quote(wanted.clone())) {
                Ok(DaemonReply::Quote(quote)) => quote.windows[0],
                other => panic!("{other:?}"),
            };
            let promised = match life.ask(second, DaemonRequest::Submit(wanted)) {
                Ok(DaemonReply::Submitted(submitted)) => submitted.jobs[0].clone(),
                other => panic!("{other:?}"),
            };
            // What begins now begins a tick later for the second one.
            let same = quoted
                .zip(promised.promise)
                .map(|(quoted, promised)| quoted.start.duration_since(promised.start).as_micros().abs() <= 2);
            assert_eq!(same, Some(true), "seed {seed}, step {step}: {quoted:?}, {promised:?}");
        }
    }
}

/// A reader that has a snapshot keeps it, whatever happens meanwhile.
#[test]
fn a_snapshot_stays_as_it_is() {
    let mut life = Life::new(1, 1);
    let first = life.submit(1, job(1, 60));
    let before = life.snapshot();
    life.end(5, first);
    let second = life.submit(6, job(1, 60));
    assert!(before.is_unfinished(first) && !before.is_unfinished(second));
    let after = life.snapshot();
    assert!(!after.is_unfinished(first) && after.is_unfinished(second));
    let list = DaemonRequest::Jobs(Filter { all: true, ..Filter::default() });
    let listed = life.read(&before, 6, &list);
    let Ok(DaemonReply::Jobs(jobs)) = listed else { panic!("{listed:?}") };
    assert_eq!(jobs.iter().filter(|job| job.number == first).count(), 1, "it is not listed as finished, too");
    assert!(life.read(&before, 6, &DaemonRequest::Drain(true)).is_err());
}

#[test]
fn a_change_has_the_jobs_that_ended_and_those_that_are_forgotten() {
    let mut life = Life::of_policy("easy", 3, 4);
    let (first, second) = (life.submit(1, job(1, 60)), life.submit(1, job(1, 60)));
    let before = life.snapshot();
    assert!(!before.waits(first) && before.views_of([first, 99], Life::now(2), &Caller::new(0)).len() == 1);
    life.end(5, first);
    let (after, root) = (life.snapshot(), Caller::new(0));
    let changes = after.job_changes(&before, Life::now(5), &root, &life.journal).unwrap();
    assert!(changes.views.iter().any(|view| view.number == first && view.phase.ended().is_some()));
    assert!(changes.gone.is_empty());
    // The finished jobs are removed before anyone looks.
    let forgotten = MemoryJournal::default();
    let changes = after.job_changes(&before, Life::now(5), &root, &forgotten).unwrap();
    assert_eq!(changes.gone, [first]);
    assert!(changes.views.iter().all(|view| view.number != first) && after.is_unfinished(second));
    // A job that came and went since is not told.
    let unseen = life.submit(6, job(1, 60));
    life.end(8, unseen);
    let changes = life.snapshot().job_changes(&after, Life::now(8), &root, &forgotten).unwrap();
    assert!(changes.is_empty(), "{changes:?}");
}
