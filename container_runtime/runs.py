"""The runs of a container by the status of its pod: the latest one, and the one before. Pure."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import CONTAINER_STATUSES

_WITHIN_SECOND: Final = timedelta(microseconds=999_999)
_PULL_FAILURES: Final = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


class NoLogs(Exception):
    """A container has no log; the message is a kubelet's."""


class ContainerNotFound(Exception):
    """A container does not run, so that nothing can be executed in it."""

    def __init__(self, name: str) -> None:
        super().__init__(f'container not found ("{name}")')


class ContainerRun(Struct, frozen=True, kw_only=True):
    """One run of a container, from its start to its end."""

    restarts: int
    started: datetime
    finished: datetime | None
    """The end of the run: the end of the second that is in the status; None while it runs."""


def container_spec(pod: ReadOnlyTree, name: str) -> ReadOnlyTree | None:
    containers = every_container(pod.get("spec") or {})
    return next((container for container in containers if container["name"] == name), None)


def container_status(pod: ReadOnlyTree, name: str) -> ReadOnlyTree | None:
    status = pod.get("status") or {}
    statuses = (entry for field in CONTAINER_STATUSES for entry in status.get(field) or ())
    return next((entry for entry in statuses if entry["name"] == name), None)


def running_seconds(pod: ReadOnlyTree, name: str, now: datetime) -> float | None:
    """Return for how long a container has run; None if it does not run."""
    state = (container_status(pod, name) or {}).get("state") or {}
    started = (state.get("running") or {}).get("startedAt")
    return None if started is None else (now - parse_time(started)).total_seconds()


def run_of(pod: ReadOnlyTree, name: str, *, previous: bool = False) -> ContainerRun:
    """Return the latest run of a container, or the previous one; raise `NoLogs` if there is none."""
    container_ref = f'container "{name}" in pod "{meta.name(pod)}"'
    status = container_status(pod, name)
    if status is None:
        raise NoLogs(f"{container_ref} is not available")
    last = (status.get("lastState") or {}).get("terminated")
    restarts = status.get("restartCount") or 0
    state = status.get("state") or {}
    if previous:
        if last is None:
            raise NoLogs(f"previous terminated {container_ref} not found")
        return _ended_run(last, restarts if "waiting" in state else restarts - 1)
    if "running" in state:
        return ContainerRun(
            restarts=restarts, started=parse_time(state["running"]["startedAt"]), finished=None
        )
    end = state.get("terminated") or last
    if end is not None and not end.get("finishedAt"):  # It has not run again before the pod was stopped.
        if last is None:
            raise NoLogs(f"{container_ref} is terminated")
        end = last
    if end is not None:
        return _ended_run(end, restarts)
    reason = (state.get("waiting") or {}).get("reason")
    if reason is None:
        raise NoLogs(f"{container_ref} is waiting to start - no logs yet")
    raise NoLogs(f"{container_ref} is waiting to start: {_PULL_FAILURES.get(reason, reason)}")


def _ended_run(end: Mapping[str, Any], restarts: int) -> ContainerRun:
    finished = parse_time(end["finishedAt"])
    started = parse_time(end["startedAt"]) if end.get("startedAt") else finished
    return ContainerRun(restarts=max(restarts, 0), started=started, finished=finished + _WITHIN_SECOND)


def running_container(pod: ReadOnlyTree, name: str) -> tuple[ReadOnlyTree, ContainerRun]:
    """Return a running container by name, with its run; raise `ContainerNotFound` if it does not run."""
    container = container_spec(pod, name)
    try:
        run = run_of(pod, name)
    except NoLogs:
        run = None
    if container is None or run is None or run.finished is not None:
        raise ContainerNotFound(name)
    return container, run
