"""Logs from data frames."""

from __future__ import annotations

import datetime
import json
import os
import pickle
import subprocess
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import miserly as ms

SACCT = "JobIDRaw|Submit|Start|End|AllocCPUS|State|TimelimitRaw|User\n" + "".join(
    f"{n}|{1709280000 + 60 * n}|{1709280100 + 60 * n}|{1709280400 + 90 * n}|{1 + n % 4}|COMPLETED|30|ann\n" for n in range(1, 30)
)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    run = ms.simulate(ms.Log.generate(jobs=500, seed=1), "fcfs")
    return pa.table(run.jobs)


def test_every_library_gives_the_same_log(table: pa.Table) -> None:
    views = duckdb.connect()
    views.register("jobs", table)
    frames: list[Any] = [
        table,
        pl.DataFrame(table),
        pl.DataFrame(table).with_columns(pl.col("reason").cast(pl.Categorical)),
        table.to_pandas(),
        views.sql("select * from jobs"),
        pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=7)),
    ]
    texts = {ms.Log.read(frame).to_swf() for frame in frames}
    assert len(texts) == 1
    log = ms.Log.read(table, procs=128)
    assert (len(log), log.procs) == (500, 128)
    assert log.sha256 == ms.Log.from_swf(log.to_swf()).sha256
    again = pickle.loads(pickle.dumps(log))
    assert (again.to_swf(), again.sha256, again.conversion) == (log.to_swf(), log.sha256, log.conversion)


def test_a_frame_is_the_log_of_its_file(tmp_path: Path) -> None:
    """The same table as a file, read by the program, and as a frame: the same bytes."""
    frame = pl.DataFrame(
        {
            "job_id": [7, 8, 9],
            "sub": ["2024-03-01 10:00:00+01:00", "2024-03-01 10:00:30+01:00", "2024-03-01 11:00:00+01:00"],
            "began": ["2024-03-01 10:00:10+01:00", "2024-03-01 10:01:00+01:00", None],
            "length": [60, 90, 30],
            "limit": [2, 3, None],
            "cores": [4, 1, 2],
            "who": ["ann", "bob", "ann"],
        }
    )
    path = tmp_path / "jobs.csv"
    frame.write_csv(path)
    columns: dict[str, Any] = {
        "job": "job_id",
        "submit": "sub",
        "start": "began",
        "runtime": "length",
        "estimate": {"column": "limit", "unit": "min"},
        "procs": "cores",
        "user": "who",
        "drop": ["procs > 3"],
    }
    text = "[columns]\n" + "".join(
        f"{name} = {json.dumps(column)}\n" for name, column in columns.items() if isinstance(column, str)
    )
    text += 'estimate = { column = "limit", unit = "min" }\n[rules]\ndrop = ["procs > 3"]\n'
    (tmp_path / "map.toml").write_text(text)
    words = ["workload", "convert", str(path), "--columns", str(tmp_path / "map.toml"), "--keep-ids"]
    printed = subprocess.run([os.environ["MISERLY_PROGRAM"], *words], check=True, capture_output=True).stdout
    of_file = ms.Log.read(path, columns=columns)
    assert jobs_of(of_file.to_swf()) == jobs_of(printed)
    assert jobs_of(ms.Log.read(frame, columns=columns).to_swf()) == jobs_of(printed)
    stamped = frame.with_columns(pl.col("sub", "began").str.to_datetime("%Y-%m-%d %H:%M:%S%z"))
    assert stamped["sub"].dtype == pl.Datetime("us", "UTC")
    assert jobs_of(ms.Log.read(stamped, columns=columns).to_swf()) == jobs_of(printed)


def jobs_of(text: bytes) -> list[bytes]:
    """Returns the jobs and the begin of a log, without the lines that name its file."""
    return [line for line in text.splitlines() if not line.startswith(b";") or b"UnixStartTime" in line]


