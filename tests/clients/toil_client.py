"""toil: a workflow in Python on the batch system slurm."""

from toil.common import Toil
from toil.job import Job


def add(a, b):
    return a + b


if __name__ == "__main__":
    options = Job.Runner.getDefaultOptions("./store")
    options.batchSystem = "slurm"
    options.clean = "always"
    options.disableAutoDeployment = True
    options.statePollingWait = 1
    options.defaultMemory = "200M"
    options.slurmTime = "0:05:00"
    with Toil(options) as workflow:
        first = Job.wrapFn(add, 1, 2, memory="200M", cores=1, disk="100M")
        second = first.addFollowOnFn(add, first.rv(), 4, memory="200M", cores=1, disk="100M")
        workflow.start(first)
