//! Devices of hosts: no device is taken twice, none is given in shares beyond its memory, and each job has the devices that
//! the reference implementation gives it.

use std::collections::BTreeMap;
use std::sync::Arc;

use miserly_core::devices::{
    DeviceClass, DeviceDemand, DeviceError, DeviceFit, DeviceGroup, DeviceRequest, DeviceTable, HeldDevices,
    TypicalDemands,
};
use miserly_core::{EventOrder, HostId, JobNumber, Machine, Sharing, Span, Spread, State, Time};
use miserly_oracle::{NaiveJob, NaiveOnHosts, NaiveStart, schedule_on_hosts};
use miserly_policies::PolicySpec;
use miserly_sim::{Job, Observer, Simulation};
use proptest::prelude::*;

use crate::rebuild::run_replacing;
use crate::support::{
    BOTH, MORE_ON_HOSTS, ON_HOSTS, ON_SHARED_HOSTS, SEED, Schedule, hosts_workload, in_order, jobs, machine,
    processors_on, run_on,
};

/// Into how many parts the policies are cut.
const TURNS: usize = 6;

/// The classes of which hosts have some: whole devices, parts, and two kinds that are given in shares.
fn class(number: u32) -> (DeviceClass, u32) {
    let class = |name: &str, memory, part_of: Option<&str>, shares| DeviceClass {
        name: name.into(),
        memory: Some(memory),
        part_of: part_of.map(Into::into),
        shares,
    };
    match number {
        0 => (class("a", 20, None, false), 1),
        1 => (class("b", 10, None, true), 1),
        2 => (class("c", 7, None, true), 1),
        _ => (class("part", 5, Some("a"), false), 2),
    }
}

/// A demand: the type, the count, the memory, and whether it is for a share.
type Ask = (u8, u32, u64, bool);

/// Returns the demand of a job: none, of a request, or of a log.
fn demand(table: &DeviceTable, ask: Ask) -> Result<Option<DeviceDemand>, DeviceError> {
    let (types, count, memory, share) = ask;
    let types = match types {
        0..4 => return Ok(None),
        4..7 => None,
        7 => Some("a"),
        8 => Some("b"),
        9 => Some("b|c"),
        10 => Some("part"),
        _ => Some("a|c|part"),
    };
    let request = match (share, count) {
        (true, 3) => return table.demand_of_log(memory * 90, types),
        (true, _) => DeviceRequest::share(memory),
        (false, _) => DeviceRequest::any(count),
    };
    let request = types.map_or(Ok(request.clone()), |types| request.with_types(types))?;
    table.demand(&request).map(Some)
}

/// A machine of hosts with devices, and jobs that could run there.
fn devices_workload(overruns: bool) -> impl Strategy<Value = (Machine, Vec<Job>)> {
    let groups = prop::collection::vec((0u32..4, 1u32..4), 0..4);
    let sharing = prop_oneof![4 => Just(Sharing::Shared), 1 => Just(Sharing::Whole)];
    let ask = (0u8..12, 1u32..4, 1u64..11, any::<bool>());
    let workload = sharing.prop_flat_map(move |sharing| hosts_workload(overruns, Spread::One, sharing));
    (workload, prop::collection::vec(groups, 5), prop::collection::vec(ask, 40)).prop_map(
        |((machine, jobs), groups, asks)| {
            let group = |(number, count): (u32, u32)| {
                let (class, parts) = class(number);
                DeviceGroup { class, count: count * parts, parts }
            };
            let hosts = groups.into_iter().map(|groups| groups.into_iter().map(group).collect::<Vec<_>>());
            let table = DeviceTable::new(&hosts.take(machine.hosts().len()).collect::<Vec<_>>()).unwrap();
            let demands: Vec<_> = asks.into_iter().map(|ask| demand(&table, ask)).collect();
            let machine = machine.with_devices(Some(Arc::new(table)));
            let with_devices = |(mut job, demand): (Job, Result<_, _>)| {
                job.request.devices = demand.ok()?;
                machine.could_hold(&job.request).then_some(job)
            };
            let jobs = jobs.into_iter().zip(demands).filter_map(with_devices).collect();
            (machine, jobs)
        },
    )
}

