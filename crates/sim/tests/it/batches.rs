//! Batches by termination, against a slow version: the whole list of the jobs that ended, cut into
//! pieces.

use miserly_core::{EventOrder, Machine, Procs, Span, Time, work};
use miserly_sim::{BatchRule, Finished, Job, Mark, Metrics, Simulation};

use crate::support::{SEED, Schedule, in_order, jobs_in};

const RULE: BatchRule = BatchRule { jobs: 7, count: 11, discard: 2 };

/// Returns the jobs in the order of their ends, and the measures.
fn measured(jobs: &[Job], policy: &str, rule: Option<BatchRule>) -> (Vec<Finished>, Metrics) {
    let machine = Machine::plain(40);
    let policy = policy.parse::<miserly_policies::PolicySpec>().unwrap().build(&machine, SEED).unwrap();
    let mut metrics = Metrics::new(40, Span::ZERO).in_batches(rule);
    let mut schedule = Schedule::default();
    let mut simulation = Simulation::new(machine, policy, EventOrder::Batched);
    simulation.run(&mut in_order(jobs), &mut [&mut metrics, &mut schedule]).unwrap();
    (schedule.0, metrics)
}

fn crowd() -> Vec<Job> {
    let (_, quads) = crate::support::crowd(5);
    jobs_in(1_000_003, &quads)
}

fn mean(jobs: &[Finished], of: impl Fn(&Finished) -> Option<f64>) -> Option<f64> {
    let figures: Vec<f64> = jobs.iter().filter_map(of).collect();
    (!figures.is_empty()).then(|| figures.iter().sum::<f64>() / figures.len() as f64)
}

#[track_caller]
fn near(ours: &[Option<f64>], slow: impl Iterator<Item = Option<f64>>) {
    let slow: Vec<_> = slow.collect();
    assert_eq!(ours.len(), slow.len());
    for (ours, slow) in ours.iter().zip(slow) {
        let (ours, slow) = (ours.unwrap(), slow.unwrap());
        assert!((ours - slow).abs() < 1e-6 * slow.max(1.0), "{ours} is not {slow}");
    }
}

#[test]
fn means_are_those_of_pieces_of_the_list() {
    for policy in ["gang(packing=buddy)", "gang(packing=migration)", "easy"] {
        let jobs = crowd();
        let (all, whole) = measured(&jobs, policy, None);
        assert_eq!((all.len(), whole.window.is_none()), (jobs.len(), true));
        let (seen, metrics) = measured(&jobs, policy, Some(RULE));
        assert!((RULE.ends()..RULE.ends() + 40).contains(&(seen.len() as u64)), "it ended with its batches");
        assert_eq!(metrics.measured(), RULE.jobs * RULE.count);
        // In one instant they end in any order that is the same each time.
        let pieces = || all[14..].chunks(7).take(11);
        let slowdown = |job: &Finished| {
            let run = job.runtime.as_secs_f64();
            (run > 0.0).then(|| job.response().as_secs_f64() / run)
        };
        near(&metrics.batches.means(2).collect::<Vec<_>>(), pieces().map(|jobs| mean(jobs, slowdown)));
        let wait = |job: &Finished| Some(job.wait().as_secs_f64());
        near(&metrics.batches.means(0).collect::<Vec<_>>(), pieces().map(|jobs| mean(jobs, wait)));
        if policy.starts_with("gang") {
            let slots = |job: &Finished| job.slices.unwrap().slots();
            let window = metrics.window.as_ref().unwrap();
            near(&window.slots(), pieces().map(|jobs| mean(jobs, slots)));
            assert!(window.used_slots().iter().any(|slots| *slots > 2.0), "there was something to slice");
        }
    }
}

/// By the list of all jobs, of which each runs from its start to its end.
#[test]
fn marks_are_how_all_stood() {
    let jobs = crowd();
    let (all, _) = measured(&jobs, "easy", None);
    let (_, metrics) = measured(&jobs, "easy", Some(RULE));
    let window = metrics.window.unwrap();
    assert_eq!(window.marks.len(), 12);
    for (nth, mark) in window.marks.iter().enumerate() {
        // The beginning is the end of the discarded batches.
        let last = 14 + 7 * nth - 1;
        assert_eq!(mark.at, all[last].end);
        let by = |from: Time, to: Time| work(to.min(mark.at) - from.min(mark.at), Procs::new(1));
        let done = |job: &Finished| by(job.start, job.end) * u128::from(job.request.procs());
        let came = |job: &&Finished| job.request.submit <= mark.at;
        let arrived = |job: &Finished| work(job.runtime, job.request.procs());
        let there = all.iter().filter(came).filter(|job| job.end > mark.at).count();
        let expect = Mark {
            at: all[last].end,
            jobs: there,
            submitted_work: all.iter().filter(came).map(arrived).sum(),
            done: all.iter().map(done).sum(),
            slot_ticks: 0,
            unifications: 0,
        };
        assert_eq!(*mark, expect, "mark {nth}");
    }
}

#[test]
fn unifications_are_counted_batch_by_batch() {
    let (_, metrics) = measured(&crowd(), "gang(packing=migration)", Some(RULE));
    let window = metrics.window.as_ref().unwrap();
    let (begin, end) = window.ends().unwrap();
    let sum: f64 = window.unifications().iter().sum();
    let counted = (end.unifications - begin.unifications) as f64;
    assert!(counted > 0.0 && (sum * RULE.jobs as f64 - counted).abs() < 1e-9, "{sum}, {counted}");
}

#[test]
fn a_log_that_is_too_short_leaves_batches_open() {
    let jobs = crowd();
    let rule = BatchRule { count: 1000, ..RULE };
    let (seen, metrics) = measured(&jobs, "easy", Some(rule));
    assert_eq!(seen.len(), jobs.len());
    let window = metrics.window.unwrap();
    assert!(!window.is_full() && window.ends().is_none());
}
