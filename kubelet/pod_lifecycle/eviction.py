"""The status of a pod that a kubelet evicts from its node.

Pure. Upstream: pkg/kubelet/eviction.
"""

from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery.tree import ReadOnlyTree

EVICTED: Final = "Evicted"
GRACE_SECONDS: Final = 1.0
"""The time that an evicted pod has to end: immediateEvictionGracePeriodSeconds."""


class Eviction(Struct, frozen=True):
    at: datetime
    message: str


def evicted_status(status: ReadOnlyTree, eviction: Eviction) -> dict[str, Any]:
    """Return the status of a stopped pod with the reason of its eviction."""
    return {**status, "reason": EVICTED, "message": eviction.message}
