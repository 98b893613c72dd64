"""The lifecycle of one container: start, end and restart with back-off, by its program, script and restart policy.

Pure and stateless: the container's status contains everything that the next call needs.
"""

from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.durations import format_duration
from mockube.apimachinery.timestamps import after, format_time, parse_time, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.kubelet.effects import (
    EmitEvent,
    StartContainer,
    StopContainer,
)
from mockube.controller_manager.kubelet.pod_lifecycle.container_status import (
    Container,
    ContainerUpdate,
    Role,
    end_container,
    last_end,
    running_since,
    running_status,
    serves,
    waiting,
)
from mockube.controller_manager.kubelet.pod_lifecycle.probing import Probe, restart_message
from mockube.controller_manager.kubelet.pod_lifecycle.process_state import ProcessState
from mockube.controller_manager.kubelet.pod_lifecycle.program import Program
from mockube.controller_manager.kubelet.pod_lifecycle.script import NEVER
from mockube.controller_manager.kubelet.pod_lifecycle.scripted_probes import (
    ProbedRun,
    probed_run,
    scripted_failure,
)

INITIAL_BACKOFF: Final = timedelta(seconds=10)
MAX_BACKOFF: Final = timedelta(minutes=5)
BACKOFF_RESET: Final = timedelta(minutes=10)
"""A run that lasted so long resets the back-off."""
_DOUBLINGS: Final = 5
_KILLED: Final = 137
_LOST: Final = (
    "The container could not be located when the pod was synchronized. The container used to be Running"
)


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
    if restarts == 0 or ran >= BACKOFF_RESET:
        return timedelta(0)
    doublings = min(restarts - 1, _DOUBLINGS)
    return min(INITIAL_BACKOFF * (1 << doublings), MAX_BACKOFF)


# --- state after the run


def advance(container: Container, status: ReadOnlyTree | None, now: datetime) -> ContainerUpdate:
    """Advance a container that may run from its last status."""
    if status is None or never_ran(status):
        if container.config_error:
            refused = waiting(container, "CreateContainerConfigError", container.config_error)
            return ContainerUpdate(status=refused)
        if container.process is not None:
            update = _start_process(container, container.process, status, restarts=0)
        else:
            update = _start(container, now, restarts=0)
    else:
        update = _next_change(container, status, now)
    while not update.actions and update.status is not status:
        status = update.status
        following = _next_change(container, status, now)
        update = replace(following, events=update.events + following.events)
    return update


def never_ran(status: ReadOnlyTree) -> bool:
    return "running" not in status["state"] and last_end(status) is None


def _next_change(container: Container, status: ReadOnlyTree, now: datetime) -> ContainerUpdate:
    """The next change that is due, or the same status and when it changes."""
    started = running_since(status)
    if started is not None:
        return _run(container, status, started, now)
    end = last_end(status)
    if end is None or is_over(container, status):
        return ContainerUpdate(status=status)
    return _wait(container, status, end, now)


def _run(container: Container, status: ReadOnlyTree, started: datetime, now: datetime) -> ContainerUpdate:
    if container.process is not None:
        return _run_process(container, status, container.process, now)
    if status["image"] != container.spec["image"]:
        return _replace(container, status, now)
    own, restarts = container.program, status["restartCount"]
    if restarts and container.restarted:
        own = container.restarted(restarts=restarts) or own
    if _failed_hook(container, "postStart", "", ""):
        own = Program(seconds=0, exit_code=_KILLED)
    program = container.script.program(own, restarts)
    ends = None if program.seconds is None else after(started, span_of(program.seconds))
    if ends is not None and ends <= now:
        ended = end_container(
            container, status, exit_code=program.exit_code, at=ends, message=program.message
        )
        return ContainerUpdate(status=ended)
    probes = probed_run(container.spec, container.script)
    if probes is not None:
        return _run_probed(container, status, probes, started, now, ends)
    if (
        status["ready"]
        or container.role in (Role.INIT, Role.EPHEMERAL)
        or container.script.ready_after == NEVER
    ):
        return ContainerUpdate(status=status, due=ends)
    ready_at = after(started, span_of(container.script.ready_after))
    if ready_at <= now:
        return ContainerUpdate(status={**status, "ready": True}, due=ends)
    return ContainerUpdate(status=status, due=ready_at if ends is None else min(ready_at, ends))


