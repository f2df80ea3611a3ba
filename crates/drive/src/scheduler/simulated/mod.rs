//! A simulated slurmctld under one seed, and the driver beside it: jobs, users, an operator, and faults of both.
//!
//! The controller keeps the rules that Slurm keeps: it starts a job of the reservation only on the nodes that it was given, only if
//! they have room, and only if its user is admitted. What it does beside that is random: it starts a job some seconds late, and
//! commands get lost, come late or come twice.

mod controller;

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::{Span, Time};
use miserly_slurm::{Cluster, Detail, Job};

use self::controller::{Controller, FaultKind, Faults};
use super::{Observation, Scheduler, Step, Stored};
use crate::Settings;
use crate::instant::instant;
use crate::notes::{Note, StartRecord};
use crate::orders::Order;

/// The name of the driver's reservation.
const RESERVATION: &str = "miserly";

/// The time between two readings of the driver, seconds.
const READING: i64 = 2;

/// The time from which on there are neither faults nor submissions, seconds.
const CALM: i64 = 2_400;

/// The time by which all jobs have ended, seconds.
const END: i64 = 24 * 3_600;

/// The seeds. Those below 32 have each set of kinds of faults.
const SEEDS: std::ops::Range<u64> = 0..32;

/// The driver, its stored state, and its reports.
struct Driven {
    /// The seed and the policy.
    name: String,
    settings: Settings,
    scheduler: Option<Scheduler>,
    stored: Stored,
    records: Vec<StartRecord>,
    notes: Vec<(i64, String, Note)>,
    before: BTreeMap<String, Job>,
    away_until: i64,
}

impl Driven {
    fn new(seed: u64, policy: &str) -> Driven {
        let settings = Settings {
            policy: policy.parse().unwrap(),
            seed: 1,
            partitions: vec![],
            reservation: RESERVATION.into(),
            owner: 0,
            fallback: Span::from_secs(600).unwrap(),
            margin: Span::from_secs(30).unwrap(),
            comments: false,
            lead: None,
            leaving: Span::ZERO,
        };
        Driven {
            name: format!("seed {seed}, {policy}"),
            settings,
            scheduler: None,
            stored: Stored::default(),
            records: vec![],
            notes: vec![],
            before: BTreeMap::new(),
            away_until: 0,
        }
    }

    /// Makes a step, and has the controller carry out its orders. `killed`: the driver is killed within it, after some of the orders.
    fn step(&mut self, controller: &mut Controller, faults: Faults, killed: bool) {
        let now = controller.now();
        let cluster = controller.cluster.clone();
        let orders = self.decide(controller, &cluster);
        check_placements(&self.name, controller, &orders);
        let most =
            if killed { controller.draws.between(0, i64::try_from(orders.len()).unwrap()) } else { i64::MAX };
        for (order, _) in orders.iter().zip(0..most) {
            send(controller, order, faults);
        }
        if killed {
            self.scheduler = None;
            self.away_until = now + controller.draws.between(1, 900);
        }
    }

    /// Has the driver decide on what it reads. Returns its orders.
    fn decide(&mut self, controller: &Controller, cluster: &Cluster) -> Vec<Order> {
        let now = controller.now();
        let scheduler = self
            .scheduler
            .get_or_insert_with(|| Scheduler::new(self.settings.clone(), self.stored.clone(), None));
        let has_changed = |job: &&Job| self.before.get(&job.id) != Some(*job);
        let changed: BTreeSet<String> =
            cluster.jobs.values().filter(has_changed).map(|job| job.id.clone()).collect();
        self.before.clone_from(&cluster.jobs);
        let unknown = scheduler.unknown(cluster, &changed, &BTreeSet::new());
        let details: BTreeMap<String, Detail> =
            unknown.into_iter().map(|id| (id.to_owned(), controller.forms[id].clone())).collect();
        let start = |id: String| Some((id.clone(), instant(*controller.ended.get(&id)?.starts.last()?)));
        let starts: BTreeMap<String, Time> =
            scheduler.vanished(cluster).into_iter().filter_map(start).collect();
        let observed = Observation { cluster, details: &details, is_complete: true, starts: &starts };
        let step = scheduler
            .step(instant(now), observed)
            .unwrap_or_else(|error| panic!("{}, at {now} s: {error}", self.name));
        let before = std::mem::replace(&mut self.stored, scheduler.stored());
        check_broken_promises(&self.name, &step, &before, &self.stored);
        self.records.extend(step.starts);
        self.notes.extend(step.notes.into_iter().map(|(id, note)| (now, id, note)));
        step.orders
    }
}

