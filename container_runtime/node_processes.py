"""The processes of the containers of a node, as its machine numbers them. Pure."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final, NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree

from .runs import container_status

KUBELET_PID: Final = 742
CONTAINERD_PID: Final = 503
_FIRST_PID: Final = 1200
_PIDS_OF_CONTAINER: Final = 40


class ContainerProcess(NamedTuple):
    """The first process of a container that runs."""

    pid: int
    pod: ReadOnlyTree
    container: ReadOnlyTree
    started: datetime


def container_processes(pods: Iterable[ReadOnlyTree]) -> list[ContainerProcess]:
    """Return the first processes of the containers of a node's pods that run, in the order of their starts."""
    found = [
        (parse_time(at), meta.namespace(pod), meta.name(pod), number, pod, container)
        for pod in pods
        for number, container in enumerate(every_container(pod["spec"]))
        if (at := _start(pod, container["name"]))
    ]
    return [
        ContainerProcess(_FIRST_PID + position * _PIDS_OF_CONTAINER, pod, container, started)
        for position, (started, _, _, _, pod, container) in enumerate(
            sorted(found, key=lambda each: each[:4])
        )
    ]


def _start(pod: ReadOnlyTree, name: str) -> str:
    state = (container_status(pod, name) or {}).get("state") or {}
    return str((state.get("running") or {}).get("startedAt") or "")
