"""The environments, which need numpy and gymnasium only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import miserly as ms
import miserly.gym


@pytest.fixture(scope="module")
def log() -> ms.Log:
    return ms.Log.generate(jobs=1000, seed=1)


def test_an_environment_is_one_of_gymnasium(log: ms.Log) -> None:
    check_env(miserly.gym.ScheduleEnv(log, jobs=64), skip_render_check=True)
    env = miserly.gym.ScheduleEnv(log, jobs=64)
    first, _ = env.reset(seed=7)
    same, _ = env.reset(seed=7)
    assert np.array_equal(first, same)
    assert env.action_masks().sum() == 1
    again, _, _, _, info = env.step(100)
    assert info["refused"] and np.array_equal(again, same)


def test_the_oldest_first_is_the_order_of_arrival() -> None:
    log = ms.Log.generate(jobs=64, seed=3, load=0.95)
    env = miserly.gym.ScheduleEnv(log, jobs=64)
    env.reset(seed=1)
    done, reward = False, 0.0
    while not done:
        _, reward, done, _, _ = env.step(0)
    jobs = ms.simulate(log, "fcfs", warmup=0).jobs.to_dict()
    columns = zip(jobs["submit"], jobs["start"], jobs["runtime"])
    slowdowns = [max(1.0, (start - submit + runtime) / max(runtime, 10.0)) for submit, start, runtime in columns]
    assert reward == pytest.approx(-np.mean(slowdowns))


def test_environments_step_together_as_alone(log: ms.Log) -> None:
    together = miserly.gym.ScheduleVectorEnv(log, 3, jobs=32, observation="head+tail", reward="wait")
    observations, _ = together.reset(seed=5)
    repeated, _ = together.reset(seed=5)
    assert np.array_equal(observations, repeated)
    rewards, ends = [], 0
    for _ in range(100):
        observations, reward, ended, _, info = together.step(np.zeros(3, np.int64))
        assert not info["refused"].any()
        ends += int(ended.sum())
        rewards += list(reward[ended])
    assert ends >= 6 and all(reward <= 0 for reward in rewards)
    with pytest.raises(ms.MiserlyError, match="no window of 2000 jobs"):
        miserly.gym.ScheduleEnv(log, jobs=2000)
    with pytest.raises(ms.MiserlyError, match='observation = "all": must be one of zhang20, head\\+tail'):
        miserly.gym.ScheduleEnv(log, observation="all")


def test_a_masked_policy_learns_to_take_short_jobs(log: ms.Log) -> None:
    """A linear policy over the features, improved by random changes, is better than the one that it began as."""
    env = miserly.gym.ScheduleVectorEnv(log, 8, jobs=64)

    def value(weights: np.ndarray[Any, Any]) -> float:
        observations, _ = env.reset(seed=11)
        total, episodes = 0.0, 0
        for _ in range(2 * 64):
            scores = np.where(env.action_masks(), observations @ weights, -np.inf)
            observations, reward, ended, _, _ = env.step(scores.argmax(axis=1))
            total, episodes = total + float(reward.sum()), episodes + int(ended.sum())
        return total / episodes

    draws = np.random.default_rng(1)
    weights = np.zeros(8)
    first = best = value(weights)
    for _ in range(40):
        changed = weights + draws.normal(size=8)
        if (found := value(changed)) > best:
            weights, best = changed, found
    assert best > first
