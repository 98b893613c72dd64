"""The postStart and preStop hooks of simulated containers: whether they succeed, and how long they take. Pure.

The command of a hook is interpreted, or runs in real time if it uses the network, API objects, or files that others write. One whose
result is unknown succeeds at once, as does an HTTP request to a port that may answer; one to a port on which nothing listens fails.
"""

from datetime import datetime

from mockube.apimachinery import conditions
from mockube.apimachinery.timestamps import after, parse_time, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.port_probe import PortAnswer, PortProbe

from .container_status import Container, running_since
from .observations import HOOK_SUCCESS, Hook, HookResult
from .pod_conditions import CONDITION_READY_TO_START
from .port_probes import request_fails
from .probing import UnresolvedPort


def hook_result(container: Container, hook: Hook, *, restarts: int, seconds: float = 0.0) -> HookResult:
    """Return the result of a hook that begins at a time of the run after `restarts` restarts.

    The hooks of a process are really run.
    """
    handler = (container.spec.get("lifecycle") or {}).get(hook)
    if not handler or container.is_process:
        return HOOK_SUCCESS
    if container.script.fail_post_start if hook == "postStart" else container.script.fail_pre_stop:
        return HookResult(is_success=False)
    if "sleep" in handler:
        return HookResult(seconds=float(handler["sleep"].get("seconds") or 0))
    if (observed := container.observed_run.hook(hook, restarts)) is not None:
        return observed
    if "exec" in handler:
        timeline = container.context.predictions.handler_timeline(
            container.pod,
            container.spec,
            container.script,
            handler["exec"].get("command") or (),
            restarts=restarts,
        )
        result = [result for time, result in timeline if time <= seconds][-1]
        return HookResult(is_success=not result.exit_code, seconds=result.seconds) if result else HOOK_SUCCESS
    if "httpGet" not in handler:
        return HookResult(is_success=False)  # A kubelet does not run hooks of the fourth kind, tcpSocket.
    return HookResult(is_success=not _request_fails(container, handler["httpGet"], seconds))


def _request_fails(container: Container, action: ReadOnlyTree, seconds: float) -> bool:
    predictions, pod, script = container.context.predictions, container.pod, container.script

    def ask(request: PortProbe) -> PortAnswer:
        return predictions.port_answer(pod, request, script, seconds=seconds)

    try:
        return request_fails(pod, container.spec, action, container.context.pod_ip, ask)
    except UnresolvedPort:
        return True


def first_start(container: Container, now: datetime) -> datetime:
    """Return when the first run of a container has begun: when the pod was ready for it; `now` if that happens now."""
    status = container.pod.get("status") or {}
    if "startTime" not in status:
        return now
    times = [after(parse_time(status["startTime"]), span_of(container.script.start_after))]
    sandbox = conditions.get(container.pod, CONDITION_READY_TO_START)
    if sandbox is not None:
        times.append(parse_time(sandbox["lastTransitionTime"]) if sandbox["status"] == "True" else now)
    init_statuses = {init["name"]: init for init in status.get("initContainerStatuses") or ()}
    for init in container.pod["spec"].get("initContainers") or ():
        state = init_statuses.get(init["name"], {}).get("state") or {}
        if end := state.get("terminated"):
            times.append(parse_time(end["finishedAt"]))
        elif init.get("restartPolicy") != "Always":
            return now
        elif running := state.get("running"):
            times.append(parse_time(running["startedAt"]))
    return max(times)


def pre_stop_result(container: Container, status: ReadOnlyTree, begin: datetime) -> HookResult:
    """Return the result of the preStop hook of a running container that is stopped at a time."""
    started = running_since(status)
    if started is None:
        return HOOK_SUCCESS
    seconds = max((begin - started).total_seconds(), 0.0)
    return hook_result(container, "preStop", restarts=status["restartCount"], seconds=seconds)
