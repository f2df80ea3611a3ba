"""Cylc: a workflow of two tasks by the job runner slurm."""

import os
import subprocess
import sys

FLOW = """
[scheduler]
    allow implicit tasks = False
    [[events]]
        stall timeout = PT0S
        abort on stall timeout = True
[scheduling]
    [[graph]]
        R1 = first => second
[runtime]
    [[root]]
        platform = here
        [[[directives]]]
            --time = 2
            --mem = 200M
    [[first]]
        script = echo $SLURM_JOB_ID
    [[second]]
        script = srun hostname
"""
# A login shell runs the job, and has a PATH of its own.
FLOW = FLOW.replace("platform = here", f"platform = here\n        init-script = export PATH={os.environ['PATH']}")
PLATFORM = f"""
[platforms]
    [[here]]
        hosts = localhost
        job runner = slurm
        install target = localhost
        cylc path = {os.path.dirname(sys.executable)}
        submission polling intervals = PT2S
        execution polling intervals = PT2S
        communication method = poll
"""
os.environ["CYLC_CONF_PATH"] = os.getcwd()
os.environ["HOME"] = os.getcwd()
os.makedirs("flow", exist_ok=True)
for name, text in (("flow/flow.cylc", FLOW), ("global.cylc", PLATFORM)):
    with open(name, "w") as file:
        file.write(text)
cylc = sys.executable.rsplit("/", 1)[0] + "/cylc"
assert subprocess.run([cylc, "vip", "--no-detach", "--no-run-name", "--workflow-name=test", "./flow"]).returncode == 0
