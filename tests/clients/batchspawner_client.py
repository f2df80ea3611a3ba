"""batchspawner: SlurmSpawner submits, polls and cancels, as a JupyterHub does for a user."""

import asyncio
import os
import pwd

from batchspawner import SlurmSpawner
from jupyterhub import orm
from jupyterhub.objects import Hub
from jupyterhub.user import User


async def main():
    name = pwd.getpwuid(os.getuid()).pw_name
    session = orm.new_session_factory("sqlite:///:memory:")()
    user = orm.User(name=name)
    session.add(user)
    session.commit()
    spawner = User(user, {"spawner_class": SlurmSpawner}, session)._new_spawner("")
    spawner.hub = Hub()
    # Without sudo, which has a PATH of its own.
    spawner.exec_prefix = ""
    spawner.env_keep = [*spawner.env_keep, "MISERLY_SOCKET", "PATH"]
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
