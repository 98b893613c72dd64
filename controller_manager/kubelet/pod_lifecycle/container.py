"""How one container lives: started, ended, restarted with back-off, as its program, its script and its policy say.

Pure, and without memory: everything that the next look needs stands in the container's status.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final, Literal

from mockube.apimachinery import meta
from mockube.apimachinery.durations import format_duration
from mockube.apimachinery.timestamps import after, format_time, parse_time, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.kubelet.effects import (
    ContainerAction,
    EmitEvent,
    StartContainer,
    StopContainer,
)
from mockube.controller_manager.kubelet.pod_lifecycle.process_state import ProcessState
from mockube.controller_manager.kubelet.pod_lifecycle.program import Program
from mockube.controller_manager.kubelet.pod_lifecycle.script import NEVER, Script

RestartPolicy = Literal["Always", "OnFailure", "Never"]

INITIAL_BACKOFF: Final = timedelta(seconds=10)
LONGEST_BACKOFF: Final = timedelta(minutes=5)
FORGIVEN_AFTER: Final = timedelta(minutes=10)
"""A run that lasted so long starts the back-off anew."""
_DOUBLINGS: Final = 5
_KILLED: Final = 137
_LOST: Final = (
    "The container could not be located when the pod was synchronized. The container used to be Running"
)


class Role(Enum):
    INIT = "init"
    SIDECAR = "sidecar"
    MAIN = "main"
    EPHEMERAL = "ephemeral"


_LISTS: Final = {
    Role.INIT: "initContainers",
    Role.SIDECAR: "initContainers",
    Role.MAIN: "containers",
    Role.EPHEMERAL: "ephemeralContainers",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    spec: ReadOnlyTree
    pod: ReadOnlyTree
    role: Role
    policy: RestartPolicy
    program: Program
    restarted: Callable[..., Program | None] | None = None
    """What it does after so many `restarts`, if that is not always the same."""
    script: Script
    ids: bool
    """Whether it has ids of a container and an image."""
    config_error: str = ""
    """Why it cannot be created."""
    process: ProcessState | None = None
    """Of a container that is a local process: what it does is not foretold, but seen."""

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def field(self) -> str:
        """Where it is in the pod."""
        return f"spec.{_LISTS[self.role]}{{{self.name}}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerMoment:
    """A container as it is at one time, and when it changes by itself."""

    status: ReadOnlyTree
    due: datetime | None = None
    tells: tuple[EmitEvent, ...] = ()
    actions: tuple[ContainerAction, ...] = ()


# --- what a status says


def running_since(status: ReadOnlyTree) -> datetime | None:
    running = status["state"].get("running")
    return parse_time(running["startedAt"]) if running else None


def last_end(status: ReadOnlyTree) -> ReadOnlyTree | None:
    """How the latest run ended, for a container that does not run."""
    state = status["state"]
    if "running" in state:
        return None
    end: ReadOnlyTree | None = state.get("terminated") or (status.get("lastState") or {}).get("terminated")
    return end


def is_over(container: Container, status: ReadOnlyTree) -> bool:
    """It ended, and will not run again."""
    end = last_end(status)
    return end is not None and not _restarts(container, end["exitCode"])


def has_succeeded(container: Container, status: ReadOnlyTree) -> bool:
    end = last_end(status)
    return end is not None and end["exitCode"] == 0 and is_over(container, status)


def _restarts(container: Container, exit_code: int) -> bool:
    return container.policy == "Always" or (container.policy == "OnFailure" and exit_code != 0)


def backoff(restarts: int, ran: timedelta) -> timedelta:
    """How long to wait after a run before the next; the first restart is at once."""
    if restarts == 0 or ran >= FORGIVEN_AFTER:
        return timedelta(0)
    doublings = min(restarts - 1, _DOUBLINGS)
    return min(INITIAL_BACKOFF * (1 << doublings), LONGEST_BACKOFF)


# --- what becomes of it


def waiting(container: Container, reason: str, message: str = "") -> ReadOnlyTree:
    """A container that did not start yet."""
    said = {"message": message} if message else {}
    return _status(container, restarts=0, state={"waiting": {**said, "reason": reason}})


def advance(container: Container, status: ReadOnlyTree | None, now: datetime) -> ContainerMoment:
    """The container now, if it may run; it was in `status` when it was looked at last."""
    if status is None or never_ran(status):
        if container.config_error:
            refused = waiting(container, "CreateContainerConfigError", container.config_error)
            return ContainerMoment(status=refused)
        if container.process is not None:
            moment = _start_process(container, container.process, status, restarts=0)
        else:
            moment = _started(container, now, restarts=0)
    else:
        moment = _next(container, status, now)
    while not moment.actions and moment.status is not status:
        status = moment.status
        following = _next(container, status, now)
        moment = replace(following, tells=moment.tells + following.tells)
    return moment


def never_ran(status: ReadOnlyTree) -> bool:
    return "running" not in status["state"] and last_end(status) is None


def _next(container: Container, status: ReadOnlyTree, now: datetime) -> ContainerMoment:
    """The next change that is due, or the same status and when it changes."""
    started = running_since(status)
    if started is not None:
        return _run(container, status, started, now)
    end = last_end(status)
    if end is None or is_over(container, status):
        return ContainerMoment(status=status)
    return _wait(container, status, end, now)


def _run(container: Container, status: ReadOnlyTree, started: datetime, now: datetime) -> ContainerMoment:
    if container.process is not None:
        return _run_process(container, status, container.process, now)
    if status["image"] != container.spec["image"]:
        return _replaced(container, status, now)
    own, restarts = container.program, status["restartCount"]
    if restarts and container.restarted:
        own = container.restarted(restarts=restarts) or own
    program = container.script.program(own, restarts)
    ends = None if program.seconds is None else after(started, span_of(program.seconds))
    if ends is not None and ends <= now:
        ended = end_container(
            container, status, exit_code=program.exit_code, at=ends, message=program.message
        )
        return ContainerMoment(status=ended)
    if (
        status["ready"]
        or container.role in (Role.INIT, Role.EPHEMERAL)
        or container.script.ready_after == NEVER
    ):
        return ContainerMoment(status=status, due=ends)
    ready_at = after(started, span_of(container.script.ready_after))
    if ready_at <= now:
        return ContainerMoment(status={**status, "ready": True}, due=ends)
    return ContainerMoment(status=status, due=ready_at if ends is None else min(ready_at, ends))


def _wait(container: Container, status: ReadOnlyTree, end: ReadOnlyTree, now: datetime) -> ContainerMoment:
    """Between two runs."""
    finished = parse_time(end["finishedAt"])
    delay = backoff(status["restartCount"], finished - parse_time(end["startedAt"]))
    if status["image"] != container.spec["image"]:
        delay = timedelta()  # what ended was another container: this one has never failed
    if after(finished, delay) <= now:
        restarts = status["restartCount"] + 1
        if container.process is not None:
            return _start_process(container, container.process, status, restarts=restarts, last=end)
        return _started(container, now, restarts=restarts, last=end)
    if "waiting" in status["state"]:
        return ContainerMoment(status=status, due=after(finished, delay))
    pod = container.pod
    which = f"{meta.name(pod)}_{meta.namespace(pod)}({meta.uid(pod)})"
    span = format_duration(int(delay.total_seconds()) * 10**9)
    message = f"back-off {span} restarting failed container={container.name} pod={which}"
    crashed = {
        **status,
        "state": {"waiting": {"message": message, "reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": end},
    }
    told = EmitEvent(
        "Warning",
        "BackOff",
        f"Back-off restarting failed container {container.name} in pod {which}",
        container.field,
    )
    return ContainerMoment(status=crashed, tells=(told,))


def _started(
    container: Container, now: datetime, *, restarts: int, last: ReadOnlyTree | None = None
) -> ContainerMoment:
    state = {"running": {"startedAt": format_time(now)}}
    status = _status(container, restarts=restarts, state=state, last=last)
    image = container.spec["image"]
    pulled = f'Container image "{image}" already present on machine and can be accessed by the pod'
    tells = (
        EmitEvent("Normal", "Pulled", pulled, container.field),
        EmitEvent("Normal", "Created", "Container created", container.field),
        EmitEvent("Normal", "Started", "Container started", container.field),
    )
    return ContainerMoment(status=status, tells=tells)


# --- a container that is a local process


def _run_process(
    container: Container, status: ReadOnlyTree, process: ProcessState, now: datetime
) -> ContainerMoment:
    """What was seen of the process becomes the container's status."""
    if process.restarts != status["restartCount"]:
        lost = end_container(
            container, status, exit_code=_KILLED, at=now, message=_LOST, reason="ContainerStatusUnknown"
        )
        return ContainerMoment(status=lost)
    if process.exit is not None:
        return ContainerMoment(status=end_process(container, status, now))
    if status["image"] != container.spec["image"] and not process.is_stopping:
        told = EmitEvent("Normal", "Killing", _definition_changed(container), container.field)
        return ContainerMoment(status=status, tells=(told,), actions=(StopContainer(container.name),))
    seen = {"ready": _serves(container) and process.is_ready, "started": process.passed_startup}
    return ContainerMoment(status=status if seen.items() <= status.items() else {**status, **seen})


