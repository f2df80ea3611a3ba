use super::values::{amount, limit};
use super::*;

#[test]
fn a_node_of_each_version_is_read() {
    // Slurm 22.05 and 24.11.
    let old = "NodeName=node1 Arch=x86_64 CoresPerSocket=4  CPUAlloc=8 CPUEfctv=8 CPUTot=8 CPULoad=1.69 AvailableFeatures=a,b ActiveFeatures=a,b Gres=gpu:2 NodeAddr=127.0.0.1 Version=22.05.8 OS=Linux 6.18 State here RealMemory=64000 AllocMem=100 FreeMem=18050 State=MIXED+DRAIN ThreadsPerCore=1 Partitions=batch,opp  Reason=disk State=IDLE [root@2026]";
    let (name, node) = Node::parse(Fields::new("scontrol", old)).unwrap();
    assert_eq!(name, "node1");
    assert_eq!((node.cpus, node.cpus_used, node.memory, node.memory_used), (8, 8, 64_000, 100));
    assert_eq!((node.states.join(" "), node.features.join(" ")), ("mixed drain".into(), "a b".into()));
    assert_eq!((node.gres.as_deref(), node.partitions.join(" ")), (Some("gpu:2"), "batch opp".into()));
    assert!(!node.is_usable());
    let idle = "NodeName=n CPUAlloc=0 CPUEfctv=4 CPUTot=4 RealMemory=1 AllocMem=0 State=IDLE ActiveFeatures=(null) Gres=(null)";
    let (_, idle) = Node::parse(Fields::new("scontrol", idle)).unwrap();
    assert!(idle.is_usable() && idle.features.is_empty() && idle.gres.is_none());
    let silent = "NodeName=n CPUAlloc=0 CPUTot=4 RealMemory=1 AllocMem=0 State=DOWN*+NOT_RESPONDING";
    assert!(!Node::parse(Fields::new("scontrol", silent)).unwrap().1.is_usable());
    assert!(Node::parse(Fields::new("scontrol", "NodeName=n State=IDLE")).is_err());
}

#[test]
fn jobs_of_all_kinds_are_read() {
    let running = "1|1|1|N/A|batch|RUNNING|1000|8|2|62.50G|5:00|1795639196|1795639197|1795639497|4294901759|None|root|normal|(null)|N/A|node[1-2]|(null)|my | job";
    let job = Job::parse(running).unwrap();
    assert_eq!((job.number, job.array.clone(), job.name.as_str()), (1, None, "my | job"));
    assert_eq!(
        (job.state.clone(), job.limit, job.memory),
        (JobState::Running, Limit::Seconds(300), Some(Amount::PerNode(64_000)))
    );
    assert_eq!(
        (job.on.join(" "), job.start, job.end),
        ("node1 node2".into(), Some(1_795_639_197), Some(1_795_639_497))
    );
    assert_eq!((job.reason, job.gres, job.reservation, job.after), (None, None, None, None));
    let waits = "4_3|9|4|3|batch,opp|PENDING|0|1|1|0|UNLIMITED|1795639196|N/A|N/A|0|JobHeldUser|(null)|normal|r1|gres:gpu:2||afterok:1(unfulfilled)|";
    let job = Job::parse(waits).unwrap();
    assert_eq!((job.array.clone(), job.partitions.join(" ")), (Some((4, "3".into())), "batch opp".into()));
    assert_eq!((job.limit, job.memory, job.start), (Limit::Unlimited, None, None));
    assert_eq!((job.id.as_str(), job.order()), ("4_3", (4, 3)));
    assert_eq!(
        ["4", "4_3", "9", "3", "4_", "_3"].map(|name| job.is_called(name)),
        [true, true, true, false, false, false]
    );
    assert!(job.is_held() && job.on.is_empty() && job.name.is_empty());
    assert_eq!((job.reservation.as_deref(), job.gres.as_deref()), (Some("r1"), Some("gres:gpu:2")));
    let ends = running.replace("RUNNING", "COMPLETING");
    assert_eq!(Job::parse(&ends).unwrap().state, JobState::Other("completing".into()));
    for broken in ["", "1|2|3", &running.replace("5:00", "soon"), &running.replace("|8|", "|many|")] {
        assert!(matches!(Job::parse(broken), Err(SlurmError::Unreadable { .. })), "{broken}");
    }
}

