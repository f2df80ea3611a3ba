use super::*;
use crate::{
    Allocated, Amount, Configuration, Detail, Limit, Limits, NewJob, Node, Partition, Quality, QualityLimits,
    Reservation,
};
use miserly_forecast::Forecaster;

fn cluster() -> Cluster {
    let node = |state: &str| Node { states: vec![state.to_owned()], cpus: 4, ..Node::default() };
    let partition = |nodes: &[&str], tier| Partition {
        nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
        state: "up".to_owned(),
        tier,
        ..Partition::default()
    };
    let scheduler = "sched/backfill".to_owned();
    Cluster {
        configuration: Configuration { now: 1000, scheduler, ..Configuration::default() },
        nodes: [("a", "idle"), ("b", "mixed"), ("c", "idle"), ("d", "down")]
            .map(|(name, state)| (name.to_owned(), node(state)))
            .into(),
        partitions: [
            ("batch".to_owned(), partition(&["a", "b", "d"], 1)),
            ("fast".to_owned(), partition(&["b"], 2)),
            ("other".to_owned(), partition(&["c"], 1)),
        ]
        .into(),
        ..Cluster::default()
    }
}

fn job(number: u64, partition: &str, cpus: u64, priority: u64) -> Job {
    let limit = Limit::Seconds(600);
    Job {
        id: number.to_string(),
        number,
        partitions: vec![partition.to_owned()],
        cpus,
        priority,
        limit,
        ..Job::default()
    }
}

#[test]
fn partitions_that_share_nodes_are_one_queue() {
    let mut cluster = cluster();
    let runs = Job {
        state: JobState::Running,
        start: Some(900),
        on: vec!["a".to_owned(), "d".to_owned()],
        ..job(1, "batch", 6, 1)
    };
    let jobs = [
        runs,
        job(2, "batch", 2, 50),
        job(3, "fast", 2, 10),
        job(4, "batch", 2, 90),
        job(5, "batch", 2, 0),
        job(6, "batch", 9, 20),
        Job { reason: Some("Dependency".to_owned()), ..job(7, "batch", 1, 7) },
        job(8, "other", 1, 1),
    ];
    cluster.jobs = jobs.map(|job| (job.id.clone(), job)).into();
    let queues = cluster.queues(None, &Observed::default());
    assert_eq!(queues.len(), 2);
    let queue = &queues[0];
    assert_eq!((queue.partitions.join(" "), queue.cpus), ("batch fast".to_owned(), 8));
    let ledger = &queue.live.copy.ledger;
    // Of its six processors, three are on the node that is in service.
    assert_eq!(ledger.free().cpus_count(), Procs::new(5));
    let waiting: Vec<&str> =
        ledger.waiting().map(|job| queue.ids[&ledger.request(job).number].as_str()).collect();
    assert_eq!(waiting, ["3", "4", "2"]);
    let left_out: Vec<&str> = queue.left_out.keys().map(String::as_str).collect();
    assert_eq!(left_out, ["5", "6", "7"]);
    assert_eq!(queue.left_out["7"], "it waits for other jobs");
    assert_eq!(queue.live.policy.to_string(), "slurm");
    assert_eq!(queues[1].live.copy.ledger.waiting_count(), 1);
}

/// Returns the jobs of the first queue that start by 60 s in a simulation, by name, and whether it has nodes.
fn soon(cluster: &Cluster) -> (Vec<String>, bool) {
    let forecasts = crate::forecasts(cluster, &Forecaster::default(), None, &Observed::default(), 1).jobs;
    let soon = forecasts.iter().filter(|one| one.median <= one.made + 60);
    let on_nodes =
        !cluster.queues(None, &Observed::default())[0].live.copy.ledger.machine().hosts().is_empty();
    (soon.map(|one| one.job.clone()).collect(), on_nodes)
}

fn runs(job: Job, on: &[&str]) -> Job {
    let on: Vec<String> = on.iter().map(|node| (*node).to_owned()).collect();
    Job { state: JobState::Running, start: Some(900), nodes: on.len() as u64, on, ..job }
}

