"""Containers that listen on a port on which another one of their network listens already: of their pod, or of the node. Pure."""

from collections.abc import Iterable, Iterator
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.behavior import RunBehavior
from mockube.container_runtime.images.table import FailedBind, ImageTable
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.runs import container_status
from mockube.container_runtime.simulated.programs import program
from mockube.container_runtime.simulated.shell.process import Output, Run

from .listeners import listeners_of

_STARTING: Final = ("ContainerCreating", "PodInitializing")
"""The reasons for which a container waits that starts before those after it."""


def occupied_ports(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, host_pods: Iterable[ReadOnlyTree] = ()
) -> frozenset[int]:
    """Return the ports on which the containers listen that start before a container in its network, as far as that is known.

    `host_pods` are the other pods in the network of the pod's node, if the pod is one of them.
    """
    earlier = (other for other in _earlier_containers(pod, container) if not _is_kept_back(pod, other))
    return _ports_of(images, pod, earlier) | _ports_of_node(images, pod, container, host_pods)


def _ports_of_node(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, host_pods: Iterable[ReadOnlyTree]
) -> frozenset[int]:
    """Return the ports of the other pods' containers that run since an earlier time."""
    started = _start(pod, container)
    return frozenset[int]().union(
        *(
            _ports_of(images, other, [each])
            for other in host_pods
            for each in every_container(other["spec"])
            if (since := _start(other, each))
            and (not started or (since, meta.uid(other)) < (started, meta.uid(pod)))
        )
    )


def _start(pod: ReadOnlyTree, container: ReadOnlyTree) -> str:
    """Return when a container that runs has started; "" if it does not run."""
    return str((_state(pod, container).get("running") or {}).get("startedAt") or "")


def _ports_of(images: ImageTable, pod: ReadOnlyTree, containers: Iterable[ReadOnlyTree]) -> frozenset[int]:
    found = (listeners_of(images, pod, container) for container in containers)
    return frozenset(port for listeners in found if not listeners.unknown for port in listeners.ports)


def end_without_port(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, host_pods: Iterable[ReadOnlyTree] = ()
) -> RunBehavior | None:
    """Return the run of a container whose server finds its port in use; None for any other. `host_pods` as of `occupied_ports`."""
    bind = failed_bind(images, pod, container, host_pods)
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


def failed_bind(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, host_pods: Iterable[ReadOnlyTree] = ()
) -> FailedBind | None:
    """Return how the server of a container ends that finds its port in use; None for any other, and where nobody knows its port."""
    image, script = images.behavior_of(container), script_of(meta.annotations(pod))
    if script.times_runs or script.command(container["name"]) is not None:
        return None
    if image is None or image.failed_bind is None or not program.serves(images, container):
        return None
    listeners = listeners_of(images, pod, container)
    running = (other for other in _earlier_containers(pod, container) if "running" in _state(pod, other))
    if listeners.unknown:
        return None
    is_free = _ports_of(images, pod, running).isdisjoint(listeners.ports)
    if is_free and _ports_of_node(images, pod, container, host_pods).isdisjoint(listeners.ports):
        return None
    return image.failed_bind


def _earlier_containers(pod: ReadOnlyTree, container: ReadOnlyTree) -> Iterator[ReadOnlyTree]:
    spec = pod["spec"]
    sidecars = (init for init in spec.get("initContainers") or () if init.get("restartPolicy") == "Always")
    for other in (*sidecars, *spec["containers"]):
        if other["name"] == container["name"]:
            return
        yield other


def _is_kept_back(pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
    """Return whether a container does not run, and is not about to be started before the others."""
    state = _state(pod, container)
    waiting = state.get("waiting")
    return "terminated" in state or (waiting is not None and waiting.get("reason") not in _STARTING)


def _state(pod: ReadOnlyTree, container: ReadOnlyTree) -> ReadOnlyTree:
    return (container_status(pod, container["name"]) or {}).get("state") or {}
