//! The places of recorded jobs on the nodes of a cluster.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use miserly_core::{
    Demand, Host, HostId, JobNumber, Kind, Machine, Pes, Placement, Resources, Share, SlotId, Spread, Time,
};
use miserly_policies::backfill::select_hosts;

use crate::accounting::instant;
use crate::cluster::allocated;
use crate::{Cluster, RecordedJob, Slurm, SlurmError};

impl Cluster {
    /// Returns the nodes as a machine of hosts, over which jobs may span. They have memory where jobs have a part of it, and GPUs.
    ///
    /// They are in the order of their names, with numbers in names by value. That is Slurm's order of nodes, unless its
    /// configuration lists them in another one.
    pub fn machine(&self) -> Machine {
        self.machine_of(|_| true)
    }

    /// Returns some of the nodes as a machine.
    pub(crate) fn machine_of(&self, is_there: impl Fn(&str) -> bool) -> Machine {
        let mut names: Vec<&String> = self.nodes.keys().filter(|name| is_there(name)).collect();
        names.sort_by_key(|name| words(name));
        let weights = names.iter().map(|name| self.nodes[*name].weight).collect();
        let host = |name: &String| {
            let node = &self.nodes[name];
            let memory = if self.configuration.counts_memory() { node.memory } else { 0 };
            let capacity = Resources::cpus(node.cpus)
                .with(Kind::Memory, memory.saturating_mul(1024))
                .with(Kind::Gpus, node.gpus());
            Host { name: name.clone(), capacity }
        };
        Machine::new(names.into_iter().map(host).collect()).with_spread(Spread::Any).with_weights(weights)
    }
}

/// Returns the words and the numbers of a name.
fn words(name: &str) -> Vec<(String, u64)> {
    let mut words: Vec<(String, u64)> = vec![(String::new(), 0)];
    for run in name.as_bytes().chunk_by(|one, other| one.is_ascii_digit() == other.is_ascii_digit()) {
        let text = String::from_utf8_lossy(run);
        match text.parse() {
            Ok(number) => words.push((String::new(), number)),
            Err(_) => words.push((text.into_owned(), 0)),
        }
    }
    words
}

/// A host of a recorded job, and its processors there, if they are known.
pub type RecordedHost = (String, Option<u64>);

/// Returns the processors of jobs on each of their hosts, by number and start.
///
/// The controller has them until `MinJobAge` after the end of a job.
///
/// # Errors
/// If the controller gives no answer.
pub fn known_hosts(cluster: &Slurm) -> Result<BTreeMap<(i64, Timestamp), Vec<RecordedHost>>, SlurmError> {
    Ok(cluster.descriptions(&[])?.text.lines().filter_map(parse_hosts).collect())
}

/// Returns the number of a job, its start and its processors on each host, from its description.
fn parse_hosts(description: &str) -> Option<((i64, Timestamp), Vec<RecordedHost>)> {
    let value = |key: &str| description.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    let key = (value("JobId")?.parse().ok()?, instant(value("StartTime")?)?);
    let all: Vec<RecordedHost> =
        allocated(description).into_iter().map(|(name, on)| (name, Some(on.cpus))).collect();
    (!all.is_empty()).then_some((key, all))
}

/// Places recorded jobs on the hosts of a machine, by the hosts on which each one ran.
///
/// The accounting has the nodes of a job, but not its processors on each. Where they are not known, Slurm's choice of hosts gives
/// them, beside the jobs that ran at its start. It is the choice among all hosts if that gives the hosts of the record, or else
/// the one among these alone. A job that does not fit there is placed anywhere, and one that fits nowhere has no place.
///
/// O(h) for each job of several hosts and host h of the machine, and O(s^2 h) for s such jobs that start at one instant.
pub fn place_jobs(
    machine: &Machine,
    jobs: &mut [RecordedJob],
    recorded: &BTreeMap<JobNumber, Vec<RecordedHost>>,
) {
    let numbers: BTreeMap<&str, HostId> =
        (0..).zip(machine.hosts()).map(|(number, host)| (host.name.as_str(), HostId(number))).collect();
    let hosts_of = |job: &RecordedJob| -> BTreeMap<HostId, Option<u64>> {
        let hosts = recorded.get(&job.request.number).into_iter().flatten();
        hosts.filter_map(|(name, procs)| Some((*numbers.get(name.as_str())?, *procs))).collect()
    };
    let mut starts: BTreeMap<Time, Vec<usize>> = BTreeMap::new();
    for (place, job) in jobs.iter().enumerate() {
        if let Some(start) = job.start {
            starts.entry(start).or_default().push(place);
        }
    }
    let mut free = Free { machine, rooms: machine.hosts().iter().map(|host| host.capacity).collect() };
    let mut ends: BTreeSet<(Time, usize)> = BTreeSet::new();
    for (start, mut todo) in starts {
        while let Some((end, place)) = ends.pop_first() {
            if end > start {
                ends.insert((end, place));
                break;
            }
            free.end(jobs[place].placement.as_ref());
        }
        let hosts: BTreeMap<usize, BTreeMap<HostId, Option<u64>>> =
            todo.iter().map(|place| (*place, hosts_of(&jobs[*place]))).collect();
        while !todo.is_empty() {
            let exact = |place: &usize| free.exact(&jobs[*place], &hosts[place]);
            let found = todo.iter().enumerate().find_map(|(nth, place)| Some((nth, exact(place)?)));
            let (nth, placement) = match found {
                Some((nth, placement)) => (nth, Some(placement)),
                None => (0, free.nearest(&jobs[todo[0]], &hosts[&todo[0]])),
            };
            let place = todo.remove(nth);
            free.start(placement.as_ref());
            jobs[place].placement = placement;
            ends.extend(jobs[place].end.map(|end| (end, place)));
        }
    }
}

