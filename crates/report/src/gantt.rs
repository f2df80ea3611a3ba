//! Schedules as ASCII Gantt charts: a row per processor and concurrent job, a column per time unit.

use std::fmt::Write as _;

use miserly_core::{PeSet, Procs, Time};
use miserly_sim::Finished;

/// Columns between two marks of the axis. Every second mark has a number.
const MARK: usize = 5;

/// Draws jobs with known processors from `from` on, with `unit` seconds per column, and lists them
/// below.
///
/// A column shows the holder of the processor at the column's first instant. The holder is printed
/// as the last digit of its job number in base 36. A tilde marks a job that is being swapped out or
/// in; a dot marks an idle processor. A job of zero length appears only in the list.
///
/// A processor shared in time slices has a row for each concurrent job. The first row has the
/// processor's number. A job takes the first row that is free at its start; lower job numbers go
/// first.
///
/// ```
/// # use miserly_core::{EventOrder, Machine, PeSet, StartReason, Request, Resources, Span, Time};
/// # use miserly_sim::{Finished, Interruptions};
/// let (start, end) = (Time::ZERO, Time::from_secs(4).unwrap());
/// let job = Finished {
///     admission: 0,
///     request: Request::new(1, start, end - start, Resources::cpus(2)),
///     runtime: end - start,
///     killed: false,
///     status: miserly_sim::LoggedStatus::Unknown,
///     labels: vec![],
///     start,
///     end,
///     reason: Some(StartReason::Immediate),
///     promised: None,
///     reserved: None,
///     broken: false,
///     pes: Some(PeSet::first(2)),
///     allocations: vec![],
///     interruptions: Interruptions::default(),
///     lost: 0,
///     opportunistic: None,
///     slices: None,
/// };
/// let chart = "   2 |....
///    1 |1111
///    0 |1111
///      +----
///       0
/// job  procs  submit  estimate  start  end  reason     promised
///   1      2       0         4      0    4  immediate         -
/// ";
/// assert_eq!(miserly_report::gantt(3, &[job], 0, 1), chart);
/// ```
pub fn gantt(procs: impl Into<Procs>, jobs: &[Finished], from: i64, unit: i64) -> String {
    let axis = TimeAxis { from: i128::from(from) * SECOND, unit: i128::from(unit.max(1)) * SECOND };
    let last = jobs.iter().map(|job| job.end).max().unwrap_or(Time::ZERO);
    let columns = axis.column(last);
    let mut text = String::new();
    let procs: Procs = procs.into();
    let procs = u32::try_from(procs).unwrap_or(u32::MAX);
    for pe in (0..procs).rev() {
        for (n, lane) in lanes(jobs, pe).iter().enumerate() {
            let mut row = vec!['.'; columns];
            for (letter, held, worked) in lane {
                row[axis.columns(*held)].fill('~');
                row[axis.columns(*worked)].fill(*letter);
            }
            let name = if n == 0 { pe.to_string() } else { String::new() };
            push_line(&mut text, &format!("{name:>4} |{}", String::from_iter(row)));
        }
    }
    push_line(&mut text, &format!("     +{}", marks(columns)));
    push_line(&mut text, &format!("      {}", axis.numbers(columns)));
    push_list(&mut text, jobs);
    text
}

const SECOND: i128 = 1_000_000;

/// The time axis: its origin and the width of a column, in ticks.
struct TimeAxis {
    from: i128,
    unit: i128,
}

impl TimeAxis {
    /// Returns the first column that begins at `time` or later.
    fn column(&self, time: Time) -> usize {
        let ticks = i128::from(time.ticks()) - self.from;
        usize::try_from((ticks + self.unit - 1).div_euclid(self.unit)).unwrap_or(0)
    }

    /// Returns the columns that begin within a time range.
    fn columns(&self, (from, to): TimeRange) -> std::ops::Range<usize> {
        self.column(from)..self.column(to)
    }

