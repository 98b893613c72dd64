"""ClockAdvance: how far the clock of a cluster is advanced, posted to the subresource `advance` of the Clock.

It ends after some seconds, when the cluster is idle, or when an object has a condition. `advance_followed` advances a clock that
another process follows.
"""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, TypeAlias

import orjson

from mockube.apimachinery import errors, status
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.status import BadRequest
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import RequestContext
from mockube.component_base.clock import ClusterClock

from .access import is_allowed
from .kind import API_VERSION, VERSION
from .participants import MIN_STEP_SECONDS, Participants

ADVANCE_KIND: Final = "ClockAdvance"
MAX_ADVANCE_SECONDS: Final = 10 * 365 * 86_400.0
UNTIL_SECONDS: Final = 3_600.0
"""How far an advance goes at most that ends with the cluster's being idle, or with a condition."""
STEP_SECONDS: Final = 5.0
"""The steps of an advance that another process follows: shorter than the time in which a leader has to renew its Lease."""
QUIET_SECONDS: Final = 0.03
"""How long no request arrives when the other process has done what is due."""
MAX_QUIET_WAIT: Final = 2.0
_SPEC: Final = ROOT.child("spec")
_UNTIL: Final = _SPEC.child("until")
_CONDITION: Final = _UNTIL.child("condition")
_TEXTS: Final = ("resource", "namespace", "name", "type", "status")
_REQUIRED: Final = ("resource", "name", "type")

AdvanceBy: TypeAlias = Callable[[float, Callable[[], bool]], Awaitable[None]]
"""Advances the clock by some seconds, or until the function returns True after a step."""


def read_advance(data: bytes) -> Tree:
    """Return the body of an advance."""
    try:
        tree = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body must be a {ADVANCE_KIND} in JSON: {error}") from error
    if not isinstance(tree, dict):
        raise BadRequest(f"the body must be a {ADVANCE_KIND}, not {type(tree).__name__}")
    kind, version = tree.get("kind", ADVANCE_KIND), tree.get("apiVersion", API_VERSION)
    if (kind, version) != (ADVANCE_KIND, API_VERSION):
        raise BadRequest(f"the body must be a {ADVANCE_KIND} of {VERSION}, not {kind} of {version}")
    return tree


def check_advance(spec: Any, cluster: Registry) -> Iterator[FieldError]:
    if not isinstance(spec, dict) or not ("seconds" in spec or "until" in spec):
        yield errors.required(_SPEC.child("seconds"))
        return
    yield from _unknown(spec, _SPEC, ("seconds", "until"))
    if "seconds" in spec:
        yield from _check_seconds(spec["seconds"])
    if "until" in spec:
        yield from _check_until(spec["until"], cluster)


def _unknown(tree: ReadOnlyTree, path: Path, names: tuple[str, ...]) -> Iterator[FieldError]:
    for name in sorted({*tree} - {*names}):
        yield errors.forbidden(path.child(name), f"unknown field: the fields are {', '.join(names)}")


def _check_seconds(seconds: Any) -> Iterator[FieldError]:
    path = _SPEC.child("seconds")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        yield errors.type_invalid(path, seconds, "must be a number")
    elif not MIN_STEP_SECONDS <= seconds <= MAX_ADVANCE_SECONDS:
        problem = f"must be from {MIN_STEP_SECONDS} to {MAX_ADVANCE_SECONDS:.0f}"
        yield errors.invalid(path, seconds, problem)


def _check_until(until: Any, cluster: Registry) -> Iterator[FieldError]:
    if not isinstance(until, dict):
        yield errors.type_invalid(_UNTIL, until, "must be an object")
        return
    yield from _unknown(until, _UNTIL, ("idle", "condition"))
    if len(until) != 1:
        yield errors.required(_UNTIL, "exactly one of idle and condition is needed")
    elif "idle" in until and until["idle"] is not True:
        yield errors.invalid(_UNTIL.child("idle"), until["idle"], "must be true")
    elif "condition" in until:
        yield from _check_condition(until["condition"], cluster)


