"""The package as a user has it: logs, runs, policies, environments."""

from __future__ import annotations

import doctest
import gzip
import json
import multiprocessing
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import miserly as ms
import miserly.benchmarks
import miserly.gym


@pytest.fixture(scope="module")
def log() -> ms.Log:
    return ms.Log.generate(jobs=1000, seed=1)


def untimed(document: Any) -> Any:
    return {name: value for name, value in document.items() if name != "timing"}


def test_a_run_has_the_document_of_the_program(log: ms.Log, tmp_path: Path) -> None:
    program = os.environ["MISERLY_PROGRAM"]
    path = tmp_path / "log.swf"
    path.write_bytes(log.to_swf())
    words = ["simulate", str(path), "--policy", "easy", "--estimates", "exact*2", "--by", "user", "--json"]
    printed = json.loads(subprocess.run([program, *words], check=True, capture_output=True).stdout)
    run = ms.simulate(ms.Log.read(path), "easy", estimates="exact*2", by=["user"])
    assert untimed(run.document) == untimed(printed)
    generated = subprocess.run([program, "workload", "generate", "--jobs", "1000", "--seed", "1"], check=True, capture_output=True)
    assert generated.stdout == log.to_swf()
    described = subprocess.run([program, "workload", "describe", str(path), "--json"], check=True, capture_output=True)
    assert ms.Log.read(path).describe() == json.loads(described.stdout)


def test_columns_reach_every_library(log: ms.Log) -> None:
    jobs = ms.simulate(log, "easy").jobs
    assert len(jobs) == 1000
    table = pa.table(jobs)
    assert table.column("start").to_pylist() == jobs["start"]
    assert pl.DataFrame(jobs)["procs"].to_list() == jobs.to_dict()["procs"]
    assert pd.DataFrame.from_records(jobs.to_dict()).shape == (1000, 9)
    assert table.schema.names == jobs.columns
    with pytest.raises(KeyError, match="no column"):
        jobs["wait"]


def test_a_comparison_has_its_runs_and_differences(log: ms.Log) -> None:
    comparison = ms.compare(log, ["fcfs", "easy"])
    assert len(comparison) == 2
    assert comparison["easy"].jobs["start"] == ms.simulate(log, "easy").jobs["start"]
    assert {row["measure"] for row in comparison.differences} >= {"wait"}
    assert "bounded slowdown" in str(comparison)
    html = comparison._repr_html_()
    assert "<table" in html and "<script" not in html
    with pytest.raises(KeyError, match="the runs are of fcfs, easy"):
        comparison["sjf"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "eazy"}, 'no policy "eazy", did you mean "easy"'),
        ({"scale_loads": 2}, "a similar argument exists: '--scale-load'"),
        ({"scale_load": "x"}, "invalid value 'x'"),
        ({"scale_load": [1, 2]}, "--scale-load: several values"),
        ({"by": ["height"]}, 'unknown grouping "height"'),
        ({"procs": 0}, "invalid value '0'"),
        ({"preset": "eagle"}, "preset: an option of reading; give it to Log.read"),
        ({"machine": "/missing.toml"}, "/missing.toml"),
    ],
)
def test_bad_input_has_one_clear_error(log: ms.Log, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ms.MiserlyError) as raised:
        ms.simulate(log, **({"policy": "easy"} | options))
    assert message in str(raised.value)


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ms.MiserlyError, match="/missing"):
        ms.Log.read("/missing")
    with pytest.raises(ms.MiserlyError):
        ms.simulate(ms.Log.from_swf("1 2 three\n"), "easy")
    with pytest.raises(TypeError):
        ms.simulate("log", "easy")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a dict is no value"):
        ms.Log.generate(jobs={})


def test_a_log_survives_pickle_and_other_processes(log: ms.Log) -> None:
    again = pickle.loads(pickle.dumps(log))
    assert (again.sha256, again.name, len(again)) == (log.sha256, log.name, len(log))
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            assert pool.apply(mean_wait, (log,)) == mean_wait(log)


def mean_wait(log: ms.Log) -> float:
    jobs = ms.simulate(log, "easy").jobs
    return float(np.mean(np.array(jobs["start"]) - np.array(jobs["submit"])))


