"""The start of a container's run, from the checks of a kubelet to its first probes. Pure."""

from datetime import datetime
from math import inf
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery.timestamps import after, format_time, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.behavior import NOT_SIMULATED
from mockube.container_runtime.start_errors import NOT_STARTED, START_ERROR
from mockube.kubelet.security_profiles import profile_failure
from mockube.kubelet.start_checks import CONFIG_ERROR, INVALID_IMAGE_NAME, StartFailure, start_failure
from mockube.kubelet.step_effects import EmitEvent, RunHook, StartContainer

from . import container_status
from .container_status import Container, ContainerUpdate
from .hooks import first_start, hook_result
from .image_pulls import PULL_REASONS, RELIST_PERIOD, SYNC_PERIOD, EnsuredImage
from .probed_runs import ProbedRun, latest_failure
from .probing import Probe
from .unknown_images import unknown_image_events
from .unknown_programs import not_simulated_events

_SCRIPTED_MESSAGE: Final = "failed to create containerd task: failed to create shim task: the annotation mockube.dev/fail-start is set"
_NEVER_STARTED: Final = "1970-01-01T00:00:00Z"


def start_run(
    container: Container,
    status: ReadOnlyTree | None,
    now: datetime,
    *,
    restarts: int,
    last: ReadOnlyTree | None = None,
    begin: datetime | None = None,
) -> ContainerUpdate:
    """Start the run that is due, or report why the container is not created.

    `last` is the end of the last run, and `begin` the time from which on the container may run; None in its first run.
    """
    failure = _start_failure(container, restarts)
    if failure is not None and failure.reason == INVALID_IMAGE_NAME:
        return _not_created(container, status, failure, now, last=last)
    image = _ensure_image(container, restarts)
    if image.reason:
        return _not_pulled(container, status, image, last=last)
    if failure is not None:
        return _not_created(container, status, failure, now, last=last, pull_events=image.events)
    if container.process is None and (waiting := _wait_for_programs(container, status, last)):
        container.context.images.hold(container.spec, restarts, image)
        return waiting
    if status is not None and (retry_at := _time_of_retry(container, status)) is not None and retry_at > now:
        return ContainerUpdate(status=status, due=retry_at, is_blocked=True)
    if container.process is not None:
        return _start_process(container, status, now, image, restarts=restarts, last=last)
    has_new_image = restarts == 0 or (status is not None and status["image"] != container.spec["image"])
    started = now
    hook = hook_result(container, "postStart", restarts=restarts)
    if hook.seconds or hook.began:
        started = hook.began or (first_start(container, now) if begin is None else begin)
        before = status or container_status.waiting_status(container, "ContainerCreating")
        if waiting := _wait_for_hook(container, before, started, now, restarts):
            container.context.images.hold(container.spec, restarts, image)
            return waiting
    update = start_container(container, started, restarts=restarts, last=last, pull_events=image.events)
    return (
        replace(update, events=update.events + unknown_image_events(container)) if has_new_image else update
    )


def _ensure_image(container: Container, restarts: int) -> EnsuredImage:
    """Have the images of a container and of the volumes that it mounts on the node; return what failed, or the events of the pulls."""
    images = container.context.images
    volumes = images.ensure_volumes(container.spec)
    image = volumes if volumes.reason else images.ensure(container.spec, restarts)
    if _has_process(container, restarts):  # the process runs already
        image = EnsuredImage(events=() if image.reason else image.events)
    in_container = (replace(event, part=container.field) for event in image.events)
    return replace(image, events=(*volumes.pod_events, *in_container), pod_events=())


def _not_pulled(
    container: Container, status: ReadOnlyTree | None, image: EnsuredImage, *, last: ReadOnlyTree | None
) -> ContainerUpdate:
    """Return the update of a container without its image. As upstream, one that has run keeps the name of the image that ran."""
    before = status or container_status.waiting_status(container, "ContainerCreating")
    reason = (before["state"].get("waiting") or {}).get("reason")
    if not image.was_tried and reason in PULL_REASONS:
        return ContainerUpdate(status=before, due=image.retry_at, lacks_image=True)
    waiting = {
        **before,
        "image": before["image"] if last else container.spec["image"],
        "state": {"waiting": {"message": image.message, "reason": image.reason}},
        "lastState": {"terminated": last} if last else before["lastState"],
    }
    return ContainerUpdate(
        status=before if waiting == before else waiting,
        due=image.retry_at,
        lacks_image=True,
        events=image.events,
    )


