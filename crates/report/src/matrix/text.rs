//! The matrix for a terminal: a line per slot, a column per processor, and a list of jobs.

use std::fmt::Write as _;

use miserly_units::span_of_seconds;

use super::{JobDoc, MatrixDoc};
use crate::count;

/// Processor columns without a width limit.
const WIDE: usize = 100;

/// Minimum of processor columns on a narrow terminal.
const NARROW: usize = 20;

/// Width of the slot number before the processors.
const MARGIN: usize = 6;

impl MatrixDoc {
    /// Formats the matrix for lines of `width` characters.
    ///
    /// A capital letter is a job in its own slot, a small letter an alternate job, and a dot an
    /// idle processor. Letters follow the order of submission and repeat after 26 jobs. The list
    /// below gives the exact placement. If there are more processors than columns, a column shows
    /// the job with the most of its processors.
    pub fn text(&self, width: Option<usize>) -> String {
        let room = width.map_or(WIDE, |width| width.saturating_sub(MARGIN).max(NARROW));
        let procs = usize::try_from(self.procs).unwrap_or(usize::MAX);
        let unit = procs.div_ceil(room).max(1);
        let mut text = self.heading(unit);
        if self.slots.is_empty() {
            return text + "No job is running.\n";
        }
        push_line(&mut text, "slot");
        for slot in &self.slots {
            push_line(&mut text, &format!("{:>4}  {}", slot.slot, self.line(slot.slot, unit)));
        }
        text.push('\n');
        self.push_list(&mut text);
        text.push_str(
            "\nA small letter is a job in an alternate slot, where no other job needs its processors.\n",
        );
        if self.jobs.len() > LETTERS {
            text.push_str("There are more jobs than letters: letters repeat after Z.\n");
        }
        text.push_str("Times are in seconds of the log.\n");
        text
    }

    fn heading(&self, unit: usize) -> String {
        let slots = match self.slots.len() {
            1 => "1 slot".to_owned(),
            slots => format!("{} slots", count(slots as u64)),
        };
        let column = if unit > 1 { format!("; a column is {unit} of them") } else { String::new() };
        let (at, procs) = (span_of_seconds(self.at), count(self.procs));
        format!("{} at {at}: {slots} used, {procs} processors{column}\n\n", self.policy)
    }

    /// Returns the line of a slot.
    fn line(&self, slot: u32, unit: usize) -> String {
        let columns = usize::try_from(self.procs).unwrap_or(usize::MAX).div_ceil(unit);
        let mut most = vec![(0, '.'); columns];
        for (job, letter) in self.jobs.iter().zip(letters()) {
            let sign = match () {
                () if job.slot == slot => letter.to_ascii_uppercase(),
                () if job.also_in.contains(&slot) => letter,
                () => continue,
            };
            for (column, has) in job.in_columns(unit) {
                if let Some(cell) = most.get_mut(column).filter(|cell| has > cell.0) {
                    *cell = (has, sign);
                }
            }
        }
        most.into_iter().map(|(_, sign)| sign).collect()
    }

    fn push_list(&self, text: &mut String) {
        let head = ["", "job", "procs", "submit", "since", "slot", "alternate", "runs", "processors"];
        let row = |(job, letter): (&JobDoc, char)| {
            [
                letter.to_ascii_uppercase().to_string(),
                job.job.to_string(),
                job.procs.to_string(),
                span_of_seconds(job.submit).to_string(),
                span_of_seconds(job.since).to_string(),
                job.slot.to_string(),
                if job.also_in.is_empty() { "-".into() } else { ranges(&together(&job.also_in)) },
                format!("{}/{}", 1 + job.also_in.len(), self.slots.len()),
                ranges(&job.pes),
            ]
        };
        let mut rows = vec![head.map(str::to_owned)];
        rows.extend(self.jobs.iter().zip(letters()).map(row));
        let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..head.len()).map(width).collect();
        for row in &rows {
            let mut line = String::new();
            for (column, (cell, wide)) in row.iter().zip(&widths).enumerate() {
                // The last column alone contains words.
                let wide = if column + 1 == head.len() { 0 } else { *wide };
                let _ = write!(line, "{}{cell:>wide$}", if column > 0 { "  " } else { "" });
            }
            push_line(text, &line);
        }
    }
}

impl JobDoc {
    /// Returns the number of processors in each column in which the job has any.
    fn in_columns(&self, unit: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.pes.iter().flat_map(move |&(low, high)| {
            let (low, high) = (low as usize, high as usize);
            (low / unit..=high / unit)
                .map(move |column| (column, high.min((column + 1) * unit - 1) + 1 - low.max(column * unit)))
        })
    }
}

/// Number of letters.
const LETTERS: usize = 26;

fn letters() -> impl Iterator<Item = char> {
    ('a'..='z').cycle()
}

/// Combines ascending numbers into ranges.
fn together(numbers: &[u32]) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    ranges
}

fn ranges(ranges: &[(u32, u32)]) -> String {
    let range =
        |&(low, high): &(u32, u32)| if low == high { low.to_string() } else { format!("{low}-{high}") };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::super::SlotDoc;
    use super::*;

    fn job(job: i64, slot: u32, also_in: Vec<u32>, pes: Vec<(u32, u32)>) -> JobDoc {
        let procs = pes.iter().map(|(low, high)| u64::from(high - low + 1)).sum();
        JobDoc { job, user: None, procs, submit: 0.0, slot, also_in, since: 0.0, run_fraction: 0.5, pes }
    }

    fn doc(procs: u64, jobs: Vec<JobDoc>) -> MatrixDoc {
        let slot = |slot| SlotDoc { slot, own: 1, also: 0 };
        MatrixDoc { version: "0", policy: "gang".into(), at: 5.0, procs, slots: vec![slot(0), slot(3)], jobs }
    }

    #[test]
    fn a_column_shows_the_job_with_the_most_of_it() {
        let matrix = doc(
            60,
            vec![job(1, 0, vec![3], vec![(0, 0), (3, 5)]), job(2, 0, vec![], vec![(1, 2), (30, 59)])],
        );
        assert_eq!(matrix.line(0, 3), "BA........BBBBBBBBBB");
        assert_eq!(matrix.line(3, 3), "aa..................");
        assert!(matrix.text(Some(26)).starts_with("gang at 5"), "{}", matrix.text(Some(26)));
        assert!(matrix.text(Some(26)).contains("60 processors; a column is 3 of them\n"));
    }

    #[test]
    fn slots_that_follow_each_other_are_ranges() {
        assert_eq!(ranges(&together(&[0, 2, 3, 4, 7, 9, 10])), "0,2-4,7,9-10");
    }

    #[test]
    fn letters_begin_again() {
        let jobs = (0..27)
            .map(|at| job(at, 0, vec![], vec![(u32::try_from(at).unwrap(), u32::try_from(at).unwrap())]));
        let text = doc(30, jobs.collect()).text(None);
        assert!(text.contains("   0  ABCDEFGHIJKLMNOPQRSTUVWXYZA...\n"), "{text}");
        assert!(text.contains("letters repeat after Z"));
    }
}
