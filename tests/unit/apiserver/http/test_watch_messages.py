"""An error in the task that reads the client of a watch over a WebSocket is logged, and ends the watch."""

import asyncio

from mockube.apiserver.http.streams import Messages
from tests.support.event_loop import WAIT_TIMEOUT


class FailingSocket:
    async def prepare(self, request):
        """Accept the WebSocket."""

    def __aiter__(self):
        raise RuntimeError("a fault in the program")


async def test_failed_reader_of_messages_is_logged_and_ends_watch(caplog):
    closed = asyncio.Event()
    messages = Messages(None, [], bytes, closed.set)
    messages._socket = FailingSocket()
    await messages.begin()
    await asyncio.wait_for(closed.wait(), WAIT_TIMEOUT)
    await messages._listening
    (entry,) = map(caplog.handler.format, caplog.records)
    assert "Traceback (most recent call last)" in entry
    assert "RuntimeError: a fault in the program" in entry