/// Sends an order to the controller: it may get lost, come late or come twice.
fn send(controller: &mut Controller, order: &Order, faults: Faults) {
    if !faults.have(FaultKind::Commands) || !controller.draws.once_in(8) {
        controller.apply(order);
        return;
    }
    match controller.draws.between(1, 3) {
        1 => {}
        2 => {
            let at = controller.now() + controller.draws.between(1, 20);
            controller.late.push((at, order.clone()));
        }
        _ => {
            controller.apply(order);
            controller.apply(order);
        }
    }
}

/// Checks that a promise that is reported as broken is later after the step than before it.
#[track_caller]
fn check_broken_promises(name: &str, step: &Step, before: &Stored, after: &Stored) {
    let latest = |stored: &Stored, id: &String| Some(stored.jobs.get(id)?.job.promise.as_ref()?.latest);
    for (id, note) in &step.notes {
        if let (Note::PromiseBroken { latest: Some(_), why }, Some(now)) = (note, latest(after, id)) {
            let was = latest(before, id);
            assert!(
                was.is_some_and(|was| was < now),
                "{name}: the promise of job {id} by {was:?} is reported as broken, and is by {now}: {why}"
            );
        }
    }
}

/// Checks that the driver places jobs only on nodes in service, and that the jobs that it places or resumes and those that Slurm shows
/// there have room together. A job on several nodes counts with one processor on each: Slurm spreads it.
#[track_caller]
fn check_placements(name: &str, controller: &Controller, orders: &[Order]) {
    let cluster = &controller.cluster;
    let parts = |id: &str| {
        cluster.jobs[id].on.iter().map(|node| (node, controller.cpus_on(id, node))).collect::<Vec<_>>()
    };
    let mut used: BTreeMap<&String, u64> = BTreeMap::new();
    let mut suspended: BTreeMap<&String, u64> = BTreeMap::new();
    for order in orders {
        let (sum, parts) = match order {
            Order::Place { job, nodes, .. } => {
                let cpus = if nodes.len() == 1 { cluster.jobs[job].cpus } else { 1 };
                (&mut used, nodes.iter().map(|node| (node, cpus)).collect())
            }
            Order::Resume { job } => (&mut used, parts(job)),
            Order::Suspend { job } => (&mut suspended, parts(job)),
            _ => continue,
        };
        for (node, cpus) in parts {
            let drains = matches!(order, Order::Place { .. }) && !cluster.nodes[node].is_usable();
            assert!(!drains, "{name}, at {} s: {order} on {node}, which drains", controller.now());
            *sum.entry(node).or_default() += cpus;
        }
    }
    for (node, cpus) in used {
        let free = controller.free(node) + suspended.get(node).copied().unwrap_or(0);
        let now = controller.now();
        assert!(
            cpus <= free,
            "{name}, at {now} s: jobs with {cpus} processors are placed on {node}, where {free} are free"
        );
    }
}

/// Runs a seed. Returns the controller and the driver at the end.
fn run(seed: u64, policy: &str, faults: Faults, spreads: bool) -> (Controller, Driven) {
    run_driver(Controller::new(seed, spreads), Driven::new(seed, policy), faults)
}

