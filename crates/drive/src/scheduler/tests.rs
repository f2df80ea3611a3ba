//! Steps of the driver, without a cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use miserly_core::{
    Expected, HostId, JobClasses, LengthClass, Placement, Resources, SizeClass, SizeTurn, Span, State, Time,
};
use miserly_policies::classes::Lsf;
use miserly_policies::{Needs, PolicySpec};
use miserly_slurm::{Allocated, Amount, Cluster, Detail, Job, JobState, Limit};

use super::job::{Assignment, DrivenState, Run};
use super::opportunistic::Opportunistic;
use super::{Observation, Scheduler, Step, Stored};
use crate::Settings;
use crate::comment::{CommentField, earlier_comment};
use crate::notes::Note;
use crate::orders::Order;
use crate::site::tests::cluster;

/// The cluster of a test, and the driver of its jobs.
struct Scene {
    cluster: Cluster,
    details: BTreeMap<String, Detail>,
    scheduler: Scheduler,
}

impl Scene {
    /// Returns two nodes of 8 processors under a policy.
    fn new(policy: &str) -> Scene {
        let settings = Settings {
            policy: if policy == "lsf" { lsf() } else { policy.parse().unwrap() },
            seed: 1,
            partitions: vec![],
            reservation: "miserly".into(),
            owner: 0,
            fallback: Span::from_secs(600).unwrap(),
            margin: Span::ZERO,
            comments: false,
            lead: None,
            leaving: Span::ZERO,
        };
        Scene {
            cluster: cluster(&[("n1", 8, 0), ("n2", 8, 0)], "CR_CPU"),
            details: BTreeMap::new(),
            scheduler: Scheduler::new(settings, Stored::default(), None),
        }
    }

    /// Submits a job of some minutes.
    fn submit(&mut self, number: u64, cpus: u64, least_nodes: u64, minutes: u64) {
        let job = Job {
            id: number.to_string(),
            number,
            partitions: vec!["batch".into()],
            state: JobState::Pending,
            cpus,
            limit: Limit::Seconds(60 * minutes),
            priority: 1,
            ..Job::default()
        };
        let form = Detail { least_nodes, least_cpus: 1, is_requeueable: true, ..Detail::default() };
        self.details.insert(job.id.clone(), form);
        self.cluster.jobs.insert(job.id.clone(), job);
    }

    /// Submits tasks of an array, of which some may run at the same time.
    fn submit_array(&mut self, number: u64, tasks: &[u64], most: u64) {
        for task in tasks {
            self.submit(number, 1, 1, 10);
            let job = self.cluster.jobs.remove(&number.to_string()).unwrap();
            let id = format!("{number}_{task}");
            let array = Some((number, task.to_string()));
            self.cluster.jobs.insert(id.clone(), Job { id: id.clone(), array, ..job });
            let form = self.details.remove(&number.to_string()).unwrap();
            self.details.insert(id, Detail { array_limit: Some(most), ..form });
        }
    }

    /// Makes a step.
    fn run(&mut self, second: i64) -> Step {
        let Scene { cluster, details, scheduler } = self;
        cluster.configuration.now = second;
        let observed = Observation { cluster, details, is_complete: true, starts: &BTreeMap::new() };
        let step = scheduler.step(Time::from_secs(second).unwrap(), observed).unwrap();
        details.clear();
        step
    }

    /// Makes a step. Returns the jobs that are placed, with their nodes, and those that lose their promises.
    fn step(&mut self, second: i64) -> String {
        let step = self.run(second);
        let cluster = &mut self.cluster;
        let order = |order: &Order| match order {
            Order::Place { job, nodes, .. } => Some(format!("{job} on {}", nodes.join("+"))),
            Order::TakeBack { job, .. } => Some(format!("{job} back")),
            Order::Ready { job } => Some(format!("{job} ready")),
            Order::Requeue { job } => Some(format!("{job} requeued")),
            Order::Suspend { job } => Some(format!("{job} suspended")),
            Order::Resume { job } => Some(format!("{job} resumed")),
            _ => None,
        };
        let note = |(job, note): &(String, Note)| {
            matches!(note, Note::PromiseBroken { .. }).then(|| format!("{job} broken"))
        };
        for order in &step.orders {
            if let Order::Place { job, reservation, .. } = order {
                cluster.jobs.get_mut(job).unwrap().reservation = Some(reservation.clone());
            }
        }
        let orders = step.orders.iter().filter_map(order);
        orders.chain(step.notes.iter().filter_map(note)).collect::<Vec<_>>().join(", ")
    }

    /// Has a job be in this state.
    fn set(&mut self, id: &str, state: JobState) {
        let job = self.cluster.jobs.get_mut(id).unwrap();
        if state == JobState::Pending {
            (job.start, job.on) = (None, vec![]);
        }
        job.state = state;
    }

    /// Replaces the driver by one that begins with its stored state.
    fn restart(&mut self) {
        self.scheduler = Scheduler::new(
            self.scheduler.settings.clone(),
            self.scheduler.stored(),
            self.scheduler.comment_field,
        );
    }

