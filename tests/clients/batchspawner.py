"""batchspawner: SlurmSpawner submits, polls and cancels, as a JupyterHub does for a user."""

import asyncio
import os
import pwd
import sys

sys.path.pop(0)  # This file has the name of the package.
from batchspawner import SlurmSpawner
from jupyterhub import orm
from jupyterhub.objects import Hub, Server
from jupyterhub.user import User
from traitlets.config import Config


async def main():
    name = pwd.getpwuid(os.getuid()).pw_name
    session = orm.new_session_factory("sqlite:///:memory:")()
    user = orm.User(name=name)
    session.add(user)
    session.commit()
    hub = Hub()
    config = Config()
    config.SlurmSpawner.exec_prefix = ""
    config.SlurmSpawner.batch_submit_cmd = "sbatch --parsable"
    config.SlurmSpawner.req_runtime = "2"
    config.SlurmSpawner.req_memory = "200M"
    config.SlurmSpawner.req_srun = ""
    config.SlurmSpawner.cmd = ["sleep", "300"]
    config.SlurmSpawner.start_timeout = 30
    spawner = User(user, {"spawner_class": SlurmSpawner, "config": config}, session)._new_spawner("", config=config)
    spawner.server = Server(orm_server=orm.Server())
    spawner.hub = hub
    spawner.batch_script = "#!/bin/sh\n#SBATCH --time=2 --mem=200M\nsleep 300\n"
    await spawner.submit_batch_script()
    assert spawner.job_id.isdigit(), spawner.job_id
    for _ in range(60):
        await spawner.query_job_status()
        if spawner.state_isrunning():
            break
        await asyncio.sleep(0.5)
    assert spawner.state_isrunning() and spawner.state_gethost(), spawner.job_status
    await spawner.cancel_batch_job()
    for _ in range(60):
        if await spawner.poll() is not None:
            return
        await asyncio.sleep(0.5)
    raise AssertionError(spawner.job_status)


asyncio.run(main())
