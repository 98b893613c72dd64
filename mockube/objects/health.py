"""Whether an object is healthy, and why a pod is not ready."""

from collections.abc import Iterator
from typing import Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.tree import ReadOnlyTree

FINISHED: Final = "Succeeded"
_CONTAINER_STATUSES: Final = ("initContainerStatuses", "containerStatuses")
_STARTED_REASON: Final = "PodInitializing"
"""The reason of containers that wait for the init containers."""


def is_healthy(tree: ReadOnlyTree) -> bool:
    """Return whether there is nothing to report about an object: it is ready, or has the pods that it should have."""
    status, spec = tree.get("status") or {}, tree.get("spec") or {}
    match meta.kind(tree):
        case "Pod":
            return status.get("phase") == FINISHED or conditions.is_true(tree, "Ready")
        case "Node":
            return conditions.is_true(tree, "Ready")
        case "PersistentVolumeClaim":
            return bool(status.get("phase") == "Bound")
        case "Job":
            return conditions.is_true(tree, "Complete")
        case _:
            return _has_ready_pods(spec, status)


def _has_ready_pods(spec: ReadOnlyTree, status: ReadOnlyTree) -> bool:
    desired = spec.get("replicas", status.get("desiredNumberScheduled"))
    ready = status.get("readyReplicas", status.get("numberReady", 0))
    return desired is not None and bool(desired == ready)


def pod_problem(pod: ReadOnlyTree) -> str:
    """Return why a pod is not ready: its phase, and the reason of a container, of a condition or of its failure."""
    status = pod.get("status") or {}
    phase = "Terminating" if meta.metadata(pod).get("deletionTimestamp") else status.get("phase", "Pending")
    reason = next(_container_problems(status), "") or _reason(status) or _condition_problem(pod)
    return f"{phase}: {reason}" if reason else phase


def format_condition(condition: ReadOnlyTree) -> str:
    """Return a condition in a line, as `Ready=False (ContainersNotReady): containers with unready status: [web]`."""
    reason = f" ({condition['reason']})" if condition.get("reason") else ""
    message = f": {condition['message']}" if condition.get("message") else ""
    return f"{condition.get('type', '')}={condition.get('status', '')}{reason}{message}"


def _container_problems(status: ReadOnlyTree) -> Iterator[str]:
    for field in _CONTAINER_STATUSES:
        for container in status.get(field) or ():
            state = container.get("state") or {}
            waiting, terminated = state.get("waiting"), state.get("terminated")
            if waiting and waiting.get("reason") != _STARTED_REASON:
                yield f"container {container['name']} waits: {_reason(waiting)}{_last_exit(container)}"
            elif terminated and terminated.get("exitCode"):
                yield f"container {container['name']} exited with {terminated['exitCode']}: {_reason(terminated)}"


def _last_exit(container: ReadOnlyTree) -> str:
    terminated = (container.get("lastState") or {}).get("terminated")
    return f" (last exit code {terminated.get('exitCode')})" if terminated else ""


def _reason(status: ReadOnlyTree) -> str:
    """Return the reason and the message of a pod's or a container's status."""
    return ": ".join(text for text in (status.get("reason"), status.get("message")) if text)


def _condition_problem(pod: ReadOnlyTree) -> str:
    """Return the first condition that is not True, in the order of a pod's life."""
    for name in ("PodScheduled", "Initialized", "ContainersReady", "Ready"):
        condition = conditions.get(pod, name)
        if condition is not None and condition.get("status") != "True":
            return format_condition(condition)
    return ""