def _run_probed(
    container: Container,
    status: ReadOnlyTree,
    probes: ProbedRun,
    started: datetime,
    now: datetime,
    ends: datetime | None,
) -> ContainerUpdate:
    """Advance a run with scripted probes, as long as its command runs."""
    seconds = (now - started).total_seconds()
    if probes.killed <= seconds:
        at = after(started, span_of(probes.killed))
        ended = end_container(container, status, exit_code=container.program.stop_code, at=at)
        failed = _unhealthy(container, probes.killed_by)
        message = restart_message(probes.killed_by, container.name)
        killing = EmitEvent("Normal", "Killing", message, container.field)
        return ContainerUpdate(status=ended, events=(failed, killing))
    seen = {
        "ready": serves(container) and probes.is_ready(seconds),
        "started": probes.started <= seconds,
    }
    events = (_unhealthy(container, Probe.READINESS),) if status["ready"] and not seen["ready"] else ()
    dues = [after(started, span_of(change)) for change in probes.changes if seconds < change < NEVER]
    due = min([*dues, *([ends] if ends is not None else [])], default=None)
    if seen.items() <= status.items():
        return ContainerUpdate(status=status, due=due)
    return ContainerUpdate(status={**status, **seen}, due=due, events=events)


def _unhealthy(container: Container, probe: Probe) -> EmitEvent:
    return EmitEvent("Warning", "Unhealthy", scripted_failure(container.spec, probe), container.field)


def _first_failure(container: Container) -> tuple[EmitEvent, ...]:
    """Of probes that fail from the start on; their later failures are the same event again."""
    probes = probed_run(container.spec, container.script)
    if probes is None or container.process is not None:
        return ()
    if probes.started > 0 and container.script.startup_after:
        return (_unhealthy(container, Probe.STARTUP),)
    fails = container.spec.get(Probe.READINESS.value) and probes.ready == NEVER
    return (_unhealthy(container, Probe.READINESS),) if fails else ()


def _failed_hook(container: Container, hook: str, reason: str, message: str) -> tuple[EmitEvent, ...]:
    fails = container.script.fail_post_start if hook == "postStart" else container.script.fail_pre_stop
    if not fails or container.process is not None or not (container.spec.get("lifecycle") or {}).get(hook):
        return ()
    return (EmitEvent("Warning", reason, message, container.field),)


def pre_stop_failure(container: Container) -> tuple[EmitEvent, ...]:
    """The Event of a preStop hook that is scripted to fail."""
    return _failed_hook(container, "preStop", "FailedPreStopHook", "PreStopHook failed")


