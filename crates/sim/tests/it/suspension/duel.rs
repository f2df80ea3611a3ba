//! Two jobs that want the whole machine (the slides' worked cases).

use miserly_core::EventOrder;
use miserly_sim::Finished;

use crate::support::{BOTH, Quad, jobs, run};

fn play(quads: &[Quad], policy: &str, instants: EventOrder) -> Vec<Finished> {
    run(8, &jobs(quads), policy, instants).0
}

/// How often two identical jobs of this many seconds that come together suspend each other.
fn suspensions(runtime: i64, policy: &str, instants: EventOrder) -> u32 {
    let both = [(0, runtime, 8, runtime); 2];
    play(&both, policy, instants).iter().map(|job| job.interruptions.count).sum()
}

/// n times, with n the least that has factor^(n+1) >= 2. The period is a 120th of the runtime: with
/// a coarser one they suspend each other too late, and so perhaps more seldom.
#[test]
fn identical_jobs_suspend_each_other_as_often_as_the_factor_says() {
    for instants in BOTH {
        for (factor, times) in
            [("2", 0), ("2.5", 0), ("1.9", 1), ("1.5", 1), ("1.4", 2), ("1.3", 2), ("1.25", 3)]
        {
            let policy = format!("ss(sf={factor}, period=60s)");
            assert_eq!(suspensions(7200, &policy, instants), times, "factor {factor}, {instants}");
        }
    }
}

/// The slides' bound: with s = 2^(1/(n+1)), two identical jobs suspend each other at most n times.
///
/// With a period of a second it is n times for all n here. With the default period of a minute,
/// suspensions of jobs of an hour come later, so from n = 11 on there are fewer.
#[test]
fn the_slides_bound_the_suspensions_by_the_factor() {
    for instants in BOTH {
        let all = |period: &str| -> Vec<u32> {
            let factor = |n: u32| (2f64.powf(1.0 / f64::from(n + 1)) * 1e6).ceil() / 1e6;
            let policy = |n| format!("ss(sf={:.6}{period})", factor(n));
            (0..20).map(|n| suspensions(3600, &policy(n), instants)).collect()
        };
        assert_eq!(all(", period=1s"), (0..20).collect::<Vec<u32>>(), "{instants}");
        let by_default = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 11, 12, 13, 14, 15, 15, 16, 16];
        assert_eq!(all(""), by_default, "{instants}");
    }
}

/// The period matters most for a factor just below that of fewer suspensions: these permit 1, 2 and
/// 7.
#[test]
fn the_default_period_omits_a_suspension_just_before_an_end() {
    for instants in BOTH {
        for (factor, often, by_default) in [("1.99", 1, 0), ("1.41", 2, 1), ("1.1", 7, 6)] {
            let times = |period: &str| suspensions(3600, &format!("ss(sf={factor}{period})"), instants);
            assert_eq!((times(", period=1s"), times("")), (often, by_default), "{factor}, {instants}");
        }
    }
}

/// With a factor of one, a job suspends the other as soon as its xfactor is larger: not at the
/// multiple of the period at which the two are equal, but at the next one.
#[test]
fn with_a_factor_of_one_the_jobs_take_turns_of_two_periods() {
    for instants in BOTH {
        assert_eq!(suspensions(3600, "ss(sf=1)", instants), 59, "{instants}");
        assert_eq!(suspensions(3600, "ss(sf=1, period=1s)", instants), 3599, "{instants}");
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