    /// Returns the line of seconds below every second mark, without overlaps.
    fn numbers(&self, columns: usize) -> String {
        let mut line = String::new();
        for column in (0..columns.max(1)).step_by(2 * MARK) {
            if column == 0 || line.len() < column {
                // The product cannot overflow for a chart that fits into memory.
                let secs = (self.from + self.unit * column as i128) / SECOND;
                let _ = write!(line, "{:column$}{secs}", "", column = column - line.len());
            }
        }
        line
    }
}

fn marks(columns: usize) -> String {
    let mark = |column| if column > 0 && column % MARK == 0 { '+' } else { '-' };
    (0..columns).map(mark).collect()
}

/// A range of time, the end excluded.
type TimeRange = (Time, Time);

/// Returns the times at which a job holds a processor, each with the time of work in it.
fn holds(job: &Finished, pe: u32) -> impl Iterator<Item = (TimeRange, TimeRange)> {
    let has = move |pes: &PeSet| pes.ranges().iter().any(|&(low, high)| (low..=high).contains(&pe));
    let stays = job.allocations.iter().filter(move |stay| has(&stay.pes));
    let stays = stays.map(|stay| ((stay.from, stay.to), stay.worked));
    let whole = job.pes.iter().filter(move |pes| job.allocations.is_empty() && has(pes));
    stays.chain(whole.map(|_| ((job.start, job.end), (job.start, job.end))))
}

/// A use of a processor: letter of the job, time held, time of work.
type Occupancy = (char, TimeRange, TimeRange);

/// Distributes the uses of a processor over lanes without overlaps. Returns at least one lane.
fn lanes(jobs: &[Finished], pe: u32) -> Vec<Vec<Occupancy>> {
    let mut uses: Vec<(i64, Occupancy)> = Vec::new();
    for job in jobs {
        let number = job.request.number;
        uses.extend(holds(job, pe).map(|(held, worked)| (number, (letter(number), held, worked))));
    }
    uses.sort_by_key(|(number, (_, held, _))| (held.0, *number));
    let mut lanes: Vec<Vec<Occupancy>> = vec![vec![]];
    for (_, occupancy) in uses {
        let free = |lane: &Vec<Occupancy>| lane.last().is_none_or(|last| last.1.1 <= occupancy.1.0);
        match lanes.iter_mut().find(|lane| free(lane)) {
            Some(lane) => lane.push(occupancy),
            None => lanes.push(vec![occupancy]),
        }
    }
    lanes
}

fn letter(number: i64) -> char {
    let digit = u32::try_from(number.rem_euclid(36)).unwrap_or(0);
    char::from_digit(digit, 36).unwrap_or('?').to_ascii_uppercase()
}

/// Columns of the job list. The last column holds notes and has no name.
const HEAD: [&str; 9] = ["job", "procs", "submit", "estimate", "start", "end", "reason", "promised", ""];

/// Appends a line per job with its request and its execution.
fn push_list(text: &mut String, jobs: &[Finished]) {
    let rows: Vec<_> = std::iter::once(HEAD.map(String::from)).chain(jobs.iter().map(row)).collect();
    let widths: Vec<usize> =
        (0..HEAD.len()).map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0)).collect();
    for row in &rows {
        let cells = row.iter().zip(&widths).zip(HEAD).map(|((text, &width), head)| match head {
            "reason" | "" => format!("{text:<width$}"),
            _ => format!("{text:>width$}"),
        });
        push_line(text, &cells.collect::<Vec<_>>().join("  "));
    }
}

fn row(job: &Finished) -> [String; 9] {
    let notes = [(job.killed, "killed"), (job.broken, "promise broken")];
    let notes: Vec<&str> = notes.into_iter().filter_map(|(holds, note)| holds.then_some(note)).collect();
    [
        job.request.number.to_string(),
        job.request.procs().to_string(),
        job.request.submit.to_string(),
        job.request.estimate.to_string(),
        job.start.to_string(),
        job.end.to_string(),
        job.reason_word().into(),
        job.promised.map_or_else(|| "-".into(), |promised| promised.to_string()),
        notes.join(", "),
    ]
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}
