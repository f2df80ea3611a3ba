use std::sync::OnceLock;

use miserly_core::Span;

use super::*;
use crate::describe::{ClassRow, MonthStudy, Proportion};
use crate::o2k::{Period, WeekSlot};
use crate::{ProcsField, describe};

const SEEDS: [u64; 3] = [1, 2, 3];

/// A log and its description.
struct Case {
    model: O2k,
    log: GeneratedLog,
    study: MonthStudy,
}

/// Returns every month with every seed.
fn cases() -> &'static [Case] {
    static CASES: OnceLock<Vec<Case>> = OnceLock::new();
    CASES.get_or_init(|| {
        let case = |month, seed| {
            let model = O2k { month, seed };
            let log = model.generate().unwrap();
            let described = describe(&log.clone().into_trace("o2k"), None, ProcsField::Allocated).unwrap();
            Case { model, log, study: described.month.unwrap() }
        };
        Month::ALL.into_iter().flat_map(|month| SEEDS.map(|seed| case(month, seed))).collect()
    })
}

#[test]
fn table_4_comes_out_as_it_is_printed() {
    for Case { model, study, .. } in cases() {
        assert_eq!(study.unclassed, 0);
        for ClassRow { class, ours, paper, .. } in &study.classes {
            assert_eq!(ours.jobs, u64::from(paper.jobs), "{model:?} {class}");
            // Below half a percentage point, so it rounds to the printed figure.
            assert!((ours.procs - f64::from(paper.procs)).abs() < 0.5, "{model:?} {class} {ours:?}");
            assert!((ours.memory - f64::from(paper.memory)).abs() < 0.5, "{model:?} {class} {ours:?}");
        }
        let (ours, paper) = (study.overall, study.paper);
        assert!((ours.procs - f64::from(paper.procs)).abs() < 0.5, "{model:?} {ours:?}");
        assert!((ours.memory - f64::from(paper.memory)).abs() < 0.5, "{model:?} {ours:?}");
    }
}

#[test]
fn what_section_3_says_holds() {
    for Case { model, study, .. } in cases() {
        for statement in &study.statements {
            assert_ne!(statement.holds(), Some(false), "{model:?} {statement:?}");
        }
        assert_eq!(study.statements.iter().filter(|statement| statement.holds() == Some(true)).count(), 13);
    }
}

/// Figure 1, whose numbers the text does not have: on each weekday more jobs arrive in an hour of the peak than in one
/// of the night, and all hours together have the jobs of the weekdays.
#[test]
fn figure_1_has_a_peak_and_a_night() {
    let mean = |hours: &[f64]| hours.iter().sum::<f64>() / hours.len() as f64;
    for Case { model, study, .. } in cases() {
        for day in &study.arrivals {
            assert!(mean(&day[10..18]) > 1.5 * mean(&day[..8]), "{model:?} {day:?}");
        }
        let peak: Vec<f64> = study.arrivals.iter().map(|day| mean(&day[10..18])).collect();
        let stated = study.statements.iter().find(|statement| statement.about == "arrivals at weekday, peak");
        let off = mean(&peak) - stated.unwrap().ours.unwrap();
        // The days of a week are not equally often in a month.
        assert!(off.abs() < 0.05 * mean(&peak), "{model:?} {off}");
    }
}

/// Section 3 applies to each class. In the smallest one, a share in the range may be no whole
/// number of jobs.
#[test]
fn the_shares_of_each_class_at_weekday_peak() {
    #[track_caller]
    fn check(share: Proportion, least: f64, most: f64) {
        let (count, of) = (share.count as f64, share.of as f64);
        assert!((of * least - 1.0..=of * most + 1.0).contains(&count), "{share:?}");
    }
    for row in cases().iter().flat_map(|case| &case.study.classes) {
        check(row.under_a_minute, 0.15, 0.20);
        check(row.under_a_tenth, 0.25, 0.35);
    }
}