def test_types_of_columns() -> None:
    begin = datetime.datetime(2024, 3, 1, tzinfo=datetime.timezone.utc)
    frame = pa.table(
        {
            "submit": pa.array([begin, begin + datetime.timedelta(seconds=5)], pa.timestamp("ms", "UTC")),
            "runtime": pa.array([datetime.timedelta(minutes=1)] * 2, pa.duration("s")),
            "procs": pa.array([1, 2], pa.uint16()),
            "user": pa.array(["x", None]).dictionary_encode(),
            "estimate": pa.array([70, 80], pa.decimal128(5, 1)),
        }
    )
    jobs = jobs_of(ms.Log.read(frame).to_swf())
    assert jobs[0] == b"; UnixStartTime: 1709251200"
    assert [line.split()[1:9] for line in jobs[1:]] == [
        [b"0", b"-1", b"60", b"1", b"-1", b"-1", b"1", b"70"],
        [b"5", b"-1", b"60", b"2", b"-1", b"-1", b"2", b"80"],
    ]
    local = pl.DataFrame({"submit": [datetime.datetime(2024, 3, 1)], "runtime": [1], "procs": [1]})
    with pytest.raises(ms.MiserlyError, match="zone"):
        ms.Log.read(local)
    assert b"1709247600" in ms.Log.read(local, time_zone="Europe/Berlin").to_swf()


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"a": [1]}, {}, 'frame: no column submit; say what the columns mean .* they are "a"'),
        ({}, {}, "frame: no column submit"),
        ({"submit": [1]}, {}, "does not say how long a job ran"),
        ({"submit": [1], "runtime": [[1]], "procs": [1]}, {}, 'column "runtime" has the type'),
        ({"submit": [1], "runtime": [1], "procs": ["x"]}, {}, 'frame, row 1: procs is "x"; expected: number'),
        ({"submit": [1], "runtime": [1], "procs": [-3.0]}, {}, 'procs is "-3"; expected: number from 0'),
        ({"submit": [None], "runtime": [1], "procs": [1]}, {}, 'column "submit" has no type'),
        ({"s": [1]}, {"columns": {"submit": "t"}}, "does not say"),
        ({"s": [1]}, {"columns": {"submit": "t", "runtime": "s", "procs": "s"}}, 'frame has no column "t"'),
        ({"s": [1]}, {"columns": {"submitted": "s"}}, "submitted"),
        ({"s": [1]}, {"columns": {"submit": 5}}, "submit: give the name of a column"),
        ({"s": [1]}, {"preset": "eagle"}, 'frame has no column "job_id"'),
        ({"s": [1]}, {"preset": "eagle", "columns": {"submit": "s"}}, "either preset or columns"),
        ({"s": [1]}, {"colour": "s"}, "colour"),
    ],
)
def test_a_wrong_frame_has_one_clear_error(columns: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises((ms.MiserlyError, TypeError), match=message):
        ms.Log.read(pl.DataFrame(columns), **options)


class Lies:
    def __init__(self, given: Any) -> None:
        self.given = given

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        if isinstance(self.given, Exception):
            raise self.given
        return self.given


def test_a_frame_without_jobs_is_refused() -> None:
    empty = pl.DataFrame({"submit": [1], "runtime": [1], "procs": [1]}).clear()
    with pytest.raises(ms.MiserlyError, match="no job"):
        ms.Log.read(empty)


def test_what_is_no_stream_is_refused() -> None:
    with pytest.raises(TypeError, match="give a path, or a data frame"):
        ms.Log.read(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no capsule"):
        ms.Log.read(Lies(5))
    with pytest.raises(KeyError, match="mine"):
        ms.Log.read(Lies(KeyError("mine")))
    with pytest.raises(ValueError):
        ms.Log.read(Lies(pa.schema([]).__arrow_c_schema__()))


def test_nulls_are_unknown_values() -> None:
    frame = pl.DataFrame({"submit": [0, None, 9], "runtime": [5, 5, 5], "procs": [1, 1, 1], "user": [None, 1, 2]})
    log = ms.Log.read(frame)
    assert len(log) == 2 and "submit time unknown" in str(log.conversion)
    users = [line.split()[11] for line in jobs_of(log.to_swf())]
    assert users == [b"-1", b"2"]


def test_accounting_is_read_as_the_program_does(tmp_path: Path) -> None:
    path = tmp_path / "march.txt"
    path.write_text(SACCT)
    log = ms.Log.read(path, procs=16, time_zone="UTC")
    assert (len(log), log.procs) == (29, 16)
    words = ["simulate", str(path), "-p", "easy", "--procs", "16", "--time-zone", "UTC", "--json"]
    printed = json.loads(subprocess.run([os.environ["MISERLY_PROGRAM"], *words], check=True, capture_output=True).stdout)
    document = ms.simulate(log, "easy").document
    assert document["metrics"] == printed["metrics"] and document["trace"] == printed["trace"]
    recorded = log.describe(by=["user"])["by"]
    words = ["compare", str(path), "-p", "easy", "--procs", "16", "--time-zone", "UTC", "--json", "--by", "user"]
    printed = json.loads(subprocess.run([os.environ["MISERLY_PROGRAM"], *words], check=True, capture_output=True).stdout)
    assert recorded == printed["recorded"][0]["by"]


def test_options_of_a_conversion_are_refused_for_a_log_that_needs_none(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_bytes(ms.Log.generate(jobs=5).to_swf())
    for options in ({"procs": 5}, {"lenient": True}):
        with pytest.raises(ms.MiserlyError, match="read as it is; give .* to simulate or compare"):
            ms.Log.read(path, **options)


def test_waits_by_group_need_recorded_waits() -> None:
    with pytest.raises(ms.MiserlyError, match="records no waits"):
        ms.Log.generate(jobs=50).describe(by=["user"])
    with pytest.raises(ms.MiserlyError, match='unknown grouping "height"'):
        ms.Log.generate(jobs=50).describe(by=["height"])
    assert pd.DataFrame(ms.Log.read(pl.DataFrame({"submit": [0, 1], "start": [5, 9], "runtime": [1, 1], "procs": [1, 1], "user": [1, 2]}), procs=4).describe(by=["user"])["by"]["user"]).shape[0] == 2
