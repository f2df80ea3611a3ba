//! A simulated slurmctld under one seed, and the driver beside it: jobs, users, an operator, and faults of both.
//!
//! The controller keeps the rules that Slurm keeps: it starts a job of the reservation only on the nodes that it was given, only if
//! they have room, and only if its user is admitted. What it does beside that is random: it starts a job some seconds late, and
//! commands get lost, come late or come twice.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::{Span, Time};
use miserly_slurm::{Allocated, Cluster, Detail, Job, JobState, Limit, Reservation};

use super::{Desk, Seen, Stored};
use crate::Settings;
use crate::notes::{Note, StartRecord};
use crate::orders::{Order, PLACED};
use crate::site::tests::cluster;

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

/// The time between two cycles of Slurm's own scheduling, seconds.
const CYCLE: i64 = 30;

/// Random numbers: `SplitMix64`.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from `low` to `high`, both included.
    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + i64::try_from(self.next() % u64::try_from(high - low + 1).unwrap()).unwrap()
    }

    /// Returns true once in `times`.
    fn once_in(&mut self, times: i64) -> bool {
        self.between(1, times) == 1
    }
}

/// What a job is apart from what Slurm shows.
#[derive(Clone, Debug, Default)]
struct Truth {
    runtime: i64,
    /// The nodes that the driver gave it.
    given: Vec<String>,
    /// The instant from which on Slurm starts it, if it has room.
    ready: i64,
    /// The starts, seconds.
    starts: Vec<i64>,
    /// The instant at which its nodes are free, while it ends.
    leaves: Option<i64>,
    requeues: usize,
}

/// A kind of fault.
#[derive(Clone, Copy, Debug)]
enum FaultKind {
    /// Commands get lost, late or twice.
    Commands,
    /// The driver is killed.
    Kills,
    /// The controller gives no answer for a while.
    Outages,
    /// Nodes are drained, and jobs requeued.
    Nodes,
    /// Users cancel, hold and change jobs.
    Users,
}

/// The kinds of faults of a seed, a bit each.
#[derive(Clone, Copy, Debug, Default)]
struct Faults(u64);

impl Faults {
    fn have(self, kind: FaultKind) -> bool {
        (self.0 >> kind as u64) & 1 == 1
    }
}

/// The controller.
struct Controller {
    cluster: Cluster,
    forms: BTreeMap<String, Detail>,
    truths: BTreeMap<String, Truth>,
    /// The starts of jobs that are gone.
    ended: BTreeMap<String, Truth>,
    draws: Draws,
    /// The instant until which it gives no answer.
    silent: i64,
    /// Commands that come later.
    late: Vec<(i64, Order)>,
    next: u64,
    /// Whether jobs may have several nodes.
    spreads: bool,
}

impl Controller {
    fn new(seed: u64, spreads: bool) -> Controller {
        let mut draws = Draws(seed);
        let names: Vec<String> = (1..=draws.between(2, 6)).map(|number| format!("n{number}")).collect();
        let nodes: Vec<(&str, u64, u64)> =
            names.iter().map(|name| (name.as_str(), 2 * draws.between(2, 8).unsigned_abs(), 0)).collect();
        Controller {
            cluster: cluster(&nodes, "CR_CPU"),
            forms: BTreeMap::new(),
            truths: BTreeMap::new(),
            ended: BTreeMap::new(),
            draws,
            silent: 0,
            late: vec![],
            next: 0,
            spreads,
        }
    }

    fn now(&self) -> i64 {
        self.cluster.configuration.now
    }

    fn free(&self, node: &str) -> u64 {
        let used = |job: &&Job| job.on.iter().any(|name| name == node);
        let part = |job: &Job| self.forms[&job.id].on.get(node).map_or(0, |on| on.cpus);
        let used: u64 = self.cluster.jobs.values().filter(used).map(part).sum();
        let cpus = self.cluster.nodes[node].cpus;
        assert!(used <= cpus, "{node} has {used} of {cpus} processors in use");
        cpus - used
    }

