"""Hold a Lease that several managers compete for, and work only while it is held."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import randomness
from mockube.apimachinery.clock import Clock
from mockube.apimachinery.randomness import Random
from mockube.apimachinery.status import ApiError, NotFound
from mockube.apimachinery.timestamps import format_micro_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.client import Client
from mockube.controller_manager.client.kinds import LEASES
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.client.wire import NoAnswer
from mockube.controller_manager.supervision import cancel_and_wait, start, timeout

LOG = logging.getLogger(__name__)

JITTER: Final = 1.2
"""How much longer than its period a wait for the next try may be, so that candidates do not all try at once."""
RELEASED_SECONDS: Final = 1
"""The duration of a released lease."""
TOLERATED_SECONDS: Final = 20.0
"""How long after the end of its lease a leader may still work before its health check fails, as upstream's."""


class Timings(Struct, frozen=True, kw_only=True):
    """Seconds."""

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0


class Candidate(Struct, frozen=True, kw_only=True):
    """The identity of a candidate, and its lease."""

    lease: Key
    identity: str
    """Unique to this process."""
    timings: Timings = Timings()


class LeaseLost(Exception):
    """Another process may be the leader now."""


class Elector:
    def __init__(self, candidate: Candidate, client: Client, *, clock: Clock, random: Random) -> None:
        """The client is for the lease alone: a request for it must not wait behind others."""
        self._candidate = candidate
        self._timings = candidate.timings
        self._client = client
        self._clock = clock
        self._random = random
        self.lease: ReadOnlyTree | None = None
        """As it was last seen."""
        self._observed_at = 0.0
        """When it was seen to change."""
        self._renewed: float | None = None
        """When this process last sent a successful write of its lease; None while it does not hold it."""
        self._reported_problem = ""
        """The last logged reason why the lease was not acquired."""
        self._expires_at: float | None = None
        """When other candidates may acquire the lease; None while nothing is done that needs it."""

    @property
    def identity(self) -> str:
        return self._candidate.identity

    @property
    def is_leading(self) -> bool:
        return self._renewed is not None

    def may_write(self) -> bool:
        """Whether the lease is still valid; called before every write."""
        return self._renewed is not None and self._seconds_left() > 0

    def problem(self) -> str:
        """Return why the process is unhealthy: it works without the lease, so neither it nor another is the leader."""
        if self._expires_at is None or self._clock.monotonic() <= self._expires_at + TOLERATED_SECONDS:
            return ""
        return f"failed election to renew leadership on lease {self._candidate.lease.name}"

    def end_work(self) -> None:
        """Note that nothing that needs the lease runs any more."""
        self._expires_at = None

    async def acquire(self) -> None:
        """Until the lease is held."""
        LOG.info("Trying to acquire the lease %s as %s", self._candidate.lease, self._candidate.identity)
        while not await self._try():
            pause = self._timings.retry_period * (1 + JITTER * randomness.fraction(self._random))
            await self._clock.sleep(pause)
        LOG.info("Acquired the lease %s", self._candidate.lease)

    async def keep(self) -> LeaseLost:
        """Renew the lease until it is lost, which is no failure of the process."""
        try:
            while self.is_leading:
                await self._clock.sleep(self._timings.retry_period)
                async with timeout(self._clock, self._seconds_left()):
                    while not await self._try() and self.is_leading:
                        await self._clock.sleep(self._timings.retry_period)
        except TimeoutError:
            self._renewed = None
        return LeaseLost(f"the lease {self._candidate.lease} was not renewed in time")

    async def release(self) -> None:
        """Release the lease, so that the next candidate need not wait until it expires."""
        if not self.is_leading or self.lease is None:
            return
        self._renewed = None
        now = format_micro_time(self._clock.now())
        spec = {
            "holderIdentity": "",
            "leaseDurationSeconds": RELEASED_SECONDS,
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": self._transitions(),
        }
        try:
            async with timeout(self._clock, self._timings.renew_deadline):
                await self._client.update(LEASES, {**self.lease, "spec": spec})
        except (ApiError, NoAnswer, TimeoutError) as error:
            LOG.warning("The lease %s was not released: %s", self._candidate.lease, error)

    def _seconds_left(self) -> float:
        """Seconds until the deadline."""
        assert self._renewed is not None
        return self._renewed + self._timings.renew_deadline - self._clock.monotonic()

    async def _try(self) -> bool:
        """Acquire or renew; a request that takes too long is given up."""
        try:
            async with timeout(self._clock, self._timings.renew_deadline / 2):
                return await self._acquire_or_renew()
        except (ApiError, NoAnswer, TimeoutError) as error:
            self._report(str(error))
            return False

    async def _acquire_or_renew(self) -> bool:
        requested_at = self._clock.monotonic()
        lease = await self._find()
        if lease is not None and self._is_held_by_another():
            self._renewed = None
            self._report(f"{self._spec()['holderIdentity']} holds it")
            return False
        body = {**(lease or self._new_lease()), "spec": self._claim()}
        write = self._client.create if lease is None else self._client.update
        self._observe(await write(LEASES, body))
        self._renewed, self._reported_problem = requested_at, ""
        self._expires_at = requested_at + self._timings.lease_duration
        return True

    def _report(self, problem: str) -> None:
        """Log a problem once: the lease is tried every few seconds, perhaps for days."""
        if problem != self._reported_problem:
            LOG.info("Waiting for the lease %s: %s", self._candidate.lease, problem)
        self._reported_problem = problem

    async def _find(self) -> ReadOnlyTree | None:
        try:
            lease = await self._client.get(LEASES, self._candidate.lease)
        except NotFound:
            return None
        self._observe(lease)
        return lease

    def _observe(self, lease: ReadOnlyTree) -> None:
        if self.lease is None or lease.get("spec") != self.lease.get("spec"):
            self._observed_at = self._clock.monotonic()
        self.lease = lease

    def _is_held_by_another(self) -> bool:
        spec = self._spec()
        holder = spec.get("holderIdentity") or ""
        expires = self._observed_at + (spec.get("leaseDurationSeconds") or 0)
        return holder not in ("", self._candidate.identity) and self._clock.monotonic() < expires

    def _claim(self) -> dict[str, Any]:
        now = format_micro_time(self._clock.now())
        spec = self._spec()
        is_ours = spec.get("holderIdentity") == self._candidate.identity
        return {
            "holderIdentity": self._candidate.identity,
            "leaseDurationSeconds": int(self._timings.lease_duration),
            "acquireTime": spec["acquireTime"] if is_ours else now,
            "renewTime": now,
            "leaseTransitions": self._transitions() + (0 if is_ours or not spec else 1),
        }

    def _spec(self) -> ReadOnlyTree:
        return (self.lease or {}).get("spec") or {}

    def _transitions(self) -> int:
        return int(self._spec().get("leaseTransitions") or 0)

    def _new_lease(self) -> dict[str, Any]:
        self.lease = None
        return {
            "metadata": {"namespace": self._candidate.lease.namespace, "name": self._candidate.lease.name}
        }


