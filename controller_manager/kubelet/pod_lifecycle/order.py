"""The order in which the containers of a pod run: init containers one after the other, sidecars beside, the rest together.

Pure.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import takewhile
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import LABEL_JOB_NAME
from mockube.controller_manager.client.podview import FAILED, PENDING, RUNNING, SUCCEEDED
from mockube.controller_manager.kubelet.containers.environment import identity_of, known_environment
from mockube.controller_manager.kubelet.containers.mounts import (
    config_error,
    shared_mount_paths,
    writable_paths,
)
from mockube.controller_manager.kubelet.effects import ContainerAction, EmitEvent, StopContainer
from mockube.controller_manager.kubelet.pod_lifecycle import container as lifecycle
from mockube.controller_manager.kubelet.pod_lifecycle.container_status import (
    Container,
    ContainerUpdate,
    RestartPolicy,
    Role,
    end_container,
    last_end,
    running_since,
    waiting,
)
from mockube.controller_manager.kubelet.pod_lifecycle.process_state import ProcessState
from mockube.controller_manager.kubelet.pod_lifecycle.program import (
    EXITS_IMMEDIATELY,
    SERVICE,
    CommandContext,
    Invocation,
    Places,
    Program,
    invocation_of,
    program_of,
)
from mockube.controller_manager.kubelet.pod_lifecycle.script import Script

_INIT_POLICY: Final[dict[RestartPolicy, RestartPolicy]] = {
    "Always": "OnFailure",
    "OnFailure": "OnFailure",
    "Never": "Never",
}
_DEFAULT_GRACE: Final = 30.0
_NO_PROCESSES: Final[Mapping[str, ProcessState]] = {}


class Members(Struct, frozen=True, kw_only=True):
    """The containers of a pod, with their last statuses."""

    init: Sequence[tuple[Container, ReadOnlyTree | None]]
    main: Sequence[tuple[Container, ReadOnlyTree | None]]
    ephemeral: Sequence[tuple[Container, ReadOnlyTree | None]]


class PodContainers(Struct, frozen=True, kw_only=True):
    """All containers at one time, in the order of the specification."""

    init: Sequence[ReadOnlyTree]
    main: Sequence[ReadOnlyTree]
    ephemeral: Sequence[ReadOnlyTree]
    phase: str
    not_initialized: Sequence[str]
    not_ready: Sequence[str]
    due: datetime | None
    """When one of them changes by itself."""
    events: tuple[EmitEvent, ...]
    actions: tuple[ContainerAction, ...] = ()


def earliest(*times: datetime | None) -> datetime | None:
    return min((time for time in times if time is not None), default=None)


# --- the containers of a pod


def members_of(
    pod: ReadOnlyTree, script: Script, *, ids: bool, processes: Mapping[str, ProcessState] = _NO_PROCESSES
) -> Members:
    """`processes` are the containers that are local processes; what the others do is foretold."""
    spec, status = pod["spec"], pod.get("status") or {}
    policy: RestartPolicy = spec.get("restartPolicy") or "Always"

    def member(container: ReadOnlyTree, role: Role, own: RestartPolicy) -> Container:
        process = processes.get(container["name"])
        interpreted = _interpreter(pod, container, script)
        # Whether it ends follows from the pod, where the command is unknown.
        unknown = EXITS_IMMEDIATELY if _ends(pod, container, role) else SERVICE
        program = SERVICE if process is not None else interpreted() or unknown
        return Container(
            spec=container,
            pod=pod,
            role=role,
            policy=own,
            program=program,
            restarted=interpreted if program.leaves_files else None,
            script=script,
            ids=ids,
            config_error=config_error(pod, container),
            process=process,
        )

    def init(container: ReadOnlyTree) -> Container:
        if container.get("restartPolicy") == "Always":
            return member(container, Role.SIDECAR, "Always")
        return member(container, Role.INIT, _INIT_POLICY[policy])

    return Members(
        init=_with_statuses(map(init, spec.get("initContainers") or ()), status.get("initContainerStatuses")),
        main=_with_statuses(
            (member(container, Role.MAIN, policy) for container in spec["containers"]),
            status.get("containerStatuses"),
        ),
        ephemeral=_with_statuses(
            (
                member(container, Role.EPHEMERAL, "Never")
                for container in spec.get("ephemeralContainers") or ()
            ),
            status.get("ephemeralContainerStatuses"),
        ),
    )


def _interpreter(pod: ReadOnlyTree, container: ReadOnlyTree, script: Script) -> Callable[..., Program | None]:
    """What finds out what a container's command does, after so many `restarts`."""
    before = _earlier_containers(pod, container, script)
    places = shared_mount_paths(pod, container) if before else ()
    return partial(program_of, container, _context(pod, container, script, places, before))


