//! Invariants of every schedule on hosts under any policy, derived again from the observed events.

use miserly_core::{
    EventOrder, Form, HostId, JobNumber, Kind, Ledger, Machine, Procs, Resources, Sharing, Spread, State,
    Time, work,
};
use miserly_policies::{PolicySpec, Promises};
use miserly_sim::{Allocation, Finished, Job};
use proptest::prelude::*;

use crate::story::{Story, Tenure, stays};
use crate::support::{
    BOTH, MORE_ON_HOSTS, ON_HOSTS, ON_SHARED_HOSTS, forms_workload, hosts_workload, jobs, machine,
    processors_on,
};
use crate::{eqspatial, lsf};

/// The most memory that a job has in a quantum of this policy.
fn cap(policy: &str) -> u64 {
    let digits =
        |text: &str| text.split(|c: char| !c.is_ascii_digit()).next().and_then(|text| text.parse().ok());
    policy.split("memory=").nth(1).and_then(digits).unwrap_or(1 << 20)
}

fn play(machine: &Machine, jobs: &[Job], policy: &str, instants: EventOrder) -> Story {
    Story::of(machine, jobs, policy, instants, |ledger| check_amounts(ledger, cap(policy)))
}

/// A job holds the memory that it asked for, and in a quantum no more than there is in one.
fn check_amounts(ledger: &Ledger, cap: u64) {
    for entry in ledger.running().chain(ledger.suspended()).map(|job| ledger.entry(job)) {
        let demand = ledger.machine().demand(&entry.request);
        let asked = demand.amount().get(Kind::Memory);
        let holds = entry.placement().unwrap().total().get(Kind::Memory);
        match (&entry.state, ledger.machine().sharing()) {
            (State::Running { quantum: Some(_), .. }, _) => assert_eq!(holds, asked.min(cap)),
            (_, Sharing::Shared) if !demand.is_alone() => assert_eq!(holds, asked),
            _ => assert!(holds >= asked),
        }
    }
}

/// Each job ends once, or is refused, and is nowhere before it came.
fn check_jobs(story: &Story, jobs: &[Job]) {
    let ended = story.finished.iter().map(|job| job.request.number);
    let mut gone: Vec<JobNumber> = ended.chain(story.refused.iter().copied()).collect();
    gone.sort_unstable();
    let mut came: Vec<JobNumber> = jobs.iter().map(|job| job.request.number).collect();
    came.sort_unstable();
    assert_eq!(gone, came);
    for (job, stay) in story.stays() {
        assert!(stay.from >= job.request.submit && stay.from <= stay.to && stay.to <= job.end);
    }
}

/// Each processor has one job at a time; each job its processors, or, where they are resized, some
/// of them.
fn check_processors(story: &Story, machine: &Machine, resized: bool) {
    for (job, stay) in story.stays() {
        let (asked, had) = (job.request.procs(), stay.pes.count());
        match machine.sharing() {
            Sharing::Shared if resized => assert!(!had.is_zero() && had <= asked),
            Sharing::Shared => assert_eq!(had, asked),
            Sharing::Whole => check_whole_hosts(job, &stay, machine),
        }
    }
    check_sharing(story);
}

/// Each processor has one job at a time.
fn check_sharing(story: &Story) {
    for now in story.stays().map(|(_, stay)| stay.from) {
        let here = story.stays().filter(|(_, stay)| stay.from <= now && now < stay.to);
        let mut taken: Vec<u32> = here.flat_map(|(_, stay)| numbers(&stay)).collect();
        let all = taken.len();
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), all, "two jobs on one processor at {now}");
    }
}

fn numbers(stay: &Allocation) -> Vec<u32> {
    stay.pes.ranges().iter().flat_map(|&(low, high)| low..=high).collect()
}