def _wait_for_programs(
    container: Container, status: ReadOnlyTree | None, last: ReadOnlyTree | None
) -> ContainerUpdate | None:
    """Return the update of a container that waits for a program, an image or answers that are not simulated; None if it has all."""
    if not container.waits_for_programs:
        return None
    events = (*not_simulated_events([container]), *unknown_image_events(container))
    if not events:
        return None
    before = status or container_status.waiting_status(container, "ContainerCreating")
    message = "; ".join(dict.fromkeys(event.message for event in events))
    waiting = {
        **before,
        "state": {"waiting": {"message": message, "reason": NOT_SIMULATED}},
        "lastState": {"terminated": last} if last else before["lastState"],
    }
    return (
        ContainerUpdate(status=before)
        if waiting == before
        else ContainerUpdate(status=waiting, events=events)
    )


def _wait_for_hook(
    container: Container, before: ReadOnlyTree, started: datetime, now: datetime, restarts: int
) -> ContainerUpdate | None:
    """Return the update of a container whose postStart hook runs, because a kubelet reports it after its hook; None if none runs."""
    hook = hook_result(container, "postStart", restarts=restarts)
    runs_at = None if hook.seconds == inf else after(hook.began or started, span_of(hook.seconds))
    if runs_at is not None and runs_at <= now:
        return None
    actions = (RunHook(container.name, "postStart", restarts),) if hook.is_pending else ()
    return ContainerUpdate(status=before, due=runs_at, actions=actions)


def _start_failure(container: Container, restarts: int) -> StartFailure | None:
    if _has_process(container, restarts) or container.script.ignore_missing:
        return None
    image_user = container.context.predictions.image_user(container.spec)
    has_script = container.script.command(container.name) is not None or bool(container.script.times_runs)
    has_command = has_script or not container.context.predictions.lacks_command(container.spec)
    failure = start_failure(
        container.pod, container.spec, container.context.objects, image_user, has_command=has_command
    )
    return failure or profile_failure(container.pod, container.spec, container.context.profiles)


def _has_process(container: Container, restarts: int) -> bool:
    """Return whether the run is one in real time that was started."""
    return container.process is not None and container.process.restarts == restarts


def _not_created(
    container: Container,
    status: ReadOnlyTree | None,
    failure: StartFailure,
    now: datetime,
    *,
    last: ReadOnlyTree | None,
    pull_events: tuple[EmitEvent, ...] = (),
) -> ContainerUpdate:
    before = status or container_status.waiting_status(container, "ContainerCreating")
    waiting = {
        **before,
        "image": container.spec["image"],
        "state": {"waiting": {"message": failure.message, "reason": failure.reason}},
        "lastState": {"terminated": last} if last else before["lastState"],
    }
    if waiting == before and (retry_at := container.context.retry_at) is not None and retry_at > now:
        return ContainerUpdate(status=before, due=retry_at, is_blocked=True)
    events = tuple(
        EmitEvent("Warning", reason, message, container.field) for reason, message in failure.events
    )
    return ContainerUpdate(
        status=waiting, due=now + SYNC_PERIOD, is_blocked=True, events=(*pull_events, *events)
    )


def _time_of_retry(container: Container, status: ReadOnlyTree) -> datetime | None:
    """Return when a container that could not be created is tried again; None: at once.

    A kubelet tries again when it notices that another container of the pod has started, which takes it up to a second.
    """
    waiting = status["state"].get("waiting") or {}
    if waiting.get("reason") != CONFIG_ERROR:
        return None
    statuses = (container.pod.get("status") or {}).get("containerStatuses") or ()
    times = [time for other in statuses if (time := container_status.running_since(other)) is not None]
    return max(times) + RELIST_PERIOD if times else None


