"""The model of a container, and the status of its latest run. Pure."""

import hashlib
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from typing import Any, Final, Literal

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.timestamps import format_time, parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.behavior import RunBehavior
from mockube.container_runtime.images.resolution import image_id
from mockube.container_runtime.load import NO_LOAD, RunLoad
from mockube.container_runtime.pod_script import Script
from mockube.container_runtime.state import ContainerState
from mockube.kubelet.step_effects import ContainerAction, EmitEvent

from .container_context import NO_CONTEXT, ContainerContext
from .observations import ObservedRun, Results
from .probe_results import NO_RESULTS, probe_results
from .probed_runs import ProbedRun, probed_run
from .probing import Probe

RestartPolicy = Literal["Always", "OnFailure", "Never"]


class Role(Enum):
    """The kind of a container in its pod."""

    INIT = "init"
    SIDECAR = "sidecar"
    MAIN = "main"
    EPHEMERAL = "ephemeral"


_CONTAINER_FIELDS: Final = {
    Role.INIT: "initContainers",
    Role.SIDECAR: "initContainers",
    Role.MAIN: "containers",
    Role.EPHEMERAL: "ephemeralContainers",
}


class Container(Struct, frozen=True, kw_only=True):
    """A container of a pod, with everything that determines its lifecycle."""

    spec: ReadOnlyTree
    pod: ReadOnlyTree
    role: Role
    restart_policy: RestartPolicy
    program: RunBehavior
    program_of_run: Callable[..., RunBehavior | None] | None = None
    """Return the program of the run after `restarts` restarts that `started` then; None if all runs have the same program."""
    server_load: RunLoad = NO_LOAD
    """What the server of its image uses, if that is what it runs."""
    waits_for_programs: bool = False
    """Whether the container does not start before all of it is simulated."""
    unknown_program: Callable[[], str] | None = None
    """Return the program of the command that is not simulated, or ""; None if all programs are simulated."""
    script: Script
    has_ids: bool
    """Whether the status has the ids of the container and of its image."""
    context: ContainerContext = NO_CONTEXT
    process: ContainerState | None = None
    """The recorded state of a container that runs in real time; None for one whose runs are computed."""

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def is_process(self) -> bool:
        """Whether the container runs as a process of this machine."""
        return self.process is not None and not self.process.is_simulated

    @property
    def observed_run(self) -> ObservedRun:
        """What was observed of the probes and hooks that run in real time."""
        return self.context.observed_run(self.name)

    def probe_results(self, restarts: int) -> Mapping[Probe, Results]:
        """Return the results of probes in the run after `restarts` restarts; a process is really probed."""
        if self.is_process:
            return NO_RESULTS
        return probe_results(self.pod, self.spec, self.script, self.context, restarts=restarts)

    def probed_run(self, restarts: int) -> ProbedRun | None:
        """Return how probes change the run after `restarts` restarts; None if they succeed without a delay."""
        return probed_run(self.spec, self.probe_results(restarts), self.script.ready_after)

    @property
    def field(self) -> str:
        """The path of the container in its pod, as in events."""
        return f"spec.{_CONTAINER_FIELDS[self.role]}{{{self.name}}}"


def container_field(pod: ReadOnlyTree, name: str) -> str:
    """Return the path of a container in its pod, as in events; "" if the pod has none of that name."""
    return next(
        (
            f"spec.{field}{{{name}}}"
            for field in dict.fromkeys(_CONTAINER_FIELDS.values())
            for container in pod["spec"].get(field) or ()
            if container["name"] == name
        ),
        "",
    )


class ContainerUpdate(Struct, frozen=True, kw_only=True):
    """The status of a container at one time, and the time of its next change."""

    status: ReadOnlyTree
    due: datetime | None = None
    is_blocked: bool = False
    """Whether the container cannot be created until another object changes."""
    lacks_image: bool = False
    """Whether the container cannot be created because its node does not have an image."""
    events: tuple[EmitEvent, ...] = ()
    actions: tuple[ContainerAction, ...] = ()


def running_since(status: ReadOnlyTree) -> datetime | None:
    running = status["state"].get("running")
    return parse_time(running["startedAt"]) if running else None


def last_end(status: ReadOnlyTree) -> ReadOnlyTree | None:
    """Return the terminated state of the latest run; None while the container runs, or before its first run."""
    state = status["state"]
    if "running" in state:
        return None
    end: ReadOnlyTree | None = state.get("terminated") or (status.get("lastState") or {}).get("terminated")
    return end


def waiting_status(container: Container, reason: str, message: str = "") -> ReadOnlyTree:
    """Return the status of a container that has not started."""
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
    """Return the status of a running container after its end."""
    end = {
        "exitCode": exit_code,
        "finishedAt": format_time(at),
        "reason": reason or ("Error" if exit_code else "Completed"),
        "startedAt": status["state"]["running"]["startedAt"],
    }
    if message:
        end["message"] = message
    if container.has_ids:
        end["containerID"] = status["containerID"]
    ready = container.role is Role.INIT and exit_code == 0
    return {**status, "ready": ready, "started": False, "state": {"terminated": end}}


def counts_for_readiness(container: Container) -> bool:
    return container.role in (Role.MAIN, Role.SIDECAR)


def running_status(
    container: Container, *, restarts: int, state: dict[str, Any], last: ReadOnlyTree | None = None
) -> dict[str, Any]:
    runs = "running" in state
    counts_as_ready = runs and counts_for_readiness(container) and not container.script.ready_after
    status: dict[str, Any] = {
        "image": container.spec["image"],
        "imageID": image_id(container.spec["image"]) if container.has_ids and runs else "",
        "lastState": {"terminated": last} if last else {},
        "name": container.name,
        "ready": counts_as_ready,
        "restartCount": restarts,
        "started": runs,
        "state": state,
    }
    if container.has_ids and runs:
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


def _digest(*parts: str) -> str:
    return hashlib.sha256("/".join(parts).encode()).hexdigest()
