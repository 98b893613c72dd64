"""Serve `/mockube/clock`: GET streams what the server's clock shows, in a line of JSON at the beginning and after each change.

Other processes of the cluster follow it. A client that reads slowly gets the newest reading, not all of them.
"""

import asyncio
import logging
from functools import partial
from typing import Final

import msgspec

from mockube.apimachinery.clock_readings import PATH, ClockReading
from mockube.apimachinery.status import MethodNotSupported
from mockube.component_base.clock import Clock, ClusterClock

from .page import Pages
from .request import Request
from .response import Response

LOG: Final = logging.getLogger(__name__)


class ClockStreams:
    """The streams of a clock's readings; none of a clock that cannot be changed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed: set[asyncio.Event] = set()
        self._is_ended = False
        if isinstance(clock, ClusterClock):
            clock.on_change.append(self._wake)

    def pages(self) -> Pages:
        clock = self._clock
        return {PATH: partial(self._serve, clock)} if isinstance(clock, ClusterClock) else {}

    async def _serve(self, clock: ClusterClock, request: Request) -> Response:
        if request.method != "GET":
            raise MethodNotSupported(f"{PATH} supports GET, not {request.method}")
        response = Response(200, (), headers={"Cache-Control": "no-store"})
        changed, is_lost = asyncio.Event(), asyncio.Event()

        def leave() -> None:
            is_lost.set()
            changed.set()

        request.client.on_lost(leave)
        sink = request.stream(response)
        self._changed.add(changed)
        try:
            await sink.begin()
            while not (self._is_ended or is_lost.is_set()):
                changed.clear()
                reading = msgspec.json.encode(ClockReading(*clock.reading()))
                await sink.write([reading, b"\n"])
                await changed.wait()
            await sink.end()
        except ConnectionError:
            LOG.debug("a follower of the clock disconnected")
        finally:
            self._changed.discard(changed)
            request.client.on_lost(None)
            sink.release()
        return response

    def end_all(self) -> None:
        """End all streams: the server stops."""
        self._is_ended = True
        self._wake()

    def _wake(self) -> None:
        for changed in self._changed:
            changed.set()
