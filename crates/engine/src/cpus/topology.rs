//! The cores and memory nodes of the machine, and the choice of processors by them.
//!
//! The ledger counts processors only: whole cores are a rounded request.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use miserly_api::model::Submission;
use serde::{Deserialize, Serialize};

use crate::Setup;

/// The cores and the memory nodes (NUMA) of the machine, as lists of processors.
///
/// A processor in no core is a core of its own. Processors in no node are in one node together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Topology {
    /// The processors of each core. They share its execution units (SMT).
    pub cores: Vec<Vec<u32>>,
    /// The processors of each memory node.
    pub nodes: Vec<Vec<u32>>,
}

/// The choice of processors for jobs.
#[derive(Clone, Debug)]
pub(crate) struct CpuChoice {
    /// The processors of each core.
    cores: Vec<Vec<u32>>,
    /// The core of each processor.
    core_of: BTreeMap<u32, usize>,
    /// The node of each processor.
    node_of: BTreeMap<u32, usize>,
    /// Whether jobs get whole cores only.
    whole_cores: bool,
}

impl Topology {
    /// Returns the part of each core that is among these processors, by the lowest number of the part.
    pub fn cores_of(&self, cpus: &[u32]) -> Vec<Vec<u32>> {
        let mut left: BTreeSet<u32> = cpus.iter().copied().collect();
        let mut cores: Vec<Vec<u32>> = vec![];
        for core in &self.cores {
            let part: BTreeSet<u32> = core.iter().copied().filter(|cpu| left.remove(cpu)).collect();
            cores.extend((!part.is_empty()).then(|| part.into_iter().collect()));
        }
        cores.extend(left.into_iter().map(|cpu| vec![cpu]));
        cores.sort_unstable();
        cores
    }
}

impl Setup {
    /// Returns the number by whose multiples jobs get processors: the processors of a core if jobs get whole cores, else 1.
    pub(crate) fn granule(&self) -> u64 {
        let largest = || self.topology.cores_of(&self.cpus).iter().map(Vec::len).max();
        self.whole_cores.then(largest).flatten().map_or(1, |size| size as u64)
    }

    /// Returns a submission with its processors rounded up to whole cores, if jobs get whole cores.
    pub(crate) fn in_whole_cores<'s>(&self, submission: &'s Submission) -> Cow<'s, Submission> {
        let granule = self.granule();
        let cpus = submission.cpus.checked_next_multiple_of(granule).unwrap_or(submission.cpus);
        if cpus == submission.cpus {
            return Cow::Borrowed(submission);
        }
        Cow::Owned(Submission { cpus, ..submission.clone() })
    }

    /// Returns whether processors are whole cores, as far as these are for jobs.
    pub(crate) fn are_whole_cores(&self, cpus: &[u32]) -> bool {
        let own: BTreeSet<u32> = cpus.iter().copied().collect();
        let cores = self.topology.cores_of(&self.cpus);
        let touched = cores.iter().filter(|core| core.iter().any(|cpu| own.contains(cpu)));
        touched.flatten().all(|cpu| own.contains(cpu))
    }
}

impl CpuChoice {
    pub(crate) fn new(Topology { cores, nodes }: &Topology, whole_cores: bool) -> CpuChoice {
        let positions = |of: &[Vec<u32>]| {
            of.iter().enumerate().flat_map(|(at, cpus)| cpus.iter().map(move |cpu| (*cpu, at))).collect()
        };
        CpuChoice { core_of: positions(cores), node_of: positions(nodes), cores: cores.clone(), whole_cores }
    }

    /// Chooses `count` of the free processors, ascending: from the fewest nodes, and in each from the fewest cores. Where
    /// several would do, those with the fewest free processors, then those with the lowest numbers.
    ///
    /// If jobs get whole cores, only cores count of which all `usable` processors are free. The result is shorter if there
    /// are too few.
    pub(crate) fn choose(
        &self,
        free: &BTreeSet<u32>,
        usable: impl Fn(u32) -> bool,
        count: usize,
    ) -> Vec<u32> {
        let mut nodes: BTreeMap<usize, BTreeMap<(usize, u32), Vec<u32>>> = BTreeMap::new();
        for cpu in free {
            let node = self.node_of.get(cpu).copied().unwrap_or(usize::MAX);
            // Processors without a core follow those with one.
            let core = self.core_of.get(cpu).map_or((usize::MAX, *cpu), |core| (*core, 0));
            nodes.entry(node).or_default().entry(core).or_default().push(*cpu);
        }
        if self.whole_cores {
            for cores in nodes.values_mut() {
                cores.retain(|(core, _), cpus| {
                    let whole = self.cores.get(*core).into_iter().flatten();
                    whole.filter(|cpu| usable(**cpu)).all(|cpu| cpus.contains(cpu))
                });
            }
        }
        let nodes: Vec<Vec<Vec<u32>>> =
            nodes.into_values().map(|cores| sorted(cores.into_values().collect())).collect();
        let size = |cores: &Vec<Vec<u32>>| cores.iter().map(Vec::len).sum();
        let mut chosen = vec![];
        for (node, share) in fewest(&nodes.iter().map(size).collect::<Vec<_>>(), count) {
            let cores = &nodes[node];
            for (core, part) in fewest(&cores.iter().map(Vec::len).collect::<Vec<_>>(), share) {
                chosen.extend(&cores[core][..part]);
            }
        }
        chosen.sort_unstable();
        chosen
    }
}

