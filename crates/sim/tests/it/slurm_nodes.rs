//! The policy `slurm` on nodes: whole nodes in reservations, and times rounded to the clock.

use miserly_core::{
    EventOrder, Form, Host, HostGroup, HostId, Kind, Machine, Request, Resources, Span, Spread, Time,
};
use miserly_sim::Job;

use crate::support::{machine, run_on};

/// Returns jobs, each by its submission, processors, limit and runtime.
fn jobs_of(jobs: &[(i64, u64, i64, i64)]) -> Vec<Job> {
    let span = |seconds| Span::from_secs(seconds).unwrap();
    let job = |(number, &(submit, procs, limit, runtime)): (i64, &(i64, u64, i64, i64))| {
        let demand = Resources::cpus(procs);
        let request = Request::new(number, Time::from_secs(submit).unwrap(), span(limit), demand);
        Job::new(request, span(runtime))
    };
    (1..).zip(jobs).map(job).collect()
}

/// Runs jobs. Returns their starts.
fn starts_of(machine: &Machine, policy: &str, jobs: &[Job]) -> Vec<i64> {
    let schedule = run_on(machine, jobs, policy, EventOrder::Batched);
    schedule.0.iter().map(|job| job.start.secs()).collect()
}

#[track_caller]
fn check(policy: &str, jobs: &[(i64, u64, i64, i64)], on_nodes: &[i64], counted: &[i64]) {
    let nodes = machine(&[(4, 0), (4, 0)]).with_spread(Spread::Any);
    assert_eq!(starts_of(&nodes, policy, &jobs_of(jobs)), on_nodes, "on nodes");
    assert_eq!(starts_of(&Machine::plain(8_u64), policy, &jobs_of(jobs)), counted, "counted");
}

const TO_THE_SECOND: &str = "slurm(bf_interval=10s, bf_resolution=1s)";

#[test]
fn a_reservation_holds_whole_nodes() {
    // The first job has half of a node, and the second all of the other one. The third waits for three processors of the first
    // node. The fourth has room beside all of them, but no node to the end of its limit.
    let jobs = [(0, 2, 100, 100), (0, 4, 300, 300), (1, 3, 100, 100), (2, 1, 200, 50)];
    check(TO_THE_SECOND, &jobs, &[0, 0, 100, 100], &[0, 0, 100, 10]);
    // It ends before the reservation.
    let jobs = [(0, 2, 100, 100), (0, 4, 300, 300), (1, 3, 100, 100), (2, 1, 80, 50)];
    check(TO_THE_SECOND, &jobs, &[0, 0, 100, 10], &[0, 0, 100, 10]);
}

#[test]
fn reservations_begin_at_a_minute_of_the_clock() {
    // The reservation for 100 begins at 60, so a limit of 80 s is too long on its node.
    let jobs = [(0, 2, 100, 100), (0, 4, 300, 300), (1, 3, 100, 100), (2, 1, 80, 50)];
    check("slurm(bf_interval=10s)", &jobs, &[0, 0, 100, 100], &[0, 0, 100, 10]);
    let jobs = [(0, 2, 100, 100), (0, 4, 300, 300), (1, 3, 100, 100), (2, 1, 45, 45)];
    check("slurm(bf_interval=10s)", &jobs, &[0, 0, 100, 10], &[0, 0, 100, 10]);
}

#[test]
fn a_job_of_a_full_partition_is_passed_by_jobs_of_other_hosts() {
    // Two partitions have a host of their own each, and share one. The submission, the partition, the processors, and the limit.
    let jobs = [
        (0, 0, 4, 100),
        (0, 1, 4, 50),
        // It waits for both hosts of the first partition.
        (1, 0, 8, 100),
        // It has room, but only on the host of its own partition.
        (2, 1, 1, 500),
        // It waits behind the second one.
        (3, 0, 1, 40),
    ];
    let three = machine(&[(4, 0), (4, 0), (4, 0)]).with_spread(Spread::Any);
    let three = three.with_groups(&[vec![HostId(0), HostId(1)], vec![HostId(1), HostId(2)]]);
    let jobs = jobs.map(|(submit, group, procs, limit)| (submit, group, procs, limit, limit));
    // The second job is on the shared host: of two that are alike, Slurm takes the first one.
    let policy = "slurm(backfill=false)";
    assert_eq!(partitioned(&three, policy, &jobs), [0, 0, 100, 2, 200]);
    assert_eq!(partitioned(&three, TO_THE_SECOND, &jobs), [0, 0, 100, 2, 50]);
}