/// The free resources of the hosts at an instant of the record.
struct Free<'a> {
    machine: &'a Machine,
    rooms: Vec<Resources>,
}

impl Free<'_> {
    /// Returns the known place, or that which the choice among all hosts gives, if it has the recorded hosts.
    fn exact(&self, job: &RecordedJob, hosts: &BTreeMap<HostId, Option<u64>>) -> Option<Placement> {
        if let Some(known) = self.known(job, hosts) {
            return Some(known);
        }
        let chosen = self.select(job, &vec![true; self.rooms.len()])?;
        let are_recorded = chosen.shares().len() == hosts.len()
            && chosen.shares().iter().all(|share| hosts.contains_key(&share.host));
        are_recorded.then_some(chosen)
    }

    /// Returns the place with the recorded processors, if they are all known and free. A job of one host has them all there.
    fn known(&self, job: &RecordedJob, hosts: &BTreeMap<HostId, Option<u64>>) -> Option<Placement> {
        let demand = self.machine.demand(&job.request);
        if demand.is_alone() {
            return None;
        }
        // Slurm may give a job another number of processors on each of its nodes.
        let demand = Demand::from(demand.amount());
        let all_here = (hosts.len() == 1).then(|| demand.parts());
        let mut done = 0;
        let share = |(host, procs): (&HostId, &Option<u64>)| {
            let from = done;
            done += procs.or(all_here)?;
            // Other amounts are in proportion to the processors.
            let amount = (done <= demand.parts()).then(|| demand.part(from, done))?;
            let share = Share { host: *host, amount, pes: Pes::Count };
            amount.fits_in(&self.rooms[host.index()]).then_some(share)
        };
        let shares = hosts.iter().map(share).collect::<Option<Vec<Share>>>()?;
        (done == demand.parts()).then(|| Placement::across(SlotId(0), shares))
    }

    /// Returns a place on the recorded hosts, or else anywhere.
    fn nearest(&self, job: &RecordedJob, hosts: &BTreeMap<HostId, Option<u64>>) -> Option<Placement> {
        let open: Vec<bool> =
            (0..).zip(&self.rooms).map(|(host, _)| hosts.contains_key(&HostId(host))).collect();
        self.select(job, &open).or_else(|| self.select(job, &vec![true; self.rooms.len()]))
    }

    fn select(&self, job: &RecordedJob, open: &[bool]) -> Option<Placement> {
        select_hosts(self.machine, &self.rooms, open, &self.machine.demand(&job.request))
    }

    fn start(&mut self, placement: Option<&Placement>) {
        for share in placement.iter().flat_map(|placement| placement.shares()) {
            let room = &mut self.rooms[share.host.index()];
            *room = room.less(&share.amount);
        }
    }

    fn end(&mut self, placement: Option<&Placement>) {
        for share in placement.iter().flat_map(|placement| placement.shares()) {
            let room = &mut self.rooms[share.host.index()];
            *room = room.plus(&share.amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Node;
    use miserly_core::{Request, Span};

    fn cluster(nodes: u32, cpus: u64) -> Cluster {
        let node = |number| (format!("node{number}"), Node { cpus, ..Node::default() });
        Cluster { nodes: (1..=nodes).map(node).collect(), ..Cluster::default() }
    }

    /// Places jobs, each by its processors, start, end and hosts, on nodes of 8 processors. Returns the processors on each host.
    #[track_caller]
    fn check(jobs: &[(u64, i64, i64, &[u32])], expected: &[&[(u32, u64)]]) {
        let at = |seconds| Time::from_secs(seconds).unwrap();
        let job = |(number, (procs, start, end, _)): (i64, &(u64, i64, i64, &[u32]))| RecordedJob {
            request: Request::new(number, Time::ZERO, Span::TICK, Resources::cpus(*procs)),
            start: Some(at(*start)),
            end: Some(at(*end)),
            placement: None,
            billing: None,
            is_preempted: false,
            rerun_of: None,
        };
        let mut recorded: Vec<RecordedJob> = (1..).zip(jobs).map(job).collect();
        let names = (1..).zip(jobs).map(|(number, (.., hosts))| {
            (number, hosts.iter().map(|host| (format!("node{host}"), None)).collect::<Vec<_>>())
        });
        place_jobs(&cluster(12, 8).machine(), &mut recorded, &names.collect());
        let shares = |job: RecordedJob| -> Vec<(u32, u64)> {
            let shares = job.placement.as_ref().map_or(&[][..], Placement::shares);
            let mut each: Vec<(u32, u64)> =
                shares.iter().map(|share| (share.host.0 + 1, share.amount.cpus_count().get())).collect();
            each.sort_unstable();
            each
        };
        let placed: Vec<Vec<(u32, u64)>> = recorded.into_iter().map(shares).collect();
        assert_eq!(placed, expected);
    }

    #[test]
    fn jobs_have_their_memory_where_it_counts() {
        let mut cluster = cluster(2, 8);
        cluster.nodes.values_mut().for_each(|node| node.memory = 10);
        let memory = |machine: &Machine| machine.capacity().get(Kind::Memory);
        assert_eq!(memory(&cluster.machine()), 0);
        cluster.configuration.select_parameters = Some("CR_CPU_MEMORY".to_owned());
        let machine = cluster.machine();
        assert_eq!(memory(&machine), 2 * 10_240);
        // Three processors have three quarters of a node's memory, and a node has room for no other such job.
        let demand = Resources::cpus(3_u64).with(Kind::Memory, 7_680);
        let job = |number| RecordedJob {
            request: Request::new(number, Time::ZERO, Span::TICK, demand),
            start: Some(Time::ZERO),
            end: None,
            placement: None,
            billing: None,
            is_preempted: false,
            rerun_of: None,
        };
        let on = |procs: &[(&str, Option<u64>)]| -> Vec<RecordedHost> {
            procs.iter().map(|(name, procs)| ((*name).to_owned(), *procs)).collect()
        };
        let mut jobs = [job(1), job(2)];
        let recorded = [(1, on(&[("node1", Some(1)), ("node2", Some(2))])), (2, on(&[("node2", None)]))];
        place_jobs(&machine, &mut jobs, &recorded.into());
        let amounts = |job: &RecordedJob| -> Vec<(u64, u64)> {
            let shares = job.placement.as_ref().map(Placement::shares).unwrap_or_default();
            let amount = |share: &Share| (share.amount.cpus_count().get(), share.amount.get(Kind::Memory));
            shares.iter().map(amount).collect()
        };
        assert_eq!(amounts(&jobs[0]), [(1, 2_560), (2, 5_120)]);
        // It fits on the first node alone.
        assert_eq!(amounts(&jobs[1]), [(3, 7_680)]);
    }

    #[test]
    fn nodes_are_in_the_order_of_their_numbers() {
        let machine = cluster(11, 8).machine();
        let names: Vec<&str> = machine.hosts().iter().map(|host| host.name.as_str()).collect();
        assert_eq!((names[0], names[1], names[9]), ("node1", "node2", "node10"));
    }

    #[test]
    fn a_job_has_what_is_free_on_its_hosts() {
        // The third job has the four processors that the first one leaves on node 1.
        let jobs: [(u64, i64, i64, &[u32]); 3] = [(4, 0, 9, &[1]), (8, 1, 9, &[2]), (20, 2, 9, &[1, 3, 4])];
        check(&jobs, &[&[(1, 4)], &[(2, 8)], &[(1, 4), (3, 8), (4, 8)]]);
    }

    #[test]
    fn the_order_of_starts_at_one_instant_follows_from_the_hosts() {
        // The second one was placed first.
        check(&[(8, 0, 9, &[3]), (16, 0, 9, &[1, 2])], &[&[(3, 8)], &[(1, 8), (2, 8)]]);
    }

    #[test]
    fn the_controller_knows_the_processors() {
        let description = "JobId=7 JobState=RUNNING StartTime=100 NodeList=node[1-3] Nodes=node[1-2] CPU_IDs=0-3,7 Mem=0 GRES= \
            Nodes=node3 CPU_IDs=5 Mem=0 GRES= MinCPUsNode=1";
        let known =
            [("node1", 5), ("node2", 5), ("node3", 1)].map(|(name, procs)| (name.to_owned(), Some(procs)));
        assert_eq!(
            parse_hosts(description),
            Some(((7, Timestamp::from_second(100).unwrap()), known.to_vec()))
        );
        assert_eq!(parse_hosts("JobId=8 JobState=PENDING StartTime=Unknown"), None);
        let machine = cluster(3, 8).machine();
        let request = Request::new(7, Time::ZERO, Span::TICK, Resources::cpus(11_u64));
        let mut jobs = [RecordedJob {
            request,
            start: Some(Time::ZERO),
            end: None,
            placement: None,
            billing: None,
            is_preempted: false,
            rerun_of: None,
        }];
        place_jobs(&machine, &mut jobs, &[(7, known.to_vec())].into());
        let shares = jobs[0].placement.as_ref().map(Placement::shares).unwrap();
        let procs: Vec<u64> = shares.iter().map(|share| share.amount.cpus_count().get()).collect();
        assert_eq!(procs, [5, 5, 1]);
    }

    #[test]
    fn hosts_that_are_full_are_replaced() {
        check(
            &[(96, 0, 5, &[]), (8, 1, 9, &[1]), (8, 5, 9, &[7])],
            &[&(1..=12).map(|host| (host, 8)).collect::<Vec<_>>(), &[], &[(7, 8)]],
        );
    }
}