Work = Callable[[], Coroutine[None, None, None]]


async def lead(
    elector: Elector,
    work: Work,
    *,
    clock: Clock,
    shutdown_timeout: float,
    on_failure: Callable[[str, Exception], None] = lambda _, __: None,
) -> None:
    """Once the lease is held, work until cancelled or until the work ends; then release it.

    Raises `LeaseLost`, and what the work raises. When the lease is lost the work is cancelled, because another process
    may have begun: the fence before the transport blocks its writes. `on_failure` is called when the renewal or the work
    fails, before the other of them is cancelled.
    """
    await elector.acquire()
    keeping = start("lease", elector.keep(), on_failure=on_failure)
    working = start("work", work(), on_failure=on_failure)
    try:
        await asyncio.wait({keeping, working}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        try:
            await _finish(working, clock=clock, shutdown_timeout=0.0 if keeping.done() else shutdown_timeout)
        finally:
            await cancel_and_wait([keeping])
            elector.end_work()
        await elector.release()
    if not working.cancelled():
        working.result()
    if not keeping.cancelled():
        raise keeping.result()


async def run_without_lease(work: Work, *, clock: Clock, shutdown_timeout: float) -> None:
    """Run without leader election until cancelled. Raises the errors of the work."""
    working = start("work", work())
    try:
        await asyncio.wait({working})
    finally:
        await _finish(working, clock=clock, shutdown_timeout=shutdown_timeout)
    working.result()


async def _finish(working: "asyncio.Task[None]", *, clock: Clock, shutdown_timeout: float) -> None:
    """Cancel the work and let it finish within so many seconds; a second cancellation interrupts it."""
    working.cancel()
    try:
        async with timeout(clock, shutdown_timeout):
            await asyncio.wait({working})
    except TimeoutError:
        LOG.warning(
            "Reconciliations in progress did not finish within %g seconds and are cancelled", shutdown_timeout
        )
    finally:
        if not working.done():
            await cancel_and_wait([working])
