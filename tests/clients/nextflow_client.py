"""The command lines of Nextflow's SlurmExecutor: tasks that succeed, fail, reach the time limit, and are cancelled."""

import getpass
import pathlib
import re
import subprocess
import time

# What Nextflow waits for, by the short states of squeue.
ENDS = {"CD": "done", "CA": "error", "F": "error", "TO": "error", "NF": "error", "PR": "error"}

LAUNCHER = """#!/bin/bash
#SBATCH -J nf-{name}_(1)
#SBATCH -o {folder}/.command.log
#SBATCH --no-requeue
#SBATCH --signal B:USR2@30
#SBATCH -c 1
#SBATCH -t {limit}
#SBATCH --mem 100M
#SBATCH -p {queue}
{more}
on_exit() {{ code=$?; printf %s "$code" >{folder}/.exitcode; exit "$code"; }}
on_term() {{ set +e; kill "$pid" 2>/dev/null; wait "$pid"; }}
trap on_exit EXIT
trap on_term TERM INT USR2
{command} &
pid=$!
wait "$pid"
"""


def submit(name, command, limit="00:05:00", queue="batch", more=""):
    folder = pathlib.Path(name).resolve()
    folder.mkdir()
    script = LAUNCHER.format(name=name, folder=folder, limit=limit, queue=queue, command=command, more=more)
    (folder / ".command.run").write_text(script)
    answer = subprocess.run(["sbatch", ".command.run"], cwd=folder, capture_output=True, text=True, check=True)
    return re.search(r"Submitted batch job (\d+)", answer.stdout).group(1), folder


def states(queue="batch"):
    words = ["squeue", "--noheader", "-o", "%i %t", "-t", "all", "-p", queue, "-u", getpass.getuser()]
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    pairs = [line.split() for line in lines]
    assert all(len(pair) == 2 for pair in pairs), pairs
    return dict(pairs)


def ended(job, seconds=120):
    """Waits until the job has ended, as Nextflow sees it."""
    for _ in range(seconds * 5):
        state = states().get(job)
        if state in ENDS:
            return ENDS[state]
        time.sleep(0.2)
    raise AssertionError(f"{job} is {state}")


job, folder = submit("good", "echo hello")
assert ended(job) == "done"
assert (folder / ".command.log").read_text() == "hello\n"
assert (folder / ".exitcode").read_text() == "0"

job, folder = submit("bad", "exit 7")
assert ended(job) == "error"
assert (folder / ".exitcode").read_text() == "7"

late, late_folder = submit("late", "sleep 300", limit="00:01:00")
gone, _ = submit("gone", "sleep 300")
waits, _ = submit("waits", "sleep 300", more="#SBATCH --begin now+1hour")
assert states()[waits] == "PD"
subprocess.run(["scancel", gone, waits], check=True)
assert [ended(gone), ended(waits)] == ["error", "error"]
assert ended(late) == "error"
# The launcher got the early signal, and wrote the end of its task.
assert int((late_folder / ".exitcode").read_text()) > 128

array, folder = submit("array", "echo $SLURM_ARRAY_TASK_ID", more="#SBATCH --array 0-2")
for index in range(3):
    assert ended(f"{array}_{index}") == "done"
