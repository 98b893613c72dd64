"""What is told of a cluster when a test with it has failed: its events, what it was asked last, what it complains of."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

from mockube.apimachinery import meta
from mockube.cluster import Cluster
from mockube.embedded.recorder import CallsForgotten

LAST: Final = 20
"""Lines of each."""

Tell: TypeAlias = Callable[[Cluster], Iterable[str]]


def account(cluster: Cluster) -> Sequence[tuple[str, str]]:
    """Titles and texts; nothing of what there is nothing to tell. Faults that still strike are stopped, or it might never end."""
    told = [(title, _told(tell, cluster)) for title, tell in _SECTIONS]
    return [(f"mockube: {title}", text) for title, text in told if text]


def _told(tell: Tell, cluster: Cluster) -> str:
    try:
        lines = [*tell(cluster)]
    except Exception as error:  # noqa: BLE001 - a test has failed, and is reported whatever there is to tell beside
        return str(error)
    more = [f"... and {len(lines) - LAST} before"] if len(lines) > LAST else []
    return "\n".join((*more, *lines[-LAST:]))


def _calls(cluster: Cluster) -> Iterable[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CallsForgotten)
        return map(str, cluster.calls())


def _events(cluster: Cluster) -> Iterable[str]:
    cluster.stop_faults()
    return map(_event, _by_time(cluster.list("Event", namespace="")))


def _complaints(cluster: Cluster) -> Iterable[str]:
    return cluster.complaints


_SECTIONS: Final[Sequence[tuple[str, Tell]]] = (
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
