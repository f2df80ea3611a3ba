"""Questions about a log, charts and orders: the same as those of the program."""

from __future__ import annotations

import csv
import json
import os
import pickle
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import miserly as ms


@pytest.fixture(scope="module")
def log() -> ms.Log:
    return ms.Log.generate(jobs=600, seed=1)


@pytest.fixture(scope="module")
def path(log: ms.Log, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("log") / "feitelson96"
    file.write_bytes(log.to_swf())
    return file


def printed(*words: object, cwd: Path | None = None) -> str:
    program = os.environ["MISERLY_PROGRAM"]
    given = [program, *map(str, words)]
    environment = os.environ | {"COLUMNS": "80"}
    return subprocess.run(given, check=True, capture_output=True, text=True, cwd=cwd, env=environment).stdout


def test_a_forecast_has_the_bytes_of_the_program(log: ms.Log, path: Path, tmp_path: Path) -> None:
    answer = ms.forecast(log, "easy", draws=3, estimates="uniform:3")
    words = ["forecast", path, "-p", "easy", "--draws", "3", "--estimates", "uniform:3"]
    jobs = tmp_path / "jobs.csv"
    assert printed(*words, "--json", "--jobs", jobs) == answer.json + "\n"
    assert printed(*words) == str(answer)
    assert answer.jobs is not None
    rows = [line.split(",") for line in jobs.read_text().splitlines()[1:]]
    assert [int(row[5]) for row in rows] == answer.jobs["bound_80"]
    assert [row[9] for row in rows] == ["" if wait is None else str(wait) for wait in answer.jobs["wait"]]
    assert "<script" not in answer._repr_html_() and "<table" in answer._repr_html_()
    with pytest.raises(ms.MiserlyError, match="draws: 0"):
        ms.forecast(log, "easy", draws=0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"new_policy": "conservative"}, ["-p", "conservative"]),
        ({"load": 1.2, "by": "user"}, ["--load", "1.2", "--by", "user"]),
        ({"new_procs": 64}, ["--new-procs", "64"]),
        ({"cpus": 3, "time": "4h", "at": "2d"}, ["--cpus", "3", "--time", "4h", "--at", "2d"]),
    ],
)
def test_a_what_if_has_the_bytes_of_the_program(log: ms.Log, path: Path, options: dict[str, Any], words: list[str]) -> None:
    answer = ms.what_if(log, "easy", copies=2, **options)
    words = ["what-if", str(path), "-p", "easy", "--copies", "2", *words]
    assert printed(*words, "--json") == answer.json + "\n"
    assert printed(*words) == str(answer)
    assert answer.jobs is not None and pa.table(answer.jobs).num_rows >= 600
    again = pickle.loads(pickle.dumps(answer))
    assert (again.json, str(again), again.jobs["difference"]) == (answer.json, str(answer), answer.jobs["difference"])


def test_a_what_if_needs_a_change(log: ms.Log) -> None:
    with pytest.raises(ms.MiserlyError, match="no change"):
        ms.what_if(log, "easy")
    with pytest.raises(ms.MiserlyError, match="shake"):
        ms.what_if(log, "easy", load=1.1, shake=5)


def test_an_explanation_has_the_bytes_of_the_program(log: ms.Log, path: Path) -> None:
    waits = ms.simulate(log, "easy").jobs.to_dict()
    late = max(range(600), key=lambda n: waits["start"][n] - waits["submit"][n])
    for job in (1, waits["job"][late]):
        answer = ms.explain(log, job, "easy", seconds=True)
        words = ["explain", path, str(job), "-p", "easy", "--seconds"]
        assert printed(*words, "--json") == answer.json + "\n"
        assert printed(*words) == str(answer)
    assert answer.document["wait_reason"]
    mine = ms.explain(log, job, ms.JobOrder("submit"), seconds=True)
    assert mine.document["start"] == ms.simulate(log, ms.JobOrder("submit")).jobs["start"][late]
    with pytest.raises(ms.MiserlyError, match="no job 601"):
        ms.explain(log, 601, "easy")
    with pytest.raises(LookupError, match="mine"):
        ms.explain(log, 5, ms.JobOrder(mistaken))


def mistaken(job: ms.Job) -> float:
    raise LookupError("mine")


EXPERIMENT = """
title = "Do bad estimates hurt?"
[[trace]]
name = "made"
model = "feitelson96"
jobs = 300
[[runs]]
name = "all"
policies = ["easy", "conservative"]
estimates = ["exact", "exact*5"]
[[table]]
title = "Mean bounded slowdown"
value = "metrics.bounded_slowdown.mean"
rows = [{ label = "exact", estimates = "exact" }, { label = "long", estimates = "exact*5" }]
columns = [{ label = "EASY", policy = "easy" }, { label = "conservative", policy = "conservative" }]
"""


