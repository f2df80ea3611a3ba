//! Two jobs that want the whole machine (the slides' worked cases).

use miserly_core::EventOrder;
use miserly_sim::Finished;

use crate::support::{BOTH, Quad, jobs, run};

fn play(quads: &[Quad], policy: &str, instants: EventOrder) -> Vec<Finished> {
    run(8, &jobs(quads), policy, instants).0
}

/// How often two jobs of two hours that come together suspend each other.
fn suspensions(factor: &str, instants: EventOrder) -> u32 {
    let both = [(0, 7200, 8, 7200), (0, 7200, 8, 7200)];
    let jobs = play(&both, &format!("ss(sf={factor}, period=60s)"), instants);
    jobs.iter().map(|job| job.interruptions.count).sum()
}

/// n times, with n the least that has factor^(n+1) >= 2. The period is a 120th of the runtime: with
/// a coarser one they suspend each other too late, and so perhaps more seldom.
#[test]
fn identical_jobs_suspend_each_other_as_often_as_the_factor_says() {
    for instants in BOTH {
        for (factor, times) in
            [("2", 0), ("2.5", 0), ("1.9", 1), ("1.5", 1), ("1.4", 2), ("1.3", 2), ("1.25", 3)]
        {
            assert_eq!(suspensions(factor, instants), times, "factor {factor}, {instants}");
        }
    }
}

/// The long job has run for a time, and the short one is shorter than its remaining time.
///
/// The short one goes first, and the mean time in the system is (2 `T_s` + `T_l`) / 2. (The slides
/// print (`T_s` + `T_l`) / 2.)
#[test]
fn by_remaining_time_the_short_one_goes_first() {
    let (long, short) = (7200, 3600);
    for instants in BOTH {
        let jobs = play(&[(0, long, 8, long), (1800, short, 8, short)], "srt", instants);
        let times: Vec<i64> =
            jobs.iter().map(|job| (job.end - job.request.submit).ticks() / 1_000_000).collect();
        assert_eq!(times, [short + long, short], "{instants}");
        assert_eq!(times.iter().sum::<i64>(), 2 * short + long);
    }
}

/// The criterion is `T_s` < `T_l` - t: the remaining time of the long job. Equality is not enough.
#[test]
fn by_remaining_time_one_that_is_shorter_but_not_than_what_is_left_waits() {
    for instants in BOTH {
        for (short, suspended) in [(3599, 1), (3600, 0), (3601, 0)] {
            let jobs = play(&[(0, 7200, 8, 7200), (3600, short, 8, short)], "srt", instants);
            assert_eq!(jobs[0].interruptions.count, suspended, "{short}, {instants}");
        }
    }
}
