//! Effects of slices and shifted submissions on a log.

use miserly_core::{Procs, Time};
use miserly_workload::{ArrivalScaling, Job, JobOptions, Jobs, Trace};
use proptest::prelude::*;

/// A job of a log: (submission, user, queue).
type Line = (i64, i64, i64);

fn lines() -> impl Strategy<Value = Vec<Line>> {
    prop::collection::vec((0..2_000_i64, -1..4_i64, -1..3_i64), 1..60)
}

/// Returns the log, in order of submission or in order of the lines.
fn log(lines: &[Line]) -> Trace {
    let job = |(number, (submit, user, queue)): (usize, &Line)| {
        format!("{number} {submit} -1 {number} 1 -1 -1 1 {number} -1 1 {user} -1 -1 {queue} -1 -1 -1\n")
    };
    let text: String = lines.iter().enumerate().map(job).collect();
    Trace::memory("made up", text.into())
}

fn jobs(trace: &Trace, options: JobOptions) -> Vec<Job> {
    let survey = trace.survey().expect("a log that can be read");
    let options = JobOptions { procs: Procs::new(4), ..options };
    Jobs::new(trace, survey.in_order, options)
        .expect("a log that can be opened")
        .collect::<Result<_, _>>()
        .expect("jobs that can be read")
}

fn numbers_and_submissions(jobs: &[Job]) -> Vec<(i64, Time)> {
    jobs.iter().map(|job| (job.request.number, job.request.submit)).collect()
}

fn numbers(jobs: &[Job]) -> Vec<i64> {
    jobs.iter().map(|job| job.request.number).collect()
}

fn scaled(factor: &str) -> JobOptions {
    JobOptions {
        arrivals: ArrivalScaling::Scaled(factor.parse().expect("a factor")),
        ..JobOptions::default()
    }
}

proptest! {
    #[test]
    fn a_load_of_one_moves_nothing(lines in lines()) {
        let trace = log(&lines);
        prop_assert_eq!(numbers_and_submissions(&jobs(&trace, scaled("1"))), numbers_and_submissions(&jobs(&trace, JobOptions::default())));
    }

    #[test]
    fn another_load_keeps_the_order_and_divides_the_gaps(lines in lines(), hundredths in 1..1_000_i64) {
        let trace = log(&lines);
        let factor = format!("{}.{:02}", hundredths / 100, hundredths % 100);
        let (before, after) = (jobs(&trace, JobOptions::default()), jobs(&trace, scaled(&factor)));
        prop_assert_eq!(numbers(&before), numbers(&after));
        prop_assert!(after.is_sorted_by_key(|job| job.request.submit));
        let first = before[0].request.submit;
        for (before, after) in before.iter().zip(&after) {
            let (gap, scaled) = (before.request.submit - first, after.request.submit - first);
            // Rounded down to a tick.
            let (wide, least) = (gap.ticks() * 100, scaled.ticks() * hundredths);
            prop_assert!(least <= wide && wide < least + hundredths, "{gap:?} became {scaled:?}");
        }
    }

    #[test]
    fn off_line_is_a_log_without_submit_times(mut lines in lines()) {
        lines.sort_unstable();
        let offline = JobOptions { arrivals: ArrivalScaling::Offline, ..JobOptions::default() };
        let made = jobs(&log(&lines), offline);
        for line in &mut lines {
            line.0 = 0;
        }
        prop_assert_eq!(numbers_and_submissions(&made), numbers_and_submissions(&jobs(&log(&lines), JobOptions::default())));
    }

    #[test]
    fn a_shake_moves_each_job_a_little(lines in lines(), shake in 1..100_u32, seed in 0..9_u64) {
        let trace = log(&lines);
        let shaken = jobs(&trace, JobOptions { shake, seed, ..JobOptions::default() });
        prop_assert!(shaken.is_sorted_by_key(|job| job.request.submit));
        let mut made = numbers(&shaken);
        made.sort_unstable();
        prop_assert_eq!(made, (0..i64::try_from(lines.len()).unwrap()).collect::<Vec<_>>());
        for job in &shaken {
            let logged = lines[usize::try_from(job.request.number).unwrap()].0;
            let moved = job.request.submit.secs() - logged;
            prop_assert!(moved.abs() <= shake.into(), "{logged} moved by {moved}");
        }
    }

    /// Each slice uses the log's own fields, so their combination keeps the intersection.
    #[test]
    fn slices_compose(lines in lines(), from in 0..2_000_i64, to in 0..2_000_i64, user in 0..4_u32, queue in 0..3_u32) {
        let options = JobOptions {
            from: Some(from),
            to: Some(to),
            users: vec![user, 9],
            queues: vec![queue],
            arrivals: ArrivalScaling::Scaled("3".parse().unwrap()),
            ..JobOptions::default()
        };
        let mut expected: Vec<_> = lines.iter().enumerate().map(|(number, &line)| (number, line)).collect();
        expected.retain(|&(_, (submit, of, to_queue))| {
            (from..to).contains(&submit) && of == i64::from(user) && to_queue == i64::from(queue)
        });
        expected.sort_by_key(|&(_, (submit, ..))| submit);
        let expected: Vec<_> = expected.iter().map(|&(number, _)| i64::try_from(number).unwrap()).collect();
        let made = jobs(&log(&lines), options);
        prop_assert_eq!(numbers(&made), expected);
        // The first remaining job keeps its submission.
        if let Some(first) = made.first() {
            let at = usize::try_from(first.request.number).unwrap();
            prop_assert_eq!(first.request.submit.secs(), lines[at].0);
        }
    }
}
