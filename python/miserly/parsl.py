"""A provider of Parsl that runs its blocks as jobs of a Miserly daemon.

It needs Parsl: `pip install parsl`.

>>> from parsl.config import Config                              # doctest: +SKIP
>>> from parsl.executors import HighThroughputExecutor           # doctest: +SKIP
>>> from miserly.parsl import MiserlyProvider                    # doctest: +SKIP
>>> provider = MiserlyProvider(walltime=3600, cpus=8, max_blocks=4)             # doctest: +SKIP
>>> Config([HighThroughputExecutor(provider=provider)])          # doctest: +SKIP
"""

from __future__ import annotations

from typing import Any

from parsl.jobs.states import JobState, JobStatus  # type: ignore[import-not-found,import-untyped,unused-ignore]
from parsl.launchers import SimpleLauncher  # type: ignore[import-not-found,import-untyped,unused-ignore]
from parsl.launchers.base import Launcher  # type: ignore[import-not-found,import-untyped,unused-ignore]
from parsl.providers.base import ExecutionProvider  # type: ignore[import-not-found,import-untyped,unused-ignore]

from .daemon import FINAL, Client, DaemonError

__all__ = ["MiserlyProvider"]



class MiserlyProvider(ExecutionProvider):  # type: ignore[misc]
    """Runs each block as a job.

    `walltime` is the limit of a block in seconds. Further options are those of `Client.submit`, such as `cpus`, `memory` or `queue`.
    """

    def __init__(
        self,
        *,
        walltime: float,
        client: Client | None = None,
        init_blocks: int = 1,
        min_blocks: int = 0,
        max_blocks: int = 1,
        parallelism: float = 1,
        worker_init: str = "",
        launcher: Launcher | None = None,
        **options: Any,
    ) -> None:
        self.walltime = walltime
        self.client = client or Client()
        self.init_blocks, self.min_blocks, self.max_blocks = init_blocks, min_blocks, max_blocks
        self.parallelism = parallelism
        self.nodes_per_block = 1
        self.worker_init = worker_init
        self.launcher = launcher or SimpleLauncher()
        self.options = options
        self.script_dir: str | None = None
        self._cores: int | None = options.get("cpus", 1)
        self._memory: float | None = options["memory"] / 2**30 if "memory" in options else None

    @property
    def label(self) -> str:
        return "miserly"

    @property
    def status_polling_interval(self) -> int:
        return 2

    @property
    def mem_per_node(self) -> float | None:
        return self._memory

    @mem_per_node.setter
    def mem_per_node(self, value: float) -> None:
        self._memory = value

    @property
    def cores_per_node(self) -> int | None:
        return self._cores

    @cores_per_node.setter
    def cores_per_node(self, value: int) -> None:
        self._cores = value

    def submit(self, command: str, tasks_per_node: int, job_name: str = "parsl") -> str:
        """Submits a block, and returns the number of its job."""
        launched = self.launcher(command, tasks_per_node, self.nodes_per_block)
        script = "\n".join(filter(None, [self.worker_init, launched]))
        job = self.client.submit(["/bin/sh", "-c", script], time=self.walltime, name=job_name, **self.options)
        return str(job.number)

    def status(self, job_ids: list[Any]) -> list[JobStatus]:
        """Returns the states of blocks."""
        return [self._status(int(number)) for number in job_ids]

    def _status(self, number: int) -> JobStatus:
        try:
            phase = self.client.job(number).show()["phase"]
        except DaemonError as error:
            state = JobState.MISSING if error.code == "not_found" else JobState.UNKNOWN
            return JobStatus(state, message=str(error))
        if phase["state"] in ("running", "opportunistic", "suspended"):
            return JobStatus(JobState.RUNNING)
        if phase["state"] not in FINAL:
            return JobStatus(JobState.PENDING)
        code = phase.get("exit", {}).get("code") if phase["state"] == "done" else None
        return JobStatus(JobState.COMPLETED if code == 0 else JobState.FAILED, message=str(phase), exit_code=code)

    def cancel(self, job_ids: list[Any]) -> list[bool]:
        """Ends blocks. Returns which of them were not over."""
        ended = []
        for number in job_ids:
            try:
                self.client.job(int(number)).cancel()
                ended.append(True)
            except DaemonError:
                ended.append(False)
        return ended
