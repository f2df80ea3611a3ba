//! The model of user estimates of Tsafrir, Etsion and Feitelson, 2005.

use std::collections::BTreeSet;

use crate::generate::random::Stream;

/// Streams of random numbers. Their values are part of the meaning of a seed.
mod purpose {
    pub(super) const POPULARITY: u64 = 51;
    pub(super) const TAIL: u64 = 52;
    pub(super) const JOBS: u64 = 53;
}

/// The estimates that most jobs use.
const POPULAR: usize = 20;

/// Percentage of the jobs with a popular estimate.
const POPULAR_JOBS: f64 = 89.0;

const MINUTE: u64 = 60;
const HOUR: u64 = 3600;

/// Popular estimates of all four logs of the paper, in minutes.
const JOINT: [u64; 15] = [5, 10, 15, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 720, 1080];

/// Their complement: the multiples of these minutes, in this order, from the maximum down.
const ROUND: [u64; 10] = [12_000, 6000, 3000, 600, 300, 120, 60, 20, 10, 5];

/// The rank in popularity of each popular estimate in the logs SDSC-SP2, CTC, KTH and Blue Horizon:
/// the maximum first, then the others by their time.
const RANKS: [[usize; 4]; POPULAR] = [
    [3, 1, 1, 1],
    [1, 3, 4, 6],
    [4, 4, 10, 5],
    [17, 2, 14, 3],
    [13, 12, 20, 7],
    [7, 9, 2, 2],
    [8, 8, 3, 18],
    [18, 18, 7, 19],
    [2, 6, 12, 4],
    [6, 7, 6, 11],
    [16, 11, 19, 20],
    [10, 20, 5, 9],
    [5, 16, 18, 10],
    [15, 5, 16, 14],
    [14, 14, 9, 13],
    [19, 13, 17, 16],
    [11, 10, 15, 15],
    [12, 15, 13, 17],
    [9, 17, 8, 8],
    [20, 19, 11, 12],
];

/// Numbers of jobs with the number of different estimates, linear between them.
const DIFFERENT: [(f64, f64); 7] = [
    (0.0, 0.0),
    (20.0, 10.0),
    (200.0, 20.0),
    (1000.0, 35.0),
    (10_000.0, 90.0),
    (70_000.0, 340.0),
    (250_000.0, 565.0),
];

/// The parameters of the estimates of a log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tsafrir {
    /// Greatest estimate in seconds, at least an hour.
    pub(crate) most: u64,
    /// The part of the jobs that have it, 0 to 1, if it is known.
    pub(crate) share: Option<f64>,
}

impl Tsafrir {
    /// Returns an estimate in seconds for each job, given the runtimes in seconds.
    ///
    /// No estimate is below its runtime, except where the runtime is above the greatest estimate. Where
    /// the long estimates of the model are too few for the long jobs, more jobs have the greatest.
    pub(crate) fn assign(self, runtimes: &[u64], seed: u64) -> Vec<u64> {
        let counts = counts(&self.distribution(runtimes.len(), seed), runtimes.len());
        let mut drawn: Vec<u64> =
            counts.into_iter().flat_map(|(estimate, jobs)| std::iter::repeat_n(estimate, jobs)).collect();
        drawn.sort_unstable_by(|a, b| b.cmp(a));
        let mut jobs: Vec<usize> = (0..runtimes.len()).collect();
        jobs.sort_by_key(|&job| std::cmp::Reverse(runtimes[job]));
        let runtime = |place: usize| runtimes[jobs[place]].min(self.most);
        let fits = |place: &usize| runtime(*place) <= drawn[*place];
        let fitting: Vec<u64> = (0..jobs.len()).filter(fits).map(|place| drawn[place]).collect();
        let mut estimates = vec![self.most; jobs.len() - fitting.len()];
        estimates.extend(fitting);
        let mut stream = Stream::new(seed, purpose::JOBS);
        let mut assigned = vec![0; runtimes.len()];
        let mut end = 0;
        for place in 0..jobs.len() {
            // The estimates before `end` suit this job, and those before `place` are taken.
            end += estimates[end..].iter().take_while(|&&estimate| estimate >= runtime(place)).count();
            estimates.swap(place, place + stream.below(end - place));
            assigned[jobs[place]] = estimates[place];
        }
        assigned
    }

