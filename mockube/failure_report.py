"""The report about the cluster of a failed test: its events, last requests, warnings and errors."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

from mockube.apimachinery import meta
from mockube.cluster import Cluster
from mockube.embedded.recorder import CallsDropped

MAX_LINES: Final = 20
"""The number of last lines of each section."""

LinesOf: TypeAlias = Callable[[Cluster], Iterable[str]]


def failure_sections(cluster: Cluster) -> Sequence[tuple[str, str]]:
    """Return titles and texts of the sections that are not empty.

    Injected faults are stopped before events are listed, because they could block that request.
    """
    sections = [(title, _section_text(lines_of, cluster)) for title, lines_of in _SECTIONS]
    return [(f"mockube: {title}", text) for title, text in sections if text]


def _section_text(lines_of: LinesOf, cluster: Cluster) -> str:
    try:
        lines = [*lines_of(cluster)]
    except Exception as error:  # noqa: BLE001 - the report of the failed test must not fail
        return str(error)
    omitted = [f"... and {len(lines) - MAX_LINES} before"] if len(lines) > MAX_LINES else []
    return "\n".join((*omitted, *lines[-MAX_LINES:]))


def _calls(cluster: Cluster) -> Iterable[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CallsDropped)
        return map(str, cluster.calls())


def _events(cluster: Cluster) -> Iterable[str]:
    cluster.stop_faults()
    return map(
        _event,
        sorted(cluster.list("Event", namespace=""), key=lambda event: int(meta.resource_version(event))),
    )


def _log_lines(cluster: Cluster) -> Iterable[str]:
    return cluster.complaints


_SECTIONS: Final[Sequence[tuple[str, LinesOf]]] = (
    ("calls", _calls),  # first, because the other sections send requests
    ("events", _events),
    ("warnings and errors", _log_lines),
)


def _event(event: dict[str, Any]) -> str:
    regarding = event.get("involvedObject") or {}
    subject = f"{regarding.get('kind', '').lower()}/{regarding.get('name', '')}"
    return f"{event.get('type', '')} {event.get('reason', '')} {subject}: {event.get('message', '')}"
