"""Open MPI of Debian: mpirun inside a job, and srun with its launcher."""

import os

import mpi

mpi.compile_hello("openmpi")
# Its launcher runs as root only if it is told to.
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
mpi.check("mpirun.openmpi ./hello", tasks=False)
mpi.check("mpirun.openmpi -np 2 ./hello", tasks=False)
mpi.check("srun --mpi=pmix -n 2 ./hello")
mpi.check_abort("srun --mpi=pmix -n 2 ./hello abort")
