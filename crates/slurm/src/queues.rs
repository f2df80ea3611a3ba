//! The partitions of a cluster as queues that a policy can simulate.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::{
    Entry, JobId, JobNumber, Ledger, Machine, Placement, Procs, Request, Resources, Span, Time,
};
use miserly_forecast::{LiveQueue, SystemCopy};
use miserly_policies::PolicySpec;

use crate::queue_nodes::{Observed, QueueNodes, estimate};
use crate::{Cluster, Job, JobState, Twin, TwinQueues, cycles};

/// The most plans of a waiting job in a future of the twin, each multiplied by the running jobs and the nodes.
///
/// Fifty futures with 4 million take 2 s, and with 40 million 17 s.
const PLANS_MOST: u64 = 10_000_000;

/// Partitions that share nodes, with their jobs as one queue.
#[derive(Clone, Debug)]
pub struct Queue {
    /// The partitions, by name.
    pub partitions: Vec<String>,
    /// The processors of the nodes on which jobs can start.
    pub cpus: u64,
    /// The jobs, in the order in which Slurm looks at them.
    pub live: LiveQueue,
    /// The names of its jobs, by their numbers in the queue.
    pub ids: BTreeMap<JobNumber, String>,
    /// The waiting jobs that are not in the queue, by name, with the reason.
    pub left_out: BTreeMap<String, String>,
}

impl Cluster {
    /// Returns the partitions as queues: those that share a node are one.
    ///
    /// Without a policy, a queue has the [twin](Cluster::twin) of the cluster's scheduler, or `easy` if that would take long.
    ///
    /// Its machine are the nodes on which jobs can start, with their memory where Slurm counts it, and their GPUs. Where the policy does
    /// not run on nodes, the machine has processors only. Licences, features and required nodes are left out of account.
    pub fn queues(&self, policy: Option<&PolicySpec>, observed: &Observed) -> Vec<Queue> {
        let groups = self.partitions_by_nodes();
        groups.into_iter().filter_map(|partitions| self.queue(partitions, policy, observed)).collect()
    }

    /// Returns the partitions in groups that share nodes.
    fn partitions_by_nodes(&self) -> Vec<BTreeSet<&str>> {
        let mut groups: Vec<(BTreeSet<&str>, BTreeSet<&str>)> = vec![];
        for (name, partition) in &self.partitions {
            let mut names = BTreeSet::from([name.as_str()]);
            let mut nodes: BTreeSet<&str> = partition.nodes.iter().map(String::as_str).collect();
            let (with, without) = groups.into_iter().partition(|(_, others)| !others.is_disjoint(&nodes));
            groups = without;
            let with: Vec<(BTreeSet<&str>, BTreeSet<&str>)> = with;
            for (other_names, other_nodes) in with {
                names.extend(other_names);
                nodes.extend(other_nodes);
            }
            groups.push((names, nodes));
        }
        let mut groups: Vec<BTreeSet<&str>> = groups.into_iter().map(|(names, _)| names).collect();
        groups.sort();
        groups
    }