def _context(
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    script: Script,
    places: Places,
    before: tuple[Invocation, ...] = (),
) -> CommandContext:
    return CommandContext(
        script=script.command(container["name"]),
        environment=partial(known_environment, pod, container),
        identity=identity_of(pod, container),
        volumes=writable_paths(pod, container),
        places=places,
        before=before,
    )


def _earlier_containers(pod: ReadOnlyTree, container: ReadOnlyTree, script: Script) -> tuple[Invocation, ...]:
    """The init containers that run before a container, as far as they share volumes with others."""
    others = pod["spec"].get("initContainers")
    if not others or not container.get("volumeMounts"):
        return ()
    invocations = (
        invocation_of(other, _context(pod, other, script, places))
        for other in takewhile(lambda other: other is not container, others)
        if (places := shared_mount_paths(pod, other))
    )
    return tuple(invocation for invocation in invocations if invocation is not None)


def _ends(pod: ReadOnlyTree, container: ReadOnlyTree, role: Role) -> bool:
    """Whether an unknown command ends: yes in a pod that runs to completion, else it is a service."""
    if role is Role.MAIN:
        has_command = bool(container.get("command") or container.get("args"))
        is_job = LABEL_JOB_NAME in meta.labels(pod)
        return pod["spec"].get("restartPolicy") in ("Never", "OnFailure") and (has_command or is_job)
    return role is Role.INIT


def _with_statuses(
    containers: Iterable[Container], statuses: Sequence[ReadOnlyTree] | None
) -> Sequence[tuple[Container, ReadOnlyTree | None]]:
    by_name = {status["name"]: status for status in statuses or ()}
    return [(container, by_name.get(container.name)) for container in containers]


# --- running and stopping them


def run(members: Members, now: datetime) -> PodContainers:
    """Advance all containers that may run up to now."""
    init, blocked = _run_init(members, now)
    if blocked:
        main = [
            ContainerUpdate(status=status or waiting(container, "PodInitializing"))
            for container, status in members.main
        ]
    else:
        main = [lifecycle.advance(container, status, now) for container, status in members.main]
    ephemeral = [lifecycle.advance(container, status, now) for container, status in members.ephemeral]
    phase = _phase(members, init, main, is_blocked=bool(blocked))
    if phase in (SUCCEEDED, FAILED):
        to_stop = processes_to_stop(members)
        if to_stop:  # it is over when the last of them has ended
            containers = _summary(members, (init, main, ephemeral), RUNNING, blocked)
            return replace(containers, events=containers.events + to_stop.events, actions=to_stop.actions)
        init = [
            _stop(container, update, now) for (container, _), update in zip(members.init, init, strict=True)
        ]
    return _summary(members, (init, main, ephemeral), phase, blocked)


def wait(members: Members, reason: str) -> PodContainers:
    """No container runs yet; the first ones wait for the reason."""
    first = [ContainerUpdate(status=waiting(container, "PodInitializing")) for container, _ in members.init]
    main_reason = "PodInitializing" if first else reason
    main = [ContainerUpdate(status=waiting(container, main_reason)) for container, _ in members.main]
    if members.init:
        first[0] = ContainerUpdate(status=waiting(members.init[0][0], reason))
    return _summary(members, (first, main, []), PENDING, [container.name for container, _ in members.init])


def stop(members: Members, now: datetime, *, code: int | None = None) -> PodContainers:
    """Stop all containers, with the code or that of their programs."""
    init, main, ephemeral = (
        [
            _stop(
                container,
                ContainerUpdate(status=status or waiting(container, "ContainerCreating")),
                now,
                code,
            )
            for container, status in group
        ]
        for group in (members.init, members.main, members.ephemeral)
    )
    ends = [last_end(update.status) for update in main]
    phase = SUCCEEDED if all(end is not None and end["exitCode"] == 0 for end in ends) else FAILED
    return _summary(members, (init, main, ephemeral), phase, ())


def grace_seconds(pod: ReadOnlyTree) -> float:
    """Return how long the pod's containers have to end: the grace period of its deletion, or else of its specification."""
    seconds = meta.deletion_grace_period_seconds(pod) if meta.is_deleting(pod) else None
    if seconds is None:
        seconds = pod["spec"].get("terminationGracePeriodSeconds")
    return _DEFAULT_GRACE if seconds is None else float(seconds)


