//! A shadow makes the schedule that its policy makes alone, whatever the real policy did and whenever the shadow learned of it.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use miserly_core::{Effect, EndHow, EventOrder, JobNumber, Ledger, Machine, Procs, Request, Time};
use miserly_policies::PolicySpec;
use miserly_sim::{Finished, Job, Observer, RealRound, Shadow, ShadowOutcome, Simulation};
use proptest::prelude::*;

use crate::support::{Quad, SEED, in_order, jobs_for, policies, run, workload};

/// Records what a real queue shows.
#[derive(Default)]
struct Recorder(RealRound);

impl Observer for Recorder {
    fn submitted(&mut self, _now: Time, request: &Request) {
        self.0.submitted.push(request.clone());
    }

    fn effect(&mut self, _now: Time, job: JobNumber, effect: &Effect) {
        match effect {
            Effect::Started { .. } | Effect::Resumed { .. } => self.0.works.push((job, Procs::new(u64::MAX))),
            Effect::Suspended { .. } => self.0.works.push((job, Procs::ZERO)),
            Effect::Requeued { .. } => self.0.requeued.push(job),
            _ => {}
        }
    }

    fn finished(&mut self, job: &Finished) -> io::Result<()> {
        self.0.ended.push((job.request.number, EndHow::Done));
        Ok(())
    }
}

/// The rounds of a real queue.
fn real_rounds(machine: &Machine, jobs: &[Job], policy: &str) -> VecDeque<RealRound> {
    let built = policy.parse::<PolicySpec>().unwrap().build(machine, SEED).unwrap();
    let mut simulation = Simulation::new(machine.clone(), built, EventOrder::Batched);
    let procs: BTreeMap<JobNumber, Procs> =
        jobs.iter().map(|job| (job.request.number, job.request.procs())).collect();
    let (mut source, mut rounds) = (in_order(jobs).peekable(), VecDeque::new());
    loop {
        let mut recorder = Recorder::default();
        let Some(at) = simulation.step(&mut source, &mut [&mut recorder]).unwrap() else { break };
        let works = recorder.0.works.iter().map(|(job, most)| (*job, procs[job].min(*most))).collect();
        rounds.push_back(RealRound { at, works, ..recorder.0 });
    }
    rounds
}

/// Follows the rounds. `advance` says after which of them the shadow goes on, and `renew` at which of these it is stored and
/// read again.
fn starts(
    machine: &Machine,
    rounds: &VecDeque<RealRound>,
    policy: &str,
    advance: &[bool],
    renew: &[bool],
) -> Vec<(JobNumber, Time)> {
    let build = || policy.parse::<PolicySpec>().unwrap().build(machine, SEED).unwrap();
    let first = Time::from_ticks(-1);
    let mut shadow = Shadow::beginning(Ledger::new(machine.clone()), build(), first);
    let (mut numbers, mut starts) = (vec![], BTreeMap::new());
    let mut take = |shadow: &mut Shadow, numbers: &[JobNumber]| {
        for event in shadow.advance(&mut || true).unwrap() {
            let number = numbers[usize::try_from(event.job.0).unwrap()];
            match event.outcome {
                ShadowOutcome::Started => drop(starts.insert(number, event.at)),
                ShadowOutcome::Requeued => drop(starts.remove(&number)),
                ShadowOutcome::Ended | ShadowOutcome::Refused => {}
            }
        }
    };
    let (mut advance, mut renew) = (advance.iter().cycle(), renew.iter().cycle());
    // The rounds from the first one that the shadow has not reached.
    let mut ahead: VecDeque<RealRound> = VecDeque::new();
    for round in rounds {
        let new: Vec<JobNumber> = round.submitted.iter().map(|request| request.number).collect();
        let instances = shadow.observe(round.clone());
        assert_eq!(instances.len(), new.len());
        assert!(instances.iter().map(|instance| instance.0).eq((numbers.len() as u64..).take(new.len())));
        numbers.extend(new);
        ahead.push_back(round.clone());
        if *advance.next().unwrap() {
            take(&mut shadow, &numbers);
        }
        let from_outside = |round: &RealRound| !round.submitted.is_empty();
        while ahead.iter().filter(|round| from_outside(round)).count() > shadow.behind()
            || ahead.front().is_some_and(|round| !from_outside(round))
        {
            ahead.pop_front();
        }
        if *renew.next().unwrap() {
            shadow = Shadow::continuing(shadow.state(), build());
            for round in &ahead {
                shadow.observe(round.clone());
            }
            shadow.observe_nothing(round.at);
        }
    }
    shadow.observe_nothing(Time::MAX);
    take(&mut shadow, &numbers);
    assert_eq!(shadow.behind(), 0);
    starts.into_iter().collect()
}

fn is_followed(policy: &str, as_real: bool) -> bool {
    let needs = policy.parse::<PolicySpec>().unwrap().needs();
    !(needs.time_slices || needs.resizing || needs.known_runtimes || needs.refusals || needs.swapping)
        && !(as_real && needs.checkpoints)
}

/// A real policy and one in its shadow.
fn two_policies() -> impl Strategy<Value = (String, String)> {
    let preemptive = [
        "immediate(quantum=3, after=2)",
        "immediate(policy=fcfs-backfill, quantum=3, after=2)",
        "ss",
        "tss",
        "is",
    ];
    let all: Vec<String> = policies().into_iter().chain(preemptive.map(str::to_owned)).collect();
    let followed = |as_real| all.iter().filter(move |policy| is_followed(policy, as_real)).cloned().collect();
    let (real, shadow): (Vec<String>, Vec<String>) = (followed(true), followed(false));
    (prop::sample::select(real), prop::sample::select(shadow))
}

proptest! {
    #[test]
    fn a_shadow_makes_the_schedule_of_its_policy(
        (procs, quads) in workload(true),
        (real, shadow) in two_policies(),
        advance in prop::collection::vec(any::<bool>(), 1..20),
        renew in prop::collection::vec(prop::bool::weighted(0.2), 1..20),
    ) {
        let quads: Vec<Quad> =
            quads.into_iter().map(|(submit, runtime, procs, estimate)| (submit, runtime.max(1), procs, estimate)).collect();
        let jobs = jobs_for(&format!("{real} {shadow}"), &quads);
        let machine = Machine::plain(procs);
        let alone = run(procs, &jobs, &shadow, EventOrder::Batched);
        let alone: Vec<(JobNumber, Time)> = alone.0.iter().map(|job| (job.request.number, job.start)).collect();
        let rounds = real_rounds(&machine, &jobs, &real);
        prop_assert_eq!(starts(&machine, &rounds, &shadow, &advance, &renew), alone, "{} beside {}", shadow, real);
    }
}
