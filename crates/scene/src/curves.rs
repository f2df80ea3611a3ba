//! The curves below a chart: processors held and reserved, GPUs held, jobs that wait, and starts against their promises.

use serde::{Serialize, Serializer};

use crate::{Job, Part, QueueStep, Schedule, State};

/// The curves of a pool. Each is a step function of time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Curves {
    held: Steps,
    reserved: Steps,
    gpus: Steps,
    waiting: Steps,
    requested: Steps,
    early: Steps,
    late: Steps,
}

/// A part of the curves of a pool: means of equal parts of the time, in tenths, as runs of (columns, value).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CurvePart {
    /// The processors of jobs in their windows; behind the present the most that they may hold.
    pub held: Vec<(u32, i64)>,
    /// The processors of promised and planned windows.
    pub reserved: Vec<(u32, i64)>,
    /// The GPUs of jobs in their windows.
    pub gpus: Vec<(u32, i64)>,
    /// The jobs from their submissions to their starts.
    pub waiting: Vec<(u32, i64)>,
    /// The processors that these jobs request.
    pub requested: Vec<(u32, i64)>,
    /// The jobs that started and whose promised start is still to come.
    pub early: Vec<(u32, i64)>,
    /// The jobs whose promised start has passed, and that have not started.
    pub late: Vec<(u32, i64)>,
}

/// The changes of one pool before they are sorted.
#[derive(Default)]
struct Changes {
    held: Vec<(i64, i64)>,
    reserved: Vec<(i64, i64)>,
    gpus: Vec<(i64, i64)>,
    waiting: Vec<(i64, i64)>,
    requested: Vec<(i64, i64)>,
    early: Vec<(i64, i64)>,
    late: Vec<(i64, i64)>,
}

impl Curves {
    /// Returns the curves of each pool; none of slots. O(n log n) for n jobs.
    pub fn of_pools(schedule: &Schedule<'_>) -> Vec<Curves> {
        if schedule.pools.iter().any(|pool| pool.slots > 1) {
            return vec![];
        }
        let mut pools: Vec<Changes> = schedule.pools.iter().map(|_| Changes::default()).collect();
        for job in schedule.jobs.iter() {
            if let Some(pool) = pools.get_mut(job.pool) {
                pool.add(job, schedule.now);
            }
        }
        if let (Some(pool), Some(queue)) = (pools.first_mut(), &schedule.queue) {
            pool.waiting = changes(queue, |step| step.jobs);
            pool.requested = changes(queue, |step| step.procs);
        }
        let curves = |pool: Changes| Curves {
            held: Steps::new(pool.held),
            reserved: Steps::new(pool.reserved),
            gpus: Steps::new(pool.gpus),
            waiting: Steps::new(pool.waiting),
            requested: Steps::new(pool.requested),
            early: Steps::new(pool.early),
            late: Steps::new(pool.late),
        };
        pools.into_iter().map(curves).collect()
    }

    /// Returns the means of `columns` parts of `column` milliseconds from an instant on. O(columns log n).
    pub fn part(&self, from: i64, column: i64, columns: usize) -> CurvePart {
        let means = |steps: &Steps| steps.means(from, column, columns);
        CurvePart {
            held: means(&self.held),
            reserved: means(&self.reserved),
            gpus: means(&self.gpus),
            waiting: means(&self.waiting),
            requested: means(&self.requested),
            early: means(&self.early),
            late: means(&self.late),
        }
    }

    /// Returns the most jobs that wait, the most processors that they request, and the most jobs that started before or after their promised
    /// start.
    pub fn most(&self) -> [i64; 3] {
        let most = |steps: &Steps| steps.levels().map(|(_, level)| level).max().unwrap_or(0);
        [most(&self.waiting), most(&self.requested), most(&self.early).max(most(&self.late))]
    }

    /// Returns whether a job waits at any time.
    pub(crate) fn has_queue(&self) -> bool {
        self.waiting.levels().any(|(_, jobs)| jobs > 0)
    }

    /// Returns the mean numbers of held processors and of waiting jobs, in tenths.
    pub(crate) fn means(&self, from: i64, to: i64) -> [i64; 2] {
        [self.held.mean(from, to), self.waiting.mean(from, to)]
    }
}

