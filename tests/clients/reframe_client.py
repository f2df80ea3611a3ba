"""ReFrame: two checks of our own on the backends slurm and squeue, with srun."""

import subprocess
import sys

SITE = """
site_configuration = {
    "systems": [{"name": "here", "hostnames": [".*"], "partitions": [
        {"name": name, "scheduler": name, "launcher": "srun", "environs": ["builtin"], "access": ["-p batch"]}
        for name in ("slurm", "squeue")]}],
    "environments": [{"name": "builtin", "cc": "cc"}],
}
"""
CHECKS = """
import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class Tasks(rfm.RunOnlyRegressionTest):
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "sh -c 'echo task $SLURM_PROCID of $SLURM_NTASKS'"
    num_tasks = 1
    time_limit = "2m"

    @sanity_function
    def prints(self):
        return sn.assert_found("task 0 of 1", self.stdout)
"""
with open("site.py", "w") as file:
    file.write(SITE)
with open("checks.py", "w") as file:
    file.write(CHECKS)
words = ["-C", "site.py", "-c", "checks.py", "--keep-stage-files", "-r"]
reframe = sys.executable.rsplit("/", 1)[0] + "/reframe"
assert subprocess.run([reframe, *words]).returncode == 0
