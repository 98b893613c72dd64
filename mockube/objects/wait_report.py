"""The message of a failed wait: what was found instead, the pods that are not ready, and the events of what is not healthy."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import orjson
from msgspec import Struct

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.discovery import DiscoveredResource
from mockube.client.kinds import EVENTS
from mockube.client.resources import Key, Resource
from mockube.client.verbs import Client, Parsed
from mockube.client.wire import NoResponse
from mockube.component_base.clock import RealClock
from mockube.component_base.printable import printable
from mockube.component_base.suggestions import did_you_mean
from mockube.component_base.supervision import timeout

from . import health, missing
from .conditions import WaitCondition

REPORT_SECONDS: Final = 5.0
"""The time for the requests of a message."""
MAX_PODS: Final = 5
MAX_EVENTS: Final = 10
MAX_OBJECTS: Final = 2_000
"""The number of objects of a resource that are searched for owned ones."""
STILL_RUNNING: Final = "the condition, a function, was still running: it is not interrupted"
_SHOWN_FIELDS: Final = frozenset({"conditions", "observedGeneration"})
_NAME: Final = re.compile(r"[a-z0-9-]+")
_GENERATED: Final = re.compile(r"-[a-z0-9]{5}\Z")
"""The end of a name that a controller generated."""
MAX_STATUS: Final = 600
"""The number of characters of a status."""
OWNED: Final = frozenset({"pods", "jobs", "persistentvolumeclaims"})
"""Resources that may be owned, beside those that can be scaled."""


class WaitState(Struct):
    """What a wait is for, and what it found last."""

    resource: Resource[ReadOnlyTree]
    key: Key
    condition: WaitCondition
    seconds: float
    last: Parsed | None = None
    """The object as it was last seen; None if it never existed."""
    was_deleted: bool = False
    problem: str | None = ""
    """What the condition found last instead; None if it was met."""


async def describe(client: Client, resources: Sequence[DiscoveredResource], wait: WaitState) -> str:
    """Return the message of a wait that failed."""
    lines = [_headline(wait)]
    try:
        async with timeout(RealClock(), REPORT_SECONDS):
            if wait.last is None:
                lines[0] += f": {await missing.describe_others(client, wait.resource, wait.key)}"
            elif not wait.was_deleted:
                lines += _state(wait, wait.last)
                lines += await _describe_owned(client, resources, wait, wait.last)
    except (TimeoutError, ApiError, NoResponse) as error:
        lines.append(f"no more is known: {error}")
    return "\n".join(map(printable, lines))


def describe_remaining(kind: str, key: Key, seconds: float, last: Parsed) -> str:
    """Return the message of a wait for a deletion that failed."""
    message = f"{_name(kind, key)} still exists after {seconds:g} s"
    metadata = meta.metadata(last)
    if not metadata.get("deletionTimestamp"):
        return f"{message}, and nothing has deleted it"
    finalizers = metadata.get("finalizers") or ()
    if finalizers:
        return f"{message}: it is being deleted, with the finalizers {', '.join(finalizers)}"
    return message


def _headline(wait: WaitState) -> str:
    subject = _name(wait.resource.kind, wait.key)
    if wait.last is None:
        return f"{subject} was not created within {wait.seconds:g} s"
    if wait.was_deleted:
        return f"{subject} was deleted, and not created again within {wait.seconds:g} s"
    return f"{subject} {wait.condition.text} within {wait.seconds:g} s"


def _name(kind: str, key: Key) -> str:
    return f"{kind} {key.name} in namespace {key.namespace}" if key.namespace else f"{kind} {key.name}"


def _state(wait: WaitState, tree: Parsed) -> Iterator[str]:
    """Yield the conditions of an object, or its phase or status if the condition is none of them."""
    if wait.problem:
        yield f"  {wait.problem}"
    status = tree.get("status") or {}
    observed = status.get("observedGeneration", meta.generation(tree))
    if observed < meta.generation(tree):
        yield f"  its status is of generation {observed}, and the object of generation {meta.generation(tree)}"
    present = conditions.of(tree)
    condition_type = wait.condition.type
    types = [condition.get("type", "") for condition in present]
    if condition_type and condition_type.lower() not in map(str.lower, types):
        yield f"  it has no condition {condition_type}{did_you_mean(condition_type, types)}"
    for condition in present:
        if condition.get("status") != "True" or condition.get("message"):
            yield f"  {health.format_condition(condition)}"
    if wait.condition.is_predicate or (condition_type and not present):
        rest = {name: value for name, value in status.items() if name not in _SHOWN_FIELDS}
        yield f"  status: {_shorten(orjson.dumps(rest).decode())}"


async def _describe_owned(
    client: Client, resources: Sequence[DiscoveredResource], wait: WaitState, root: Parsed
) -> list[str]:
    """Return lines about the pods that are not ready, and the events of the object and of what it owns."""
    owned = await _owned_objects(client, resources, root) if wait.key.namespace else []
    unhealthy = [tree for tree in (root, *owned) if not health.is_healthy(tree)]
    pods = [tree for tree in unhealthy if meta.kind(tree) == "Pod"]
    lines = [*_section("pods that are not ready", map(_pod_line, pods), MAX_PODS)]
    if "template" in (root.get("spec") or {}) and not any(meta.kind(tree) == "Pod" for tree in owned):
        lines.append("it has no pods")
    namespace = wait.key.namespace or "default"
    events = (await client.list(EVENTS, namespace, limit=MAX_OBJECTS)).items
    if root not in unhealthy:
        lines += _section("warnings", event_lines(filter(_is_warning, events), [root]), MAX_EVENTS)
    return [*lines, *_section("events", event_lines(events, unhealthy), MAX_EVENTS)]


def _may_be_owned(found: DiscoveredResource) -> bool:
    """Return whether objects of a resource are workloads, pods or claims, which other objects own."""
    is_reported = found.resource.plural in OWNED or "scale" in found.subresources
    return is_reported and found.resource.namespaced and "list" in found.verbs


async def _owned_objects(
    client: Client, resources: Sequence[DiscoveredResource], root: Parsed
) -> list[Parsed]:
    """Return the objects that an object owns, directly or by others."""
    owned_by: dict[str, list[Parsed]] = {}
    for found in filter(_may_be_owned, resources):
        with suppress(ApiError):  # the user may have no permission for all of them
            for tree in (await client.list(found.resource, meta.namespace(root), limit=MAX_OBJECTS)).items:
                for owner in meta.metadata(tree).get("ownerReferences") or ():
                    owned_by.setdefault(owner["uid"], []).append(tree)
    owned: dict[str, Parsed] = {}
    remaining = [meta.uid(root)]
    while remaining:
        for tree in owned_by.get(remaining.pop(), ()):
            if meta.uid(tree) not in owned:
                owned[meta.uid(tree)] = tree
                remaining.append(meta.uid(tree))
    return [*owned.values()]


def event_lines(events: Iterable[Parsed], objects: Iterable[ReadOnlyTree]) -> list[str]:
    """Return the events of some objects as lines, the oldest first; events that differ in generated names only are one line."""
    subjects = {(meta.kind(tree), meta.name(tree)) for tree in objects}
    similar_events: dict[tuple[str, ...], list[Parsed]] = {}
    for event in sorted(events, key=_revision):
        regarding = event.get("involvedObject") or {}
        if (regarding.get("kind"), regarding.get("name")) in subjects:
            similar_events.setdefault(_event_group(event), []).append(event)
    return [format_event(*group) for group in similar_events.values()]


def format_event(event: Mapping[str, Any], *similar_events: Mapping[str, Any]) -> str:
    """Return an event in a line, with the number of similar ones."""
    regarding = event.get("involvedObject") or {}
    subject = f"{regarding.get('kind', '').lower()}/{regarding.get('name', '')}"
    count = f" and {len(similar_events)} more" if similar_events else ""
    return f"{event.get('type', '')} {event.get('reason', '')} {subject}{count}: {event.get('message', '')}"


def _event_group(event: Mapping[str, Any]) -> tuple[str, ...]:
    kind = (event.get("involvedObject") or {}).get("kind", "")
    message = _NAME.sub(_without_generated_name, event.get("message", ""))
    return event.get("type", ""), event.get("reason", ""), kind, message


def _without_generated_name(name: re.Match[str]) -> str:
    return "" if _GENERATED.search(name[0]) else name[0]


def _is_warning(event: Mapping[str, Any]) -> bool:
    return event.get("type") == "Warning"


def _revision(event: Mapping[str, Any]) -> int:
    return int(meta.resource_version(event))


def _section(title: str, lines: Iterable[str], maximum: int) -> Iterator[str]:
    """Yield a title and the last lines below it; nothing if there are none."""
    all_lines = [*lines]
    if all_lines:
        omitted = len(all_lines) - maximum
        yield f"{title}:" if omitted <= 0 else f"{title} ({omitted} more are not shown):"
        yield from (f"  {line}" for line in all_lines[-maximum:])


def _pod_line(pod: ReadOnlyTree) -> str:
    return f"{meta.name(pod)} is {health.pod_problem(pod)}"


def _shorten(text: str) -> str:
    return f"{text[:MAX_STATUS]}..." if len(text) > MAX_STATUS else text
