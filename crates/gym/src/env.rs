//! Environments of learned schedulers, many in one call.

use std::ops::Range;
use std::sync::Arc;

use miserly_core::{draw, named_enum};

use crate::episode::Episode;
use crate::log::{Job, JobLog};

/// The jobs that an observation shows.
pub const SHOWN: usize = 128;

/// The features of a job in the observation `zhang20`.
pub const FEATURES: usize = 8;

/// The wait at which the feature of the wait is 1, in seconds.
const LONGEST_WAIT: f64 = 43_200.0;

/// The distance of features from 0 and 1.
const EDGE: f64 = 1e-5;

/// The streams of draws: the windows of environments.
const WINDOWS: i64 = 0x7769_6e64;

named_enum! {
    /// Which waiting jobs an observation shows if there are more than [`SHOWN`].
    pub enum Shown {
        /// The shortest and the narrowest in turn, as the published program does.
        Zhang20 "zhang20",
        /// The oldest half and the youngest half.
        HeadTail "head+tail",
    }
}

named_enum! {
    /// What the reward of an episode is the negative of.
    pub enum Reward {
        /// The mean bounded slowdown.
        BoundedSlowdown "bounded_slowdown",
        /// The mean slowdown.
        Slowdown "slowdown",
        /// The mean wait, in seconds.
        Wait "wait",
        /// The mean response, in seconds.
        Response "response",
        /// One minus the utilization.
        Utilization "utilization",
    }
}

impl Reward {
    /// Returns the reward of an episode that is done.
    pub fn measure(self, episode: &Episode) -> f64 {
        let mean = |value: fn(&Job, i64) -> f64| episode.mean(value);
        match self {
            Reward::BoundedSlowdown => -episode.mean_bounded_slowdown(),
            Reward::Slowdown => {
                -mean(|job, start| (start - job.submit + job.runtime) as f64 / job.runtime as f64)
            }
            Reward::Wait => -mean(|job, start| (start - job.submit) as f64),
            Reward::Response => -mean(|job, start| (start - job.submit + job.runtime) as f64),
            Reward::Utilization => episode.utilization_to_last_end() - 1.0,
        }
    }
}

/// How environments choose their windows and what they show.
#[derive(Clone, Debug)]
pub struct EnvOptions {
    /// The jobs of an episode.
    pub jobs: usize,
    /// Whether the environment backfills behind the committed job.
    pub backfills: bool,
    /// The jobs that observations show.
    pub shown: Shown,
    /// The reward at the end of an episode; 0 before.
    pub reward: Reward,
    /// The first jobs of the windows that may be drawn.
    pub starts: Range<usize>,
}

/// Environments that step together. Each episode is a window of the log, drawn by the seed.
#[derive(Debug)]
pub struct Envs {
    log: Arc<JobLog>,
    options: EnvOptions,
    seed: u64,
    each: Vec<Env>,
}

#[derive(Debug)]
struct Env {
    episode: Episode,
    /// The episodes of this environment since the last reset.
    count: u64,
    /// The positions in the queue of the jobs that are shown.
    shown: Vec<usize>,
}

/// The arrays of one step of one environment.
#[derive(Debug)]
pub struct Row<'a> {
    /// The features of [`SHOWN`] jobs.
    pub observation: &'a mut [f32],
    /// Whether each of them may be chosen: 1 or 0.
    pub mask: &'a mut [u8],
}

/// The result of a step of one environment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// The episode goes on.
    Goes,
    /// The episode ended with this reward, and the next one has begun.
    Ended(f64),
    /// The action is none of the shown jobs. Nothing has changed.
    Refused,
}

impl Envs {
    /// Creates so many environments.
    ///
    /// # Panics
    /// If there is no window to draw.
    pub fn new(log: Arc<JobLog>, count: usize, options: EnvOptions) -> Envs {
        assert!(!options.starts.is_empty() && options.starts.end + options.jobs <= log.jobs.len() + 1);
        let first = options.starts.start..options.starts.start + options.jobs;
        let episode = Episode::new(Arc::clone(&log), first, options.backfills);
        let env = || Env { episode: episode.clone(), count: 0, shown: vec![] };
        Envs { each: (0..count).map(|_| env()).collect(), log, options, seed: 0 }
    }

    /// Returns the number of environments.
    pub fn len(&self) -> usize {
        self.each.len()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.each.is_empty()
    }