def _start_process(
    container: Container,
    status: ReadOnlyTree | None,
    now: datetime,
    image: EnsuredImage,
    *,
    restarts: int,
    last: ReadOnlyTree | None = None,
) -> ContainerUpdate:
    """Start the process of the run that is due, or report why it has not started."""
    process = container.process
    assert process is not None
    before = status or container_status.waiting_status(container, "ContainerCreating")
    if process.restarts != restarts:
        container.context.images.hold(container.spec, restarts, image)
        return ContainerUpdate(status=before, actions=(StartContainer(container.name, restarts),))
    if process.started is not None and process.is_simulated:
        if process.exit is None and (
            waiting := _wait_for_hook(container, before, process.started, now, restarts)
        ):
            container.context.images.hold(container.spec, restarts, image)
            return waiting
        update = start_container(
            container, process.started, restarts=restarts, last=last, pull_events=image.events
        )
        return (
            replace(update, events=update.events + unknown_image_events(container))
            if restarts == 0
            else update
        )
    if process.started is not None:
        update = start_container(
            container, process.started, restarts=restarts, last=last, pull_events=image.events
        )
        readiness = {
            "ready": container_status.counts_for_readiness(container) and process.is_ready,
            "started": process.passed_startup,
        }
        return replace(update, status={**update.status, **readiness})
    container.context.images.hold(container.spec, restarts, image)
    if not process.waiting_reason:
        return ContainerUpdate(status=before)
    reason = {"message": process.waiting_message, "reason": process.waiting_reason}
    state = {"waiting": {field: text for field, text in reason.items() if text}}
    new_fields = {"state": state, **({"lastState": {"terminated": last}} if last else {})}
    return ContainerUpdate(
        status=before if new_fields.items() <= before.items() else {**before, **new_fields}
    )


def start_container(
    container: Container,
    now: datetime,
    *,
    restarts: int,
    last: ReadOnlyTree | None = None,
    pull_events: tuple[EmitEvent, ...] = (),
) -> ContainerUpdate:
    """Return the start of a run, of a simulated container or of a process that has started."""
    if container.process is None and (problem := _start_problem(container, restarts)):
        return _failed_start(container, now, problem, pull_events, restarts=restarts, last=last)
    state = {"running": {"startedAt": format_time(now)}}
    status = container_status.running_status(container, restarts=restarts, state=state, last=last)
    probes = container.probed_run(restarts)
    if probes is not None:
        status |= {
            "ready": container_status.counts_for_readiness(container) and probes.is_ready(0),
            "started": probes.started_at <= 0,
        }
    events = (
        *pull_events,
        _created_event(container),
        EmitEvent("Normal", "Started", "Container started", container.field),
        *_first_probe_failures(container, probes, restarts),
        *_post_start_failure(container, restarts),
    )
    return ContainerUpdate(status=status, events=events)


def _created_event(container: Container) -> EmitEvent:
    return EmitEvent("Normal", "Created", "Container created", container.field)


def _start_problem(container: Container, restarts: int) -> str:
    """Return why a container that was created cannot be started; "" if it can."""
    if container.script.fails_at_start(container.name, restarts):
        return _SCRIPTED_MESSAGE
    return "" if container.script.times_runs else container.program.start_error


def _failed_start(
    container: Container,
    now: datetime,
    problem: str,
    pull_events: tuple[EmitEvent, ...],
    *,
    restarts: int,
    last: ReadOnlyTree | None,
) -> ContainerUpdate:
    """Return the end of a container that was created and cannot be started. Its time of start is that of Unix."""
    state = {"running": {"startedAt": _NEVER_STARTED}}
    created = container_status.running_status(container, restarts=restarts, state=state, last=last)
    status = container_status.end_container(
        container, created, exit_code=NOT_STARTED, at=now, message=problem, reason=START_ERROR
    )
    failed_event = EmitEvent("Warning", "Failed", f"Error: {problem}", container.field)
    return ContainerUpdate(status=status, events=(*pull_events, _created_event(container), failed_event))


def _first_probe_failures(
    container: Container, probes: ProbedRun | None, restarts: int
) -> tuple[EmitEvent, ...]:
    """Return the events of the probes that fail from the start; their later failures repeat the same events."""
    if probes is None:
        return ()
    return tuple(
        event
        for probe, at in probes.first_failures
        for event in unhealthy_events(container, probe, restarts, at)
    )


def _post_start_failure(container: Container, restarts: int) -> tuple[EmitEvent, ...]:
    if hook_result(container, "postStart", restarts=restarts).is_success:
        return ()
    return (
        EmitEvent("Warning", "FailedPostStartHook", "PostStartHook failed", container.field),
        EmitEvent("Normal", "Killing", "FailedPostStartHook", container.field),
    )


def unhealthy_events(
    container: Container, probe: Probe, restarts: int, seconds: float
) -> tuple[EmitEvent, ...]:
    """Return the event of a probe that fails at a time of a run. One in real time has reported its failures itself."""
    if probe in container.observed_run.probes:
        return ()
    result = latest_failure(container.probe_results(restarts)[probe], seconds)
    if result is None:
        return ()
    return (EmitEvent("Warning", result.event_reason, result.message, container.field),)
