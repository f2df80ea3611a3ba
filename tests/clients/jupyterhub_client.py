"""JupyterHub with batchspawner: a hub starts, stops and gives up servers, as docs/how-to/jupyterhub.md sets it up."""

import json
import os
import pwd
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

NAME = pwd.getpwuid(os.getuid()).pw_name
TOKEN = "a-token-of-the-test"
LATE = "late"
PROXY = Path(sys.prefix, "node_modules", ".bin", "configurable-http-proxy")


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


PUBLIC, HUB, API = free_ports(3)

CONFIG = f"""
import batchspawner  # The hub needs its handler.

c.JupyterHub.bind_url = "http://127.0.0.1:{PUBLIC}"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{HUB}"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{API}"
c.ConfigurableHTTPProxy.command = [{str(PROXY)!r}]
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allowed_users = {{{NAME!r}}}
c.JupyterHub.allow_named_servers = True
c.JupyterHub.tornado_settings = {{"slow_spawn_timeout": 0}}  # A request to spawn returns at once.
c.JupyterHub.services = [{{"name": "test", "api_token": {TOKEN!r}}}]
c.JupyterHub.load_roles = [{{
    "name": "test",
    "services": ["test"],
    "scopes": ["admin:users", "admin:servers", "access:servers"],
}}]

c.JupyterHub.spawner_class = "batchspawner.SlurmSpawner"
c.SlurmSpawner.exec_prefix = ""
c.SlurmSpawner.env_keep = ["PATH", "MISERLY_SOCKET"]
c.SlurmSpawner.req_memory = "200M"
c.SlurmSpawner.req_runtime = "5"
c.SlurmSpawner.req_nprocs = "1"
c.SlurmSpawner.batch_script = '''#!/bin/bash
#SBATCH --job-name=jupyter --output=jupyter-%j.log
#SBATCH --time={{{{runtime}}}} --mem={{{{memory}}}} --cpus-per-task={{{{nprocs}}}}
#MISERLY --no-opportunistic
{{{{cmd}}}}
'''
c.Spawner.cmd = ["jupyterhub-singleuser"]
c.Spawner.args = ["--allow-root"] if {os.getuid()} == 0 else []
c.Spawner.http_timeout = 120
c.Spawner.start_timeout = 180
c.Spawner.poll_interval = 2
c.BatchSpawnerBase.startup_poll_interval = 0.5


def shorten(spawner):
    if spawner.name == {LATE!r}:
        spawner.start_timeout = 6


c.Spawner.pre_spawn_hook = shorten
"""


def request(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"token {TOKEN}"}
    asked = urllib.request.Request(f"http://127.0.0.1:{PUBLIC}{path}", data, headers, method=method)
    with urllib.request.urlopen(asked, timeout=60) as reply:
        text = reply.read()
        return reply.status, json.loads(text) if text else None


def wait_for(what, condition, seconds=200):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if found := condition():
                return found
        except (urllib.error.URLError, ConnectionError):
            pass
        time.sleep(0.5)
    raise AssertionError(f"{what}: not within {seconds} s")


def server(name=""):
    return request("GET", f"/hub/api/users/{NAME}?include_stopped_servers")[1]["servers"].get(name)


def command(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def jobs():
    return command("squeue", "--me", "-h", "-o", "%i %T %j").splitlines()


def main():
    Path("jupyterhub_config.py").write_text(CONFIG)
    with open("hub.log", "w") as log:
        hub = subprocess.Popen(["jupyterhub", "-f", "jupyterhub_config.py"], stdout=log, stderr=log)
    try:
        check()
    except BaseException:
        print(Path("hub.log").read_text()[-6000:])
        for log in Path().glob("jupyter-*.log"):
            print(log, log.read_text()[-2000:])
        raise
    finally:
        hub.send_signal(signal.SIGTERM)
        hub.wait(60)


def check():
    wait_for("the hub", lambda: request("GET", "/hub/api/")[0] == 200)
    try:
        request("POST", f"/hub/api/users/{NAME}")
    except urllib.error.HTTPError as error:
        assert error.code == 409, error

    # Spawn: the server is a job, and answers through the proxy.
    assert request("POST", f"/hub/api/users/{NAME}/server")[0] in (201, 202)
    wait_for("the server", lambda: server()["ready"])
    (line,) = jobs()
    job, state, name = line.split()
    assert (state, name) == ("RUNNING", "jupyter"), line
    status, answer = request("GET", f"/user/{NAME}/api/status")
    assert status == 200 and "kernels" in answer, answer

    # Stop: the job is cancelled.
    assert request("DELETE", f"/hub/api/users/{NAME}/server")[0] in (202, 204)
    wait_for("the end", lambda: not jobs())
    assert command("sacct", "-n", "-X", "-P", "-j", job, "-o", "State").startswith("CANCELLED")
    wait_for("the stop", lambda: not (server() or {}).get("ready"))

    # Time-out: the job waits behind one with all processors, and is taken back.
    blocker = command("sbatch", "--parsable", "--exclusive", "--time=5", "--wrap", "sleep 300")
    wait_for("the other job", lambda: command("squeue", "-h", "-j", blocker, "-o", "%T") == "RUNNING")
    assert request("POST", f"/hub/api/users/{NAME}/servers/{LATE}")[0] in (201, 202)
    (waiting,) = wait_for("a waiting job", lambda: [line for line in jobs() if " PENDING " in line])
    start = command("squeue", "--start", "-h", "-j", waiting.split()[0], "-o", "%S")
    assert start.startswith("20"), f"no promised start: {start}"
    wait_for("the time-out", lambda: not [line for line in jobs() if "jupyter" in line], 60)
    assert not (server(LATE) or {}).get("ready")
    command("scancel", blocker)


main()
