"""A program of MPI in jobs: by the launcher of its library, and by srun."""

import shutil
import subprocess
import sys

# The exit code for what this machine does not have.
ABSENT = 77

SOURCE = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  int rank, size, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("%d of %d, sum %d, task %s\\n", rank, size, sum, getenv("SLURM_PROCID"));
  fflush(stdout);
  if (argc > 1 && rank == 1) MPI_Abort(MPI_COMM_WORLD, 5);
  if (argc > 1) MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
"""


def compile_hello(library):
    """Compiles the program with the compiler of a library, or ends this test without it."""
    compiler = f"mpicc.{library}"
    if not shutil.which(compiler):
        print(f"there is no {compiler}")
        sys.exit(ABSENT)
    with open("hello.c", "w") as file:
        file.write(SOURCE)
    subprocess.run([compiler, "hello.c", "-o", "hello"], check=True)


def job(command):
    """Runs a command in a job of two tasks. Returns its exit code, and the lines of its output."""
    words = ["sbatch", "--wait", "--ntasks=2", "--time=1", "--mem=500", "--output=out", f"--wrap={command}"]
    code = subprocess.run(words, stdout=subprocess.DEVNULL).returncode
    with open("out") as file:
        return code, sorted(file.read().splitlines())


def check(command, tasks=True):
    """Checks that two ranks found each other; by srun each is a task."""
    numbers = [0, 1] if tasks else [0, 0]
    expect = [f"{rank} of 2, sum 1, task {numbers[rank]}" for rank in (0, 1)]
    found = job(command)
    assert found == (0, expect), f"{command}: {found}"


def check_abort(command):
    code, lines = job(command)
    assert code != 0 and any("of 2" in line for line in lines), f"{command}: {code}, {lines}"