    /// Starts a job with these processors on nodes.
    fn start(&mut self, id: &str, second: i64, on: &[(&str, u64)]) {
        let job = self.cluster.jobs.get_mut(id).unwrap();
        (job.state, job.start) = (JobState::Running, Some(second));
        job.on = on.iter().map(|(node, _)| (*node).to_owned()).collect();
        let held = |(node, cpus): &(&str, u64)| ((*node).to_owned(), Allocated { cpus: *cpus, memory: 0 });
        let on = on.iter().map(held).collect();
        self.details.insert(id.to_owned(), Detail { on, ..Detail::default() });
    }
}

/// Has Slurm give a job more of a node than planned, where another one was placed. Returns the step after that.
#[track_caller]
fn gives_way(policy: &str) -> String {
    let mut scene = Scene::new(policy);
    scene.submit(1, 4, 1, 10);
    assert_eq!(scene.step(10), "1 on n1");
    scene.start("1", 10, &[("n1", 4)]);
    scene.submit(2, 2, 1, 10);
    assert_eq!(scene.step(11), "2 on n1");
    scene.start("2", 11, &[("n1", 2)]);
    scene.submit(3, 6, 2, 10);
    assert_eq!(scene.step(12), "3 on n1+n2");
    // Its first node has room for more now.
    scene.cluster.jobs.remove("1");
    scene.submit(4, 4, 1, 10);
    scene.submit(5, 8, 1, 10);
    assert_eq!(scene.step(13), "4 on n1");
    scene.start("3", 13, &[("n1", 5), ("n2", 1)]);
    let step = scene.step(14);
    let ledger = scene.scheduler.driver.as_ref().unwrap().ledger();
    let capacities = ledger.machine().hosts().iter().map(|host| host.capacity.cpus_count().get());
    assert_eq!(capacities.collect::<Vec<_>>(), [8, 8]);
    step
}

#[test]
fn a_job_gives_way_to_one_that_has_more_of_its_node_than_planned() {
    // No promise is broken.
    assert_eq!(gives_way("conservative"), "4 on n2");
    assert_eq!(gives_way("fcfs-backfill(depth=kept)"), "4 on n2");
    // The next job is the head of the queue, with a promise, and has the processors.
    assert_eq!(gives_way("easy"), "4 back, 5 on n1+n2");
    assert_eq!(gives_way("miser"), "4 on n2");
}

/// The policy over classes of its own: a driver has no table of them.
fn lsf() -> PolicySpec {
    let order = vec![SizeTurn { size: 0, most: None }];
    let hours = |hours: i64| Span::from_secs(hours * 3600).unwrap();
    let classes = JobClasses {
        sizes: vec![SizeClass { name: "any".into(), procs: 64.into(), memory: u64::MAX }],
        lengths: vec![LengthClass {
            name: "any".into(),
            time: hours(400),
            reserve_wait: Some(hours(12)),
            most: None,
            first: false,
        }],
        hosts: ["n1", "n2"].map(|host| (host.to_owned(), order.clone())).into(),
        ..JobClasses::default()
    };
    let classes = Arc::new(classes);
    let needs = Needs { one_host_per_job: true, refusals: true, ..Needs::NONE };
    PolicySpec::from_fn("lsf", needs, move |machine, _| {
        Box::new(Lsf::new(&machine.clone().with_classes(Some(Arc::clone(&classes))), None, true))
    })
}

#[test]
fn a_policy_of_one_host_for_each_job_plans_the_others_not() {
    let mut scene = Scene::new("lsf");
    // A job of another partition has a part of both nodes.
    scene.submit(9, 6, 2, 10);
    scene.cluster.jobs.get_mut("9").unwrap().partitions = vec!["other".into()];
    scene.step(9);
    scene.start("9", 9, &[("n1", 4), ("n2", 2)]);
    scene.submit(1, 4, 1, 10);
    scene.submit(2, 4, 1, 10);
    scene.submit(3, 2, 2, 10);
    scene.submit(4, 9, 1, 10);
    // Of the hosts with room, the one with the fewest free processors is first.
    assert_eq!(scene.step(10), "1 on n1, 2 on n2");
    let why = |id: &str| scene.scheduler.jobs[id].unplanned().map(|unplanned| unplanned.why.as_str());
    assert_eq!(why("3"), Some("lsf gives each job one node"));
    let beyond = "it is in no class of the policy, or too large for the nodes of its class";
    assert_eq!(why("4"), Some(beyond));
    // Slurm would take another node beside the named one, or two for these tasks.
    scene.submit(5, 2, 1, 10);
    scene.submit(6, 2, 1, 10);
    scene.details.get_mut("5").unwrap().nodes = vec!["n1".into()];
    scene.details.get_mut("6").unwrap().tasks_per_node = 1;
    assert_eq!(scene.step(11), "");
    let why = |id: &str| scene.scheduler.jobs[id].unplanned().map(|unplanned| unplanned.why.as_str());
    assert_eq!(why("5"), Some("lsf cannot keep a job to some of the nodes"));
    assert_eq!(why("6"), Some("lsf gives each job one node"));
}

