"""A scheduler that is learned with numpy: a kernel network, trained by policy gradients.

The network is that of RLScheduler (Zhang et al., SC 2020): one small network values each waiting job by itself, and the job with
the largest value is the next one. Training plays each window several times. The return of an episode is the negative logarithm of
its mean bounded slowdown, and its baseline is the mean of the other plays of the same window. The same seed and the same numpy
give the same weights.

    python kernel.py train LOG WEIGHTS      trains on windows of the first 5000 jobs
    python kernel.py report LOG WEIGHTS     compares with orders, on training and held-out windows
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import miserly as ms
import miserly.gym

Floats = npt.NDArray[np.float64]

WIDTHS = (7, 32, 16, 1)
BOUND = 10.0


def features(observed: npt.NDArray[np.float32]) -> Floats:
    """Returns the inputs of the network: wait, estimate and processors with their logarithms, and whether the job fits."""
    wait, estimate, procs, fits = (observed[:, column].astype(np.float64) for column in (0, 1, 2, 7))
    logs = [1.0 + np.log10(share + 1e-5) / 5.0 for share in (wait, estimate, procs)]
    return np.stack([wait, estimate, procs, fits, *logs], axis=1)


class Kernel:
    """The network, with tanh between its layers."""

    def __init__(self, layers: list[Floats]) -> None:
        self.layers = layers

    @classmethod
    def drawn(cls, seed: int) -> Kernel:
        """Returns an untrained network. The last row of each layer is its bias."""
        draws = np.random.default_rng(seed)
        shapes = zip(WIDTHS, WIDTHS[1:])
        return cls([np.vstack([draws.normal(size=(a, b)) / math.sqrt(a), np.zeros((1, b))]) for a, b in shapes])

    @classmethod
    def read(cls, path: str | Path) -> Kernel:
        """Reads the weights of a file that `write` made."""
        text = Path(path).read_text()
        try:
            kernel = cls([np.array(layer, np.float64) for layer in json.loads(text)["layers"]])
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{path}: no weights; `kernel.py train` writes such a file") from None
        shapes = [(a + 1, b) for a, b in zip(WIDTHS, WIDTHS[1:])]
        if [layer.shape for layer in kernel.layers] != shapes:
            raise ValueError(f"{path}: the layers must have the shapes {shapes}")
        return kernel

    def write(self, path: str | Path, **facts: Any) -> None:
        """Writes the weights with four decimals."""
        layers = [[[round(weight, 4) for weight in row] for row in layer.tolist()] for layer in self.layers]
        Path(path).write_text(json.dumps(facts | {"layers": layers}) + "\n")

    def forward(self, inputs: Floats) -> list[Floats]:
        """Returns the activations of each layer; the last one has the values of the jobs."""
        activations = [inputs]
        for number, layer in enumerate(self.layers):
            output = activations[-1] @ layer[:-1] + layer[-1]
            activations.append(output if number == len(self.layers) - 1 else np.tanh(output))
        return activations

    def gradient(self, inputs: Floats, of_values: Floats) -> list[Floats]:
        """Returns the gradient of each layer for that of the values."""
        activations = self.forward(inputs)
        gradients: list[Floats] = []
        delta = of_values[:, None]
        for number in range(len(self.layers) - 1, -1, -1):
            below = activations[number]
            gradients.append(np.vstack([below.T @ delta, delta.sum(axis=0)]))
            if number > 0:
                delta = (delta @ self.layers[number][:-1].T) * (1.0 - below**2)
        return gradients[::-1]

    def values(self, observations: npt.NDArray[np.float32], masks: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Returns the value of each shown job, minus infinity where there is none, and the inputs."""
        inputs = features(observations[masks])
        values = np.full(masks.shape, -np.inf)
        values[masks] = self.forward(inputs)[-1][:, 0]
        return values, inputs


def play(env: miserly.gym.ScheduleVectorEnv, kernel: Kernel, seed: int) -> Floats:
    """Plays one episode of each environment, always with the job of the largest value, and returns the rewards."""
    observations, _ = env.reset(seed=seed)
    while True:
        values, _ = kernel.values(observations, env.action_masks())
        observations, rewards, ended, _, _ = env.step(values.argmax(axis=1))
        if ended.any():
            return np.array(rewards)


