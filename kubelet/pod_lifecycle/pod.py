"""The next step in the lifecycle of a pod on its node: start, run, reach the deadline, be preempted, terminate.

Pure and stateless: each step is computed from the pod and the time, so a simulated kubelet may be restarted at any
time, like a real one. The phase is computed in `phase`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from math import inf
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from mockube.apimachinery import meta, timestamps
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.component_helpers.pod_requests import MEMORY
from mockube.client.podview import FAILED, PENDING, SUCCEEDED
from mockube.container_runtime.pod_script import NEVER, Script, script_of
from mockube.container_runtime.predictions import NO_PREDICTIONS, Predictions
from mockube.container_runtime.simulation_values import WAIT
from mockube.container_runtime.state import ContainerKill, ContainerState
from mockube.kubelet.security_profiles import ALL_PROFILES, ProfilesOfNode
from mockube.kubelet.start_checks import NO_OBJECTS, ReferencedObjects, missing_pull_secrets, mount_failures
from mockube.kubelet.step_effects import NO_STEP, DeleteObject, Effect, EmitEvent, PatchObject, Step
from mockube.kubelet.volumes.attachments import unattached_volumes
from mockube.kubelet.volumes.host_paths import PathType
from mockube.kubelet.volumes.node_volumes import lacking_volumes

from .container_context import ContainerContext
from .containers import (
    PodContainers,
    PodUpdate,
    ProcessStop,
    containers_of,
    earliest,
    grace_seconds,
    has_run,
    keep_waiting,
    killing_events,
    processes_to_stop,
    run_containers,
    stop_containers,
)
from .default_commands import default_command_events
from .eviction import EVICTED, GRACE_SECONDS, Eviction, evicted_status
from .image_pulls import ERR_IMAGE_PULL, IMAGE_PULL_BACKOFF, PRESENT_IMAGES, PULL_REASONS, PodImages
from .observations import ObservedRun
from .pod_conditions import PodState, kubelet_conditions, observed_conditions
from .pre_stops import pending_pre_stops, pre_stop_ends
from .preemption import preempted_status
from .resize import NodeResources, resize
from .status_patch import status_patch
from .stops import stop_seconds
from .unknown_images import with_assumptions
from .unknown_programs import not_simulated_events

MIN_MOUNT_DELAY: Final = timedelta(milliseconds=500)
MAX_MOUNT_DELAY: Final = timedelta(minutes=2, seconds=2)
MOUNT_TIMEOUT: Final = timedelta(minutes=2, seconds=3)
"""The time after which a kubelet also reports which volumes of a pod are not mounted."""
_PULL_MUST_FAIL_SINCE: Final = 37
"""The minor version since which kubelets warn of missing pull secrets only if an image cannot be pulled."""
_PULL_FAILURES: Final = (ERR_IMAGE_PULL, IMAGE_PULL_BACKOFF)
_PULL_ERROR: Final = f"Error: {ERR_IMAGE_PULL}"
"""The message of the event of a container whose image could not be pulled."""
_DEADLINE_EXCEEDED: Final = {
    "reason": "DeadlineExceeded",
    "message": "Pod was active on the node longer than the specified deadline",
}


class NodeContext(Struct, frozen=True, kw_only=True):
    """The parts of a node that the lifecycle of one of its pods needs."""

    ip: str
    pod_ips: Sequence[str]
    """The addresses to assign to the pod if it has none yet."""
    resources: NodeResources
    kubelet_minor: int = 0
    """The minor version of the node's kubelet."""
    details: bool
    """Whether the kubelet also writes what kwok omits: events, ids, the sandbox's condition, and the last status of a
    deleted pod."""
    objects: ReferencedObjects = NO_OBJECTS
    """The objects that the pod refers to."""
    path_type: PathType
    """Returns the type of a path on the node."""
    retry_at: datetime | None = None
    """The time of the next attempt to start the pod, if the last one failed; its failure is reported again then."""
    images: PodImages = PRESENT_IMAGES
    """The images of the pod: on the node, or pulled."""
    profiles: ProfilesOfNode = ALL_PROFILES
    """The seccomp and AppArmor profiles of the node."""
    predictions: Predictions = NO_PREDICTIONS
    """What is known of the pod's containers before they run."""
    processes: Mapping[str, ContainerState] = field(default_factory=dict)
    """The states of the pod's containers that run in real time, by container name."""
    host_pods: Callable[[], Iterable[ReadOnlyTree]] = tuple
    """Returns the other pods in the network of the node."""
    observed: Mapping[str, ObservedRun] = {}
    """What was observed of the probes and hooks that run in real time, by container name."""
    kills: Mapping[str, ContainerKill] = {}
    """The containers that a command of a client has ended, by name."""
    live_assumptions: Sequence[EmitEvent] = ()
    """The events, recorded before, about what is not simulated of the commands that run in real time."""


