//! The report of an import as text and as JSON.

use std::borrow::Cow;

use miserly_core::Procs;
use miserly_import::{
    ColumnFacts, Remark, RemarkCount, RemarkEffect, Report, RuleCount, UnknownState, UnknownStatesReport,
};
use miserly_workload::describe::Proportion;
use miserly_workload::swf::{Extra, Field, Header, Names, Record};
use serde_json::{Value, json};

use super::text::{INDENT, counted, percent, with_commas, wrapped};

/// Characters of an example of a value.
const EXAMPLE: usize = 24;

/// Formats the report of an import as plain text of up to 96 columns.
///
/// ```
/// use miserly_import::{ImportOptions, slurm};
/// use miserly_workload::Trace;
///
/// let accounting = "JobIDRaw|Submit|Start|End|AllocCPUS|State\n77|60|90|120|4|COMPLETED\n78|90|None|Unknown|4|PENDING\n";
/// let log = slurm(&Trace::memory("march", accounting.into()), &ImportOptions::default())?;
/// let text = miserly_report::import_text(&log.report);
/// assert!(text.contains("1 jobs written of 2 read"));
/// # Ok::<(), miserly_import::ImportError>(())
/// ```
pub fn import_text(report: &Report) -> String {
    let parts = RemarkEffect::ALL.map(|effect| part(report, effect));
    head(report)
        + &parts.concat()
        + &titled("Rows that a rule left out", &rules(report))
        + &titled("States without a meaning", &states(report))
        + &titled("Notes", &notes(report))
        + &unused(report)
}

/// Formats the counts of an import without examples, for commands that read a log of another form.
pub fn import_summary(report: &Report) -> String {
    let remarks = RemarkEffect::ALL.into_iter().flat_map(|effect| report.remarks.with_effect(effect));
    let remarks = remarks.map(|(remark, tally)| counted(remark.name(), tally.count, remark.about()));
    first_lines(report) + &remarks.collect::<String>() + &rules(report) + &states(report) + &notes(report)
}

/// Returns the report of an import as JSON.
pub fn import_json(report: &Report) -> Value {
    let remarks = RemarkEffect::ALL.into_iter().flat_map(|effect| report.remarks.with_effect(effect));
    let remarks: Vec<_> = remarks.map(|(remark, tally)| remark_json(remark, tally)).collect();
    json!({
        "name": report.name,
        "format": report.format,
        "read": report.read,
        "written": report.written,
        "procs": report.procs.map(Procs::get),
        "busiest": report.busiest,
        "unused": report.unused,
        "remarks": remarks,
        "rules": report.rules.iter().map(rule_json).collect::<Vec<_>>(),
        "notes": report.notes,
        "unknown_states": {
            "most": report.unknown_states.most.iter().map(state_json).collect::<Vec<_>>(),
            "more": report.unknown_states.more,
            "remedy": report.unknown_states.remedy,
        },
    })
}

fn rule_json(rule: &RuleCount) -> Value {
    json!({"rule": rule.text, "count": rule.tally.count, "examples": rule.tally.examples})
}

fn state_json(unknown: &UnknownState) -> Value {
    json!({"state": unknown.state, "count": unknown.jobs})
}

/// The fields of a preview, and then the extra ones.
const PREVIEW: [Field; 10] = [
    Field::Job,
    Field::Submit,
    Field::Wait,
    Field::Runtime,
    Field::Allocated,
    Field::Estimate,
    Field::RequestedMemory,
    Field::Status,
    Field::User,
    Field::Queue,
];

/// Formats jobs as a table, with the fields that a user checks. The header of the log has names.
pub fn preview_text(header: &Header, jobs: &[Record]) -> String {
    let extras = extras_of(jobs);
    let names = PREVIEW.map(|field| header.names(field));
    let head = PREVIEW.iter().map(|field| field.name().to_owned());
    let head: Vec<String> = head.chain(extras.iter().map(|extra| extra.name().to_owned())).collect();
    let cells = |job: &Record| -> Vec<String> {
        let field = |(field, names): (&Field, &Names)| match job.recorded(*field) {
            Some(number) => names.with_name(number),
            None => job.get(*field).to_string(),
        };
        let fields = PREVIEW.iter().zip(&names).map(field);
        let extras = extras.iter().map(|extra| job.extras().text(*extra).map_or("-".into(), Cow::into_owned));
        fields.chain(extras).map(|cell| cell.replace(char::is_control, "\u{fffd}")).collect()
    };
    aligned(&std::iter::once(head).chain(jobs.iter().map(cells)).collect::<Vec<_>>(), true)
}