def train(
    log: ms.Log,
    *,
    updates: int,
    seed: int = 1,
    jobs: int = 256,
    window: tuple[int, int] | None = None,
    envs: int = 16,
    plays: int = 4,
    rate: float = 0.01,
    progress: Callable[[str], None] = lambda line: None,
) -> Kernel:
    """Trains a kernel network on windows of a log."""
    env = miserly.gym.ScheduleVectorEnv(log, envs, jobs=jobs, window=window, copy=False)
    draws = np.random.default_rng(seed)
    kernel = Kernel.drawn(seed)
    means = [np.zeros_like(layer) for layer in kernel.layers]
    squares = [np.zeros_like(layer) for layer in kernel.layers]
    for update in range(1, updates + 1):
        windows = int(draws.integers(2**31))
        steps: list[tuple[int, Floats, Floats, npt.NDArray[np.intp]]] = []
        returns = np.zeros((plays, envs))
        for number in range(plays):
            observations, _ = env.reset(seed=windows)
            ended = np.zeros(envs, bool)
            while not ended.any():
                masks = env.action_masks()
                values, inputs = kernel.values(observations, masks)
                # The largest of values with Gumbel noise is a draw from their softmax.
                chosen = (values + draws.gumbel(size=values.shape)).argmax(axis=1)
                # A quarter of the steps, drawn by chance, has the same gradient in the mean.
                if draws.random() < 0.25:
                    shares = np.exp(values - values.max(axis=1, keepdims=True))
                    shares /= shares.sum(axis=1, keepdims=True)
                    shares[np.arange(envs), chosen] -= 1.0
                    steps.append((number, inputs, -shares[masks], np.nonzero(masks)[0]))
                observations, rewards, ended, _, _ = env.step(chosen)
            returns[number] = -np.log(-rewards)
        advantages = returns - returns.mean(axis=0)
        advantages /= advantages.std() + 1e-9
        inputs = np.concatenate([inputs for _, inputs, _, _ in steps])
        of_values = np.concatenate([of_values * advantages[number, owners] for number, _, of_values, owners in steps])
        gradients = kernel.gradient(inputs, of_values / (envs * plays))
        # Adam, uphill.
        for layer, gradient, mean, square in zip(kernel.layers, gradients, means, squares):
            mean += 0.1 * (gradient - mean)
            square += 0.01 * (gradient**2 - square)
            corrected = mean / (1 - 0.9**update)
            layer += rate * corrected / (np.sqrt(square / (1 - 0.99**update)) + 1e-8)
        progress(f"update {update}: mean bounded slowdown {np.exp(-returns).mean():.2f}, geometric {np.exp(-returns.mean()):.3f}")
    return kernel


class Learned:
    """The learned scheduler as a policy of the simulator, without backfilling: jobs start by their values until one does not fit.

    It is scored by `python -m miserly.benchmarks python/examples/kernel.py:Learned --windows held-out`.
    """

    # The longest runtime and the wait at which a feature is 1, in the log of its training.
    LONGEST, LONGEST_WAIT, EDGE = 162754.0, 43200.0, 1e-5

    def __init__(self) -> None:
        self.kernel = Kernel.read(Path(__file__).with_name("lublin-1.json"))

    def schedule(self, now: float, waiting: list[ms.Job], running: list[ms.Job], free: int) -> list[int]:
        machine = free + sum(job.procs for job in running)
        observed = np.zeros((len(waiting), 8), np.float32)
        for row, job in zip(observed, waiting):
            shares = ((now - job.submit) / self.LONGEST_WAIT, job.estimate / self.LONGEST, job.procs / machine)
            row[:3] = np.clip(shares, 0.0, 1.0 - self.EDGE)
            row[7] = 1.0 - self.EDGE if job.procs <= free else self.EDGE
        values = self.kernel.forward(features(observed))[-1][:, 0]
        started = []
        for position in np.argsort(-values, kind="stable"):
            job = waiting[position]
            if job.procs > free:
                break
            free -= job.procs
            started.append(job.number)
        return started


class Waiting:
    """A waiting job of the benchmark, in seconds."""

    def __init__(self, number: int, submit: int, runtime: int, estimate: int, procs: int) -> None:
        self.number, self.submit, self.runtime, self.estimate, self.procs = number, submit, runtime, estimate, procs


def positive(value: float) -> float:
    return value if value > 0 else 0.1


Key = Callable[[Waiting, int], Any]
ORDERS: dict[str, Key] = {
    "FCFS": lambda job, now: job.submit,
    "SJF": lambda job, now: (job.estimate, job.submit),
    "F1": lambda job, now: math.log10(positive(job.estimate)) * job.procs + 870 * math.log10(positive(job.submit)),
    "WFP3": lambda job, now: -(((now - job.submit) / job.estimate) ** 3) * job.procs,
    "UNICEP": lambda job, now: -(now - job.submit + 1e-15) / (math.log2(job.procs + 1e-15) * job.estimate),
}


def read_jobs(log: ms.Log) -> list[Waiting]:
    """Reads a log by the rules of the benchmark."""
    jobs = []
    for line in log.to_swf().decode().splitlines():
        if line and not line.startswith(";"):
            fields = [int(float(field)) for field in line.split()]
            runtime, estimate = fields[3], fields[8]
            if runtime != 0:
                estimate = runtime if estimate == -1 else estimate
                procs = max(fields[4], fields[7], 1)
                jobs.append(Waiting(fields[0], fields[1], runtime if runtime > 0 else 10, estimate, procs))
    return sorted(jobs, key=lambda job: job.number)


