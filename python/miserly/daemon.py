"""A client of the Miserly daemon, and an executor whose futures know their promise.

>>> from miserly import daemon                      # doctest: +SKIP
>>> client = daemon.Client()                        # doctest: +SKIP
>>> job = client.submit(["./simulate", "1"], cpus=4, time=3600)   # doctest: +SKIP
>>> job.promise["start"]                            # doctest: +SKIP
'2026-11-30T13:05:00Z'

The bodies and answers are those of the HTTP interface of the daemon (docs/daemon/api.md). Times are in seconds, instants in
RFC 3339.
"""

from __future__ import annotations

import base64
import concurrent.futures
import http.client
import json
import os
import pickle
import socket
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import sleep
from typing import Any, TypeVar

__all__ = ["Client", "DaemonError", "Executor", "Future", "Job"]

_T = TypeVar("_T")

#: The states of a job that is over.
FINAL = frozenset({"done", "killed", "failed", "lost", "unreadable"})

# The seconds between two tries to reach a daemon that is away.
_PAUSE = 1.0


class DaemonError(Exception):
    """An answer of the daemon that is an error. `code` is its kind, such as "refused", and `problem` the whole answer."""

    def __init__(self, problem: dict[str, Any]) -> None:
        super().__init__(problem.get("message", str(problem)))
        self.code: str = problem.get("code", "internal")
        self.problem = problem