#[test]
fn jobs_wait_for_memory_gpus_and_the_nodes_of_their_partition() {
    let mut cluster = cluster();
    cluster.configuration.select_parameters = Some("CR_CPU_MEMORY".to_owned());
    cluster.configuration.scheduler_parameters = Some("bf_interval=10".to_owned());
    cluster.partitions.values_mut().for_each(|partition| partition.tier = 1);
    for node in cluster.nodes.values_mut() {
        (node.memory, node.gres) = (1000, Some("gpu:2".to_owned()));
    }
    let with = |memory, job| Job { memory: Some(Amount::PerNode(memory)), nodes: 1, ..job };
    let gpus = |gpus: u32, job| Job { gres: Some(format!("gres:gpu:{gpus}")), ..with(100, job) };
    let jobs = [
        runs(with(700, job(1, "batch", 1, 1)), &["a"]),
        runs(gpus(2, job(2, "batch", 1, 1)), &["b"]),
        // Node b has the memory, and node a the GPUs.
        with(400, job(3, "batch", 1, 90)),
        gpus(1, job(4, "batch", 1, 80)),
        // Neither has both.
        Job { gres: Some("gres:gpu:1".to_owned()), ..with(400, job(5, "batch", 1, 70)) },
        // Their partition has node b only. They end before job 5 starts there, and there is room for one of them.
        Job { limit: Limit::Seconds(300), ..with(400, job(6, "fast", 1, 60)) },
        Job { limit: Limit::Seconds(300), ..with(400, job(7, "fast", 1, 50)) },
        with(2000, job(8, "batch", 1, 40)),
    ];
    cluster.jobs = jobs.map(|job| (job.id.clone(), job)).into();
    assert_eq!(soon(&cluster), (["3", "4", "6"].map(str::to_owned).into(), true));
    let queue = &cluster.queues(None, &Observed::default())[0];
    assert_eq!(queue.left_out["8"], "the nodes in service cannot hold it");
    // Without memory in Slurm's count, only GPUs matter.
    cluster.configuration.select_parameters = None;
    assert_eq!(soon(&cluster).0, ["3", "4", "5", "6", "7", "8"].map(str::to_owned));
}

#[test]
fn the_processors_on_each_node_are_those_of_the_controller() {
    let mut cluster = cluster();
    let jobs = [runs(job(1, "batch", 6, 1), &["a", "b"]), job(2, "fast", 1, 1)];
    cluster.jobs = jobs.map(|job| (job.id.clone(), job)).into();
    let free = |observed: &Observed| {
        let queue = &cluster.queues(None, observed)[0];
        let ledger = &queue.live.copy.ledger;
        ledger.free_hosts().each().iter().map(|room| room.cpus_count().get()).collect::<Vec<_>>()
    };
    assert_eq!(free(&Observed::default()), [1, 1]);
    let on = [("a", 2), ("b", 4)].map(|(node, cpus)| (node.to_owned(), Allocated { cpus, memory: 0 }));
    let detail = Detail { on: on.into(), ..Detail::default() };
    let observed = Observed { details: [("1".to_owned(), detail)].into(), ..Observed::default() };
    assert_eq!(free(&observed), [2, 0]);
}

/// Returns the free processors of each node, and the waiting jobs that start soon.
fn after(cluster: &mut Cluster, jobs: Vec<Job>, details: &[(&str, Detail)]) -> (Vec<u64>, Vec<String>) {
    cluster.jobs = jobs.into_iter().map(|job| (job.id.clone(), job)).collect();
    let details = details.iter().map(|(id, detail)| ((*id).to_owned(), detail.clone())).collect();
    let observed = Observed { details, ..Observed::default() };
    let queue = &cluster.queues(None, &observed)[0];
    let rooms = queue.live.copy.ledger.free_hosts();
    let free = rooms.each().iter().map(|room| room.cpus_count().get()).collect();
    let forecasts = crate::forecasts(cluster, &Forecaster::default(), None, &observed, 1).jobs;
    let soon = forecasts.iter().filter(|one| one.median <= one.made + 60);
    (free, soon.map(|one| one.job.clone()).collect())
}

