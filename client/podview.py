"""The cached view of a pod: the fields that controllers read of every pod, computed when it enters a cache. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.memoize import memoize
from mockube.apimachinery.timestamps import after, parse_time, span_of
from mockube.apimachinery.tree import ReadOnlyTree

from .resources import Key

SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
PENDING: Final = "Pending"
RUNNING: Final = "Running"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""The time of a condition without lastTransitionTime; with minReadySeconds such a pod is never available, as upstream."""


class PodView(Struct, frozen=True, kw_only=True, eq=False):
    """A pod, and the fields of it that controllers read most."""

    object: ReadOnlyTree
    key: Key
    uid: str
    resource_version: str
    labels: Mapping[str, str]
    owner_uid: str
    """The uid of its controller; empty for an orphan."""
    node: str
    """The node to which it is bound; empty before."""
    phase: str
    deleting: bool
    ready_since: datetime | None
    """The time at which its condition Ready became true; None if it is not true."""
    ready_changed: datetime | None
    """The time at which its condition Ready changed; None if that is unknown."""

    @classmethod
    def of(cls, pod: ReadOnlyTree) -> "PodView":
        controller = meta.controller_of(pod)
        ready = conditions.get(pod, "Ready")
        is_ready = ready is not None and ready["status"] == "True"
        changed = None if ready is None else _transition_time(ready)
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
            ready_since=(changed or _EPOCH) if is_ready else None,
            ready_changed=changed,
        )

    @property
    def is_ready(self) -> bool:
        return self.ready_since is not None

    @property
    def is_terminal(self) -> bool:
        return self.phase in (SUCCEEDED, FAILED)

    @property
    def is_active(self) -> bool:
        """Whether the pod counts as a replica: it is neither terminal nor being deleted."""
        return not self.deleting and not self.is_terminal

    def is_available(self, min_ready_seconds: int, now: datetime) -> bool:
        """Return whether the pod has been ready for `min_ready_seconds`."""
        if self.ready_since is None or min_ready_seconds == 0:
            return self.ready_since is not None
        return self.ready_since is not _EPOCH and after(self.ready_since, span_of(min_ready_seconds)) <= now


def _transition_time(condition: ReadOnlyTree) -> datetime | None:
    text = condition.get("lastTransitionTime")
    return _time(text) if text else None


_time = memoize(4096, max_length=40)(parse_time)
"""Parse a time, with a cache: each change of a pod repeats its times, and many pods become ready in the same second."""
