"""MPICH of Debian: mpirun inside a job, and srun by its process-management interface."""

import mpi

mpi.compile_hello("mpich")
mpi.check("mpirun.mpich ./hello", tasks=False)
mpi.check("mpirun.mpich -n 2 ./hello", tasks=False)
mpi.check("srun -n 2 ./hello")
mpi.check("srun --mpi=pmi2 ./hello")
mpi.check_abort("srun -n 2 ./hello abort")
# Without the interface each task is alone.
code, lines = mpi.job("srun --mpi=none -n 2 ./hello")
assert code == 0 and [line.split(",")[0] for line in lines] == ["0 of 1", "0 of 1"], lines