    fn queue(
        &self,
        partitions: BTreeSet<&str>,
        policy: Option<&PolicySpec>,
        observed: &Observed,
    ) -> Option<Queue> {
        let nodes: BTreeSet<&str> = partitions
            .iter()
            .flat_map(|name| self.partitions[*name].nodes.iter().map(String::as_str))
            .filter(|node| self.nodes.get(*node).is_some_and(crate::Node::is_usable))
            .collect();
        let cpus: u64 = nodes.iter().map(|node| self.nodes[*node].cpus).sum();
        let now = Time::from_ticks(self.configuration.now.checked_mul(1_000_000)?);
        let mut left_out = BTreeMap::new();
        let (mut waiting, mut running): (Vec<&Job>, Vec<(&Job, Request)>) = (vec![], vec![]);
        for job in self.jobs.values() {
            let mine = self.partition_of(job).is_some_and(|name| partitions.contains(name));
            match &job.state {
                _ if !mine => {}
                JobState::Pending => match self.obstacle(job, cpus) {
                    Some(reason) => drop(left_out.insert(job.id.clone(), reason)),
                    None => waiting.push(job),
                },
                // Its processors are free for others, and its next start is not known.
                JobState::Suspended => {}
                JobState::Running | JobState::Other(_) => running.push((job, request(job))),
            }
        }
        let tier = |job: &Job| {
            job.partitions
                .iter()
                .filter_map(|name| self.partitions.get(name))
                .map(|partition| partition.tier)
                .max()
        };
        waiting.sort_by_key(|job| (std::cmp::Reverse((tier(job), job.priority)), job.order()));
        // The order of arrival is that of Slurm's list.
        let arrival = |(place, job)| {
            let submit = now - Span::from_ticks(1_000_000 - i64::min(place, 999_999));
            (job, Request { submit, ..request(job) })
        };
        let waiting: Vec<(&Job, Request)> = (0_i64..).zip(waiting).map(arrival).collect();
        let policy = match policy {
            Some(policy) => policy.clone(),
            None if self.twin_takes_long(&waiting, &running, nodes.len(), cpus) => "easy".parse().ok()?,
            None => self.live_twin(observed).policy.parse().ok()?,
        };
        let on_nodes = QueueNodes::new(self, observed, &partitions, &nodes)
            .filter(|on_nodes| policy.build(on_nodes.machine(), 0).is_ok());
        let (machine, entries) = match on_nodes {
            Some(mut on_nodes) => {
                let mut entries: Vec<(&Job, Entry)> = vec![];
                for (job, request) in &running {
                    entries.extend(on_nodes.running(request, job, now).map(|entry| (*job, entry)));
                }
                for (job, request) in &waiting {
                    match on_nodes.waiting(request, job) {
                        Some(request) => entries.push((*job, Entry::waiting(request, 0))),
                        None => {
                            left_out.insert(job.id.clone(), "the nodes in service cannot hold it".to_owned());
                        }
                    }
                }
                (on_nodes.machine().clone(), entries)
            }
            None => plain(&nodes, cpus, &running, waiting, now),
        };
        let mut ids = BTreeMap::new();
        let entries = (0_u64..).zip(entries).map(|(admitted, (job, entry))| {
            // Tasks of an array may share their number.
            let number = JobNumber::try_from(admitted).unwrap_or(JobNumber::MAX);
            ids.insert(number, job.id.clone());
            Entry { admitted, request: Request { number, ..entry.request }, ..entry }
        });
        let ledger = Ledger::restored(machine, (0..).map(JobId).zip(entries).collect()).ok()?;
        let copy = SystemCopy { now, ledger, wake: Some(now + Span::TICK) };
        Some(Queue {
            partitions: partitions.into_iter().map(str::to_owned).collect(),
            cpus,
            live: LiveQueue { policy, copy },
            ids,
            left_out,
        })
    }

    /// Returns the first partition of a job that is up, or else the first one.
    pub(crate) fn partition_of<'a>(&self, job: &'a Job) -> Option<&'a str> {
        let is_up =
            |name: &&String| self.partitions.get(*name).is_some_and(|partition| partition.state == "up");
        job.partitions.iter().find(is_up).or(job.partitions.first()).map(String::as_str)
    }

    /// Returns whether the futures of the twin would take more than some seconds: it plans all waiting jobs in each cycle.
    fn twin_takes_long(
        &self,
        waiting: &[(&Job, Request)],
        running: &[(&Job, Request)],
        nodes: usize,
        cpus: u64,
    ) -> bool {
        let seconds = |request: &Request| request.estimate.secs().unsigned_abs();
        let work = |(job, request): &(&Job, Request)| seconds(request).saturating_mul(job.cpus);
        let work = waiting.iter().map(work).fold(0, u64::saturating_add) / cpus.max(1);
        let longest = running.iter().map(|(_, request)| seconds(request)).max().unwrap_or(0);
        let cycles = longest.saturating_add(work) / self.configuration.cycle().secs().unsigned_abs().max(1);
        let beside = (running.len() + nodes) as u64;
        cycles.saturating_mul(waiting.len() as u64).saturating_mul(beside) > PLANS_MOST
    }

    /// Returns the policy that schedules as this cluster does, for jobs in the order of their priorities.
    fn live_twin(&self, observed: &Observed) -> Twin {
        let twin = self.twin(&TwinQueues::default(), &[], None, true);
        match observed.cycles {
            Some(cycles) => twin.with_cycles(&self.configuration, cycles, 0),
            None => twin,
        }
    }

    /// Returns why a waiting job cannot start for another cause than a lack of processors.
    fn obstacle(&self, job: &Job, cpus: u64) -> Option<String> {
        let down = |name: &String| self.partitions.get(name).is_none_or(|partition| partition.state != "up");
        if job.is_held() {
            Some("it is held".to_owned())
        } else if job.reservation.is_some() {
            Some("it uses a reservation".to_owned())
        } else if job.partitions.iter().all(down) {
            Some("its partition is not up".to_owned())
        } else if !job.waits_for_processors() {
            Some(format!("Slurm's reason: {}", job.reason.as_deref().unwrap_or_default()))
        } else if job.cpus > cpus {
            Some(format!("it needs {} processors of {cpus} that are in service", job.cpus))
        } else {
            None
        }
    }
}