def step(pod: ReadOnlyTree, context: NodeContext, now: datetime) -> Step:
    """Return the kubelet's next step for a pod that is bound to its node."""
    script = script_of(meta.annotations(pod))
    containers = _containers(pod, script, context)
    if meta.is_deleting(pod):
        termination = _terminate(pod, containers, script, context, now)
        if _changes_pod(termination) or _has_ended(pod):
            return termination
        return replace(termination, effects=(*_writes(pod, _observed_status(pod)), *termination.effects))
    if _has_ended(pod):
        return NO_STEP
    deadline = _deadline(pod, now)
    if deadline is not None and deadline <= now:
        return _end_at_deadline(pod, context, deadline, now)
    return _advance(pod, containers, script, context, now)


def _containers(pod: ReadOnlyTree, script: Script, context: NodeContext) -> PodContainers:
    """Return the containers of a pod on its node."""
    return containers_of(
        pod,
        script,
        has_ids=context.details,
        processes=context.processes,
        context=ContainerContext(
            objects=context.objects,
            retry_at=context.retry_at,
            images=context.images,
            profiles=context.profiles,
            pod_ip=_pod_ip(pod, context),
            predictions=context.predictions,
            observed=context.observed,
            kills=context.kills,
            host_pods=context.host_pods,
            node_memory=lambda: context.resources.allocatable()[MEMORY] or inf,
        ),
    )


def preempt(pod: ReadOnlyTree, context: NodeContext, since: datetime, now: datetime) -> Step:
    """Return the next step for a pod that was preempted at `since`: its containers stop as in a deletion."""
    return _kill(
        pod, context, since, now, grace_seconds(pod), lambda status: preempted_status(pod, status, now)
    )


def _end_at_deadline(pod: ReadOnlyTree, context: NodeContext, deadline: datetime, now: datetime) -> Step:
    """Return the next step for a pod whose time is over: its containers stop as in a deletion."""
    step = _kill(
        pod, context, deadline, now, grace_seconds(pod), lambda status: {**status, **_DEADLINE_EXCEEDED}
    )
    if not context.details:
        return step
    event = EmitEvent("Normal", _DEADLINE_EXCEEDED["reason"], _DEADLINE_EXCEEDED["message"], once="deadline")
    return replace(step, effects=(event, *step.effects))


def evict(pod: ReadOnlyTree, context: NodeContext, eviction: Eviction, now: datetime) -> Step:
    """Return the next step for a pod that is evicted: its containers have a second to stop."""
    grace = min(GRACE_SECONDS, grace_seconds(pod))
    step = _kill(pod, context, eviction.at, now, grace, lambda status: evicted_status(pod, status, eviction))
    if not context.details:
        return step
    event = EmitEvent("Warning", EVICTED, eviction.message, once="evicted")
    return replace(step, effects=(event, *step.effects))


def _kill(
    pod: ReadOnlyTree,
    context: NodeContext,
    since: datetime,
    now: datetime,
    grace: float,
    final_status: Callable[[ReadOnlyTree], ReadOnlyTree],
) -> Step:
    script = script_of(meta.annotations(pod))
    containers = _containers(pod, script, context)
    hook_ends = pre_stop_ends(containers, since, grace, now)
    if to_stop := processes_to_stop(containers, hook_ends, grace):
        return _stop_step(containers, to_stop, context, since, hook_ends)
    duration = NEVER if script.hang_terminating else _stop_seconds(containers, script, since)
    ends_at = now if context.processes else timestamps.after(since, timestamps.span_of(min(duration, grace)))
    if ends_at > now:
        return _stopping_step(containers, context, since, ends_at)
    update = replace(stop_containers(containers, now, begin=since), phase=FAILED)
    status = final_status(_status(pod, update, context, now))
    return Step(effects=(*(update.events if context.details else ()), *_writes(pod, status)))


