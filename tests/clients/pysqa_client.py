"""pysqa: a job by its adapter for Slurm."""

import os
import time

from pysqa import QueueAdapter

queue = QueueAdapter(queue_type="SLURM")
os.makedirs("job", exist_ok=True)
job = queue.submit_job(job_name="test", working_directory=os.path.abspath("job"), cores=1, run_time_max=120, command="sleep 3; echo done > out")
assert queue.get_status_of_job(process_id=job) in ("running", "pending"), queue.get_status_of_job(process_id=job)
assert job in list(queue.get_queue_status()["jobid"])
for _ in range(60):
    if os.path.exists("job/out"):
        break
    time.sleep(0.5)
assert open("job/out").read() == "done\n"
other = queue.submit_job(job_name="other", working_directory=os.path.abspath("job"), cores=1, run_time_max=120, command="sleep 300")
queue.delete_job(process_id=other)
