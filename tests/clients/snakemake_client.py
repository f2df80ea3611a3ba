"""snakemake with its plug-in for Slurm: two rules, and one that fails."""

import subprocess
import sys

SNAKEFILE = """
rule all:
    input: expand("out{i}.txt", i=range(2))
rule one:
    output: "out{i}.txt"
    resources: mem_mb=200, runtime=2
    shell: "echo {wildcards.i} $SLURM_JOB_ID > {output}"
rule fails:
    output: "never.txt"
    resources: mem_mb=200, runtime=2
    shell: "exit 3"
"""

def snakemake(target, account="physics"):
    words = ["-m", "snakemake", "--executor", "slurm", "--jobs", "2", "--seconds-between-status-checks", "5"]
    options = ["--slurm-init-seconds-before-status-checks", "5", "--default-resources", "slurm_partition=main"]
    return subprocess.run([sys.executable, *words, *options, f"slurm_account={account}", "--", target]).returncode


with open("Snakefile", "w") as file:
    file.write(SNAKEFILE)
assert snakemake("all") == 0
assert open("out1.txt").read().startswith("1 ")
assert snakemake("never.txt") != 0
# The plug-in asks for the accounts before it submits.
assert snakemake("out3.txt", account="unknown") != 0
