"""PSI/J: a job that ends, one that fails, one that is cancelled."""

from datetime import timedelta

from psij import Job, JobAttributes, JobExecutor, JobSpec, JobState

executor = JobExecutor.get_instance("slurm")


def submit(program, *arguments):
    attributes = JobAttributes(duration=timedelta(minutes=2), queue_name="batch")
    job = Job(JobSpec(executable=program, arguments=list(arguments), attributes=attributes))
    executor.submit(job)
    return job


assert submit("/bin/true").wait(timeout=timedelta(minutes=2)).state == JobState.COMPLETED
assert submit("/bin/false").wait(timeout=timedelta(minutes=2)).state == JobState.FAILED
job = submit("/bin/sleep", "300")
job.wait(target_states=[JobState.ACTIVE], timeout=timedelta(minutes=2))
job.cancel()
assert job.wait(timeout=timedelta(minutes=2)).state == JobState.CANCELED