/// Has the policy keep the second node for a job, and then changes the cluster. The job starts on the first node.
#[track_caller]
fn check_kept_node(change: fn(&mut Cluster)) {
    let mut scene = Scene::new("lsf");
    for (job, cpus) in [(1, 8), (2, 4), (3, 4)] {
        scene.submit(job, cpus, 1, 20_000);
    }
    assert_eq!(scene.step(10), "1 on n1, 2 on n2, 3 on n2");
    for (job, node, cpus) in [("1", "n1", 8), ("2", "n2", 4), ("3", "n2", 4)] {
        scene.start(job, 10, &[(node, cpus)]);
    }
    scene.submit(4, 8, 1, 10);
    assert_eq!(scene.step(11), "");
    // After three days the second node is kept for it at the end of a job there.
    scene.cluster.jobs.remove("2");
    assert_eq!(scene.step(260_000), "");
    let kept = |scene: &Scene| scene.scheduler.driver.as_ref().unwrap().kept_hosts();
    assert_eq!(kept(&scene), [HostId(1)]);
    change(&mut scene.cluster);
    scene.cluster.jobs.remove("1");
    assert_eq!(scene.step(260_001), "4 on n1");
}

#[test]
fn a_node_that_is_kept_for_a_job_may_drain_or_go() {
    check_kept_node(|cluster| cluster.nodes.get_mut("n2").unwrap().states = vec!["drain".into()]);
    check_kept_node(|cluster| {
        cluster.jobs.remove("3");
        cluster.nodes.remove("n2");
        for partition in cluster.partitions.values_mut() {
            partition.nodes.retain(|node| node != "n2");
        }
    });
}

#[test]
fn another_policy_is_not_bound_by_the_promises_of_the_last_one() {
    let mut scene = Scene::new("conservative");
    scene.submit(1, 16, 2, 10);
    assert_eq!(scene.step(10), "1 on n1+n2");
    scene.start("1", 10, &[("n1", 8), ("n2", 8)]);
    scene.submit(2, 4, 1, 10);
    scene.step(11);
    let stored = scene.scheduler.stored();
    let promised = stored.jobs["2"].job.promise.clone().unwrap();
    assert_eq!(promised.first, promised.latest);
    for (policy, same) in [("conservative", true), ("fcfs", false), ("lsf", false), ("easy", false)] {
        let mut next = Scene::new(policy);
        next.cluster.jobs.clone_from(&scene.cluster.jobs);
        next.scheduler = Scheduler::new(next.scheduler.settings, stored.clone(), None);
        // The promise is over when the job ends.
        // After this time without a driver, the promise may be broken in any case.
        assert!(next.step(20_000).contains("2 broken") || same, "{policy}");
        next.cluster.jobs.remove("1");
        assert_eq!(next.step(20_001), "2 on n1", "{policy}");
        let promise = next.scheduler.jobs["2"].promise.as_ref().unwrap();
        assert_eq!(promise.broken.as_deref() != Some("the policy was changed"), same, "{policy}");
        assert_eq!(promise.first, promised.first);
    }
}

#[test]
fn another_policy_finds_another_place_for_a_placed_job() {
    let mut scene = Scene::new("conservative");
    scene.submit(1, 4, 1, 10);
    assert_eq!(scene.step(10), "1 on n1");
    for policy in ["fcfs", "lsf", "easy"] {
        let mut next = Scene::new(policy);
        next.cluster.jobs.clone_from(&scene.cluster.jobs);
        next.cluster.nodes.get_mut("n1").unwrap().states = vec!["drain".into()];
        next.scheduler = Scheduler::new(next.scheduler.settings, scene.scheduler.stored(), None);
        assert_eq!(next.step(12), "1 on n2, 1 broken", "{policy}");
    }
}

#[test]
fn a_requeued_job_that_slurm_keeps_from_starting_is_released() {
    let mut scene = Scene::new("conservative");
    scene.submit(1, 4, 1, 10);
    assert_eq!(scene.step(10), "1 on n1");
    assert_eq!(scene.step(11), "");
    scene.cluster.jobs.get_mut("1").unwrap().reason = Some("BeginTime".into());
    // Its user may have set another begin.
    assert_eq!(scene.step(12), "");
    // It ran ahead of its start and was requeued.
    scene.scheduler.jobs.get_mut("1").unwrap().lost = Span::from_secs(5).unwrap();
    assert_eq!(scene.step(13), "1 ready");
}

