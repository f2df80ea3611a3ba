//! LSF on hosts with memory: against a reference implementation, against its own limits, and
//! rebuilt.

use std::ops::Range;
use std::sync::Arc;

use miserly_classes::lsf::{Class, Length, Size};
use miserly_core::{
    EventOrder, Host, JobClasses, Kind, LengthClass, Machine, Request, Resources, Sharing, SizeClass,
    SizeTurn, Span, Time,
};
use miserly_oracle::{NaiveJob, NaiveLsf, lsf_schedule};
use miserly_sim::{Finished, Job};
use proptest::prelude::*;

use crate::rebuild::run_replacing;
use crate::support::{BOTH, run_on};

const GIGABYTE: u64 = 1 << 20;

/// Rows of Table 2 that differ, and hosts that it does not have.
const NAMES: [&str; 6] = ["eir", "hod1", "mimir", "modi2", "a", "b"];

pub(crate) fn machine() -> impl Strategy<Value = Machine> {
    let room = prop::sample::select(vec![(8u64, 8u64), (24, 10), (40, 20), (70, 33)]);
    let host = |(name, (procs, gigabytes)): (&str, (u64, u64))| Host {
        name: name.into(),
        capacity: Resources::cpus(procs).with(Kind::Memory, gigabytes * GIGABYTE),
    };
    let names = prop::sample::subsequence(NAMES.to_vec(), 2..=4).prop_shuffle();
    (names, prop::collection::vec(room, 4), 0..8).prop_map(move |(names, rooms, kind)| {
        let machine = Machine::new(names.into_iter().zip(rooms).map(host).collect());
        match kind {
            0 => machine.with_sharing(Sharing::Whole),
            _ => machine,
        }
    })
}

/// A job of any class and, now and then, of none; estimates and limits are often met exactly.
fn job() -> impl Strategy<Value = Job> {
    let procs = prop_oneof![4 => 1u64..=8, 2 => 9u64..=16, 2 => 17u64..=70];
    let memory =
        prop_oneof![3 => 0u64..=2, 1 => 3u64..=4, 1 => 5u64..=17].prop_map(|gigabytes| gigabytes * GIGABYTE);
    let estimate = prop_oneof![3 => 0i64..=5, 3 => 6i64..=50, 3 => 51i64..=200, 2 => 201i64..=402];
    let run = prop_oneof![3 => 0i64..=20, 2 => 0i64..=120, 1 => 0i64..=410];
    let user = prop::option::of(1u32..4);
    (0i64..300, procs, memory, estimate, run, user).prop_map(
        |(submit, procs, memory, estimate, run, user)| {
            let demand = Resources::cpus(procs).with(Kind::Memory, memory);
            let request = Request::new(0, Time::ZERO + hours(submit), hours(estimate), demand);
            Job::new(Request { user, ..request }, hours(run))
        },
    )
}

pub(crate) fn jobs(how_many: Range<usize>) -> impl Strategy<Value = Vec<Job>> {
    prop::collection::vec(job(), how_many).prop_map(|mut jobs| {
        for (number, job) in (1..).zip(&mut jobs) {
            job.request.number = number;
        }
        jobs
    })
}

pub(crate) fn settings() -> impl Strategy<Value = NaiveLsf> {
    let limit = || prop::option::of(1usize..4);
    (limit(), limit(), limit(), prop::bool::weighted(0.8)).prop_map(
        |(user_limit, mt_limit, lt_limit, reserve)| NaiveLsf { user_limit, mt_limit, lt_limit, reserve },
    )
}

pub(crate) fn written(settings: NaiveLsf) -> String {
    let user = settings.user_limit.unwrap_or_default();
    format!("lsf(user_limit={user}, reserve={})", settings.reserve)
}

/// The machine with the classes of the paper and these limits. A host that is not in Table 2 runs every
/// size, without limits.
pub(crate) fn in_classes(machine: Machine, settings: NaiveLsf) -> Machine {
    let size =
        |size: Size| SizeClass { name: size.name().into(), procs: size.procs(), memory: size.memory() };
    let count = |limit: Option<usize>| limit.map(|limit| u32::try_from(limit).unwrap());
    let length = |length: Length| LengthClass {
        name: length.name().into(),
        time: length.limit(),
        reserve_wait: Some(length.reserve_wait()),
        most: match length {
            Length::VeryShort | Length::Short => None,
            Length::Medium => count(settings.mt_limit),
            Length::Long => count(settings.lt_limit),
        },
        first: length == Length::VeryShort,
    };
    let order = |host: &str| match host {
        "eir" => vec![(Size::Large, Some(3)), (Size::Medium, Some(4)), (Size::Small, None)],
        "hod1" => vec![(Size::Large, Some(6)), (Size::Medium, Some(2)), (Size::Small, None)],
        "mimir" => vec![(Size::Small, None)],
        "modi2" => vec![(Size::Medium, None)],
        _ => vec![(Size::Large, None), (Size::Medium, None), (Size::Small, None)],
    };
    let turns = |host: &Host| {
        let turn = |(size, most)| SizeTurn { size: size as usize, most };
        (host.name.clone(), order(&host.name).into_iter().map(turn).collect())
    };
    let classes = JobClasses {
        name: "Table 1".into(),
        sizes: Size::ALL.map(size).into(),
        lengths: Length::ALL.map(length).into(),
        hosts: machine.hosts().iter().map(turns).collect(),
    };
    machine.with_classes(Some(Arc::new(classes)))
}