impl Changes {
    fn add(&mut self, job: &Job, now: i64) {
        let [procs, gpus] = [job.procs, job.gpus].map(|count| i64::try_from(count).unwrap_or(i64::MAX));
        let started = job.start.filter(|_| !job.state.is_before_start());
        for part in job.parts() {
            let held = i64::try_from(part.procs).unwrap_or(i64::MAX);
            let (from, to) = (part.start.unwrap_or(now), part.end.unwrap_or(now));
            add(&mut self.held, from, to, held);
            add(&mut self.gpus, from, to, gpus);
        }
        if let Some(start) = started.filter(|_| job.stays.is_empty()) {
            let known = job.end.unwrap_or(now);
            let end = if job.state == State::Ended { known } else { known.max(now) };
            add(&mut self.held, start, end, procs);
            add(&mut self.gpus, start, end, gpus);
        }
        let planned = job.window().filter(|_| job.state.is_before_start() && job.state != State::Held);
        if let Some(from) = planned.map(|from| from.max(now)) {
            add(&mut self.reserved, from, from.saturating_add(job.limit), procs);
        }
        let until = started.or(planned.map(|from| from.max(now)));
        let without = if job.state == State::Ended { job.end.unwrap_or(now) } else { now };
        for (changes, by) in [(&mut self.waiting, 1), (&mut self.requested, procs)] {
            // It waits again after each attempt that is not its last one.
            let mut from = job.submitted;
            for stay in job.stays.iter().take_while(|stay| Some(stay.from) < job.start) {
                add(changes, from, stay.from, by);
                from = stay.to;
            }
            add(changes, from, until.unwrap_or(without), by);
        }
        let is_first = job.part == Part::Run && job.whole.is_none_or(|whole| Some(whole.start) == job.start);
        if let Some(promised) = job.promised_first.or(job.promised).filter(|_| is_first) {
            let start = started.and(job.first_start()).unwrap_or(without);
            if started.is_some() {
                add(&mut self.early, start, promised, 1);
            }
            add(&mut self.late, promised, start, 1);
        }
    }
}

/// Returns the changes of a value from step to step.
fn changes(queue: &[QueueStep], value: fn(&QueueStep) -> i64) -> Vec<(i64, i64)> {
    let before = std::iter::once(0).chain(queue.iter().map(value));
    queue.iter().zip(before).map(|(step, before)| (step.at, value(step) - before)).collect()
}

fn add(changes: &mut Vec<(i64, i64)>, from: i64, to: i64, by: i64) {
    if from < to && by != 0 {
        changes.extend([(from, by), (to, -by)]);
    }
}

/// A step function: from each instant on a level, and the area up to that instant.
#[derive(Clone, Debug, Default)]
struct Steps(Vec<(i64, i64, i64)>);

impl Steps {
    fn new(mut changes: Vec<(i64, i64)>) -> Steps {
        changes.sort_unstable_by_key(|(at, _)| *at);
        let mut steps: Vec<(i64, i64, i64)> = vec![];
        for (at, by) in changes {
            match steps.last_mut() {
                Some((last, level, _)) if *last == at => *level = level.saturating_add(by),
                Some(&mut step) => steps.push((at, step.1.saturating_add(by), area_at(step, at))),
                None => steps.push((at, by, 0)),
            }
        }
        steps.shrink_to_fit();
        Steps(steps)
    }

    /// Returns the area up to an instant.
    fn area(&self, at: i64) -> i64 {
        let next = self.0.partition_point(|(from, ..)| *from <= at);
        next.checked_sub(1).map_or(0, |place| area_at(self.0[place], at))
    }

    /// Returns the instants at which the level changes, and the levels.
    fn levels(&self) -> impl Iterator<Item = (i64, i64)> {
        self.0.iter().map(|&(at, level, _)| (at, level))
    }

    fn mean(&self, from: i64, to: i64) -> i64 {
        tenths(self.area(to).saturating_sub(self.area(from)), to.saturating_sub(from))
    }

    fn means(&self, from: i64, column: i64, columns: usize) -> Vec<(u32, i64)> {
        let mut runs: Vec<(u32, i64)> = vec![];
        let (mut at, mut before) = (from, self.area(from));
        for _ in 0..columns {
            let next = at.saturating_add(column);
            let area = self.area(next);
            let mean = tenths(area.saturating_sub(before), column);
            match runs.last_mut() {
                Some((count, last)) if *last == mean => *count += 1,
                _ => runs.push((1, mean)),
            }
            (at, before) = (next, area);
        }
        runs
    }
}

/// A list of the instants and the levels.
impl Serialize for Steps {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.levels())
    }
}

fn area_at((from, level, area): (i64, i64, i64), at: i64) -> i64 {
    area.saturating_add(level.saturating_mul(at.saturating_sub(from)))
}

