"""The containers of a pod: run them, keep them waiting, or stop them.

Init containers run one after the other. Sidecars start in the same order and continue to run. Main containers run
together after them. The phase that follows is computed in `phase`. Pure.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from math import inf
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import LABEL_JOB_NAME
from mockube.client import podview
from mockube.container_runtime.behavior import (
    NOT_FOUND,
    RUNS_FOREVER,
    SERVICE,
    RunBehavior,
)
from mockube.container_runtime.load import NO_LOAD
from mockube.container_runtime.pod_script import Script, script_of
from mockube.container_runtime.predictions import NO_PREDICTIONS, Predictions
from mockube.container_runtime.simulation_values import FAIL, WAIT
from mockube.container_runtime.state import ContainerState
from mockube.kubelet.step_effects import ContainerAction, EmitEvent, StopContainer

from . import container as lifecycle
from .container_context import NO_CONTEXT, ContainerContext
from .container_status import (
    Container,
    ContainerUpdate,
    RestartPolicy,
    Role,
    end_container,
    running_since,
    waiting_status,
)
from .phase import running_pod_phase, stopped_pod_phase
from .stops import MIN_GRACE, stop_code
from .unknown_ends import with_last_end, with_unknown_ends

_INIT_POLICY: Final[dict[RestartPolicy, RestartPolicy]] = {
    "Always": "OnFailure",
    "OnFailure": "OnFailure",
    "Never": "Never",
}
_NO_PROCESSES: Final[Mapping[str, ContainerState]] = {}


class PodContainers(Struct, frozen=True, kw_only=True):
    """The containers of a pod, each with its last status, or None before its first."""

    init: Sequence[tuple[Container, ReadOnlyTree | None]]
    main: Sequence[tuple[Container, ReadOnlyTree | None]]
    ephemeral: Sequence[tuple[Container, ReadOnlyTree | None]]


class PodUpdate(Struct, frozen=True, kw_only=True):
    """The statuses of all containers at one time, in the order of the specification, and the phase of the pod."""

    init: Sequence[ReadOnlyTree]
    main: Sequence[ReadOnlyTree]
    ephemeral: Sequence[ReadOnlyTree]
    phase: str
    not_initialized: Sequence[str]
    """The names of the init containers that are not done."""
    not_ready: Sequence[str]
    """The names of the main containers and sidecars that are not ready."""
    due: datetime | None
    """The earliest time at which a container changes without an external cause."""
    events: tuple[EmitEvent, ...]
    actions: tuple[ContainerAction, ...] = ()
    is_blocked: bool = False
    """Whether a container cannot be created until another object changes."""
    lacks_image: bool = False
    """Whether a container cannot be created because its node does not have an image."""
    has_sandbox: bool = True
    """Whether the pod has its volumes and its network."""


def earliest(*times: datetime | None) -> datetime | None:
    return min((time for time in times if time is not None), default=None)


# --- the containers of a pod


def containers_of(
    pod: ReadOnlyTree,
    script: Script,
    *,
    has_ids: bool,
    processes: Mapping[str, ContainerState] = _NO_PROCESSES,
    context: ContainerContext = NO_CONTEXT,
) -> PodContainers:
    """Return the containers of a pod with their programs and last statuses.

    `processes` has the states of the containers that run as local processes. The others are simulated.
    """
    spec, status = pod["spec"], pod.get("status") or {}
    policy: RestartPolicy = spec.get("restartPolicy") or "Always"

    def create(container: ReadOnlyTree, role: Role, restart_policy: RestartPolicy) -> Container:
        process = processes.get(container["name"])
        run_program = context.predictions.program_of_run(pod, container, script)
        entrypoint_end = context.predictions.end_of_entrypoint(
            pod,
            container,
            script,
            context.objects.config_map,
            context.objects.secret,
            host_pods=context.host_pods() if spec.get("hostNetwork") else (),
        )
        known_program = SERVICE if process is not None else entrypoint_end or run_program()
        unknown_programs = context.predictions.unknown_programs(pod)
        fails = unknown_programs == FAIL
        is_known = process is not None or (known_program is not None and not fails)
        program = known_program or _default_program(
            pod,
            container,
            role,
            fails=fails,
            predictions=NO_PREDICTIONS if script.command(container["name"]) else context.predictions,
        )
        return Container(
            spec=container,
            pod=pod,
            role=role,
            restart_policy=restart_policy,
            program=program,
            server_load=NO_LOAD
            if process is not None
            else context.predictions.server_load(container, script),
            unknown_program=None
            if is_known
            else partial(context.predictions.unknown_program, pod, container, script),
            waits_for_programs=unknown_programs == WAIT,
            program_of_run=run_program if program.leaves_files or program.reads_time else None,
            script=script,
            has_ids=has_ids,
            context=context,
            process=process,
        )

    def create_init(container: ReadOnlyTree) -> Container:
        if container.get("restartPolicy") == "Always":
            return create(container, Role.SIDECAR, "Always")
        return create(container, Role.INIT, _INIT_POLICY[policy])

    init = map(create_init, spec.get("initContainers") or ())
    main = (create(container, Role.MAIN, policy) for container in spec["containers"])
    ephemeral = (
        create(container, Role.EPHEMERAL, "Never") for container in spec.get("ephemeralContainers") or ()
    )
    return PodContainers(
        init=_with_statuses(init, status.get("initContainerStatuses")),
        main=_with_statuses(main, status.get("containerStatuses")),
        ephemeral=_with_statuses(ephemeral, status.get("ephemeralContainerStatuses")),
    )


def default_program(pod: ReadOnlyTree, name: str) -> RunBehavior:
    """Return what a container does whose command is not simulated."""
    containers = containers_of(pod, script_of(meta.annotations(pod)), has_ids=False)
    every = (*containers.init, *containers.main, *containers.ephemeral)
    return next(
        (
            _default_program(pod, container.spec, container.role)
            for container, _ in every
            if container.name == name
        ),
        SERVICE,
    )


def _default_program(
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    role: Role,
    *,
    fails: bool = False,
    predictions: Predictions = NO_PREDICTIONS,
) -> RunBehavior:
    if predictions.runs_server(container) or not _runs_to_completion(pod, container, role):
        return RUNS_FOREVER if predictions.ignores_term(container) else SERVICE
    return RunBehavior(seconds=0, exit_code=NOT_FOUND if fails else 0, is_assumed=True)


def _runs_to_completion(pod: ReadOnlyTree, container: ReadOnlyTree, role: Role) -> bool:
    """Return whether an unknown command of the container is assumed to end; otherwise it is assumed to be a service."""
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


def _with_new_statuses(
    containers: Sequence[tuple[Container, ReadOnlyTree | None]], updates: Sequence[ContainerUpdate]
) -> Sequence[tuple[Container, ReadOnlyTree]]:
    return [(container, update.status) for (container, _), update in zip(containers, updates, strict=True)]


def has_run(containers: PodContainers) -> bool:
    """Return whether a container of the pod has started once."""
    return any(
        status is not None and not lifecycle.never_ran(status)
        for _, status in (*containers.init, *containers.main, *containers.ephemeral)
    )


# --- running and stopping them


def run_containers(containers: PodContainers, now: datetime) -> PodUpdate:
    """Advance all containers that may run up to now."""
    init, uninitialized = _run_init(containers, now)
    if uninitialized:
        main = [
            ContainerUpdate(status=status or waiting_status(container, "PodInitializing"))
            for container, status in containers.main
        ]
    else:
        main = _run_main(containers, now)
    ephemeral = [lifecycle.advance(container, status, now) for container, status in containers.ephemeral]
    phase = running_pod_phase(
        _with_new_statuses(containers.init, init),
        _with_new_statuses(containers.main, main),
        is_initialized=not uninitialized,
    )
    if phase in (podview.SUCCEEDED, podview.FAILED):
        to_stop = processes_to_stop(containers)
        if to_stop:  # The pod stays Running until the last process has ended.
            update = _summary(containers, (init, main, ephemeral), podview.RUNNING, uninitialized)
            return replace(update, events=update.events + to_stop.events, actions=to_stop.actions)
        init = [
            _stop(container, update, now, now)
            for (container, _), update in zip(containers.init, init, strict=True)
        ]
    return _summary(containers, (init, main, ephemeral), phase, uninitialized)


def keep_waiting(containers: PodContainers, reason: str) -> PodUpdate:
    """Start no container: the pod is Pending, and the containers that would start first wait for the reason."""
    first = [
        ContainerUpdate(status=waiting_status(container, "PodInitializing"))
        for container, _ in containers.init
    ]
    main_reason = "PodInitializing" if first else reason
    main = [
        ContainerUpdate(status=waiting_status(container, main_reason)) for container, _ in containers.main
    ]
    if containers.init:
        first[0] = ContainerUpdate(status=waiting_status(containers.init[0][0], reason))
    return _summary(
        containers, (first, main, []), podview.PENDING, [container.name for container, _ in containers.init]
    )


def stop_containers(
    containers: PodContainers, now: datetime, *, begin: datetime | None = None, is_deleted: bool = False
) -> PodUpdate:
    """Stop all containers; they end with their programs' codes after a stop that began at `begin`."""
    init, main, ephemeral = (
        [
            _stop(
                container,
                ContainerUpdate(status=status or waiting_status(container, "ContainerCreating")),
                now,
                begin or now,
            )
            for container, status in group
        ]
        for group in (containers.init, containers.main, containers.ephemeral)
    )
    if is_deleted:
        init, main = [*map(with_last_end, init)], [*map(with_last_end, main)]
    init, main = with_unknown_ends([container for container, _ in containers.init], init, main)
    phase = stopped_pod_phase([update.status for update in main])
    uninitialized = [
        container.name
        for (container, _), update in zip(containers.init, init, strict=True)
        if not lifecycle.is_initialized(container, update.status, has_continued=True)
    ]
    # Once a main container has run, the pod was initialized, whatever its init containers did later.
    was_initialized = any(not lifecycle.never_ran(update.status) for update in main)
    return _summary(containers, (init, main, ephemeral), phase, () if was_initialized else uninitialized)