#[test]
fn the_next_driver_replaces_the_comment_on_a_try_that_has_become_the_run() {
    let mut scene = Scene::new("conservative");
    scene.scheduler.comment_field = Some(CommentField::Comment);
    scene.submit(1, 4, 1, 10);
    scene.step(10);
    scene.start("1", 11, &[("n1", 4)]);
    let earlier = |words: &str| earlier_comment(&format!("mine | miserly: {words}"));
    assert_eq!(earlier("starts on n1"), None);
    // Slurm may have started it by itself.
    assert!(earlier("starts by 2026-11-27T10:00:00").is_some());
    let job = scene.scheduler.jobs.get_mut("1").unwrap();
    job.comment = earlier("runs on idle nodes ahead of its start; if they are needed, it waits again");
    let written = "mine | miserly: runs on idle nodes ahead of its start; if they are needed, it waits again";
    scene.details.get_mut("1").unwrap().comment = Some(written.into());
    // The driver may have been killed before it had written that.
    assert_eq!(job.comment, earlier("runs"));
    let comments = |scene: &mut Scene, second| {
        let step = scene.run(second);
        let text = |order: &Order| match order {
            Order::Comment { text, .. } => Some(text.clone()),
            _ => None,
        };
        step.orders.iter().filter_map(text).collect::<Vec<_>>()
    };
    assert_eq!(comments(&mut scene, 12), ["mine | miserly: runs"]);
    // One that it has written itself is not read again.
    assert_eq!(comments(&mut scene, 13), [""; 0]);
}

#[test]
fn a_job_that_waits_for_another_place_leaves_its_reservation() {
    let mut scene = Scene::new("conservative");
    scene.scheduler.settings.lead = Some(Span::from_secs(10).unwrap());
    scene.submit(1, 8, 1, 10);
    assert_eq!(scene.step(10), "1 on n1");
    scene.submit(2, 8, 1, 10);
    assert_eq!(scene.step(11), "2 on n2");
    // The second job has to leave its node, and the first one waits for it.
    let place = Placement::on(HostId(1), Resources::cpus(8_u64));
    let now = Time::from_secs(11).unwrap();
    let job = scene.scheduler.jobs.get_mut("2").unwrap();
    job.set_opportunistic(Opportunistic::new(now, &scene.scheduler.site, &place));
    job.park(now, "2", &mut Step::default());
    let job = scene.scheduler.jobs.get_mut("1").unwrap();
    let (nodes, reason) = (vec!["n2".into()], String::new());
    job.assign(Assignment { since: now, nodes, last: None, reason, quantum: None });
    let mut step = Step::default();
    let left = scene.scheduler.nodes_to_wait_for();
    scene.scheduler.give_orders(&scene.cluster, &scene.details, &left, &mut step);
    let orders: Vec<String> = step.orders.iter().map(ToString::to_string).collect();
    assert!(
        orders.iter().any(|order| order.starts_with("scontrol update JobId=1 ReservationName= ")),
        "{orders:?}"
    );
}

/// Returns two full nodes, and the quantum of a third job, for which one of theirs is suspended at 100 s.
fn quantum(restarts: bool) -> Scene {
    let mut scene = Scene::new("immediate(policy=conservative,after=1m)");
    scene.submit(1, 8, 1, 60);
    scene.submit(2, 8, 1, 60);
    assert_eq!(scene.step(10), "1 on n1, 2 on n2");
    scene.start("1", 11, &[("n1", 8)]);
    scene.start("2", 11, &[("n2", 8)]);
    assert_eq!(scene.step(12), "");
    scene.submit(3, 4, 1, 30);
    assert_eq!(scene.step(100), "1 suspended, 3 on n1");
    if restarts {
        scene.restart();
    }
    // Slurm did not get to it yet.
    assert_eq!(scene.step(101), "1 suspended");
    scene.set("1", JobState::Suspended);
    scene.start("3", 101, &[("n1", 4)]);
    assert_eq!(scene.step(102), "");
    if restarts {
        scene.restart();
    }
    assert_eq!(scene.step(103), "");
    scene
}

#[test]
fn a_job_is_suspended_for_a_quantum_and_resumed_when_its_node_is_free() {
    for restarts in [false, true] {
        let mut scene = quantum(restarts);
        assert_eq!(scene.step(160), "3 requeued", "{restarts}");
        if restarts {
            scene.restart();
        }
        // It is about to leave. Slurm would let both share the processors.
        scene.set("3", JobState::Other("completing".into()));
        assert_eq!(scene.step(161), "");
        scene.set("3", JobState::Pending);
        assert_eq!(scene.step(163), "1 resumed");
        if restarts {
            scene.restart();
        }
        scene.set("1", JobState::Running);
        scene.cluster.jobs.get_mut("3").unwrap().priority = crate::orders::PLACED;
        assert_eq!(scene.step(167), "3 back", "{restarts}");
        let run = Run::Ordinary { suspended_for: Span::from_secs(65).unwrap() };
        assert_eq!(scene.scheduler.jobs["1"].state(), &DrivenState::Running(run), "{restarts}");
        let ledger = scene.scheduler.driver.as_ref().unwrap().ledger();
        let handle = scene.scheduler.jobs["1"].handle.unwrap();
        let State::Running { expected, start, .. } = ledger.entry(handle).state else { panic!("it runs") };
        let limit = scene.scheduler.settings.estimate(Limit::Seconds(3_600));
        let end = start + limit + Span::from_secs(65).unwrap();
        assert_eq!(expected, Expected::At(end), "{restarts}");
        // It has the plan that it had before.
        let waits = ledger.entry(scene.scheduler.jobs["3"].handle.unwrap());
        let limit = scene.scheduler.settings.estimate(Limit::Seconds(3_600));
        assert_eq!(waits.planned, Time::from_secs(10).map(|start| start + limit), "{restarts}");
        let job = scene.cluster.jobs.get_mut("3").unwrap();
        (job.reservation, job.priority) = (None, 1);
        assert_eq!(scene.step(168), "3 ready", "{restarts}");
    }
}