def _start_process(
    container: Container,
    process: ProcessState,
    status: ReadOnlyTree | None,
    *,
    restarts: int,
    last: ReadOnlyTree | None = None,
) -> ContainerMoment:
    """Have the run started that is due, or say what became of the attempt."""
    before = status or waiting(container, "ContainerCreating")
    if process.restarts != restarts:
        return ContainerMoment(status=before, actions=(StartContainer(container.name, restarts),))
    if process.started is not None:
        moment = _started(container, process.started, restarts=restarts, last=last)
        seen = {"ready": _serves(container) and process.is_ready, "started": process.passed_startup}
        return replace(moment, status={**moment.status, **seen})
    if not process.waiting_reason:
        return ContainerMoment(status=before)
    reason = {"message": process.waiting_message, "reason": process.waiting_reason}
    state = {"waiting": {field: text for field, text in reason.items() if text}}
    waits = {"state": state, **({"lastState": {"terminated": last}} if last else {})}
    return ContainerMoment(status=before if waits.items() <= before.items() else {**before, **waits})


def end_process(container: Container, status: ReadOnlyTree, now: datetime) -> ReadOnlyTree:
    """A container whose status says that it runs, after the end that was seen; of one that is lost nothing was."""
    ended = container.process.exit if container.process is not None else None
    if ended is None:
        return end_container(
            container, status, exit_code=_KILLED, at=now, message=_LOST, reason="ContainerStatusUnknown"
        )
    return end_container(
        container, status, exit_code=ended.code, at=ended.at, message=ended.message, reason=ended.reason
    )