def _wait(container: Container, status: ReadOnlyTree, end: ReadOnlyTree, now: datetime) -> ContainerUpdate:
    """Between two runs."""
    finished = parse_time(end["finishedAt"])
    delay = backoff(status["restartCount"], finished - parse_time(end["startedAt"]))
    if status["image"] != container.spec["image"]:
        delay = timedelta()  # what ended was another container: this one has never failed
    if after(finished, delay) <= now:
        restarts = status["restartCount"] + 1
        if container.process is not None:
            return _start_process(container, container.process, status, restarts=restarts, last=end)
        return _start(container, now, restarts=restarts, last=end)
    if "waiting" in status["state"]:
        return ContainerUpdate(status=status, due=after(finished, delay))
    pod = container.pod
    pod_ref = f"{meta.name(pod)}_{meta.namespace(pod)}({meta.uid(pod)})"
    span = format_duration(int(delay.total_seconds()) * 10**9)
    message = f"back-off {span} restarting failed container={container.name} pod={pod_ref}"
    crashed = {
        **status,
        "state": {"waiting": {"message": message, "reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": end},
    }
    event = EmitEvent(
        "Warning",
        "BackOff",
        f"Back-off restarting failed container {container.name} in pod {pod_ref}",
        container.field,
    )
    return ContainerUpdate(status=crashed, events=(event,))


def _start(
    container: Container, now: datetime, *, restarts: int, last: ReadOnlyTree | None = None
) -> ContainerUpdate:
    state = {"running": {"startedAt": format_time(now)}}
    status = running_status(container, restarts=restarts, state=state, last=last)
    probes = probed_run(container.spec, container.script)
    if probes is not None:
        status |= {"ready": serves(container) and probes.is_ready(0), "started": probes.started <= 0}
    image = container.spec["image"]
    pulled = f'Container image "{image}" already present on machine and can be accessed by the pod'
    events = (
        EmitEvent("Normal", "Pulled", pulled, container.field),
        EmitEvent("Normal", "Created", "Container created", container.field),
        EmitEvent("Normal", "Started", "Container started", container.field),
        *_first_failure(container),
        *_failed_hook(container, "postStart", "FailedPostStartHook", "PostStartHook failed"),
    )
    return ContainerUpdate(status=status, events=events)


# --- a container that is a local process


def _run_process(
    container: Container, status: ReadOnlyTree, process: ProcessState, now: datetime
) -> ContainerUpdate:
    """Update the container's status from the state of its process."""
    if process.restarts != status["restartCount"]:
        lost = end_container(
            container, status, exit_code=_KILLED, at=now, message=_LOST, reason="ContainerStatusUnknown"
        )
        return ContainerUpdate(status=lost)
    if process.exit is not None:
        return ContainerUpdate(status=end_process(container, status, now))
    if status["image"] != container.spec["image"] and not process.is_stopping:
        event = EmitEvent("Normal", "Killing", _definition_changed(container), container.field)
        return ContainerUpdate(status=status, events=(event,), actions=(StopContainer(container.name),))
    seen = {"ready": serves(container) and process.is_ready, "started": process.passed_startup}
    return ContainerUpdate(status=status if seen.items() <= status.items() else {**status, **seen})


def _start_process(
    container: Container,
    process: ProcessState,
    status: ReadOnlyTree | None,
    *,
    restarts: int,
    last: ReadOnlyTree | None = None,
) -> ContainerUpdate:
    """Start the run that is due, or report the failed attempt."""
    before = status or waiting(container, "ContainerCreating")
    if process.restarts != restarts:
        return ContainerUpdate(status=before, actions=(StartContainer(container.name, restarts),))
    if process.started is not None:
        update = _start(container, process.started, restarts=restarts, last=last)
        seen = {"ready": serves(container) and process.is_ready, "started": process.passed_startup}
        return replace(update, status={**update.status, **seen})
    if not process.waiting_reason:
        return ContainerUpdate(status=before)
    reason = {"message": process.waiting_message, "reason": process.waiting_reason}
    state = {"waiting": {field: text for field, text in reason.items() if text}}
    waits = {"state": state, **({"lastState": {"terminated": last}} if last else {})}
    return ContainerUpdate(status=before if waits.items() <= before.items() else {**before, **waits})


def end_process(container: Container, status: ReadOnlyTree, now: datetime) -> ReadOnlyTree:
    """The status of a running container after its process ended; a lost process counts as killed."""
    ended = container.process.exit if container.process is not None else None
    if ended is None:
        return end_container(
            container, status, exit_code=_KILLED, at=now, message=_LOST, reason="ContainerStatusUnknown"
        )
    return end_container(
        container, status, exit_code=ended.code, at=ended.at, message=ended.message, reason=ended.reason
    )


def _definition_changed(container: Container) -> str:
    return f"Container {container.name} definition changed, will be restarted"


def _replace(container: Container, status: ReadOnlyTree, now: datetime) -> ContainerUpdate:
    """The image was changed: the container restarts, whatever its policy."""
    old = end_container(container, status, exit_code=container.program.stop_code, at=now)
    new = _start(container, now, restarts=status["restartCount"] + 1, last=old["state"]["terminated"])
    event = EmitEvent("Normal", "Killing", _definition_changed(container), container.field)
    return ContainerUpdate(status=new.status, events=(event, *new.events))


def restart_container(container: Container, status: ReadOnlyTree, now: datetime) -> ReadOnlyTree:
    """Restart the container at once, for a resize with RestartContainer."""
    old = end_container(container, status, exit_code=container.program.stop_code, at=now)
    return _start(container, now, restarts=status["restartCount"] + 1, last=old["state"]["terminated"]).status
