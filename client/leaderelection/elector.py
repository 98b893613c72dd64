"""Acquire and renew a Lease for which several managers compete, and run work only while it is held."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import randomness
from mockube.apimachinery.randomness import Random
from mockube.apimachinery.status import ApiError, Conflict, NotFound
from mockube.apimachinery.timestamps import format_micro_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.kinds import LEASES
from mockube.client.resources import Key
from mockube.client.verbs import Client
from mockube.client.wire import NoResponse
from mockube.component_base.clock import Clock
from mockube.component_base.supervision import cancel_and_wait, start, timeout

LOG = logging.getLogger(__name__)

JITTER: Final = 1.2
"""The jitter factor of the retry period, so that candidates do not all try at once; upstream's."""
RELEASED_SECONDS: Final = 1
"""The duration of a released lease."""
MAX_ATTEMPT_SECONDS: Final = 60.0
"""The maximum timeout of an attempt to renew a lease after the deadline; each is twice as long as the one before."""
WAIT_INTERVAL: Final = 0.2
"""The seconds after which a write that waits for the renewal looks at the lease again."""
HEALTH_CHECK_TOLERANCE: Final = 20.0
"""The seconds after the expiry of its lease at which the health check of a leader that still works fails; upstream's."""


class Timings(Struct, frozen=True, kw_only=True):
    """The durations of leader election, in seconds."""

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0


class LeaderElectionConfig(Struct, frozen=True, kw_only=True):
    """The identity of a candidate, and its lease."""

    lease: Key
    identity: str
    """A name that is unique to this process."""
    timings: Timings = Timings()
    is_sole: bool = False
    """Whether no other candidate is expected: work continues without writes after the deadline, until another holds the lease."""


class LeaseLost(Exception):
    """Another process may be the leader now."""


