"""Conditions and Events as evidence, and whether a controller has seen an object."""

from collections.abc import Iterable, Sequence

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.tree import ReadOnlyTree

from .explanation import Evidence, Explanation, unknown
from .facts import Facts, event_time


def condition_evidence(condition: ReadOnlyTree) -> Evidence:
    return Evidence(
        text=condition.get("message") or condition.get("reason") or "no message",
        source=f"condition {condition.get('type')}={condition.get('status')}",
        time=condition.get("lastTransitionTime") or "",
    )


def true_condition(obj: ReadOnlyTree, name: str) -> ReadOnlyTree | None:
    """Return a condition if it is True."""
    found = conditions.get(obj, name)
    return found if found is not None and found.get("status") == "True" else None


def find_condition(obj: ReadOnlyTree, name: str) -> Sequence[Evidence]:
    """Return a condition as evidence, if the object has it."""
    found = conditions.get(obj, name)
    return () if found is None else (condition_evidence(found),)


def event_evidence(event: ReadOnlyTree) -> Evidence:
    count = (event.get("series") or {}).get("count") or event.get("count") or 1
    times = f", {count} times" if count > 1 else ""
    return Evidence(
        text=event.get("message") or "", source=f"Event {event.get('reason')}{times}", time=event_time(event)
    )


def find_events(
    obj: ReadOnlyTree, facts: Facts, reasons: Iterable[str], *, text: str = "", limit: int = 3
) -> Sequence[Evidence]:
    """Return the newest Events of some reasons about an object, whose messages have a text."""
    names = frozenset(reasons)
    found = [
        event_evidence(event)
        for event in facts.events_of(obj)
        if event.get("reason") in names and text in (event.get("message") or "")
    ]
    return found[:limit]


def unobserved(obj: ReadOnlyTree) -> Explanation | None:
    """Explain an object whose controller has not seen its last change."""
    observed = (obj.get("status") or {}).get("observedGeneration") or 0
    if observed >= meta.generation(obj):
        return None
    return unknown(
        f"its controller has not observed generation {meta.generation(obj)} yet: it does not run, or it is busy",
        Evidence(text=f"status.observedGeneration is {observed}", source="status.observedGeneration"),
    )
