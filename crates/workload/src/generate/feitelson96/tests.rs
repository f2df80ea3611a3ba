use proptest::prelude::*;

use super::*;
use crate::describe::{FEW_RUNS, Interest, Verdict};
use crate::generate::log::{GeneratedJob, load};
use crate::{Description, ProcsField, describe};

fn described(model: &Feitelson96) -> Description {
    let trace = model.generate().unwrap().into_trace("made");
    describe(&trace, None, ProcsField::Allocated).unwrap()
}

fn text(model: &Feitelson96) -> Vec<u8> {
    let mut text = Vec::new();
    model.generate().unwrap().write(&mut text).unwrap();
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_log_as_it_was_ordered(
        jobs in 1000..3000_u64,
        procs in 1..600_u32,
        ordered in 0.1..1.5_f64,
        seed: u64,
        repeat_after_end: bool,
    ) {
        let model = Feitelson96 { jobs, procs, load: ordered, seed, repeat_after_end, ..Feitelson96::default() };
        let log = model.generate().unwrap();
        prop_assert_eq!(&log, &model.generate().unwrap());
        prop_assert_eq!(log.jobs.len() as u64, jobs);
        prop_assert!(log.jobs.iter().all(|job| (1..=procs).contains(&job.procs) && job.runtime >= 1));
        prop_assert!(log.jobs.is_sorted_by_key(|job| job.submit));
        prop_assert_eq!(log.jobs[0].submit, 0);
        if !repeat_after_end {
            let load = load(&log.jobs, procs).unwrap();
            prop_assert!((load / ordered - 1.0).abs() < 0.05, "{load} where {ordered} was ordered");
        }
    }

    #[test]
    fn repetitions_come_after_the_end(seed: u64) {
        let model = Feitelson96 { jobs: 2000, seed, repeat_after_end: true, ..Feitelson96::default() };
        let jobs = model.generate().unwrap().jobs;
        for job in &jobs {
            let Some(after) = job.after else { continue };
            let before = jobs[usize::try_from(after).unwrap() - 1];
            prop_assert_eq!(job.submit, before.submit + before.runtime);
            prop_assert_eq!((job.procs, job.runtime, job.user), (before.procs, before.runtime, before.user));
        }
        prop_assert!(jobs.iter().filter(|job| job.after.is_some()).count() > 200);
    }
}

#[test]
fn load_with_repetitions_after_the_end_is_near() {
    let model = Feitelson96 { repeat_after_end: true, ..Feitelson96::default() };
    let log = model.generate().unwrap();
    let load = load(&log.jobs, 128).unwrap();
    assert!((load - 0.7).abs() < 0.035, "{load}");
}

#[test]
fn same_seed_same_bytes() {
    let model = Feitelson96 { jobs: 500, ..Feitelson96::default() };
    assert_eq!(text(&model), text(&model));
    assert_ne!(text(&model), text(&Feitelson96 { seed: 2, ..model.clone() }));
}

#[test]
fn another_load_is_the_same_jobs() {
    let model = Feitelson96 { jobs: 500, ..Feitelson96::default() };
    let jobs = |load| {
        let jobs = Feitelson96 { load, ..model.clone() }.generate().unwrap().jobs;
        jobs.iter().map(|job| (job.procs, job.runtime, job.user)).collect::<Vec<_>>()
    };
    assert_eq!(jobs(0.3), jobs(0.9));
}

#[test]
fn runs_are_alike_and_next_to_each_other() {
    let jobs = Feitelson96::default().generate().unwrap().jobs;
    let alike = jobs.windows(2).filter(|pair| {
        (pair[0].procs, pair[0].runtime, pair[0].user) == (pair[1].procs, pair[1].runtime, pair[1].user)
    });
    // A run has zeta(1.5) / zeta(2.5) = 1.95 jobs on average, if none is cut off: 49 % are
    // repetitions.
    let share = alike.count() as f64 / jobs.len() as f64;
    assert!((0.40..0.52).contains(&share), "{share}");
}

#[test]
fn the_log_tells_how_to_make_it_again() {
    let text = String::from_utf8(text(&Feitelson96 { jobs: 2, ..Feitelson96::default() })).unwrap();
    for comment in
        ["; MaxJobs: 2\n", "; MaxProcs: 128\n", "; UnixStartTime: 0\n", "; Note: parameter seed=1\n"]
    {
        assert!(text.contains(comment), "{comment} is missing in {text}");
    }
    let jobs: Vec<_> = text.lines().filter(|line| !line.starts_with(';')).collect();
    assert_eq!(jobs.len(), 2);
    assert!(jobs[0].starts_with("1 0 -1 "), "{}", jobs[0]);
}

#[test]
fn run_lengths_are_found_again_with_their_order() {
    for (seed, run_order) in [(1, 2.5), (2, 2.5), (3, 2.0), (4, 3.0)] {
        let model = Feitelson96 { jobs: 50_000, seed, run_order, ..Feitelson96::default() };
        let runs = described(&model).run_lengths;
        assert!(runs.by_executable);
        let order = runs.all.order(FEW_RUNS).unwrap();
        assert!((order - run_order).abs() < 0.2, "{order} where {run_order} was set");
        // Each run remains one, regardless of jobs in between and of the user's next job.
        let drawn = model.generate().unwrap().jobs;
        let longest = drawn.chunk_by(|a, b| a.executable == b.executable).map(<[_]>::len).max();
        assert_eq!(runs.all.longest(), longest.map(|longest| longest as u64));
    }
}