/// Runs jobs, each by its submission, group of hosts, processors, limit and runtime. Returns their starts.
fn partitioned(machine: &Machine, policy: &str, jobs: &[(i64, u16, u64, i64, i64)]) -> Vec<i64> {
    let plain: Vec<(i64, u64, i64, i64)> =
        jobs.iter().map(|&(submit, _, procs, limit, runtime)| (submit, procs, limit, runtime)).collect();
    let mut jobs_of = jobs_of(&plain);
    for (job, (_, group, ..)) in jobs_of.iter_mut().zip(jobs) {
        job.request.form = Form { group: Some(HostGroup(*group)), ..Form::ANY };
    }
    starts_of(machine, policy, &jobs_of)
}

#[test]
fn jobs_over_a_limit_are_passed() {
    // The user has two jobs of the queue that is limited to one of them, and one job of another queue.
    let limited = |limits: &str, queues: [u32; 4]| {
        let mut jobs = jobs_of(&[(0, 2, 100, 100), (1, 2, 100, 100), (2, 4, 50, 50), (3, 2, 300, 300)]);
        for (job, queue) in jobs.iter_mut().zip(queues) {
            job.request.queue = Some(queue);
            job.request.user = Some(1);
        }
        let policy = format!("slurm(bf_interval=10s, bf_resolution=1s, limits='{limits}')");
        let nodes = machine(&[(4, 0), (4, 0)]).with_spread(Spread::Any);
        let on_nodes = starts_of(&nodes, &policy, &jobs);
        assert_eq!(on_nodes, starts_of(&Machine::plain(8_u64), &policy, &jobs), "{limits}");
        on_nodes
    };
    assert_eq!(limited("3: jobs=0", [1, 1, 1, 1]), [0, 1, 2, 52], "no job of this queue");
    assert_eq!(limited("1: user_jobs=1", [1, 1, 2, 2]), [0, 100, 2, 3]);
    assert_eq!(limited("1+2: procs=4", [1, 1, 2, 3]), [0, 1, 101, 3]);
    assert_eq!(limited("all: user_procs=6", [1, 2, 3, 4]), [0, 1, 101, 3]);
    // The third job is over the limit, and has no reservation: else the fourth one would be on the node of the first job, where the
    // last one has room.
    let mut jobs =
        jobs_of(&[(0, 3, 100, 100), (0, 4, 50, 50), (1, 4, 100, 100), (2, 4, 100, 100), (3, 1, 300, 300)]);
    for (job, queue) in jobs.iter_mut().zip([1, 2, 1, 2, 2]) {
        job.request.queue = Some(queue);
    }
    let nodes = machine(&[(4, 0), (4, 0)]).with_spread(Spread::Any);
    let policy = "slurm(bf_interval=10s, bf_resolution=1s, limits='1: procs=4')";
    assert_eq!(starts_of(&nodes, policy, &jobs), [0, 0, 150, 50, 10]);
    // The first two jobs have a GPU and 1 MiB each, and the last one nothing but processors.
    let of_resource = |limits: &str| {
        let mut jobs = jobs_of(&[(0, 1, 100, 100), (1, 1, 100, 100), (2, 1, 50, 50)]);
        for job in &mut jobs[..2] {
            job.request.demand = job.request.demand.with(Kind::Gpus, 1).with(Kind::Memory, 1024);
        }
        let host = |name: &str| Host {
            name: name.to_owned(),
            capacity: Resources::cpus(4_u64).with(Kind::Gpus, 2).with(Kind::Memory, 4096),
        };
        let nodes = Machine::new(["a", "b"].map(host).into()).with_spread(Spread::Any);
        starts_of(&nodes, &format!("slurm(bf_interval=10s, limits='{limits}')"), &jobs)
    };
    assert_eq!(of_resource("all: gpus=2"), [0, 1, 2]);
    assert_eq!(of_resource("all: gpus=1"), [0, 100, 2]);
    assert_eq!(of_resource("all: user_memory=1"), [0, 100, 2]);
}