def _check_condition(condition: Any, cluster: Registry) -> Iterator[FieldError]:
    if not isinstance(condition, dict):
        yield errors.type_invalid(_CONDITION, condition, "must be an object")
        return
    yield from _unknown(condition, _CONDITION, _TEXTS)
    for name in _TEXTS:
        if not isinstance(condition.get(name, ""), str):
            yield errors.type_invalid(_CONDITION.child(name), condition[name], "must be a text")
        elif name in _REQUIRED and not condition.get(name):
            yield errors.required(_CONDITION.child(name))
    resource = condition.get("resource")
    if isinstance(resource, str) and resource:
        yield from _check_resource(resource, condition, cluster)


def _check_resource(resource: str, condition: ReadOnlyTree, cluster: Registry) -> Iterator[FieldError]:
    row = _find_row(resource, cluster)
    if row is None:
        problem = "is not served: a resource is named with its group, such as deployments.apps"
        yield errors.invalid(_CONDITION.child("resource"), resource, problem)
    elif row.namespaced and not condition.get("namespace"):
        yield errors.required(_CONDITION.child("namespace"), f"{row.kind} is namespaced")


def _find_row(resource: str, cluster: Registry) -> Resource | None:
    name, _, group = resource.partition(".")
    row = cluster.rows.get(GroupResource(group, name))
    return None if row is None or row.virtual else row


async def condition_of(
    condition: ReadOnlyTree, cluster: Registry, context: RequestContext
) -> Callable[[], bool]:
    """Return whether an object has a condition, for a user who may read the object; raise Forbidden for another one."""
    row = _find_row(condition["resource"], cluster)
    assert row is not None, "it is checked"
    namespace = condition.get("namespace", "") if row.namespaced else ""
    name, status_value = condition["name"], condition.get("status", "True")
    if not await is_allowed(cluster, context.user, "get", row.group_resource, namespace, name):
        problem = f"an advance until a condition of {row.group_resource} needs the verb get for the object"
        raise status.forbidden(row.group_resource, name, problem)

    def is_fulfilled() -> bool:
        stored = cluster.find_cached(row.group_resource, namespace, name)
        return stored is not None and _status_of(stored.tree(), condition["type"]) == status_value

    return is_fulfilled


def _status_of(tree: ReadOnlyTree, type_: str) -> Any:
    """Return the status of a condition; None without one. In a custom object, the fields may have other types."""
    of_object = tree.get("status")
    conditions = of_object.get("conditions") if isinstance(of_object, dict) else None
    found = conditions if isinstance(conditions, list) else ()
    return next(
        (each.get("status") for each in found if isinstance(each, dict) and each.get("type") == type_), None
    )


async def advance_followed(
    clock: ClusterClock,
    seconds: float,
    arrived: Callable[[], int],
    is_busy: Callable[[], bool],
    *,
    participants: Participants,
    is_over: Callable[[], bool],
) -> None:
    """Advance a clock that another process follows: in steps, after each of which the other one does what is due.

    `arrived` counts the requests to the server. The other process is taken for idle when none arrives for a moment, and `participants`
    are idle by their objects. If it `is_over` after a step, the rest is left out.
    """

    async def wait_quiet() -> None:
        real = clock.real
        began = quiet_from = real.monotonic()
        count = arrived()
        while (now := real.monotonic()) - quiet_from < QUIET_SECONDS and now - began < MAX_QUIET_WAIT:
            await real.sleep(QUIET_SECONDS / 6)
            if is_busy() or arrived() != count:
                count, quiet_from = arrived(), real.monotonic()

    with clock.standing_still():
        while seconds > 0 and not is_over():
            step = participants.limit(min(STEP_SECONDS, seconds), clock.now())
            clock.advance(step)
            seconds -= step
            await participants.settle(clock, wait_quiet)
