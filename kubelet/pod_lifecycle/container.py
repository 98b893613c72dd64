"""The lifecycle of one container: start, end and restart with back-off, by its program, script and restart policy.

Pure and stateless: the container's status contains everything that the next call needs.
"""

from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery.durations import format_duration
from mockube.apimachinery.timestamps import after, parse_time, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.behavior import KILLED, RunBehavior
from mockube.container_runtime.pod_script import NEVER
from mockube.container_runtime.start_errors import START_ERROR
from mockube.container_runtime.state import ContainerState
from mockube.kubelet.start_checks import pod_reference
from mockube.kubelet.step_effects import EmitEvent, StopContainer

from . import container_start, container_status
from .backoff import restart_delay
from .container_status import Container, ContainerUpdate, Role
from .hooks import hook_result, pre_stop_result
from .image_pulls import SYNC_PERIOD
from .probed_runs import ProbedRun
from .probing import Probe, restart_message
from .run_ends import end_of_run
from .scripted_runs import scripted_program
from .stops import reaction_of, stop_code

DEFAULT_GRACE: Final = 30.0
"""The seconds that a container has to end if its pod does not say it."""
RUN_ERROR: Final = "RunContainerError"
"""Why a container waits whose program could not be started, until a kubelet looks at its pod again."""
_LOST_MESSAGE: Final = (
    "The container could not be located when the pod was synchronized. The container used to be Running"
)


def is_over(container: Container, status: ReadOnlyTree) -> bool:
    """Return whether the container has ended and is not restarted."""
    end = container_status.last_end(status)
    return end is not None and not _restarts(container, end["exitCode"])


def has_succeeded(container: Container, status: ReadOnlyTree) -> bool:
    end = container_status.last_end(status)
    return end is not None and end["exitCode"] == 0 and is_over(container, status)


def is_initialized(container: Container, status: ReadOnlyTree, *, has_continued: bool) -> bool:
    """Return whether the next container may run: an init container has succeeded, a sidecar runs and has started.

    A sidecar does not stop the containers after it a second time: `has_continued` says that one of them has run.
    """
    if container.role is Role.SIDECAR:
        runs = container_status.running_since(status) is not None and status["started"]
        return runs or (has_continued and container_status.last_end(status) is not None)
    return has_succeeded(container, status)


def _restarts(container: Container, exit_code: int) -> bool:
    return container.restart_policy == "Always" or (
        container.restart_policy == "OnFailure" and exit_code != 0
    )


# --- the next status


def advance(container: Container, status: ReadOnlyTree | None, now: datetime) -> ContainerUpdate:
    """Return the status up to now of a container that may run, from its last status."""
    if status is None or never_ran(status):
        first = 0 if container.process is None else max(container.process.restarts, 0)
        update = container_start.start_run(container, status, now, restarts=first)
    else:
        update = _next_change(container, status, now)
    while not _is_waiting(update) and update.status is not status:
        status = update.status
        next_update = _next_change(container, status, now)
        update = replace(next_update, events=update.events + next_update.events)
    return update


def _is_waiting(update: ContainerUpdate) -> bool:
    """Return whether the container does not run until something else happens."""
    return bool(update.actions) or update.is_blocked or update.lacks_image or never_ran(update.status)


def never_ran(status: ReadOnlyTree) -> bool:
    return "running" not in status["state"] and container_status.last_end(status) is None


def _next_change(container: Container, status: ReadOnlyTree, now: datetime) -> ContainerUpdate:
    """Return the next change that is due, or else the same status and the time of its next change."""
    started = container_status.running_since(status)
    if started is not None:
        return _run(container, status, started, now)
    end = container_status.last_end(status)
    if end is None or is_over(container, status):
        return ContainerUpdate(status=status)
    return _back_off(container, status, end, now)


def _run(container: Container, status: ReadOnlyTree, started: datetime, now: datetime) -> ContainerUpdate:
    if container.process is not None:
        return _run_process(container, status, container.process, now)
    if status["image"] != container.spec["image"]:
        return _restart_with_new_image(container, status, now)
    program_without_script, restarts = container.program, status["restartCount"]
    if container.program_of_run:
        run_program = container.program_of_run(restarts=restarts, started=started)
        program_without_script = run_program or program_without_script
    hook = hook_result(container, "postStart", restarts=restarts)
    if not hook.is_success:
        program_without_script = RunBehavior(seconds=hook.seconds, exit_code=KILLED)
    program = scripted_program(container.script, program_without_script, restarts)
    end = end_of_run(container, program, started, restarts)
    ends_at = None if end is None else end.at
    if end is not None and end.at <= now:
        ended_status = container_status.end_container(
            container, status, exit_code=end.code, at=end.at, message=end.message, reason=end.reason
        )
        return ContainerUpdate(status=ended_status)
    probes = container.probed_run(restarts)
    if probes is not None:
        return _run_probed(container, status, probes, started, now, ends_at)
    if (
        status["ready"]
        or container.role in (Role.INIT, Role.EPHEMERAL)
        or container.script.ready_after == NEVER
    ):
        return ContainerUpdate(status=status, due=ends_at)
    ready_at = after(started, span_of(container.script.ready_after))
    if ready_at <= now:
        return ContainerUpdate(status={**status, "ready": True}, due=ends_at)
    return ContainerUpdate(status=status, due=ready_at if ends_at is None else min(ready_at, ends_at))