/// The settings of the paper.
pub(crate) const PAPER: NaiveLsf =
    NaiveLsf { user_limit: None, mt_limit: Some(48), lt_limit: Some(20), reserve: true };

fn hours(count: i64) -> Span {
    Span::from_secs(count * 3600).unwrap()
}

fn class(job: &Finished) -> Class {
    Class::for_request(job.request.procs(), job.request.demand.get(Kind::Memory), job.request.estimate)
        .unwrap()
}

/// The host whose processors the job had.
fn host(machine: &Machine, job: &Finished) -> usize {
    let first = u64::from(job.pes.as_ref().unwrap().ranges()[0].0);
    let mut end = 0;
    let its = machine.hosts().iter().position(|host| {
        end += host.capacity.cpus_count().get();
        first < end
    });
    its.unwrap()
}

proptest! {
    #[test]
    fn the_same_start_on_the_same_host(
        machine in machine(), jobs in jobs(1..50), settings in settings(),
    ) {
        let machine = in_classes(machine, settings);
        let naive: Vec<NaiveJob> =
            jobs.iter().map(|job| NaiveJob { request: job.request.clone(), runtime: job.runtime }).collect();
        for instants in BOTH {
            let schedule = run_on(&machine, &jobs, &written(settings), instants);
            let theirs = lsf_schedule(&machine, &naive, settings, instants);
            let started = (1..).zip(theirs).filter_map(|(number, start)| Some((number, start?)));
            let ours = schedule.0.iter().map(|job| (job.request.number, (job.start, host(&machine, job))));
            prop_assert_eq!(ours.collect::<Vec<_>>(), started.collect::<Vec<_>>(), "{}", instants);
        }
    }

    #[test]
    fn a_rebuilt_policy_goes_on_the_same(
        machine in machine(), jobs in jobs(1..50), settings in settings(),
        replace in prop::collection::vec(any::<bool>(), 1..20),
    ) {
        let machine = in_classes(machine, settings);
        for instants in BOTH {
            let policy = written(settings);
            let kept = run_on(&machine, &jobs, &policy, instants).decisions();
            let rebuilt = run_replacing(&machine, &jobs, &policy, instants, &replace).decisions();
            prop_assert_eq!(kept, rebuilt, "{}, {}", policy, instants);
        }
    }

    #[test]
    fn no_limit_is_ever_exceeded(machine in machine(), jobs in jobs(20..80), settings in settings()) {
        let machine = in_classes(machine, settings);
        let schedule = run_on(&machine, &jobs, &written(settings), EventOrder::Batched);
        for now in schedule.0.iter().map(|job| job.start) {
            let executing = schedule.0.iter().filter(|job| job.start <= now && now < job.end);
            let executing: Vec<&Finished> = executing.collect();
            let of_length = |length| executing.iter().filter(|job| class(job).length == length).count();
            prop_assert!(settings.mt_limit.is_none_or(|most| of_length(Length::Medium) <= most));
            prop_assert!(settings.lt_limit.is_none_or(|most| of_length(Length::Long) <= most));
            for user in 1..4 {
                let of_user = executing.iter().filter(|job| job.request.user == Some(user)).count();
                prop_assert!(settings.user_limit.is_none_or(|most| of_user <= most));
            }
            for (place, name) in machine.hosts().iter().enumerate().map(|(place, host)| (place, &*host.name)) {
                let here = executing.iter().filter(|job| host(&machine, job) == place);
                let sizes: Vec<Size> = here.map(|job| class(job).size).collect();
                let [small, medium, large] =
                    Size::ALL.map(|size| sizes.iter().filter(|other| **other == size).count());
                prop_assert!(name != "eir" || (large <= 3 && medium <= 4));
                prop_assert!(name != "hod1" || (large <= 6 && medium <= 2));
                prop_assert!(name != "mimir" || (large == 0 && medium == 0));
                prop_assert!(name != "modi2" || (large == 0 && small == 0));
            }
        }
    }

    #[test]
    fn refused_are_those_that_no_host_runs_and_no_others(machine in machine(), jobs in jobs(1..50)) {
        let machine = in_classes(machine, PAPER);
        let schedule = run_on(&machine, &jobs, "lsf", EventOrder::Batched);
        let runs = |host: &Host, size| match &*host.name {
            "mimir" => size == Size::Small,
            "modi2" => size == Size::Medium,
            _ => true,
        };
        for Job { request, .. } in &jobs {
            let class = Class::for_request(request.procs(), request.demand.get(Kind::Memory), request.estimate);
            let demand = machine.amount(request);
            let mut hosts = machine.hosts().iter().filter(|host| demand.fits_in(&host.capacity));
            let could = class.is_some_and(|class| hosts.any(|host| runs(host, class.size)));
            let has_run = schedule.0.iter().any(|job| job.request.number == request.number);
            prop_assert_eq!(has_run, could, "job {}", request.number);
        }
    }
}