fn run_driver(mut controller: Controller, mut driven: Driven, faults: Faults) -> (Controller, Driven) {
    let pause = controller.draws.between(15, 150);
    for now in 1..END {
        if now == CALM {
            controller.calm();
        }
        let faults = if now < CALM { faults } else { Faults::default() };
        if now < CALM && controller.draws.once_in(pause) {
            controller.submit();
        }
        controller.disturb(faults);
        if faults.have(FaultKind::Outages) && controller.draws.once_in(600) {
            controller.silent = now + controller.draws.between(5, 120);
        }
        controller.pass();
        let wakes =
            driven.scheduler.as_ref().and_then(Scheduler::wake).is_some_and(|wake| wake.secs() <= now);
        if (now % READING == 0 || wakes) && now >= controller.silent && now >= driven.away_until {
            let killed = faults.have(FaultKind::Kills) && controller.draws.once_in(400);
            driven.step(&mut controller, faults, killed);
        }
        if now > CALM && controller.cluster.jobs.is_empty() {
            break;
        }
    }
    driven.step(&mut controller, Faults::default(), false);
    (controller, driven)
}

/// Checks what holds whatever happened.
#[track_caller]
fn check(controller: &Controller, driven: &Driven) {
    let what = &driven.name;
    let left: Vec<&Job> = controller.cluster.jobs.values().collect();
    assert!(left.is_empty(), "{what}: these jobs have not ended: {left:#?}");
    assert!(
        driven.scheduler.as_ref().is_some_and(|scheduler| scheduler.jobs.is_empty()),
        "{what}: the driver has jobs that are gone"
    );
    for (id, truth) in &controller.ended {
        assert!(truth.starts.len() <= 1 + truth.requeues, "{what}: job {id} ran twice: {truth:?}");
    }
    let mut by_job: BTreeMap<&str, usize> = BTreeMap::new();
    for record in &driven.records {
        *by_job.entry(&record.job).or_default() += 1;
        let truth = &controller.ended[&record.job];
        assert!(
            truth.starts.contains(&record.start.secs()),
            "{what}: job {} did not start so: {record:?}, {truth:?}",
            record.job
        );
        assert!(
            record.is_kept() != Some(false) || record.broken.is_some(),
            "{what}: late without a cause: {record:?}"
        );
    }
    for (id, records) in by_job {
        let truth = &controller.ended[id];
        assert!(records <= truth.starts.len(), "{what}: job {id} has {records} records: {truth:?}");
    }
}

#[test]
fn after_any_fault_each_job_runs_once_and_ends() {
    for seed in SEEDS {
        for policy in ["conservative", "easy", "fcfs"] {
            let (controller, driven) = run(seed, policy, Faults(seed), true);
            check(&controller, &driven);
        }
    }
}

#[test]
fn opportunistic_jobs_run_once_and_end_after_any_fault() {
    for seed in SEEDS {
        let mut driven = Driven::new(seed, "conservative");
        driven.settings.lead = Span::from_secs(12);
        let (controller, driven) = run_driver(Controller::new(seed, true), driven, Faults(seed));
        check(&controller, &driven);
    }
}

/// The operator suspends and resumes jobs, and Slurm preempts them for jobs of a partition that is not driven.
#[test]
fn jobs_that_others_suspend_and_preempt_run_once_and_end() {
    for seed in 32..128 {
        let mut driven = Driven::new(seed, "conservative");
        driven.settings.partitions = vec!["batch".into()];
        let mut controller = Controller::new(seed, true);
        let urgent = controller.cluster.partitions["batch"].clone();
        controller.cluster.partitions.insert("urgent".into(), urgent);
        let (controller, driven) = run_driver(controller, driven, Faults(seed));
        check(&controller, &driven);
    }
}

/// Each new job has a quantum, for which others are suspended.
#[test]
fn jobs_with_quanta_end_after_any_fault() {
    for seed in (0..64).filter(|seed| seed % 2 == 0) {
        let mut driven = Driven::new(seed, "immediate(policy=conservative,quantum=1m,after=1m)");
        driven.settings.leaving = Span::from_secs(10).unwrap();
        let (controller, driven) = run_driver(Controller::new(seed, false), driven, Faults(seed));
        check(&controller, &driven);
    }
}