    fn submit(&mut self) {
        let widest = self.cluster.nodes.values().map(|node| node.cpus).max().unwrap();
        let all: u64 = self.cluster.nodes.values().map(|node| node.cpus).sum();
        self.next += 1;
        let cpus = match self.draws.between(1, 10) {
            1 if self.spreads => self.draws.between(1, i64::try_from(all).unwrap()),
            _ => self.draws.between(1, i64::try_from(widest).unwrap()),
        }
        .unsigned_abs();
        let minutes = self.draws.between(1, 20);
        let limit = minutes * 60;
        let runtime = match self.draws.between(1, 4) {
            1 => limit,
            2 => self.draws.between(1, 20),
            _ => self.draws.between(1, limit),
        };
        let tasks = if self.draws.once_in(8) { self.draws.between(2, 5) } else { 1 };
        let array_limit =
            (tasks > 1 && self.draws.once_in(2)).then(|| self.draws.between(1, 2).unsigned_abs());
        let eligible = self.draws.once_in(10).then(|| self.now() + self.draws.between(10, 600));
        let is_narrow = !self.spreads || cpus <= widest && self.draws.once_in(4);
        let most_nodes = is_narrow.then_some(1);
        for task in 1..=tasks {
            let number = self.next;
            let array = (tasks > 1).then(|| (number, task.to_string()));
            let id = if tasks > 1 { format!("{number}_{task}") } else { number.to_string() };
            let job = Job {
                id: id.clone(),
                number,
                array,
                partitions: vec!["batch".into()],
                user: u32::try_from(1_000 + number % 3).unwrap(),
                cpus,
                nodes: 1,
                limit: Limit::Seconds(limit.unsigned_abs()),
                submitted: self.now(),
                priority: 100,
                ..Job::default()
            };
            let form = Detail {
                least_nodes: 1,
                most_nodes,
                least_cpus: 1,
                eligible,
                is_requeueable: true,
                array_limit,
                ..Detail::default()
            };
            self.cluster.jobs.insert(id.clone(), job);
            self.forms.insert(id.clone(), form);
            self.truths.insert(id, Truth { runtime, ..Truth::default() });
        }
    }

    /// Carries out a command, as Slurm does: what it cannot do is refused, and nothing happens.
    fn apply(&mut self, order: &Order) {
        let (now, latency) = (self.now(), self.draws.between(0, 2));
        let reservations = &mut self.cluster.reservations;
        match order {
            Order::Reserve { reservation, nodes, owner, minutes } => {
                if !reservations.contains_key(reservation) {
                    let made = Reservation {
                        begin: now,
                        end: now + minutes * 60,
                        nodes: nodes.clone(),
                        flags: ["ignore_jobs", "flex", "no_hold_jobs_after", "overlap"]
                            .map(str::to_owned)
                            .into(),
                        users: Some(owner.to_string()),
                        ..Reservation::default()
                    };
                    reservations.insert(reservation.clone(), made);
                }
            }
            Order::Renew { reservation, minutes } => {
                if let Some(known) = reservations.get_mut(reservation) {
                    known.end = now + minutes * 60;
                }
            }
            Order::Span { reservation, nodes } => {
                if let Some(known) = reservations.get_mut(reservation) {
                    known.nodes.clone_from(nodes);
                }
            }
            Order::Admit { reservation, users } | Order::Dismiss { reservation, users } => {
                if let Some(known) = reservations.get_mut(reservation) {
                    let mut all: BTreeSet<u32> = admitted(known);
                    if matches!(order, Order::Admit { .. }) {
                        all.extend(users);
                    } else {
                        all.retain(|user| !users.contains(user));
                    }
                    known.users = Some(all.iter().map(u32::to_string).collect::<Vec<_>>().join(","));
                }
            }
            Order::Place { job: id, reservation, nodes } => {
                let is_there = reservations.contains_key(reservation);
                let Some(job) = self.cluster.jobs.get_mut(id).filter(|job| job.state == JobState::Pending)
                else {
                    return;
                };
                if !is_there {
                    return;
                }
                job.reservation = Some(reservation.clone());
                job.priority = PLACED;
                job.nodes = nodes.len() as u64;
                let (form, truth) = (self.forms.get_mut(id).unwrap(), self.truths.get_mut(id).unwrap());
                (form.least_nodes, form.most_nodes) = (nodes.len() as u64, Some(nodes.len() as u64));
                form.nodes.clone_from(nodes);
                truth.given.clone_from(nodes);
                truth.ready = now + latency;
            }
            Order::TakeBack { job: id, nodes, count: (least, most), releases } => {
                let Some(job) = self.cluster.jobs.get_mut(id).filter(|job| job.state == JobState::Pending)
                else {
                    return;
                };
                job.reservation = None;
                if *releases {
                    job.priority = 100;
                }
                let (form, truth) = (self.forms.get_mut(id).unwrap(), self.truths.get_mut(id).unwrap());
                (form.least_nodes, form.most_nodes) = (*least, Some(*most));
                form.nodes.clone_from(nodes);
                truth.given.clear();
            }
            Order::Requeue { job } => self.requeue(&job.clone(), 120),
            Order::Ready { job: id } => {
                if let Some(form) = self.forms.get_mut(id) {
                    form.eligible = None;
                }
            }
            Order::HandBack { reservation } => drop(reservations.remove(reservation)),
            Order::Suspend { .. } | Order::Resume { .. } | Order::Tell { .. } => {}
        }
    }

