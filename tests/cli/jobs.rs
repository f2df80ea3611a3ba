//! `--jobs OUT`: what became of every job, as a table or as a log.

use std::fs;

use serde_json::json;

use crate::support::{Lab, gzipped, log, small_log};

/// Batsim's columns, which evalys reads, then ours.
const COLUMNS: &str = "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,\
success,final_state,starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,\
allocated_resources,consumed_energy,metadata,start_reason,promised_start,suspensions,lost_work,suspended_time,overhead_time,\
slots,rows,run_fraction,user,queue";

#[test]
fn a_row_of_every_simulated_job() {
    let lab = Lab::with_log(&small_log());
    lab.stdout("simulate log.swf --policy easy --jobs out.csv");
    let expect = [
        COLUMNS,
        "1,log,100,100,6,100,1,COMPLETED_SUCCESSFULLY,100,100,200,0,100,1,0-5,-1,,immediate,,0,0,0,0,,,,1,",
        "2,log,50,101,10,60,1,COMPLETED_SUCCESSFULLY,200,50,250,99,149,2.98,0-9,-1,,reserved,200,0,0,0,0,,,,1,",
        "3,log,98,102,4,98,1,COMPLETED_SUCCESSFULLY,102,98,200,0,98,1,6-9,-1,,backfilled,,0,0,0,0,,,,1,",
    ];
    assert_eq!(lab.read("out.csv").lines().collect::<Vec<_>>(), expect);
    assert_eq!(lab.files(), ["log.swf", "out.csv"]);
}

#[test]
fn rows_with_something_to_them() {
    // Killed at its estimate; of no length, so that there is no stretch; from a file with a comma in its name.
    let lab = Lab::new();
    lab.write("a,b.swf.gz", gzipped(log(&[(7, 5, 100, 10, 60), (8, 6, 0, 1, 10)]).as_bytes()));
    lab.stdout("simulate a,b.swf.gz --policy conservative --jobs out.csv");
    let expect = [
        COLUMNS,
        "7,\"a,b\",60,5,10,60,0,COMPLETED_WALLTIME_REACHED,5,60,65,0,60,1,0-9,-1,,immediate,5,0,0,0,0,,,,1,",
        "8,\"a,b\",0,6,1,10,1,COMPLETED_SUCCESSFULLY,65,0,65,59,59,,0,-1,,reserved,65,0,0,0,0,,,,1,",
    ];
    assert_eq!(lab.read("out.csv").lines().collect::<Vec<_>>(), expect);
}

#[test]
fn rows_of_jobs_that_take_turns() {
    let lab = Lab::with_log(&log(&[(1, 0, 100, 6, 100), (2, 0, 100, 10, 100)]));
    lab.stdout("simulate log.swf --policy gang --jobs out.csv");
    // Each for half of the time, until both are done.
    let expect = [
        COLUMNS,
        "1,log,100,0,6,100,1,COMPLETED_SUCCESSFULLY,0,100,200,100,200,2,0-5,-1,,immediate,,0,0,0,0,1,2,0.5,1,",
        "2,log,100,0,10,100,1,COMPLETED_SUCCESSFULLY,0,100,200,100,200,2,0-9,-1,,immediate,,0,0,0,0,1,2,0.5,1,",
    ];
    assert_eq!(lab.read("out.csv").lines().collect::<Vec<_>>(), expect);
}

/// What a row of the table says of one job.
struct Row {
    submit: i64,
    start: i64,
    end: i64,
    procs: usize,
    pes: Vec<usize>,
}

impl Row {
    fn parse(row: &str) -> Row {
        let fields: Vec<&str> = row.split(',').collect();
        let number = |column: usize| fields[column].parse::<i64>().expect("whole seconds");
        let pes = fields[14].split(' ').flat_map(|range| {
            let (low, high) = range.split_once('-').unwrap_or((range, range));
            low.parse::<usize>().expect("a number")..=high.parse().expect("a number")
        });
        Row {
            submit: number(3),
            start: number(8),
            end: number(10),
            procs: fields[4].parse().expect("a count"),
            pes: pes.collect(),
        }
    }
}

