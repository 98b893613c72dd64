"""The commands of kubectl that wait: wait, rollout status; and those that make a workload change: scale, rollout restart."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.durations import DurationError, parse_duration
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.simulated.shell.options import ProgramOptions
from mockube.container_runtime.simulated.shell.process import Process, Run, Sleep, UnknownProgram, write_text

from .client import ApiClient, ServerError, Work
from .connection import KubectlError
from .output import find_values, reference
from .selection import SelectedObjects, fetch, select, selects_some

_POLL_SECONDS: Final = 0.5
_DEFAULT_TIMEOUT: Final = 30.0
_WEEK_SECONDS: Final = 7 * 86400.0
_RESTARTED_AT: Final = "kubectl.kubernetes.io/restartedAt"
Predicate = Callable[[ReadOnlyTree], bool]


def timeout_of(options: ProgramOptions, default: float) -> float:
    text = options.get("timeout")
    if not text:
        return default
    try:
        seconds = parse_duration(text) / 10**9 if not text.lstrip("-").isdecimal() else float(text)
    except DurationError:
        raise KubectlError(f'error: invalid argument "{text}" for "--timeout" flag') from None
    return _WEEK_SECONDS if seconds < 0 else seconds


def wait(process: Process, client: ApiClient, options: ProgramOptions, words: Sequence[str]) -> Run:
    goal = options.get("for")
    remaining = timeout_of(options, _DEFAULT_TIMEOUT)
    is_deletion = goal.lower() == "delete"
    predicate = (lambda _: False) if is_deletion else _predicate(goal)
    selections = yield from select(process, client, options, words)
    for selection in selections:
        if not selects_some(options, selection):
            raise KubectlError(
                "error: resource(s) were provided, but no name, label selector, or --all flag specified"
            )
        objects = yield from fetch(client, options, selection, ignores_missing=is_deletion)
        if not objects and not is_deletion:
            raise KubectlError("error: no matching resources found")
        for tree in objects:
            remaining = yield from _wait_for(client, selection, tree, predicate, remaining)
            met = "deleted" if is_deletion else "condition met"
            yield write_text(f"{reference(selection.resource, meta.name(tree))} {met}\n")
    return 0


def _wait_for(
    client: ApiClient, selection: SelectedObjects, tree: ReadOnlyTree, predicate: Predicate, seconds: float
) -> Work[float]:
    """Wait until an object meets the condition or is gone; return the seconds that are left."""
    path = selection.resource.path(meta.namespace(tree), meta.name(tree))
    remaining = seconds
    while True:
        try:
            current = yield from client.send("GET", path)
        except ServerError as error:
            if error.reason != "NotFound":
                raise
            if predicate({}):
                raise
            return remaining
        if predicate(current):
            return remaining
        if remaining <= 0:
            name = f"{selection.resource.plural_title}/{meta.name(tree)}"
            raise KubectlError(f"error: timed out waiting for the condition on {name}")
        yield Sleep(min(_POLL_SECONDS, remaining))
        remaining -= _POLL_SECONDS


def _predicate(goal: str) -> Predicate:
    kind, equals, text = goal.partition("=")
    if kind == "condition" and equals:
        name, _, value = text.partition("=")
        return lambda tree: _has_condition(tree, name, value or "True")
    if kind == "jsonpath" and equals:
        path, separator, value = text.rpartition("=")
        path = path if separator and path.rstrip().endswith("}") else text
        expected = value if path is not text else None
        return lambda tree: _has_value(
            tree, path.strip().strip("'").removeprefix("{").removesuffix("}"), expected
        )
    if goal == "create":
        return bool
    raise KubectlError(f'error: unrecognized condition: "{goal}"')


def _has_condition(tree: ReadOnlyTree, name: str, value: str) -> bool:
    status = tree.get("status") or {}
    observed = status.get("observedGeneration")
    if observed is not None and observed < meta.generation(tree):
        return False
    return any(
        condition.get("type", "").lower() == name.lower()
        and str(condition.get("status", "")).lower() == value.lower()
        for condition in status.get("conditions") or ()
    )


def _has_value(tree: ReadOnlyTree, path: str, expected: str | None) -> bool:
    values = find_values(path, tree)
    if expected is None:
        return bool(values)
    text = expected.strip("'\"")
    return bool(values) and all(str(value).lower() == text.lower() for value in values)


def rollout(process: Process, client: ApiClient, options: ProgramOptions, words: Sequence[str]) -> Run:
    if words[:1] not in (["status"], ["restart"]):
        raise UnknownProgram(f"kubectl rollout {' '.join(words[:1])}".rstrip())
    selections = yield from select(process, client, options, words[1:])
    for selection in selections:
        objects = yield from fetch(client, options, selection)
        for tree in objects:
            if words[0] == "restart":
                yield from _restart(process, client, selection, tree)
            else:
                yield from _wait_for_rollout(client, options, selection, tree)
    return 0


def _restart(process: Process, client: ApiClient, selection: SelectedObjects, tree: ReadOnlyTree) -> Run:
    annotations = {_RESTARTED_AT: format_time(process.host.now_running())}
    body = {"spec": {"template": {"metadata": {"annotations": annotations}}}}
    path = selection.resource.path(meta.namespace(tree), meta.name(tree))
    yield from client.send(
        "PATCH",
        path,
        query={"fieldManager": "kubectl-rollout"},
        body=body,
        content_type="application/strategic-merge-patch+json",
    )
    yield write_text(f"{reference(selection.resource, meta.name(tree))} restarted\n")
    return 0


def _wait_for_rollout(
    client: ApiClient, options: ProgramOptions, selection: SelectedObjects, tree: ReadOnlyTree
) -> Run:
    resource, name = selection.resource, meta.name(tree)
    if resource.plural not in _PROGRESS:
        raise KubectlError(f"error: no status viewer has been implemented for {resource.plural}")
    remaining, last = timeout_of(options, _WEEK_SECONDS), ""
    path = resource.path(meta.namespace(tree), name)
    while True:
        current = yield from client.send("GET", path)
        text = _PROGRESS[resource.plural](current)
        if text != last and text:
            yield write_text(
                f"Waiting for {resource.singular} {name!r} rollout to finish: {text}\n".replace("'", '"')
            )
        if not text:
            yield write_text(f'{resource.singular} "{name}" successfully rolled out\n')
            return 0
        last = text
        if remaining <= 0:
            raise KubectlError("error: timed out waiting for the condition")
        yield Sleep(min(_POLL_SECONDS, remaining))
        remaining -= _POLL_SECONDS


def deployment_progress(tree: ReadOnlyTree) -> str:
    """Return what a Deployment waits for; "" if its rollout is complete."""
    spec, status = tree["spec"], tree.get("status") or {}
    replicas, updated = spec.get("replicas") or 0, status.get("updatedReplicas") or 0
    total, available = status.get("replicas") or 0, status.get("availableReplicas") or 0
    if (status.get("observedGeneration") or 0) < meta.generation(tree):
        return "waiting for spec update to be observed..."
    if updated < replicas:
        return f"{updated} out of {replicas} new replicas have been updated..."
    if total > updated:
        return f"{total - updated} old replicas are pending termination..."
    return f"{available} of {updated} updated replicas are available..." if available < updated else ""


def _stateful_set_progress(tree: ReadOnlyTree) -> str:
    spec, status = tree["spec"], tree.get("status") or {}
    replicas, ready = spec.get("replicas") or 0, status.get("readyReplicas") or 0
    if (status.get("observedGeneration") or 0) < meta.generation(tree):
        return "waiting for spec update to be observed..."
    if ready < replicas:
        return f"{replicas - ready} pods are not ready..."
    is_old = status.get("updateRevision") != status.get("currentRevision")
    return "waiting for rolling update to complete" if is_old else ""


def _daemon_set_progress(tree: ReadOnlyTree) -> str:
    status = tree.get("status") or {}
    desired = status.get("desiredNumberScheduled") or 0
    updated, available = status.get("updatedNumberScheduled") or 0, status.get("numberAvailable") or 0
    if (status.get("observedGeneration") or 0) < meta.generation(tree):
        return "waiting for spec update to be observed..."
    if updated < desired:
        return f"{updated} out of {desired} new pods have been updated..."
    return f"{available} of {desired} updated pods are available..." if available < desired else ""


_PROGRESS: Final[dict[str, Callable[[ReadOnlyTree], str]]] = {
    "deployments": deployment_progress,
    "statefulsets": _stateful_set_progress,
    "daemonsets": _daemon_set_progress,
}


def scale(process: Process, client: ApiClient, options: ProgramOptions, words: Sequence[str]) -> Run:
    replicas = options.get("replicas")
    if not replicas.isdecimal():
        raise KubectlError('error: required flag(s) "replicas" not set')
    selections = yield from select(process, client, options, words)
    for selection in selections:
        objects = yield from fetch(client, options, selection)
        for tree in objects:
            path = selection.resource.path(meta.namespace(tree), meta.name(tree))
            body: dict[str, Any] = {"spec": {"replicas": int(replicas)}}
            yield from client.send(
                "PATCH", f"{path}/scale", body=body, content_type="application/merge-patch+json"
            )
            yield write_text(f"{reference(selection.resource, meta.name(tree))} scaled\n")
    return 0
