"""The streams of one exec or attach, independent of the transport, and the Status at their end."""

import asyncio
from typing import Final, Protocol

import orjson

STDIN, STDOUT, STDERR, ERROR, RESIZE = 0, 1, 2, 3, 4
NAMES: Final = ("stdin", "stdout", "stderr", "error", "resize")
MAX_QUEUED: Final = 16
"""The maximum number of unread pieces of input; the reading from the client pauses then."""


class StreamsClosed(Exception):
    """The client has disconnected."""


class InputStream:
    """The client's standard input, in chunks, with backpressure: an unread chunk stops the client."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes] = asyncio.Queue(MAX_QUEUED)
        self._rest = b""
        self._is_over = False

    async def feed(self, data: bytes) -> None:
        if data:
            await self._queue.put(data)

    def feed_nowait(self, data: bytes) -> None:
        """Feed data if there is room, and drop it otherwise."""
        if data and not self._queue.full():
            self._queue.put_nowait(data)

    async def end(self) -> None:
        await self._queue.put(b"")

    def abort(self) -> None:
        """End the input; waiting feeders are released."""
        if self._queue.full():
            self._queue.get_nowait()
        self._queue.put_nowait(b"")

    async def read(self, limit: int) -> bytes:
        """Return at most `limit` bytes; b"" at the end."""
        if not self._rest and not self._is_over:
            self._rest = await self._queue.get()
            self._is_over = not self._rest
        data, self._rest = self._rest[:limit], self._rest[limit:]
        return data


class Streams(Protocol):
    """The streams of an exec or attach."""

    stdin: InputStream | None
    resize: InputStream
    """The sizes of the client's terminal, as JSON objects."""

    async def write(self, stream: int, data: bytes) -> None:
        """Write the data; wait while the client reads too slowly; raise `StreamsClosed` if it has disconnected."""

    async def finish(self, status: bytes) -> None:
        """Write the Status, and end all streams."""


def success_status() -> bytes:
    return orjson.dumps({"metadata": {}, "status": "Success"})


def exit_status(code: int) -> bytes:
    """Return the Status of a command that ended with an exit code, as in version 4 of the protocol."""
    if code == 0:
        return success_status()
    return orjson.dumps(
        {
            "metadata": {},
            "status": "Failure",
            "message": f"command terminated with non-zero exit code: exit status {code}",
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
        }
    )


def failure_status(message: str) -> bytes:
    """Return the Status of a command that could not be run."""
    return orjson.dumps(
        {
            "metadata": {},
            "status": "Failure",
            "message": f"Internal error occurred: {message}",
            "reason": "InternalError",
            "details": {"causes": [{"message": message}]},
            "code": 500,
        }
    )


def error_status(error: BaseException) -> bytes:
    """Return the Status of an unexpected error."""
    return failure_status(f"{type(error).__name__}: {error}")


def plain_status(status: bytes) -> bytes:
    """Convert a Status for versions before 4, which have plain messages; empty for success."""
    tree = orjson.loads(status)
    return b"" if tree["status"] == "Success" else str(tree["message"]).encode()
