"""When a control plane that has just been started can be worked with.

It speaks HTTP, which takes its time to import: `meanwhile` does that while the processes start, which takes longer.
"""

from typing import Final

from mockube.apimachinery.clock import Clock
from mockube.cluster_client import reaching
from mockube.connect import open_client
from mockube.controller_manager.client.kubeconfig import read
from mockube.controller_manager.client.wire import NoAnswer
from mockube.processes.launch import Launch
from mockube.processes.supervised_process import Tell
from mockube.resizing import wanted_by

AS_LONG_AS_IT_TAKES: Final = 86400.0
_PAUSE: Final = 0.1


async def wait_usable(
    launch: Launch, *, clock: Clock, tell: Tell, seconds: float = AS_LONG_AS_IT_TAKES
) -> int:
    """Until pods can be made and be placed: every node is ready, and a service account is there.

    Answers with how many nodes there are, for what is stored may say more than a flag. If the server does not answer
    it is asked again; whoever waits sees for himself whether it has ended.
    """
    while True:
        try:
            return await _asked(launch, clock, tell, seconds)
        except NoAnswer:
            await clock.sleep(_PAUSE)


async def _asked(launch: Launch, clock: Clock, tell: Tell, seconds: float) -> int:
    access = read(launch.kubeconfig)
    async with open_client(access, clock) as client:
        nodes = await wanted_by(client, launch.nodes)
        tell("the first answer")
    async with reaching(access) as reach:
        await reach.wait_usable(nodes, seconds=seconds)
        tell(f"{nodes} nodes ready")
    return nodes
