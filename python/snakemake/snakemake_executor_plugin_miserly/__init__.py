"""Runs the rules of Snakemake as jobs of a Miserly daemon: `snakemake --executor miserly --jobs 10`.

The resources of a rule are those of its job: `threads`, `mem_mb`, `runtime` (minutes), `gpus`, and `miserly_queue`.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any, Optional

from miserly.daemon import FINAL, Client, DaemonError
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface
from snakemake_interface_executor_plugins.settings import CommonSettings, ExecutorSettingsBase


@dataclass
class ExecutorSettings(ExecutorSettingsBase):
    """The settings of the executor."""

    # The registry of plug-ins understands no other form of this type.
    socket: Optional[str] = field(default=None, metadata={"help": "The socket of the daemon [MISERLY_SOCKET]"})
    runtime: int = field(default=60, metadata={"help": "The limit of a rule without a runtime, in minutes"})


common_settings = CommonSettings(
    non_local_exec=True,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    pass_default_storage_provider_args=True,
    pass_default_resources_args=True,
    pass_envvar_declarations_to_cmd=False,
    auto_deploy_default_storage_provider=False,
    init_seconds_before_status_checks=1,
)


class Executor(RemoteExecutor):  # type: ignore[misc]
    """The executor."""

    def __post_init__(self) -> None:
        self.client = Client(self.workflow.executor_settings.socket)

    def run_job(self, job: JobExecutorInterface) -> None:
        """Submits a rule."""
        resources = job.resources
        options: dict[str, Any] = {"cpus": job.threads, "name": f"smk-{job.name}"}
        if resources.get("mem_mb"):
            options["memory"] = int(resources["mem_mb"]) * 1_000_000
        if resources.get("gpus") or resources.get("gpu"):
            options["gpus"] = int(resources.get("gpus") or resources.get("gpu"))
        if resources.get("miserly_queue"):
            options["queue"] = resources["miserly_queue"]
        minutes = resources.get("runtime") or self.workflow.executor_settings.runtime
        command = ["/bin/sh", "-c", self.format_job_exec(job)]
        try:
            submitted = self.client.submit(command, time=float(minutes) * 60, **options)
        except DaemonError as error:
            raise WorkflowError(f"miserly: {error}") from error
        if submitted.promise:
            self.logger.info(f"Job {submitted.number} starts by {submitted.promise['start']}.")
        self.report_job_submission(SubmittedJobInfo(job, external_jobid=str(submitted.number)))

    async def check_active_jobs(
        self, active_jobs: list[SubmittedJobInfo]
    ) -> AsyncGenerator[SubmittedJobInfo, None]:
        """Reports the jobs that are over, and yields the others."""
        for active in active_jobs:
            async with self.status_rate_limiter:
                try:
                    found = self.client.job(int(active.external_jobid)).show()
                except (DaemonError, OSError, HTTPException) as error:
                    if isinstance(error, DaemonError) and error.code != "unavailable":
                        raise WorkflowError(f"miserly: {error}") from error
                    yield active  # The daemon is away: its jobs go on.
                    continue
            phase = found["phase"]
            if phase["state"] == "done" and phase.get("exit", {}).get("code") == 0:
                self.report_job_success(active)
            elif phase["state"] in FINAL:
                message = f"Job {active.external_jobid} ended: {phase}; its output is {found.get('output')}"
                self.report_job_error(active, msg=message)
            else:
                yield active

    def cancel_jobs(self, active_jobs: list[SubmittedJobInfo]) -> None:
        """Ends jobs."""
        for active in active_jobs:
            try:
                self.client.job(int(active.external_jobid)).cancel()
            except DaemonError:
                pass  # It was over before.
