//! Environments of learned schedulers, over the buffers of arrays.

use std::sync::{Arc, Mutex, PoisonError};

use miserly_gym::{EnvOptions, Envs as Inner, FEATURES, JobLog, Reward, Row, SHOWN, Shown, Step};
use miserly_machine_file::value_of;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

use crate::error::error;
use crate::log::Log;

/// Environments that step together. `miserly.gym` has them as Gymnasium environments.
#[pyclass(frozen, module = "miserly")]
pub(crate) struct Envs {
    state: Mutex<State>,
    count: usize,
}

struct State {
    envs: Inner,
    observations: Vec<f32>,
    masks: Vec<u8>,
    rewards: Vec<f64>,
    ended: Vec<u8>,
}

impl State {
    fn rows(&mut self) -> (&mut Inner, impl Iterator<Item = Row<'_>>, &mut [f64], &mut [u8]) {
        let observations = self.observations.chunks_exact_mut(SHOWN * FEATURES);
        let rows = observations.zip(self.masks.chunks_exact_mut(SHOWN));
        let rows = rows.map(|(observation, mask)| Row { observation, mask });
        (&mut self.envs, rows, &mut self.rewards, &mut self.ended)
    }
}

/// The most environments: their observations then take 4 GiB.
const MOST: usize = 1 << 20;

/// The end of a step whose action had no job.
const REFUSED: u8 = 2;

#[pymethods]
impl Envs {
    /// Creates environments over windows of a log.
    #[new]
    #[pyo3(signature = (log, count, *, jobs = 256, backfill = false, observation = "zhang20", reward = "bounded_slowdown", window = None))]
    fn new(
        log: &Log,
        count: usize,
        jobs: usize,
        backfill: bool,
        observation: &str,
        reward: &str,
        window: Option<(usize, usize)>,
    ) -> PyResult<Envs> {
        let log = Arc::new(JobLog::read(&log.shared.trace).map_err(error)?);
        let all = log.jobs.len();
        if count > MOST {
            return Err(error(format!("{count} environments; at most {MOST} step together")));
        }
        let (first, last) = window.unwrap_or((0, all));
        if jobs == 0 || count == 0 || last > all || first.checked_add(jobs).is_none_or(|end| end > last) {
            return Err(error(format!(
                "no window of {jobs} jobs in the jobs {first} to {last} of {all}; choose fewer jobs, and at least one"
            )));
        }
        let options = EnvOptions {
            jobs,
            backfills: backfill,
            shown: value_of(&Shown::ALL, "observation", observation).map_err(error)?,
            reward: value_of(&Reward::ALL, "reward", reward).map_err(error)?,
            starts: first..last - jobs + 1,
        };
        let state = State {
            envs: Inner::new(log, count, options),
            observations: vec![0.0; count * SHOWN * FEATURES],
            masks: vec![0; count * SHOWN],
            rewards: vec![0.0; count],
            ended: vec![0; count],
        };
        Ok(Envs { state: Mutex::new(state), count })
    }

    /// The jobs that an observation shows, and the features of each.
    #[classattr]
    const SHAPE: (usize, usize) = (SHOWN, FEATURES);

    /// Begins the episodes of a seed, and fills the arrays: float32 of (count, 128, 8) and uint8 of (count, 128).
    fn reset(
        &self,
        py: Python<'_>,
        seed: u64,
        observations: PyBuffer<f32>,
        masks: PyBuffer<u8>,
    ) -> PyResult<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (envs, rows, ..) = state.rows();
        envs.reset(seed, rows);
        observations.copy_from_slice(py, &state.observations)?;
        masks.copy_from_slice(py, &state.masks)
    }

    /// Steps each environment by its action (int64), and fills the arrays, also rewards (float64) and ends
    /// (uint8: 1 where the episode ended, 2 where the action had no job and nothing changed).
    #[allow(clippy::too_many_arguments)] // They are the arrays of a step.
    fn step(
        &self,
        py: Python<'_>,
        actions: PyBuffer<i64>,
        observations: PyBuffer<f32>,
        masks: PyBuffer<u8>,
        rewards: PyBuffer<f64>,
        ended: PyBuffer<u8>,
    ) -> PyResult<()> {
        let actions = actions.to_vec(py)?;
        if actions.len() != self.count {
            return Err(error(format!("{} actions for {} environments", actions.len(), self.count)));
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (envs, rows, given, over) = state.rows();
        envs.step(&actions, rows, |env, step| {
            (given[env], over[env]) = match step {
                Step::Goes => (0.0, 0),
                Step::Ended(reward) => (reward, 1),
                Step::Refused => (0.0, REFUSED),
            };
        });
        observations.copy_from_slice(py, &state.observations)?;
        masks.copy_from_slice(py, &state.masks)?;
        rewards.copy_from_slice(py, &state.rewards)?;
        ended.copy_from_slice(py, &state.ended)
    }

    fn __len__(&self) -> usize {
        self.count
    }
}
