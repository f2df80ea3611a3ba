"""The score of a policy, in a process of its own with limits of time and memory.

>>> from miserly import benchmarks
>>> result = benchmarks.score("easy(order=shortest)")
>>> result["measures"]["bounded_slowdown"]["difference"] < 0
True

As a program: `python -m miserly.benchmarks POLICY`, where POLICY is the written form of a policy, or `file.py:name` of one in
Python. It prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import multiprocessing.process
import os
import pickle
import resource
import runpy
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from ._miserly import JobOrder, MiserlyError, score as _score
from ._policy import Policy

__all__ = ["score"]


def score(
    policy: str | JobOrder | Policy,
    *,
    windows: str = "training",
    against: str = "easy",
    seconds: float = 60,
    memory: int = 2 << 30,
) -> dict[str, Any]:
    """Returns the score of a policy on the training or the held-out windows, with differences to the policy `against`.

    The policy is its written form, `file.py:name`, or an object.

    The policy runs in a process of its own, which ends after `seconds` or when it takes more than `memory` bytes beyond those
    that this process has. The same policy gives the same score. An error of the policy is raised here.

    The process protects from mistakes and not from malice: it is one of this user, and the windows are no secret.
    """
    ours, theirs = multiprocessing.Pipe(duplex=False)
    context = multiprocessing.get_context("fork")
    process = context.Process(target=_scored, args=(theirs, policy, windows, against, memory), daemon=True)
    process.start()
    theirs.close()
    try:
        if not ours.poll(seconds):
            raise MiserlyError(f"score: the policy took more than {seconds} s")
        kind, result = ours.recv()
    except EOFError:
        process.join()
        why = "; it may have needed more memory" if (process.exitcode or 0) < 0 else ""
        raise MiserlyError(f"score: the process of the policy ended with code {process.exitcode}{why}") from None
    finally:
        _end(process)
    if kind == "error":
        raise result
    found: dict[str, Any] = result
    return found


def _end(process: multiprocessing.process.BaseProcess) -> None:
    """Ends the process of a policy and those that it has started."""
    if process.pid is not None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass  # It has ended, or has not become a session yet.
    process.kill()
    process.join()


def _scored(
    pipe: Connection, policy: str | JobOrder | Policy, windows: str, against: str, memory: int
) -> None:
    try:
        os.setsid()
        with open("/proc/self/statm") as sizes:
            used = int(sizes.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))
        loaded = _named(policy) if isinstance(policy, str) else policy
        pipe.send(("score", _score(loaded, windows=windows, against=against)))
    except BaseException as error:  # Whatever the policy raises is that of the caller.
        pipe.send(("error", _sendable(error)))


def _sendable(error: BaseException) -> Exception:
    """Returns an error that another process can read and that ends no program."""
    try:
        if isinstance(error, Exception) and type(pickle.loads(pickle.dumps(error))) is type(error):
            return error
    except Exception:
        pass
    return MiserlyError(f"score: {type(error).__name__}: {error}")


def _named(text: str) -> str | JobOrder | Policy:
    file, colon, name = text.rpartition(":")
    if not colon or not file.endswith(".py"):
        return text
    try:
        found = runpy.run_path(file)[name]
    except (KeyError, OSError) as error:
        raise MiserlyError(f"{text}: {error}; give file.py:name of a policy") from None
    policy: JobOrder | Policy = found() if isinstance(found, type) else found
    return policy


def main() -> int:
    """Prints the score of a policy as one line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m miserly.benchmarks", description="Scores a policy.")
    parser.add_argument("policy", help="its written form, or file.py:name")
    parser.add_argument("--windows", default="training", choices=["training", "held-out"])
    parser.add_argument("--against", default="easy", help="the policy that it is compared with [easy]")
    parser.add_argument("--seconds", type=float, default=60, help="the longest time [60]")
    parser.add_argument("--memory", type=int, default=2048, help="the most memory in MiB [2048]")
    given = parser.parse_args()
    try:
        result = score(
            given.policy,
            windows=given.windows,
            against=given.against,
            seconds=given.seconds,
            memory=given.memory << 20,
        )
    except Exception as error:
        kind = "" if isinstance(error, MiserlyError) else f"{type(error).__name__}: "
        print(f"error: {kind}{error}", file=sys.stderr)
        return 2
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