#[test]
fn a_job_has_one_quantum() {
    let mut scene = quantum(false);
    scene.step(160);
    scene.set("3", JobState::Pending);
    assert_eq!(scene.step(163), "1 resumed");
    scene.set("1", JobState::Running);
    scene.step(170);
    scene.cluster.jobs.get_mut("3").unwrap().reservation = None;
    scene.scheduler.jobs.get_mut("3").unwrap().end_opportunistic();
    // Its user holds it for a while, and changes its limit.
    let priority = std::mem::take(&mut scene.cluster.jobs.get_mut("3").unwrap().priority);
    scene.step(300);
    assert!(scene.scheduler.jobs["3"].unplanned().is_some());
    scene.cluster.jobs.get_mut("3").unwrap().priority = priority;
    scene.cluster.jobs.get_mut("3").unwrap().limit = Limit::Seconds(1_200);
    assert_eq!(scene.step(301), "");
    assert_eq!(scene.scheduler.jobs["3"].unplanned(), None);
}

#[test]
fn a_quantum_ends_on_a_node_that_drains() {
    let mut scene = quantum(false);
    scene.cluster.nodes.get_mut("n1").unwrap().states = vec!["drain".into()];
    assert_eq!(scene.step(120), "");
    assert_eq!(scene.step(159), "");
    assert_eq!(scene.step(161), "3 requeued");
    scene.set("3", JobState::Pending);
    assert_eq!(scene.step(163), "1 resumed");
    // The node may be back before the end, too.
    let mut scene = quantum(false);
    scene.cluster.nodes.get_mut("n1").unwrap().states = vec!["drain".into()];
    assert_eq!(scene.step(120), "");
    scene.cluster.nodes.get_mut("n1").unwrap().states = vec!["idle".into()];
    assert_eq!(scene.step(130), "");
    assert_eq!(scene.step(161), "3 requeued");
}

#[test]
fn a_run_that_outlived_the_driver_goes_on_if_no_job_waits_for_it() {
    for waits in [true, false] {
        let mut scene = quantum(false);
        if !waits {
            scene.cluster.jobs.remove("1");
        }
        scene.restart();
        // The driver may not have seen it running.
        let at = |second| Time::from_secs(second).unwrap();
        let job = scene.scheduler.jobs.get_mut("3").unwrap();
        let (nodes, quantum) = (vec!["n1".into()], job.quantum());
        job.assign(Assignment { since: at(100), nodes, last: None, reason: String::new(), quantum });
        assert!(job.place(at(100)));
        scene.restart();
        assert_eq!(scene.step(10_000), if waits { "3 requeued" } else { "" });
        assert_eq!(scene.scheduler.jobs["3"].is_running(), !waits);
        assert_eq!(scene.step(10_001), if waits { "3 requeued" } else { "" });
    }
}

#[test]
fn a_job_that_does_not_leave_is_requeued_by_the_next_driver_before_it_may_stay() {
    let mut scene = quantum(false);
    assert_eq!(scene.step(160), "3 requeued");
    scene.restart();
    for second in (1_000..1_080).step_by(10) {
        assert_eq!(scene.step(second), "3 requeued", "{second}");
    }
    // A suspended job waits for its node.
    assert_eq!(scene.step(1_080), "3 requeued");
    scene.cluster.jobs.remove("1");
    assert_eq!(scene.step(1_090), "");
    assert!(scene.scheduler.jobs["3"].is_running());
}

#[test]
fn a_job_with_more_memory_than_is_left_has_no_quantum_and_keeps_its_place() {
    let mut scene = Scene::new("immediate(policy=conservative,after=1m)");
    scene.cluster = cluster(&[("n1", 8, 16_000)], "CR_CPU_MEMORY");
    let submit = |scene: &mut Scene, number: u64, cpus: u64, memory: u64| {
        scene.submit(number, cpus, 1, 60);
        let job = scene.cluster.jobs.get_mut(&number.to_string()).unwrap();
        job.memory = Some(Amount::PerNode(memory));
    };
    submit(&mut scene, 1, 8, 10_000);
    assert_eq!(scene.step(10), "1 on n1");
    scene.start("1", 10, &[("n1", 8)]);
    scene.details.get_mut("1").unwrap().on.get_mut("n1").unwrap().memory = 10_000;
    assert_eq!(scene.step(11), "");
    submit(&mut scene, 2, 4, 8_000);
    assert_eq!(scene.step(100), "");
    assert_eq!(scene.step(101), "");
    let (first, second) = (&scene.scheduler.jobs["1"], &scene.scheduler.jobs["2"]);
    assert!(!first.is_suspended() && second.unplanned().is_none() && second.is_waiting());
    let ledger = scene.scheduler.driver.as_ref().unwrap().ledger();
    assert_eq!(ledger.suspended_count(), 0);
    assert!(ledger.entry(scene.scheduler.jobs["2"].handle.unwrap()).planned.is_some());
    // One with less has one.
    submit(&mut scene, 3, 4, 1_000);
    assert_eq!(scene.step(102), "1 suspended, 3 on n1");
}