def _advance(
    pod: ReadOnlyTree, containers: PodContainers, script: Script, context: NodeContext, now: datetime
) -> Step:
    starts_at = timestamps.after(_start_time(pod, now), timestamps.span_of(script.start_after))
    is_pending = _current_phase(pod) == PENDING
    if is_pending and (starts_at > now or script.waiting_reason):
        update = keep_waiting(containers, script.waiting_reason or "ContainerCreating")
        update = replace(update, due=starts_at if starts_at > now else None)
    elif is_pending and (mount := _mount(pod, containers, script, context, now)) is not None:
        update = mount
    else:
        update = run_containers(containers, now)
    resizable = [container for container, _ in (*containers.init, *containers.main)]
    resized = resize(pod, resizable, [*update.init, *update.main], context.resources, now)
    update = replace(
        update,
        init=resized.statuses[: len(containers.init)],
        main=resized.statuses[len(containers.init) :],
        due=earliest(update.due, resized.due),
    )
    is_first = "startTime" not in (pod.get("status") or {})  # so that each is reported once
    assumes = context.predictions.unknown_programs(pod) != WAIT
    not_simulated: list[EmitEvent] = []
    if assumes and context.details and (is_first or _waited_for_image(pod)) and not update.lacks_image:
        every = (*containers.init, *containers.main, *containers.ephemeral)
        not_simulated = not_simulated_events([container for container, _ in every])
    events = [*not_simulated, *(update.events if assumes else ()), *context.live_assumptions]
    conditions = with_assumptions(resized.conditions, events, now)
    resized_pod = meta.with_value(pod, ("status", "conditions"), conditions)
    effects: list[Effect] = [*_writes(pod, _status(resized_pod, update, context, now))]
    if is_first:
        effects += [EmitEvent("Warning", "InvalidAnnotation", problem) for problem in script.problems]
        if context.details and not update.is_blocked and _warns_at_start(script, context):
            effects += _missing_pull_secret_events(pod, context)
    if context.details:
        if (is_first or _waited_for_image(pod)) and not update.lacks_image:
            effects += not_simulated
            effects += default_command_events(containers)
        effects += update.events
        has_pull_error = any(event.message == _PULL_ERROR for event in update.events)
        if has_pull_error and not (is_first and _warns_at_start(script, context)):
            effects += _missing_pull_secret_events(pod, context)
    has_ended = update.phase in (SUCCEEDED, FAILED)
    requeue_at = None if has_ended else earliest(update.due, _deadline(pod, now))
    return Step(
        effects=tuple(effects),
        actions=update.actions,
        requeue_at=requeue_at,
        is_blocked=update.is_blocked,
        lacks_image=update.lacks_image,
    )


def _waited_for_image(pod: ReadOnlyTree) -> bool:
    """Return whether the last status of a container says that its image is missing."""
    status = pod["status"]
    return any(
        (container["state"].get("waiting") or {}).get("reason") in PULL_REASONS
        for field in ("containerStatuses", "initContainerStatuses")
        for container in status.get(field) or ()
    )


def _mount(
    pod: ReadOnlyTree, containers: PodContainers, script: Script, context: NodeContext, now: datetime
) -> PodUpdate | None:
    """Return the update of a pod whose volumes cannot be mounted now; None if they can, or are mounted already."""
    if script.ignore_missing or has_run(containers):
        return None
    unattached = unattached_volumes(pod, context.objects)
    failures = {
        name: f'MountVolume.SetUp failed for volume "{name}" : {message}'
        for name, message in mount_failures(pod, context.objects).items()
    }
    failures |= lacking_volumes(pod, context.objects, context.path_type, unattached)
    if not failures and not unattached:
        return None
    update = replace(keep_waiting(containers, "ContainerCreating"), is_blocked=True, has_sandbox=False)
    if context.retry_at is not None and context.retry_at > now:
        return replace(update, due=context.retry_at)
    waited = now - _start_time(pod, now)
    events = [EmitEvent("Warning", "FailedMount", message) for message in failures.values()]
    if waited >= MOUNT_TIMEOUT:
        message = (
            f"Unable to attach or mount volumes: unmounted volumes=[{' '.join([*unattached, *failures])}], "
            f"unattached volumes=[{' '.join(unattached)}], "
            "failed to process volumes=[]: context deadline exceeded"
        )
        events.append(EmitEvent("Warning", "FailedMount", message))
    return replace(update, due=now + next_mount_delay(waited), events=tuple(events))