def grace_seconds(pod: ReadOnlyTree) -> float:
    """Return the grace period in seconds: that of the deletion, or else that of the specification."""
    seconds = meta.deletion_grace_period_seconds(pod) if meta.is_deleting(pod) else None
    if seconds is None:
        seconds = pod["spec"].get("terminationGracePeriodSeconds")
    return lifecycle.DEFAULT_GRACE if seconds is None else float(seconds)


def remaining_grace(pod: ReadOnlyTree, now: datetime) -> float:
    """Return how many seconds of the grace period are left: all, or those after the preStop hooks of a deleted pod."""
    grace, deadline = grace_seconds(pod), meta.deletion_timestamp(pod)
    if deadline is None or not grace:
        return grace
    return min(grace, max((deadline - now).total_seconds(), MIN_GRACE))


class ProcessStop(Struct, frozen=True, kw_only=True):
    """The processes that are to end before any other process is stopped, and the actions that stop them."""

    alive: int = 0
    """How many of them have not ended."""
    events: tuple[EmitEvent, ...] = ()
    actions: tuple[ContainerAction, ...] = ()

    def __bool__(self) -> bool:
        return self.alive > 0


def processes_to_stop(
    containers: PodContainers, hook_ends: Collection[str] = (), grace: float = inf
) -> ProcessStop:
    """Return the processes to stop next: all main and ephemeral containers, then the sidecars in reverse order.

    They have `grace` seconds at most. The containers in `hook_ends` are not stopped yet: their preStop hooks run.
    """
    init, others = (
        [container for container, _ in group]
        for group in (containers.init, (*containers.main, *containers.ephemeral))
    )
    alive = [container for container in others if _is_alive(container)] or [
        container for container in init if _is_alive(container)
    ][-1:]
    to_stop = [
        container
        for container in alive
        if container.process is not None
        and not container.process.is_stopping
        and container.name not in hook_ends
    ]
    return ProcessStop(
        alive=len(alive),
        events=tuple(_killing_event(container) for container in to_stop),
        actions=tuple(StopContainer(container.name, grace) for container in to_stop),
    )