#[test]
fn a_job_that_ends_in_its_quantum_has_its_start() {
    let mut scene = quantum(false);
    scene.cluster.jobs.remove("3");
    let Scene { cluster, details, scheduler } = &mut scene;
    let observed = Observation { cluster, details, is_complete: true, starts: &BTreeMap::new() };
    let step = scheduler.step(Time::from_secs(110).unwrap(), observed).unwrap();
    assert_eq!(
        step.starts.iter().map(|start| (start.job.as_str(), start.start.secs())).collect::<Vec<_>>(),
        [("3", 101)]
    );
    assert!(step.orders.contains(&Order::Resume { job: "1".into() }), "{step:?}");
}

#[test]
fn no_job_is_suspended_that_is_not_the_drivers() {
    let mut scene = Scene::new("immediate(policy=conservative,after=1m)");
    scene.scheduler.settings.partitions = vec!["batch".into()];
    scene.submit(1, 8, 1, 60);
    scene.submit(2, 8, 1, 60);
    assert_eq!(scene.step(10), "1 on n1, 2 on n2");
    scene.start("1", 11, &[("n1", 8)]);
    scene.start("2", 11, &[("n2", 8)]);
    scene.set("1", JobState::Suspended);
    scene.cluster.jobs.get_mut("2").unwrap().partitions = vec!["other".into()];
    assert_eq!(scene.step(12), "");
    scene.submit(3, 4, 1, 30);
    assert_eq!(scene.step(100), "");
    let ledger = scene.scheduler.driver.as_ref().unwrap().ledger();
    assert_eq!((ledger.suspended_count(), ledger.running().count()), (0, 2));
    assert!(scene.scheduler.jobs["3"].is_waiting());
    // The job was not suspended by the driver, and is not resumed by it.
    scene.cluster.jobs.remove("2");
    assert_eq!(scene.step(101), "3 on n2");
}

/// Returns a scene in which a node has room for an hour, and jobs wait that both nodes are planned for then.
fn beside_plans() -> Scene {
    let mut scene = Scene::new("soon(policy=conservative)");
    scene.submit(1, 8, 1, 60);
    scene.submit(2, 4, 1, 60);
    assert_eq!(scene.step(10), "1 on n1, 2 on n2");
    scene.start("1", 10, &[("n1", 8)]);
    scene.start("2", 10, &[("n2", 4)]);
    scene.submit(3, 8, 1, 60);
    scene.submit(4, 8, 1, 60);
    assert_eq!(scene.step(11), "");
    scene
}

#[test]
fn a_job_that_must_not_be_requeued_has_no_quantum() {
    for is_requeueable in [true, false] {
        let mut scene = beside_plans();
        scene.submit(5, 4, 1, 90);
        scene.details.get_mut("5").unwrap().is_requeueable = is_requeueable;
        assert_eq!(scene.step(12), if is_requeueable { "5 on n2" } else { "" });
    }
}

#[test]
fn a_job_that_may_have_no_quantum_takes_none_from_others() {
    let mut scene = Scene::new("immediate(policy=conservative,after=1m)");
    scene.submit(1, 8, 1, 60);
    assert_eq!(scene.step(10), "1 on n1");
    scene.start("1", 11, &[("n1", 8)]);
    scene.submit(2, 8, 1, 60);
    assert_eq!(scene.step(80), "2 on n2");
    scene.start("2", 81, &[("n2", 8)]);
    // One job only has run for long enough to be suspended.
    scene.submit(3, 8, 1, 30);
    scene.details.get_mut("3").unwrap().is_requeueable = false;
    scene.submit(4, 8, 1, 30);
    assert_eq!(scene.step(100), "1 suspended, 4 on n1");
}

