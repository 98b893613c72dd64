"""Renews the Leases of many simulated nodes with few requests, where the server of this project offers that.

Real kubelets send a request for each renewal. With thousands of nodes in one process, that would be nearly all that an idle
cluster costs.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final

import msgspec

from mockube.apimachinery.lease_renewals import MAX_NAMES, PATH, Renewals
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.timestamps import format_micro_time
from mockube.client.verbs import Client
from mockube.client.wire import NoResponse
from mockube.component_base.clock import Clock

LOG = logging.getLogger(__name__)

MIN_NODES: Final = 100
"""Fewer nodes renew their Leases as kubelets do: a small cluster has the requests of a real one."""
_BATCH: Final = MAX_NAMES // 2
"""The renewals of one request."""
_PAUSE: Final = 1.0
"""The seconds between two requests, so that renewals are spread over the interval."""
_RETRY_SECONDS: Final = 300.0
"""The seconds until a server that did not serve such requests is tried again: while it has hooks, it does not serve them."""
_NOT_SERVED: Final = (403, 404, 405)
"""The codes of a server without such requests: a real kube-apiserver, or one that audits every renewal."""


class LeaseRenewals:
    """Renews the Leases that were renewed longest ago, so many at a time that each one is renewed in its interval."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        is_active: Callable[[str], bool],
        interval: Callable[[int], timedelta],
        renew: Callable[[str], None],
    ) -> None:
        """`interval` returns the time between two renewals with so many nodes; `renew` queues a single renewal."""
        self._client = client
        self._clock = clock
        self._is_active = is_active
        self._interval = interval
        self._renew = renew
        self._has_many = asyncio.Event()
        self._is_served = True
        self.renewed_at: dict[str, datetime] = {}
        """When the Lease of each node was last renewed, the longest ago first."""

    @property
    def is_on(self) -> bool:
        return self._has_many.is_set()

    def record(self, name: str, now: datetime) -> None:
        """Record a renewal."""
        self.renewed_at.pop(name, None)
        self.renewed_at[name] = now
        if self._is_served and len(self.renewed_at) > MIN_NODES:
            self._has_many.set()

    def forget(self, name: str) -> None:
        self.renewed_at.pop(name, None)

    async def run(self) -> None:
        while True:
            await self._has_many.wait()
            since = self._clock.monotonic()
            while self.is_on:
                await self._clock.renewals.sleep(_PAUSE)
                now = self._clock.monotonic()
                if await self._renew_share(now - since):
                    since = now
            await self._wait_until_served()

    async def _wait_until_served(self) -> None:
        """Try at intervals, with a request that renews nothing, so that a server that refuses it costs no renewals."""
        while not self._is_served:
            await self._clock.routine.sleep(_RETRY_SECONDS)
            with suppress(NoResponse, ApiError):
                await self._request([], self._clock.now())
                self._is_served = True

    async def _renew_share(self, seconds: float) -> bool:
        """Renew the Leases whose turn came in so many seconds; return False if the server did not respond."""
        count = math.ceil(
            len(self.renewed_at) * seconds / self._interval(len(self.renewed_at)).total_seconds()
        )
        names = list(islice(self.renewed_at, count))
        active = [name for name in names if self._is_active(name)]
        for name in set(names).difference(active):
            self.forget(name)
        try:
            for start in range(0, len(active), _BATCH):
                await self._renew_batch(active[start : start + _BATCH])
        except NoResponse as error:
            LOG.warning("Leases of nodes were not renewed: %s", error)
            return False
        except ApiError as error:
            if error.code not in _NOT_SERVED:
                LOG.warning("Leases of nodes were not renewed: %s", error)
                return False
            self._stop()
        return True

    async def _renew_batch(self, names: Sequence[str]) -> None:
        now = self._clock.now()
        response = await self._request(names, now)
        for name in names:
            if name in self.renewed_at:  # its kubelet may have become inactive meanwhile
                self.record(name, now)
        for name in response["notRenewed"]:
            self.forget(name)
            self._renew(name)

    async def _request(self, names: Sequence[str], now: datetime) -> Any:
        body = msgspec.json.encode(Renewals([*names], format_micro_time(now)))
        return await self._client.raw("POST", PATH, body=body)

    def _stop(self) -> None:
        """Renew each Lease by a request of its own, until the server serves those of many."""
        self._is_served = False
        self._has_many.clear()
        for name in self.renewed_at:
            self._renew(name)