fn request(job: &Job) -> Request {
    let submit = Time::from_ticks(job.submitted.saturating_mul(1_000_000));
    Request {
        user: Some(job.user),
        ..Request::new(0, submit, estimate(job), Resources::cpus(job.cpus.max(1)))
    }
}

/// Returns a machine of processors only, and the jobs on it.
fn plain<'a>(
    nodes: &BTreeSet<&str>,
    cpus: u64,
    jobs: &[(&'a Job, Request)],
    waiting: Vec<(&'a Job, Request)>,
    now: Time,
) -> (Machine, Vec<(&'a Job, Entry)>) {
    let running = jobs.iter().filter_map(|(job, request)| Some((*job, running(job, request, nodes, now)?)));
    let running: Vec<(&Job, Entry)> = running.collect();
    // Where jobs share processors, they have more together than there are.
    let held: u64 = running.iter().map(|(_, entry)| entry.request.procs().get()).sum();
    let machine = Machine::plain(Procs::new(held.max(cpus).max(1)));
    let waiting = waiting.into_iter().map(|(job, request)| (job, Entry::waiting(request, 0)));
    (machine, running.into_iter().chain(waiting).collect())
}

/// Returns a job that holds processors of these nodes.
fn running(job: &Job, request: &Request, nodes: &BTreeSet<&str>, now: Time) -> Option<Entry> {
    let usable = job.on.iter().filter(|node| nodes.contains(node.as_str())).count() as u64;
    // On each of its nodes it has as many as on the others, as far as is known.
    let cpus = (job.cpus * usable).div_ceil((job.on.len() as u64).max(1));
    if cpus == 0 {
        return None;
    }
    let start = Time::from_ticks(job.start?.saturating_mul(1_000_000)).min(now);
    let request = Request { demand: Resources::cpus(cpus), ..request.clone() };
    let placement = Placement::on_plain(request.demand);
    Some(cycles::running(Entry::waiting(request, 0), placement, start, now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Allocated, Amount, Configuration, Detail, Limit, Node, Partition};
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
        assert_eq!(queue.left_out["7"], "Slurm's reason: Dependency");
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
        let observed = Observed { details: [("1".to_owned(), detail)].into(), cycles: None };
        assert_eq!(free(&observed), [2, 0]);
    }

    /// Returns the free processors of each node, and the waiting jobs that start soon.
    fn after(cluster: &mut Cluster, jobs: Vec<Job>, details: &[(&str, Detail)]) -> (Vec<u64>, Vec<String>) {
        cluster.jobs = jobs.into_iter().map(|job| (job.id.clone(), job)).collect();
        let details = details.iter().map(|(id, detail)| ((*id).to_owned(), detail.clone())).collect();
        let observed = Observed { details, cycles: None };
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
        let sum = Detail {
            gres_otherwise: Some("gres:gpu:1".into()),
            gpus: 2,
            least_nodes: 1,
            ..Detail::default()
        };
        let by_job = Job { gres: None, ..jobs()[1].clone() };
        assert_eq!(
            after(&mut cluster, vec![jobs()[0].clone(), by_job], &[("2", sum)]).1,
            Vec::<String>::new()
        );
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
        let kept =
            state(JobState::Suspended, runs(memory(Amount::PerNode(900), job(1, "batch", 4, 1)), &["b"]));
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
        let one = |number| Job {
            gres: Some("gres:gpu:1".into()),
            nodes: 1,
            ..job(number, "other", 2, 100 - number)
        };
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
}
