//! A schedule as an ASCII Gantt chart: one row per processor, one column per unit of time.

use miserly_core::Time;
use miserly_sim::Finished;

/// Draws jobs, whose processors are known, from `from` on, a column per `unit` seconds.
///
/// A job is drawn with the last letter or digit of its number in base 36; a dot is an idle processor.
pub fn gantt(procs: u32, jobs: &[Finished], from: i64, unit: i64) -> String {
    let last = jobs.iter().map(|job| job.end.secs()).max().unwrap_or(from);
    let columns = usize::try_from((last - from + unit - 1).max(0) / unit).unwrap_or(0);
    let mut rows = vec![vec!['.'; columns]; procs as usize];
    let column =
        |time: Time| usize::try_from((time.secs() - from).div_euclid(unit)).unwrap_or(0).min(columns);
    for job in jobs {
        let letter = letter(job.request.number);
        for &(low, high) in job.pes.iter().flat_map(miserly_core::PeSet::ranges) {
            for row in &mut rows[low as usize..=high as usize] {
                row[column(job.start)..column(job.end)].fill(letter);
            }
        }
    }
    let mut text = String::new();
    for (pe, row) in rows.iter().enumerate().rev() {
        text.push_str(&format!("{pe:>4} |{}\n", row.iter().collect::<String>()));
    }
    text.push_str(&format!("     +{}\n      {from}, {unit} s a column\n", "-".repeat(columns)));
    text
}

fn letter(number: i64) -> char {
    let digit = u32::try_from(number.rem_euclid(36)).unwrap_or(0);
    char::from_digit(digit, 36).unwrap_or('?').to_ascii_uppercase()
}