    /// Has a job that runs wait again, for some seconds at least.
    fn requeue(&mut self, id: &str, pause: i64) {
        let until = self.now() + pause;
        let Some(job) = self.cluster.jobs.get_mut(id).filter(|job| job.state == JobState::Running) else {
            return;
        };
        (job.state, job.start, job.on, job.reservation) = (JobState::Pending, None, vec![], None);
        job.priority = 100;
        let (form, truth) = (self.forms.get_mut(id).unwrap(), self.truths.get_mut(id).unwrap());
        form.on.clear();
        form.eligible = Some(until);
        truth.given.clear();
        truth.requeues += 1;
    }

    /// Returns the processors of a job on these nodes, as Slurm spreads them: one on each, and then as many as there are, in order.
    fn spread(&self, cpus: u64, nodes: &[String]) -> Option<Vec<(String, u64)>> {
        let usable =
            |node: &&String| self.cluster.nodes.get(*node).is_some_and(miserly_slurm::Node::is_usable);
        if nodes.is_empty() || !nodes.iter().all(|node| usable(&node)) || cpus < nodes.len() as u64 {
            return None;
        }
        let mut left = cpus - nodes.len() as u64;
        let mut on = vec![];
        for node in nodes {
            let more = self.free(node).checked_sub(1)?.min(left);
            left -= more;
            on.push((node.clone(), 1 + more));
        }
        (left == 0).then_some(on)
    }

    fn start(&mut self, id: &str, on: Vec<(String, u64)>) {
        let now = self.now();
        let job = self.cluster.jobs.get_mut(id).unwrap();
        job.state = JobState::Running;
        job.start = Some(now);
        job.nodes = on.len() as u64;
        job.on = on.iter().map(|(node, _)| node.clone()).collect();
        let on = on.into_iter().map(|(node, cpus)| (node, Allocated { cpus, memory: 0 }));
        self.forms.get_mut(id).unwrap().on = on.collect();
        self.truths.get_mut(id).unwrap().starts.push(now);
    }

    /// Passes a second.
    fn pass(&mut self) {
        self.cluster.configuration.now += 1;
        let now = self.now();
        self.cluster.reservations.retain(|_, reservation| reservation.end > now);
        let is_late = |(at, _): &(i64, Order)| *at <= now;
        let due: Vec<Order> =
            self.late.iter().filter(|late| is_late(late)).map(|(_, order)| order.clone()).collect();
        self.late.retain(|late| !is_late(late));
        for order in due {
            self.apply(&order);
        }
        self.end_jobs();
        if now >= self.silent {
            self.start_placed();
            if now % CYCLE == 0 && !self.cluster.reservations.contains_key(RESERVATION) {
                self.start_others();
            }
        }
    }