def _is_alive(container: Container) -> bool:
    return container.process is not None and container.process.is_alive


def killing_events(containers: PodContainers) -> tuple[EmitEvent, ...]:
    """Return the events of a stop that begins, of the containers that run and are not processes."""
    every = (*containers.init, *containers.main, *containers.ephemeral)
    return tuple(
        _killing_event(container)
        for container, status in every
        if status is not None and container.process is None and running_since(status) is not None
    )


def _killing_event(container: Container) -> EmitEvent:
    message = f"Stopping container {container.name}"
    return EmitEvent("Normal", "Killing", message, container.field, once="stop")


def _run_init(containers: PodContainers, now: datetime) -> tuple[list[ContainerUpdate], list[str]]:
    """Advance the init containers up to the first that is not done; also return the names of all that are not done."""
    updates: list[ContainerUpdate] = []
    uninitialized: list[str] = []
    has_run = [
        status is not None and not lifecycle.never_ran(status)
        for _, status in (*containers.init, *containers.main)
    ]
    for index, (container, status) in enumerate(containers.init):
        if uninitialized:
            update = ContainerUpdate(status=status or waiting_status(container, "PodInitializing"))
        else:
            update = lifecycle.advance(container, status, now)
        updates.append(update)
        has_continued = any(has_run[index + 1 :])
        if not lifecycle.is_initialized(container, update.status, has_continued=has_continued):
            uninitialized.append(container.name)
    return updates, uninitialized


