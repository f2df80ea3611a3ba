//! The duration of context switches, from the records of the processes.

use std::fmt;

use super::spin::{SECOND, Spun};

/// The shortest gap between two time slices of a job, in nanoseconds.
const OTHERS: u64 = SECOND / 2;

/// The durations of all context switches, in nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    /// From the stop of the first process to the stop of the last one.
    stopping: Vec<u64>,
    /// From there to the first process of the next job.
    between: Vec<u64>,
    /// From there to its last process.
    going: Vec<u64>,
    /// The number of switches in which a process of the next job ran before the last one had stopped.
    overlaps: usize,
}

/// A time slice of a job: the first and the last instant of each process.
struct Turn {
    first: Vec<u64>,
    last: Vec<u64>,
}

impl Switches {
    /// Returns the context switches between jobs in different slots.
    pub(crate) fn between(jobs: &[Vec<Spun>]) -> Switches {
        let mut turns: Vec<Turn> = jobs.iter().flat_map(|processes| turns(processes)).collect();
        turns.sort_by_key(|turn| turn.first.iter().min().copied());
        let mut switches = Switches::default();
        for pair in turns.windows(2) {
            switches.add(&pair[0], &pair[1]);
        }
        switches
    }

    fn add(&mut self, before: &Turn, after: &Turn) {
        let ends = |all: &[u64]| all.iter().min().copied().zip(all.iter().max().copied());
        let (Some((stops, stopped)), Some((goes, going))) = (ends(&before.last), ends(&after.first)) else {
            return;
        };
        self.stopping.push(stopped - stops);
        self.going.push(going - goes);
        match goes.checked_sub(stopped) {
            Some(between) => self.between.push(between),
            None => self.overlaps += 1,
        }
    }
}

/// Returns the complete time slices of a job.
fn turns(processes: &[Spun]) -> Vec<Turn> {
    let away = |spun: &Spun| -> Vec<(u64, u64)> {
        let long = |(from, to): &&(u64, u64)| to - from >= OTHERS && *from >= spun.begin;
        spun.away.iter().filter(long).copied().collect()
    };
    let all: Vec<Vec<(u64, u64)>> = processes.iter().map(away).collect();
    let count = all.iter().map(Vec::len).min().unwrap_or(0);
    let turn = |nth: usize| Turn {
        first: all.iter().map(|away| away[nth].1).collect(),
        last: all.iter().map(|away| away[nth + 1].0).collect(),
    };
    (0..count.saturating_sub(1)).map(turn).collect()
}

impl fmt::Display for Switches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.between.len() + self.overlaps;
        writeln!(f, "{count} switches, {} of them with an overlap; milliseconds:", self.overlaps)?;
        writeln!(f, "{:24} {:>8} {:>8} {:>8}", "", "median", "99 %", "most")?;
        let kinds = [("stopping", &self.stopping), ("between", &self.between), ("going on", &self.going)];
        for (kind, lengths) in kinds {
            let mut lengths = lengths.clone();
            lengths.sort_unstable();
            let at = |percent: usize| lengths.get(lengths.len().saturating_sub(1) * percent / 100);
            let [median, most_but_few, most] = [50, 99, 100].map(|percent| at(percent).copied().unwrap_or(0));
            let ms = |nanos: u64| nanos as f64 / 1e6;
            writeln!(f, "{kind:24} {:>8.2} {:>8.2} {:>8.2}", ms(median), ms(most_but_few), ms(most))?;
        }
        Ok(())
    }
}
