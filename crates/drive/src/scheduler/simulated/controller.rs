//! The controller of the simulated cluster.

use std::collections::{BTreeMap, BTreeSet};

use miserly_slurm::{Allocated, Cluster, Detail, Job, JobState, Limit, Reservation};

use super::RESERVATION;
use crate::orders::{Order, PLACED};
use crate::site::tests::cluster;

/// The time between two cycles of Slurm's own scheduling, seconds.
const CYCLE: i64 = 30;

/// Random numbers: `SplitMix64`.
pub(super) struct Draws(u64);

impl Draws {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from `low` to `high`, both included.
    pub(super) fn between(&mut self, low: i64, high: i64) -> i64 {
        low + i64::try_from(self.next() % u64::try_from(high - low + 1).unwrap()).unwrap()
    }

    /// Returns true once in `times`.
    pub(super) fn once_in(&mut self, times: i64) -> bool {
        self.between(1, times) == 1
    }
}

/// What a job is apart from what Slurm shows.
#[derive(Clone, Debug, Default)]
pub(super) struct Truth {
    pub(super) runtime: i64,
    /// The nodes that the driver gave it.
    pub(super) given: Vec<String>,
    /// The instant from which on Slurm starts it, if it has room.
    ready: i64,
    /// The starts, seconds.
    pub(super) starts: Vec<i64>,
    /// The instant at which its nodes are free, while it ends.
    leaves: Option<i64>,
    /// The instant from which on it is suspended.
    suspended: Option<i64>,
    /// The instant at which the operator resumes it, who suspended it.
    resumes: Option<i64>,
    /// The jobs that were suspended for it.
    victims: Vec<String>,
    pub(super) requeues: usize,
}

/// A kind of fault.
#[derive(Clone, Copy, Debug)]
pub(super) enum FaultKind {
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
    /// The operator suspends jobs for a while, and resumes them without a look at their nodes.
    Suspensions,
    /// Jobs of a partition of a higher tier preempt others.
    Preemptions,
}

/// The kinds of faults of a seed, a bit each.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults(pub(super) u64);

impl Faults {
    pub(super) fn have(self, kind: FaultKind) -> bool {
        (self.0 >> kind as u64) & 1 == 1
    }
}

/// The controller.
pub(super) struct Controller {
    pub(super) cluster: Cluster,
    pub(super) forms: BTreeMap<String, Detail>,
    pub(super) truths: BTreeMap<String, Truth>,
    /// The starts of jobs that are gone.
    pub(super) ended: BTreeMap<String, Truth>,
    pub(super) draws: Draws,
    /// The instant until which it gives no answer.
    pub(super) silent: i64,
    /// Commands that come later.
    pub(super) late: Vec<(i64, Order)>,
    next: u64,
    /// Whether jobs may have several nodes.
    spreads: bool,
    /// Whether jobs may have several processors for a task.
    pub(super) has_tasks: bool,
    /// Draws of their own, so that those of the other faults stay.
    others: Draws,
}