    /// Returns the estimates in seconds with their parts of the jobs, which sum to 1.
    fn distribution(self, jobs: usize, seed: u64) -> Vec<(u64, f64)> {
        let different = different(jobs).max(1);
        let mut head = popular_times(self.most);
        head.truncate(different);
        let mut tail = tail_times(self.most, different - head.len(), &head);
        let popular = if tail.is_empty() { 100.0 } else { POPULAR_JOBS };
        let shares = self.popular_shares(head.len(), popular);
        let ranks = self.ranks(&shares, seed);
        let mut all: Vec<(u64, f64)> =
            head.iter().zip(ranks).map(|(time, rank)| (*time, shares[rank])).collect();
        let mut stream = Stream::new(seed, purpose::TAIL);
        for last in (1..tail.len()).rev() {
            tail.swap(last, stream.below(last + 1));
        }
        let weight = |rank: usize| (rank as f64).powf(-2.267);
        let weights = (POPULAR + 1..).take(tail.len()).map(weight).sum::<f64>();
        let left = (1.0 - shares.iter().sum::<f64>()).max(0.0);
        all.extend(tail.iter().zip(POPULAR + 1..).map(|(time, rank)| (*time, left * weight(rank) / weights)));
        let sum = all.iter().map(|(_, share)| share).sum::<f64>();
        all.into_iter().map(|(time, share)| (time, share / sum)).collect()
    }

    /// Returns the parts of the jobs that have a popular estimate, by popularity; `all` is the percentage of their sum.
    ///
    /// A known share of the greatest estimate is at its place in this order.
    fn popular_shares(self, number: usize, all: f64) -> Vec<f64> {
        let share = |rank: usize| 14.0491 * (-0.177_531 * rank as f64).exp() + 0.462_513;
        let others: Vec<f64> = (2..=number).map(share).collect();
        let sum = others.iter().sum::<f64>();
        let most = self.share.unwrap_or((all - sum) / 100.0);
        let scale = self.share.map_or(0.01, |share| ((all / 100.0 - share) / sum).max(0.0));
        let mut shares: Vec<f64> = others.iter().map(|other| other * scale).collect();
        shares.push(most);
        shares.sort_by(|a, b| b.total_cmp(a));
        shares
    }

    /// Returns the position in the shares for each popular estimate: the greatest first, then by time.
    ///
    /// Each rank is drawn from those that the logs of the paper have up to this time and that are
    /// left, the better of two draws. A rank that no later time has in any log is taken first.
    fn ranks(self, shares: &[f64], seed: u64) -> Vec<usize> {
        let mut stream = Stream::new(seed, purpose::POPULARITY);
        let of_most = self.share.and_then(|share| shares.iter().position(|&other| other <= share));
        let first = of_most.map_or(1, |position| position + 1);
        let mut ranks = vec![first];
        let mut pool: Vec<usize> = RANKS[0].into_iter().filter(|&rank| rank != first).collect();
        let last_time = |rank: usize| RANKS.iter().rposition(|row| row.contains(&rank)).unwrap_or(0);
        for (time, row) in RANKS.iter().enumerate().skip(1) {
            pool.extend(row.iter().filter(|rank| !ranks.contains(rank)));
            let due = (1..=POPULAR).find(|&rank| last_time(rank) <= time && !ranks.contains(&rank));
            let rank = due.unwrap_or_else(|| {
                let mut drawn = || pool[stream.below(pool.len())];
                drawn().min(drawn())
            });
            ranks.push(rank);
            pool.retain(|&other| other != rank);
        }
        // With fewer estimates than ranks, only the order of the ranks counts.
        ranks.truncate(shares.len());
        ranks.iter().map(|rank| ranks.iter().filter(|other| *other < rank).count()).collect()
    }
}

/// Returns the number of different estimates of so many jobs.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 565")]
fn different(jobs: usize) -> usize {
    let jobs = jobs as f64;
    let between = DIFFERENT.windows(2).find(|pair| jobs <= pair[1].0);
    let number = between.map_or(DIFFERENT[DIFFERENT.len() - 1].1, |pair| {
        let ((from, least), (to, most)) = (pair[0], pair[1]);
        least + (jobs - from) * (most - least) / (to - from)
    });
    number.round() as usize
}

/// Returns the popular estimates in seconds: the greatest first, then by time.
fn popular_times(most: u64) -> Vec<u64> {
    let joint = JOINT.map(|minutes| minutes * MINUTE);
    let round = ROUND.iter().flat_map(|minutes| {
        let step = minutes * MINUTE;
        (1..=most / step).rev().map(move |multiple| multiple * step)
    });
    let mut others = BTreeSet::new();
    for time in joint.into_iter().chain(round).filter(|&time| time < most) {
        if others.len() + 1 == POPULAR {
            break;
        }
        others.insert(time);
    }
    std::iter::once(most).chain(others).collect()
}

