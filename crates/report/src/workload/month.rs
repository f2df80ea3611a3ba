//! A month of the NCSA Origin 2000 compared with the paper, as text and as JSON.

use miserly_workload::describe::{ClassRow, Demand, MonthStudy, Statement, Unit};
use miserly_workload::o2k::DemandCell;
use serde_json::{Value, json};

use super::json::share as share_json;
use super::text::{percent, short};

/// Formats Table 4, the classes at weekday peak, and the statements of section 3, for the log and
/// the paper.
pub(super) fn month_text(study: &MonthStudy) -> String {
    let title = format!(
        "{} beside the paper (Chiang, Vernon 2001): the month's jobs, without the week of warm-up\n",
        study.month
    );
    [title, table_4(study), peak(study), statements(study)].concat()
}

fn table_4(study: &MonthStudy) -> String {
    let mut text = format!(
        "{:10}{:>20}{:>24}{:>24}\n{:10}",
        "Table 4", "jobs", "processor demand, %", "memory demand, %", ""
    );
    text += &format!("{:>7}{:>6}{:>7}", "ours", "paper", "diff");
    text += &format!("{:>10}{:>6}{:>8}", "ours", "paper", "diff").repeat(2);
    text.push('\n');
    for row in &study.classes {
        text += &table_4_row(row.class.name(), row.ours, row.paper);
    }
    text += &table_4_row("all", study.overall, study.paper);
    if study.unclassed > 0 {
        text += &format!("  beyond lt-lj: {} jobs\n", study.unclassed);
    }
    text
}

fn table_4_row(name: &str, ours: Demand, paper: DemandCell) -> String {
    let demand = |ours: f64, paper: u32| {
        // Rounded first, without a negative zero.
        let more = ((ours - f64::from(paper)) * 100.0).round() / 100.0 + 0.0;
        format!("{ours:>10.2}{paper:>6}{more:>+8.2}")
    };
    let (procs, memory) = (demand(ours.procs, paper.procs), demand(ours.memory, paper.memory));
    let more = ours.jobs.cast_signed() - i64::from(paper.jobs);
    format!("  {name:8}{:>7}{:>6}{more:>+7}{procs}{memory}\n", ours.jobs, paper.jobs)
}

fn peak(study: &MonthStudy) -> String {
    let line = |name: &str, jobs: &str, short: &str, light: &str| {
        format!("{name:16}{jobs:>7}{short:>18}{light:>26}\n")
    };
    let row = |row: &ClassRow| {
        let (name, jobs) = (format!("  {}", row.class), row.under_a_minute.of.to_string());
        line(&name, &jobs, &percent(row.under_a_minute), &percent(row.under_a_tenth))
    };
    let head = line("At weekday peak", "jobs", "under a minute", "under a tenth of memory");
    let paper = line("  the paper", "", "15 to 20 %", "25 to 35 %");
    let rows: String = study.classes.iter().map(row).collect();
    format!("\n{head}{paper}{rows}")
}

fn statements(study: &MonthStudy) -> String {
    let line = |about: &str, ours: &str, holds: &str, paper: &str| {
        format!("{about:48}{ours:>10}  {holds:8}  {paper}").trim_end().to_owned() + "\n"
    };
    let one = |statement: &Statement| {
        let holds = match statement.holds() {
            Some(true) => "holds",
            Some(false) => "does not",
            None => "",
        };
        line(&format!("  {}", statement.about), &figure(statement), holds, &statement.paper)
    };
    let rows: String = study.statements.iter().map(one).collect();
    format!("\n{}{rows}", line("Section 3", "ours", "", "the paper"))
}

fn figure(statement: &Statement) -> String {
    let Some(ours) = statement.ours else { return "-".to_owned() };
    match statement.unit {
        Unit::Proportion => format!("{:.1} %", ours * 100.0),
        Unit::PerHour => format!("{} / h", short(ours)),
        Unit::Correlation => format!("{ours:+.2}"),
        Unit::Ratio => short(ours),
    }
}

/// The days of Figure 1.
const DAYS: [&str; 5] = ["monday", "tuesday", "wednesday", "thursday", "friday"];