fn sorted(mut cores: Vec<Vec<u32>>) -> Vec<Vec<u32>> {
    cores.sort_unstable();
    cores
}

/// Divides an amount over the fewest units. Returns the units, by position, and the amount of each.
///
/// The largest units are taken whole until the rest fits into one, and then the smallest one into which it fits.
fn fewest(sizes: &[usize], mut amount: usize) -> Vec<(usize, usize)> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|at| (Reverse(sizes[*at]), *at));
    let mut parts = vec![];
    for (rank, at) in order.iter().copied().enumerate() {
        if amount == 0 {
            break;
        }
        if sizes[at] >= amount {
            let last = order.partition_point(|at| sizes[*at] >= amount) - 1;
            let best = order.partition_point(|at| sizes[*at] > sizes[order[last]]);
            parts.push((order[best.max(rank)], amount));
            break;
        }
        parts.push((at, sizes[at]));
        amount -= sizes[at];
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn choice(cores: &[&[u32]], nodes: &[&[u32]], whole_cores: bool) -> CpuChoice {
        let lists = |of: &[&[u32]]| of.iter().map(|cpus| cpus.to_vec()).collect();
        CpuChoice::new(&Topology { cores: lists(cores), nodes: lists(nodes) }, whole_cores)
    }

    #[track_caller]
    fn check(choice: &CpuChoice, free: &[u32], count: usize, expect: &[u32]) {
        assert_eq!(choice.choose(&free.iter().copied().collect(), |_| true, count), expect);
    }

    /// Four cores; the siblings are four numbers apart, as on many machines.
    const SIBLINGS: [&[u32]; 4] = [&[0, 4], &[1, 5], &[2, 6], &[3, 7]];

    #[test]
    fn without_a_topology_the_lowest_are_chosen() {
        check(&choice(&[], &[], false), &[7, 3, 5, 1], 3, &[1, 3, 5]);
        check(&choice(&[], &[], false), &[7, 3], 3, &[3, 7]);
        check(&choice(&[], &[], true), &[7, 3, 5], 2, &[3, 5]);
    }

    #[test]
    fn whole_cores_come_first_and_the_rest_goes_where_a_core_is_shared_already() {
        let cores = choice(&SIBLINGS, &[], false);
        check(&cores, &[0, 1, 2, 3, 4, 5, 6, 7], 4, &[0, 1, 4, 5]);
        check(&cores, &[0, 1, 2, 3, 4, 5, 7], 1, &[2]);
        check(&cores, &[0, 1, 2, 3, 4, 5, 7], 3, &[0, 2, 4]);
        check(&cores, &[0, 2, 5], 2, &[0, 2]);
    }

    #[test]
    fn a_job_that_fits_into_a_node_is_in_one() {
        let nodes = choice(&[], &[&[0, 2, 4, 6], &[1, 3, 5]], false);
        check(&nodes, &[0, 1, 2, 3, 4, 5, 6], 3, &[1, 3, 5]);
        check(&nodes, &[0, 1, 2, 3, 4, 5, 6], 4, &[0, 2, 4, 6]);
        check(&nodes, &[0, 1, 2, 3, 4, 5, 6], 5, &[0, 1, 2, 4, 6]);
    }

    #[test]
    fn only_whole_cores_if_jobs_do_not_share_any() {
        let cores = choice(&SIBLINGS, &[], true);
        check(&cores, &[0, 1, 2, 3, 5, 6], 2, &[1, 5]);
        check(&cores, &[0, 1, 2, 3], 2, &[]);
        // The sibling of 0 is offline.
        let free = [0, 1, 2].into();
        assert_eq!(cores.choose(&free, |cpu| cpu != 4, 1), [0]);
    }

    /// A machine: the number of processors of each core, for each node. Numbers are dealt out in turn to the cores.
    fn machine() -> impl Strategy<Value = Topology> {
        let node = prop::collection::vec(1..=4_usize, 1..=4);
        prop::collection::vec(node, 1..=3).prop_map(|nodes| {
            let mut cores: Vec<(usize, usize, Vec<u32>)> = vec![];
            for (node, sizes) in nodes.iter().enumerate() {
                cores.extend(sizes.iter().map(|size| (node, *size, vec![])));
            }
            let mut next = 0..;
            while cores.iter().any(|(_, size, cpus)| cpus.len() < *size) {
                for (_, size, cpus) in &mut cores {
                    cpus.extend(next.next().filter(|_| cpus.len() < *size));
                }
            }
            let in_node = |node: usize| {
                cores.iter().filter(move |(of, ..)| *of == node).flat_map(|(.., cpus)| cpus.clone()).collect()
            };
            let nodes = (0..nodes.len()).map(in_node).collect();
            Topology { nodes, cores: cores.into_iter().map(|(.., cpus)| cpus).collect() }
        })
    }

    /// Returns the fewest units that have an amount together, by a trial of all sets of units.
    fn slow_fewest(sizes: &[usize], amount: usize) -> u32 {
        let sum =
            |set: u32| (0..sizes.len()).filter(|at| set & (1 << at) != 0).map(|at| sizes[at]).sum::<usize>();
        (0..1_u32 << sizes.len()).filter(|set| sum(*set) >= amount).map(u32::count_ones).min().unwrap()
    }

    /// Returns the free and the chosen processors of each unit.
    fn counts(units: &[Vec<u32>], free: &BTreeSet<u32>, chosen: &[u32]) -> (Vec<usize>, Vec<usize>) {
        let free = units.iter().map(|unit| unit.iter().filter(|cpu| free.contains(cpu)).count());
        let of = units.iter().map(|unit| unit.iter().filter(|cpu| chosen.contains(cpu)).count());
        (free.collect(), of.collect())
    }

    proptest! {
        #[test]
        fn the_fewest_nodes_and_in_each_the_fewest_cores(topology in machine(), held in any::<u64>(), count in 1..30_usize) {
            let all = topology.nodes.concat();
            let free: BTreeSet<u32> = all.into_iter().filter(|cpu| held & (1 << cpu) == 0).collect();
            let chosen = CpuChoice::new(&topology, false).choose(&free, |_| true, count);
            prop_assert_eq!(chosen.len(), count.min(free.len()));
            prop_assert!(chosen.is_sorted_by(|one, next| one < next) && chosen.iter().all(|cpu| free.contains(cpu)));
            let (sizes, shares) = counts(&topology.nodes, &free, &chosen);
            let used = |shares: &[usize]| u32::try_from(shares.iter().filter(|share| **share > 0).count()).unwrap();
            prop_assert_eq!(used(&shares), slow_fewest(&sizes, chosen.len()));
            for (node, share) in topology.nodes.iter().zip(shares) {
                let cores: Vec<Vec<u32>> =
                    topology.cores.iter().filter(|core| node.contains(&core[0])).cloned().collect();
                let (sizes, parts) = counts(&cores, &free, &chosen);
                prop_assert_eq!(used(&parts), slow_fewest(&sizes, share));
            }
        }

        /// Jobs come and go. No core ever has processors of two jobs, and no request fails for lack of a whole core.
        #[test]
        fn no_two_jobs_share_a_core(size in 1..=4_u32, cores in 1..=8_u32, steps in prop::collection::vec((1..=3_usize, 0..4_usize), 1..40)) {
            let lists: Vec<Vec<u32>> = (0..cores).map(|core| (0..size).map(|at| core + at * cores).collect()).collect();
            let choice = CpuChoice::new(&Topology { cores: lists.clone(), nodes: vec![] }, true);
            let mut free: BTreeSet<u32> = (0..size * cores).collect();
            let mut jobs: Vec<Vec<u32>> = vec![];
            for (wanted, gone) in steps {
                let count = wanted * usize::try_from(size).unwrap();
                if count <= free.len() {
                    let chosen = choice.choose(&free, |_| true, count);
                    prop_assert_eq!(chosen.len(), count);
                    free.retain(|cpu| !chosen.contains(cpu));
                    jobs.push(chosen);
                } else if let Some(job) = (!jobs.is_empty()).then(|| jobs.swap_remove(gone % jobs.len())) {
                    free.extend(job);
                }
                for core in &lists {
                    let owners = jobs.iter().filter(|job| core.iter().any(|cpu| job.contains(cpu))).count();
                    prop_assert!(owners <= 1, "{core:?} {jobs:?}");
                }
            }
        }
    }
}
