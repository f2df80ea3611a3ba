"""Environments of learned schedulers for Gymnasium.

An environment has the loop of the benchmark of Zhang et al. (RLScheduler, SC 2020): a step commits to one waiting job, time
moves on until the job fits, and it starts. An episode is a window of a log. The reward comes at the end of an episode.

>>> import miserly as ms
>>> import miserly.gym
>>> env = miserly.gym.ScheduleEnv(ms.Log.generate(jobs=2000, seed=1), jobs=64)
>>> observation, info = env.reset(seed=1)
>>> observation.shape
(128, 8)
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from ._miserly import Envs, Log

__all__ = ["ScheduleEnv", "ScheduleVectorEnv"]

_SHOWN, _FEATURES = Envs.SHAPE
_REFUSED = 2


def _spaces() -> tuple[gymnasium.spaces.Box, gymnasium.spaces.Discrete[Any]]:
    box = gymnasium.spaces.Box(0.0, 1.0, (_SHOWN, _FEATURES), np.float32)
    return box, gymnasium.spaces.Discrete(_SHOWN)


class _Arrays:
    """The arrays that the native environments fill."""

    def __init__(self, count: int) -> None:
        self.observations = np.zeros((count, _SHOWN, _FEATURES), np.float32)
        self.masks = np.zeros((count, _SHOWN), np.uint8)
        self.rewards = np.zeros(count, np.float64)
        self.ends = np.zeros(count, np.uint8)


class ScheduleEnv(gymnasium.Env[np.ndarray[Any, Any], np.int64]):
    """One environment.

    `log` gives the windows, of `jobs` jobs each. `backfill` starts further jobs behind the committed one. `observation` is
    "zhang20" or "head+tail", which differ where more than 128 jobs wait. `reward` is the negative of "bounded_slowdown",
    "slowdown", "wait" or "response", or the utilization minus 1. `window` limits the jobs of the log, for training and
    held-out windows.

    An action is the position of a job in the observation. `action_masks()` says which ones have a job. One without a job changes
    nothing, and `info["refused"]` says so.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, log: Log, **options: Any) -> None:
        self._envs = Envs(log, 1, **options)
        self._arrays = _Arrays(1)
        self.observation_space, self.action_space = _spaces()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(2**63))
        self._envs.reset(drawn, self._arrays.observations, self._arrays.masks)
        return self._arrays.observations[0].copy(), {}

    def step(self, action: Any) -> tuple[np.ndarray[Any, Any], float, bool, bool, dict[str, Any]]:
        arrays = self._arrays
        actions = np.array([action], np.int64)
        self._envs.step(actions, arrays.observations, arrays.masks, arrays.rewards, arrays.ends)
        info = {"refused": bool(arrays.ends[0] == _REFUSED)}
        return arrays.observations[0].copy(), float(arrays.rewards[0]), bool(arrays.ends[0] == 1), False, info

    def action_masks(self) -> np.ndarray[Any, Any]:
        """Returns which actions have a job."""
        mask: np.ndarray[Any, Any] = self._arrays.masks[0].astype(bool)
        return mask


class ScheduleVectorEnv(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Environments that step in one call. One that is done begins its next episode in the same step.

    The options are those of `ScheduleEnv`. The arrays that a step returns are overwritten by the next one, unless `copy` is set.
    """

    def __init__(self, log: Log, num_envs: int, *, copy: bool = True, **options: Any) -> None:
        self.num_envs = num_envs
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self._envs = Envs(log, num_envs, **options)
        self._arrays = _Arrays(num_envs)
        self._copy = copy
        self.single_observation_space, self.single_action_space = _spaces()
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(2**63))
        self._envs.reset(drawn, self._arrays.observations, self._arrays.masks)
        return self._given(self._arrays.observations), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        arrays = self._arrays
        actions = np.ascontiguousarray(actions, np.int64)
        self._envs.step(actions, arrays.observations, arrays.masks, arrays.rewards, arrays.ends)
        return (
            self._given(arrays.observations),
            self._given(arrays.rewards),
            arrays.ends == 1,
            np.zeros(self.num_envs, bool),
            {"refused": arrays.ends == _REFUSED},
        )

    def action_masks(self) -> np.ndarray[Any, Any]:
        """Returns which actions have a job, for each environment."""
        return self._arrays.masks.astype(bool)

    def _given(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return array.copy() if self._copy else array