#[test]
fn a_job_whose_node_drains_before_its_quantum_keeps_its_place() {
    let mut scene = beside_plans();
    scene.submit(5, 4, 1, 90);
    assert_eq!(scene.step(12), "5 on n2");
    scene.start("5", 12, &[("n2", 4)]);
    scene.submit(6, 4, 1, 90);
    scene.submit(7, 8, 1, 90);
    // The job in its quantum is about to leave: the next one is not passed on.
    assert_eq!(scene.step(72), "5 requeued");
    let admitted = |scene: &Scene| {
        let ledger = scene.scheduler.driver.as_ref().unwrap().ledger();
        ledger.entry(scene.scheduler.jobs["6"].handle.unwrap()).admitted
    };
    let assigned = &scene.scheduler.jobs["6"];
    assert!(matches!(assigned.state(), DrivenState::Assigned { .. }), "{assigned:?}");
    assert_eq!(assigned.assignment().unwrap().nodes, ["n2"]);
    let before = admitted(&scene);
    scene.cluster.nodes.get_mut("n2").unwrap().states = vec!["drain".into()];
    scene.step(73);
    let job = &scene.scheduler.jobs["6"];
    assert!(job.is_waiting() && job.quantum().is_none());
    assert_eq!(admitted(&scene), before);
}

#[test]
fn another_policy_resumes_the_jobs_that_the_last_one_suspended() {
    let scene = quantum(false);
    let mut next = Scene::new("easy");
    next.cluster.jobs.clone_from(&scene.cluster.jobs);
    next.scheduler = Scheduler::new(next.scheduler.settings, scene.scheduler.stored(), None);
    assert_eq!(next.step(105), "");
    // The job of the quantum goes on to its end.
    assert_eq!(next.step(200), "");
    next.cluster.jobs.remove("3");
    assert_eq!(next.step(201), "1 resumed");
}

#[test]
fn a_promise_on_a_node_that_drains_is_broken() {
    for alone in [false, true] {
        let mut scene = Scene::new("conservative");
        scene.submit(1, 8, 1, 60);
        scene.submit(2, 8, 1, 10);
        assert_eq!(scene.step(10), "1 on n1, 2 on n2");
        scene.start("1", 10, &[("n1", 8)]);
        scene.start("2", 10, &[("n2", 8)]);
        scene.submit(3, 8, 1, 10);
        scene.details.get_mut("3").unwrap().exclusive = alone;
        assert_eq!(scene.step(11), "");
        scene.cluster.nodes.get_mut("n2").unwrap().states = vec!["drain".into()];
        assert_eq!(scene.step(12), "3 broken", "{alone}");
    }
}

#[test]
fn a_promise_that_moves_has_its_cause() {
    let mut scene = Scene::new("conservative");
    scene.submit(1, 16, 2, 10);
    assert_eq!(scene.step(10), "1 on n1+n2");
    scene.start("1", 10, &[("n1", 8), ("n2", 8)]);
    scene.submit(2, 16, 2, 10);
    assert_eq!(scene.step(11), "");
    let cause = |scene: &mut Scene, second: i64| {
        let broken = |(id, note): (String, Note)| match note {
            Note::PromiseBroken { why, .. } if id == "2" => Some(why),
            _ => None,
        };
        scene.run(second).notes.into_iter().find_map(broken).unwrap_or_default()
    };
    // Another job has its place when it is released.
    let priority = std::mem::take(&mut scene.cluster.jobs.get_mut("2").unwrap().priority);
    scene.submit(3, 16, 2, 10);
    assert_eq!(cause(&mut scene, 12), "it is held");
    scene.cluster.jobs.get_mut("2").unwrap().priority = priority;
    assert_eq!(cause(&mut scene, 13), "it is held");
    // Its request changes, and another job has its place.
    scene.submit(4, 15, 2, 10);
    assert_eq!(cause(&mut scene, 14), "");
    scene.cluster.jobs.get_mut("2").unwrap().cpus = 14;
    assert_eq!(cause(&mut scene, 15), "it was planned anew for a changed request");
}

#[test]
fn as_many_tasks_are_planned_as_their_array_may_run() {
    for policy in ["conservative", "easy", "miser"] {
        let mut scene = Scene::new(policy);
        scene.submit_array(7, &[10, 3, 1, 2], 2);
        scene.submit(8, 14, 2, 20);
        assert_eq!(scene.step(10), "7_1 on n1, 7_2 on n1", "{policy}");
        for task in ["7_1", "7_2"] {
            scene.start(task, 10, &[("n1", 1)]);
        }
        // Slurm would fill the first node, where the tasks were to start.
        assert_eq!(scene.step(11), "8 on n1+n2", "{policy}");
        scene.start("8", 11, &[("n1", 6), ("n2", 8)]);
        // Slurm shows no limit with a task by itself.
        let form = Detail { least_nodes: 1, least_cpus: 1, ..Detail::default() };
        scene.details.insert("7_3".into(), form);
        assert_eq!(scene.step(12), "", "{policy}");
        let unplanned = scene.scheduler.jobs["7_3"].unplanned().map(|unplanned| unplanned.why.clone());
        assert_eq!(unplanned.as_deref(), Some("its array runs at most 2 at the same time"));
        scene.restart();
        scene.cluster.jobs.remove("7_2");
        assert_eq!(scene.step(13), "7_3 on n1", "{policy}");
        scene.cluster.jobs.remove("7_1");
        assert_eq!(scene.step(14), "7_10 on n1", "{policy}");
    }
}