def _serves(container: Container) -> bool:
    return container.role in (Role.MAIN, Role.SIDECAR)


def _definition_changed(container: Container) -> str:
    return f"Container {container.name} definition changed, will be restarted"


def _replaced(container: Container, status: ReadOnlyTree, now: datetime) -> ContainerMoment:
    """Another image was put into the pod: the container starts anew, whatever its policy."""
    old = end_container(container, status, exit_code=container.program.stop_code, at=now)
    new = _started(container, now, restarts=status["restartCount"] + 1, last=old["state"]["terminated"])
    told = EmitEvent("Normal", "Killing", _definition_changed(container), container.field)
    return ContainerMoment(status=new.status, tells=(told, *new.tells))


def restart_container(container: Container, status: ReadOnlyTree, now: datetime) -> ReadOnlyTree:
    """Stopped and started at once, as a resize may ask for."""
    old = end_container(container, status, exit_code=container.program.stop_code, at=now)
    return _started(
        container, now, restarts=status["restartCount"] + 1, last=old["state"]["terminated"]
    ).status


def end_container(
    container: Container,
    status: ReadOnlyTree,
    *,
    exit_code: int,
    at: datetime,
    message: str = "",
    reason: str = "",
) -> ReadOnlyTree:
    """A running container after its end."""
    end = {
        "exitCode": exit_code,
        "finishedAt": format_time(at),
        "reason": reason or ("Error" if exit_code else "Completed"),
        "startedAt": status["state"]["running"]["startedAt"],
    }
    if message:
        end["message"] = message
    if container.ids:
        end["containerID"] = status["containerID"]
    ready = container.role is Role.INIT and exit_code == 0
    return {**status, "ready": ready, "started": False, "state": {"terminated": end}}


# --- the record itself


def _status(
    container: Container, *, restarts: int, state: dict[str, Any], last: ReadOnlyTree | None = None
) -> dict[str, Any]:
    runs = "running" in state
    counts_as_ready = runs and _serves(container) and not container.script.ready_after
    status: dict[str, Any] = {
        "image": container.spec["image"],
        "imageID": _image_id(container) if container.ids and runs else "",
        "lastState": {"terminated": last} if last else {},
        "name": container.name,
        "ready": counts_as_ready,
        "restartCount": restarts,
        "started": runs,
        "state": state,
    }
    if container.ids and runs:
        status["containerID"] = _container_id(container, restarts)
    return {**status, **assigned_resources(container.spec)} if runs else status


def assigned_resources(spec: ReadOnlyTree) -> dict[str, Any]:
    """What a running container reports of the resources that it was given.

    It says that these are none rather than nothing: by that a server knows that the node can resize pods.
    """
    asked = spec.get("resources") or {}
    resources = {field: asked[field] for field in ("limits", "requests") if asked.get(field)}
    allocated = {"allocatedResources": resources["requests"]} if "requests" in resources else {}
    return {**allocated, "resources": resources}


def _container_id(container: Container, restarts: int) -> str:
    return f"mockube://{_digest(meta.uid(container.pod), container.name, str(restarts))}"


def _image_id(container: Container) -> str:
    image = container.spec["image"]
    repository, _, tag = image.rpartition(":")
    # A colon before the last slash is that of a port, not of a tag.
    repository = image if not repository or "/" in tag else repository
    return f"{repository}@sha256:{_digest(image)}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("/".join(parts).encode()).hexdigest()