    fn end_jobs(&mut self) {
        let now = self.now();
        let ids: Vec<String> = self.cluster.jobs.keys().cloned().collect();
        for id in ids {
            let job = &self.cluster.jobs[&id];
            let truth = &self.truths[&id];
            match (&job.state, job.start) {
                (JobState::Running, Some(start)) if start + truth.runtime <= now => {
                    // Its epilog may take a while.
                    let leaves = now + if self.draws.once_in(4) { self.draws.between(1, 8) } else { 0 };
                    self.truths.get_mut(&id).unwrap().leaves = Some(leaves);
                    self.cluster.jobs.get_mut(&id).unwrap().state = JobState::Other("completing".into());
                }
                _ => {}
            }
            if self.truths[&id].leaves.is_some_and(|leaves| leaves <= now) {
                self.remove(&id);
            }
        }
    }

    fn remove(&mut self, id: &str) {
        self.cluster.jobs.remove(id);
        self.forms.remove(id);
        let truth = self.truths.remove(id).unwrap();
        self.ended.insert(id.to_owned(), truth);
    }

    fn may_start(&self, job: &Job) -> bool {
        let form = &self.forms[&job.id];
        let of_array = |other: &&Job| other.number == job.number && other.state != JobState::Pending;
        let has_place = form
            .array_limit
            .is_none_or(|most| (self.cluster.jobs.values().filter(of_array).count() as u64) < most);
        job.state == JobState::Pending
            && job.priority > 0
            && form.eligible.is_none_or(|at| at <= self.now())
            && has_place
    }

    /// Starts the jobs of the reservation, on the nodes that they were given.
    fn start_placed(&mut self) {
        let Some(reservation) = self.cluster.reservations.get(RESERVATION) else { return };
        let users = admitted(reservation);
        let inside =
            |job: &&Job| job.reservation.as_deref() == Some(RESERVATION) && users.contains(&job.user);
        let jobs: Vec<Job> = self.cluster.jobs.values().filter(inside).cloned().collect();
        for job in jobs {
            let truth = &self.truths[&job.id];
            if truth.ready > self.now() || !self.may_start(&job) {
                continue;
            }
            if let Some(on) = self.spread(job.cpus, &truth.given) {
                self.start(&job.id, on);
            }
        }
    }

    /// Starts jobs without a reservation, in order: Slurm schedules by itself.
    fn start_others(&mut self) {
        let waits = |job: &&Job| job.reservation.is_none();
        let mut jobs: Vec<Job> = self.cluster.jobs.values().filter(waits).cloned().collect();
        jobs.sort_by_key(|job| (job.submitted, job.number));
        let names: Vec<String> = self.cluster.nodes.keys().cloned().collect();
        for job in jobs {
            let most = self.forms[&job.id].most_nodes.unwrap_or(u64::MAX);
            if !self.may_start(&job) {
                continue;
            }
            let one = names.iter().find_map(|name| self.spread(job.cpus, std::slice::from_ref(name)));
            let several = || {
                let usable = |name: &&String| self.cluster.nodes[*name].is_usable() && self.free(name) > 0;
                let nodes: Vec<String> = names.iter().filter(usable).cloned().collect();
                (1..=nodes.len())
                    .filter(|count| *count as u64 <= most)
                    .find_map(|count| self.spread(job.cpus, &nodes[..count]))
            };
            if let Some(on) = one.or_else(several) {
                self.start(&job.id, on);
            }
        }
    }

    /// Returns a job in that state.
    fn any(&mut self, state: &JobState) -> Option<String> {
        let ids: Vec<String> =
            self.cluster.jobs.values().filter(|job| job.state == *state).map(|job| job.id.clone()).collect();
        let last = i64::try_from(ids.len()).unwrap() - 1;
        (last >= 0).then(|| ids[usize::try_from(self.draws.between(0, last)).unwrap()].clone())
    }

