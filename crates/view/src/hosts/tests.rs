use proptest::prelude::*;

use super::*;
use crate::Moment;

fn running(number: i64, procs: u64, cpus: &[(u32, u32)]) -> Job {
    let label = number.to_string();
    Job {
        number,
        label,
        procs,
        cpus: cpus.to_vec(),
        state: State::Running,
        end: Some(1000),
        ..Job::default()
    }
}

/// Returns the parts of a host as text, such as `3*4@0-3`: job 3 with four processors from 0 to 3.
fn text(host: &HostNow) -> String {
    let part = |part: &HostPart| {
        let holder = match (part.cpu_use, &part.label) {
            (CpuUse::Opportunistic, Some(label)) => format!("opportunistic {label}"),
            (_, Some(label)) => label.clone(),
            (cpu_use, None) => format!("{cpu_use:?}").to_lowercase(),
        };
        let numbers: Vec<String> = part.numbers.iter().map(|(low, high)| format!("{low}-{high}")).collect();
        let at = if numbers.is_empty() { String::new() } else { format!("@{}", numbers.join(",")) };
        let about = if part.estimated { "~" } else { "" };
        format!("{holder}*{about}{}{at}", part.cpus)
    };
    host.parts.iter().map(part).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check(facts: &Facts, expect: &[&str]) {
    let moment = Moment::new(facts);
    let found: Vec<String> = moment.pools[0].hosts.iter().map(text).collect();
    assert_eq!(found, expect);
    for host in &moment.pools[0].hosts {
        assert_eq!(host.held + host.reserved + host.free + host.offline, host.cpus, "{host:?}");
    }
}

fn pool(pool: PoolFacts, jobs: Vec<Job>) -> Facts {
    Facts { pools: vec![pool], ..Facts::of_jobs(0, jobs) }
}

#[test]
fn without_numbers_the_uses_are_side_by_side() {
    let facts = pool(
        PoolFacts { cpus: 8, held: 5, offline: 2, ..PoolFacts::default() },
        vec![
            running(2, 1, &[]),
            running(1, 2, &[(6, 7)]),
            Job { state: State::Opportunistic, ..running(3, 2, &[]) },
            Job { promised: Some(10), procs: 6, ..Job::default() },
        ],
    );
    // Of the three idle processors one is reserved: the promised job starts before an end.
    check(&facts, &["1*2@6-7 2*1 held*2 opportunistic 3*2 reserved*1 offline*2"]);
}

#[test]
fn with_numbers_the_gaps_are_where_they_are() {
    let known = PoolFacts { cpus: 10, held: 5, numbers: vec![(0, 9)], ..PoolFacts::default() };
    let jobs = vec![running(1, 3, &[(0, 1), (4, 4)]), running(2, 2, &[(5, 6)])];
    check(&pool(known.clone(), jobs.clone()), &["1*2@0-1 idle*2@2-3 1*1@4-4 2*2@5-6 idle*3@7-9"]);
    let promised = Job { promised: Some(0), procs: 2, ..Job::default() };
    let opportunistic = Job { state: State::Opportunistic, ..running(3, 2, &[]) };
    let more = [jobs.clone(), vec![promised, opportunistic]].concat();
    check(
        &pool(known.clone(), more),
        &["1*2@0-1 idle*1@2-2 opportunistic 3*1@3-3 1*1@4-4 2*2@5-6 opportunistic 3*1@7-7 reserved*2@8-9"],
    );
    // It has the processors that are reserved, too.
    let promised = Job { promised: Some(0), procs: 5, ..Job::default() };
    let opportunistic = Job { state: State::Opportunistic, ..running(3, 3, &[]) };
    let more = [jobs.clone(), vec![promised, opportunistic]].concat();
    check(
        &pool(known.clone(), more),
        &["1*2@0-1 opportunistic 3*2@2-3 1*1@4-4 2*2@5-6 opportunistic 3*1@7-7 reserved*2@8-9"],
    );
    // One job without numbers, or a number that the pool does not have.
    let unknown = vec![running(1, 3, &[(0, 1), (4, 4)]), running(2, 2, &[])];
    check(&pool(known.clone(), unknown), &["1*2@0-1 idle*2@2-3 1*1@4-4 idle*3@5-7 2*~2@8-9"]);
    let beyond = vec![running(1, 5, &[(8, u32::MAX), (3, 2)])];
    check(&pool(known, beyond), &["idle*8@0-7 1*2@8-9"]);
}

#[test]
fn a_job_had_its_numbers_at_an_earlier_instant_too() {
    let ended = |job: Job, start, end| Job {
        state: State::Ended,
        start: Some(start),
        end: Some(end),
        limit: 1000,
        ..job
    };
    let jobs = vec![ended(running(1, 2, &[(2, 3)]), 0, 100), ended(running(2, 4, &[(0, 3)]), 100, 200)];
    let known = PoolFacts { cpus: 4, numbers: vec![(0, 3)], ..PoolFacts::default() };
    let facts = Facts { now: 300, ..pool(known, jobs) };
    check(&facts.at(50), &["idle*2@0-1 1*2@2-3"]);
    check(&facts.at(150), &["2*4@0-3"]);
    check(&facts, &["idle*4@0-3"]);
    // A job that runs ahead of its start has what is idle, now and then.
    let ahead = Job { state: State::Parked, start: Some(10), ..running(3, 2, &[(0, 1)]) };
    let facts = Facts { jobs: vec![ahead.into()], ..facts };
    check(&facts.at(50), &["idle*2@0-1 opportunistic 3*2@2-3"]);
}

#[test]
fn a_pool_has_numbers_of_its_own() {
    let known = PoolFacts {
        cpus: 5,
        held: 2,
        offline: 1,
        numbers: vec![(2, 4), (8, 10)],
        numbers_offline: vec![(8, 8)],
        ..PoolFacts::default()
    };
    let jobs = vec![running(1, 2, &[(4, 4), (9, 9)])];
    check(&pool(known.clone(), jobs.clone()), &["idle*2@2-3 1*1@4-4 offline*1@8-8 1*1@9-9 idle*1@10-10"]);
    // The calendar leaves fewer processors than there are to choose from.
    let fewer = PoolFacts { cpus: 3, ..known };
    check(&pool(fewer, jobs), &["idle*1@2-2 offline*1@3-3 1*1@4-4 offline*1@8-8 1*1@9-9 offline*1@10-10"]);
}

#[test]
fn jobs_that_share_processors_are_side_by_side() {
    let known = PoolFacts { cpus: 4, held: 4, numbers: vec![(0, 3)], ..PoolFacts::default() };
    let jobs = vec![running(1, 2, &[(0, 1)]), running(2, 2, &[(1, 2)])];
    check(&pool(known, jobs), &["1*2@0-1 2*2@1-2"]);
}

/// Returns the name, the held processors and all processors of each tile.
fn tiles(facts: &Facts) -> Vec<(String, u64, u64)> {
    let hosts = &Moment::new(facts).pools[0].hosts;
    hosts.iter().map(|host| (host.name.clone(), host.held, host.cpus)).collect()
}

#[test]
fn the_processors_of_a_large_machine_are_in_groups() {
    let known = PoolFacts { cpus: 2000, held: 70, offline: 48, ..PoolFacts::default() };
    let jobs = vec![running(1, 70, &[(10, 79)])];
    let counts = pool(known.clone(), jobs.clone());
    assert_eq!(tiles(&counts).len(), 1, "counts only");
    let facts = pool(PoolFacts { numbers: vec![(0, 2047)], ..known }, jobs);
    let found = tiles(&facts);
    let group = |name: &str, held| (name.to_owned(), held, 32);
    assert_eq!(found.len(), 64);
    assert_eq!(found[..4], [group("0-31", 22), group("32-63", 32), group("64-95", 16), group("96-127", 0)]);
    let hosts = &Moment::new(&facts).pools[0].hosts;
    assert_eq!(text(&hosts[0]), "idle*10@0-9 1*22@10-31");
    assert_eq!(text(&hosts[63]), "offline*32@2016-2047");
    assert_eq!(hosts.iter().map(|host| host.offline).sum::<u64>(), 48);
}

#[test]
fn many_hosts_are_in_groups() {
    let host = |at: u32| HostFacts {
        name: format!("n{at}"),
        first: Some(4 * at),
        cpus: 4,
        unusable: (at == 3).then(|| "down".to_owned()),
        ..HostFacts::default()
    };
    let hosts = (0..1500).map(host).collect();
    let jobs = vec![running(1, 6, &[(2, 7)]), running(2, 1, &[(5999, 5999)])];
    let facts = pool(PoolFacts { cpus: 6000, held: 7, hosts, ..PoolFacts::default() }, jobs);
    let found = tiles(&facts);
    assert_eq!(found.len(), 750);
    assert_eq!((&found[0], &found[749]), (&("n0 to n1".into(), 6, 8), &("n1498 to n1499".into(), 1, 8)));
    let hosts = &Moment::new(&facts).pools[0].hosts;
    assert_eq!((text(&hosts[0]), text(&hosts[1])), ("1*6 idle*2".into(), "idle*4 offline*4".into()));
    assert_eq!(hosts[1].unusable.as_deref(), Some("1 of 2 hosts"));
}

#[test]
fn a_job_on_several_hosts_is_divided() {
    let host = |name: &str, held| HostFacts { name: name.to_owned(), cpus: 4, held, ..HostFacts::default() };
    let on = |hosts: &[&str], job: Job| Job {
        hosts: hosts.iter().map(|name| (*name).to_owned()).collect(),
        ..job
    };
    let hosts = vec![
        host("n1", Some(4)),
        host("n2", Some(3)),
        HostFacts { reserved: true, ..host("n3", Some(1)) },
        HostFacts { unusable: Some("down".to_owned()), ..host("n4", Some(0)) },
    ];
    let jobs = vec![on(&["n1", "n2"], running(1, 6, &[])), on(&["n2"], running(2, 1, &[]))];
    let facts = pool(PoolFacts { cpus: 12, held: 8, hosts, ..PoolFacts::default() }, jobs);
    // The only job of a host has all that is held there.
    check(&facts, &["1*4", "1*~2 2*1 idle*1", "held*1 reserved*3", "offline*4"]);
    let now = &Moment::new(&facts).pools[0];
    assert_eq!((now.reserved, now.free, now.host_count), (3, 1, 4));
    // At an earlier instant only the jobs are known.
    let before = |job: &std::sync::Arc<Job>| Job { submitted: -9, start: Some(-5), ..(**job).clone() }.into();
    let earlier = Facts { jobs: facts.jobs.iter().map(before).collect(), ..facts };
    check(&earlier.at(-1), &["1*~3 idle*1", "1*~3 2*1", "idle*4", "idle*4"]);
}

#[test]
fn numbers_go_on_from_host_to_host() {
    let host = |name: &str, first| HostFacts {
        name: name.to_owned(),
        first: Some(first),
        cpus: 4,
        ..HostFacts::default()
    };
    let hosts = vec![host("n1", 0), host("n2", 4), host("n3", u32::MAX - 3)];
    let jobs = vec![
        Job { memory: 600, ..running(1, 6, &[(1, 6)]) },
        Job { memory: 1, ..running(2, 1, &[(u32::MAX, u32::MAX)]) },
    ];
    let facts = pool(PoolFacts { cpus: 12, held: 7, hosts, ..PoolFacts::default() }, jobs);
    let last = format!("idle*3@{}-{} 2*1@{}-{}", u32::MAX - 3, u32::MAX - 1, u32::MAX, u32::MAX);
    check(&facts, &["idle*1@0-0 1*3@1-3", "1*3@4-6 idle*1@7-7", &last]);
    let memory = |at: usize| Moment::new(&facts).pools[0].hosts[at].memory_held;
    assert_eq!([memory(0), memory(1), memory(2)], [300, 300, 1]);
}

#[test]
fn ends_before_a_promised_start_are_not_reserved() {
    let waits = |minutes: i64, procs| Job { promised: Some(minutes * 60_000), procs, ..Job::default() };
    let reserved = |jobs: Vec<Job>| {
        let held = 2;
        Moment::new(&pool(PoolFacts { cpus: 8, held, ..PoolFacts::default() }, jobs)).pools[0].reserved
    };
    let runs = |minutes: i64| Job { end: Some(minutes * 60_000), ..running(1, 2, &[]) };
    assert_eq!(reserved(vec![runs(20), waits(30, 8)]), 6);
    assert_eq!(reserved(vec![runs(20), waits(20, 3)]), 1);
    assert_eq!(reserved(vec![runs(20), waits(61, 8)]), 0, "more than an hour ahead");
    assert_eq!(reserved(vec![runs(90), waits(30, 100)]), 6);
}

/// Returns whether a job has a processor.
fn has(job: &Job, cpu: u32) -> bool {
    job.cpus.iter().any(|(low, high)| (*low..=*high).contains(&cpu))
}

proptest! {
    /// Any jobs, also with numbers that they share or that the pool does not have: with numbers each processor has one use.
    #[test]
    fn each_processor_has_one_use(
        jobs in prop::collection::vec((0u64..9, prop::collection::vec((0u32..20, 0u32..20), 1..4), any::<bool>()), 0..6),
        (cpus, held, offline, numbered) in (0u64..16, 0u64..20, 0u64..4, any::<bool>()),
    ) {
        let jobs = (1..).zip(jobs).map(|(number, (procs, cpus, runs))| {
            let state = if runs { State::Running } else { State::Opportunistic };
            Job { state, ..running(number, procs, &cpus) }
        });
        let jobs: Vec<Job> = jobs.collect();
        let last = u32::try_from(cpus + offline).unwrap_or(0).checked_sub(1).filter(|_| numbered);
        let numbers = last.map(|last| (0, last)).into_iter().collect();
        let known = PoolFacts { cpus, held, offline, numbers, ..PoolFacts::default() };
        let shared = |cpu| jobs.iter().filter(|job| job.state == State::Running && has(job, cpu)).count() > 1;
        let numbered = last.is_some_and(|last| !(0..=last).any(shared));
        let facts = pool(known, jobs);
        let host = &Moment::new(&facts).pools[0].hosts[0];
        let sum: u64 = host.parts.iter().map(|part| part.cpus).sum();
        prop_assert!(sum >= host.cpus);
        prop_assert!(!numbered || sum == host.cpus);
        prop_assert!(host.parts.iter().all(|part| part.cpus > 0));
    }
}
