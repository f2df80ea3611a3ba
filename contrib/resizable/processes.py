#!/usr/bin/env python3
"""Works on as many processes as the job has processors now.

miserly submit --cpus 8 --resizable --resize-signal B:USR1 --time 1h -- ./processes.py 1000
"""

import os
import signal
import sys
from concurrent.futures import ProcessPoolExecutor

resized = True


def on_resize(_signal, _frame):
    global resized
    resized = True


def processors():
    """Returns the number of processors: the file has their numbers, with commas between them."""
    path = os.environ.get("MISERLY_CPUS_FILE")
    if path is None:
        return len(os.sched_getaffinity(0))
    with open(path) as file:
        return len(file.read().split(","))


def work(most):
    return sum(1 / (number * number) for number in range(1, most))


def main():
    global resized
    batches = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    pool = None
    signal.signal(signal.SIGUSR1, on_resize)
    for batch in range(batches):
        if resized:
            # Before the file is read, so that a later change is not missed.
            resized = False
            if pool:
                pool.shutdown()
            pool = ProcessPoolExecutor(processors())
            print(f"batch {batch}: {processors()} processes", flush=True)
        list(pool.map(work, [20_000] * 8))


if __name__ == "__main__":
    main()
