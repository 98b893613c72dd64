"""A stream with one watch: complete responses, and liveness checks of its member.

An idle stream does not prove that its member works: a member that is paused, or separated from its leader, receives no
changes but keeps its connections. etcd ends the streams of such a member for clients that require a leader, but its
WebSockets cannot carry that option. So an idle stream sends a request to its member after a timeout.
"""

import re
from contextlib import suppress
from typing import TypeVar

from msgspec.structs import replace

from mockube.etcd.errors import PermissionDenied, Timeout
from mockube.etcd.kv import Event

from . import requests
from .clock import Clock, Deadline
from .gateway import Gateway
from .requests import Method
from .responses import WatchResponse, decode_watch
from .stream import Stream

T = TypeVar("T")

PROGRESS_IN_ORDER = {(3, 4): 31, (3, 5): 13}
"""By minor version, the first release that sends progress in order; all later minor versions do."""


class WatchStream:
    def __init__(self, gateway: Gateway, stream: Stream, *, clock: Clock, timeout: float) -> None:
        self.gateway = gateway
        self._stream = stream
        self._clock = clock
        self._timeout = timeout
        self._fragments: list[Event] = []
        self._in_order: bool | None = None

    async def receive(self) -> WatchResponse:
        """Return the next response, with its fragments joined, so that a revision is never split."""
        while True:
            answer = decode_watch(await self._message())
            if not (answer.fragment or self._fragments):
                return answer
            self._fragments += answer.events
            if not answer.fragment:
                events, self._fragments = self._fragments, []
                return replace(answer, events=events)

    async def ask_progress(self) -> None:
        await self._stream.send(requests.PROGRESS)

    async def answers_progress_in_order(self) -> bool:
        """Return whether a progress response means that every earlier event was already sent on this stream.

        Earlier releases send it before events that wait to be sent, and for watches that are still catching up;
        Kubernetes has the same minimum releases.
        """
        if self._in_order is None:
            self._in_order = _is_in_order((await self._ask_member(requests.STATUS)).version)
        return self._in_order

    async def close(self) -> None:
        await self._stream.close()

    async def _message(self) -> bytes:
        while True:
            try:
                with Deadline(self._clock, self._timeout):
                    return await self._stream.receive()
            except TimeoutError:
                with suppress(PermissionDenied):  # which also proves that the member works
                    await self._ask_member(requests.PING)

    async def _ask_member(self, method: Method[T]) -> T:
        try:
            with Deadline(self._clock, self._timeout):
                return await self.gateway.call(method, requests.EMPTY_REQUEST)
        except TimeoutError as error:
            raise Timeout(f"{self.gateway.endpoint}: no response in {self._timeout} s") from error


def _is_in_order(version: str) -> bool:
    parts = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    if parts is None:
        return False
    major, minor, patch = map(int, parts.groups())
    return patch >= PROGRESS_IN_ORDER.get((major, minor), 0)
