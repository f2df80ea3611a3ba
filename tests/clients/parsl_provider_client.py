"""Parsl on the provider of the Python package: calls, an exception, and the end of the blocks."""

import os
import sys

import parsl
from parsl.config import Config
from parsl.executors import HighThroughputExecutor

try:
    from miserly.daemon import Client
    from miserly.parsl import MiserlyProvider
except ImportError as error:
    print(f"the Python package is not built (tests/python/run): {error}")
    sys.exit(77)


@parsl.python_app
def square(number: int) -> int:
    return number * number


@parsl.python_app
def fail() -> None:
    raise LookupError("mine")


folder = os.getcwd()
provider = MiserlyProvider(walltime=300, max_blocks=1, queue="batch", memory=400 << 20, worker_init=f"export PATH={os.environ['PATH']}")
executor = HighThroughputExecutor(label="htex", provider=provider, max_workers_per_node=1, address="127.0.0.1", encrypted=False)
with parsl.load(Config([executor], run_dir=folder, strategy="none")):
    assert [call.result(120) for call in [square(number) for number in range(5)]] == [0, 1, 4, 9, 16]
    try:
        fail().result(120)
        raise AssertionError("no exception")
    except LookupError:
        pass
    blocks = [job["number"] for job in Client().jobs()]
    assert len(blocks) == 1, blocks
for block in blocks:
    Client().job(block).wait(60)
print("Parsl on its own provider: calls, an exception, blocks ended")
