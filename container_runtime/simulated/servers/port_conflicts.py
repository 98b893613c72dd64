"""Containers of a pod that listen on a port on which another one listens already: they share one network. Pure."""

from collections.abc import Iterator
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.behavior import RunBehavior
from mockube.container_runtime.images.table import FailedBind, behavior_of
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.runs import container_status
from mockube.container_runtime.simulated.programs import program
from mockube.container_runtime.simulated.shell.process import Output, Run

from .listeners import listeners_of

_STARTING: Final = ("ContainerCreating", "PodInitializing")
"""The reasons for which a container waits that starts before those after it."""


def occupied_ports(pod: ReadOnlyTree, container: ReadOnlyTree) -> frozenset[int]:
    """Return the ports on which the containers listen that start before a container of their pod, as far as that is known."""
    ports: set[int] = set()
    for other in _earlier_containers(pod, container):
        listeners = listeners_of(pod, other)
        if not listeners.unknown and _runs(pod, other):
            ports.update(listeners.ports)
    return frozenset(ports)


def end_without_port(pod: ReadOnlyTree, container: ReadOnlyTree) -> RunBehavior | None:
    """Return the run of a container whose server finds its port in use; None for any other."""
    bind = failed_bind(pod, container)
    if bind is None:
        return None
    falls_back_to_log = container.get("terminationMessagePolicy") == "FallbackToLogsOnError"
    return RunBehavior(seconds=0, exit_code=bind.exit_code, message=_log(bind) if falls_back_to_log else "")


def process_without_port(bind: FailedBind) -> Run:
    """Log what a server logs whose port is in use, and end."""
    yield Output(2, _log(bind).encode())
    return bind.exit_code


def _log(bind: FailedBind) -> str:
    return "".join(f"{line}\n" for line in bind.logs)


def failed_bind(pod: ReadOnlyTree, container: ReadOnlyTree) -> FailedBind | None:
    """Return how the server of a container ends that finds its port in use; None for any other, and where nobody knows its port."""
    image, script = behavior_of(container), script_of(meta.annotations(pod))
    if script.times_runs or script.command(container["name"]) is not None:
        return None
    if image is None or image.failed_bind is None or not program.serves(container):
        return None
    listeners = listeners_of(pod, container)
    if listeners.unknown or occupied_ports(pod, container).isdisjoint(listeners.ports):
        return None
    return image.failed_bind


def _earlier_containers(pod: ReadOnlyTree, container: ReadOnlyTree) -> Iterator[ReadOnlyTree]:
    spec = pod["spec"]
    sidecars = (init for init in spec.get("initContainers") or () if init.get("restartPolicy") == "Always")
    for other in (*sidecars, *spec["containers"]):
        if other["name"] == container["name"]:
            return
        yield other


def _runs(pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
    """Return whether a container runs, or has not been started yet and will be before the others."""
    state = (container_status(pod, container["name"]) or {}).get("state") or {}
    waiting = state.get("waiting")
    return "terminated" not in state and (waiting is None or waiting.get("reason") in _STARTING)