/// A job has its runtime, on hosts of its form: whole parts, each on a host of its own where they are apart, and all
/// processors of its hosts where it is alone.
fn check_forms(story: &Story, jobs: &[Job], machine: &Machine) {
    for (job, source) in story.finished.iter().zip(by_end(story, jobs)) {
        assert_eq!(job.end - job.start, source.runtime.0);
    }
    for (job, stay) in story.stays() {
        // One host ignores it.
        let form = if machine.hosts().len() > 1 { job.request.form } else { Form::ANY };
        let procs = job.request.procs().get();
        let parts = form.parts.map_or(procs, |parts| parts.get().into());
        let each = procs.div_ceil(parts);
        let had = processors_on(machine, &stay.pes);
        let whole = form.alone || machine.sharing() == Sharing::Whole;
        let capacity = |host: usize| machine.hosts()[host].capacity.cpus_count().get();
        let permitted = |host: usize| machine.permits(form.group, HostId(u32::try_from(host).unwrap()));
        assert!(had.iter().all(|(host, _)| permitted(*host)), "{form:?}: {had:?}");
        if form.apart {
            assert_eq!(had.len() as u64, parts, "{form:?}: {had:?}");
            assert!(had.iter().all(|(host, _)| capacity(*host) >= each), "{form:?}: {had:?}");
        }
        if whole {
            assert!(had.iter().all(|(host, count)| *count == capacity(*host)), "{form:?}: {had:?}");
            assert!(had.iter().map(|(_, count)| count / each).sum::<u64>() >= parts, "{form:?}: {had:?}");
        } else {
            assert!(had.iter().all(|(_, count)| count % each == 0), "{form:?}: {had:?}");
            assert_eq!(had.iter().map(|(_, count)| count / each).sum::<u64>(), parts, "{form:?}: {had:?}");
        }
    }
    check_sharing(story);
}

/// A job that shares no host has all processors of its hosts, and they have room for it.
fn check_whole_hosts(job: &Finished, stay: &Allocation, machine: &Machine) {
    let had = processors_on(machine, &stay.pes);
    let its: Vec<Resources> = had.iter().map(|(host, _)| machine.hosts()[*host].capacity).collect();
    assert!(had.iter().zip(&its).all(|((_, count), capacity)| *count == capacity.cpus_count().get()));
    let demand = machine.amount(&job.request);
    let each = demand.get(Kind::Memory) / demand.cpus_count().get();
    let room = |host: &Resources| {
        let by_memory = host.get(Kind::Memory).checked_div(each).unwrap_or(u64::MAX);
        host.cpus_count().min(by_memory.into())
    };
    let fits = its.iter().any(|host| demand.fits_in(host));
    assert!(fits || its.iter().map(room).sum::<Procs>() >= demand.cpus_count());
    assert!(its.len() == 1 || (machine.spread() == Spread::Any && !fits));
}

/// Checks that no host's memory is oversubscribed. A suspended job keeps its memory on its one
/// host.
fn check_memory(story: &Story, machine: &Machine, cap: u64) {
    if machine.sharing() == Sharing::Whole {
        return;
    }
    for now in story.tenures.iter().map(|tenure| tenure.from) {
        let mut taken = vec![0; machine.hosts().len()];
        for tenure in story.tenures.iter().filter(|t| t.from <= now && t.to.is_some_and(|to| now < to)) {
            for (host, memory) in memory_of(story.whose(tenure), tenure, machine, cap) {
                taken[host] += memory;
            }
        }
        for (host, taken) in (0..).map(HostId).zip(taken) {
            assert!(
                taken <= machine.host(host).capacity.get(Kind::Memory),
                "more memory taken than {host:?} has at {now}"
            );
        }
    }
}

