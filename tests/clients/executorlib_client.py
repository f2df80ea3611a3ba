"""executorlib: functions as jobs of Slurm, by pysqa."""

from executorlib import SlurmClusterExecutor


def add(a, b):
    return a + b


with SlurmClusterExecutor(cache_directory="cache", resource_dict={"cores": 1, "run_time_max": 120}) as executor:
    assert executor.submit(add, 2, b=3).result(timeout=120) == 5