impl Controller {
    pub(super) fn new(seed: u64, spreads: bool) -> Controller {
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
            has_tasks: false,
            others: Draws(!seed),
        }
    }

    pub(super) fn now(&self) -> i64 {
        self.cluster.configuration.now
    }

    pub(super) fn free(&self, node: &str) -> u64 {
        let used = |job: &&Job| job.state != JobState::Suspended && job.on.iter().any(|name| name == node);
        let used: u64 = self.cluster.jobs.values().filter(used).map(|job| self.cpus_on(&job.id, node)).sum();
        // A job that is resumed may have those of another one.
        self.cluster.nodes[node].cpus.saturating_sub(used)
    }

    /// Returns the processors of a job on a node.
    pub(super) fn cpus_on(&self, id: &str, node: &str) -> u64 {
        self.forms[id].on.get(node).map_or(0, |on| on.cpus)
    }

    /// Submits a job, or an array.
    pub(super) fn submit(&mut self) {
        let widest = self.cluster.nodes.values().map(|node| node.cpus).max().unwrap();
        let all: u64 = self.cluster.nodes.values().map(|node| node.cpus).sum();
        self.next += 1;
        let most = match self.draws.between(1, 10) {
            1 if self.spreads => all,
            _ => widest,
        };
        let cpus = self.draws.between(1, i64::try_from(most).unwrap()).unsigned_abs();
        let is_of_tasks = self.has_tasks && cpus > 1 && self.others.once_in(2);
        let task = if is_of_tasks { self.others.between(2, 4).unsigned_abs().min(cpus) } else { 1 };
        let has_room: u64 = self.cluster.nodes.values().map(|node| node.cpus / task).sum();
        let cpus = task * (cpus / task).min(has_room);
        let limit = self.draws.between(1, 20) * 60;
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
        let form = Detail {
            least_nodes: 1,
            most_nodes: is_narrow.then_some(1),
            least_cpus: task,
            cpus_per_task: task,
            eligible,
            is_requeueable: true,
            array_limit,
            ..Detail::default()
        };
        for task in 1..=tasks {
            let task = (tasks > 1).then(|| task.to_string());
            self.submit_task(task, cpus, limit.unsigned_abs(), form.clone(), runtime);
        }
    }

    fn submit_task(&mut self, task: Option<String>, cpus: u64, limit: u64, form: Detail, runtime: i64) {
        let number = self.next;
        let id = task.as_ref().map_or_else(|| number.to_string(), |task| format!("{number}_{task}"));
        let job = Job {
            id: id.clone(),
            number,
            array: task.map(|task| (number, task)),
            partitions: vec!["batch".into()],
            user: u32::try_from(1_000 + number % 3).unwrap(),
            cpus,
            nodes: 1,
            limit: Limit::Seconds(limit),
            submitted: self.now(),
            priority: 100,
            ..Job::default()
        };
        self.cluster.jobs.insert(id.clone(), job);
        self.forms.insert(id.clone(), form);
        self.truths.insert(id, Truth { runtime, ..Truth::default() });
    }

    /// Carries out a command, as Slurm does: what it cannot do is refused, and nothing happens.
    pub(super) fn apply(&mut self, order: &Order) {
        let latency = self.draws.between(0, 2);
        match order {
            Order::Reserve { .. }
            | Order::Renew { .. }
            | Order::Span { .. }
            | Order::Admit { .. }
            | Order::Dismiss { .. }
            | Order::HandBack { .. } => self.change_reservation(order),
            Order::Place { job, reservation, nodes, last, without } => {
                self.place(job, reservation, (nodes, last.as_ref(), without), latency);
            }
            Order::TakeBack { job, nodes, without, count, releases } => {
                self.take_back(job, (nodes, without), *count, *releases);
            }
            Order::Requeue { job } => self.requeue(&job.clone(), 120),
            Order::Ready { job: id } => {
                let now = self.now();
                if let Some(form) = self.forms.get_mut(id) {
                    form.eligible = Some(now);
                }
            }
            Order::Suspend { job } => self.suspend(job),
            Order::Resume { job } => self.resume(job),
            Order::Comment { .. } => {}
        }
    }

    fn change_reservation(&mut self, order: &Order) {
        let now = self.now();
        let reservations = &mut self.cluster.reservations;
        if let Order::Reserve { reservation, nodes, owner, minutes } = order {
            let flags = ["ignore_jobs", "flex", "no_hold_jobs_after", "overlap"].map(str::to_owned);
            let made = Reservation {
                begin: now,
                end: now + minutes * 60,
                nodes: nodes.clone(),
                flags: flags.into(),
                users: Some(owner.to_string()),
                ..Reservation::default()
            };
            reservations.entry(reservation.clone()).or_insert(made);
            return;
        }
        if let Order::HandBack { reservation } = order {
            reservations.remove(reservation);
            return;
        }
        let Some(known) = reservations.get_mut(RESERVATION) else { return };
        match order {
            Order::Renew { minutes, .. } => known.end = now + minutes * 60,
            Order::Span { nodes, .. } => known.nodes.clone_from(nodes),
            Order::Admit { users, .. } => known.users = Some(users_text(&(&admitted(known) | users))),
            Order::Dismiss { users, .. } => known.users = Some(users_text(&(&admitted(known) - users))),
            _ => unreachable!("{order:?}"),
        }
    }

    fn place(
        &mut self,
        id: &str,
        reservation: &str,
        (nodes, last, without): (&[String], Option<&String>, &[String]),
        latency: i64,
    ) {
        let ready = self.now() + latency;
        let is_there = self.cluster.reservations.contains_key(reservation);
        let job = self.cluster.jobs.get_mut(id).filter(|job| job.state == JobState::Pending && is_there);
        let Some(job) = job else { return };
        job.reservation = Some(reservation.to_owned());
        job.priority = PLACED;
        let count = nodes.len() as u64;
        let required: Vec<String> = nodes.iter().filter(|node| Some(*node) != last).cloned().collect();
        job.nodes = count;
        let (form, truth) = (self.forms.get_mut(id).unwrap(), self.truths.get_mut(id).unwrap());
        (form.least_nodes, form.most_nodes) = (count, Some(count));
        (form.nodes, form.not_nodes) = (required.clone(), without.to_vec());
        // Slurm fills those that the job must have, and then others.
        let is_other = |name: &&String| !required.contains(name) && !without.contains(name);
        let others = self.cluster.nodes.keys().filter(is_other);
        truth.given = required.iter().chain(others).take(usize::try_from(count).unwrap()).cloned().collect();
        truth.ready = ready;
    }

    fn take_back(
        &mut self,
        id: &str,
        (nodes, without): (&[String], &[String]),
        (least, most): (u64, u64),
        releases: bool,
    ) {
        let job = self.cluster.jobs.get_mut(id).filter(|job| job.state == JobState::Pending);
        let Some(job) = job else { return };
        job.reservation = None;
        if releases {
            job.priority = 100;
        }
        let (form, truth) = (self.forms.get_mut(id).unwrap(), self.truths.get_mut(id).unwrap());
        (form.least_nodes, form.most_nodes) = (least, Some(most));
        (form.nodes, form.not_nodes) = (nodes.to_vec(), without.to_vec());
        truth.given.clear();
    }

    /// Suspends a job that runs. It keeps its nodes, and others may have its processors.
    pub(super) fn suspend(&mut self, id: &str) {
        let now = self.now();
        if let Some(job) = self.cluster.jobs.get_mut(id).filter(|job| job.state == JobState::Running) {
            job.state = JobState::Suspended;
            self.truths.get_mut(id).unwrap().suspended = Some(now);
        }
    }

    /// Resumes a suspended job, without a look at its processors. Its end moves.
    fn resume(&mut self, id: &str) {
        let now = self.now();
        if let Some(job) = self.cluster.jobs.get_mut(id).filter(|job| job.state == JobState::Suspended) {
            job.state = JobState::Running;
            let truth = self.truths.get_mut(id).unwrap();
            let after = now - truth.suspended.take().unwrap();
            truth.runtime += after;
            truth.resumes = None;
            job.end = job.end.map(|end| end + after);
        }
    }

    /// Has a job that runs wait again, for some seconds at least.
    pub(super) fn requeue(&mut self, id: &str, pause: i64) {
        let until = self.now() + pause;
        let Some(job) = self.cluster.jobs.get_mut(id).filter(|job| job.state == JobState::Running) else {
            return;
        };
        if job.partitions != ["batch"] {
            self.remove(id);
            return;
        }
        (job.state, job.start, job.on, job.reservation) = (JobState::Pending, None, vec![], None);
        job.end = None;
        job.priority = 100;
        let (form, truth) = (self.forms.get_mut(id).unwrap(), self.truths.get_mut(id).unwrap());
        form.on.clear();
        form.eligible = Some(until);
        truth.given.clear();
        truth.requeues += 1;
    }

    /// Returns the processors of a job on these nodes, as Slurm spreads them: it makes all that is free available, in this order, but for
    /// one processor of each node that follows. Then it gives whole tasks to the nodes in turn, in the order of their names.
    fn spread(&self, job: &Job, nodes: &[String]) -> Option<Vec<(String, u64)>> {
        let task = self.forms[&job.id].cpus_per_task.max(1);
        let usable =
            |node: &&String| self.cluster.nodes.get(*node).is_some_and(miserly_slurm::Node::is_usable);
        if nodes.is_empty() || !nodes.iter().all(|node| usable(&node)) {
            return None;
        }
        let mut open = job.cpus;
        let mut available = BTreeMap::new();
        for (node, after) in nodes.iter().zip((0..nodes.len() as u64).rev()) {
            let free = self.free(node);
            let most = task.max(open.saturating_sub(after));
            available.insert(node.clone(), free.min(most));
            open = open.saturating_sub(free.min(most));
            if free < task {
                return None;
            }
        }
        let tasks = job.cpus / task;
        if open > 0 || tasks < nodes.len() as u64 {
            return None;
        }
        Some(hand_out(tasks, task, &available))
    }

    fn start(&mut self, id: &str, on: Vec<(String, u64)>) {
        let now = self.now();
        let job = self.cluster.jobs.get_mut(id).unwrap();
        job.state = JobState::Running;
        job.start = Some(now);
        job.end = Some(now + job.limit.seconds());
        job.nodes = on.len() as u64;
        job.on = on.iter().map(|(node, _)| node.clone()).collect();
        job.on.sort();
        let on = on.into_iter().map(|(node, cpus)| (node, Allocated { cpus, memory: 0 }));
        self.forms.get_mut(id).unwrap().on = on.collect();
        self.truths.get_mut(id).unwrap().starts.push(now);
    }

    /// Passes a second.
    pub(super) fn pass(&mut self) {
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
        self.resume_suspended();
        if now >= self.silent {
            self.start_placed();
            if now % CYCLE == 0 && !self.cluster.reservations.contains_key(RESERVATION) {
                self.start_others();
            }
        }
    }

    /// Resumes the jobs that the operator has suspended until now.
    fn resume_suspended(&mut self) {
        let now = self.now();
        let is_due = |(_, truth): &(&String, &Truth)| truth.resumes.is_some_and(|at| at <= now);
        let due: Vec<String> = self.truths.iter().filter(is_due).map(|(id, _)| id.clone()).collect();
        for id in due {
            self.resume(&id);
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
        for victim in &truth.victims {
            self.resume(victim);
        }
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
            if let Some(on) = self.spread(&job, &truth.given) {
                self.start(&job.id, on);
            }
        }
    }

    /// Starts jobs without a reservation, in order: Slurm schedules by itself.
    fn start_others(&mut self) {
        let waits = |job: &&Job| job.reservation.is_none() && job.state == JobState::Pending;
        let mut jobs: Vec<Job> = self.cluster.jobs.values().filter(waits).cloned().collect();
        jobs.sort_by_key(|job| (job.submitted, job.number));
        let names: Vec<String> = self.cluster.nodes.keys().cloned().collect();
        for job in jobs {
            let most = self.forms[&job.id].most_nodes.unwrap_or(u64::MAX);
            if !self.may_start(&job) {
                continue;
            }
            let one = names.iter().find_map(|name| self.spread(&job, std::slice::from_ref(name)));
            let several = || {
                let usable = |name: &&String| self.cluster.nodes[*name].is_usable() && self.free(name) > 0;
                let nodes: Vec<String> = names.iter().filter(usable).cloned().collect();
                (1..=nodes.len())
                    .filter(|count| *count as u64 <= most)
                    .find_map(|count| self.spread(&job, &nodes[..count]))
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
    pub(super) fn disturb(&mut self, faults: Faults) {
        if faults.have(FaultKind::Users) && self.draws.once_in(90) {
            self.disturb_job();
        }
        if faults.have(FaultKind::Nodes) && self.draws.once_in(150) {
            self.disturb_node();
        }
        if faults.have(FaultKind::Suspensions) && self.others.once_in(120) {
            self.disturb_run();
        }
        if faults.have(FaultKind::Preemptions) && self.others.once_in(200) {
            self.preempt();
        }
    }

    /// Has the operator suspend a job for a while.
    fn disturb_run(&mut self) {
        let Some(id) = self.any(&JobState::Running) else { return };
        self.suspend(&id);
        let until = self.now() + self.others.between(1, 300);
        self.truths.get_mut(&id).unwrap().resumes = Some(until);
    }

    /// Has Slurm start a job of a partition of a higher tier on a node. Those in its way are requeued, cancelled, or suspended until it
    /// has ended.
    fn preempt(&mut self) {
        let names: Vec<String> = self.cluster.nodes.keys().cloned().collect();
        let last = i64::try_from(names.len()).unwrap() - 1;
        let node = names[usize::try_from(self.others.between(0, last)).unwrap()].clone();
        let cpus =
            self.others.between(1, i64::try_from(self.cluster.nodes[&node].cpus).unwrap()).unsigned_abs();
        let is_victim = |job: &&Job| {
            job.state == JobState::Running && job.on.contains(&node) && job.partitions == ["batch"]
        };
        let victims: Vec<String> =
            self.cluster.jobs.values().filter(is_victim).map(|job| job.id.clone()).collect();
        let mode = self.others.between(1, 3);
        let mut suspended = vec![];
        for victim in victims {
            if self.free(&node) >= cpus {
                break;
            }
            match mode {
                1 => self.requeue(&victim, 120),
                2 => self.remove(&victim),
                _ => {
                    self.suspend(&victim);
                    suspended.push(victim);
                }
            }
        }
        self.next += 1;
        let (id, runtime) = (self.next.to_string(), self.others.between(10, 600));
        let form = Detail { least_nodes: 1, most_nodes: Some(1), least_cpus: 1, ..Detail::default() };
        self.submit_task(None, cpus, runtime.unsigned_abs(), form, runtime);
        self.cluster.jobs.get_mut(&id).unwrap().partitions = vec!["urgent".into()];
        self.truths.get_mut(&id).unwrap().victims = suspended;
        if self.free(&node) >= cpus && self.cluster.nodes[&node].is_usable() {
            self.start(&id, vec![(node, cpus)]);
        } else {
            self.remove(&id);
        }
    }

    /// Has a user cancel, end, hold or change a job.
    fn disturb_job(&mut self) {
        let action = self.draws.between(1, 4);
        let state = if action == 2 { JobState::Running } else { JobState::Pending };
        let Some(id) = self.any(&state) else { return };
        match action {
            1 => self.remove(&id),
            2 => self.truths.get_mut(&id).unwrap().runtime = 0,
            3 => {
                let job = self.cluster.jobs.get_mut(&id).unwrap();
                job.priority = if job.priority == 0 { 100 } else { 0 };
                job.reason = (job.priority == 0).then(|| "JobHeldUser".to_owned());
            }
            _ => {
                let seconds = 60 * self.draws.between(1, 20);
                self.cluster.jobs.get_mut(&id).unwrap().limit = Limit::Seconds(seconds.unsigned_abs());
                let truth = self.truths.get_mut(&id).unwrap();
                truth.runtime = truth.runtime.min(seconds);
            }
        }
    }

    /// Drains a node, or puts it back into service. Jobs of one that failed wait again.
    fn disturb_node(&mut self) {
        let names: Vec<String> = self.cluster.nodes.keys().cloned().collect();
        let last = i64::try_from(names.len()).unwrap() - 1;
        let name = &names[usize::try_from(self.draws.between(0, last)).unwrap()];
        let node = self.cluster.nodes.get_mut(name).unwrap();
        let drains = node.is_usable();
        node.states = if drains { vec!["idle".into(), "drain".into()] } else { vec!["idle".into()] };
        if drains && self.draws.once_in(2) {
            let on = |job: &&Job| job.state == JobState::Running && job.on.contains(name);
            let ids: Vec<String> = self.cluster.jobs.values().filter(on).map(|job| job.id.clone()).collect();
            for id in ids {
                self.requeue(&id, 0);
            }
        }
    }

    /// Ends all faults: nodes are in service, jobs are released, and the controller answers.
    pub(super) fn calm(&mut self) {
        for node in self.cluster.nodes.values_mut() {
            node.states = vec!["idle".into()];
        }
        for job in self.cluster.jobs.values_mut().filter(|job| job.priority == 0) {
            (job.priority, job.reason) = (100, None);
        }
        for truth in self.truths.values_mut().filter(|truth| truth.resumes.is_some()) {
            truth.resumes = Some(0);
        }
        self.silent = 0;
    }
}

/// Gives tasks of so many processors to nodes in turn, one at a time. The last ones get what is left, if none has room for a whole one.
fn hand_out(tasks: u64, task: u64, available: &BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let mut on: BTreeMap<&String, u64> = available.keys().map(|node| (node, 0)).collect();
    let mut given = 0;
    let mut round = 0;
    let mut whole_only = true;
    while given < tasks {
        let before = given;
        for (node, cpus) in &mut on {
            let left = available[*node] - *cpus;
            if given < tasks && (round == 0 || !whole_only || left >= task) {
                *cpus += task.min(left);
                given += 1;
            }
        }
        whole_only &= given > before;
        round += 1;
    }
    on.into_iter().filter(|(_, cpus)| *cpus > 0).map(|(node, cpus)| (node.clone(), cpus)).collect()
}

fn users_text(users: &BTreeSet<u32>) -> String {
    users.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// Returns the users of a reservation.
fn admitted(reservation: &Reservation) -> BTreeSet<u32> {
    reservation.users.as_deref().unwrap_or_default().split(',').filter_map(|user| user.parse().ok()).collect()
}
