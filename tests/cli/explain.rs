//! `explain`: dates of the log, and the width of its lines. `tests/cmd/explain.md` has the histories.

use crate::support::{Lab, Run, log, small_log};

/// Returns the lines of the history of job 2 under EASY, in a log with these header lines.
fn history(header: &str, options: &str) -> String {
    let lab = Lab::with_log(&(header.to_owned() + &small_log()));
    lab.stdout(&format!("explain log.swf 2 -p easy {options}"))
}

const STOCKHOLM: &str = "; UnixStartTime: 843480031\n; TimeZoneString: Europe/Stockholm\n";

#[test]
fn a_log_with_a_start_has_dates() {
    let text = history(STOCKHOLM, "");
    assert!(text.contains("\n1996-09-23 14:02  submitted; 4 processors were free"), "{text}");
    assert!(text.contains("promised a start at 1996-09-23 14:03 at the latest, in 1m39s"), "{text}");
    assert!(text.contains("  submitted 1996-09-23 14:02  "), "{text}");
    assert!(text.contains("  started 1996-09-23 14:03\n"), "{text}");
    assert_eq!(text.matches("Europe/Stockholm").count(), 1);
    let utc = history("; UnixStartTime: 843480031\n", "");
    assert!(utc.contains("\n1996-09-23 12:02  submitted") && utc.contains("in UTC;"), "{utc}");
}

#[test]
fn seconds_of_the_log_where_dates_would_mislead() {
    let line = "\n         101  submitted";
    for (header, options) in
        [(STOCKHOLM, "--seconds"), (STOCKHOLM, "--scale-load 1.0"), ("; UnixStartTime: 0\n", ""), ("", "")]
    {
        let text = history(header, options);
        assert!(text.contains(line) && !text.contains("1996"), "{header}{options}: {text}");
        assert!(text.ends_with("\nTimes are in seconds of the log.\n"), "{text}");
    }
}

#[test]
fn the_settings_show_the_dates_of_a_slice() {
    let lab = Lab::with_log(&(STOCKHOLM.to_owned() + &small_log()));
    let text = lab.stdout("simulate log.swf -p easy --from 1 --to 120");
    let settings: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let expect = "from 1 s (1996-09-23 14:00), to 120 s (1996-09-23 14:02)";
    assert!(settings.contains(expect), "{text}");
}

/// Returns the longest line of a command in a pipe.
fn widest(lab: &Lab, command: &str, columns: Option<&str>) -> usize {
    let mut program = lab.command(command);
    columns.map(|columns| program.env("COLUMNS", columns));
    let run = Run::from_output(&program.output().expect("a program that starts"));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    run.stdout.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

#[test]
fn a_pipe_has_eighty_columns_unless_columns_differs() {
    let jobs: Vec<_> = (1..30).map(|job| (job, 10 * job, 60, 1 + job % 10, 90)).collect();
    let lab = Lab::with_log(&log(&jobs));
    for command in ["compare log.swf --by category", "explain log.swf 19 -p easy", "wait-of log.swf 4 1h"] {
        assert!(widest(&lab, command, None) <= 80, "{command}");
        assert!(widest(&lab, command, Some("no number")) <= 80, "{command}");
    }
    assert!(widest(&lab, "compare log.swf", Some("200")) > 80);
    assert!(widest(&lab, "compare log.swf", Some("60")) <= 60);
}
