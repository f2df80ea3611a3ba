//! The statistics of the controller on its cycles of backfilling.

use jiff::Timestamp;
use miserly_core::Span;

use crate::Slurm;

/// The cycles of backfilling of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackfillCycles {
    /// The begin of the last one.
    pub last: Timestamp,
    /// The mean length of a cycle. The next one follows an interval after it.
    pub mean: Span,
}

impl BackfillCycles {
    /// Reads the statistics (`sdiag`). `None`: there was no cycle since they begin, or they cannot be read.
    pub fn read(slurm: &Slurm) -> Option<BackfillCycles> {
        BackfillCycles::parse(&slurm.ask("sdiag", &[]).ok()?.text)
    }

    fn parse(text: &str) -> Option<BackfillCycles> {
        let (_, text) = text.split_once("Backfilling stats")?;
        let value = |key: &str| {
            text.lines().find_map(|line| line.trim().strip_prefix(key)?.strip_prefix(':')).map(str::trim)
        };
        let (_, last) = value("Last cycle when")?.rsplit_once('(')?;
        let last = last.strip_suffix(')')?.parse().ok().filter(|last| *last > 0)?;
        let last = Timestamp::from_second(last).ok()?;
        Some(BackfillCycles { last, mean: Span::from_ticks(value("Mean cycle")?.parse().ok()?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cycles_are_found() {
        let text = "Main schedule statistics (microseconds):\n\tLast cycle:   1688\n\tMean cycle:   538\n\n\
            Backfilling stats\n\tTotal cycles: 53\n\tLast cycle when: Fri Nov 27 15:10:44 2026 (1795792244)\n\
            \tLast cycle: 9665\n\tMean cycle: 26827\n\tLast depth cycle: 13\n";
        let last = Timestamp::from_second(1_795_792_244).unwrap();
        let expected = BackfillCycles { last, mean: Span::from_ticks(26_827) };
        assert_eq!(BackfillCycles::parse(text), Some(expected));
        assert_eq!(BackfillCycles::parse(&text.replace("1795792244", "0")), None);
        assert_eq!(BackfillCycles::parse(""), None);
    }
}
