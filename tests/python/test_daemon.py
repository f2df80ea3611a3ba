"""The client and the executor, against a real daemon."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from miserly import daemon


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The outputs of jobs are in a folder of the test."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[daemon.Client]:
    program = os.environ.get("MISERLY_DAEMON")
    if not program or not Path(program).exists():
        pytest.skip("MISERLY_DAEMON names no program with the feature daemon")
    folder = tmp_path_factory.mktemp("daemon")
    (folder / "daemon.toml").write_text(
        '[[queue]]\nname = "batch"\npolicy = "conservative"\ndefault-time = "10min"\ndefault-memory = "256MiB"\n'
    )
    words = ["daemon", "--config", "daemon.toml", "--state", "state", "--socket", "socket", "--share-cpus"]
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen([program, *words], cwd=folder, stderr=log, start_new_session=True)
    client = daemon.Client(folder / "socket")
    for _ in range(600):
        try:
            client.status()
            break
        except daemon.DaemonError:
            time.sleep(0.1)
    yield client
    for job in client.jobs():
        client.job(job["number"]).cancel()
    process.send_signal(signal.SIGTERM)
    process.wait(60)


def test_a_job_from_its_submission_to_its_output(client: daemon.Client, tmp_path: Path) -> None:
    job = client.submit(["sh", "-c", "echo hi; exit 3"], time=60, output=str(tmp_path / "out"), name="mine")
    assert job.promise is not None and job.promise["start"] < job.promise["end"]
    over = job.wait(60)
    assert (over["name"], over["phase"]["exit"]) == ("mine", {"code": 3})
    assert job.output() == b"hi\n"
    assert job.number in [found["number"] for found in client.jobs(all=True)]
    with pytest.raises(daemon.DaemonError, match="is over") as raised:
        job.cancel()
    assert raised.value.code == "conflict"


def test_bad_input_is_an_error_of_the_daemon(client: daemon.Client) -> None:
    with pytest.raises(daemon.DaemonError) as raised:
        client.submit(["true"], time=60, cpus=100_000)
    assert raised.value.code == "refused"
    with pytest.raises(daemon.DaemonError, match="there is no job 12345"):
        client.job(12345).show()
    with pytest.raises(daemon.DaemonError, match="no daemon answers on /missing"):
        daemon.Client("/missing").status()


def test_events_begin_with_all_jobs_and_continue(client: daemon.Client) -> None:
    events = client.events()
    name, _, data = next(events)
    assert (name, "jobs" in data) == ("snapshot", True)
    job = client.submit(["true"], time=60)
    for name, _, data in events:
        numbers = [found["number"] for found in data["jobs"]] if name == "change" else []
        if job.number in numbers:
            break
    events.close()  # type: ignore[attr-defined]


def test_a_quote_submits_nothing(client: daemon.Client) -> None:
    before = len(client.jobs(all=True))
    assert client.quote(time=60)["start"]
    assert len(client.jobs(all=True)) == before


def test_a_wait_can_end_early(client: daemon.Client) -> None:
    job = client.submit(["sleep", "600"], time=900)
    with pytest.raises(TimeoutError):
        job.wait(0.2)
    job.cancel()
    assert job.wait(60)["phase"]["state"] != "running"


def test_a_job_that_is_killed_is_over(client: daemon.Client) -> None:
    job = client.submit(["sleep", "600"], time=1)
    assert job.wait(60)["phase"]["state"] == "killed"
    assert job.wait(0)["phase"]["state"] in daemon.FINAL
    waiting = client.submit(["sleep", "600"], time=900)
    with pytest.raises(TimeoutError, match="is not over"):
        waiting.wait(0)
    waiting.cancel()


def test_calls_are_jobs(client: daemon.Client) -> None:
    with daemon.Executor(client, time=60) as executor:
        futures = [executor.submit(pow, 2, number) for number in range(4)]
        assert [future.result(120) for future in futures] == [1, 2, 4, 8]
        assert futures[0].job.promise is not None
        assert list(executor.map(abs, [-1, 2])) == [1, 2]
        wrong = executor.submit(int, "x")
        with pytest.raises(ValueError, match="invalid literal"):
            wrong.result(120)
        dead = executor.submit(os._exit, 7)
        with pytest.raises(daemon.JobFailed, match="without a result"):
            dead.result(120)
    with pytest.raises(RuntimeError):
        executor.submit(pow, 1, 1)


def test_an_executor_forgets_calls_that_are_over(client: daemon.Client, tmp_path: Path) -> None:
    with daemon.Executor(client, time=60, folder=tmp_path) as executor:
        for number in range(3):
            assert executor.submit(abs, -number).result(120) == number
        for _ in range(600):
            if not executor._watched:
                break
            time.sleep(0.1)
        assert not executor._watched
        assert {path.suffix for path in tmp_path.iterdir()} == {".out"}


def test_a_variable_that_is_not_utf_8_is_left_out(client: daemon.Client, tmp_path: Path) -> None:
    os.environb[b"MISERLY_ODD"] = b"\xff"
    try:
        job = client.submit(["sh", "-c", "echo ${MISERLY_ODD-none}"], time=60, output=str(tmp_path / "out"))
    finally:
        del os.environb[b"MISERLY_ODD"]
    job.wait(60)
    assert job.output() == b"none\n"


def test_a_shutdown_may_end_the_jobs(client: daemon.Client) -> None:
    executor = daemon.Executor(client, time=900)
    future = executor.submit(time.sleep, 600)
    executor.shutdown(cancel_futures=True)
    with pytest.raises(daemon.JobFailed):
        future.result(1)
