"""Miserly: a scheduler for parallel batch jobs. Logs, policies, runs and comparisons.

>>> import miserly as ms
>>> log = ms.Log.generate(jobs=500, seed=1)
>>> run = ms.simulate(log, "easy")
>>> run.jobs.columns
['job', 'user', 'procs', 'submit', 'start', 'end', 'runtime', 'killed', 'reason']
"""

from ._miserly import Comparison, Job, JobOrder, JobTable, Log, MiserlyError, Run, compare, simulate
from ._policy import Policy

__all__ = ["Comparison", "Job", "JobOrder", "JobTable", "Log", "MiserlyError", "Policy", "Run", "compare", "simulate"]
