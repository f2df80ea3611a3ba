//! Windows against a reference implementation that looks at every second and every job.

use proptest::prelude::*;

use super::*;

/// Submission after the one before, wait, runtime, processors, estimate.
type Drawn = (i64, Option<i64>, Option<i64>, i64, Option<i64>);

/// Number, submission, wait, runtime, processors, estimate; -1 if unknown.
type Job = [i64; 6];

fn jobs(drawn: &[Drawn], first: i64) -> Vec<Job> {
    let (mut submit, mut jobs) = (first, Vec::new());
    for (number, (gap, wait, runtime, procs, estimate)) in (1..).zip(drawn) {
        submit += gap;
        let or_unknown = |value: &Option<i64>| value.unwrap_or(-1);
        jobs.push([number, submit, or_unknown(wait), or_unknown(runtime), *procs, or_unknown(estimate)]);
    }
    jobs
}

fn trace(jobs: &[Job]) -> Trace {
    let mut text =
        "; MaxProcs: 4\n; UnixStartTime: 1000000000\n; MaxJobs: 99\n; Warmup: 77\n; Extra: nodes\n"
            .to_owned();
    for [number, submit, wait, runtime, procs, estimate] in jobs {
        let tail = "-1 1 -1 -1 -1 -1 -1 1 5";
        text +=
            &format!("{number} {submit} {wait} {runtime} {procs} -1 -1 {procs} {estimate} {tail} {number}\n");
    }
    Trace::memory("log", text.into())
}

fn read(text: &[u8]) -> (Survey, Vec<Record>) {
    let trace = Trace::memory("slice", text.to_owned());
    let (mut reader, mut records) = (trace.reader().unwrap(), Vec::new());
    while let Some(record) = reader.next_job().unwrap() {
        records.push(record.clone());
    }
    (trace.survey().unwrap(), records)
}

/// Returns the jobs of the log of a window, by its second.
fn naive_slice(jobs: &[Job], begin: i64, end: i64, cold: bool) -> [Vec<Job>; 3] {
    let (mut running, mut waiting, mut later) = (vec![], vec![], vec![]);
    for &[number, submit, wait, runtime, procs, estimate] in jobs {
        let start = submit + wait;
        let is_later = submit > begin || cold && submit == begin;
        if is_later && submit < end {
            later.push([number, submit - begin, wait, runtime, procs, estimate]);
        }
        if is_later || cold || wait < 0 || runtime < 0 {
            continue;
        }
        if start > begin {
            waiting.push([number, 1, start - (begin + 1), runtime, procs, estimate]);
        } else if start + runtime > begin {
            let ran = begin - start;
            let left = if estimate > 0 { (estimate - ran).max(1) } else { estimate };
            running.push([number, 0, 0, runtime - ran, procs, left]);
        }
    }
    [running, waiting, later]
}

fn drawn() -> impl Strategy<Value = Vec<Drawn>> {
    let or_none = |most: i64| prop::option::weighted(0.9, 0..most);
    prop::collection::vec((0..20_i64, or_none(30), or_none(40), 1..5_i64, or_none(50)), 2..40)
}

fn options() -> impl Strategy<Value = SliceOptions> {
    (1..60_i64, prop::option::of(1..7_u32), 0..12_i64, any::<bool>()).prop_map(
        |(length, count, warmup, cold)| SliceOptions {
            procs: Procs::new(4),
            procs_field: ProcsField::Allocated,
            length,
            count,
            warmup,
            cold,
            lenient: false,
        },
    )
}

fn check_places(windows: &[Window], jobs: &[Job], options: &SliceOptions) {
    let (first, last) = (jobs[0][1], jobs[jobs.len() - 1][1]);
    let mut begins = vec![];
    match options.count {
        None => {
            let mut begin = first;
            while begin + options.length <= last + 1 {
                begins.push(begin);
                begin += options.length;
            }
            assert_eq!(windows.iter().map(|window| window.begin).collect::<Vec<_>>(), begins);
        }
        Some(count) => {
            assert_eq!((windows.len(), windows[0].begin), (count as usize, first));
            assert!(count == 1 || windows[windows.len() - 1].end == last + 1);
            let gaps = windows.windows(2).map(|pair| pair[1].begin - pair[0].begin);
            assert!(gaps.clone().max() <= gaps.min().map(|least| least + 1));
        }
    }
}

