//! Groups against a reference implementation.

use miserly_core::{Kind, Request, Resources, Span, StartReason, Time};
use proptest::prelude::*;

use super::super::distribution::Distribution;
use super::*;
use crate::{Label, LabelValue, LoggedStatus};

/// Submission, wait, runtime, processors, user.
type Drawn = (i64, i64, i64, u64, Option<u32>);

fn job(&(submit, wait, run, procs, user): &Drawn) -> Finished {
    let ticks = Span::from_ticks;
    let submit = Time::ZERO + ticks(submit);
    let start = submit + ticks(wait);
    let demand = Resources::cpus(procs).with(Kind::Memory, memory(procs));
    let mut request = Request::new(1, submit, ticks(estimate(run, user)), demand);
    (request.user, request.queue) = (user, user.map(|user| user % 2));
    Finished {
        admission: 0,
        request,
        runtime: ticks(run),
        killed: false,
        status: status(procs),
        labels: labels(user),
        start,
        end: start + ticks(run),
        reason: Some(StartReason::Reserved),
        promised: None,
        reserved: None,
        broken: false,
        pes: None,
        allocations: vec![],
        interruptions: crate::Interruptions::default(),
        lost: 0,
        opportunistic: None,
        slices: None,
    }
}

/// Returns a name for each user, and GPUs whose texts have another order than their numbers.
fn labels(user: Option<u32>) -> Vec<(Label, LabelValue)> {
    let name = user.map(|user| (Label::Name, LabelValue::new(0, &format!("job of {user}"))));
    let gpus = user.map(|user| (Label::Gpus, LabelValue::new(user.into(), &(7 * user).to_string())));
    name.into_iter().chain(gpus).collect()
}

fn status(procs: u64) -> LoggedStatus {
    match procs % 4 {
        0 => LoggedStatus::Completed,
        1 => LoggedStatus::Failed,
        2 => LoggedStatus::Cancelled,
        _ => LoggedStatus::Unknown,
    }
}

/// Returns an estimate that is exact, or just good, or just bad.
fn estimate(run: i64, user: Option<u32>) -> i64 {
    match user {
        Some(3) => 2 * run,
        Some(4) => 2 * run + 1,
        _ => run,
    }
}

/// Returns a memory in kB that exceeds that of the size class for some numbers of processors only.
fn memory(procs: u64) -> u64 {
    ((procs % 7) * (procs % 5)) << 20
}

/// Runtimes of every length, from none to some hundred hours.
fn drawn() -> impl Strategy<Value = Vec<Drawn>> {
    let run = (0..40u32, 0..1_000_000i64).prop_map(|(bits, noise)| (1i64 << bits) - 1 + noise);
    let user = proptest::option::of(0..5u32);
    prop::collection::vec((0..1_000_000i64, 0..9_000_000_000i64, run, 1..70u64, user), 0..120)
}

fn grouped(by: Grouping, exact_most: u64, jobs: &[Drawn]) -> Groups {
    let mut groups = Groups::within(by, exact_most);
    for (place, drawn) in (0..).zip(jobs) {
        groups.add(&job(drawn), place);
    }
    groups
}

/// Returns all published figures of the groups.
fn figures(groups: &mut Groups) -> Vec<String> {
    let figures = |(key, group): (&GroupKey, &mut Group)| {
        let (jobs, work, exact) = (group.jobs(), group.work(), group.measures.wait.is_exact());
        format!("{key}: {jobs} {work} {exact} {:?}", group.measures.all_mut().map(Distribution::summary))
    };
    groups.iter_mut().map(figures).collect()
}