    /// Begins the episodes of a seed.
    pub fn reset<'a>(&mut self, seed: u64, rows: impl Iterator<Item = Row<'a>>) {
        self.seed = seed;
        for (index, row) in rows.enumerate().take(self.each.len()) {
            self.each[index].count = 0;
            self.begin(index);
            self.observe(index, row);
        }
    }

    fn begin(&mut self, index: usize) {
        let env = &mut self.each[index];
        let of_env = (u64::try_from(index).unwrap_or(0) << 32) | env.count;
        let width = u64::try_from(self.options.starts.len()).unwrap_or(1);
        let first = self.options.starts.start
            + usize::try_from(draw(self.seed, WINDOWS, of_env) % width).unwrap_or(0);
        env.count += 1;
        env.episode =
            Episode::new(Arc::clone(&self.log), first..first + self.options.jobs, self.options.backfills);
    }

    /// Commits each environment to the job of its action. One whose episode ends begins the next one at once.
    pub fn step<'a>(
        &mut self,
        actions: &[i64],
        rows: impl Iterator<Item = Row<'a>>,
        mut result: impl FnMut(usize, Step),
    ) {
        for (index, (row, action)) in rows.zip(actions).enumerate().take(self.each.len()) {
            let env = &mut self.each[index];
            let position = usize::try_from(*action).ok().and_then(|action| env.shown.get(action).copied());
            let Some(position) = position else {
                result(index, Step::Refused);
                continue;
            };
            if env.episode.commit(position) {
                result(index, Step::Goes);
            } else {
                result(index, Step::Ended(self.options.reward.measure(&env.episode)));
                self.begin(index);
            }
            self.observe(index, row);
        }
    }

    fn observe(&mut self, index: usize, Row { observation, mask }: Row<'_>) {
        let env = &mut self.each[index];
        choose(&env.episode, self.options.shown, &mut env.shown);
        mask.fill(0);
        mask[..env.shown.len()].fill(1);
        let (filled, rest) = observation.split_at_mut(env.shown.len() * FEATURES);
        for (features, position) in filled.chunks_exact_mut(FEATURES).zip(&env.shown) {
            let job = env.episode.waiting(*position);
            features.copy_from_slice(&features_of(&env.episode, job));
        }
        for features in rest.chunks_exact_mut(FEATURES) {
            features.copy_from_slice(&[0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0]);
        }
    }
}

/// Chooses the jobs that are shown, as positions in the queue.
fn choose(episode: &Episode, shown: Shown, chosen: &mut Vec<usize>) {
    chosen.clear();
    let count = episode.queue().len();
    if count <= SHOWN {
        chosen.extend(0..count);
        return;
    }
    match shown {
        Shown::HeadTail => {
            chosen.extend(0..SHOWN / 2);
            chosen.extend(count - SHOWN / 2..count);
        }
        Shown::Zhang20 => {
            let job = |position: usize| episode.waiting(position);
            let shortest = first_by(count, |position| job(position).estimate, episode);
            let narrowest = first_by(count, |position| job(position).procs.into(), episode);
            let mut taken = vec![false; count];
            for position in shortest.zip(narrowest).flat_map(|(short, narrow)| [short, narrow]) {
                if chosen.len() < SHOWN && !std::mem::replace(&mut taken[position], true) {
                    chosen.push(position);
                }
            }
        }
    }
}

/// Returns the positions in the queue of the first [`SHOWN`] jobs of an order: by a value, then by submission, then by position.
fn first_by(count: usize, value: impl Fn(usize) -> i64, episode: &Episode) -> impl Iterator<Item = usize> {
    let key = |position| (value(position), episode.waiting(position).submit, position);
    let mut keys: Vec<(i64, i64, usize)> = (0..count).map(key).collect();
    keys.select_nth_unstable(SHOWN);
    keys.truncate(SHOWN);
    keys.sort_unstable();
    keys.into_iter().map(|(.., position)| position)
}

/// The features of a waiting job, as the published program has them: wait, estimate, processors, memory, user, group,
/// executable, and whether it fits now.
#[allow(clippy::cast_possible_truncation)] // A feature is a share.
fn features_of(episode: &Episode, job: &Job) -> [f32; FEATURES] {
    let log = episode.log();
    let share = |value: f64, most: f64| (value / most).clamp(0.0, 1.0 - EDGE) as f32;
    let mut features = [1.0; FEATURES];
    features[0] = share((episode.now() - job.submit) as f64, LONGEST_WAIT);
    features[1] = share(job.estimate as f64, log.longest as f64);
    features[2] = share(f64::from(job.procs), f64::from(log.procs));
    for ((feature, label), greatest) in features[3..7].iter_mut().zip(job.labels).zip(log.greatest) {
        if label >= 0 {
            *feature = share(label as f64, greatest as f64);
        }
    }
    features[7] = if job.procs <= episode.free() { (1.0 - EDGE) as f32 } else { EDGE as f32 };
    features
}
