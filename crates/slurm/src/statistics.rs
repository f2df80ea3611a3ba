//! The statistics of the controller on its cycles of backfilling.

use jiff::Timestamp;
use miserly_core::Span;

use crate::Slurm;

/// The cycles of backfilling of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackfillCycles {
    /// The begin of the statistics: the first round of the controller after its start, or the last midnight.
    pub since: Option<Timestamp>,
    /// The begin of the last one.
    pub last: Timestamp,
    /// The mean length of a cycle. The next one follows an interval after it.
    pub mean: Span,
    /// The length of the longest cycle.
    pub longest: Span,
    /// The mean and the longest run of the main loop.
    pub main: [Span; 2],
}

impl BackfillCycles {
    /// Reads the statistics (`sdiag`). `None`: there was no cycle since they begin, or they cannot be read.
    pub fn read(slurm: &Slurm) -> Option<BackfillCycles> {
        BackfillCycles::parse(&slurm.ask("sdiag", &[]).ok()?.text)
    }

    fn parse(text: &str) -> Option<BackfillCycles> {
        fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
            text.lines().find_map(|line| line.trim().strip_prefix(key)?.strip_prefix(':')).map(str::trim)
        }
        fn instant(written: &str) -> Option<Timestamp> {
            let second = written.rsplit_once('(')?.1.trim_end().strip_suffix(')')?.parse().ok();
            Timestamp::from_second(second.filter(|second| *second > 0)?).ok()
        }
        let (main, text) = text.split_once("Backfilling stats")?;
        let since = main.lines().find_map(|line| instant(line.strip_prefix("Data since")?));
        let span = |text, key| Some(Span::from_ticks(value(text, key)?.parse().ok()?));
        let last = instant(value(text, "Last cycle when")?)?;
        let mean = span(text, "Mean cycle")?;
        let longest = span(text, "Max cycle").unwrap_or(mean);
        let main = ["Mean cycle", "Max cycle"].map(|key| span(main, key).unwrap_or(Span::ZERO));
        Some(BackfillCycles { since, last, mean, longest, main })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cycles_are_found() {
        let text = "Data since      Fri Nov 27 14:44:03 2026 (1795790643)\n\nMain schedule statistics (microseconds):\n\tLast cycle:   1688\n\tMax cycle:    9000\n\tMean cycle:   538\n\n\
            Backfilling stats\n\tTotal cycles: 53\n\tLast cycle when: Fri Nov 27 15:10:44 2026 (1795792244)\n\
            \tLast cycle: 9665\n\tMax cycle: 80000\n\tMean cycle: 26827\n\tLast depth cycle: 13\n";
        let last = Timestamp::from_second(1_795_792_244).unwrap();
        let [mean, longest] = [26_827, 80_000].map(Span::from_ticks);
        let since = Timestamp::from_second(1_795_790_643).ok();
        let expected =
            BackfillCycles { since, last, mean, longest, main: [538, 9_000].map(Span::from_ticks) };
        assert_eq!(BackfillCycles::parse(text), Some(expected));
        let without = BackfillCycles { since: None, ..expected };
        assert_eq!(BackfillCycles::parse(&text.replace("Data since", "Since")), Some(without));
        assert_eq!(BackfillCycles::parse(&text.replace("1795792244", "0")), None);
        assert_eq!(BackfillCycles::parse(""), None);
    }
}
