"""Parsl: SlurmProvider with the executor for high throughput."""

import parsl
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.launchers import SimpleLauncher, SrunLauncher
from parsl.providers import SlurmProvider


@parsl.python_app
def square(x):
    return x * x


for launcher in (SimpleLauncher(), SrunLauncher()):
    provider = SlurmProvider(
        partition="batch", walltime="00:05:00", nodes_per_block=1, init_blocks=1, max_blocks=1, exclusive=False, launcher=launcher
    )
    executor = HighThroughputExecutor(label="slurm", max_workers_per_node=1, provider=provider, address="127.0.0.1")
    with parsl.load(Config(executors=[executor], strategy="none")):
        assert [square(x).result(timeout=120) for x in range(3)] == [0, 1, 4]
