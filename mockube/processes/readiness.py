"""The wait until a new control plane is usable.

Its HTTP client takes time to import: `importing` does that while the processes start, which takes longer.
"""

from typing import Final

from mockube.apimachinery.clock import Clock
from mockube.cluster_client import reaching
from mockube.connect import open_client
from mockube.controller_manager.client.kubeconfig import read
from mockube.controller_manager.client.wire import NoAnswer
from mockube.processes.launch import Launch
from mockube.processes.supervised_process import Report
from mockube.resizing import wanted_by

AS_LONG_AS_IT_TAKES: Final = 86400.0
_PAUSE: Final = 0.1


async def wait_usable(
    launch: Launch, *, clock: Clock, report: Report, seconds: float = AS_LONG_AS_IT_TAKES
) -> int:
    """Wait until pods can be created and scheduled: every node is ready, and the service account exists.

    Return the number of nodes: the store may have another than the flag. Requests are repeated until the server
    answers; the caller checks whether it has ended.
    """
    while True:
        try:
            return await _wait_ready(launch, clock, report, seconds)
        except NoAnswer:
            await clock.sleep(_PAUSE)


async def _wait_ready(launch: Launch, clock: Clock, report: Report, seconds: float) -> int:
    access = read(launch.kubeconfig)
    async with open_client(access, clock) as client:
        nodes = await wanted_by(client, launch.nodes)
        report("the first answer")
    async with reaching(access) as reach:
        await reach.wait_usable(nodes, seconds=seconds)
        report(f"{nodes} nodes ready")
    return nodes