def next_mount_delay(waited: timedelta) -> timedelta:
    """Return the time until volumes are mounted again: it doubles with each attempt, up to a limit."""
    attempt, delay = timedelta(), MIN_MOUNT_DELAY
    while attempt + delay <= waited and delay < MAX_MOUNT_DELAY:
        attempt, delay = attempt + delay, min(2 * delay, MAX_MOUNT_DELAY)
    return delay if delay == MAX_MOUNT_DELAY else attempt + delay - waited


def _warns_at_start(script: Script, context: NodeContext) -> bool:
    """Return whether the kubelet warns of missing pull secrets before a pull has failed."""
    return context.kubelet_minor < _PULL_MUST_FAIL_SINCE or script.waiting_reason in _PULL_FAILURES


def _missing_pull_secret_events(pod: ReadOnlyTree, context: NodeContext) -> list[EmitEvent]:
    missing = missing_pull_secrets(pod, context.objects)
    message = (
        f"Unable to retrieve some image pull secrets ({', '.join(missing)}); "
        "attempting to pull the image may not succeed."
    )
    return [EmitEvent("Warning", "FailedToRetrieveImagePullSecret", message)] if missing else []


def _terminate(
    pod: ReadOnlyTree, containers: PodContainers, script: Script, context: NodeContext, now: datetime
) -> Step:
    """Return the next step for a deleted pod: its containers stop, and then it is deleted without further grace."""
    grace = meta.deletion_grace_period_seconds(pod) or 0
    deadline = meta.deletion_timestamp(pod)
    stopped_at = None if deadline is None else timestamps.after(deadline, timestamps.span_of(-grace))
    hook_ends = {} if stopped_at is None else pre_stop_ends(containers, stopped_at, grace, now)
    if to_stop := processes_to_stop(containers, hook_ends):
        return _stop_step(containers, to_stop, context, stopped_at, hook_ends)
    is_waiting_for_finalizers = grace == 0 and _has_ended(pod)
    if is_waiting_for_finalizers or deadline is None or script.hang_terminating:
        return NO_STEP
    if _has_ended(pod):
        return Step(effects=(DeleteObject(),))
    begin = timestamps.after(deadline, timestamps.span_of(-grace))
    ends_at = timestamps.after(
        begin, timestamps.span_of(min(_stop_seconds(containers, script, begin), grace))
    )
    ends_at = now if context.processes else ends_at  # Its processes have ended already.
    if ends_at > now:
        return _stopping_step(containers, context, begin, ends_at)
    effects: list[Effect] = []
    # Without finalizers the last status is deleted with the pod at once.
    if context.details or meta.finalizers(pod):
        update = stop_containers(containers, now, begin=begin, is_deleted=True)
        effects += _writes(pod, _status(pod, update, context, now))
        effects += update.events if context.details else ()
    return Step(effects=(*effects, DeleteObject()))


def _changes_pod(step: Step) -> bool:
    return any(isinstance(effect, PatchObject | DeleteObject) for effect in step.effects)


def _stopping_step(
    containers: PodContainers, context: NodeContext, begin: datetime, ends_at: datetime
) -> Step:
    """Return the step of a pod whose containers stop until a time."""
    return Step(
        effects=killing_events(containers) if context.details else (),
        actions=pending_pre_stops(containers, begin),
        requeue_at=ends_at,
    )


