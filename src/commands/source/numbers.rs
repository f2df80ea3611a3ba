//! The numbers of jobs that a page of Slurm uses.

use std::collections::BTreeMap;

use miserly_slurm::Job;
use miserly_view::RUN_NUMBERS;

/// The tasks of one array that can have numbers at once. A browser rounds numbers above 2^53.
const TASKS_MOST: i64 = 9000;

/// The numbers of jobs. The number modulo [`RUN_NUMBERS`] is that of the job, or of its array.
///
/// If an array has too many tasks at once, the others have running numbers.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    by_id: BTreeMap<String, i64>,
    /// The free places of tasks, by the number of the array.
    arrays: BTreeMap<i64, Places>,
    /// The running numbers.
    others: i64,
}

/// Places of the tasks of an array.
#[derive(Debug, Default)]
struct Places {
    /// The highest place that was used.
    highest: i64,
    free: Vec<i64>,
    used: usize,
}

impl Numbers {
    /// Returns the number of a job. It keeps it until it is removed.
    pub(super) fn number(&mut self, job: &Job) -> i64 {
        if let Some(number) = self.by_id.get(&job.id) {
            return *number;
        }
        let number = self.new_number(job);
        self.by_id.insert(job.id.clone(), number);
        number
    }

    fn new_number(&mut self, job: &Job) -> i64 {
        let shown = job.array.as_ref().map_or(job.number, |(array, _)| *array);
        let shown = i64::try_from(shown).ok().filter(|shown| *shown < RUN_NUMBERS);
        let number = match (shown, &job.array) {
            (Some(shown), None) => Some(shown),
            (Some(shown), Some(_)) => self.arrays.entry(shown).or_default().take(shown),
            (None, _) => None,
        };
        number.unwrap_or_else(|| {
            self.others += 1;
            TASKS_MOST * RUN_NUMBERS + self.others
        })
    }

    /// Forgets a job that is not shown any more.
    pub(super) fn remove(&mut self, id: &str) {
        let Some(number) = self.by_id.remove(id) else { return };
        let (array, place) = (number % RUN_NUMBERS, number / RUN_NUMBERS);
        let Some(places) = self.arrays.get_mut(&array).filter(|_| (1..TASKS_MOST).contains(&place)) else {
            return;
        };
        places.free.push(place);
        places.used -= 1;
        if places.used == 0 {
            self.arrays.remove(&array);
        }
    }
}

impl Places {
    /// Takes a place. Returns the number, or `None` if no place is left.
    fn take(&mut self, array: i64) -> Option<i64> {
        let place = self.free.pop().unwrap_or(self.highest + 1);
        if place >= TASKS_MOST {
            return None;
        }
        self.highest = self.highest.max(place);
        self.used += 1;
        Some(place * RUN_NUMBERS + array)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(id: &str, number: u64, array: Option<u64>) -> Job {
        let array = array.map(|array| (array, "1".to_owned()));
        Job { id: id.to_owned(), number, array, ..Job::default() }
    }

    #[test]
    fn each_job_has_its_own_number_with_that_of_slurm_in_it() {
        let mut numbers = Numbers::default();
        assert_eq!(numbers.number(&job("12", 12, None)), 12);
        let first = numbers.number(&job("17_3000000", 18, Some(17)));
        let second = numbers.number(&job("17_4", 17, Some(17)));
        assert!(first != second && first % RUN_NUMBERS == 17 && second % RUN_NUMBERS == 17);
        assert_eq!(numbers.number(&job("17_4", 17, Some(17))), second, "it stays");
        numbers.remove("17_3000000");
        assert_eq!(numbers.number(&job("17_5", 17, Some(17))), first, "it is free again");
    }

    #[test]
    fn no_number_is_above_those_of_a_browser() {
        let mut numbers = Numbers::default();
        let all = (0..20_000).map(|task| numbers.number(&job(&format!("1_{task}"), 1, Some(1))));
        let all: std::collections::BTreeSet<i64> = all.collect();
        assert_eq!(all.len(), 20_000);
        assert!(all.last().is_some_and(|last| *last < 1 << 53));
    }
}
