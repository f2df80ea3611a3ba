"""dask-jobqueue: a cluster of one worker, by number and by load."""

import sys

from dask.distributed import Client
from dask_jobqueue import SLURMCluster

if __name__ == "__main__":
    with SLURMCluster(
        cores=1, memory="300MB", processes=1, walltime="00:05:00", log_directory="log", python=sys.executable
    ) as cluster:
        cluster.scale(jobs=1)
        with Client(cluster) as client:
            client.wait_for_workers(1, timeout=60)
            assert client.submit(lambda x: x + 1, 41).result() == 42
            cluster.adapt(minimum=0, maximum=1)
            assert client.gather(client.map(lambda x: x * x, range(5))) == [0, 1, 4, 9, 16]