def _run_probed(
    container: Container,
    status: ReadOnlyTree,
    probes: ProbedRun,
    started: datetime,
    now: datetime,
    ends_at: datetime | None,
) -> ContainerUpdate:
    """Advance a run with scripted or delayed probes whose command has not ended."""
    seconds = (now - started).total_seconds()
    if probes.killed_at <= seconds:
        return _kill_unhealthy(container, status, probes, after(started, span_of(probes.killed_at)), now)
    readiness = {
        "ready": container_status.counts_for_readiness(container) and probes.is_ready(seconds),
        "started": probes.started_at <= seconds,
    }
    events = (
        container_start.unhealthy_events(container, Probe.READINESS, status["restartCount"], seconds)
        if status["ready"] and not readiness["ready"]
        else ()
    )
    dues = [after(started, span_of(change)) for change in probes.changes if seconds < change < NEVER]
    due = min([*dues, *([ends_at] if ends_at is not None else [])], default=None)
    if readiness.items() <= status.items():
        return ContainerUpdate(status=status, due=due)
    return ContainerUpdate(status={**status, **readiness}, due=due, events=events)


def _kill_unhealthy(
    container: Container, status: ReadOnlyTree, probes: ProbedRun, begin: datetime, now: datetime
) -> ContainerUpdate:
    """Stop a container whose probe has failed, with the grace period of the probe or of the pod."""
    restarts = status["restartCount"]
    failed = container_start.unhealthy_events(container, probes.killed_by, restarts, probes.killed_at)
    message = restart_message(probes.killed_by, container.name)
    killing_event = EmitEvent("Normal", "Killing", message, container.field)
    events = tuple(replace(event, once=f"killed {restarts}") for event in (*failed, killing_event))
    probe_spec = container.spec.get(probes.killed_by.value) or {}
    grace = probe_spec.get("terminationGracePeriodSeconds")
    if grace is None:
        grace = container.pod["spec"].get("terminationGracePeriodSeconds")
    limit = DEFAULT_GRACE if grace is None else float(grace)
    reaction = reaction_of(container, status, begin)
    ends_at = after(begin, span_of(min(reaction.seconds, limit)))
    if ends_at > now:
        return ContainerUpdate(status=status, due=ends_at, events=events)
    exit_code = reaction.exit_code if reaction.seconds <= limit else KILLED
    ended_status = container_status.end_container(container, status, exit_code=exit_code, at=ends_at)
    return ContainerUpdate(status=ended_status, events=events)


def pre_stop_failure(container: Container, status: ReadOnlyTree, now: datetime) -> tuple[EmitEvent, ...]:
    """Return the event of a preStop hook that fails."""
    if pre_stop_result(container, status, now).is_success:
        return ()
    return (EmitEvent("Warning", "FailedPreStopHook", "PreStopHook failed", container.field),)


def _back_off(
    container: Container, status: ReadOnlyTree, end: ReadOnlyTree, now: datetime
) -> ContainerUpdate:
    """Wait for the back-off between two runs, and then start the next run."""
    finished = parse_time(end["finishedAt"])
    ran = timedelta() if end["reason"] == START_ERROR else finished - parse_time(end["startedAt"])
    delay = restart_delay(status["restartCount"], ran)
    process = container.process
    is_alive = process is not None and process.is_alive
    if is_alive or status["image"] != container.spec["image"]:
        delay = timedelta()  # The container with the new image, or the run that goes on, has not failed yet.
    if after(finished, delay) <= now:
        return container_start.start_run(
            container,
            status,
            now,
            restarts=_next_run(status, process, finished),
            last=end,
            begin=after(finished, delay),
        )
    waiting = status["state"].get("waiting")
    retry_at, shown_until = after(finished, delay), after(finished, SYNC_PERIOD)
    if waiting is None and end["reason"] == START_ERROR:
        failed = _waiting_after(status, end, RUN_ERROR, end.get("message") or "")
        return ContainerUpdate(
            status=failed, due=min(shown_until, retry_at), events=(_back_off_event(container),)
        )
    shows_error = waiting is not None and waiting["reason"] == RUN_ERROR
    if waiting is not None and (not shows_error or shown_until > now):
        return ContainerUpdate(status=status, due=min(shown_until, retry_at) if shows_error else retry_at)
    pod_ref = pod_reference(container.pod)
    span = format_duration(int(delay.total_seconds()) * 10**9)
    message = f"back-off {span} restarting failed container={container.name} pod={pod_ref}"
    backed_off = _waiting_after(status, end, "CrashLoopBackOff", message)
    return ContainerUpdate(status=backed_off, events=() if shows_error else (_back_off_event(container),))


