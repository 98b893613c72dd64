"""The ends of containers that still wait when their pod is stopped: a kubelet does not know what became of them. Pure."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from mockube.container_runtime.behavior import KILLED

from .container import is_initialized, never_ran
from .container_status import Container, ContainerUpdate

_UNKNOWN_END: Final = {
    "exitCode": KILLED,
    "message": "The container could not be located when the pod was terminated",
    "reason": "ContainerStatusUnknown",
}
"""A state without times: nobody knows them."""


def with_unknown_ends(
    init_containers: Sequence[Container], init: list[ContainerUpdate], main: list[ContainerUpdate]
) -> tuple[list[ContainerUpdate], list[ContainerUpdate]]:
    """End the containers of a stopped pod that still wait, as a kubelet does, which does not know what became of them.

    Main containers are ended if the pod was initialized, and init containers up to the last that has run, or the first one.
    """
    has_run_main = any(not never_ran(update.status) for update in main)
    was_initialized = (
        has_run_main or not init or is_initialized(init_containers[-1], init[-1].status, has_continued=True)
    )
    ran = [index for index, update in enumerate(init) if not never_ran(update.status)]
    last = max(ran, default=0)
    return (
        [_with_unknown_end(update) if index <= last else update for index, update in enumerate(init)],
        [_with_unknown_end(update) if was_initialized else update for update in main],
    )


def with_last_end(update: ContainerUpdate) -> ContainerUpdate:
    """Show how a container ended that backs off: a kubelet does not restart those of a deleted pod."""
    end = update.status["lastState"].get("terminated")
    if end is None or "waiting" not in update.status["state"]:
        return update
    return replace(update, status={**update.status, "state": {"terminated": end}, "lastState": {}})


def _with_unknown_end(update: ContainerUpdate) -> ContainerUpdate:
    if "terminated" in update.status["state"]:
        return update
    return replace(update, status={**update.status, "state": {"terminated": _UNKNOWN_END}})
