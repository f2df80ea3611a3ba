"""The gate of the score, and the learned scheduler of python/examples."""

from __future__ import annotations

import gzip
import importlib
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import miserly as ms
import miserly.benchmarks
import miserly.gym

sys.path.append(str(Path(__file__).parents[2] / "python/examples"))
kernel: Any = importlib.import_module("kernel")


class Remembering:
    """Takes the jobs in order, and those first that were short in an earlier run."""

    ends: dict[int, float] = {}

    def schedule(self, now: float, waiting: list[ms.Job], running: list[ms.Job], free: int) -> list[int]:
        for job in running:
            self.ends[job.number] = now
        started = []
        for job in sorted(waiting, key=lambda job: self.ends.get(job.number, 0.0)):
            if job.procs <= free:
                free -= job.procs
                started.append(job.number)
        return started


def numbered(job: ms.Job) -> float:
    return float(job.number * 7919 % 101)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("easy(predict=exact)", "it peeks: job 3 starts at 200 or at 102"),
        (Remembering(), "it is not deterministic"),
        (ms.JobOrder(lambda job: random.random()), "it is not deterministic"),
        (ms.JobOrder(numbered), "it decides by the numbers of jobs"),
    ],
)
def test_a_policy_that_peeks_has_no_score(policy: Any, message: str) -> None:
    with pytest.raises(ms.MiserlyError, match=message):
        miserly.benchmarks.score(policy)


def test_the_masked_network_of_the_example_learns() -> None:
    """The bound is far from chance: five seeds of training improve by a factor of 1.8 or more."""
    log = ms.Log.generate(model="lublin99", jobs=1500, procs=256, load=1.0, seed=1)
    trained = kernel.train(log, updates=15, seed=1, jobs=128, rate=0.03)
    env = miserly.gym.ScheduleVectorEnv(log, 32, jobs=128)
    first, last = (-kernel.play(env, network, seed=7).mean() for network in (kernel.Kernel.drawn(1), trained))
    assert last < 0.7 * first, f"{first} before, {last} after"
    again = kernel.train(log, updates=2, seed=1, jobs=128)
    same = kernel.train(log, updates=2, seed=1, jobs=128)
    assert all(np.array_equal(one, other) for one, other in zip(again.layers, same.layers))


def test_the_loop_of_the_example_is_that_of_the_environment() -> None:
    log = ms.Log.generate(model="lublin99", jobs=128, procs=256, load=0.9, seed=2)
    jobs = kernel.read_jobs(log)
    env = miserly.gym.ScheduleEnv(log, jobs=128)
    observation, _ = env.reset(seed=1)
    ended, reward = False, 0.0
    while not ended:
        action = np.where(env.action_masks(), observation[:, 1], np.inf).argmin()
        observation, reward, ended, _, _ = env.step(action)
    assert kernel.by_order(jobs, 256, kernel.ORDERS["SJF"]) == pytest.approx(-reward)


def test_the_learned_scheduler_has_its_figures(tmp_path: Path) -> None:
    weights = Path(kernel.__file__).with_name("lublin-1.json")
    assert weights.stat().st_size < 50_000
    facts = json.loads(weights.read_text())
    traces = os.environ.get("MISERLY_TRACES")
    if traces is None:
        pytest.skip("MISERLY_TRACES names no folder of logs")
    plain = tmp_path / "lublin_256.swf"
    plain.write_bytes(gzip.decompress((Path(traces) / "lublin_256.swf.gz").read_bytes()))
    log = ms.Log.read(plain)
    assert log.sha256 == facts["sha256"]
    guide = (Path(__file__).parents[2] / "docs/learned.md").read_text()
    assert kernel.report(log, kernel.Kernel.read(weights)) in guide


def test_the_learned_scheduler_has_the_score_of_the_page() -> None:
    score = miserly.benchmarks.score(f"{kernel.__file__}:Learned", windows="held-out")
    measure = score["measures"]["bounded_slowdown"]
    page = (Path(__file__).parents[2] / "docs/scores.md").read_text()
    assert f"{measure['mean']:.1f} ({measure['difference']:+.1f} ± {measure['half_width']:.1f})" in page


def test_the_code_of_the_page_for_users_of_other_packages_runs() -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/from-python-packages.md").read_text()
    blocks = page.split("```py\n")[1:]
    assert len(blocks) == 3
    names: dict[str, Any] = {"ms": ms}
    for block in blocks:
        exec(block.split("```")[0], names)
    assert len(names["runs"]) == 4 and len(names["waits"]) == 2048