/// Returns the memory that a job holds on each host throughout a tenure.
fn memory_of(job: &Finished, tenure: &Tenure, machine: &Machine, cap: u64) -> Vec<(usize, u64)> {
    // It may have been suspended as it started, and have done all it had to do as it was resumed.
    let mut stays = stays(job).into_iter().skip_while(|stay| stay.from < tenure.from);
    let first = stays.next().expect("it was somewhere");
    let mut others = stays.take_while(|stay| tenure.to.is_some_and(|to| stay.from < to));
    let demand = machine.amount(&job.request);
    let memory = demand.get(Kind::Memory);
    let mut on: Vec<(usize, u64)> = processors_on(machine, &first.pes);
    let same = |other: Allocation| {
        let other = processors_on(machine, &other.pes);
        on.len() == other.len() && on.iter().zip(&other).all(|((host, _), (other, _))| host == other)
    };
    assert!(others.all(same), "a job runs on where it was");
    if machine.spread() == Spread::One {
        assert_eq!(on.len(), 1);
        return vec![(on[0].0, if tenure.quantum { memory.min(cap) } else { memory })];
    }
    for (_, count) in &mut on {
        *count *= memory / demand.cpus_count().get();
    }
    on
}

fn check(machine: &Machine, jobs: &[Job], policy: &str) {
    for instants in BOTH {
        let story = play(machine, jobs, policy, instants);
        check_jobs(&story, jobs);
        check_processors(&story, machine, policy.contains("eqspatial"));
        check_memory(&story, machine, cap(policy));
    }
}

/// Policies on hosts that are no backfilling.
const OTHERS: [&str; 4] = [
    "lsf",
    "eqspatial(quantum=3, quantum_memory=3)",
    "eqspatial(quantum=2, quantum_memory=2, min_interval=3, keep_work=true)",
    "eqspatial(quantum=0, long_job_after=4)",
];

/// Checks that every promise is kept, and that every job that needs a promise has one.
fn check_promises(story: &Story, policy: &str) {
    let promises = policy.parse::<PolicySpec>().unwrap().promises();
    for job in &story.finished {
        assert!(!job.broken, "job {} under {policy}", job.request.number);
        assert!(job.promised.is_none_or(|promised| job.start <= promised), "{policy}");
        match promises {
            Promises::EveryJob => assert!(job.promised.is_some(), "{policy}"),
            Promises::Head => {}
            Promises::Nothing => assert!(job.promised.is_none(), "{policy}"),
        }
    }
}

/// Checks that a job runs for its runtime, and that all its other work is reported as lost.
fn check_work(story: &Story, jobs: &[Job], policy: &str) {
    let keeps = policy.contains("keep_work=true");
    for (job, source) in story.finished.iter().zip(by_end(story, jobs)) {
        let procs = job.request.procs();
        let did = |from: Time| {
            let stays = stays(job).into_iter().filter(move |stay| stay.from >= from);
            stays.map(|stay| work(stay.to - stay.from, procs)).sum::<u128>()
        };
        let asked = work(job.runtime, procs);
        let all = did(job.request.submit);
        // One that outgrows its memory in the quantum runs to the end of that, whatever it has to
        // do.
        if keeps && source.used_memory > Some(cap(policy)) {
            assert!(all >= asked, "job {} under {policy}", job.request.number);
        } else {
            assert_eq!(all, asked + job.lost, "job {} under {policy}", job.request.number);
        }
        assert!(job.lost == 0 || !keeps, "job {} under {policy}", job.request.number);
        if !keeps {
            assert_eq!(
                did(job.start),
                asked,
                "job {} since its last start under {policy}",
                job.request.number
            );
        }
    }
}

/// The jobs as they were submitted, in the order in which they ended.
fn by_end<'a>(story: &Story, jobs: &'a [Job]) -> impl Iterator<Item = &'a Job> {
    story
        .finished
        .iter()
        .map(|job| &job.request.number)
        .filter_map(|number| jobs.iter().find(|source| source.request.number == *number))
}