#[test]
fn jobs_hold_what_the_controller_says() {
    let mut cluster = cluster();
    cluster.configuration.select_parameters = Some("CR_CPU_MEMORY".to_owned());
    for node in cluster.nodes.values_mut() {
        (node.memory, node.gres) = (1000, Some("gpu:2".to_owned()));
    }
    let memory = |amount, job| Job { memory: Some(amount), nodes: 1, ..job };
    let wants = || memory(Amount::PerNode(300), job(9, "batch", 1, 1));
    // Two jobs share the processors of a node. Neither is more than there is.
    let shares = |number| runs(memory(Amount::PerNode(10), job(number, "batch", 4, 1)), &["a"]);
    assert_eq!(after(&mut cluster, vec![shares(1), shares(2), wants()], &[]).0, [0, 4]);
    // Four processors have one GPU of two, so another job has the other one.
    let one_gpu = |job| Job { gres: Some("gres:gpu:1".to_owned()), ..memory(Amount::PerNode(10), job) };
    let jobs = || vec![runs(one_gpu(job(1, "batch", 3, 1)), &["b"]), one_gpu(job(2, "fast", 1, 1))];
    assert_eq!(after(&mut cluster, jobs(), &[]), (vec![4, 1], vec!["2".to_owned()]));
    // By job, they are in the sum.
    let sum =
        Detail { gres_otherwise: Some("gres:gpu:1".into()), gpus: 2, least_nodes: 1, ..Detail::default() };
    let by_job = Job { gres: None, ..jobs()[1].clone() };
    assert_eq!(after(&mut cluster, vec![jobs()[0].clone(), by_job], &[("2", sum)]).1, Vec::<String>::new());
    // What `squeue` shows is memory for each of four processors.
    let by_cpu = Detail { memory: Some(Amount::PerCpu(200)), least_nodes: 1, ..Detail::default() };
    let four = || runs(memory(Amount::PerNode(200), job(1, "batch", 4, 1)), &["b"]);
    let idle = || memory(Amount::PerNode(300), job(2, "fast", 0, 1));
    assert_eq!(after(&mut cluster, vec![four(), idle()], &[("1", by_cpu)]).1, Vec::<String>::new());
    // Without an amount a job has its nodes.
    let alone = runs(job(1, "batch", 2, 1), &["a", "b"]);
    assert_eq!(after(&mut cluster, vec![alone, wants()], &[]), (vec![0, 0], vec![]));
    let two = |number| job(number, "batch", 2, 100 - number);
    let pairs = Detail { least_nodes: 2, ..Detail::default() };
    let both = after(&mut cluster, vec![two(1), two(2)], &[("1", pairs.clone()), ("2", pairs)]);
    assert_eq!(both.1, ["1"]);
    // With a limit of one node it waits for that, though the processors are there.
    let wide = || memory(Amount::PerNode(10), job(2, "batch", 4, 1));
    let half = |number, node| runs(memory(Amount::PerNode(10), job(number, "batch", 2, 1)), &[node]);
    let by_cpu = |most| Detail {
        memory: Some(Amount::PerCpu(10)),
        least_nodes: 1,
        most_nodes: most,
        ..Detail::default()
    };
    let halves = || vec![half(1, "a"), half(3, "b"), wide()];
    assert_eq!(after(&mut cluster, halves(), &[("2", by_cpu(None))]).1, ["2"]);
    assert_eq!(after(&mut cluster, halves(), &[("2", by_cpu(Some(1)))]).1, Vec::<String>::new());
    // No two nodes have equal parts of seven processors and 900 MiB, and it is not left out.
    cluster.nodes.get_mut("a").unwrap().cpus = 3;
    let uneven = Job { nodes: 2, ..memory(Amount::PerNode(900), job(2, "batch", 7, 1)) };
    assert_eq!(after(&mut cluster, vec![uneven], &[]).1, Vec::<String>::new());
    let uneven = memory(Amount::PerNode(10), job(2, "batch", 7, 1));
    assert_eq!(after(&mut cluster, vec![uneven], &[]).1, ["2"]);
    cluster.nodes.get_mut("a").unwrap().cpus = 4;
    // A suspended job keeps its memory, and a job that ends keeps its nodes for a moment.
    let state = |state, job| Job { state, ..job };
    let kept = state(JobState::Suspended, runs(memory(Amount::PerNode(900), job(1, "batch", 4, 1)), &["b"]));
    let small = || memory(Amount::PerNode(300), job(2, "fast", 1, 1));
    assert_eq!(after(&mut cluster, vec![kept, small()], &[]), (vec![4, 4], vec![]));
    let ends = JobState::Other("completing".to_owned());
    let ends = state(ends, runs(memory(Amount::PerNode(900), job(1, "batch", 4, 1)), &["b"]));
    assert_eq!(after(&mut cluster, vec![ends, small()], &[]), (vec![4, 0], vec!["2".to_owned()]));
    // A partition that is down does not count.
    cluster.partitions.get_mut("fast").unwrap().state = "down".to_owned();
    let either = Job { partitions: vec!["fast".to_owned(), "batch".to_owned()], ..small() };
    let full = runs(memory(Amount::PerNode(900), job(1, "batch", 4, 1)), &["b"]);
    assert_eq!(after(&mut cluster, vec![full, either], &[]).1, ["2"]);
}

