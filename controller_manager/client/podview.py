"""A pod as controllers see it: the fields that they read of every pod, computed once when it enters a cache.

Pure. Fields that are read rarely are in the whole object.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.memoize import memoize
from mockube.apimachinery.timestamps import after, parse_time, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.resources import Key

SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
PENDING: Final = "Pending"
RUNNING: Final = "Running"

_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""The time of a true condition without a lastTransitionTime; with minReadySeconds upstream never counts such a pod as available."""


class PodView(Struct, frozen=True, kw_only=True, eq=False):
    object: ReadOnlyTree
    key: Key
    uid: str
    resource_version: str
    labels: Mapping[str, str]
    owner_uid: str
    """Of its controller; empty for an orphan."""
    node: str
    """Where it was bound; empty before."""
    phase: str
    deleting: bool
    ready_since: datetime | None
    """When its condition Ready became true; None while it is not."""

    @classmethod
    def of(cls, pod: ReadOnlyTree) -> "PodView":
        controller = meta.controller_of(pod)
        ready = conditions.get(pod, "Ready")
        is_ready = ready is not None and ready["status"] == "True"
        return cls(
            object=pod,
            key=Key.of(pod),
            uid=meta.uid(pod),
            resource_version=meta.resource_version(pod),
            labels=meta.labels(pod),
            owner_uid=controller["uid"] if controller else "",
            node=(pod.get("spec") or {}).get("nodeName") or "",
            phase=(pod.get("status") or {}).get("phase") or PENDING,
            deleting=meta.is_deleting(pod),
            ready_since=_transition_time(ready) if is_ready and ready is not None else None,
        )

    @property
    def is_ready(self) -> bool:
        return self.ready_since is not None

    @property
    def is_terminal(self) -> bool:
        return self.phase in (SUCCEEDED, FAILED)

    @property
    def is_active(self) -> bool:
        """It counts as a replica: neither ended nor about to go."""
        return not self.deleting and not self.is_terminal

    def is_available(self, min_ready_seconds: int, now: datetime) -> bool:
        """Ready for long enough."""
        if self.ready_since is None or min_ready_seconds == 0:
            return self.ready_since is not None
        return (
            self.ready_since is not _LONG_AGO and after(self.ready_since, span_of(min_ready_seconds)) <= now
        )


def _transition_time(condition: ReadOnlyTree) -> datetime:
    text = condition.get("lastTransitionTime")
    return _time(text) if text else _LONG_AGO


_time = memoize(4096, max_length=40)(parse_time)
"""Cached: each change of a pod repeats the same time, and many pods become ready in one second."""