/// The devices that each job had when it was last seen running, and the time at which it was first seen.
#[derive(Default)]
struct Held(BTreeMap<JobNumber, (Time, Vec<HeldDevices>)>);

impl Observer for Held {
    fn system(&mut self, now: Time, system: &miserly_core::System) {
        let ledger = system.queues()[0].ledger();
        for entry in ledger.running().map(|job| ledger.entry(job)) {
            if let State::Running { placement, .. } = &entry.state {
                let held = placement.devices().to_vec();
                self.0.entry(entry.request.number).or_insert((now, held));
            }
        }
    }
}

/// Runs a policy, and returns the schedule with the devices of each job.
fn run_with_devices(machine: &Machine, jobs: &[Job], name: &str, instants: EventOrder) -> (Schedule, Held) {
    let policy = name.parse::<PolicySpec>().unwrap().build(machine, SEED).unwrap();
    let (mut schedule, mut held) = (Schedule::default(), Held::default());
    let mut simulation = Simulation::new(machine.clone(), policy, instants).with_numbered_processors();
    let mut source = in_order(jobs).peekable();
    while simulation.step(&mut source, &mut [&mut schedule, &mut held]).unwrap().is_some() {}
    assert_eq!(schedule.0.len(), jobs.len(), "{name} leaves nobody behind");
    schedule.0.sort_by_key(|job| job.request.number);
    (schedule, held)
}

/// Checks each instant at which a job starts: the jobs that run then hold no device twice, and of no device more than its
/// memory. This shares no code with the ledger.
fn no_device_twice(machine: &Machine, schedule: &Schedule, held: &Held) -> Result<(), TestCaseError> {
    let table = machine.devices().unwrap();
    for at in schedule.0.iter().map(|job| job.start) {
        let mut whole: BTreeMap<(HostId, u32), JobNumber> = BTreeMap::new();
        let mut shares: BTreeMap<(HostId, u32), u64> = BTreeMap::new();
        for job in schedule.0.iter().filter(|job| job.start <= at && at < job.end) {
            let number = job.request.number;
            for held in &held.0[&number].1 {
                let cell = table.cell(held.cell);
                for position in held.positions() {
                    let device = (cell.host, cell.first + position);
                    if cell.shares {
                        *shares.entry(device).or_default() += held.amount;
                        prop_assert!(shares[&device] <= cell.capacity, "job {} at {}", number, at);
                    } else {
                        prop_assert_eq!(whole.insert(device, number), None, "job {} at {}", number, at);
                    }
                }
                let named = u64::from(held.names.count_ones());
                prop_assert_eq!(named, if cell.shares { 1 } else { held.amount });
            }
        }
    }
    Ok(())
}

/// Returns the devices of a job as the reference implementation has them.
fn cells(held: &[HeldDevices]) -> Vec<(usize, u64)> {
    held.iter().map(|held| (held.cell.index(), held.amount)).collect()
}

fn agree(machine: &Machine, jobs: &[Job], turn: usize) -> Result<(), TestCaseError> {
    let naive: Vec<NaiveJob> =
        jobs.iter().map(|job| NaiveJob { request: job.request.clone(), runtime: job.runtime }).collect();
    for policy in ON_HOSTS.iter().chain(&["miser(horizon=none)"]).skip(turn).step_by(TURNS) {
        let twin = NaiveOnHosts::written(policy, SEED).expect("a naive version");
        for instants in BOTH {
            let (schedule, held) = run_with_devices(machine, jobs, policy, instants);
            no_device_twice(machine, &schedule, &held)?;
            let ours = schedule.0.iter().map(|job| NaiveStart {
                at: job.start,
                on: processors_on(machine, job.pes.as_ref().unwrap()),
                devices: cells(&held.0[&job.request.number].1),
            });
            let theirs = schedule_on_hosts(machine, &naive, twin, instants);
            prop_assert_eq!(ours.collect::<Vec<_>>(), theirs, "{}, {}", policy, instants);
        }
    }
    Ok(())
}