#[test]
fn on_one_node_jobs_have_what_they_asked_for() {
    let mut cluster = cluster();
    cluster.nodes.get_mut("c").unwrap().gres = Some("gpu:2".to_owned());
    let one =
        |number| Job { gres: Some("gres:gpu:1".into()), nodes: 1, ..job(number, "other", 2, 100 - number) };
    cluster.jobs = [one(1), one(2), one(3)].map(|job| (job.id.clone(), job)).into();
    let forecasts = crate::forecasts(&cluster, &Forecaster::default(), None, &Observed::default(), 1);
    let soon: Vec<bool> = forecasts.jobs.iter().map(|one| one.median <= one.made + 60).collect();
    assert_eq!((soon, forecasts.left_out.len()), (vec![true, true, false], 0));
}

#[test]
fn a_cluster_without_nodes_has_no_room() {
    let cluster = Cluster { nodes: BTreeMap::new(), ..cluster() };
    assert!(cluster.queues(None, &Observed::default()).iter().all(|queue| queue.cpus == 0));
    crate::forecasts(&cluster, &Forecaster::default(), None, &Observed::default(), 1);
}

/// Returns a cluster of two nodes with a reservation of some of them, in seconds from now, and its jobs.
fn reserved(nodes: &[&str], [begin, end]: [i64; 2], flags: &[&str], jobs: Vec<Job>) -> Cluster {
    let mut cluster = cluster();
    cluster.configuration.scheduler_parameters = Some("bf_interval=10,bf_resolution=1".to_owned());
    cluster.partitions.remove("other");
    cluster.partitions.values_mut().for_each(|partition| partition.tier = 1);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let reservation = Reservation {
        begin: 1000 + begin,
        end: 1000 + end,
        nodes: names(nodes),
        flags: names(flags),
        ..Reservation::default()
    };
    cluster.reservations = [("maint".to_owned(), reservation)].into();
    cluster.jobs = jobs.into_iter().map(|job| (job.id.clone(), job)).collect();
    cluster
}

/// Returns the median of each forecast in seconds from now, by job.
fn medians(cluster: &Cluster, policy: Option<&str>) -> Vec<(String, i64)> {
    let policy: Option<PolicySpec> = policy.map(|policy| policy.parse().unwrap());
    let forecaster = Forecaster::default();
    let all = crate::forecasts(cluster, &forecaster, policy.as_ref(), &Observed::default(), 2);
    all.jobs.into_iter().map(|one| (one.job, one.median - one.made)).collect()
}

/// Checks the medians of jobs that wait for two idle nodes of four processors each: their processors and limits, and the medians.
#[track_caller]
fn check_reserved(nodes: &[&str], times: [i64; 2], jobs: &[(u64, u64)], expected: &[i64]) {
    let waits = |(number, (cpus, limit)): (u64, &(u64, u64))| Job {
        limit: Limit::Seconds(*limit),
        ..job(number, "batch", *cpus, 100 - number)
    };
    let cluster = reserved(nodes, times, &["maint"], (1..).zip(jobs).map(waits).collect());
    let medians: Vec<i64> = medians(&cluster, None).into_iter().map(|(_, median)| median).collect();
    assert!(
        medians.iter().zip(expected).all(|(median, expected)| median.abs_diff(*expected) <= 10),
        "{medians:?}, not {expected:?}"
    );
    assert_eq!(medians.len(), expected.len());
}

#[test]
fn no_forecast_is_in_a_reservation_that_is_known_to_begin() {
    let all = ["a", "b"];
    // The first two end before it. The third one is too long, and holds up no shorter one.
    let jobs = [(4, 200), (4, 290), (4, 301), (2, 90)];
    check_reserved(&all, [300, 900], &jobs, &[0, 0, 900, 200]);
    // The second one waits for the first one, and its limit then reaches into the reservation.
    check_reserved(&all, [300, 900], &[(8, 200), (8, 200), (8, 90)], &[0, 900, 200]);
    // Half of the nodes stay open.
    check_reserved(&["b"], [300, 900], &[(4, 400), (4, 400), (8, 400)], &[0, 400, 900]);
    // It has begun, and the nodes are in maintenance.
    let mut cluster =
        reserved(&all, [-100, 500], &["maint"], vec![job(1, "batch", 8, 9), job(2, "batch", 9, 8)]);
    for node in ["a", "b"] {
        cluster.nodes.get_mut(node).unwrap().states.push("maint".to_owned());
    }
    let medians = medians(&cluster, None);
    assert!(medians.len() == 1 && medians[0].1.abs_diff(500) <= 10, "{medians:?}");
    let why = &cluster.queues(None, &Observed::default())[0].left_out["2"];
    assert_eq!(why, "it needs 9 processors of 8 that are in service");
}