    /// Has users and the operator do something.
    fn disturb(&mut self, faults: Faults) {
        if faults.have(FaultKind::Users) && self.draws.once_in(90) {
            match self.draws.between(1, 4) {
                1 => {
                    if let Some(id) = self.any(&JobState::Pending) {
                        self.remove(&id);
                    }
                }
                2 => {
                    if let Some(id) = self.any(&JobState::Running) {
                        self.truths.get_mut(&id).unwrap().runtime = 0;
                    }
                }
                3 => {
                    if let Some(id) = self.any(&JobState::Pending) {
                        let job = self.cluster.jobs.get_mut(&id).unwrap();
                        job.priority = if job.priority == 0 { 100 } else { 0 };
                        job.reason = (job.priority == 0).then(|| "JobHeldUser".to_owned());
                    }
                }
                _ => {
                    if let Some(id) = self.any(&JobState::Pending) {
                        let minutes = self.draws.between(1, 20).unsigned_abs();
                        self.cluster.jobs.get_mut(&id).unwrap().limit = Limit::Seconds(60 * minutes);
                        let truth = self.truths.get_mut(&id).unwrap();
                        truth.runtime = truth.runtime.min(i64::try_from(60 * minutes).unwrap());
                    }
                }
            }
        }
        if faults.have(FaultKind::Nodes) && self.draws.once_in(150) {
            let names: Vec<String> = self.cluster.nodes.keys().cloned().collect();
            let name = &names
                [usize::try_from(self.draws.between(0, i64::try_from(names.len()).unwrap() - 1)).unwrap()];
            let node = self.cluster.nodes.get_mut(name).unwrap();
            let drains = node.is_usable();
            node.states = if drains { vec!["idle".into(), "drain".into()] } else { vec!["idle".into()] };
            if drains && self.draws.once_in(2) {
                // It failed: its jobs wait again.
                let on = |job: &&Job| job.state == JobState::Running && job.on.contains(name);
                let ids: Vec<String> =
                    self.cluster.jobs.values().filter(on).map(|job| job.id.clone()).collect();
                for id in ids {
                    self.requeue(&id, 0);
                }
            }
        }
    }

    /// Ends all faults: nodes are in service, jobs are released, and the controller answers.
    fn calm(&mut self) {
        for node in self.cluster.nodes.values_mut() {
            node.states = vec!["idle".into()];
        }
        for job in self.cluster.jobs.values_mut().filter(|job| job.priority == 0) {
            (job.priority, job.reason) = (100, None);
        }
        self.silent = 0;
    }
}

/// Returns the users of a reservation.
fn admitted(reservation: &Reservation) -> BTreeSet<u32> {
    reservation.users.as_deref().unwrap_or_default().split(',').filter_map(|user| user.parse().ok()).collect()
}

/// The driver, its stored state, and what it said.
struct Driven {
    settings: Settings,
    desk: Option<Desk>,
    stored: Stored,
    records: Vec<StartRecord>,
    notes: Vec<(i64, String, Note)>,
    before: BTreeMap<String, Job>,
    away_until: i64,
}