/// Slurm gives jobs of several processors for a task whole tasks, and the ledger has them as Slurm does.
#[test]
fn whole_tasks_on_several_nodes_are_planned_as_slurm_spreads_them() {
    let (mut moved, mut promised) = (0, 0);
    for seed in SEEDS {
        let mut controller = Controller::new(seed, true);
        controller.has_tasks = true;
        let (controller, driven) =
            run_driver(controller, Driven::new(seed, "conservative"), Faults::default());
        check(&controller, &driven);
        let is_moved = |(_, _, note): &&(i64, String, Note)| matches!(note, Note::PromiseBroken { .. });
        moved += driven.notes.iter().filter(is_moved).count();
        promised += driven.records.iter().filter(|record| record.first.is_some()).count();
    }
    assert!(50 * moved < promised, "{moved} promises of {promised} jobs were broken");
}

/// Returns the promises that were broken, and the starts, without faults.
fn broken(seed: u64, policy: &str, spreads: bool) -> (Vec<(i64, String, Note)>, Vec<StartRecord>) {
    let (controller, mut driven) = run(seed, policy, Faults::default(), spreads);
    check(&controller, &driven);
    let starts: usize = controller.ended.values().map(|truth| truth.starts.len()).sum();
    assert_eq!(driven.records.len(), starts, "{}: each start has a record", driven.name);
    driven.notes.retain(|(_, _, note)| matches!(note, Note::PromiseBroken { .. }));
    (driven.notes, driven.records)
}

/// Without faults, each promise is kept and none moves: the time that Slurm takes is in it.
#[test]
fn without_faults_promises_stay() {
    for seed in SEEDS {
        for policy in ["conservative", "easy", "miser"] {
            let (notes, records) = broken(seed, policy, false);
            let late: Vec<_> = records.iter().filter(|record| record.is_kept() == Some(false)).collect();
            assert!(notes.is_empty() && late.is_empty(), "seed {seed}, {policy}: {notes:#?}, {late:#?}");
        }
    }
}

/// Slurm gave a node otherwise than planned, so a placed job waits again, and a job behind it has the promise of the first one. The policy
/// plans the first job later than that.
#[test]
fn a_job_that_waits_again_takes_the_promise_of_the_next_one_back() {
    let is_taken_back =
        |(_, _, note): &(i64, String, Note)| matches!(note, Note::PromiseBroken { latest: None, .. });
    let has_taken_back = |seed| broken(seed, "easy", true).0.iter().any(is_taken_back);
    assert!(SEEDS.into_iter().any(has_taken_back));
}

/// The plan has a job where Slurm puts it, so few promises move without faults.
#[test]
fn promises_of_jobs_on_several_nodes_stay() {
    for policy in ["conservative", "easy"] {
        let all: Vec<_> = SEEDS.map(|seed| broken(seed, policy, true)).collect();
        let moved: usize = all.iter().map(|(notes, _)| notes.len()).sum();
        let records = all.iter().flat_map(|(_, records)| records);
        let promised = records.filter(|record| record.first.is_some()).count();
        assert!(100 * moved < promised, "{policy}: {moved} promises of {promised} jobs were broken");
    }
}

/// Prints how many promises of jobs that may have several nodes are broken without faults, and why, and how long the jobs wait.
#[test]
#[ignore = "prints a measurement"]
fn measured_promises_of_jobs_on_several_nodes() {
    for policy in ["conservative", "easy", "miser"] {
        let (mut causes, mut promised, mut late) = (BTreeMap::<String, usize>::new(), 0, 0);
        let (mut waited, mut starts) = (0, 0);
        for seed in SEEDS {
            let (notes, records) = broken(seed, policy, true);
            for (_, _, note) in notes {
                if let Note::PromiseBroken { why, .. } = note {
                    *causes.entry(why).or_default() += 1;
                }
            }
            promised += records.iter().filter(|record| record.first.is_some()).count();
            late += records.iter().filter(|record| record.is_kept() == Some(false)).count();
            waited += records.iter().map(|record| (record.start - record.submitted).secs()).sum::<i64>();
            starts += records.len();
        }
        println!(
            "{policy}: {} promises of {promised} jobs were broken, {late} jobs started later than first promised; \
             {starts} starts after {} s in the mean: {causes:#?}",
            causes.values().sum::<usize>(),
            waited / i64::try_from(starts).unwrap()
        );
    }
}