/// Returns the other estimates in seconds: minutes, moved by seconds where two would be the same.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and `most`")]
fn tail_times(most: u64, number: usize, head: &[u64]) -> Vec<u64> {
    let a = 1.0 + 12.1039 * ((number + head.len()) as f64).powf(-0.6026);
    let mut times = BTreeSet::new();
    for rank in 1..=number {
        let x = rank as f64 / number as f64;
        let time = (a - 1.0) * x / (a - x) * most as f64;
        let minute = (time / 60.0).round() as u64 * MINUTE;
        let moved = [0, 30, -30, 20, -20, 10, -10].map(|by| minute.saturating_add_signed(by));
        let free = |time: &u64| (1..most).contains(time) && !times.contains(time) && !head.contains(time);
        times.extend(moved.into_iter().find(free));
    }
    times.into_iter().collect()
}

/// Returns the number of jobs of each estimate: the whole part of its share, and one more for the
/// greatest remainders.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of the jobs")]
fn counts(shares: &[(u64, f64)], jobs: usize) -> Vec<(u64, usize)> {
    let exact = |share: f64| share * jobs as f64;
    let mut counts: Vec<(u64, usize)> =
        shares.iter().map(|(time, share)| (*time, exact(*share) as usize)).collect();
    let left = jobs.saturating_sub(counts.iter().map(|(_, count)| count).sum());
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by(|&a, &b| exact(shares[b].1).fract().total_cmp(&exact(shares[a].1).fract()));
    order.iter().cycle().take(left).for_each(|&at| counts[at].1 += 1);
    counts
}

