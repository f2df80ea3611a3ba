//! The findings of a log check as text.

use miserly_workload::CheckReport;
use miserly_workload::check::{Anomaly, Finding, Severity};

use super::text::{INDENT, counted, with_commas, wrapped};

/// Formats the findings of a check as plain text of up to 96 columns, most severe first.
///
/// Each kind lists the first `lines_shown` lines or runs of consecutive lines.
///
/// ```
/// use miserly_workload::{ProcsField, Trace, check};
///
/// let log = "; MaxProcs: 4\n1 100 -1 60 6 -1 -1 6 90 -1 1 1 -1 -1 -1 -1 -1 -1\n";
/// let report = check(&Trace::memory("example", log.into()), None, ProcsField::Allocated)?;
/// let text = miserly_report::check_text(&report, 10);
/// assert!(text.contains("too_wide: 1 - more processors than the machine has\n    line 2\n"));
/// # Ok::<(), miserly_workload::TraceError>(())
/// ```
pub fn check_text(report: &CheckReport, lines_shown: usize) -> String {
    let parts = Severity::ALL.map(|severity| part(report, severity, lines_shown));
    head(report) + &parts.concat()
}

/// Formats the findings of a severity, or returns an empty text without findings.
fn part(report: &CheckReport, severity: Severity, lines_shown: usize) -> String {
    let these = report.findings.iter().filter(|(kind, _)| kind.severity() == severity);
    let these: String = these.map(|(&kind, finding)| one(kind, finding, lines_shown)).collect();
    if these.is_empty() { these } else { format!("\n{}\n{these}", title(severity)) }
}

fn head(report: &CheckReport) -> String {
    let CheckReport { name, read, lines, left_out, .. } = report;
    let machine = report.procs.map_or_else(|| "unknown".to_owned(), |procs| format!("{procs} processors"));
    let verdict = if report.is_clean() { "; no anomalies" } else { "" };
    format!(
        "{name}\n{read} jobs in {lines} lines; machine: {machine}; \
         {left_out} jobs that a simulation leaves out{verdict}\n"
    )
}

fn title(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "Errors: unusable lines",
        Severity::Skipped => "Skipped: jobs that a simulation leaves out and counts",
        Severity::Odd => "Anomalies: jobs that are used unchanged",
    }
}

fn one(kind: Anomaly, finding: &Finding, lines_shown: usize) -> String {
    let about = counted(kind.name(), finding.count, kind.about());
    let details = finding.details.iter().take(lines_shown);
    let text = details.fold(about, |text, detail| text + &format!("{:INDENT$}{detail}\n", ""));
    // Details name their lines, which need not be listed again.
    let has_all_lines = finding.details.len() >= finding.lines.len();
    if has_all_lines || lines_shown == 0 { text } else { text + &places(&finding.lines, lines_shown) }
}

/// Returns `lines 3, 5-9, 12, and 40 more`.
fn places(lines: &[u64], most: usize) -> String {
    let runs: Vec<_> = lines.chunk_by(|line, next| line + 1 == *next).collect();
    let mut items: Vec<_> = runs.iter().take(most).map(|run| range(run)).collect();
    let left: usize = runs.iter().skip(most).map(|run| run.len()).sum();
    if left > 0 {
        items.push(format!("and {left} more"));
    }
    let start = if lines.len() == 1 { "line " } else { "lines " };
    wrapped(&format!("{:INDENT$}{start}", ""), &with_commas(&items), INDENT)
}

fn range(run: &[u64]) -> String {
    match run {
        [first, .., last] => format!("{first}-{last}"),
        [line] => line.to_string(),
        [] => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use miserly_workload::{ProcsField, Trace, check};

    use super::*;

    #[track_caller]
    fn expect(log: &str, lines_shown: usize, expected: &str) {
        let report = check(&Trace::memory("toy", log.into()), None, ProcsField::Allocated).unwrap();
        assert_eq!(check_text(&report, lines_shown), expected);
    }

    const SOUND: &str = "1 0 0 10 4 -1 -1 4 10 -1 1 1 1 1 1 1 -1 -1\n";

    #[test]
    fn a_clean_log() {
        let log = format!("; MaxProcs: 4\n{SOUND}");
        expect(
            &log,
            9,
            "toy\n1 jobs in 2 lines; machine: 4 processors; 0 jobs that a simulation leaves out; no anomalies\n",
        );
    }

    #[test]
    fn lines_are_shown_up_to_a_limit() {
        let lines = [1, 2, 3, 7, 9, 11, 12];
        assert_eq!(places(&lines, 9), "    lines 1-3, 7, 9, 11-12\n");
        assert_eq!(places(&lines, 2), "    lines 1-3, 7, and 3 more\n");
        assert_eq!(places(&[8], 2), "    line 8\n");
    }

    #[test]
    fn by_severity() {
        expect(
            &format!("; MaxProcs: 4 (or 5)\nno job\n{SOUND}2 0 -1 -1 4 -1 -1 4 0 -1 1 1 1 1 1 1 -1 -1\n"),
            9,
            "toy\n3 jobs in 4 lines; machine: 4 processors; 2 jobs that a simulation leaves out\n\
             \nErrors: unusable lines\n\
             \x20 malformed: 1 - not eighteen numbers; reading stops here without --lenient\n\
             \x20   line 2: field 1 (job) is \"no\", which is not a whole number\n\
             \nSkipped: jobs that a simulation leaves out and counts\n\
             \x20 no_runtime: 1 - runtime unknown\n\
             \x20   line 4\n\
             \nAnomalies: jobs that are used unchanged\n\
             \x20 zero_estimate: 1 - estimate 0; the runtime replaces it\n\
             \x20   line 4\n\
             \x20 size_not_plain: 1 - the machine size in the header is not a plain number; its leading number\n\
             \x20   is used\n\
             \x20   MaxProcs is \"4 (or 5)\"; used as 4\n",
        );
    }
}
