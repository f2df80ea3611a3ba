//! Whose turn it is. No clock and no process: instants come with the calls, and what is to be done is returned.

use std::collections::{BTreeMap, BTreeSet};

use miserly_engine::{Attempt, Turns};
use miserly_launch::BootTime;

use super::super::order;

/// Rows that take turns, in the order of their numbers and then from the first again.
#[derive(Debug, Default)]
pub(super) struct Rotation {
    turns: Turns,
    /// The row whose turn it is, as long as it is used.
    present: u32,
    /// When its turn ends; never, where it has all of the time.
    ends: Option<BootTime>,
    /// Whether each job runs, as it was told last; of the others nobody knows.
    runs: BTreeMap<Attempt, bool>,
}

/// Who is to stop, and who goes on when they have.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Switch {
    pub(super) stop: Vec<Attempt>,
    pub(super) go: Vec<Attempt>,
}

impl Rotation {
    /// When the turn ends, if nothing else happens.
    pub(super) fn ends(&self) -> Option<BootTime> {
        self.ends
    }

    /// These take turns from now on, of which the `fresh` began stopped. The row whose turn it is keeps it, unless it is used no more.
    pub(super) fn take(&mut self, turns: Turns, fresh: &BTreeSet<Attempt>) -> Switch {
        self.turns = turns;
        let rows = &self.turns.rows;
        self.runs.retain(|attempt, _| rows.values().any(|row| row.contains(attempt)));
        for attempt in rows.values().flatten().filter(|attempt| fresh.contains(attempt)) {
            self.runs.entry(*attempt).or_insert(false);
        }
        if rows.len() <= 1 {
            self.ends = None;
        }
        if rows.contains_key(&self.present) { self.switch() } else { self.next() }
    }

    /// The turn is over, and it is the next row's.
    pub(super) fn next(&mut self) -> Switch {
        let rows = &self.turns.rows;
        let mut after = rows.range(self.present.saturating_add(1)..).chain(rows);
        self.present = after.next().map_or(0, |(slot, _)| *slot);
        self.ends = None;
        self.switch()
    }

    /// The row whose turn it is runs since then: its turn is counted from there, if it has just begun.
    pub(super) fn begun(&mut self, now: BootTime) {
        if self.ends.is_none() && self.turns.rows.len() > 1 {
            self.ends = Some(now.after(order::duration(self.turns.quantum)));
        }
    }

    /// What is to be done so that those run whose turn it is, and no others.
    fn switch(&mut self) -> Switch {
        let mut switch = Switch::default();
        let Some(row) = self.turns.rows.get(&self.present) else { return switch };
        let all: BTreeSet<&Attempt> = self.turns.rows.values().flatten().collect();
        for attempt in all {
            let runs = row.contains(attempt);
            if self.runs.insert(*attempt, runs) != Some(runs) {
                if runs { &mut switch.go } else { &mut switch.stop }.push(*attempt);
            }
        }
        switch
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::Span;

    use super::*;

    fn job(job: i64) -> Attempt {
        Attempt { job, nth: 1 }
    }

    fn turns(rows: &[(u32, &[i64])]) -> Turns {
        let row = |(slot, jobs): &(u32, &[i64])| (*slot, jobs.iter().map(|number| job(*number)).collect());
        Turns { quantum: Span::from_ticks(10), rows: rows.iter().map(row).collect() }
    }

    /// One in which these are told to be so, all of them begun stopped, from instant 0 on.
    fn rotation(rows: &[(u32, &[i64])]) -> Rotation {
        let mut rotation = Rotation::default();
        take(&mut rotation, rows);
        rotation.begun(BootTime(0));
        rotation
    }

    fn take(rotation: &mut Rotation, rows: &[(u32, &[i64])]) -> (Vec<i64>, Vec<i64>) {
        let turns = turns(rows);
        let fresh = turns.rows.values().flatten().copied().collect();
        numbers(&rotation.take(turns, &fresh))
    }

    fn numbers(switch: &Switch) -> (Vec<i64>, Vec<i64>) {
        let of = |all: &[Attempt]| all.iter().map(|attempt| attempt.job).collect();
        (of(&switch.stop), of(&switch.go))
    }

    #[test]
    fn rows_take_turns_and_who_is_in_both_runs_on() {
        let mut rotation = rotation(&[(0, &[1, 2]), (1, &[2, 3]), (4, &[4])]);
        assert_eq!(rotation.ends(), Some(BootTime(10)));
        assert_eq!(numbers(&rotation.next()), (vec![1], vec![3]));
        rotation.begun(BootTime(12));
        assert_eq!(rotation.ends(), Some(BootTime(22)));
        assert_eq!(numbers(&rotation.next()), (vec![2, 3], vec![4]));
        assert_eq!(numbers(&rotation.next()), (vec![4], vec![1, 2]));
    }

    #[test]
    fn one_row_has_all_of_the_time() {
        let mut rotation = rotation(&[(3, &[1, 2])]);
        assert_eq!(rotation.ends(), None);
        assert_eq!(take(&mut rotation, &[(3, &[1, 2]), (5, &[3])]), (vec![], vec![]));
        rotation.begun(BootTime(100));
        assert_eq!(rotation.ends(), Some(BootTime(110)));
        assert_eq!(take(&mut rotation, &[(3, &[1])]), (vec![], vec![]));
        rotation.begun(BootTime(105));
        assert_eq!(rotation.ends(), None);
    }

    #[test]
    fn what_changes_in_the_row_whose_turn_it_is_counts_at_once() {
        let mut rotation = rotation(&[(0, &[1]), (1, &[2])]);
        assert_eq!(take(&mut rotation, &[(0, &[2, 3]), (1, &[1])]), (vec![1], vec![2, 3]));
        rotation.begun(BootTime(5));
        assert_eq!(rotation.ends(), Some(BootTime(10)));
    }

    #[test]
    fn a_row_that_is_used_no_more_leaves_its_turn_to_the_next() {
        let mut rotation = rotation(&[(0, &[1]), (1, &[2]), (2, &[3])]);
        rotation.next();
        assert_eq!(take(&mut rotation, &[(0, &[1, 2]), (2, &[3])]), (vec![2], vec![3]));
        rotation.begun(BootTime(7));
        assert_eq!(rotation.ends(), Some(BootTime(17)));
        assert_eq!(take(&mut rotation, &[(0, &[1, 2])]), (vec![], vec![1, 2]));
        assert_eq!(take(&mut rotation, &[]), (vec![], vec![]));
    }

    #[test]
    fn of_jobs_from_before_nobody_knows_so_all_are_told() {
        let mut rotation = Rotation::default();
        let switch = rotation.take(turns(&[(0, &[1]), (1, &[2])]), &BTreeSet::new());
        assert_eq!(numbers(&switch), (vec![2], vec![1]));
    }

    #[test]
    fn another_attempt_is_another_one() {
        let mut rotation = rotation(&[(0, &[1])]);
        let mut next = turns(&[]);
        let again = Attempt { job: 1, nth: 2 };
        next.rows.insert(0, [again].into());
        assert_eq!(rotation.take(next, &[again].into()).go, [again]);
    }
}