/// Formats the columns of a table.
pub fn columns_text(columns: &[ColumnFacts]) -> String {
    let head = ["column", "kind", "empty", "distinct", "field", "examples"].map(str::to_owned).to_vec();
    let cells = |column: &ColumnFacts| -> Vec<String> {
        let empty = Proportion { count: column.empty as u64, of: column.rows as u64 };
        let field = match column.field {
            None => "-".to_owned(),
            Some((field, false)) => field.name().to_owned(),
            Some((field, true)) => format!("{field} (by content)"),
        };
        let example = |text: &String| -> String {
            let is_long = text.chars().count() > EXAMPLE;
            let short: String = text.replace(char::is_control, "\u{fffd}").chars().take(EXAMPLE).collect();
            if is_long { short + "..." } else { short }
        };
        let examples = column.examples.iter().map(example).collect::<Vec<_>>().join(", ");
        let name = column.name.replace(char::is_control, "\u{fffd}");
        vec![name, column.kind.to_owned(), percent(empty), column.distinct.to_string(), field, examples]
    };
    aligned(&std::iter::once(head).chain(columns.iter().map(cells)).collect::<Vec<_>>(), false)
}

/// Returns rows with their cells below each other.
fn aligned(rows: &[Vec<String>], to_the_right: bool) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| {
            if to_the_right { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// Returns jobs as JSON, with the fields that a user checks. The header of the log has names.
pub fn preview_json(header: &Header, jobs: &[Record]) -> Value {
    let extras = extras_of(jobs);
    let names = Names::FIELDS.map(|field| (field, header.names(field)));
    let job = |job: &Record| {
        let fields = PREVIEW.iter().map(|field| (field.name().to_owned(), json!(job.get(*field))));
        let extras = extras.iter().map(|extra| (extra.name().to_owned(), json!(job.extras().text(*extra))));
        let name = |(field, names): &(Field, Names)| {
            let name = names.get(job.recorded(*field)?.try_into().ok()?)?;
            Some((format!("{field}_name"), json!(name)))
        };
        Value::Object(fields.chain(extras).chain(names.iter().filter_map(name)).collect())
    };
    jobs.iter().map(job).collect()
}

/// Returns the extra fields that a job has.
fn extras_of(jobs: &[Record]) -> Vec<Extra> {
    Extra::ALL.into_iter().filter(|extra| jobs.iter().any(|job| job.extras().has(*extra))).collect()
}

fn remark_json(remark: Remark, tally: &RemarkCount) -> Value {
    json!({
        "kind": remark.name(),
        "sort": remark.effect().name(),
        "about": remark.about(),
        "count": tally.count,
        "examples": tally.examples,
    })
}

fn head(report: &Report) -> String {
    let machine = match report.procs {
        Some(procs) => format!("{procs} processors"),
        None => "unknown; give --procs to a simulation".to_owned(),
    };
    format!("{}machine: {machine}\n", first_lines(report))
}

fn first_lines(report: &Report) -> String {
    let Report { name, format, read, written, .. } = report;
    let busiest = match report.busiest {
        Some(busiest) => format!("; {busiest} processors in use at the busiest instant"),
        None => String::new(),
    };
    format!("{name}: {format}\n{written} jobs written of {read} read{busiest}\n")
}

/// Formats the remarks of an effect, or returns an empty text without remarks.
fn part(report: &Report, effect: RemarkEffect) -> String {
    let these: String =
        report.remarks.with_effect(effect).map(|(remark, tally)| one(remark, tally)).collect();
    let title = match effect {
        RemarkEffect::LeftOut => "Left out: jobs that are not in the log",
        RemarkEffect::Changed => "Imported with information lost",
    };
    if these.is_empty() { these } else { format!("\n{title}\n{these}") }
}

fn one(remark: Remark, tally: &RemarkCount) -> String {
    let more = tally.beside_examples();
    let more = (more > 0).then(|| format!("and {more} more"));
    let examples: Vec<_> = tally.examples.iter().cloned().chain(more).collect();
    counted(remark.name(), tally.count, remark.about())
        + &wrapped(&format!("{:INDENT$}", ""), &with_commas(&examples), INDENT)
}

/// Formats the rules of a column map, a line each.
fn rules(report: &Report) -> String {
    report.rules.iter().map(|rule| counted("rule", rule.tally.count, &rule.text)).collect()
}

/// Formats the unknown states, a line each, and what to write for them.
fn states(report: &Report) -> String {
    let shown = |state: &str| state.replace(char::is_control, "\u{fffd}");
    let line = |unknown: &UnknownState| counted("state", unknown.jobs, &shown(&unknown.state));
    let UnknownStatesReport { most, more, remedy } = &report.unknown_states;
    let lines: String = most.iter().map(line).collect();
    let more = if *more > 0 { counted("state", *more, "in further states") } else { String::new() };
    let remedy = remedy.as_ref().map(|remedy| format!("  {}\n", shown(remedy)));
    lines + &more + &remedy.unwrap_or_default()
}

fn notes(report: &Report) -> String {
    let words = |note: &String| note.split(' ').map(str::to_owned).collect::<Vec<_>>();
    report.notes.iter().map(|note| wrapped("  note: ", &words(note), INDENT)).collect()
}

/// Returns a text below a title, unless it is empty.
fn titled(title: &str, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("\n{title}\n{text}") }
}

fn unused(report: &Report) -> String {
    if report.unused.is_empty() {
        return String::new();
    }
    format!("\n{}", wrapped("Unused fields: ", &with_commas(&report.unused), INDENT))
}

#[cfg(test)]
mod tests {
    use miserly_import::{ImportOptions, slurm};
    use miserly_workload::Trace;

    use super::*;

    const ACCOUNTING: &str = "JobIDRaw|Submit|Start|End|AllocCPUS|State|Account\n\
        7|100|100|160|4|COMPLETED|a\n\
        8|110|None|Unknown|4|PENDING|a\n\
        8.batch|110|110|120|4|COMPLETED|a\n\
        9|110|120|130|6|CANCELLED by 0|a\n\
        9|140|None|150|6|CANCELLED by 0|a\n";

    fn report() -> Report {
        slurm(&Trace::memory("toy", ACCOUNTING.into()), &ImportOptions::default()).unwrap().report
    }

    #[test]
    fn by_sort() {
        assert_eq!(
            import_text(&report()),
            "toy: Slurm accounting\n\
             3 jobs written of 5 read; 10 processors in use at the busiest instant\n\
             machine: unknown; give --procs to a simulation\n\
             \nLeft out: jobs that are not in the log\n\
             \x20 step: 1 - a step of a job, not a job; sacct -X does not print them\n\
             \x20   line 4\n\
             \x20 unfinished: 1 - pending, running or suspended when the accounting was read\n\
             \x20   line 3\n\
             \nImported with information lost\n\
             \x20 never_started: 1 - never ran: cancelled or failed while it waited; it is in the log with the\n\
             \x20   wait until then and without a runtime, and a simulation skips it (no_runtime)\n\
             \x20   line 6\n\
             \x20 run_again: 1 - a further run of the same job, requeued or resized; each run is a job,\n\
             \x20   submitted when Slurm put it back\n\
             \x20   job 9\n\
             \nUnused fields: Account\n",
        );
    }

    #[test]
    fn for_programs() {
        let json = import_json(&report());
        assert_eq!((&json["read"], &json["written"], &json["busiest"]), (&json!(5), &json!(3), &json!(10)));
        assert_eq!(json["procs"], Value::Null);
        assert_eq!(json["remarks"][0]["kind"], "step");
        assert_eq!(json["remarks"][0]["sort"], "left_out");
        assert_eq!(json["remarks"][3]["examples"], json!(["job 9"]));
    }
}
