"""When a control plane that has just been started can be worked with."""

from typing import Final

from controller_manager.runtime.kubeconfig import read
from mockube.plane.kept import Tell
from mockube.plane.launch import Launch

AS_LONG_AS_IT_TAKES: Final = 86400.0


async def wait_usable(launch: Launch, *, tell: Tell, seconds: float = AS_LONG_AS_IT_TAKES) -> None:
    """Until pods can be made and be placed: every node is ready, and a service account is there."""
    from mockube.reach import reaching  # noqa: PLC0415 - HTTP is imported while the processes start

    async with reaching(read(launch.kubeconfig)) as reach:
        await reach.ask_version()
        tell("the first answer")
        await reach.wait_usable(launch.nodes, seconds=seconds)
        tell(f"{launch.nodes} nodes ready")
