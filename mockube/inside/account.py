"""What is told of a cluster when a test with it has failed: its events, what it was asked last, what it complains of."""

from collections.abc import Sequence
from typing import Any, Final

from apimachinery import meta
from mockube.cluster import Cluster
from mockube.inside.handle import NotStarted

LAST: Final = 20
"""Of each."""


def account(cluster: Cluster) -> Sequence[tuple[str, str]]:
    """Titles and texts; nothing of what there is nothing to tell."""
    try:
        calls = cluster.calls()  # before this makes one more
        told = (
            ("mockube: events", _lines(map(_event, _by_time(cluster.list("Event", namespace=""))))),
            ("mockube: calls", _lines(map(str, calls))),
            ("mockube: warnings and errors", _lines(cluster.complaints)),
        )
    except NotStarted as error:
        return [("mockube", str(error))]
    return [(title, text) for title, text in told if text]


def _by_time(events: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    return sorted(events, key=lambda event: int(meta.resource_version(event)))


def _event(event: dict[str, Any]) -> str:
    about = event.get("involvedObject") or {}
    subject = f"{about.get('kind', '').lower()}/{about.get('name', '')}"
    return f"{event.get('type', '')} {event.get('reason', '')} {subject}: {event.get('message', '')}"


def _lines(lines: Any) -> str:
    lines = [*lines]
    more = [f"... and {len(lines) - LAST} before"] if len(lines) > LAST else []
    return "\n".join((*more, *lines[-LAST:]))