#[test]
fn a_comment_that_its_user_changes_stays() {
    let mut scene = Scene::new("conservative");
    scene.scheduler.comment_field = Some(CommentField::Comment);
    scene.submit(1, 8, 2, 10);
    scene.submit(2, 16, 2, 10);
    let comment = |scene: &mut Scene, second: i64, comment: Option<&str>| {
        if let Some(comment) = comment {
            let comment = Some(comment.to_owned());
            let form = Detail { least_nodes: 2, least_cpus: 1, comment, ..Detail::default() };
            scene.details.insert("2".into(), form);
        }
        let step = scene.run(second);
        let text = |order: Order| match order {
            Order::Comment { job, text, .. } if job == "2" => Some(text),
            _ => None,
        };
        (step.orders.into_iter().find_map(text).unwrap_or_default(), step.unread.contains("2"))
    };
    let (first, _) = comment(&mut scene, 10, Some("mine"));
    assert!(first.starts_with("mine | miserly: starts by"), "{first}");
    assert_eq!(comment(&mut scene, 11, None), (String::new(), false));
    // Its promise changes. It is read again before the comment is written.
    scene.start("1", 10, &[("n1", 4), ("n2", 4)]);
    scene.cluster.jobs.remove("1");
    scene.submit(3, 16, 2, 30);
    scene.cluster.jobs.get_mut("2").unwrap().priority = 0;
    assert_eq!(comment(&mut scene, 12, None), (String::new(), true));
    let (next, _) = comment(&mut scene, 13, Some("other"));
    assert_eq!(next, "other | miserly: not planned: it is held");
    // It was written.
    assert_eq!(comment(&mut scene, 14, Some(&next)), (String::new(), false));
}

#[test]
fn an_administrator_writes_behind_the_words_of_others_in_the_comment_of_administrators() {
    let mut scene = Scene::new("conservative");
    scene.scheduler.comment_field = Some(CommentField::AdminComment);
    scene.submit(1, 16, 2, 10);
    let comment = |scene: &mut Scene, second: i64, admin_comment: Option<&str>| {
        let known = scene.scheduler.jobs.get("1").map(|job| job.form.clone());
        let form = known.unwrap_or_else(|| scene.details["1"].clone());
        let (comment, admin_comment) = (Some("mine".to_owned()), admin_comment.map(str::to_owned));
        scene.details.insert("1".into(), Detail { comment, admin_comment, ..form });
        let orders = scene.run(second).orders.into_iter();
        let text = |order: Order| match order {
            Order::Comment { field, text, .. } => Some((field, text)),
            _ => None,
        };
        orders.filter_map(text).collect::<Vec<_>>()
    };
    let placed = comment(&mut scene, 10, Some("of the site"));
    assert_eq!(placed, [(CommentField::AdminComment, "of the site | miserly: starts on n1,n2".to_owned())]);
    assert_eq!(comment(&mut scene, 11, Some(&placed[0].1)), []);
    // Slurm refuses it.
    scene.scheduler.write_user_comments();
    let next = comment(&mut scene, 12, Some("of the site"));
    assert_eq!(next, [(CommentField::Comment, "mine | miserly: starts on n1,n2".to_owned())]);
}

#[test]
fn a_placed_job_of_an_earlier_driver_is_read_before_its_comment_is_written() {
    let mut scene = Scene::new("conservative");
    scene.scheduler.comment_field = Some(CommentField::AdminComment);
    scene.submit(1, 16, 2, 10);
    scene.run(10);
    scene.restart();
    let step = scene.run(11);
    assert!(
        step.unread.contains("1") && !step.orders.iter().any(|order| matches!(order, Order::Comment { .. }))
    );
}

#[test]
fn the_first_tasks_of_an_array_keep_their_places() {
    let mut scene = Scene::new("conservative");
    scene.submit(9, 16, 2, 30);
    assert_eq!(scene.step(10), "9 on n1+n2");
    scene.start("9", 10, &[("n1", 8), ("n2", 8)]);
    scene.submit_array(7, &[1, 2, 3, 4], 4);
    assert_eq!(scene.step(11), "");
    let has_place = |scene: &Scene| {
        let has = |task: &&str| scene.scheduler.jobs[&format!("7_{task}")].has_place();
        ["1", "2", "3", "4"].into_iter().filter(has).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(has_place(&scene), "1 2 3 4");
    // The limit is lowered: Slurm shows it with the tasks that wait together.
    let form = Detail { least_nodes: 1, least_cpus: 1, array_limit: Some(2), ..Detail::default() };
    scene.details.insert("7_2".into(), form.clone());
    assert_eq!(scene.step(12), "7_3 broken, 7_4 broken");
    assert_eq!(has_place(&scene), "1 2");
    scene.details.insert("7_4".into(), Detail { array_limit: Some(3), ..form });
    assert_eq!(scene.step(13), "");
    assert_eq!(has_place(&scene), "1 2 3");
}