def test_threads_run_beside_each_other(log: ms.Log) -> None:
    expected = mean_wait(log)
    found: list[float] = []
    threads = [threading.Thread(target=lambda: found.append(mean_wait(log))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


def test_an_order_in_python_is_the_written_one(log: ms.Log) -> None:
    for backfill, written in [("easy", "easy(order=shortest)"), ("none", "fcfs(order=shortest)")]:
        order = ms.JobOrder(lambda job: job.estimate, backfill=backfill, name="mine")
        run = ms.simulate(log, order)
        assert run.jobs["start"] == ms.simulate(log, written).jobs["start"]
        assert run.policy == "mine"


class InOrder:
    def schedule(self, now: float, waiting: list[ms.Job], running: list[ms.Job], free: int) -> list[int]:
        started = []
        for job in waiting:
            if job.procs > free:
                break
            free -= job.procs
            started.append(job.number)
        return started


def test_a_policy_in_python_is_the_written_one(log: ms.Log) -> None:
    run = ms.simulate(log, InOrder())
    assert run.jobs["start"] == ms.simulate(log, "fcfs").jobs["start"]


class Wrong:
    def __init__(self, how: str) -> None:
        self.how = how

    def schedule(self, now: float, waiting: list[ms.Job], running: list[ms.Job], free: int) -> Any:
        fitting = [job.number for job in waiting if job.procs <= free]
        return {
            "nonsense": "x",
            "nothing": None,
            "twice": [waiting[0].number] * 2,
            "unknown": [-5],
            "all": [job.number for job in waiting],
            "never": [],
            "chance": random.sample(fitting, min(1, len(fitting))),
        }[self.how]


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ("nonsense", TypeError, "str"),
        ("nothing", TypeError, "None"),
        ("twice", ms.MiserlyError, "does not wait"),
        ("unknown", ms.MiserlyError, "job -5 does not wait"),
        ("all", ms.MiserlyError, "are free"),
        ("never", ms.MiserlyError, "a pass has to start"),
        ("chance", ms.MiserlyError, "is not deterministic|a pass has to start"),
        ("missing", KeyError, "missing"),
    ],
)
def test_a_wrong_policy_is_caught_with_a_reason(log: ms.Log, how: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ms.simulate(log, Wrong(how))


def test_a_policy_sees_no_runtime(log: ms.Log) -> None:
    seen: list[ms.Job] = []

    def key(job: ms.Job) -> float:
        seen.append(job)
        return 0.0

    ms.simulate(log, ms.JobOrder(key))
    names = {name for name in dir(seen[0]) if not name.startswith("_")}
    assert names == {"number", "submit", "procs", "estimate", "user", "group", "queue", "expected_end"}


def test_an_interrupt_ends_a_run() -> None:
    program = (
        "import miserly as ms, os, signal, threading\n"
        "log = ms.Log.generate(jobs=200_000, load=0.99, seed=1)\n"
        "threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "while True: ms.simulate(log, 'conservative')\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=300)
    assert ended.returncode == -signal.SIGINT or b"KeyboardInterrupt" in ended.stderr


def test_the_examples_of_the_documentation_are_right() -> None:
    for module in (ms, miserly.gym, miserly.benchmarks):
        assert doctest.testmod(module).failed == 0


def test_a_score_is_the_same_each_time_and_that_of_the_program() -> None:
    one, two = (miserly.benchmarks.score("easy(order=f1)", windows="held-out") for _ in range(2))
    assert one == two
    words = ["bench", "easy(order=f1)", "--windows", "held-out", "--json"]
    printed = subprocess.run([os.environ["MISERLY_PROGRAM"], *words], check=True, capture_output=True).stdout
    assert one == json.loads(printed)
    measures = miserly.benchmarks.score("easy")["measures"]
    assert all(measure["difference"] == 0 for measure in measures.values())


def endless(job: ms.Job) -> float:
    while True:
        pass


def greedy(job: ms.Job) -> float:
    return float(len(bytearray(8 << 30)))


def mistaken(job: ms.Job) -> float:
    raise LookupError("mine")


def leaving(job: ms.Job) -> float:
    raise SystemExit(0)


class Odd(Exception):
    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} {two}")


def odd(job: ms.Job) -> float:
    raise Odd("two", "words")


def dying(job: ms.Job) -> float:
    os._exit(3)


@pytest.mark.parametrize(
    ("key", "error", "message"),
    [
        (endless, ms.MiserlyError, "more than 2 s"),
        (greedy, MemoryError, "^$"),
        (mistaken, LookupError, "mine"),
        (dying, ms.MiserlyError, "ended with code 3"),
        (leaving, ms.MiserlyError, "SystemExit"),
        (odd, ms.MiserlyError, "Odd: two words"),
    ],
)
def test_a_wrong_policy_ends_in_its_own_process(key: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        miserly.benchmarks.score(ms.JobOrder(key), seconds=2)


def test_the_file_of_a_policy_is_loaded_within_the_limits(tmp_path: Path) -> None:
    (tmp_path / "top.py").write_text("while True: pass\n")
    (tmp_path / "fine.py").write_text("import miserly\npolicy = miserly.JobOrder(lambda job: job.estimate)\n")
    with pytest.raises(ms.MiserlyError, match="more than 1 s"):
        miserly.benchmarks.score(f"{tmp_path}/top.py:policy", seconds=1)
    assert miserly.benchmarks.score(f"{tmp_path}/fine.py:policy")["policy"] == "<lambda>"
    with pytest.raises(ms.MiserlyError, match="give file.py:name"):
        miserly.benchmarks.score(f"{tmp_path}/fine.py:other")


def test_the_code_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = Path(__file__).parents[2] / "docs/how-to/python.md"
    blocks = guide.read_text().split("```python\n")[1:]
    assert len(blocks) == 7
    monkeypatch.chdir(tmp_path)
    Path("cluster.swf.gz").write_bytes(gzip.compress(ms.Log.generate(jobs=500, seed=1).to_swf()))
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block.split("```")[0], names)
    assert names["run"].policy == "easy" and names["ended"].any()
    assert names["found"] < 0, "the search improves on F1 on the training windows"


def test_import_needs_no_numpy() -> None:
    program = "import sys; sys.modules['numpy'] = None; import miserly; print(miserly.Log.generate(jobs=10))"
    assert b"10 jobs" in subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout


def test_a_second_interpreter_is_refused_clearly() -> None:
    interpreters = pytest.importorskip("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
    other = interpreters.create()
    try:
        with pytest.raises(Exception, match="subinterpreter"):
            failed = interpreters.run_string(other, "import miserly")
            if failed is not None:
                raise RuntimeError(str(failed))
    finally:
        interpreters.destroy(other)


def test_a_run_leaves_other_threads_to_python(log: ms.Log) -> None:
    big = ms.Log.generate(jobs=50_000, load=0.95, seed=2)
    counts = 0
    ended = threading.Event()

    def run() -> None:
        ms.simulate(big, "conservative")
        ended.set()

    thread = threading.Thread(target=run)
    thread.start()
    while not ended.is_set():
        counts += 1
        time.sleep(0.001)
    thread.join()
    assert counts > 1