/// Returns the study as JSON.
///
/// Arrivals are pairs of an hour of the day, from 0, and the mean number of jobs submitted in it. Demands are shares of the machine's capacity during the month, as are all shares here. The paper
/// prints them in whole percents.
pub(super) fn month_json(study: &MonthStudy) -> Value {
    let class = |row: &ClassRow| {
        json!({
            "class": row.class.name(),
            "ours": demand(row.ours),
            "paper": cell(row.paper),
            "peak": {
                "under_a_minute": share_json(row.under_a_minute),
                "under_a_tenth_of_memory": share_json(row.under_a_tenth),
            },
        })
    };
    json!({
        "month": study.month.name(),
        "classes": study.classes.iter().map(class).collect::<Vec<_>>(),
        "overall": { "ours": demand(study.overall), "paper": cell(study.paper) },
        "peak_runtimes": study
            .classes
            .iter()
            .map(|row| (row.class.name().to_owned(), json!(row.peak_runtimes)))
            .collect::<serde_json::Map<_, _>>(),
        "arrivals": DAYS
            .into_iter()
            .zip(&study.arrivals)
            .map(|(day, hours)| (day.to_owned(), json!(hours.iter().enumerate().collect::<Vec<_>>())))
            .collect::<serde_json::Map<_, _>>(),
        "unclassed": study.unclassed,
        "statements": study.statements.iter().map(statement).collect::<Vec<_>>(),
    })
}

fn demand(demand: Demand) -> Value {
    json!({ "jobs": demand.jobs, "procs": demand.procs / 100.0, "memory": demand.memory / 100.0 })
}

fn cell(cell: DemandCell) -> Value {
    let share = |percent: u32| f64::from(percent) / 100.0;
    json!({ "jobs": cell.jobs, "procs": share(cell.procs), "memory": share(cell.memory) })
}

/// Returns a statement as JSON. An open end of its range is null.
fn statement(statement: &Statement) -> Value {
    let end = |end: f64| if end.is_finite() { json!(end) } else { Value::Null };
    json!({
        "about": statement.about,
        "unit": statement.unit.name(),
        "ours": statement.ours,
        "paper": statement.paper,
        "range": statement.range.map(|(least, most)| [end(least), end(most)]),
        "holds": statement.holds(),
    })
}

#[cfg(test)]
mod tests {
    use miserly_workload::generate::{Model, O2k};
    use miserly_workload::o2k::Month;
    use miserly_workload::{ProcsField, describe};

    use super::super::text::WIDTH;
    use super::*;

    fn study() -> MonthStudy {
        let log = O2k { month: Month::February, seed: 1 }.generate().unwrap().into_trace("february");
        describe(&log, None, ProcsField::Allocated).unwrap().month.unwrap()
    }

    #[test]
    fn a_month_as_text() {
        let text = month_text(&study());
        let rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let jobs: Vec<_> =
            rows.filter(|row| row.first() == Some(&"vst-sj")).map(|row| row[1].to_owned()).collect();
        // Table 4 covers the month's jobs, of which fewer were submitted at weekday peak.
        assert!(jobs.len() == 2 && jobs[0] == "3252" && jobs[1].parse::<u32>().unwrap() < 3252, "{text}");
        for part in ["2000-02 beside the paper", "Table 4   ", "  all     ", "  holds     12 to 33 %\n"] {
            assert!(text.contains(part), "{part:?} is missing in\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH && !line.ends_with(' ')), "{text}");
    }

    #[test]
    fn differences_have_a_sign() {
        let ours = Demand { jobs: 20, procs: 5.25, memory: 14.5 };
        let paper = DemandCell { jobs: 20, procs: 5, memory: 15 };
        let row = table_4_row("lt-lj", ours, paper);
        let cells: Vec<_> = row.split_whitespace().collect();
        assert_eq!(cells, ["lt-lj", "20", "20", "+0", "5.25", "5", "+0.25", "14.50", "15", "-0.50"]);
        let row = table_4_row("lt-lj", Demand { procs: 4.999, ..ours }, paper);
        assert!(row.contains(" 5.00     5   +0.00 "), "{row}");
    }

    #[test]
    fn a_month_as_json() {
        let json = month_json(&study());
        assert_eq!(json["month"], "2000-02");
        assert_eq!(json["classes"][11]["class"], "lt-lj");
        assert_eq!(json["classes"][11]["paper"], json!({ "jobs": 20, "procs": 0.05, "memory": 0.15 }));
        assert_eq!(json["classes"][11]["ours"]["jobs"], 20);
        assert_eq!(json["overall"]["paper"]["procs"], 0.88);
        let open = json["statements"]
            .as_array()
            .unwrap()
            .iter()
            .find(|of| of["range"][1].is_null() && of["range"][0] == 1.0);
        assert_eq!(open.unwrap()["holds"], true);
    }
}