#[test]
fn processors_are_the_lowest_that_are_free() {
    let lab = Lab::new();
    lab.stdout("workload generate --jobs 300 --procs 40 --load 0.9 --seed 3 --output log.swf");
    for policy in ["fcfs", "easy", "conservative"] {
        lab.stdout(&format!("simulate log.swf --estimates uniform:5 --policy {policy} --jobs out.csv"));
        let rows: Vec<Row> = lab.read("out.csv").lines().skip(1).map(Row::parse).collect();
        assert_eq!(rows.len(), 300);
        assert!(rows.is_sorted_by_key(|row| row.submit), "in the order of submission");
        check_processors(rows, 40);
    }
}

/// Plays the machine again: who held which processor, and which were the lowest.
#[track_caller]
fn check_processors(mut rows: Vec<Row>, procs: usize) {
    rows.sort_by_key(|row| row.start);
    let mut held_until = vec![i64::MIN; procs];
    for together in rows.chunk_by(|a, b| a.start == b.start) {
        let start = together[0].start;
        let free = (0..procs).filter(|&pe| held_until[pe] <= start);
        let wanted: usize = together.iter().map(|row| row.procs).sum();
        let lowest: Vec<usize> = free.take(wanted).collect();
        let mut taken: Vec<usize> = together.iter().flat_map(|row| row.pes.iter().copied()).collect();
        taken.sort_unstable();
        assert_eq!(taken, lowest, "at {start}");
        for row in together {
            assert_eq!(row.pes.len(), row.procs);
            row.pes.iter().for_each(|&pe| held_until[pe] = row.end);
        }
    }
}

/// A log with a value of its own in every field.
const RICH: &str = "; Version: 2.2
;  Computer: made up
; MaxProcs: 10
; Note: two
1 100 7 100 6 98.50 1024 5 100 2048 1 3 4 5 6 7 -1 -1
2 101 8 50 10 1.5 11 9 40 12 0 13 14 15 16 17 1 18
3 102 9 98 4 -1 -1 -1 98 -1 5 -1 -1 -1 -1 -1 -1 -1
";

#[test]
fn the_log_with_simulated_fields() {
    let lab = Lab::with_log(RICH);
    lab.stdout("simulate log.swf --policy easy --jobs out.swf --procs-field requested");
    let out = lab.read("out.swf");
    // Wait, runtime, allocated processors and status; job 2 is killed at the log's estimate.
    let jobs: Vec<&str> = out.lines().filter(|line| !line.starts_with(';')).collect();
    let expect = [
        "1 100 0 100 5 98.50 1024 5 100 2048 1 3 4 5 6 7 -1 -1",
        "2 101 99 40 9 1.5 11 9 40 12 0 13 14 15 16 17 1 18",
        "3 102 0 98 4 -1 -1 -1 98 -1 1 -1 -1 -1 -1 -1 -1 -1",
    ];
    assert_eq!(jobs, expect);
    let comments: Vec<&str> = out.lines().filter(|line| line.starts_with(';')).collect();
    let input: Vec<&str> = RICH.lines().filter(|line| line.starts_with(';')).collect();
    assert_eq!(comments[..input.len()], input);
    assert!(comments[input.len()].contains("simulated by miserly") && comments[input.len()].contains("easy"));
}

#[test]
fn a_simulated_log_is_a_log() {
    let lab = Lab::with_log(&small_log());
    let first = lab.document("simulate log.swf --policy easy --jobs out.swf --json");
    let second = lab.document("simulate out.swf --policy easy --json");
    assert_eq!(first["metrics"], second["metrics"]);
    assert_eq!((&second["jobs"]["read"], &second["jobs"]["skipped"]), (&json!(3), &json!({})));
    // But never in the place of the log that it came from.
    let log = lab.read("out.swf");
    let run = lab.run("simulate out.swf --policy easy --jobs ./out.swf");
    assert_eq!((run.code, lab.read("out.swf")), (Some(2), log));
}