def _run_main(containers: PodContainers, now: datetime) -> list[ContainerUpdate]:
    """Advance the main containers. They are started one after the other, each after the postStart hook of the previous one."""
    updates: list[ContainerUpdate] = []
    waits_for_hook = False
    for container, status in containers.main:
        if waits_for_hook and (status is None or lifecycle.never_ran(status)):
            updates.append(ContainerUpdate(status=status or waiting_status(container, "ContainerCreating")))
            continue
        update = lifecycle.advance(container, status, now)
        updates.append(update)
        has_hook = container.process is None or (
            not container.is_process and "postStart" in (container.spec.get("lifecycle") or {})
        )
        is_created = not update.is_blocked and not update.lacks_image
        waits_for_hook |= has_hook and is_created and lifecycle.never_ran(update.status)
    return updates


def _stop(container: Container, update: ContainerUpdate, now: datetime, begin: datetime) -> ContainerUpdate:
    if running_since(update.status) is None:
        return ContainerUpdate(status=update.status, events=update.events)
    if container.process is not None:
        status = lifecycle.end_process(container, update.status, now)
        failure = lifecycle.pre_stop_failure(container, update.status, now)
        return ContainerUpdate(status=status, events=(*update.events, *failure))
    exit_code = stop_code(container, update.status, begin, now)
    event = _killing_event(container)
    status = end_container(container, update.status, exit_code=exit_code, at=now)
    hook_failure = lifecycle.pre_stop_failure(container, update.status, now)
    return ContainerUpdate(status=status, events=(*update.events, event, *hook_failure))


def _summary(
    containers: PodContainers,
    updates: tuple[Sequence[ContainerUpdate], Sequence[ContainerUpdate], Sequence[ContainerUpdate]],
    phase: str,
    not_initialized: Sequence[str],
) -> PodUpdate:
    init, main, ephemeral = updates
    all_updates = [*init, *main, *ephemeral]
    readiness = [
        (container.name, update.status["ready"])
        for (container, _), update in zip((*containers.init, *containers.main), (*init, *main), strict=True)
        if container.role is not Role.INIT
    ]
    return PodUpdate(
        init=[update.status for update in init],
        main=[update.status for update in main],
        ephemeral=[update.status for update in ephemeral],
        phase=phase,
        not_initialized=not_initialized,
        not_ready=[name for name, ready in readiness if not ready],
        due=earliest(*(update.due for update in all_updates)),
        events=tuple(event for update in all_updates for event in update.events),
        actions=tuple(action for update in all_updates for action in update.actions),
        is_blocked=any(update.is_blocked for update in all_updates),
        lacks_image=any(update.lacks_image for update in all_updates),
    )