#[test]
fn the_shape_of_figure_7() {
    let log = described(&Feitelson96 { jobs: 50_000, ..Feitelson96::default() });
    let verdict =
        |interest| log.sizes.interesting.iter().find(|of| of.interest == interest).unwrap().verdict();
    assert_eq!(verdict(Interest::PowerOfTwo), Verdict::Yes);
    assert!(verdict(Interest::MultipleOfTen) >= Verdict::Some);
    let buckets = &log.runtimes.buckets;
    assert!(buckets[9].mean_runtime > buckets[0].mean_runtime, "{buckets:?}");
    // Small sizes are commoner than large ones.
    let jobs = |from, to| -> u64 {
        log.sizes.by_size.iter().filter(|of| (from..=to).contains(&of.procs.get())).map(|of| of.jobs).sum()
    };
    assert!(jobs(1, 8) > 3 * jobs(9, 128), "{} and {}", jobs(1, 8), jobs(9, 128));
}

#[test]
fn repeated_after_the_end_every_job_is_in_one_run() {
    // Runs of one user overlap and cut each other; no job is lost or counted twice.
    let model = Feitelson96 { jobs: 5000, repeat_after_end: true, ..Feitelson96::default() };
    assert_eq!(described(&model).run_lengths.all.jobs(), 5000);
}

#[test]
fn parameters_that_make_no_sense() {
    #[track_caller]
    fn check(model: &Feitelson96, expect: &str) {
        assert_eq!(model.validate().unwrap_err().to_string(), expect);
        assert!(model.generate().is_err());
    }
    let sound = Feitelson96::default();
    sound.validate().unwrap();
    check(
        &Feitelson96 { jobs: 0, ..sound.clone() },
        "feitelson96: jobs is 0; it must be between 1 and 100000000",
    );
    check(
        &Feitelson96 { procs: 0, ..sound.clone() },
        "feitelson96: procs is 0; it must be between 1 and 10000000",
    );
    check(
        &Feitelson96 { load: f64::INFINITY, ..sound.clone() },
        "feitelson96: load is inf; it must be above 0, and finite",
    );
    check(
        &Feitelson96 { long_slope: 0.96, ..sound.clone() },
        "feitelson96: long_slope is 0.96; it must be between 0 and 1 once long_base is added",
    );
    let error = Feitelson96 { load: 1e-9, ..sound }.generate().unwrap_err();
    assert!(matches!(error, GenerateError::TooLong { .. }), "{error}");
}

#[test]
fn few_jobs_may_be_one_run() {
    for seed in 0..100 {
        let model = Feitelson96 { jobs: 2, procs: 1, seed, repeat_after_end: true, ..Feitelson96::default() };
        assert_eq!(model.generate().unwrap().jobs.len(), 2);
    }
}

#[test]
fn one_job_has_no_load() {
    for repeat_after_end in [false, true] {
        let log = Feitelson96 { jobs: 1, repeat_after_end, ..Feitelson96::default() }.generate().unwrap();
        assert_eq!(log.jobs.len(), 1);
        assert!(log.comments.last().unwrap().contains("undefined"));
    }
}

#[test]
fn arrays_are_submitted_at_one_instant() {
    let model = Feitelson96 { jobs: 20_000, array_chance: 0.1, array_max: 300, ..Feitelson96::default() };
    let log = model.generate().unwrap();
    let arrays = |least: usize| {
        let same = |a: &GeneratedJob, b: &GeneratedJob| (a.executable, a.submit) == (b.executable, b.submit);
        log.jobs.chunk_by(same).filter(|array| array.len() >= least).count()
    };
    // A quarter of a log scale is above 300^(3/4) = 72.
    let (all, longer) = (arrays(10), arrays(72));
    assert!(all > 50 && longer * 5 > all, "{all} arrays of 10 or more, {longer} of 72 or more");
    assert!(arrays(301) == 0, "no array is longer than the longest");
    let load = load(&log.jobs, model.procs).unwrap();
    assert!((load / model.load - 1.0).abs() < 0.05, "{load}");
}

#[test]
fn jobs_of_a_run_have_one_estimate() {
    let model = Feitelson96 { estimate_max: 5.0, ..Feitelson96::default() };
    let exact = Feitelson96 { estimate_max: 1.0, ..model.clone() };
    let (log, exact) = (model.generate().unwrap().jobs, exact.generate().unwrap().jobs);
    let ratio = |job: &GeneratedJob| job.estimate as f64 / job.runtime as f64;
    let mean = log.iter().map(ratio).sum::<f64>() / log.len() as f64;
    assert!((2.8..3.2).contains(&mean), "{mean}");
    assert!(log.iter().all(|job| (job.runtime..=5 * job.runtime).contains(&job.estimate)));
    let pairs = || log.windows(2).filter(|pair| pair[0].executable == pair[1].executable);
    assert!(pairs().count() > 1000 && pairs().all(|pair| pair[0].estimate == pair[1].estimate));
    // The rest of the log is the same.
    let other = log.iter().map(|job| GeneratedJob { estimate: job.runtime, ..*job });
    assert!(other.eq(exact));
}

#[test]
fn a_header_without_arrays_does_not_name_them() {
    let names = |model: Feitelson96| model.parameters().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let plain = names(Feitelson96::default());
    assert_eq!(plain.last(), Some(&"repeat_after_end"));
    let arrays = names(Feitelson96 { array_chance: 0.5, ..Feitelson96::default() });
    assert_eq!(arrays[plain.len()..], ["array_chance", "array_max"]);
}