#[test]
fn a_file_is_replaced_whole_or_not_at_all() {
    let lab = Lab::with_log(&small_log());
    lab.write("broken.swf", format!("{}not a job\n", small_log()));
    for out in ["out.csv", "out.swf"] {
        lab.write(out, "the old one");
        let run = lab.run(&format!("simulate broken.swf --policy easy --jobs {out}"));
        assert_eq!((run.code, lab.read(out).as_str()), (Some(2), "the old one"));
        lab.stdout(&format!("simulate log.swf --policy easy --jobs {out}"));
        assert!(!lab.read(out).contains("the old one"));
    }
    assert_eq!(lab.files(), ["broken.swf", "log.swf", "out.csv", "out.swf"]);
}

#[test]
fn the_schedule_does_not_depend_on_the_output() {
    let lab = Lab::new();
    lab.stdout("workload generate --jobs 500 --output log.swf");
    let metrics = |jobs: &str| {
        let line = format!("simulate log.swf --estimates uniform:5 --policy easy --json {jobs}");
        lab.document(&line)["metrics"].to_string()
    };
    assert_eq!(metrics(""), metrics("--jobs out.csv"));
    assert_eq!(metrics(""), metrics("--jobs out.swf"));
    let lines = |name: &str| fs::read_to_string(lab.path(name)).expect("a file").lines().count();
    assert_eq!(lines("out.csv"), 501);
}

/// Returns the values of a column; empty ones are NaN.
fn column(table: &str, name: &str) -> Vec<f64> {
    let place = COLUMNS.split(',').position(|column| column == name).expect("a column");
    let value = |row: &str| row.split(',').nth(place).expect("a value").parse().unwrap_or(f64::NAN);
    table.lines().skip(1).map(value).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.filter(|value| !value.is_nan()).collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// The figures of a run, computed from its rows as docs/formats.md describes.
fn figures(table: &str, warmup: f64, procs: f64) -> Vec<(&'static str, f64)> {
    let of = |name| column(table, name);
    let (submit, wait, run, end) =
        (of("submission_time"), of("waiting_time"), of("execution_time"), of("finish_time"));
    let (first, last) = (submit[0], end.iter().copied().fold(0.0, f64::max));
    let measured: Vec<usize> = (0..submit.len()).filter(|&row| submit[row] >= first + warmup).collect();
    let mean_of = |values: &[f64]| mean(measured.iter().map(|&row| values[row]));
    let bounded: Vec<f64> = wait.iter().zip(&run).map(|(wait, run)| 1.0 + wait / run.max(10.0)).collect();
    let mut waits: Vec<f64> = measured.iter().map(|&row| wait[row]).collect();
    waits.sort_by(f64::total_cmp);
    let work: f64 = run.iter().zip(of("requested_number_of_resources")).map(|(run, procs)| run * procs).sum();
    vec![
        ("/jobs/measured", measured.len() as f64),
        ("/metrics/wait/mean", mean_of(&wait)),
        ("/metrics/wait/p95", waits[(waits.len() * 95).div_ceil(100) - 1]),
        ("/metrics/response/mean", mean_of(&of("turnaround_time"))),
        ("/metrics/slowdown/mean", mean_of(&of("stretch"))),
        ("/metrics/bounded_slowdown/mean", mean_of(&bounded)),
        ("/makespan", last - first),
        ("/utilization", work / (procs * (last - first))),
    ]
}

#[test]
fn the_rows_give_the_figures_of_the_document() {
    let lab = Lab::new();
    lab.stdout("workload generate --jobs 500 --seed 5 -o log.swf");
    for (policy, warmup) in [("easy", 0), ("conservative", 7200), ("ss", 7200), ("gang", 0), ("gang", 7200)] {
        let line = format!(
            "simulate log.swf -p {policy} --estimates uniform:5 --warmup {warmup} --jobs out.csv --json"
        );
        let document = lab.document(&line);
        let procs = document["settings"]["procs"].as_f64().expect("a number");
        for (path, figure) in figures(&lab.read("out.csv"), f64::from(warmup), procs) {
            let expect = document.pointer(path).and_then(serde_json::Value::as_f64).expect(path);
            // The rows have decimals to the microsecond under gang.
            assert!(
                (figure - expect).abs() <= 1e-9 * expect.max(1.0),
                "{line}: {path} is {expect}, {figure} by the rows"
            );
        }
    }
}