def _stop_step(
    containers: PodContainers,
    to_stop: ProcessStop,
    context: NodeContext,
    begin: datetime | None,
    hook_ends: Mapping[str, datetime],
) -> Step:
    """Return the step that stops processes, and runs the preStop hooks of the others."""
    hooks = pending_pre_stops(containers, begin) if hook_ends and begin is not None else ()
    return Step(
        effects=to_stop.events if context.details else (),
        actions=(*to_stop.actions, *hooks),
        requeue_at=min(hook_ends.values(), default=None),
    )


def _stop_seconds(containers: PodContainers, script: Script, begin: datetime) -> float:
    """Return the duration of a termination without its limit: that of an annotation, or else of the containers' ends."""
    others = (*containers.main, *containers.ephemeral)
    return script.terminate_after or stop_seconds(containers.init, others, begin)


# --- the pod's status


def _current_phase(pod: ReadOnlyTree) -> str:
    return (pod.get("status") or {}).get("phase") or PENDING


def _has_ended(pod: ReadOnlyTree) -> bool:
    return _current_phase(pod) in (SUCCEEDED, FAILED)


def _start_time(pod: ReadOnlyTree, now: datetime) -> datetime:
    text = (pod.get("status") or {}).get("startTime")
    return timestamps.parse_time(text) if text else now


def _deadline(pod: ReadOnlyTree, now: datetime) -> datetime | None:
    seconds = pod["spec"].get("activeDeadlineSeconds")
    return None if seconds is None else timestamps.after(_start_time(pod, now), timestamps.span_of(seconds))


# --- what is written


def _status(pod: ReadOnlyTree, update: PodUpdate, context: NodeContext, now: datetime) -> dict[str, Any]:
    old = pod.get("status") or {}
    state = PodState(
        phase=update.phase,
        not_initialized=update.not_initialized,
        not_ready=update.not_ready,
        has_sandbox_condition=context.details,
        has_sandbox=update.has_sandbox,
        kubelet_minor=context.kubelet_minor,
    )
    status = {
        **old,
        "conditions": kubelet_conditions(pod, state, now),
        "containerStatuses": update.main,
        "hostIP": context.ip,
        "hostIPs": [{"ip": context.ip}],
        "observedGeneration": meta.generation(pod),
        "phase": update.phase,
        **_addresses(pod, old, context, has_sandbox=update.has_sandbox),
        "startTime": old.get("startTime") or timestamps.format_time(now),
    }
    if update.init:
        status["initContainerStatuses"] = update.init
    if update.ephemeral:
        status["ephemeralContainerStatuses"] = update.ephemeral
    return status


def _observed_status(pod: ReadOnlyTree) -> ReadOnlyTree:
    """Return the status of a pod whose containers are as before, for its present generation."""
    return {
        **(pod.get("status") or {}),
        "conditions": observed_conditions(pod),
        "observedGeneration": meta.generation(pod),
    }


def _addresses(
    pod: ReadOnlyTree, old: ReadOnlyTree, context: NodeContext, *, has_sandbox: bool
) -> dict[str, Any]:
    """Return the pod's addresses, which it has from the creation of its sandbox; on the host's network always."""
    if not has_sandbox and not pod["spec"].get("hostNetwork"):
        return {}
    pod_ips = _pod_ips(pod, old, context)
    return {"podIP": pod_ips[0]["ip"], "podIPs": pod_ips}


def _pod_ip(pod: ReadOnlyTree, context: NodeContext) -> str:
    pod_ips = _pod_ips(pod, pod.get("status") or {}, context)
    return str(pod_ips[0]["ip"]) if pod_ips else ""


def _pod_ips(pod: ReadOnlyTree, old: ReadOnlyTree, context: NodeContext) -> Sequence[ReadOnlyTree]:
    if pod["spec"].get("hostNetwork"):
        return [{"ip": context.ip}]
    if old.get("podIP"):
        return old.get("podIPs") or [{"ip": old["podIP"]}]
    return [{"ip": address} for address in context.pod_ips]


def _writes(pod: ReadOnlyTree, status: ReadOnlyTree) -> Iterator[PatchObject]:
    patch = status_patch(pod.get("status") or {}, status)
    if patch:
        # The uid prevents the patch from changing another pod of the same name.
        yield PatchObject(body={"metadata": {"uid": meta.uid(pod)}, "status": patch})