proptest! {
    #[test]
    fn windows_are_as_each_second_has_them(drawn in drawn(), first in 0..5_i64, options in options(), shuffle in any::<bool>()) {
        let jobs = jobs(&drawn, first);
        let mut lines = jobs.clone();
        if shuffle {
            // Jobs of one second keep their order.
            lines.sort_by_key(|job| std::cmp::Reverse(job[1] / 7));
        }
        let trace = trace(&lines);
        let survey = trace.survey().unwrap();
        let has_start = jobs.iter().any(|job| job[2] >= 0);
        let windows = match windows(&trace, &survey, &options) {
            Ok(windows) => windows,
            Err(SliceError::TooShort { .. }) => {
                prop_assert!(jobs[jobs.len() - 1][1] - first.max(jobs[0][1]) + 1 < options.length);
                return Ok(());
            }
            Err(error) => {
                let is_refused = matches!(error, SliceError::NoStarts { .. });
                prop_assert!(is_refused && !has_start && !options.cold);
                return Ok(());
            }
        };
        check_places(&windows, &jobs, &options);
        let before = if options.cold { options.warmup } else { options.warmup.max(2) };
        prop_assert_eq!(options.measured_from(), before);
        for window in &windows {
            let inside: Vec<&Job> = jobs.iter().filter(|job| (window.begin..window.end).contains(&job[1])).collect();
            prop_assert_eq!(window.jobs, inside.len() as u64);
            let work: i64 = inside.iter().map(|job| job[3].max(0) * job[4]).sum();
            let load = work as f64 / (4 * options.length) as f64;
            prop_assert!((window.load - load).abs() < 1e-12, "{} for {load}", window.load);
            let waits = |second: &i64| jobs.iter().any(|job| job[1] <= *second && *second < job[1] + job[2]);
            let waited = (window.begin..window.end).filter(waits).count();
            let saturation = has_start.then_some(waited as f64 / options.length as f64);
            prop_assert_eq!(window.saturation, saturation);

            let begin = window.begin - before;
            let [running, waiting, later] = naive_slice(&jobs, begin, window.end, options.cold);
            prop_assert_eq!((window.running, window.waiting), (running.len() as u64, waiting.len() as u64));
            let mut text = Vec::new();
            let slice = write_window(&trace, &survey, &options, window, &mut text).unwrap();
            prop_assert_eq!((slice.running, slice.waiting), (window.running, window.waiting));
            let (survey, records) = read(&text);
            let mut expect = [running, waiting, later].concat();
            // Jobs of one second are in the order of the log, of which only the shuffled ones differ.
            let mut got: Vec<Job> = records.iter().map(|record| {
                use Field::{Allocated, Estimate, Job, Runtime, Submit, Wait};
                [Job, Submit, Wait, Runtime, Allocated, Estimate].map(|field| record.get(field))
            }).collect();
            prop_assert!(survey.in_order && slice.jobs == got.len() as u64);
            expect.sort_by_key(|job| (job[1], job[0]));
            got.sort_by_key(|job| (job[1], job[0]));
            prop_assert_eq!(&got, &expect);
            let measured = got.iter().filter(|job| job[1] >= before).count();
            prop_assert_eq!(measured as u64, window.jobs);
            for record in &records {
                prop_assert_eq!(record.extras().number(crate::swf::Extra::Nodes), record.recorded(Field::Job));
                let has_first = got.iter().any(|job| job[0] == 1);
                prop_assert_eq!(record.get(Field::PrecedingJob) == 1, has_first);
            }
            prop_assert_eq!(survey.header.unix_start(), Some(1_000_000_000 + begin));
            prop_assert_eq!(survey.header.warmup(), Some(before).filter(|before| *before > 0));
            prop_assert_eq!(survey.header.value("MaxJobs"), Some(&*got.len().to_string()));
        }
    }
}

#[test]
fn the_nearest_load_in_a_range_is_chosen() {
    let window = |number, load| Window {
        number,
        begin: 0,
        end: 1,
        jobs: 1,
        load,
        saturation: None,
        running: 0,
        waiting: 0,
    };
    let windows = [window(1, 0.5), window(2, 0.7), window(3, 0.75), window(4, 0.75)];
    let chosen = |low, high| with_load(&windows, low, high).map(|window| window.number);
    assert_eq!(chosen(0.6, 0.88), Some(3));
    assert_eq!(chosen(0.4, 0.6), Some(1));
    assert_eq!(chosen(0.76, 0.9), None);
}

#[test]
fn a_log_without_starts_is_refused_or_cold() {
    let trace = trace(&[[1, 0, -1, 5, 2, -1], [2, 9, -1, 5, 2, -1]]);
    let survey = trace.survey().unwrap();
    let options = SliceOptions {
        procs: Procs::new(4),
        procs_field: ProcsField::Allocated,
        length: 5,
        count: None,
        warmup: 0,
        cold: false,
        lenient: false,
    };
    let error = windows(&trace, &survey, &options).unwrap_err().to_string();
    assert!(error.contains("--cold begins on an idle machine"), "{error}");
    assert_eq!(windows(&trace, &survey, &SliceOptions { cold: true, ..options }).unwrap().len(), 2);
    let error = windows(&trace, &survey, &SliceOptions { length: 11, ..options }).unwrap_err().to_string();
    assert_eq!(error, "log: its submissions span 9 s; a window of 11 s does not fit");
}
