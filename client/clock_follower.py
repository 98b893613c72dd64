"""Let the clock of this process follow that of the cluster, which the API server owns.

The server streams a line at the beginning and after each change. Between the lines both clocks run by the dates of
their machines, so that a lost connection changes nothing. Another server has no such stream: its time is real.
"""

import asyncio
import logging
from typing import Final

import msgspec

from mockube.apimachinery.clock_readings import PATH, ClockReading
from mockube.apimachinery.status import ApiError
from mockube.component_base.clock import MAX_SPEED, ClusterClock

from .cache.reflector import split_lines
from .verbs import Client
from .wire import NoResponse, Unreachable

LOG: Final = logging.getLogger(__name__)

STREAM_SECONDS: Final = 600.0
"""How long a stream is read before it is opened again: an interrupted connection may not be noticed."""
RETRY_SECONDS: Final = 1.0
UNSERVED_SECONDS: Final = 300.0
"""How long a server without this stream is left alone; another one may be at its address then."""
_FORBIDDEN: Final = 403
"""The code of a server that has not read its roles yet, and of a real kube-apiserver, which has no role for the stream."""
_NOT_SERVED: Final = frozenset({404, 405})
"""The codes of a real kube-apiserver for a user who has all rights."""

_decode = msgspec.json.Decoder(ClockReading).decode


class ClockFollower:
    """Follows the clock of a server. The client must not wait by the clock that follows: it may stand still."""

    def __init__(self, client: Client, clock: ClusterClock) -> None:
        self._client = client
        self._clock = clock
        self._is_known = asyncio.Event()
        self._refused_pause = RETRY_SECONDS

    async def wait_known(self) -> None:
        """Wait until the clock shows the time of the cluster, or the server has none of its own."""
        await self._is_known.wait()

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            pause = RETRY_SECONDS
            try:
                await self._read()
            except NoResponse as error:
                LOG.debug("the clock of the API server is not followed now: %s", error)
            except ApiError as error:
                if error.code in _NOT_SERVED:
                    self._follow_none()
                    pause = UNSERVED_SECONDS
                elif error.code == _FORBIDDEN:
                    pause = self._handle_refusal()
                else:
                    LOG.warning("The clock of the API server cannot be followed: %s", error)
            await self._clock.real.sleep(pause)

    def _handle_refusal(self) -> float:
        """Return the seconds until the next attempt. A clock that is known changes only if the refusals do not end."""
        pause = self._refused_pause
        self._refused_pause = min(2 * pause, UNSERVED_SECONDS)
        if pause == UNSERVED_SECONDS or not self._is_known.is_set():
            self._follow_none()
        return pause

    async def _read(self) -> None:
        async with self._client.download(PATH, timeout_seconds=STREAM_SECONDS) as stream:
            async for lines in split_lines(stream.chunks()):
                self._follow(lines[-1])

    def _follow(self, line: bytes) -> None:
        try:
            reading = _decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            raise Unreachable(f"received an invalid reading of the clock: {line[:200]!r}") from error
        if not (0.0 <= reading.rate <= MAX_SPEED and reading.time.tzinfo and reading.at.tzinfo):
            raise Unreachable(f"received an invalid reading of the clock: {line[:200]!r}")
        if reading.rate != self._clock.rate:
            LOG.info("The clock of the cluster runs at %g times the real speed", reading.rate)
        self._clock.follow(reading.time, reading.at, reading.rate)
        self._refused_pause = RETRY_SECONDS
        self._is_known.set()

    def _follow_none(self) -> None:
        now = self._clock.real.now()
        self._clock.follow(now, now, 1.0)
        self._is_known.set()