#[test]
fn every_job_is_of_the_class_that_it_was_made_for() {
    for job in cases().iter().flat_map(|case| &case.log.jobs) {
        let (memory, procs) = (job.memory.unwrap(), u64::from(job.procs));
        let estimate = Span::from_secs(job.estimate.cast_signed()).unwrap();
        let class = Class::for_request(procs.into(), memory.requested * procs, estimate).unwrap();
        assert_eq!(job.queue, u32::try_from(class.index() + 1).ok(), "{job:?}");
        assert!((1..=job.estimate).contains(&job.runtime), "{job:?}");
        assert!((1..=memory.requested).contains(&memory.used), "{job:?}");
        assert!((1..=draft::USERS).contains(&job.user), "{job:?}");
    }
}

#[test]
fn the_warm_up_is_a_week_of_the_same_mix() {
    for Case { model, log, .. } in cases() {
        let end = WARM_UP + model.month.seconds();
        assert!(log.jobs.is_sorted_by_key(|job| job.submit) && log.jobs.last().unwrap().submit < end);
        let week = WARM_UP as f64 / model.month.seconds() as f64;
        for class in Class::ALL {
            let queue = u32::try_from(class.index() + 1).ok();
            let before = |job: &&GeneratedJob| job.queue == queue && job.submit < WARM_UP;
            let jobs = log.jobs.iter().filter(before).count() as f64;
            let expected = f64::from(model.month.demands().cell(class).jobs) * week;
            assert!((jobs - expected).abs() <= 0.5, "{model:?} {class} {jobs} {expected}");
        }
    }
}

#[test]
fn arrivals_keep_to_the_periods() {
    for Case { model, study, .. } in cases() {
        let rate = |slot: WeekSlot| {
            let day = if slot.weekend { "weekend" } else { "weekday" };
            let about = format!("arrivals at {day}, {}", slot.period.name());
            study
                .statements
                .iter()
                .find(|statement| statement.about == about)
                .and_then(|found| found.ours)
                .unwrap()
        };
        let peak = rate(WeekSlot::WEEKDAY_PEAK);
        for (period, share) in Period::ALL.into_iter().zip([1.0, 0.55, 0.25]) {
            for (weekend, of_weekday) in [(false, 1.0), (true, 0.5)] {
                // Of a Poisson process with some hundred jobs in the emptiest slot.
                let off = rate(WeekSlot { weekend, period }) / (peak * share * of_weekday);
                assert!((0.7..1.4).contains(&off), "{model:?} {weekend} {period:?} {off}");
            }
        }
    }
}

#[test]
fn the_widest_jobs_come_off_peak_in_some_months() {
    for month in Month::ALL {
        let ratio = |case: &Case| {
            let found =
                case.study.statements.iter().find(|statement| statement.about.starts_with("64 processors"));
            found.and_then(|statement| statement.ours).unwrap()
        };
        let ratios = cases().iter().filter(|case| case.model.month == month).map(ratio);
        let mean = ratios.sum::<f64>() / SEEDS.len() as f64;
        let off_peak = [Month::November, Month::January, Month::March].contains(&month);
        assert_eq!(mean > 1.5, off_peak, "{month} {mean}");
    }
}

#[test]
fn the_same_seed_and_month_make_the_same_log_and_others_others() {
    let bytes = |month, seed| {
        let mut text = Vec::new();
        O2k { month, seed }.generate().unwrap().write(&mut text).unwrap();
        text
    };
    assert_eq!(bytes(Month::March, 1), bytes(Month::March, 1));
    assert_ne!(bytes(Month::March, 1), bytes(Month::March, 2));
    assert_ne!(bytes(Month::March, 1), bytes(Month::January, 1));
}

#[test]
fn the_header_tells_machine_time_and_queues() {
    let comments = O2k { month: Month::October, seed: 1 }.generate().unwrap().comments;
    for comment in [
        "; UnixStartTime: 938149200",
        "; TimeZoneString: US/Central",
        "; MaxNodes: 8",
        "; MaxProcs: 960",
        "; MaxQueues: 12",
        "; Queue: 1 vst-sj",
        "; Queue: 12 lt-lj",
        "; Note: model o2k",
        "; Note: parameter month=1999-10",
    ] {
        assert!(comments.iter().any(|line| line == comment), "{comment} is missing in {comments:?}");
    }
}
