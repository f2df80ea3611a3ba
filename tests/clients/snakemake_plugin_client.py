"""snakemake with the plug-in for Miserly: two rules, one that fails, and a resource that no machine has."""

import importlib.util
import json
import subprocess
import sys

from miserly.daemon import Client

SNAKEFILE = """
rule all:
    input: expand("out{i}.txt", i=range(2))
rule one:
    output: "out{i}.txt"
    resources: mem_mb=200, runtime=2, miserly_queue="batch"
    shell: "echo {wildcards.i} > {output}"
rule fails:
    output: "never.txt"
    resources: runtime=2
    shell: "exit 3"
rule large:
    output: "large.txt"
    threads: 1
    resources: mem_mb=900000000, runtime=2
    shell: "true"
"""


def snakemake(target):
    words = ["-m", "snakemake", "--executor", "miserly", "--jobs", "2", "--seconds-between-status-checks", "1", "--", target]
    made = subprocess.run([sys.executable, *words], stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True)
    print(made.stdout)
    return made


assert importlib.util.find_spec("snakemake_executor_plugin_miserly"), "the plug-in is in PYTHONPATH"
with open("Snakefile", "w") as file:
    file.write(SNAKEFILE)
first = snakemake("all")
assert first.returncode == 0
assert open("out1.txt").read() == "1\n"
names = [job["name"] for job in Client().jobs(all=True)]
assert names.count("smk-one") == 2, json.dumps(names)
assert snakemake("never.txt").returncode != 0
large = snakemake("large.txt")
assert large.returncode != 0 and "memory" in large.stdout
