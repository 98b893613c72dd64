"""The report of a cluster whose test has failed: its events, its last requests, its warnings and errors."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

from mockube.apimachinery import meta
from mockube.cluster import Cluster
from mockube.embedded.recorder import CallsDropped

LAST: Final = 20
"""Lines of each."""

LinesOf: TypeAlias = Callable[[Cluster], Iterable[str]]


def account(cluster: Cluster) -> Sequence[tuple[str, str]]:
    """Return titles and texts, without empty ones. Injected faults are stopped first, or it might never end."""
    sections = [(title, _section_text(lines_of, cluster)) for title, lines_of in _SECTIONS]
    return [(f"mockube: {title}", text) for title, text in sections if text]


def _section_text(lines_of: LinesOf, cluster: Cluster) -> str:
    try:
        lines = [*lines_of(cluster)]
    except Exception as error:  # noqa: BLE001 - a test has failed, and is reported in any case
        return str(error)
    more = [f"... and {len(lines) - LAST} before"] if len(lines) > LAST else []
    return "\n".join((*more, *lines[-LAST:]))


def _calls(cluster: Cluster) -> Iterable[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CallsDropped)
        return map(str, cluster.calls())


def _events(cluster: Cluster) -> Iterable[str]:
    cluster.stop_faults()
    return map(_event, _by_time(cluster.list("Event", namespace="")))


def _complaints(cluster: Cluster) -> Iterable[str]:
    return cluster.complaints


_SECTIONS: Final[Sequence[tuple[str, LinesOf]]] = (
    ("calls", _calls),  # before another one is made
    ("events", _events),
    ("warnings and errors", _complaints),
)


def _by_time(events: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    return sorted(events, key=lambda event: int(meta.resource_version(event)))


def _event(event: dict[str, Any]) -> str:
    about = event.get("involvedObject") or {}
    subject = f"{about.get('kind', '').lower()}/{about.get('name', '')}"
    return f"{event.get('type', '')} {event.get('reason', '')} {subject}: {event.get('message', '')}"
