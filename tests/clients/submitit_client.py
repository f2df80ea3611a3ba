"""submitit: a job, an array, a failure, a checkpoint with requeue at the time limit, a cancellation."""

import time

import submitit


class Slow:
    def __init__(self):
        self.runs = 0

    def __call__(self):
        self.runs += 1
        if self.runs > 1:
            return self.runs
        time.sleep(600)

    def checkpoint(self):
        return submitit.helpers.DelayedSubmission(self)


def add(a, b):
    return a + b


def fail():
    raise ValueError("wanted")


submitit.SlurmJob.watcher._delay_s = 1
executor = submitit.SlurmExecutor(folder="log")
executor.update_parameters(time=2, partition="batch", mem="200M", cpus_per_task=1, signal_delay_s=30)
assert executor.submit(add, 2, 3).result() == 5
jobs = executor.map_array(add, range(4), range(4))
assert [job.result() for job in jobs] == [0, 2, 4, 6]
assert jobs[3].job_id.endswith("_3"), jobs[3].job_id
assert isinstance(executor.submit(fail).exception(), submitit.core.utils.FailedJobError)

executor.update_parameters(time=1, signal_delay_s=50)
assert executor.submit(Slow()).result() == 2

job = executor.submit(time.sleep, 300)
while job.watcher.get_state(job.job_id, mode="force") != "RUNNING":
    time.sleep(0.5)
job.cancel()
for _ in range(60):
    state = job.watcher.get_state(job.job_id, mode="force")
    if state.startswith("CANCELLED"):
        break
    time.sleep(0.5)
assert state.startswith("CANCELLED"), state