/// Runs jobs on four nodes of four processors, each job by its submission, queue, processors, limit and runtime. Returns their last starts;
/// none if it has not ended.
fn preempted(policy: &str, jobs: &[(i64, u32, u64, i64, i64)]) -> Vec<Option<i64>> {
    let plain: Vec<(i64, u64, i64, i64)> =
        jobs.iter().map(|&(submit, _, procs, limit, runtime)| (submit, procs, limit, runtime)).collect();
    let mut all = jobs_of(&plain);
    for (job, (_, queue, ..)) in all.iter_mut().zip(jobs) {
        job.request.queue = Some(*queue);
    }
    let nodes = machine(&[(4, 0); 4]).with_spread(Spread::Any);
    let policy = format!("slurm(bf_interval=10s, bf_resolution=1s, {policy})");
    let ended = run_on(&nodes, &all, &policy, EventOrder::Batched).0;
    let start =
        |number: i64| ended.iter().find(|job| job.request.number == number).map(|job| job.start.secs());
    (1..).take(jobs.len()).map(start).collect()
}

#[test]
fn a_job_of_a_higher_queue_takes_the_place_of_others() {
    // Two jobs of two nodes each, and one of three nodes that takes both. They wait for 20 s, and begin anew.
    let jobs = [(0, 1, 8, 100, 100), (1, 1, 8, 100, 100), (5, 2, 12, 50, 50)];
    let starts = preempted("preempt='1: by=2', requeue_delay=20s", &jobs);
    assert_eq!(starts, [Some(56), Some(56), Some(6)]);
    // Jobs of the same queue wait.
    let equal = [(0, 1, 8, 100, 100), (1, 1, 8, 100, 100), (5, 1, 12, 50, 50)];
    assert_eq!(preempted("preempt='1: by=2'", &equal), [Some(0), Some(1), Some(101)]);
    // Those that are ended for good never end by themselves.
    assert_eq!(preempted("preempt='1: by=2, mode=cancel'", &jobs), [None, None, Some(6)]);
    // Each has its time of exemption, and the cycle at 110 is the first one after it.
    let exempt = preempted("preempt='1: by=2, exempt=40s', requeue_delay=20s", &jobs);
    assert_eq!(exempt, [Some(101), Some(101), Some(51)]);
    // In the time of grace the others run on, and the first job ends by itself.
    let ends = [(0, 1, 8, 100, 12), (1, 1, 8, 100, 100), (5, 2, 12, 50, 50)];
    let grace = preempted("preempt='1: by=2, grace=30s', requeue_delay=20s", &ends);
    assert_eq!(grace, [Some(0), Some(86), Some(36)]);
}

#[test]
fn few_and_unimportant_jobs_are_preempted() {
    // Four jobs on a node each. The last of queue 1 has the lower rank, and the search stops with it.
    let jobs = [
        (0, 3, 4, 100, 100),
        (1, 1, 4, 100, 100),
        (2, 3, 4, 100, 100),
        (3, 1, 4, 100, 100),
        (9, 2, 4, 20, 20),
    ];
    let rules = "preempt='1: by=2; 3: by=2, rank=5', requeue_delay=1s";
    // The first job of the lower rank makes room, and one is enough.
    assert_eq!(preempted(rules, &jobs), [Some(0), Some(30), Some(2), Some(3), Some(10)]);
    let youngest = format!("{rules}, preempt_youngest_first=true");
    assert_eq!(preempted(&youngest, &jobs), [Some(0), Some(1), Some(2), Some(30), Some(10)]);
    // Small jobs come first in the list. A search finds all four hosts by them; the next one finds that the wide job is enough.
    let wide = [(0, 1, 4, 100, 100), (1, 1, 4, 100, 100), (2, 1, 8, 100, 100), (9, 2, 8, 20, 20)];
    let starts = preempted("preempt='1: by=2', requeue_delay=1s", &wide);
    assert_eq!(starts, [Some(30), Some(30), Some(2), Some(10)], "the two small ones");
    let first = [(0, 1, 4, 100, 100), (1, 1, 12, 100, 100), (9, 2, 12, 20, 20)];
    let one = preempted("preempt='1: by=2', requeue_delay=1s", &first);
    assert_eq!(one, [Some(0), Some(30), Some(10)], "the small one is not needed");
    let both = preempted("preempt='1: by=2', requeue_delay=1s, preempt_reorder_count=0", &first);
    assert_eq!(both, [Some(0), Some(30), Some(10)], "there is one more search in any case");
}

