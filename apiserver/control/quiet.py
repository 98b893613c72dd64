"""How long a cluster has been quiet: nobody writes to it, except what renews Leases and the heartbeats of nodes."""

from typing import Final

from mockube.apimachinery import lease_renewals
from mockube.apimachinery.groups import CONTROL
from mockube.apiserver.request_info import RequestInfo
from mockube.component_base.clock import Clock

MIN_QUIET_SECONDS: Final = 60.0
"""The time after a write in which whatever checks the cluster at intervals has noticed it."""
_READS: Final = frozenset({"get", "list", "watch", "head", "options"})
_RENEWALS: Final = frozenset({("leases", ""), ("nodes", "status"), ("serviceaccounts", "token")})
"""The resources and subresources that kubelets write at intervals, and tokens, which nothing stores."""
_NOT_STORED: Final = ("authentication.k8s.io", "authorization.k8s.io", CONTROL)
"""The groups of resources that are not in the store of the cluster."""


class QuietTime:
    """The time since the last write. The recorder of requests notes each request."""

    def __init__(self, clock: Clock, seconds: float = MIN_QUIET_SECONDS) -> None:
        self._clock = clock
        self.seconds = seconds
        """How long nobody writes to a quiet cluster."""
        self._written_at = self._restarted_at = clock.monotonic()

    @property
    def is_over(self) -> bool:
        """Whether the last write was so long ago that nothing follows from it any more, except at the time of a timer."""
        return self.is_idle and self._clock.monotonic() - self._restarted_at >= self.seconds

    @property
    def is_idle(self) -> bool:
        """Whether the last write by a request was so long ago; `restart` does not count."""
        return self._clock.monotonic() - self._written_at >= self.seconds

    def restart(self) -> None:
        """Count from now on, because a caller may have changed anything without a request."""
        self._restarted_at = self._clock.monotonic()

    def note(self, info: RequestInfo) -> None:
        """Note a request that has arrived."""
        if info.verb not in _READS and _is_change(info):
            self._written_at = self._clock.monotonic()


def _is_change(info: RequestInfo) -> bool:
    is_renewal = (info.resource, info.subresource) in _RENEWALS or info.path == lease_renewals.PATH
    return not is_renewal and info.group not in _NOT_STORED
