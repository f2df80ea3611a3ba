//! A schedule as an ASCII Gantt chart: one row per processor, or as many as jobs share it at a time, one column per unit of time.

use std::fmt::Write as _;

use miserly_core::{PeSet, Time};
use miserly_sim::Finished;

/// A mark on the axis every so many columns, and a number at every second mark.
const MARK: usize = 5;

/// Draws jobs, whose processors are known, from `from` on, a column per `unit` seconds, and lists them below.
///
/// A column shows who holds the processor at the column's first instant, by the last digit of the job's number
/// in base 36; a tilde, a job that holds it while it is written out or read back; a dot is nobody. So a job of no length is only in
/// the list.
///
/// A processor that jobs share by turns has a line for each of those that have it at a time, the first with its number; a job has the first
/// line that is left when it comes, those with lower numbers before others.
///
/// ```
/// # use miserly_core::{Instants, Machine, PeSet, Reason, Request, Resources, Span, Time};
/// # use miserly_sim::{Finished, Interruptions};
/// let (start, end) = (Time::ZERO, Time::from_secs(4).unwrap());
/// let job = Finished {
///     admission: 0,
///     request: Request::new(1, start, end - start, Resources::cpus(2)),
///     runtime: end - start,
///     killed: false,
///     status: miserly_sim::LoggedStatus::Unknown,
///     start,
///     end,
///     reason: Some(Reason::AtOnce),
///     promised: None,
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
/// job  procs  submit  estimate  start  end  reason   promised
///   1      2       0         4      0    4  at_once         -
/// ";
/// assert_eq!(miserly_report::gantt(3, &[job], 0, 1), chart);
/// ```
pub fn gantt(procs: u32, jobs: &[Finished], from: i64, unit: i64) -> String {
    let axis = Axis { from: i128::from(from) * SECOND, unit: i128::from(unit.max(1)) * SECOND };
    let last = jobs.iter().map(|job| job.end).max().unwrap_or(Time::ZERO);
    let columns = axis.column(last);
    let mut text = String::new();
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

/// Where the chart begins and how long a column is, in ticks.
struct Axis {
    from: i128,
    unit: i128,
}

impl Axis {
    /// The first column that begins at `time` or later.
    fn column(&self, time: Time) -> usize {
        let ticks = i128::from(time.ticks()) - self.from;
        usize::try_from((ticks + self.unit - 1).div_euclid(self.unit)).unwrap_or(0)
    }

    /// The columns that begin within this time.
    fn columns(&self, (from, to): Interval) -> std::ops::Range<usize> {
        self.column(from)..self.column(to)
    }

    /// The seconds at every second mark, as far as they do not run into each other.
    fn numbers(&self, columns: usize) -> String {
        let mut line = String::new();
        for column in (0..columns.max(1)).step_by(2 * MARK) {
            if column == 0 || line.len() < column {
                // No chart has so many columns that the product overflows.
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

/// From when to when.
type Interval = (Time, Time);

/// From when to when the job has that processor, each time with when it works there.
fn holds(job: &Finished, pe: u32) -> impl Iterator<Item = (Interval, Interval)> {
    let has = move |pes: &PeSet| pes.ranges().iter().any(|&(low, high)| (low..=high).contains(&pe));
    let stays = job.allocations.iter().filter(move |stay| has(&stay.pes));
    let stays = stays.map(|stay| ((stay.from, stay.to), stay.worked));
    let whole = job.pes.iter().filter(move |pes| job.allocations.is_empty() && has(pes));
    stays.chain(whole.map(|_| ((job.start, job.end), (job.start, job.end))))
}

/// A job's letter, when it has a processor, and when it works there.
type Turn = (char, Interval, Interval);

/// The jobs that have that processor, side by side where several have it at a time; one lane at least.
fn lanes(jobs: &[Finished], pe: u32) -> Vec<Vec<Turn>> {
    let mut turns: Vec<(i64, Turn)> = Vec::new();
    for job in jobs {
        let number = job.request.number;
        turns.extend(holds(job, pe).map(|(held, worked)| (number, (letter(number), held, worked))));
    }
    turns.sort_by_key(|(number, (_, held, _))| (held.0, *number));
    let mut lanes: Vec<Vec<Turn>> = vec![vec![]];
    for (_, turn) in turns {
        let free = |lane: &Vec<Turn>| lane.last().is_none_or(|last| last.1.1 <= turn.1.0);
        match lanes.iter_mut().find(|lane| free(lane)) {
            Some(lane) => lane.push(turn),
            None => lanes.push(vec![turn]),
        }
    }
    lanes
}

fn letter(number: i64) -> char {
    let digit = u32::try_from(number.rem_euclid(36)).unwrap_or(0);
    char::from_digit(digit, 36).unwrap_or('?').to_ascii_uppercase()
}

/// The list's columns. The last one has no name: it says what else there is to say.
const HEAD: [&str; 9] = ["job", "procs", "submit", "estimate", "start", "end", "reason", "promised", ""];

/// One line per job: what was asked for, and what came of it.
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
