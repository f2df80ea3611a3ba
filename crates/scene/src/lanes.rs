//! The rows of a chart: a place for each job, so that bars do not overlap.

/// The most rows of a pool. On a larger machine a row stands for several processors.
const ROWS_MOST: u64 = 1024;

/// The rows that may be added to a small pool.
const EXTRA_LEAST: usize = 16;

/// The longest overlap of two bars in a row, milliseconds: an end and the next start are seen by different clocks.
const OVERLAP: i64 = 1000;

/// The rows of a pool, and until when each is taken.
///
/// A row is a place on the chart and not a processor: jobs without known processors get the lowest free rows, side by side if
/// possible. If too few are free, as with time slices, rows are added above the pool, up to a limit; further jobs share the rows
/// that are free first.
#[derive(Clone, Debug)]
pub(crate) struct Lanes {
    taken_until: Vec<i64>,
    /// The processors of a row.
    unit: u64,
    /// The most rows.
    most: usize,
}

impl Lanes {
    /// Returns the rows of a pool with so many processors.
    pub(crate) fn new(procs: u64) -> Lanes {
        let unit = procs.div_ceil(ROWS_MOST).max(1);
        let rows = usize::try_from(procs.div_ceil(unit)).unwrap_or(0);
        Lanes { taken_until: vec![i64::MIN; rows], unit, most: (2 * rows).max(rows + EXTRA_LEAST) }
    }

    /// Returns the number of rows.
    pub(crate) fn rows(&self) -> u32 {
        u32::try_from(self.taken_until.len()).unwrap_or(u32::MAX)
    }

    /// Returns the processors of a row.
    pub(crate) fn unit(&self) -> u64 {
        self.unit
    }

    /// Takes rows for a job that starts now, in the order of starts. Returns them as ranges, ends excluded.
    pub(crate) fn take(&mut self, start: i64, end: i64, procs: u64) -> Vec<(u32, u32)> {
        let (need, free_until) = (self.need(procs), free_until(start, end));
        let mut free: Vec<usize> = vec![];
        let mut run = 0;
        for (row, taken) in self.taken_until.iter().enumerate() {
            if *taken > free_until {
                run = 0;
                continue;
            }
            run += 1;
            if run == need {
                return self.occupy((row + 1 - need..=row).collect(), end);
            }
            if free.len() < need {
                free.push(row);
            }
        }
        while free.len() < need && self.taken_until.len() < self.most {
            free.push(self.taken_until.len());
            self.taken_until.push(i64::MIN);
        }
        if free.len() < need {
            let mut rows: Vec<usize> = (0..self.taken_until.len()).collect();
            rows.sort_by_key(|row| self.taken_until[*row]);
            rows.truncate(need);
            rows.sort_unstable();
            free = rows;
        }
        self.occupy(free, end)
    }

    /// Takes the rows that a job had before, if they are free.
    pub(crate) fn take_again(
        &mut self,
        start: i64,
        end: i64,
        procs: u64,
        rows: &[(u32, u32)],
    ) -> Option<Vec<(u32, u32)>> {
        let single = || rows.iter().flat_map(|(low, above)| *low..*above).map(|row| row as usize);
        let is_free =
            |row: usize| self.taken_until.get(row).is_some_and(|taken| *taken <= free_until(start, end));
        let fits = single().count() == self.need(procs) && single().all(is_free);
        fits.then(|| self.occupy(single().collect(), end))
    }

    /// Returns the number of rows for so many processors.
    fn need(&self, procs: u64) -> usize {
        usize::try_from(procs.div_ceil(self.unit).max(1)).unwrap_or(usize::MAX).min(self.most)
    }

    fn occupy(&mut self, rows: Vec<usize>, end: i64) -> Vec<(u32, u32)> {
        let mut ranges: Vec<(u32, u32)> = vec![];
        for row in rows {
            if let Some(taken) = self.taken_until.get_mut(row) {
                *taken = end.max(*taken);
            }
            let row = u32::try_from(row).unwrap_or(u32::MAX - 1);
            match ranges.last_mut() {
                Some((_, above)) if *above == row => *above = row + 1,
                _ => ranges.push((row, row + 1)),
            }
        }
        ranges
    }
}

/// Returns the latest end of a bar in a row that is free for the next one.
fn free_until(start: i64, end: i64) -> i64 {
    start.saturating_add(OVERLAP.min(end.saturating_sub(start) / 4))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn side_by_side_if_possible() {
        let mut lanes = Lanes::new(6);
        assert_eq!(lanes.take(0, 10, 2), [(0, 2)]);
        assert_eq!(lanes.take(0, 5, 1), [(2, 3)]);
        assert_eq!(lanes.take(0, 10, 1), [(3, 4)]);
        assert_eq!(lanes.take(5, 9, 2), [(4, 6)]);
        assert_eq!(lanes.take(10, 12, 4), [(0, 4)]);
        assert_eq!(lanes.take(10, 12, 3), [(4, 7)], "one more row");
    }

    #[test]
    fn rows_have_a_limit() {
        let mut lanes = Lanes::new(2);
        for start in 0..1000 {
            assert!(!lanes.take(start, 1_000_000, 1).is_empty());
        }
        assert_eq!(lanes.rows(), 18);
        assert_eq!(Lanes::new(0).take(0, 1, 5), [(0, 5)]);
    }

    #[test]
    fn a_row_of_a_large_machine_is_several_processors() {
        let mut lanes = Lanes::new(10_000);
        assert_eq!((lanes.rows(), lanes.unit()), (1000, 10));
        assert_eq!(lanes.take(0, 1, 25), [(0, 3)]);
    }

    proptest! {
        #[test]
        fn no_two_bars_overlap(mut jobs in prop::collection::vec((0i64..50, 1i64..20, 1u64..6), 1..60)) {
            jobs.sort_unstable();
            let mut lanes = Lanes { most: 1000, ..Lanes::new(8) };
            let mut bars = vec![];
            for (start, length, procs) in jobs {
                let rows = lanes.take(start, start + length, procs);
                prop_assert_eq!(rows.iter().map(|(low, above)| u64::from(above - low)).sum::<u64>(), procs);
                for (end, others) in &bars {
                    let others: &Vec<(u32, u32)> = others;
                    let apart = |(low, above): &(u32, u32)| others.iter().all(|(l, a)| a <= low || above <= l);
                    prop_assert!(*end <= start + length / 4 || rows.iter().all(apart));
                }
                bars.push((start + length, rows));
            }
        }
    }
}