#[test]
fn a_record_ends_at_the_next_mark() {
    let text = "M|1|a\nM|2|b\nc|d\n\nM|3|\n";
    assert_eq!(marked(text, "M|").collect::<Vec<_>>(), ["1|a", "2|b\nc|d\n", "3|"]);
    assert_eq!(marked("", "M|").count(), 0);
}

#[test]
fn a_node_that_registered_wrongly_takes_no_jobs() {
    let states = |state: &str| {
        let line = format!("NodeName=n CPUAlloc=0 CPUTot=4 RealMemory=1 AllocMem=0 State={state}");
        Node::parse(Fields::new("scontrol", &line)).unwrap().1.is_usable()
    };
    assert!(
        !states("UNKNOWN+DRAIN+INVALID_REG+RESERVED")
            && !states("IDLE+INVALID_REG")
            && !states("IDLE+BLOCKED")
    );
    assert!(states("IDLE+RESERVED") && states("MIXED+PLANNED") && states("IDLE+POWERED_DOWN"));
}

#[test]
fn times_and_amounts() {
    let seconds =
        |text: &str| limit(text).map(|limit| if let Limit::Seconds(seconds) = limit { seconds } else { 0 });
    assert_eq!(seconds("0:30"), Some(30));
    assert_eq!(seconds("1:00:00"), Some(3600));
    assert_eq!(seconds("2-01:00:30"), Some(2 * 86_400 + 3630));
    assert_eq!(seconds("1-12"), Some(86_400 + 12 * 3600));
    assert_eq!(seconds("UNLIMITED"), Some(0));
    assert_eq!(seconds("later"), None);
    assert_eq!(amount("0"), None);
    assert_eq!(amount("4000M"), Some(Amount::PerNode(4000)));
    assert_eq!(amount("2Gc"), Some(Amount::PerCpu(2048)));
    assert_eq!(amount("512K"), Some(Amount::PerNode(1)));
    assert_eq!(amount("lots"), None);
}

#[test]
fn a_configuration_has_the_time_of_the_controller() {
    let text = "Configuration data as of 1795639275\nClusterName             = fake\nPriorityType            = priority/basic\nSchedulerParameters     = (null)\nSchedulerType           = sched/builtin\nSelectType              = select/cons_tres\nSLURM_VERSION           = 22.05.8\nSlurmUser               = slurm(64030)\n";
    let configuration = Configuration::parse(text).unwrap();
    assert_eq!((configuration.now, configuration.version.as_str()), (1_795_639_275, "22.05.8"));
    assert_eq!((configuration.scheduler_parameters, configuration.slurm_user), (None, Some(64_030)));
    let error = Configuration::parse("Configuration data as of now\n").unwrap_err().to_string();
    assert!(error.contains("no ClusterName"), "{error}");
}

#[test]
fn changes_between_two_states() {
    let job = |number: u64, state: JobState| {
        (number.to_string(), Job { id: number.to_string(), number, state, priority: 1, ..Job::default() })
    };
    let node =
        |usable: bool| Node { states: vec![if usable { "idle" } else { "down" }.into()], ..Node::default() };
    let before = Cluster {
        jobs: [
            job(1, JobState::Pending),
            job(2, JobState::Running),
            job(3, JobState::Running),
            job(5, JobState::Pending),
        ]
        .into(),
        nodes: [("a".to_owned(), node(true)), ("b".to_owned(), node(true))].into(),
        ..Cluster::default()
    };
    let mut after = Cluster {
        jobs: [
            job(1, JobState::Running),
            job(3, JobState::Running),
            job(4, JobState::Pending),
            job(5, JobState::Pending),
        ]
        .into(),
        nodes: [("a".to_owned(), node(false)), ("b".to_owned(), node(true))].into(),
        ..Cluster::default()
    };
    after.jobs.get_mut("3").unwrap().limit = Limit::Seconds(9);
    // The expected start of a waiting job is no change.
    after.jobs.get_mut("5").unwrap().start = Some(17);
    let expect = [
        Change::State { job: "1".into(), from: JobState::Pending, to: JobState::Running },
        Change::Gone { job: "2".into(), from: JobState::Running },
        Change::Updated { job: "3".into() },
        Change::Submitted { job: "4".into() },
        Change::Node { node: "a".into(), usable: false },
    ];
    assert_eq!(changes(&before, &after), expect);
    assert_eq!(changes(&after, &after), []);
}