/// Jobs start in the reservation of a driver, and not after it.
#[test]
fn the_reservation_of_a_driver_holds_no_nodes() {
    let flags = ["ignore_jobs", "flex", "no_hold_jobs_after_end", "overlap"];
    let jobs = || vec![job(1, "batch", 8, 9)];
    let median = |flags: &[&str]| medians(&reserved(&["a", "b"], [-100, 500], flags, jobs()), None)[0].1;
    assert!(median(&flags).abs_diff(0) <= 10);
    assert!(median(&flags[..3]).abs_diff(500) <= 10);
}

#[test]
fn a_maintenance_of_each_day_comes_again() {
    let day = 86_400;
    let long = Job { limit: Limit::Seconds(23 * 3600), ..job(1, "batch", 8, 9) };
    // One hour is left before it, and a day less an hour after it.
    let cluster = reserved(&["a", "b"], [3600, 7200], &["maint", "daily"], vec![long.clone()]);
    let starts = medians(&cluster, None);
    assert!(starts.len() == 1 && starts[0].1.abs_diff(7200) <= 10, "{starts:?}");
    // A job of a day fits between no two of them.
    let longer = Job { limit: Limit::Seconds(day), ..long };
    let cluster = reserved(&["a", "b"], [3600, 7200], &["maint", "daily"], vec![longer]);
    let all = crate::forecasts(&cluster, &Forecaster::default(), None, &Observed::default(), 1);
    assert!(all.jobs.is_empty() && all.left_out["1"].ends_with("beside the reservations"), "{all:?}");
}

#[test]
fn a_policy_that_knows_no_reservation_forecasts_before_it_only() {
    let jobs = vec![Job { limit: Limit::Seconds(100), ..job(1, "batch", 8, 9) }, job(2, "batch", 8, 8)];
    let cluster = reserved(&["a", "b"], [300, 900], &[], jobs);
    let easy: PolicySpec = "easy".parse().unwrap();
    let all = crate::forecasts(&cluster, &Forecaster::default(), Some(&easy), &Observed::default(), 2);
    assert_eq!(all.jobs.iter().map(|one| one.job.as_str()).collect::<Vec<_>>(), ["1"]);
    let why = "it may reach into the reservation maint, which the policy easy does not know";
    assert_eq!(all.left_out["2"], why);
}

#[test]
fn a_reservation_of_some_processors_leaves_the_others() {
    let mut cluster =
        reserved(&["a", "b"], [-1, 1_000_000], &[], vec![job(1, "batch", 4, 9), job(2, "batch", 2, 8)]);
    cluster.reservations.get_mut("maint").unwrap().cpus = Some(4);
    assert_eq!(medians(&cluster, None), [("1".to_owned(), 1), ("2".to_owned(), 601)]);
}

/// Returns the limits of a quality of service with two jobs and six processors of each user.
fn limited() -> Observed {
    let limits = QualityLimits { known: vec![("user_jobs", 2), ("user_procs", 6)], others: vec![] };
    let quality = Quality { name: "small".to_owned(), limits, ..Quality::default() };
    Observed { limits: Limits { qualities: vec![quality], ..Limits::default() }, ..Observed::default() }
}