#[test]
fn the_place_of_a_preempted_job_is_free_for_all() {
    // The place of the first job is taken by a job of queue 3 of a higher priority, which leaves for no other one.
    let jobs = [(0, 1, 16, 90, 90), (2, 2, 16, 9, 9), (2, 3, 16, 5, 5), (9, 1, 16, 90, 90)];
    let rules = "order='queue', preempt='1: by=2+3', preempt_completing=5s, requeue_delay=30s";
    // Both preempted it at 2; job 2 starts behind job 3, at once.
    assert_eq!(preempted(rules, &jobs), [Some(111), Some(12), Some(7), Some(21)]);
}

#[test]
fn a_suspended_job_keeps_its_place_and_resumes_there() {
    // The starts and ends of jobs, each by its submission, queue, processors and runtime.
    let run = |jobs: &[(i64, u32, u64, i64)]| {
        let plain: Vec<_> =
            jobs.iter().map(|&(submit, _, procs, time)| (submit, procs, time, time)).collect();
        let mut all = jobs_of(&plain);
        for (job, (_, queue, ..)) in all.iter_mut().zip(jobs) {
            job.request.queue = Some(*queue);
        }
        let nodes = machine(&[(4, 0); 4]).with_spread(Spread::Any);
        let policy = "slurm(bf_interval=10s, bf_resolution=1s, preempt='1: by=2, mode=suspend')";
        let ended = run_on(&nodes, &all, policy, EventOrder::Batched).0;
        ended.iter().map(|job| (job.start.secs(), job.end.secs())).collect::<Vec<_>>()
    };
    // A third job of the lower queue waits for both: it gets no processor of a suspended one.
    let all = run(&[(0, 1, 16, 20), (5, 2, 16, 20), (6, 1, 4, 10)]);
    assert_eq!(all, [(0, 40), (5, 25), (40, 50)]);
    // Also where the higher job has the half of them: the suspended one is off all its nodes.
    let half = run(&[(0, 1, 16, 20), (5, 2, 8, 20), (6, 1, 4, 10)]);
    assert_eq!(half, [(0, 40), (5, 25), (40, 50)]);
    // A node that neither has is free for it.
    let beside = run(&[(0, 1, 12, 20), (5, 2, 12, 20), (6, 1, 4, 10)]);
    assert_eq!(beside, [(0, 40), (5, 25), (6, 16)]);
    // Only jobs of queue 1 may be suspended: the other job on the first node runs on, and ends first.
    let two = run(&[(0, 1, 2, 100), (1, 3, 2, 100), (2, 3, 12, 900), (5, 2, 2, 20)]);
    assert_eq!(two, [(0, 120), (1, 101), (2, 902), (5, 25)]);
    // Jobs that wait for its end start beside the job that resumes.
    let after = run(&[(0, 1, 8, 20), (5, 2, 16, 20), (6, 1, 4, 10), (7, 2, 4, 5)]);
    assert_eq!(after, [(0, 40), (5, 25), (25, 35), (25, 30)]);
}

#[test]
fn preemption_counts_processors_where_there_are_no_nodes() {
    let mut jobs = jobs_of(&[(0, 3, 100, 100), (1, 3, 100, 100), (5, 5, 50, 50)]);
    for (job, queue) in jobs.iter_mut().zip([1, 1, 2]) {
        job.request.queue = Some(queue);
    }
    let policy = "slurm(bf_interval=10s, preempt='1: by=2', requeue_delay=1s)";
    let starts = starts_of(&Machine::plain(8_u64), policy, &jobs);
    assert_eq!(starts, [56, 1, 6], "one of the two is enough");
}