class Elector:
    """Acquires, renews and releases the lease of one candidate; client-go's LeaderElector."""

    def __init__(
        self, candidate: LeaderElectionConfig, client: Client, *, clock: Clock, random: Random
    ) -> None:
        """Create an elector. Its client is used for the lease only, so that its requests do not wait behind others."""
        self._candidate = candidate
        self._timings = candidate.timings
        self._client = client
        self._clock = clock
        self._random = random
        self.lease: ReadOnlyTree | None = None
        """The lease as it was last read or written."""
        self._observed_at = 0.0
        """The time at which its spec was last seen to change."""
        self._renewed_at: float | None = None
        """The time at which the last successful write of the lease was sent; None while it is not held."""
        self._reported_problem = ""
        """The reason, as last logged, why the lease was not acquired."""
        self._expires_at: float | None = None
        """The time from which others may acquire the lease; None while no work runs that needs it."""

    @property
    def identity(self) -> str:
        return self._candidate.identity

    @property
    def is_leading(self) -> bool:
        return self._renewed_at is not None

    def may_write(self) -> bool:
        """Return whether the lease is still valid. It is called before each write."""
        renewed_at = self._renewed_at  # another thread may set it to None
        return (
            renewed_at is not None and renewed_at + self._timings.renew_deadline - self._clock.monotonic() > 0
        )

    async def wait_until_renewed(self) -> bool:
        """Wait while the lease may still be renewed, because no other candidate is expected; return whether it is valid."""
        while self._candidate.is_sole and self.is_leading and not self.may_write():
            await self._clock.sleep(WAIT_INTERVAL)
        return self.may_write()

    def problem(self) -> str:
        """Return an error message if work still runs long after the lease has expired; else ""."""
        if self._expires_at is None or self._clock.monotonic() <= self._expires_at + HEALTH_CHECK_TOLERANCE:
            return ""
        return f"failed election to renew leadership on lease {self._candidate.lease.name}"

    def note_work_ended(self) -> None:
        """Note that nothing that needs the lease runs any more."""
        self._expires_at = None

    async def acquire(self) -> None:
        """Retry until the lease is held."""
        LOG.info("Trying to acquire the lease %s as %s", self._candidate.lease, self._candidate.identity)
        while not await self._try_acquire_or_renew(self._attempt_seconds):
            delay = self._timings.retry_period * (1 + JITTER * randomness.fraction(self._random))
            await self._clock.routine.sleep(delay)
        LOG.info("Acquired the lease %s", self._candidate.lease)

    async def renew(self) -> LeaseLost:
        """Renew the lease until it is lost, and return the error: a loss is no failure of the process.

        At the deadline the lease is not lost yet: the process, or the server, may have had no time for the renewal. Nobody else
        has led if this candidate can still renew it, so that the work and its caches remain valid; nothing is written meanwhile.
        """
        while self.is_leading:
            await self._clock.leadership.sleep(self._timings.retry_period)
            if not (await self._renew_in_time() or await self._renew_late()):
                self._renewed_at = None
        return LeaseLost(f"the lease {self._candidate.lease} was not renewed in time")

    async def _renew_in_time(self) -> bool:
        """Renew the lease before the deadline; return whether it is still held."""
        seconds = self._seconds_until_deadline()
        if seconds <= 0:  # the process was suspended
            return False
        try:
            async with timeout(self._clock, seconds):
                while not await self._try_acquire_or_renew(self._attempt_seconds) and self.is_leading:
                    await self._clock.sleep(self._timings.retry_period)
        except TimeoutError:
            return False
        return True

    async def _renew_late(self) -> bool:
        """Renew the lease after the deadline; return whether it is still held."""
        if not self.is_leading:
            return False
        if not self._candidate.is_sole:
            return await self._try_acquire_or_renew(self._seconds_until_others_acquire())
        seconds, delay = self._attempt_seconds, self._timings.retry_period
        if await self._try_acquire_or_renew(seconds):  # the time has passed at once
            return True
        LOG.warning(
            "The lease %s was not renewed in time. Writes wait until it is renewed", self._candidate.lease
        )
        while not await self._try_acquire_or_renew(seconds) and self.is_leading:
            await self._clock.sleep(delay * (1 + JITTER * randomness.fraction(self._random)))
            # Attempts that are given up cost a starved machine more than those that it finishes.
            seconds = min(2 * seconds, MAX_ATTEMPT_SECONDS)
        if self.is_leading:
            LOG.info("The lease %s is renewed again", self._candidate.lease)
        return self.is_leading

    @property
    def _attempt_seconds(self) -> float:
        return self._timings.renew_deadline / 2

    def _seconds_until_others_acquire(self) -> float:
        """Return a timeout that ends before the lease expires; if it has expired, as after a suspension, that of an attempt."""
        assert self._expires_at is not None
        seconds = self._expires_at - self._timings.retry_period - self._clock.monotonic()
        return min(seconds, self._attempt_seconds) if seconds > 0 else self._attempt_seconds

    async def release(self) -> None:
        """Release the lease, so that the next candidate need not wait until it expires."""
        if not self.is_leading or self.lease is None:
            return
        self._renewed_at = None
        try:
            async with timeout(self._clock, self._timings.renew_deadline):
                lease: ReadOnlyTree | None = self.lease
                while lease is not None and self._is_ours() and not await self._try_release(lease):
                    lease = (
                        await self._get_lease()
                    )  # a renewal was cancelled after the server had received it
        except (ApiError, NoResponse, TimeoutError) as error:
            LOG.warning("The lease %s was not released: %s", self._candidate.lease, error)

    async def _try_release(self, lease: ReadOnlyTree) -> bool:
        """Release the lease; return False if it has changed."""
        now = format_micro_time(self._clock.now())
        spec = {
            "holderIdentity": "",
            "leaseDurationSeconds": RELEASED_SECONDS,
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": self._transitions(),
        }
        try:
            await self._client.update(LEASES, {**lease, "spec": spec})
        except Conflict:
            return False
        return True

    def _seconds_until_deadline(self) -> float:
        """Return the seconds until the renew deadline."""
        assert self._renewed_at is not None
        return self._renewed_at + self._timings.renew_deadline - self._clock.monotonic()

    async def _try_acquire_or_renew(self, seconds: float) -> bool:
        """Try to acquire or renew the lease, within some seconds. Return whether it is held."""
        try:
            async with timeout(self._clock, seconds):
                return await self._renew_unchanged() or await self._acquire_or_renew()
        except (ApiError, NoResponse, TimeoutError) as error:
            self._report(str(error))
            return False

    async def _renew_unchanged(self) -> bool:
        """Renew the lease by a single request, as upstream; return False if it is not held, or was changed by another client."""
        if not self.is_leading or self.lease is None:
            return False
        requested_at = self._clock.monotonic()
        try:
            lease = await self._client.update(LEASES, {**self.lease, "spec": self._leader_spec()})
        except (Conflict, NotFound):
            return False
        self._note_renewal(lease, requested_at)
        return True

    async def _acquire_or_renew(self) -> bool:
        requested_at = self._clock.monotonic()
        lease = await self._get_lease()
        if lease is not None and (self._is_held_by_another() or self._was_taken()):
            self._renewed_at = None
            self._report(f"{self._spec().get('holderIdentity') or 'nobody'} holds it")
            return False
        body = {**(lease or self._new_lease()), "spec": self._leader_spec()}
        write = self._client.create if lease is None else self._client.update
        self._note_renewal(await write(LEASES, body), requested_at)
        return True

    def _note_renewal(self, lease: ReadOnlyTree, requested_at: float) -> None:
        self._observe(lease)
        self._renewed_at, self._reported_problem = requested_at, ""
        self._expires_at = requested_at + self._timings.lease_duration

    def _was_taken(self) -> bool:
        """Return whether another candidate has held the lease since this one leads, also if it has released it."""
        return self.is_leading and not self._is_ours()

    def _is_ours(self) -> bool:
        return bool(self._spec().get("holderIdentity") == self._candidate.identity)

    def _report(self, problem: str) -> None:
        """Log a problem unless it is the last one that was logged: there may be a try every few seconds for days."""
        if problem != self._reported_problem:
            LOG.info("Waiting for the lease %s: %s", self._candidate.lease, problem)
        self._reported_problem = problem

    async def _get_lease(self) -> ReadOnlyTree | None:
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

    def _leader_spec(self) -> dict[str, Any]:
        now = format_micro_time(self._clock.now())
        spec = self._spec()
        is_ours = self._is_ours()
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
    releases: bool = True,
) -> None:
    """Acquire the lease, run the work until it ends or this is cancelled, then release the lease.

    Without `releases` others wait until it expires, as after the end of a program that does not release its lease.

    Raises `LeaseLost` after the loss of the lease, and errors of the work. A loss cancels the work, because another process
    may lead now; until the work has ended, `FencedTransport` blocks its writes. `on_failure` is called when the renewal or
    the work fails, before the other one is cancelled.
    """
    await elector.acquire()
    renewal_task = start("lease", elector.renew(), on_failure=on_failure)
    work_task = start("work", work(), on_failure=on_failure)
    try:
        await asyncio.wait({renewal_task, work_task}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        try:
            await _finish(
                work_task, clock=clock, shutdown_timeout=0.0 if renewal_task.done() else shutdown_timeout
            )
        finally:
            await cancel_and_wait([renewal_task])
            elector.note_work_ended()
        if releases:
            await elector.release()
    if not work_task.cancelled():
        work_task.result()
    if not renewal_task.cancelled():
        raise renewal_task.result()


async def run_without_lease(work: Work, *, clock: Clock, shutdown_timeout: float) -> None:
    """Run the work without leader election until cancelled. Raises the errors of the work."""
    work_task = start("work", work())
    try:
        await asyncio.wait({work_task})
    finally:
        await _finish(work_task, clock=clock, shutdown_timeout=shutdown_timeout)
    work_task.result()


async def _finish(work_task: "asyncio.Task[None]", *, clock: Clock, shutdown_timeout: float) -> None:
    """Cancel the work, and cancel it again if it has not ended after `shutdown_timeout` seconds or this is cancelled."""
    work_task.cancel()
    try:
        async with timeout(clock, shutdown_timeout):
            await asyncio.wait({work_task})
    except TimeoutError:
        LOG.warning(
            "Reconciliations in progress did not finish within %g seconds and are cancelled", shutdown_timeout
        )
    finally:
        if not work_task.done():
            await cancel_and_wait([work_task])
