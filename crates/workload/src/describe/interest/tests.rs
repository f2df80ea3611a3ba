use proptest::prelude::*;

use super::*;

fn sizes(jobs: &[(u64, u64)]) -> Vec<OfSize> {
    let of = |&(procs, jobs)| OfSize {
        procs: Procs::new(procs),
        jobs,
        timed: jobs,
        seconds: 10 * u128::from(jobs),
    };
    jobs.iter().map(of).collect()
}

#[track_caller]
fn judged(jobs: &[(u64, u64)], machine: Option<u64>, interest: Interest) -> Interesting {
    let all = interesting(&sizes(jobs), machine.map(Procs::new));
    *all.iter().find(|of| of.interest == interest).unwrap()
}

#[test]
fn which_sizes_are_of_which_kind() {
    let of = |interest: Interest| -> Vec<u64> {
        (0..=40).filter(|&size| interest.has_number(size, Some(36))).collect()
    };
    assert_eq!(of(Interest::PowerOfTwo), [2, 4, 8, 16, 32]);
    assert_eq!(of(Interest::Square), [4, 9, 16, 25, 36]);
    assert_eq!(of(Interest::MultipleOfTen), [10, 20, 30, 40]);
    assert_eq!(of(Interest::FullMachine), [36]);
    assert_eq!(of(Interest::PlusOne), [5, 9, 10, 11, 17, 21, 26, 31, 33, 37]);
}

#[test]
fn all_sizes_alike_are_no_kind() {
    let alike: Vec<_> = (1..=128).map(|size| (size, 7)).collect();
    for of in interesting(&sizes(&alike), Some(Procs::new(128))) {
        assert!((of.all.ratio().unwrap() - 1.0).abs() < 1e-12, "{of:?}");
        assert_eq!((of.verdict(), of.stands_alone()), (Verdict::No, true));
    }
}

#[test]
fn a_machine_of_powers_of_two_has_squares_in_brackets() {
    let powers: Vec<_> = (0..=7).map(|power| (1 << power, 100)).collect();
    let verdict = |interest| {
        let of = judged(&powers, Some(128), interest);
        (of.verdict(), of.stands_alone())
    };
    assert_eq!(verdict(Interest::PowerOfTwo), (Verdict::Yes, true));
    assert_eq!(verdict(Interest::Square), (Verdict::Yes, false));
    assert_eq!(verdict(Interest::MultipleOfTen), (Verdict::No, true));
    assert_eq!(verdict(Interest::FullMachine), (Verdict::Yes, false));
    assert_eq!(verdict(Interest::PlusOne), (Verdict::No, true));
}

#[test]
fn neighbours_are_the_nearest_two_of_no_kind() {
    // For 16: 14 and 15, 18 and 19; 17 is one more than a square.
    let jobs = [(1, 99), (14, 1), (15, 2), (16, 30), (17, 50), (18, 3), (19, 6), (22, 99)];
    let counts = SizeCounts::new(&sizes(&jobs), Some(24));
    assert!((counts.expected(16) - 3.0).abs() < 1e-12);
    // For the whole machine, those below.
    assert!((counts.expected(24) - 49.5).abs() < 1e-12);
    let plus_one = judged(&jobs, Some(24), Interest::PlusOne);
    assert_eq!(plus_one.all.jobs, Proportion { count: 50, of: 191 });
}

#[test]
fn without_a_machine_there_is_no_whole_one_and_absurd_sizes_are_no_kind() {
    let all = interesting(&sizes(&[(2, 1), (1 << 60, 1)]), None);
    assert!(all.iter().all(|of| of.interest != Interest::FullMachine));
    assert_eq!(all[0].all.jobs, Proportion { count: 1, of: 2 });
    assert!(interesting(&[], None).iter().all(|of| of.verdict() == Verdict::No));
}

proptest! {
    #[test]
    fn as_a_list_of_jobs_has_it(jobs in prop::collection::vec(1..60_u64, 0..300), machine in 2..60_u32) {
        let mut counted: Vec<(u64, u64)> = Vec::new();
        for size in 1..60 {
            let alike = jobs.iter().filter(|&&job| job == size).count() as u64;
            counted.extend((alike > 0).then_some((size, alike)));
        }
        let most = u64::from(machine);
        let kinds = |size: u64| Interest::ALL.into_iter().filter(move |kind| kind.has_number(size, Some(most)));
        let plain: Vec<u64> = (2..=most).filter(|&size| kinds(size).next().is_none()).collect();
        for of in interesting(&sizes(&counted), Some(Procs::new(machine.into()))) {
            let these: Vec<u64> = (2..=most).filter(|&size| of.interest.has_number(size, Some(most))).collect();
            let count = jobs.iter().filter(|job| these.contains(job)).count() as u64;
            prop_assert_eq!(of.all.jobs.count, count);
            let mut expected = 0.0;
            for size in these {
                let at = plain.partition_point(|&other| other < size);
                let near = &plain[at.saturating_sub(2)..(at + 2).min(plain.len())];
                let beside = jobs.iter().filter(|job| near.contains(job)).count();
                expected += beside as f64 / near.len().max(1) as f64;
            }
            prop_assert!((of.all.expected - expected).abs() < 1e-9);
        }
    }
}