def slowdown(job: Waiting, start: float) -> float:
    return max(1.0, (start - job.submit + job.runtime) / max(job.runtime, BOUND))


def by_order(jobs: Sequence[Waiting], procs: int, key: Key) -> float:
    """Returns the mean bounded slowdown of a window in an order, by the loop of the benchmark without backfilling."""
    queue, starts = [jobs[0]], []
    running: list[tuple[int, int]] = []
    now, free, following = jobs[0].submit, procs, 1

    def move() -> None:
        nonlocal now, free, following
        end = running[0][0] if running else math.inf
        if following < len(jobs) and jobs[following].submit <= end:
            now = max(now, jobs[following].submit)
            queue.append(jobs[following])
            following += 1
        else:
            ended, width = running.pop(0)
            now, free = max(now, ended), free + width

    while queue:
        queue.sort(key=lambda job: key(job, now))
        chosen = queue[0]
        while free < chosen.procs:
            move()
        queue.remove(chosen)
        free -= chosen.procs
        starts.append(slowdown(chosen, now))
        running.append((now + chosen.runtime, chosen.procs))
        running.sort(key=lambda job: job[0])
        while not queue and following < len(jobs):
            move()
    return sum(starts) / len(starts)


def by_policy(jobs: Sequence[Waiting], procs: int, policy: str) -> float:
    """Returns the mean bounded slowdown of a window under a policy of the simulator, which may backfill."""
    lines = [f"; MaxProcs: {procs}"]
    for job in jobs:
        lines.append(f"{job.number} {job.submit} -1 {job.runtime} {job.procs} -1 -1 {job.procs} {job.estimate} -1 1" + " -1" * 7)
    run = ms.simulate(ms.Log.from_swf("\n".join(lines) + "\n"), policy, overrun="run", warmup=0)
    starts = dict(zip(run.jobs["job"], run.jobs["start"]))
    return sum(slowdown(job, starts[job.number]) for job in jobs) / len(jobs)


# The first jobs of the ten windows of the published tables.
PUBLISHED = (1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085)
# The two-sided quantiles of Student's t at 95 %, for 9 and for 18 differences less one.
STUDENT = {9: 2.262, 18: 2.101}


def sets(last: int, jobs: int) -> Iterator[tuple[str, list[int], int]]:
    """Yields the sets of windows: their first jobs and their lengths. Training saw the jobs before `last` only."""
    yield "training", list(range(0, 19 * jobs, jobs)), jobs
    yield "held-out", list(range(last, last + 19 * jobs, jobs)), jobs
    yield "published", list(PUBLISHED), 1024


def report(log: ms.Log, kernel: Kernel, last: int = 5000, jobs: int = 256) -> str:
    """Returns a table of mean bounded slowdowns, with the paired differences of the learned scheduler."""
    procs = log.procs
    if procs is None:
        raise ValueError(f"{log.name}: the header has neither MaxProcs nor MaxNodes")
    every = read_jobs(log)
    rows = [f"| scheduler on {Path(log.name).name} | windows | mean | learned less this |", "|---|---|--:|--:|"]
    for name, firsts, length in sets(last, jobs):
        windows = [every[first : first + length] for first in firsts]
        envs = [miserly.gym.ScheduleVectorEnv(log, 1, jobs=length, window=(first, first + length)) for first in firsts]
        learned = np.array([-play(env, kernel, 0)[0] for env in envs])
        rows.append(f"| learned | {name} | {learned.mean():.2f} | |")
        others = {order: [by_order(window, procs, key) for window in windows] for order, key in ORDERS.items()}
        for policy in ("easy", "easy(order=f1)"):
            others[f"`{policy}`"] = [by_policy(window, procs, policy) for window in windows]
        for other, means in others.items():
            differences = learned - np.array(means)
            half = STUDENT[len(firsts) - 1] * differences.std(ddof=1) / math.sqrt(len(firsts))
            rows.append(f"| {other} | {name} | {np.mean(means):.2f} | {differences.mean():+.2f} ± {half:.2f} |")
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(prog="kernel.py", description="Trains a scheduler, or reports on it.")
    parser.add_argument("what", choices=["train", "report"])
    parser.add_argument("log")
    parser.add_argument("weights")
    parser.add_argument("--last", type=int, default=5000, help="jobs from this one on are held out [5000]")
    parser.add_argument("--updates", type=int, default=300, help="the updates of training [300]")
    parser.add_argument("--seed", type=int, default=1, help="the seed of training [1]")
    given = parser.parse_args()
    try:
        log = ms.Log.read(given.log)
        if given.what == "train":
            kernel = train(log, updates=given.updates, seed=given.seed, window=(0, given.last), progress=print)
            kernel.write(given.weights, log=Path(log.name).name, sha256=log.sha256, last=given.last, updates=given.updates, seed=given.seed)
        else:
            print(report(log, Kernel.read(given.weights), given.last))
    except (ms.MiserlyError, ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