class ProcessStop(Struct, frozen=True, kw_only=True):
    """The processes that are alive, as far as they are to be stopped now."""

    alive: int = 0
    events: tuple[EmitEvent, ...] = ()
    actions: tuple[ContainerAction, ...] = ()

    def __bool__(self) -> bool:
        return self.alive > 0


def processes_to_stop(members: Members) -> ProcessStop:
    """All main containers together; sidecars after them, the last one first."""
    init, others = (
        [member for member, _ in group] for group in (members.init, (*members.main, *members.ephemeral))
    )
    alive = [member for member in others if _is_alive(member)] or [
        member for member in init if _is_alive(member)
    ][-1:]
    stopped = [member for member in alive if member.process is not None and not member.process.is_stopping]
    return ProcessStop(
        alive=len(alive),
        events=tuple(_killing(member) for member in stopped),
        actions=tuple(StopContainer(member.name) for member in stopped),
    )


def _is_alive(container: Container) -> bool:
    return container.process is not None and container.process.is_alive


def _killing(container: Container) -> EmitEvent:
    return EmitEvent("Normal", "Killing", f"Stopping container {container.name}", container.field)


def _run_init(members: Members, now: datetime) -> tuple[list[ContainerUpdate], list[str]]:
    """Advance the init containers up to the first that blocks; also return the names of those not done."""
    updates: list[ContainerUpdate] = []
    blocked: list[str] = []
    for container, status in members.init:
        if blocked:
            updates.append(ContainerUpdate(status=status or waiting(container, "PodInitializing")))
            blocked += [container.name] if not _passes(container, updates[-1].status) else []
            continue
        update = lifecycle.advance(container, status, now)
        updates.append(update)
        if not _passes(container, update.status):
            blocked.append(container.name)
    return updates, blocked


def _passes(container: Container, status: ReadOnlyTree) -> bool:
    """Those after it may run: it has done its work, or, as a sidecar, has begun it once."""
    if container.role is Role.SIDECAR:
        runs = running_since(status) is not None and status["started"]
        return runs or last_end(status) is not None
    return lifecycle.has_succeeded(container, status)


def _phase(
    members: Members, init: Sequence[ContainerUpdate], main: Sequence[ContainerUpdate], *, is_blocked: bool
) -> str:
    for (container, _), update in zip(members.init, init, strict=True):
        over = container.role is Role.INIT and lifecycle.is_over(container, update.status)
        if over and not lifecycle.has_succeeded(container, update.status):
            return FAILED
    if is_blocked:
        return PENDING
    if any(lifecycle.never_ran(update.status) for update in main):
        return PENDING
    ran = [(container, update.status) for (container, _), update in zip(members.main, main, strict=True)]
    if all(lifecycle.is_over(container, status) for container, status in ran):
        return (
            SUCCEEDED
            if all(lifecycle.has_succeeded(container, status) for container, status in ran)
            else FAILED
        )
    return RUNNING


def _stop(
    container: Container, update: ContainerUpdate, now: datetime, code: int | None = None
) -> ContainerUpdate:
    if running_since(update.status) is None:
        return ContainerUpdate(status=update.status, events=update.events)
    if container.process is not None:
        status = lifecycle.end_process(container, update.status, now)
        return ContainerUpdate(status=status, events=update.events)
    exit_code = container.program.stop_code if code is None else code
    event = _killing(container)
    status = end_container(container, update.status, exit_code=exit_code, at=now)
    failed = lifecycle.pre_stop_failure(container)
    return ContainerUpdate(status=status, events=(*update.events, event, *failed))


def _summary(
    members: Members,
    updates: tuple[Sequence[ContainerUpdate], Sequence[ContainerUpdate], Sequence[ContainerUpdate]],
    phase: str,
    not_initialized: Sequence[str],
) -> PodContainers:
    init, main, ephemeral = updates
    all_updates = [*init, *main, *ephemeral]
    serving = [
        (container.name, update.status["ready"])
        for (container, _), update in zip((*members.init, *members.main), (*init, *main), strict=True)
        if container.role is not Role.INIT
    ]
    return PodContainers(
        init=[update.status for update in init],
        main=[update.status for update in main],
        ephemeral=[update.status for update in ephemeral],
        phase=phase,
        not_initialized=not_initialized,
        not_ready=[name for name, ready in serving if not ready],
        due=earliest(*(update.due for update in all_updates)),
        events=tuple(event for update in all_updates for event in update.events),
        actions=tuple(action for update in all_updates for action in update.actions),
    )