/// Returns the machine with the rule of the fragmentation gradient, for the demands of these jobs.
fn with_gradient(machine: &Machine, jobs: &[Job]) -> Machine {
    let typical = jobs.iter().filter_map(|job| Some((job.request.demand, job.request.devices?, 1)));
    let fit = DeviceFit::Gradient(Arc::new(TypicalDemands::new(typical.collect())));
    let table = machine.devices().unwrap().clone().with_fit(fit);
    machine.clone().with_devices(Some(Arc::new(table)))
}

proptest! {
    #[test]
    fn the_same_devices_for_every_job((machine, jobs) in devices_workload(false), turn in 0..TURNS) {
        agree(&machine, &jobs, turn)?;
    }

    #[test]
    fn the_same_devices_under_overruns((machine, jobs) in devices_workload(true), turn in 0..TURNS) {
        agree(&machine, &jobs, turn)?;
    }

    #[test]
    fn promises_are_kept((machine, jobs) in devices_workload(false), gradient in any::<bool>()) {
        let machine = if gradient { with_gradient(&machine, &jobs) } else { machine };
        for policy in ["conservative", "conservative(order=shortest)", "easy", "miser(horizon=none)"] {
            for instants in BOTH {
                let (schedule, held) = run_with_devices(&machine, &jobs, policy, instants);
                no_device_twice(&machine, &schedule, &held)?;
                for job in &schedule.0 {
                    prop_assert!(!job.broken && job.promised.is_none_or(|promised| job.start <= promised));
                }
            }
        }
    }

    #[test]
    fn a_rebuilt_policy_gives_the_same_devices(
        (machine, jobs) in devices_workload(true),
        replace in prop::collection::vec(any::<bool>(), 1..20),
        turn in 0..TURNS,
        gradient in any::<bool>(),
    ) {
        let machine = if gradient { with_gradient(&machine, &jobs) } else { machine };
        let policies = ON_HOSTS.iter().chain(&MORE_ON_HOSTS).filter(|policy| !policy.starts_with("slurm"));
        for policy in policies.skip(turn).step_by(TURNS) {
            for instants in BOTH {
                let kept = run_on(&machine, &jobs, policy, instants).decisions();
                let rebuilt = run_replacing(&machine, &jobs, policy, instants, &replace).decisions();
                prop_assert_eq!(kept, rebuilt, "{}, {}", policy, instants);
            }
        }
    }
}

/// Two devices of 10 have 6 free each. A job of 8 waits for one of them, though 12 are free in all.
#[test]
fn a_share_waits_for_one_device() {
    let mut jobs = jobs(&[(0, 30, 1, 30), (0, 20, 1, 20), (1, 10, 1, 10)]);
    let (class, parts) = class(1);
    let table = DeviceTable::new(&[vec![DeviceGroup { class, count: 2, parts }]]).unwrap();
    for (job, memory) in jobs.iter_mut().zip([4, 7, 8]) {
        job.request.devices = Some(table.demand(&DeviceRequest::share(memory)).unwrap());
    }
    let machine = machine(&[(8, 100)]).with_devices(Some(Arc::new(table)));
    for policy in ["fcfs", "easy", "conservative", "sorted", "miser"] {
        let ended = run_on(&machine, &jobs, policy, EventOrder::Batched);
        assert_eq!(ended.starts(), [0, 0, 20], "{policy}");
    }
    let promised = run_on(&machine, &jobs, "conservative", EventOrder::Batched).0[2].promised;
    assert_eq!(promised, Some(Time::ZERO + Span::from_secs(20).unwrap()));
}

#[test]
fn other_policies_refuse_devices() {
    let (class, parts) = class(0);
    let table = DeviceTable::new(&[vec![DeviceGroup { class, count: 2, parts }]]).unwrap();
    let machine = machine(&[(8, 100)]).with_devices(Some(Arc::new(table)));
    let refuses = |policy: &str| policy.parse::<PolicySpec>().unwrap().build(&machine, SEED).err();
    for policy in ON_SHARED_HOSTS.iter().chain(&["slurm", "ss", "eqspatial", "gang"]) {
        let error = refuses(policy).unwrap().to_string();
        assert!(error.contains("machines without typed GPUs"), "{policy}: {error}");
    }
    assert!(ON_HOSTS.iter().all(|policy| refuses(policy).is_none()));
}