def without_sources(page: Any) -> Any:
    """Returns a page without its provenance, which has the checksum of the sources of the program."""
    return {name: value for name, value in page.items() if name != "provenance"}


def rows(table: bytes) -> list[dict[str, str]]:
    """Returns the rows of results without the keys of stored runs."""
    found = csv.DictReader(table.decode().splitlines())
    return [{name: value for name, value in row.items() if name != "key"} for row in found]


def test_an_experiment_writes_the_folder_of_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [tmp_path / name for name in ("python", "program")]
    for folder in folders:
        folder.mkdir()
        (folder / "two.toml").write_text(EXPERIMENT)
    monkeypatch.chdir(folders[0])
    page = ms.experiment("two.toml")
    shown = printed("experiment", "run", "two.toml", "--json", cwd=folders[1])
    assert without_sources(json.loads(shown)) == without_sources(page.document)
    made, other = ({p.relative_to(f): p.read_bytes() for p in sorted(f.rglob("*")) if p.is_file()} for f in folders)
    # The package has no Parquet, and the names of stored runs depend on the sources of the program.
    named = [{name for name in files if name.suffix not in (".parquet", ".json")} for files in (made, other)]
    assert named[0] == named[1]
    assert rows(made[Path("two-results/results.csv")]) == rows(other[Path("two-results/results.csv")])
    assert "<table" in page._repr_html_() and "<script" not in page._repr_html_()
    with pytest.raises(ms.MiserlyError, match="cannot read missing.toml"):
        ms.experiment("missing.toml")


def test_a_run_draws_its_schedule(log: ms.Log) -> None:
    run = ms.simulate(log, "easy", by=["user"])
    drawn = run.gantt()
    root = ElementTree.fromstring(drawn)
    assert root.tag.endswith("svg") and "<script" not in drawn
    assert run.gantt((0, "12h")) != drawn and run.gantt(("0", 43200)) == run.gantt((0, "12h"))
    with pytest.raises(ms.MiserlyError, match="end must be after"):
        run.gantt((5, 1))
    html = run._repr_html_()
    assert "<table" in html and "data:image/svg+xml" in html and "<script" not in html
    comparison = ms.compare(log, ["fcfs", ms.JobOrder(length, name="mine")])
    assert len(comparison.gantt()) == 2 and comparison._repr_html_().count("<img") == 2


def test_runs_survive_pickle(log: ms.Log) -> None:
    run = ms.simulate(log, ms.JobOrder(length), by=["user"], procs=140)
    again = pickle.loads(pickle.dumps(run))
    assert (again.json, str(again), again.gantt()) == (run.json, str(run), run.gantt())
    assert again.jobs.to_dict() == run.jobs.to_dict()
    both = pickle.loads(pickle.dumps(ms.compare(log, ["fcfs", "easy"])))
    assert both["easy"].policy == "easy"


def length(job: ms.Job) -> float:
    return job.estimate


def expansion(job: ms.Job, now: float) -> float:
    return -(now - job.submit) / job.estimate


def starts(log: ms.Log, policy: Any, **options: Any) -> list[Any]:
    return ms.simulate(log, policy, **options).jobs["start"]


@pytest.mark.parametrize(("backfill", "written"), [("none", "fcfs"), ("easy", "easy"), ("conservative", "conservative")])
def test_an_order_per_pass_is_the_written_one(log: ms.Log, backfill: str, written: str) -> None:
    order = ms.JobOrder(expansion, when="pass", backfill=backfill)
    compiled = ms.JobOrder(lambda job, now: -(now - job.submit) / job.estimate, when="pass", backfill=backfill)
    assert (order.formula, compiled.formula) == (None, "((-wait) / estimate)")
    # Jobs that end early move reservations.
    early = {"estimates": "uniform:5", "seed": 1}
    expected = starts(log, f"{written}(order='wait / estimate')", **early)
    assert starts(log, order, **early) == starts(log, compiled, **early) == expected
    assert expected != starts(log, written, **early)


@pytest.mark.parametrize(
    ("expression", "formula"),
    [
        ("job.estimate", "estimate"),
        ("job.estimate * job.procs", "(estimate * procs)"),
        ("2 * job.procs - job.submit / 3.5", "(((2) * procs) - (submit / (3.5)))"),
        ("abs(-job.estimate + 1e3)", "abs(((-estimate) + (1000.0)))"),
    ],
)
def test_an_expression_is_a_formula_with_the_same_schedule(log: ms.Log, expression: str, formula: str) -> None:
    compiled = eval(f"lambda job: {expression}")
    function: dict[str, Any] = {}
    exec(f"def order(job):\n    return {expression}", function)
    assert ms.JobOrder(compiled).formula == formula
    assert ms.JobOrder(function["order"]).formula is None
    assert starts(log, ms.JobOrder(compiled)) == starts(log, ms.JobOrder(function["order"]))
    assert starts(log, ms.JobOrder(formula)) == starts(log, ms.JobOrder(compiled))