/// The least greatest estimate in seconds.
pub(crate) const LEAST: u64 = HOUR;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{JobOptions, Jobs, Trace};

    const DAY: Tsafrir = Tsafrir { most: 18 * HOUR, share: None };

    /// 15 joint estimates with the greatest, and the multiples of 10, 5 and 2 hours below it.
    #[test]
    fn the_popular_estimates_of_a_machine_with_18_hours() {
        let minutes = [5, 10, 15, 20, 30].map(|minutes| minutes * MINUTE);
        let hours = [1, 2, 3, 4, 5, 6, 8, 10, 12, 13, 14, 15, 16, 17].map(|hours| hours * HOUR);
        let expected: Vec<u64> = [18 * HOUR].into_iter().chain(minutes).chain(hours).collect();
        assert_eq!(popular_times(18 * HOUR), expected);
    }

    /// 89 % of the jobs have one of 20 estimates; the rest is spread over the others.
    #[test]
    fn the_shares_are_those_of_the_paper() {
        let all = DAY.distribution(70_000, 1);
        assert_eq!(all.len(), 340);
        let sum = |part: &[(u64, f64)]| part.iter().map(|(_, share)| share).sum::<f64>();
        assert!((sum(&all[..POPULAR]) - 0.89).abs() < 1e-9 && (sum(&all) - 1.0).abs() < 1e-9);
        // The greatest estimate has the most jobs, the second rank 14.0491 e^-0.355 + 0.4625 percent.
        let mut shares: Vec<f64> = all[..POPULAR].iter().map(|(_, share)| *share).collect();
        shares.sort_by(|a, b| b.total_cmp(a));
        assert_eq!(all[0], (18 * HOUR, shares[0]));
        assert!((shares[1] - 0.103_132).abs() < 1e-5, "{}", shares[1]);
        let known = Tsafrir { share: Some(0.03), ..DAY }.distribution(70_000, 1);
        assert!((known[0].1 - 0.03).abs() < 1e-9 && (sum(&known[..POPULAR]) - 0.89).abs() < 1e-9);
    }

    #[test]
    fn each_popularity_is_given_once_for_each_seed() {
        let shares = DAY.popular_shares(POPULAR, POPULAR_JOBS);
        let mut seen = BTreeSet::new();
        for seed in 0..200 {
            let ranks = DAY.ranks(&shares, seed);
            assert_eq!(ranks[0], 0);
            assert_eq!(ranks.iter().collect::<BTreeSet<_>>().len(), POPULAR, "{ranks:?}");
            seen.insert(ranks);
        }
        assert!(seen.len() > 150, "{}", seen.len());
    }

    #[test]
    fn the_numbers_of_different_estimates() {
        assert_eq!([0, 20, 110, 1000, 5500, 300_000].map(different), [0, 10, 15, 35, 63, 565]);
    }

    #[test]
    fn counts_are_whole_and_complete() {
        assert_eq!(counts(&[(1, 0.5), (2, 0.3), (3, 0.2)], 5), [(1, 3), (2, 1), (3, 1)]);
        assert_eq!(counts(&[(1, 0.26), (2, 0.74)], 1), [(1, 0), (2, 1)]);
    }

    /// Where sorted runtimes do not exceed the sorted estimates of the distribution, the jobs have these.
    /// Elsewhere some have the greatest instead.
    #[test]
    fn each_job_has_an_estimate_of_the_distribution_that_it_keeps() {
        let (mut stream, mut exact) = (Stream::new(3, 99), 0);
        let logs = [(1, HOUR), (7, 2 * HOUR), (300, HOUR), (5000, 60 * HOUR)];
        let short_and_long = [20_000_000, 3_000_000].into_iter().flat_map(|part| logs.map(|log| (part, log)));
        for (part, (jobs, most)) in short_and_long {
            let mut runtimes: Vec<u64> =
                (0..jobs).map(|_| (stream.below(100) as u64).pow(3) * most / part).collect();
            let model = Tsafrir { most, share: None };
            for seed in 0..5 {
                let mut assigned = model.assign(&runtimes, seed);
                assert_eq!(assigned, model.assign(&runtimes, seed));
                assert!(runtimes.iter().zip(&assigned).all(|(runtime, estimate)| runtime <= estimate));
                let mut expected: Vec<u64> = counts(&model.distribution(jobs, seed), jobs)
                    .into_iter()
                    .flat_map(|(time, count)| vec![time; count])
                    .collect();
                assigned.sort_unstable();
                expected.sort_unstable();
                runtimes.sort_unstable();
                if runtimes.iter().zip(&expected).all(|(runtime, estimate)| runtime <= estimate) {
                    exact += 1;
                    assert_eq!(assigned, expected);
                } else {
                    assert!(assigned.iter().zip(&expected).all(|(assigned, expected)| assigned >= expected));
                }
            }
        }
        assert!((20..40).contains(&exact), "{exact}");
    }

    /// Half of the jobs run for 17 hours, and one beyond the greatest estimate.
    #[test]
    fn more_jobs_have_the_greatest_estimate_where_the_others_are_too_short() {
        let mut runtimes = vec![17 * HOUR; 50];
        runtimes.extend([60; 49]);
        runtimes.push(20 * HOUR);
        let assigned = DAY.assign(&runtimes, 1);
        assert!(
            runtimes.iter().zip(&assigned).all(|(runtime, estimate)| (*runtime).min(DAY.most) <= *estimate)
        );
        let greatest = |assigned: &[u64]| assigned.iter().filter(|&&estimate| estimate == DAY.most).count();
        assert!(greatest(&assigned) > greatest(&DAY.assign(&[60; 100], 1)));
        assert_eq!(Tsafrir { share: Some(1.0), ..DAY }.assign(&runtimes, 1), [18 * HOUR; 100]);
    }

    /// The estimates in seconds of the jobs of a log with these estimates, each with a runtime of 60 s.
    fn of_log(logged: &[i64], model: &str, drop: &str) -> Vec<i64> {
        let line = |(number, estimate): (i64, &i64)| {
            format!("{number} {number} -1 60 1 -1 -1 1 {estimate} -1 1 1 -1 -1 -1 -1 -1 -1\n")
        };
        let text: String = (1..).zip(logged).map(line).collect();
        let trace = Trace::memory("log", text.into_bytes());
        let (estimates, drop) = (model.parse().unwrap(), vec![drop.parse().unwrap()]);
        let options = JobOptions { procs: 4_u64.into(), estimates, drop, seed: 5, ..JobOptions::default() };
        let jobs = Jobs::new(&trace, true, options).unwrap();
        jobs.map(|job| job.unwrap().request.estimate.secs()).collect()
    }

    /// Half of the jobs have the greatest estimate of the log, 2 h. Without them it is 90 minutes.
    #[test]
    fn the_greatest_estimate_and_its_share_are_those_of_the_jobs_of_the_run() {
        let logged: Vec<i64> = (0..200).map(|job| if job % 2 == 0 { 7200 } else { 5400 - job }).collect();
        let all = of_log(&logged, "tsafrir", "job>200");
        assert_eq!(all.len(), 200);
        assert_eq!(all.iter().filter(|&&estimate| estimate == 7200).count(), 100);
        assert_eq!(of_log(&logged, "tsafrir", "estimate=7200").iter().max(), Some(&5399));
        let short = of_log(&logged, "tsafrir:1h:25", "job>100");
        assert_eq!(short.iter().filter(|&&estimate| estimate == 3600).count(), 25);
        assert_eq!(short.iter().max(), Some(&3600));
    }
}