#[test]
fn resources_cost_by_the_weights_of_their_queue() {
    // The first user has a processor and a GPU, and the second one two processors. Then each of them waits for the whole machine.
    let mut jobs = jobs_of(&[(0, 1, 100, 100), (0, 2, 100, 100), (1, 4, 50, 50), (2, 4, 50, 50)]);
    for (job, user) in jobs.iter_mut().zip([1, 2, 1, 2]) {
        (job.request.user, job.request.queue) = (Some(user), Some(1));
    }
    jobs[0].request.demand = jobs[0].request.demand.with(Kind::Gpus, 1);
    let capacity = Resources::cpus(4_u64).with(Kind::Gpus, 1);
    let machine = Machine::new(vec![Host { name: "a".to_owned(), capacity }]).with_spread(Spread::Any);
    let starts = |billing: &str| {
        let policy = format!("slurm(order='-usage', half_life=none, billing={billing})");
        starts_of(&machine, &policy, &jobs)
    };
    assert_eq!(starts("none"), [0, 0, 100, 150]);
    assert_eq!(starts("'1: cpus=1, gpus=4'"), [0, 0, 150, 100]);
    assert_eq!(starts("'1: cpus=1, gpus=4; 2: cpus=9'"), [0, 0, 150, 100]);
    // Those of another queue do not count.
    assert_eq!(starts("'2: cpus=1, gpus=4'"), [0, 0, 100, 150]);
    // The second user has two processors, the larger of both products.
    assert_eq!(starts("'1: cpus=1, gpus=1.5, sum=largest'"), [0, 0, 100, 150]);
}

#[test]
fn a_running_job_keeps_the_priority_of_its_start() {
    // The user of the first job has used nothing at its start, as the user of the last one later. The second job then adds to the
    // usage of the first user.
    let mut jobs = jobs_of(&[(0, 12, 1000, 1000), (0, 4, 50, 50), (100, 8, 50, 50)]);
    for (job, user) in jobs.iter_mut().zip([1, 1, 2]) {
        (job.request.queue, job.request.user) = (Some(1), Some(user));
    }
    let nodes = machine(&[(4, 0); 4]).with_spread(Spread::Any);
    let starts = |order: &str| {
        let policy = format!("slurm(bf_interval=10s, preempt='1: by_priority=1', order='{order}')");
        starts_of(&nodes, &policy, &jobs)
    };
    assert_eq!(starts("0 - usage"), [0, 0, 1000]);
    // The first job begins anew.
    assert_eq!(starts("user - usage"), [221, 0, 101]);
}

#[test]
fn a_main_loop_waits_for_further_submissions() {
    // The third job is shorter than the second one, and comes within the delay. An end needs no delay.
    let jobs = jobs_of(&[(0, 1, 500, 500), (1, 8, 100, 100), (2, 8, 50, 50)]);
    let nodes = machine(&[(4, 0), (5, 0)]).with_spread(Spread::Any);
    let starts = |delay| {
        let policy = format!("slurm(backfill=false, order=shortest, batch_sched_delay={delay})");
        starts_of(&nodes, &policy, &jobs)
    };
    assert_eq!(starts("0s"), [0, 1, 101]);
    assert_eq!(starts("3s"), [0, 53, 3]);
}

#[test]
fn a_job_has_the_hosts_of_the_lowest_weight() {
    // The first two jobs leave the third one a host of its group, if the last host has the lowest weight.
    let mut jobs = jobs_of(&[(0, 2, 100, 100), (1, 4, 100, 100), (2, 3, 50, 50)]);
    jobs[2].request.form = Form { group: Some(HostGroup(0)), ..Form::ANY };
    let nodes = machine(&[(4, 0), (4, 0), (4, 0)]).with_spread(Spread::Any);
    let nodes = nodes.with_groups(&[vec![HostId(0), HostId(1)]]);
    let starts = |weights: &[u64]| {
        starts_of(&nodes.clone().with_weights(weights.to_vec()), "slurm(bf_interval=10s)", &jobs)
    };
    assert_eq!(starts(&[]), [0, 1, 100]);
    assert_eq!(starts(&[2, 2, 2]), [0, 1, 100]);
    assert_eq!(starts(&[2, 9, 1]), [0, 1, 2]);
}
