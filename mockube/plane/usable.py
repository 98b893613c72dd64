"""When a control plane that has just been started can be worked with."""

import asyncio
from importlib import import_module
from types import ModuleType
from typing import Final

from apimachinery.clock import Clock
from controller_manager.runtime.kubeconfig import read
from controller_manager.runtime.wire import NoAnswer
from mockube.plane.kept import Tell
from mockube.plane.launch import Launch

AS_LONG_AS_IT_TAKES: Final = 86400.0
_PAUSE: Final = 0.1


def importing() -> asyncio.Task[ModuleType]:
    """HTTP is imported while the processes start, which takes longer."""
    return asyncio.create_task(asyncio.to_thread(import_module, "mockube.reach"))


async def wait_usable(
    launch: Launch, *, clock: Clock, tell: Tell, seconds: float = AS_LONG_AS_IT_TAKES
) -> None:
    """Until pods can be made and be placed: every node is ready, and a service account is there.

    If the server does not answer it is asked again; whoever waits sees for himself whether it has ended.
    """
    while True:
        try:
            return await _asked(launch, tell, seconds)
        except NoAnswer:
            await clock.sleep(_PAUSE)


async def _asked(launch: Launch, tell: Tell, seconds: float) -> None:
    from mockube.reach import reaching  # noqa: PLC0415 - see `importing`

    async with reaching(read(launch.kubeconfig)) as reach:
        await reach.ask_version()
        tell("the first answer")
        await reach.wait_usable(launch.nodes, seconds=seconds)
        tell(f"{launch.nodes} nodes ready")