/// Returns the group of a job, derived again from the paper's limits and by doubling seconds.
fn naive_name(by: Grouping, job: &Drawn) -> String {
    let &(_, _, run, procs, user) = job;
    let seconds = run as f64 / 1e6;
    let or_unknown = |number: Option<u32>| number.map_or("unknown".into(), |number| number.to_string());
    match by {
        Grouping::User => or_unknown(user),
        Grouping::Queue => or_unknown(user.map(|user| user % 2)),
        Grouping::Label(Label::Gpus) => or_unknown(user.map(|user| 7 * user)),
        Grouping::Label(Label::Name) => user.map_or("unknown".into(), |user| format!("job of {user}")),
        Grouping::Label(_) => "unknown".into(),
        Grouping::Category => {
            let lengths = [(600.0, "0-10min"), (3600.0, "10min-1h"), (28800.0, "1h-8h"), (f64::MAX, ">8h")];
            let widths = [(1, "1p"), (8, "2-8p"), (32, "9-32p"), (u64::MAX, ">32p")];
            let length = lengths.iter().find(|(most, _)| seconds <= *most).unwrap().1;
            let width = widths.iter().find(|(most, _)| procs <= *most).unwrap().1;
            format!("{length} {width}")
        }
        Grouping::Estimate => if user == Some(4) { "badly" } else { "well" }.into(),
        Grouping::EstimateCategory => {
            let by = |by| naive_name(by, job);
            format!("{} {}", by(Grouping::Estimate), by(Grouping::Category))
        }
        Grouping::Status => match procs % 4 {
            0 => "completed".into(),
            1 => "failed".into(),
            2 => "cancelled".into(),
            _ => "unknown".into(),
        },
        Grouping::LsfClass => {
            let seconds = estimate(run, user) as f64 / 1e6;
            // Memory is drawn with the processors.
            let lengths = [(5.0, "vst"), (50.0, "st"), (200.0, "mt"), (400.0, "lt")];
            let sizes = [(8, 2, "sj"), (16, 4, "mj"), (64, 16, "lj")];
            let length = lengths.iter().find(|(most, _)| seconds / 3600.0 <= *most);
            let size =
                sizes.iter().find(|(most, gigabytes, _)| procs <= *most && memory(procs) <= gigabytes << 20);
            length.zip(size).map_or("beyond".into(), |(length, size)| format!("{}-{}", length.1, size.2))
        }
        Grouping::RuntimeBin => {
            let mut range = (0u64, 1u64);
            while seconds >= range.1 as f64 {
                range = (range.1, 2 * range.1);
            }
            format!("{}-{}s", range.0, range.1)
        }
        Grouping::Own(_) => {
            let width = if procs == 1 {
                "1p"
            } else if procs <= 8 {
                "2-8p"
            } else {
                ">8p"
            };
            let length = if seconds <= 600.0 { "0-10m" } else { ">10m" };
            format!("{width} {length}")
        }
    }
}

fn grouping() -> impl Strategy<Value = Grouping> {
    let own = "procs:1,8+runtime:10min".parse().unwrap();
    prop::sample::select([&Grouping::ALL[..], &[own]].concat())
}

proptest! {
    #[test]
    fn each_group_is_what_its_jobs_alone_come_to(by in grouping(), jobs in drawn()) {
        let mut groups = grouped(by, 1000, &jobs);
        let mut found = 0;
        for (key, group) in groups.iter_mut() {
            let name = key.to_string();
            let of_group: Vec<&Drawn> = jobs.iter().filter(|job| naive_name(by, job) == name).collect();
            let mut waits: Vec<f64> = of_group.iter().map(|job| job.1 as f64 / 1e6).collect();
            waits.sort_by(f64::total_cmp);
            let summary = group.measures.wait.summary();
            prop_assert_eq!(group.jobs(), waits.len() as u64, "{}", name);
            // The nearest rank of the half is the lower of the two in the middle.
            prop_assert_eq!(summary.median, waits.get((waits.len().max(1) - 1) / 2).copied());
            if let Some(mean) = summary.mean {
                let naive = waits.iter().sum::<f64>() / waits.len() as f64;
                prop_assert!((mean - naive).abs() <= 1e-9 * naive.max(1.0), "{}: {} for {}", name, mean, naive);
            }
            let work: i64 = of_group.iter().map(|job| job.2 * job.3.cast_signed()).sum();
            prop_assert_eq!(group.work, u128::try_from(work).unwrap());
            found += waits.len();
        }
        prop_assert_eq!(found, jobs.len());
    }

    #[test]
    fn the_order_of_the_jobs_does_not_show(by in grouping(), jobs in drawn(), most in 0..150u64) {
        let backwards: Vec<Drawn> = jobs.iter().rev().copied().collect();
        let forwards = figures(&mut grouped(by, most, &jobs));
        prop_assert_eq!(figures(&mut grouped(by, most, &backwards)), forwards);
    }
}

#[test]
fn beyond_its_limit_a_grouping_holds_no_values() {
    let jobs: Vec<Drawn> =
        (0..100u32).map(|n| (n.into(), (7 * n).into(), 1 << (n % 30), 1, Some(n % 9))).collect();
    let exact = |most| -> Vec<bool> {
        let mut groups = grouped(Grouping::User, most, &jobs);
        groups
            .iter_mut()
            .map(|(_, group)| group.measures.all().iter().all(|measure| measure.is_exact()))
            .collect()
    };
    assert_eq!(exact(100), [true; 9]);
    assert_eq!(exact(99), [false; 9]);
    assert_eq!(exact(3), [false; 9], "those met beyond the limit too");
}

#[test]
fn every_category_is_shown() {
    assert_eq!(Groups::new(Grouping::Category).iter_mut().count(), 16);
    assert_eq!(Groups::new(Grouping::RuntimeBin).iter_mut().count(), 0);
}

#[test]
fn numbers_of_labels_are_in_their_order() {
    let jobs: Vec<Drawn> = [3, 0, 2].iter().map(|user| (0, 0, 1, 1, Some(*user))).collect();
    let mut groups = grouped(Grouping::Label(Label::Gpus), 9, &[&jobs[..], &[(0, 0, 1, 1, None)]].concat());
    let names: Vec<String> = groups.iter_mut().map(|(key, _)| key.to_string()).collect();
    assert_eq!(names, ["0", "14", "21", "unknown"]);
}