#[test]
fn limits_of_running_jobs_are_in_the_forecast_or_its_absence_has_words() {
    let mut cluster = cluster();
    cluster.configuration.scheduler_parameters = Some("bf_interval=10,bf_resolution=1".to_owned());
    cluster.partitions.values_mut().for_each(|partition| partition.tier = 1);
    let small = |job| Job { qos: Some("small".to_owned()), user: 7, ..job };
    let because = |reason: &str, job| Job { reason: Some(reason.to_owned()), ..job };
    let runs = |number, on: &str, limit| Job {
        limit: Limit::Seconds(limit),
        ..runs(small(job(number, "batch", 1, 1)), &[on])
    };
    // They have run for 100 s. The other partition has a node of its own, and its job counts too.
    let jobs = [
        runs(1, "a", 300),
        Job { partitions: vec!["other".to_owned()], ..runs(2, "c", 400) },
        because("QOSMaxJobsPerUserLimit", small(job(3, "batch", 1, 90))),
        because("QOSMaxCpuPerUserLimit", small(job(4, "batch", 6, 80))),
        small(job(5, "batch", 7, 70)),
        because("AssocGrpMemLimit", job(6, "batch", 1, 60)),
        because("PartitionTimeLimit", job(7, "fast", 1, 50)),
        Job {
            after: Some("afterok:1(unfulfilled)".to_owned()),
            ..because("Dependency", job(8, "batch", 1, 1))
        },
        because("Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved", job(9, "batch", 1, 1)),
    ];
    cluster.jobs = jobs.map(|job| (job.id.clone(), job)).into();
    cluster.partitions.get_mut("fast").unwrap().longest = Limit::Seconds(3600);
    let all = crate::forecasts(&cluster, &Forecaster::default(), None, &limited(), 2);
    let starts: Vec<(&str, i64)> =
        all.jobs.iter().map(|one| (one.job.as_str(), one.median - one.made)).collect();
    // The third job starts when one of two ends, and the fourth one when nothing else of the user runs.
    assert_eq!(starts, [("3", 200), ("4", 800), ("9", 1)]);
    let why: Vec<&str> = all.left_out.values().map(String::as_str).collect();
    let expected = [
        "the quality of service small may have 6 processors at a time",
        "a limit of its account or user that is not simulated (AssocGrpMemLimit)",
        "its time limit is above that of the partition fast, 1h",
        "it waits for other jobs (afterok:1(unfulfilled))",
    ];
    assert_eq!(why, expected);
    // Without the limits there is no forecast, and the reason has words.
    let all = crate::forecasts(&cluster, &Forecaster::default(), None, &Observed::default(), 2);
    assert_eq!(
        all.left_out["3"],
        "a limit of its quality of service that is not simulated (QOSMaxJobsPerUserLimit)"
    );
}