def _next_run(status: ReadOnlyTree, process: ContainerState | None, finished: datetime) -> int:
    """Return the number of the run after one that finished.

    After a rewind of the pod, its container has had later runs than its status says. The last one is the next of the status if
    it goes on, or began after that end; otherwise a new one follows it, so that no number stands for two runs.
    """
    following = int(status["restartCount"]) + 1
    if process is None or process.restarts < following:
        return following
    return process.restarts + (process.exit is not None and process.exit.at < finished)


def _waiting_after(status: ReadOnlyTree, end: ReadOnlyTree, reason: str, message: str) -> ReadOnlyTree:
    """Return the status of a container that has ended and is to run again later."""
    state = {"waiting": {"message": message, "reason": reason}}
    return {**status, "state": state, "lastState": {"terminated": end}}


def _back_off_event(container: Container) -> EmitEvent:
    message = f"Back-off restarting failed container {container.name} in pod {pod_reference(container.pod)}"
    return EmitEvent("Warning", "BackOff", message, container.field)


# --- a container that is a local process


def _run_process(
    container: Container, status: ReadOnlyTree, process: ContainerState, now: datetime
) -> ContainerUpdate:
    """Update the container's status from the state of its process."""
    if process.restarts != status["restartCount"]:
        return ContainerUpdate(status=_lost_status(container, status, now))
    if process.exit is not None:
        return ContainerUpdate(status=end_process(container, status, now))
    if status["image"] != container.spec["image"] and not process.is_stopping:
        event = EmitEvent("Normal", "Killing", _definition_changed_message(container), container.field)
        return ContainerUpdate(status=status, events=(event,), actions=(StopContainer(container.name),))
    if process.is_simulated:
        return _run_live(container, status, process, now)
    readiness = {
        "ready": container_status.counts_for_readiness(container) and process.is_ready,
        "started": process.passed_startup,
    }
    return ContainerUpdate(status=status if readiness.items() <= status.items() else {**status, **readiness})


def _run_live(
    container: Container, status: ReadOnlyTree, process: ContainerState, now: datetime
) -> ContainerUpdate:
    """Update the status of a simulated container that runs in real time by its hook and its probes."""
    restarts, started = status["restartCount"], container_status.running_since(status)
    stop = () if process.is_stopping else (StopContainer(container.name),)
    if not hook_result(container, "postStart", restarts=restarts).is_success:
        return ContainerUpdate(status=status, actions=stop)
    probes = container.probed_run(restarts)
    if probes is None or started is None or process.waiting_reason:
        is_ready = container_status.counts_for_readiness(container) and not process.waiting_reason
        readiness = {"ready": is_ready, "started": True}
        return ContainerUpdate(
            status=status if readiness.items() <= status.items() else {**status, **readiness}
        )
    update = _run_probed(container, status, probes, started, now, None)
    if "terminated" in update.status["state"]:
        return ContainerUpdate(status=status, events=update.events if stop else (), actions=stop)
    return update


def end_process(container: Container, status: ReadOnlyTree, now: datetime) -> ReadOnlyTree:
    """Return the status after the end of the container's process; a lost process counts as killed."""
    exit_state = container.process.exit if container.process is not None else None
    if exit_state is None:
        return _lost_status(container, status, now)
    return container_status.end_container(
        container,
        status,
        exit_code=exit_state.code,
        at=exit_state.at,
        message=exit_state.message,
        reason=exit_state.reason,
    )


def _lost_status(container: Container, status: ReadOnlyTree, now: datetime) -> ReadOnlyTree:
    return container_status.end_container(
        container, status, exit_code=KILLED, at=now, message=_LOST_MESSAGE, reason="ContainerStatusUnknown"
    )


def _definition_changed_message(container: Container) -> str:
    return f"Container {container.name} definition changed, will be restarted"


def _restart_with_new_image(container: Container, status: ReadOnlyTree, now: datetime) -> ContainerUpdate:
    """Restart a container whose image was changed, whatever its restart policy."""
    old = container_status.end_container(
        container, status, exit_code=stop_code(container, status, now, now), at=now
    )
    end = old["state"]["terminated"]
    new = container_start.start_run(
        container, old, now, restarts=status["restartCount"] + 1, last=end, begin=now
    )
    event = EmitEvent("Normal", "Killing", _definition_changed_message(container), container.field)
    return replace(new, events=(event, *new.events))


def restart_container(container: Container, status: ReadOnlyTree, now: datetime) -> ReadOnlyTree:
    """Return the status after an immediate restart, for a resize with RestartContainer."""
    old = container_status.end_container(
        container, status, exit_code=stop_code(container, status, now, now), at=now
    )
    end = old["state"]["terminated"]
    return container_start.start_container(
        container, now, restarts=status["restartCount"] + 1, last=end
    ).status