fn tenths(area: i64, length: i64) -> i64 {
    let length = i128::from(length.max(1));
    i64::try_from((i128::from(area) * 10 + length / 2).div_euclid(length)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn job(procs: u64, state: State, submitted: i64, start: i64, end: i64) -> Job {
        Job { procs, state, submitted, start: Some(start), end: Some(end), ..Job::default() }
    }

    #[test]
    fn a_job_waits_and_holds_its_processors() {
        let promised =
            Job { start: None, end: None, promised: Some(60), limit: 20, ..job(2, State::Waiting, 40, 0, 0) };
        let jobs = [job(4, State::Ended, 0, 10, 30), job(3, State::Running, 20, 35, 50), promised];
        let schedule = Schedule { now: 40, ..Schedule::of_jobs(8, jobs) };
        let part = Curves::of_pools(&schedule)[0].part(0, 10, 9);
        assert_eq!(part.held, [(1, 0), (2, 40), (1, 15), (1, 30), (4, 0)]);
        assert_eq!(part.reserved, [(6, 0), (2, 20), (1, 0)]);
        assert_eq!(part.waiting, [(1, 10), (1, 0), (1, 10), (1, 5), (2, 10), (3, 0)]);
        assert_eq!(part.requested, [(1, 40), (1, 0), (1, 30), (1, 15), (2, 20), (3, 0)]);
        let step = |at, jobs| QueueStep { at, jobs, procs: 3 * jobs };
        let queue = Some(vec![step(0, 5), step(20, 2), step(50, 0)]);
        let part = Curves::of_pools(&Schedule { queue, ..schedule })[0].part(0, 10, 9);
        assert_eq!(
            (part.waiting, part.requested),
            (vec![(2, 50), (3, 20), (4, 0)], vec![(2, 150), (3, 60), (4, 0)])
        );
    }

    #[test]
    fn a_job_holds_its_gpus_while_it_runs() {
        let with = |gpus, job| Job { gpus, ..job };
        let jobs = [
            with(2, job(4, State::Ended, 0, 10, 30)),
            with(1, job(1, State::Running, 0, 20, 50)),
            with(8, Job { start: None, end: None, promised: Some(60), ..job(1, State::Waiting, 0, 0, 0) }),
        ];
        let schedule = Schedule { now: 40, ..Schedule::of_jobs(8, jobs) };
        let part = Curves::of_pools(&schedule)[0].part(0, 10, 7);
        assert_eq!(part.gpus, [(1, 0), (1, 20), (1, 30), (2, 10), (2, 0)]);
    }

    #[test]
    fn starts_are_compared_with_their_promises() {
        let promised = |at, job| Job { promised_first: Some(at), ..job };
        let jobs = [
            promised(25, job(1, State::Ended, 0, 10, 30)),
            promised(5, job(1, State::Ended, 0, 15, 30)),
            promised(60, job(1, State::Running, 0, 35, 90)),
            promised(20, Job { start: None, end: None, ..job(1, State::Waiting, 0, 0, 0) }),
            promised(70, Job { start: None, end: None, ..job(1, State::Waiting, 0, 0, 0) }),
        ];
        let schedule = Schedule { now: 40, ..Schedule::of_jobs(8, jobs) };
        let curves = &Curves::of_pools(&schedule)[0];
        let part = curves.part(0, 5, 14);
        assert_eq!(part.early, [(2, 0), (3, 10), (2, 0), (5, 10), (2, 0)]);
        assert_eq!(part.late, [(1, 0), (2, 10), (1, 0), (4, 10), (6, 0)]);
        assert_eq!(curves.most(), [5, 5, 1]);
    }

    proptest! {
        /// The mean of a column is that of its milliseconds.
        #[test]
        fn means_are_those_of_single_instants(
            jobs in prop::collection::vec((1u64..5, 0i64..50, 1i64..30), 1..20),
            from in -20i64..80,
            column in 1i64..15,
        ) {
            let ran = jobs.iter().map(|&(procs, start, length)| job(procs, State::Ended, start, start, start + length));
            let part = Curves::of_pools(&Schedule::of_jobs(64, ran))[0].part(from, column, 8);
            let means: Vec<i64> = part.held.iter().flat_map(|&(count, mean)| vec![mean; count as usize]).collect();
            for (place, mean) in (0..).zip(means) {
                let instants = from + place * column..from + (place + 1) * column;
                let held = |at: i64| -> i64 {
                    jobs.iter().filter(|(_, start, length)| (*start..start + length).contains(&at)).map(|(procs, ..)| i64::try_from(*procs).unwrap()).sum()
                };
                prop_assert_eq!(mean, (instants.map(held).sum::<i64>() * 10 + column / 2) / column);
            }
        }
    }
}