class _Connection(http.client.HTTPConnection):
    """A connection over a unix socket."""

    def __init__(self, path: str, timeout: float | None) -> None:
        super().__init__("miserly", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if self.timeout is not None:
            self.sock.settimeout(self.timeout)
        try:
            self.sock.connect(self._path)
        except OSError as error:
            self.sock.close()
            message = f"no daemon answers on {self._path}: {error}; start one, or set MISERLY_SOCKET"
            raise DaemonError({"code": "unavailable", "message": message}) from error


def _environment() -> dict[str, str]:
    """Returns the environment of this process. JSON has no variable that is not UTF-8, so such ones are left out."""
    return {name: value for name, value in os.environ.items() if _is_text(name) and _is_text(value)}


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _default_socket() -> str:
    given = os.environ.get("MISERLY_SOCKET")
    if given:
        return given
    own = os.environ.get("XDG_RUNTIME_DIR")
    path = Path(own) / "miserly/socket" if own else None
    return str(path) if path and path.exists() else "/run/miserly/socket"


class Client:
    """A client of a daemon, by its socket.

    Without a socket it is that of `MISERLY_SOCKET`, else the user's own, else that of the machine.
    """

    def __init__(self, socket: str | os.PathLike[str] | None = None) -> None:
        self.socket = os.fspath(socket) if socket is not None else _default_socket()

    def request(
        self, method: str, path: str, body: Any = None, *, timeout: float | None = 60
    ) -> Any:
        """Returns the answer to a request of the HTTP interface. An error of the daemon is a `DaemonError`."""
        connection = _Connection(self.socket, timeout)
        try:
            headers = {"Content-Type": "application/json"} if body is not None else {}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if answer.status >= 400:
            raise DaemonError(_problem(content))
        kind = answer.getheader("content-type", "")
        return json.loads(content) if kind.startswith("application/json") and content else content

    def submit(self, command: Sequence[str], *, time: float, cpus: int = 1, **options: Any) -> Job:
        """Submits a job of one command, without a shell. `time` is its limit in seconds.

        The options are the fields of a submission, such as `queue`, `memory` (bytes), `name`, `after`, `gpus` or `begin`. The
        job has the present folder and environment, unless `directory` or `environment` is given. A variable that is not UTF-8 is left
        out.
        """
        body = {
            "command": list(command),
            "time": time,
            "cpus": cpus,
            "directory": os.getcwd(),
            "environment": _environment(),
            "request_id": str(uuid.uuid4()),
        } | options
        return self._submitted(body)

    def _submitted(self, body: dict[str, Any]) -> Job:
        try:
            answer = self.request("POST", "/v1/jobs", body)
        except (ConnectionError, http.client.HTTPException):
            # With the same request id nothing is submitted twice.
            answer = self.request("POST", "/v1/jobs", body)
        first = answer["jobs"][0]
        return Job(self, first["number"], first.get("promise"))

    def quote(self, *, time: float, cpus: int = 1, **options: Any) -> dict[str, Any]:
        """Returns the promise that such a job would have now, without a submission."""
        body = {"command": ["true"], "time": time, "cpus": cpus, "directory": "/", "environment": {}} | options
        answer: dict[str, Any] = self.request("POST", "/v1/quote", body)["windows"][0]
        return answer

    def job(self, number: int) -> Job:
        """Returns a job by its number."""
        return Job(self, number, None)

    def jobs(self, *, all: bool = False) -> list[dict[str, Any]]:
        """Returns the unfinished jobs; with `all` also the last ones that ended."""
        found: list[dict[str, Any]] = []
        while True:
            after = f"&after={found[-1]['number']}" if found else ""
            page = self.request("GET", f"/v1/jobs?limit=10000{'&all=true' if all else ''}{after}")
            jobs = page["jobs"] if isinstance(page, dict) else page
            found += jobs
            if len(jobs) < 10000:
                return found

    def status(self) -> dict[str, Any]:
        """Returns the status of the daemon."""
        answer: dict[str, Any] = self.request("GET", "/v1/status")
        return answer

    def events(self, *, last: str | None = None) -> Iterator[tuple[str, str | None, Any]]:
        """Yields the events of the daemon as name, id and data. `last` is the id after which they continue."""
        connection = _Connection(self.socket, None)
        try:
            connection.request("GET", "/v1/events", headers={"Last-Event-ID": last} if last else {})
            answer = connection.getresponse()
            if answer.status >= 400:
                raise DaemonError(_problem(answer.read()))
            name, identity, data = "message", None, ""
            for line in answer:
                field, _, value = line.decode().rstrip("\n").partition(": ")
                if field == "event":
                    name = value
                elif field == "id":
                    identity = value
                elif field == "data":
                    data += value
                elif not field and data:
                    yield name, identity, json.loads(data)
                    name, data = "message", ""
        finally:
            connection.close()


def _problem(content: bytes) -> dict[str, Any]:
    try:
        problem = json.loads(content)
    except ValueError:
        problem = None
    if isinstance(problem, dict):
        return problem
    return {"code": "internal", "message": content.decode(errors="replace")}


class Job:
    """A job of a daemon."""

    def __init__(self, client: Client, number: int, promise: dict[str, Any] | None) -> None:
        self.client = client
        self.number = number
        #: The promise at the submission: the latest `start` and its `end`; `None` without one.
        self.promise = promise

    def show(self) -> dict[str, Any]:
        """Returns the job as it is now."""
        found: dict[str, Any] = self.client.request("GET", f"/v1/jobs/{self.number}")
        return found

    def wait(self, timeout: float | None = None) -> dict[str, Any]:
        """Returns the job once it is over. After `timeout` seconds a `TimeoutError` is raised; 0 looks once."""
        if timeout is not None and timeout <= 0:
            found = self.show()
            if found["phase"]["state"] not in FINAL:
                raise TimeoutError(f"job {self.number} is not over")
            return found
        over: dict[str, Any] = self.client.request("GET", f"/v1/jobs/{self.number}/wait", timeout=timeout)
        return over

    def cancel(self) -> None:
        """Withdraws the job, or ends it if it runs."""
        self.client.request("POST", f"/v1/jobs/{self.number}/cancel")

    def output(self) -> bytes:
        """Returns the output file."""
        found = b""
        while part := self.client.request("GET", f"/v1/jobs/{self.number}/output?from={len(found)}"):
            found += part
        return found

    def __repr__(self) -> str:
        return f"<Job {self.number}>"


class Future(concurrent.futures.Future[_T]):
    """The result of a call that is a job of the daemon. `job` has its number and its promise."""

    job: Job


class Executor(concurrent.futures.Executor):
    """Runs each call as a job of the daemon.

    The functions, their arguments and results are pickled, so a function must be importable by the jobs, which run the same
    Python. `time` and the other options are those of `Client.submit`. What a call prints is in the output of its job.
    """

    def __init__(
        self,
        client: Client | None = None,
        *,
        time: float,
        folder: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        self.client = client or Client()
        self._time = time
        self._options = options
        self._own = None if folder is not None else tempfile.TemporaryDirectory(prefix="miserly-")
        self._folder = Path(folder if folder is not None else self._own.name)  # type: ignore[union-attr]
        # The watched calls: those whose jobs are not over.
        self._watched: dict[Future[Any], threading.Thread] = {}
        self._lock = threading.Lock()
        self._is_shut = False

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        """Submits a call. The future is done when its job is over."""
        if self._is_shut:
            raise RuntimeError("cannot schedule new futures after shutdown")
        if getattr(fn, "__module__", None) == "__main__":
            raise ValueError(f"{fn!r} is of this script; put it into a module, which the job can import")
        result = self._folder / f"{uuid.uuid4()}.result"
        call = base64.b64encode(pickle.dumps((fn, args, kwargs))).decode()
        (call_file := result.with_suffix(".call")).write_text(call)
        program = "from miserly.daemon import _run_call; _run_call()"
        options: dict[str, Any] = {
            "output": str(result.with_suffix(".out")),
            "name": getattr(fn, "__name__", "call"),
            "environment": _environment() | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        } | self._options
        command = [sys.executable, "-c", program, str(call_file), str(result)]
        job = self.client.submit(command, time=self._time, **options)
        future: Future[_T] = Future()
        future.job = job
        watcher = threading.Thread(target=self._watch, args=(future, result), daemon=True)
        with self._lock:
            self._watched[future] = watcher
        watcher.start()
        return future

    def _watch(self, future: Future[Any], result: Path) -> None:
        future.set_running_or_notify_cancel()
        try:
            over = self._over(future.job)
            if result.exists():
                kind, value = pickle.loads(result.read_bytes())
                if kind == "error":
                    future.set_exception(value)
                else:
                    future.set_result(value)
            else:
                future.set_exception(JobFailed(over, result.with_suffix(".out")))
        except BaseException as error:
            future.set_exception(error)
        finally:
            # The output stays: it is the only record of what the call printed.
            for ending in (".call", ".result", ".made"):
                result.with_suffix(ending).unlink(missing_ok=True)
            with self._lock:
                self._watched.pop(future, None)

    def _over(self, job: Job) -> dict[str, Any]:
        """Waits for the end of a job, also while the daemon is away."""
        while True:
            try:
                return job.wait()
            except (ConnectionError, http.client.HTTPException):
                pass
            except DaemonError as error:
                if error.code != "unavailable":
                    raise
            sleep(_PAUSE)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Takes no further calls, and waits for those that were submitted. With `cancel_futures` their jobs are ended."""
        self._is_shut = True
        with self._lock:
            watched = dict(self._watched)
        if cancel_futures:
            for future in watched:
                if not future.done():
                    try:
                        future.job.cancel()
                    except DaemonError:
                        pass  # It was over before.
        if wait:
            for watcher in watched.values():
                watcher.join()
            if self._own is not None:
                self._own.cleanup()


class JobFailed(Exception):
    """The job of a call ended without a result. `job` is the job as it was then."""

    def __init__(self, job: dict[str, Any], output: Path) -> None:
        phase = job.get("phase", {})
        ended = phase.get("exit", phase.get("state"))
        text = output.read_text(errors="replace") if output.exists() else ""
        last = (text.strip().splitlines() or ["no output"])[-1]
        super().__init__(f"job {job.get('number')} ended without a result: {ended}; {last}")
        self.job = job


def _run_call() -> None:
    """Runs a call in its job, and writes the result at once or not at all."""
    call, result = map(Path, sys.argv[1:3])
    fn, args, kwargs = pickle.loads(base64.b64decode(call.read_text()))
    try:
        outcome: tuple[str, Any] = ("result", fn(*args, **kwargs))
    except Exception as error:
        outcome = ("error", error)
    made = result.with_suffix(".made")
    made.write_bytes(pickle.dumps(outcome))
    made.rename(result)
