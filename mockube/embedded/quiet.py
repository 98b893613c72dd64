"""How long a cluster has been quiet: nobody writes to it, except what renews Leases and the heartbeats of nodes."""

from typing import Final

from mockube.apiserver.request.hooks import Proceed
from mockube.apiserver.request.request import Request
from mockube.apiserver.request.response import Response
from mockube.apiserver.request_info import RequestInfo
from mockube.component_base.clock import Clock

MIN_QUIET_SECONDS: Final = 60.0
"""The time after a write in which whatever checks the cluster at intervals has noticed it."""
_READS: Final = frozenset({"get", "list", "watch", "head", "options"})
_RENEWALS: Final = frozenset({("leases", ""), ("nodes", "status"), ("serviceaccounts", "token")})
"""The resources and subresources that kubelets write at intervals, and tokens, which nothing stores."""
_REVIEWS: Final = ("authentication.k8s.io", "authorization.k8s.io")
"""The groups of resources that are created but not stored."""


class QuietTime:
    """A hook that notes the time of the last write."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._written_at = clock.monotonic()

    @property
    def is_over(self) -> bool:
        """Whether the last write was so long ago that nothing follows from it any more, except at the time of a timer."""
        return self._clock.monotonic() - self._written_at >= self._seconds

    def restart(self) -> None:
        """Count from now on, because a caller may have changed anything."""
        self._written_at = self._clock.monotonic()

    async def observe(self, request: Request, proceed: Proceed) -> Response:
        if _is_change(request.info):
            self.restart()
        return await proceed(request)


def _is_change(info: RequestInfo) -> bool:
    is_renewal = (info.resource, info.subresource) in _RENEWALS or info.group in _REVIEWS
    return info.verb not in _READS and not is_renewal