impl Driven {
    fn new(policy: &str) -> Driven {
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
            settings,
            desk: None,
            stored: Stored::default(),
            records: vec![],
            notes: vec![],
            before: BTreeMap::new(),
            away_until: 0,
        }
    }

    /// Makes a step, and has the controller carry out its orders. `lost`: the driver is killed within it, after that many orders.
    fn step(&mut self, controller: &mut Controller, faults: Faults, killed: bool) {
        let now = controller.now();
        let cluster = controller.cluster.clone();
        let desk =
            self.desk.get_or_insert_with(|| Desk::new(self.settings.clone(), self.stored.clone(), None));
        let has_changed = |job: &&Job| self.before.get(&job.id) != Some(*job);
        let changed: BTreeSet<String> =
            cluster.jobs.values().filter(has_changed).map(|job| job.id.clone()).collect();
        self.before.clone_from(&cluster.jobs);
        let unknown = desk.unknown(&cluster, &changed, &BTreeSet::new());
        let details: BTreeMap<String, Detail> =
            unknown.into_iter().map(|id| (id.to_owned(), controller.forms[id].clone())).collect();
        let start = |id: String| Some((id.clone(), *controller.ended.get(&id)?.starts.last()?));
        let starts: BTreeMap<String, i64> = desk.vanished(&cluster).into_iter().filter_map(start).collect();
        let seen = Seen { cluster: &cluster, details: &details, is_complete: true, starts: &starts };
        let step =
            desk.step(Time::from_secs(now).unwrap(), seen).unwrap_or_else(|error| panic!("{now}: {error}"));
        self.stored = desk.stored();
        self.records.extend(step.starts);
        self.notes.extend(step.notes.into_iter().map(|(id, note)| (now, id, note)));
        let most = if killed {
            controller.draws.between(0, i64::try_from(step.orders.len()).unwrap())
        } else {
            i64::MAX
        };
        for (order, _) in step.orders.iter().zip(0..most) {
            if !faults.have(FaultKind::Commands) || !controller.draws.once_in(8) {
                controller.apply(order);
                continue;
            }
            match controller.draws.between(1, 3) {
                1 => {}
                2 => {
                    let at = now + controller.draws.between(1, 20);
                    controller.late.push((at, order.clone()));
                }
                _ => {
                    controller.apply(order);
                    controller.apply(order);
                }
            }
        }
        if killed {
            self.desk = None;
            self.away_until = now + controller.draws.between(1, 900);
        }
    }
}

/// Runs a seed. Returns the controller and the driver at the end.
fn run(seed: u64, policy: &str, faults: Faults, spreads: bool) -> (Controller, Driven) {
    let mut controller = Controller::new(seed, spreads);
    let mut driven = Driven::new(policy);
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
        let wakes = driven.desk.as_ref().and_then(Desk::wake).is_some_and(|wake| wake.secs() <= now);
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
fn check(seed: u64, policy: &str, controller: &Controller, driven: &Driven) {
    let what = format!("seed {seed}, {policy}");
    let left: Vec<&Job> = controller.cluster.jobs.values().collect();
    assert!(left.is_empty(), "{what}: these jobs have not ended: {left:#?}");
    assert!(
        driven.desk.as_ref().is_some_and(|desk| desk.cases.is_empty()),
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
            truth.starts.contains(&record.start),
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
            check(seed, policy, &controller, &driven);
        }
    }
}

/// Returns the promises that were broken, and the starts, without faults.
fn broken(seed: u64, policy: &str, spreads: bool) -> (Vec<(i64, String, Note)>, Vec<StartRecord>) {
    let (controller, mut driven) = run(seed, policy, Faults::default(), spreads);
    check(seed, policy, &controller, &driven);
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

/// Slurm gave a node otherwise than planned, so a placed job waits again, and a job behind it has the promise of the first one. In this
/// seed the policy planned the first job later than that, and the driver ended.
#[test]
fn a_job_that_waits_again_takes_the_promise_of_the_next_one_back() {
    let (controller, driven) = run(8, "easy", Faults::default(), true);
    check(8, "easy", &controller, &driven);
    let is_taken_back =
        |(_, _, note): &(i64, String, Note)| matches!(note, Note::PromiseBroken { latest: None, .. });
    assert!(driven.notes.iter().any(is_taken_back), "{:?}", driven.notes);
}

/// Prints how many promises of jobs that may have several nodes are broken without faults: Slurm spreads a job over the processors that
/// are free on its nodes at its start, which no plan can know.
#[test]
#[ignore = "prints a measurement"]
fn measured_promises_of_jobs_on_several_nodes() {
    for policy in ["conservative", "easy", "miser"] {
        let (mut notes, mut promised, mut late) = (0, 0, 0);
        for seed in SEEDS {
            let (broken, records) = broken(seed, policy, true);
            notes += broken.len();
            promised += records.iter().filter(|record| record.first.is_some()).count();
            late += records.iter().filter(|record| record.is_kept() == Some(false)).count();
        }
        println!(
            "{policy}: {notes} promises of {promised} jobs were broken, {late} jobs started later than first promised"
        );
    }
}
