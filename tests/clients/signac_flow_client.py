"""signac-flow: an operation of two jobs of a project."""

import os
import subprocess
import sys
import time

PROJECT = """
import flow


class Project(flow.FlowProject):
    pass


class Here(flow.environment.DefaultSlurmEnvironment):
    template = "slurm.sh"

    @classmethod
    def is_present(cls):
        return True


@Project.post.isfile("out")
@Project.operation(directives={"walltime": 0.05, "memory": "200M"})
def work(job):
    with open(job.fn("out"), "w") as file:
        file.write("done")


if __name__ == "__main__":
    Project(environment=Here).main()
"""
with open("project.py", "w") as file:
    file.write(PROJECT)
import signac

project = signac.init_project()
jobs = [project.open_job({"a": a}) for a in range(2)]
for job in jobs:
    job.init()
assert subprocess.run([sys.executable, "project.py", "submit"]).returncode == 0
for _ in range(120):
    if all(os.path.exists(job.fn("out")) for job in jobs):
        break
    time.sleep(0.5)
assert all(os.path.exists(job.fn("out")) for job in jobs)