@pytest.mark.parametrize(
    "expression",
    [
        "job.estimate ** 0.5",
        "job.procs if job.procs > 4 else job.estimate",
        "job.estimate if job.procs == 1 else 0.0",
        "max(job.procs, 3)",
        "{1: 0.0}.get(job.procs, 1.0)",
        "float(len(str(job.procs)))",
        "getattr(job, 'queue', None) or job.estimate",
        "job.number % 7 + job.estimate * 0",
        "1.0 * 3",
        "job.estimate * 0 + (1 if isinstance(job.procs, int) else 2) * job.procs * (-1 if type(job.procs) is int else 1)",
    ],
)
def test_what_has_no_formula_is_called(log: ms.Log, expression: str) -> None:
    compiled = ms.JobOrder(eval(f"lambda job: {expression}"), uses_numbers=True)
    function: dict[str, Any] = {}
    exec(f"def order(job):\n    return {expression}", function)
    assert starts(log, compiled) == starts(log, ms.JobOrder(function["order"], uses_numbers=True))


def test_a_wrong_formula_is_refused_at_once() -> None:
    with pytest.raises(ms.MiserlyError, match='unknown name "estmate"'):
        ms.JobOrder("estmate")
    with pytest.raises(ms.MiserlyError, match="when"):
        ms.JobOrder(length, when="never")
    with pytest.raises(ms.MiserlyError, match="backfill"):
        ms.JobOrder(length, backfill="eazy")


def test_an_order_per_pass_that_fails_ends_the_run(log: ms.Log) -> None:
    wrong: list[tuple[Any, type[Exception]]] = [
        (lambda job, now: "x", ms.MiserlyError),
        (lambda job, now: float("nan"), ms.MiserlyError),
        (lambda job: 1.0, TypeError),
    ]
    for key, error in wrong:
        with pytest.raises(error):
            ms.simulate(log, ms.JobOrder(key, when="pass"))
    with pytest.raises(ms.MiserlyError, match="not deterministic"):
        ms.simulate(log, ms.JobOrder(lambda job, now: random.random(), when="pass"))


class Peeks:
    """Knows the runtimes of the log, and starts the shortest job that fits."""

    def __init__(self, runtimes: dict[int, float]) -> None:
        self.runtimes = runtimes

    def schedule(self, now: float, waiting: list[ms.Job], running: list[ms.Job], free: int) -> list[int]:
        started = []
        for job in sorted(waiting, key=lambda job: self.runtimes.get(job.number, 0.0)):
            if job.procs <= free:
                free -= job.procs
                started.append(job.number)
        return started


def test_a_policy_that_peeks_is_caught(log: ms.Log) -> None:
    jobs = ms.simulate(log, "easy").jobs
    runtimes = dict(zip(jobs["job"], jobs["runtime"]))
    with pytest.raises(ms.MiserlyError, match="depend on the numbers of jobs, so it may know what it does not see"):
        ms.simulate(log, Peeks(runtimes))
    with pytest.raises(ms.MiserlyError, match="KeyError"):
        ms.simulate(log, ms.JobOrder(lambda job: runtimes[job.number]))
    assert starts(log, ms.JobOrder(lambda job: runtimes[job.number], uses_numbers=True))
    honest = Peeks({})
    assert starts(log, honest)


class Learns:
    """Has a state of its own, and decides the same from the same state."""

    def __init__(self) -> None:
        self.passes = 0

    def schedule(self, now: float, waiting: list[ms.Job], running: list[ms.Job], free: int) -> list[int]:
        self.passes += 1
        first = sorted(waiting, key=lambda job: (self.passes % 2) * job.estimate)[0]
        return [first.number] if first.procs <= free else []


def test_a_policy_with_a_state_repeats_from_its_begin(log: ms.Log) -> None:
    policy = Learns()
    assert starts(log, policy) == starts(log, Learns())
    assert policy.passes > 600, "the first run is of the object itself"


def test_a_long_answer_is_interrupted() -> None:
    program = (
        "import miserly as ms, os, signal, threading\n"
        "log = ms.Log.generate(jobs=100_000, load=0.97, seed=1)\n"
        "threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "ms.what_if(log, 'conservative', load=1.05, copies=1000)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=300)
    assert ended.returncode == -signal.SIGINT or b"KeyboardInterrupt" in ended.stderr
