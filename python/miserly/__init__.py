"""Miserly: a scheduler for parallel batch jobs. Logs, policies, runs, comparisons, and questions about a log.

>>> import miserly as ms
>>> log = ms.Log.generate(jobs=500, seed=1)
>>> run = ms.simulate(log, "easy")
>>> run.jobs.columns
['job', 'user', 'procs', 'submit', 'start', 'end', 'runtime', 'killed', 'reason']
>>> ms.Log.read(run.jobs)
<Log "frame": 500 jobs>
"""

from ._miserly import (
    Answer,
    Comparison,
    Job,
    JobOrder,
    JobTable,
    Log,
    MiserlyError,
    Run,
    compare,
    experiment,
    explain,
    forecast,
    simulate,
    what_if,
)
from ._policy import Policy

__all__ = [
    "Answer",
    "Comparison",
    "Job",
    "JobOrder",
    "JobTable",
    "Log",
    "MiserlyError",
    "Policy",
    "Run",
    "compare",
    "experiment",
    "explain",
    "forecast",
    "simulate",
    "what_if",
]