#[test]
fn a_limit_of_memory_holds_where_slurm_gives_out_processors_only() {
    let mut cluster = cluster();
    cluster.configuration.scheduler_parameters = Some("bf_interval=10,bf_resolution=1".to_owned());
    let small =
        |job| Job { qos: Some("small".to_owned()), user: 7, memory: Some(Amount::PerNode(60)), ..job };
    let jobs = [
        Job { limit: Limit::Seconds(300), ..runs(small(job(1, "batch", 1, 1)), &["a"]) },
        small(job(2, "batch", 1, 90)),
        job(3, "batch", 1, 80),
    ];
    cluster.jobs = jobs.map(|job| (job.id.clone(), job)).into();
    let starts = |known: &[(&'static str, u64)]| {
        let limits = QualityLimits { known: known.to_vec(), others: vec![] };
        let quality = Quality { name: "small".to_owned(), limits, ..Quality::default() };
        let limits = Limits { qualities: vec![quality], ..Limits::default() };
        let observed = Observed { limits, ..Observed::default() };
        let all = crate::forecasts(&cluster, &Forecaster::default(), None, &observed, 2);
        all.jobs.iter().map(|one| (one.job.clone(), one.median - one.made)).collect::<Vec<_>>()
    };
    let expected = |second| [("2".to_owned(), second), ("3".to_owned(), 1)];
    // The first job ends in 200 s.
    assert_eq!(starts(&[("memory", 100)]), expected(200));
    assert_eq!(starts(&[("user_memory", 119)]), expected(200));
    assert_eq!(starts(&[("memory", 120)]), expected(1));
    // No node has GPUs, and no job asks for any.
    assert_eq!(starts(&[("gpus", 0)]), expected(1));
}

#[test]
fn a_job_of_a_higher_tier_is_forecast_in_the_place_of_others() {
    let mut cluster = cluster();
    cluster.configuration.scheduler_parameters = Some("bf_interval=10,bf_resolution=1".to_owned());
    let jobs = [
        Job { limit: Limit::Seconds(5000), ..runs(job(1, "batch", 4, 1), &["b"]) },
        Job { limit: Limit::Seconds(300), ..runs(job(2, "batch", 4, 1), &["a"]) },
        job(3, "fast", 4, 90),
    ];
    cluster.jobs = jobs.map(|job| (job.id.clone(), job)).into();
    let wait = |cluster: &Cluster| {
        let all = crate::forecasts(cluster, &Forecaster::default(), None, &Observed::default(), 2);
        all.jobs.first().map(|one| one.median - one.made).ok_or(all.left_out)
    };
    assert_eq!(wait(&cluster), Ok(4900));
    let preempting = |mode: &str| {
        let value = |key: &str| match key {
            "PreemptType" => Some("preempt/partition_prio".to_owned()),
            "PreemptMode" => Some(mode.to_owned()),
            _ => None,
        };
        let mut cluster = cluster.clone();
        cluster.configuration.preemption = crate::PreemptionSettings::read(&value);
        wait(&cluster)
    };
    // The others have left their node a second later.
    assert_eq!(preempting("CANCEL"), Ok(2));
    assert_eq!(preempting("REQUEUE"), Ok(2));
    assert_eq!(preempting("OFF"), Ok(4900));
    let why = "it may suspend running jobs such as 1, which is not simulated";
    assert_eq!(preempting("GANG,SUSPEND"), Err([("3".to_owned(), why.to_owned())].into()));
}

#[test]
fn beside_suspended_jobs_there_is_a_reason_in_place_of_a_forecast() {
    let mut cluster = cluster();
    let suspended = Job { state: JobState::Suspended, ..runs(job(1, "batch", 4, 1), &["b"]) };
    let over = runs(job(2, "batch", 4, 1), &["a"]);
    cluster.jobs = [suspended, over, job(3, "batch", 4, 90)].map(|job| (job.id.clone(), job)).into();
    let set = |cluster: &mut Cluster, mode: &str| {
        let value = |key: &str| match key {
            "PreemptType" => Some("preempt/partition_prio".to_owned()),
            "PreemptMode" => Some(mode.to_owned()),
            _ => None,
        };
        cluster.configuration.preemption = crate::PreemptionSettings::read(&value);
    };
    let left_out = |cluster: &Cluster| {
        let all = crate::forecasts(cluster, &Forecaster::default(), None, &Observed::default(), 2);
        all.left_out.get("3").cloned()
    };
    // An administrator suspended it, and its processors are free.
    assert_eq!(left_out(&cluster), None);
    set(&mut cluster, "SUSPEND,GANG");
    let why = "the job 1 of these nodes is suspended for another one, which is not simulated";
    assert_eq!(left_out(&cluster).as_deref(), Some(why));
    // It keeps its processors for itself.
    assert!(!cluster.holes(&Observed::default()).iter().any(|hole| hole.partition == "batch"));
    // A job may suspend others at any time.
    cluster.jobs.get_mut("1").unwrap().state = JobState::Running;
    assert_eq!(left_out(&cluster), None);
    cluster.jobs.insert("4".to_owned(), job(4, "fast", 4, 90));
    let why = "the job 4 of these nodes may suspend running jobs, which is not simulated";
    assert_eq!(left_out(&cluster).as_deref(), Some(why));
}

/// Returns a job that is not yet submitted.
fn new_job(partition: &str, cpus: u64, seconds: u64) -> NewJob {
    NewJob { cpus, seconds, partition: Some(partition.to_owned()), ..NewJob::default() }
}

/// Returns the median of the start of such a job in seconds from now, without bounds.
fn start_of(cluster: &Cluster, job: &NewJob) -> i64 {
    let (mut cluster, mut observed) = (cluster.clone(), Observed::default());
    job.add(&mut cluster, &mut observed).unwrap();
    let all = crate::forecasts(&cluster, &Forecaster::default(), None, &observed, 1).jobs;
    let one = all.into_iter().find(|one| one.job == NewJob::NAME).unwrap();
    one.median - one.made
}

#[test]
fn a_hole_takes_a_job_at_once_and_no_larger_or_longer_one() {
    let runs = |job| Job { limit: Limit::Seconds(620), ..runs(job, &["b"]) };
    // At 520 s a job of all processors is planned. Slurm counts it from 1500 on, a full minute.
    let jobs = vec![runs(job(1, "batch", 2, 1)), job(2, "batch", 8, 50)];
    let mut cluster = reserved(&["a"], [100_000, 200_000], &["maint"], jobs);
    cluster.configuration.scheduler_parameters = Some("bf_interval=30".to_owned());
    let holes = cluster.holes(&Observed::default());
    let shown: Vec<_> = holes
        .iter()
        .map(|one| (one.partition.as_str(), one.nodes, one.idle, one.cpus, one.until, one.longest))
        .collect();
    assert_eq!(shown, [("batch", 2, 1, 6, Some(1500), Some(420)), ("fast", 1, 0, 2, Some(1500), Some(420))]);
    for hole in &holes {
        let longest = hole.longest.unwrap().unsigned_abs();
        let start = |cpus, seconds| start_of(&cluster, &new_job(&hole.partition, cpus, seconds));
        assert!(start(hole.cpus, longest) <= 60, "{hole:?}");
        assert!(
            start(hole.cpus + 1, longest.min(60)) > 60 && start(hole.cpus, longest + 120) > 60,
            "{hole:?}"
        );
    }
    // Without that job, one node is free until the reservation, and the other one has no end.
    cluster.jobs.remove("2");
    cluster.partitions.get_mut("batch").unwrap().longest = Limit::Seconds(86_400);
    let holes = cluster.holes(&Observed::default());
    let shown: Vec<_> =
        holes.iter().map(|one| (one.partition.as_str(), one.cpus, one.until, one.longest)).collect();
    let expected = [
        ("batch", 2, None, Some(86_400)),
        ("batch", 6, Some(101_000), Some(86_400)),
        ("fast", 2, None, None),
    ];
    assert_eq!(shown, expected);
    // A job that waits with nothing behind it to fill leaves no hole without backfilling.
    cluster.configuration.scheduler = "sched/builtin".to_owned();
    cluster.jobs.insert("2".to_owned(), job(2, "batch", 8, 50));
    let holes = cluster.holes(&Observed::default());
    assert_eq!(holes.iter().map(|one| one.partition.as_str()).collect::<Vec<_>>(), ["fast"]);
}

#[test]
fn a_job_that_is_not_submitted_is_behind_those_that_wait() {
    let jobs = vec![job(1, "batch", 8, 50), job(2, "batch", 8, 1), job(3, "batch", 1, 0)];
    let cluster = reserved(&[], [100, 200], &[], jobs);
    assert_eq!(start_of(&cluster, &new_job("batch", 8, 600)), 1201);
    // It has a number of nodes, memory and GPUs.
    let mut cluster = cluster;
    cluster.jobs.clear();
    cluster.configuration.select_parameters = Some("CR_CPU_MEMORY".to_owned());
    for node in cluster.nodes.values_mut() {
        (node.memory, node.gres) = (1000, Some("gpu:1".to_owned()));
    }
    let full = |node: &str, job| Job { memory: Some(Amount::PerNode(600)), ..runs(job, &[node]) };
    cluster.jobs.insert("4".to_owned(), full("a", job(4, "batch", 1, 1)));
    let with = |memory: &str, nodes, gpus| NewJob {
        memory: Some(memory.to_owned()),
        nodes,
        gpus,
        ..new_job("batch", 2, 600)
    };
    for (job, expected) in [
        (with("400M", Some(2), 0), 1),
        (with("500M", Some(2), 0), 500),
        (with("500M", None, 1), 1),
        (with("200Mc", Some(1), 1), 1),
        (with("400M", Some(2), 1), 1),
        // Without an amount it has its nodes alone.
        (new_job("batch", 5, 600), 500),
    ] {
        assert_eq!(start_of(&cluster, &job), expected, "{job:?}");
    }
    cluster.configuration.default_memory = Some(Amount::PerCpu(100));
    assert_eq!(start_of(&cluster, &new_job("batch", 5, 600)), 1);
    let refused =
        |job: NewJob| job.add(&mut cluster.clone(), &mut Observed::default()).unwrap_err().to_string();
    assert!(refused(new_job("none", 1, 1)).contains("the cluster has no partition none"));
    assert!(refused(NewJob { partition: None, ..new_job("", 1, 1) }).contains("no default partition"));
    assert!(refused(with("lots", None, 0)).starts_with("--memory lots: write an amount"));
    cluster.partitions.get_mut("batch").unwrap().longest = Limit::Seconds(60);
    let refused =
        new_job("batch", 1, 61).add(&mut cluster, &mut Observed::default()).unwrap_err().to_string();
    assert!(refused.contains("at most 60 s"), "{refused}");
}

#[test]
fn a_job_that_must_have_a_node_that_is_down_has_no_forecast() {
    let mut cluster = cluster();
    let jobs = [job(1, "batch", 2, 9), job(2, "batch", 2, 8), job(3, "batch", 9, 7)];
    let jobs = jobs.map(|job| Job { reason: Some("ReqNodeNotAvail, UnavailableNodes:d".to_owned()), ..job });
    cluster.jobs = jobs.map(|job| (job.id.clone(), job)).into();
    let must = |node: &str| Detail { nodes: vec![node.to_owned()], least_nodes: 1, ..Detail::default() };
    let details = [("1".to_owned(), must("a")), ("2".to_owned(), must("d"))].into();
    let observed = Observed { details, ..Observed::default() };
    let left_out = &cluster.queues(None, &observed)[0].left_out;
    let expected = [
        ("2", "it must have the node d, which is not in service"),
        ("3", "it needs 9 processors of 8 that are in service"),
    ];
    assert_eq!(left_out.iter().map(|(job, why)| (job.as_str(), why.as_str())).collect::<Vec<_>>(), expected);
}
