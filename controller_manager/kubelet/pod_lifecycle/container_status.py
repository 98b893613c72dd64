"""A container of a pod, and the status of its latest run. Pure."""

import hashlib
from collections.abc import Callable
from datetime import datetime
from enum import Enum
from typing import Any, Final, Literal

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.timestamps import format_time, parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.kubelet.effects import ContainerAction, EmitEvent
from mockube.controller_manager.kubelet.pod_lifecycle.process_state import ProcessState
from mockube.controller_manager.kubelet.pod_lifecycle.program import Program
from mockube.controller_manager.kubelet.pod_lifecycle.script import Script

RestartPolicy = Literal["Always", "OnFailure", "Never"]


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


class Container(Struct, frozen=True, kw_only=True):
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


class ContainerUpdate(Struct, frozen=True, kw_only=True):
    """A container as it is at one time, and when it changes by itself."""

    status: ReadOnlyTree
    due: datetime | None = None
    events: tuple[EmitEvent, ...] = ()
    actions: tuple[ContainerAction, ...] = ()


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


def waiting(container: Container, reason: str, message: str = "") -> ReadOnlyTree:
    """The status of a container that did not start yet."""
    details = {"message": message} if message else {}
    return running_status(container, restarts=0, state={"waiting": {**details, "reason": reason}})


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


def serves(container: Container) -> bool:
    return container.role in (Role.MAIN, Role.SIDECAR)


def running_status(
    container: Container, *, restarts: int, state: dict[str, Any], last: ReadOnlyTree | None = None
) -> dict[str, Any]:
    runs = "running" in state
    counts_as_ready = runs and serves(container) and not container.script.ready_after
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
    """Return the resources in a running container's status.

    They are present even if empty, which means that the node can resize pods.
    """
    requirements = spec.get("resources") or {}
    resources = {field: requirements[field] for field in ("limits", "requests") if requirements.get(field)}
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