proptest! {
    #[test]
    fn no_host_is_over_committed(
        (machine, jobs) in hosts_workload(true, Spread::One, Sharing::Shared),
        turn in 0..4usize,
    ) {
        for policy in ON_HOSTS.iter().chain(&ON_SHARED_HOSTS).chain(&OTHERS).skip(turn).step_by(4) {
            check(&lsf::in_classes(machine.clone(), lsf::PAPER), &jobs, policy);
        }
    }

    #[test]
    fn nor_where_jobs_lie_on_several_or_share_none(
        (machine, jobs) in prop_oneof![
            hosts_workload(true, Spread::Any, Sharing::Shared),
            hosts_workload(true, Spread::Any, Sharing::Whole),
            hosts_workload(true, Spread::One, Sharing::Whole),
        ],
        turn in 0..3usize,
    ) {
        for policy in ON_HOSTS.iter().chain(&MORE_ON_HOSTS).skip(turn).step_by(3) {
            check(&machine, &jobs, policy);
        }
    }

    #[test]
    fn jobs_have_hosts_of_their_form(
        (machine, jobs) in prop_oneof![forms_workload(true, Sharing::Shared), forms_workload(true, Sharing::Whole)],
        turn in 0..3usize,
    ) {
        for policy in ON_HOSTS.iter().chain(&MORE_ON_HOSTS).skip(turn).step_by(3) {
            for instants in BOTH {
                let story = play(&machine, &jobs, policy, instants);
                check_jobs(&story, &jobs);
                check_forms(&story, &jobs, &machine);
            }
        }
    }

    #[test]
    fn nor_under_lsf(machine in lsf::machine(), jobs in lsf::jobs(1..50), settings in lsf::settings()) {
        check(&lsf::in_classes(machine, settings), &jobs, &lsf::written(settings));
    }

    #[test]
    fn nor_under_equipartitioning((machine, jobs) in eqspatial::workload(), params in eqspatial::params()) {
        check(&machine, &jobs, &params.written);
    }

    #[test]
    fn promises_are_kept_where_no_job_overruns(
        (machine, jobs) in prop_oneof![
            3 => hosts_workload(false, Spread::One, Sharing::Shared),
            1 => hosts_workload(false, Spread::Any, Sharing::Shared),
            1 => hosts_workload(false, Spread::One, Sharing::Whole),
            1 => hosts_workload(false, Spread::Any, Sharing::Whole),
            1 => forms_workload(false, Sharing::Shared),
        ],
        turn in 0..4usize,
    ) {
        let quanta = machine.spread() == Spread::One && machine.sharing() == Sharing::Shared;
        let with_quanta = ON_SHARED_HOSTS.iter().filter(|_| quanta);
        for policy in ON_HOSTS.iter().chain(with_quanta).skip(turn).step_by(4) {
            for instants in BOTH {
                check_promises(&play(&machine, &jobs, policy, instants), policy);
            }
        }
    }

    #[test]
    fn all_work_is_done_once_or_told_to_be_lost(
        (machine, jobs) in hosts_workload(true, Spread::One, Sharing::Shared),
        turn in 0..3usize,
    ) {
        for policy in ON_SHARED_HOSTS.iter().chain(&ON_HOSTS).skip(turn).step_by(3) {
            for instants in BOTH {
                check_work(&play(&machine, &jobs, policy, instants), &jobs, policy);
            }
        }
    }
}

/// Job 3 is promised 14, when job 2 will end. It has a quantum from 9 to 12, for which job 1 is
/// suspended. Job 4 arrives at 11. It must not be promised 14 too, although job 3 is not in the
/// queue then. At 14 job 3 runs for its remaining second.
#[test]
fn who_is_lent_a_quantum_keeps_the_place_that_was_promised() {
    let policy = "immediate(policy=fcfs-backfill, quantum=3, after=1, keep_promises=true, keep_work=true)";
    let jobs = jobs(&[(2, 12, 1, 15), (7, 7, 1, 7), (9, 4, 2, 4), (11, 4, 2, 4)]);
    for instants in BOTH {
        let story = play(&machine(&[(3, 16)]), &jobs, policy, instants);
        let told = |job: &Finished| (job.request.number, job.start.secs(), job.promised.map(Time::secs));
        let mut told: Vec<_> = story.finished.iter().map(told).collect();
        told.sort_unstable();
        assert_eq!(told[2..], [(3, 14, Some(14)), (4, 15, Some(15))], "{instants}");
        check_promises(&story, policy);
    }
}
