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
    shared_places,
    writable_paths,
)
from mockube.controller_manager.kubelet.effects import ContainerAction, EmitEvent, StopContainer
from mockube.controller_manager.kubelet.pod_lifecycle import container as life
from mockube.controller_manager.kubelet.pod_lifecycle.container_status import (
    Container,
    ContainerMoment,
    RestartPolicy,
    Role,
    end_container,
    last_end,
    running_since,
    waiting,
)
from mockube.controller_manager.kubelet.pod_lifecycle.process_state import ProcessState
from mockube.controller_manager.kubelet.pod_lifecycle.program import (
    ENDS_AT_ONCE,
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
_NO_PROCESSES: Final[Mapping[str, ProcessState]] = {}


class Members(Struct, frozen=True, kw_only=True):
    """The containers of a pod, with their last statuses."""

    init: Sequence[tuple[Container, ReadOnlyTree | None]]
    main: Sequence[tuple[Container, ReadOnlyTree | None]]
    ephemeral: Sequence[tuple[Container, ReadOnlyTree | None]]


class RunningContainers(Struct, frozen=True, kw_only=True):
    """All containers at one time, in the order of the specification."""

    init: Sequence[ReadOnlyTree]
    main: Sequence[ReadOnlyTree]
    ephemeral: Sequence[ReadOnlyTree]
    phase: str
    not_initialized: Sequence[str]
    not_ready: Sequence[str]
    due: datetime | None
    """When one of them changes by itself."""
    tells: tuple[EmitEvent, ...]
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
        interpreted = _interpreted(pod, container, script)
        # Whether it ends follows from the pod, where the command is unknown.
        unknown = ENDS_AT_ONCE if _ends(pod, container, role) else SERVICE
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


def _interpreted(pod: ReadOnlyTree, container: ReadOnlyTree, script: Script) -> Callable[..., Program | None]:
    """What finds out what a container's command does, after so many `restarts`."""
    before = _before(pod, container, script)
    places = shared_places(pod, container) if before else ()
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


def _before(pod: ReadOnlyTree, container: ReadOnlyTree, script: Script) -> tuple[Invocation, ...]:
    """The init containers that run before a container, as far as they share volumes with others."""
    others = pod["spec"].get("initContainers")
    if not others or not container.get("volumeMounts"):
        return ()
    found = (
        invocation_of(one, _context(pod, one, script, places))
        for one in takewhile(lambda one: one is not container, others)
        if (places := shared_places(pod, one))
    )
    return tuple(one for one in found if one is not None)


def _ends(pod: ReadOnlyTree, container: ReadOnlyTree, role: Role) -> bool:
    """Whether an unknown command ends: yes in a pod that is meant to complete, else it is a service."""
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


def run(members: Members, now: datetime) -> RunningContainers:
    """Advance all containers that may run up to now."""
    init, blocked = _run_init(members, now)
    if blocked:
        main = [
            ContainerMoment(status=status or waiting(container, "PodInitializing"))
            for container, status in members.main
        ]
    else:
        main = [life.advance(container, status, now) for container, status in members.main]
    ephemeral = [life.advance(container, status, now) for container, status in members.ephemeral]
    phase = _phase(members, init, main, is_blocked=bool(blocked))
    if phase in (SUCCEEDED, FAILED):
        to_stop = processes_to_stop(members)
        if to_stop:  # it is over when the last of them has ended
            living = _living(members, (init, main, ephemeral), RUNNING, blocked)
            return replace(living, tells=living.tells + to_stop.tells, actions=to_stop.actions)
        init = [
            _stop(container, moment, now) for (container, _), moment in zip(members.init, init, strict=True)
        ]
    return _living(members, (init, main, ephemeral), phase, blocked)


def wait(members: Members, reason: str) -> RunningContainers:
    """No container runs yet; the first ones wait for the reason."""
    first = [ContainerMoment(status=waiting(container, "PodInitializing")) for container, _ in members.init]
    main_reason = "PodInitializing" if first else reason
    main = [ContainerMoment(status=waiting(container, main_reason)) for container, _ in members.main]
    if members.init:
        first[0] = ContainerMoment(status=waiting(members.init[0][0], reason))
    return _living(members, (first, main, []), PENDING, [container.name for container, _ in members.init])


def stop(members: Members, now: datetime, *, code: int | None = None) -> RunningContainers:
    """Stop all containers, with the code or that of their programs."""
    init, main, ephemeral = (
        [
            _stop(
                container,
                ContainerMoment(status=status or waiting(container, "ContainerCreating")),
                now,
                code,
            )
            for container, status in group
        ]
        for group in (members.init, members.main, members.ephemeral)
    )
    ends = [last_end(moment.status) for moment in main]
    phase = SUCCEEDED if all(end is not None and end["exitCode"] == 0 for end in ends) else FAILED
    return _living(members, (init, main, ephemeral), phase, ())


class ProcessStop(Struct, frozen=True, kw_only=True):
    """The processes that are alive, as far as they are to be stopped now."""

    alive: int = 0
    tells: tuple[EmitEvent, ...] = ()
    actions: tuple[ContainerAction, ...] = ()

    def __bool__(self) -> bool:
        return self.alive > 0


def processes_to_stop(members: Members) -> ProcessStop:
    """All main containers together; sidecars after them, the last one first."""
    init, others = (
        [one for one, _ in group] for group in (members.init, (*members.main, *members.ephemeral))
    )
    alive = [one for one in others if _is_alive(one)] or [one for one in init if _is_alive(one)][-1:]
    stopped = [one for one in alive if one.process is not None and not one.process.is_stopping]
    return ProcessStop(
        alive=len(alive),
        tells=tuple(_killing(one) for one in stopped),
        actions=tuple(StopContainer(one.name) for one in stopped),
    )


def _is_alive(container: Container) -> bool:
    return container.process is not None and container.process.is_alive


def _killing(container: Container) -> EmitEvent:
    return EmitEvent("Normal", "Killing", f"Stopping container {container.name}", container.field)


def _run_init(members: Members, now: datetime) -> tuple[list[ContainerMoment], list[str]]:
    """Advance the init containers up to the first that blocks; also return the names of those not done."""
    moments: list[ContainerMoment] = []
    blocked: list[str] = []
    for container, status in members.init:
        if blocked:
            moments.append(ContainerMoment(status=status or waiting(container, "PodInitializing")))
            blocked += [container.name] if not _passes(container, moments[-1].status) else []
            continue
        moment = life.advance(container, status, now)
        moments.append(moment)
        if not _passes(container, moment.status):
            blocked.append(container.name)
    return moments, blocked


def _passes(container: Container, status: ReadOnlyTree) -> bool:
    """Those after it may run: it has done its work, or, as a sidecar, has begun it once."""
    if container.role is Role.SIDECAR:
        runs = running_since(status) is not None and status["started"]
        return runs or last_end(status) is not None
    return life.has_succeeded(container, status)


def _phase(
    members: Members, init: Sequence[ContainerMoment], main: Sequence[ContainerMoment], *, is_blocked: bool
) -> str:
    for (container, _), moment in zip(members.init, init, strict=True):
        over = container.role is Role.INIT and life.is_over(container, moment.status)
        if over and not life.has_succeeded(container, moment.status):
            return FAILED
    if is_blocked:
        return PENDING
    if any(life.never_ran(moment.status) for moment in main):
        return PENDING
    ran = [(container, moment.status) for (container, _), moment in zip(members.main, main, strict=True)]
    if all(life.is_over(container, status) for container, status in ran):
        return (
            SUCCEEDED if all(life.has_succeeded(container, status) for container, status in ran) else FAILED
        )
    return RUNNING


def _stop(
    container: Container, moment: ContainerMoment, now: datetime, code: int | None = None
) -> ContainerMoment:
    if running_since(moment.status) is None:
        return ContainerMoment(status=moment.status, tells=moment.tells)
    if container.process is not None:
        status = life.end_process(container, moment.status, now)
        return ContainerMoment(status=status, tells=moment.tells)
    exit_code = container.program.stop_code if code is None else code
    event = _killing(container)
    status = end_container(container, moment.status, exit_code=exit_code, at=now)
    failed = life.pre_stop_failure(container)
    return ContainerMoment(status=status, tells=(*moment.tells, event, *failed))


def _living(
    members: Members,
    moments: tuple[Sequence[ContainerMoment], Sequence[ContainerMoment], Sequence[ContainerMoment]],
    phase: str,
    not_initialized: Sequence[str],
) -> RunningContainers:
    init, main, ephemeral = moments
    everybody = [*init, *main, *ephemeral]
    serving = [
        (container.name, moment.status["ready"])
        for (container, _), moment in zip((*members.init, *members.main), (*init, *main), strict=True)
        if container.role is not Role.INIT
    ]
    return RunningContainers(
        init=[moment.status for moment in init],
        main=[moment.status for moment in main],
        ephemeral=[moment.status for moment in ephemeral],
        phase=phase,
        not_initialized=not_initialized,
        not_ready=[name for name, ready in serving if not ready],
        due=earliest(*(moment.due for moment in everybody)),
        tells=tuple(event for moment in everybody for event in moment.tells),
        actions=tuple(action for moment in everybody for action in moment.actions),
    )
