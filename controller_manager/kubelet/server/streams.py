"""The streams of one exec or attach, whatever carries them, and the Status by which they end."""

import asyncio
from typing import Final, Protocol

import orjson

STDIN, STDOUT, STDERR, ERROR, RESIZE = 0, 1, 2, 3, 4
NAMES: Final = ("stdin", "stdout", "stderr", "error", "resize")
QUEUED: Final = 16
"""Pieces of input that wait to be read; a client that sends more has to wait."""


class StreamsClosed(Exception):
    """The client has disconnected."""


class InputStream:
    """The client's standard input, in chunks, with backpressure: an unread chunk stops the client."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes] = asyncio.Queue(QUEUED)
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

    def cut(self) -> None:
        """End the input; waiting feeders are released."""
        if self._queue.full():
            self._queue.get_nowait()
        self._queue.put_nowait(b"")

    async def read(self, limit: int) -> bytes:
        """Return b"" at the end."""
        if not self._rest and not self._is_over:
            self._rest = await self._queue.get()
            self._is_over = not self._rest
        data, self._rest = self._rest[:limit], self._rest[limit:]
        return data


class Streams(Protocol):
    """What an exec or attach writes to and reads from."""

    stdin: InputStream | None
    resize: InputStream
    """The sizes of the client's terminal, as JSON objects."""

    async def write(self, stream: int, data: bytes) -> None:
        """Wait while the client reads too slowly; `StreamsClosed` if it has disconnected."""

    async def finish(self, status: bytes) -> None:
        """Write how it ended, and end all streams."""


def success() -> bytes:
    return orjson.dumps({"metadata": {}, "status": "Success"})


def exit_status(code: int) -> bytes:
    """The Status of an ended command, as in version 4 of the protocol."""
    if code == 0:
        return success()
    return orjson.dumps(
        {
            "metadata": {},
            "status": "Failure",
            "message": f"command terminated with non-zero exit code: exit status {code}",
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
        }
    )


def failure(message: str) -> bytes:
    """Why a command could not be run."""
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


def fault(error: BaseException) -> bytes:
    """An error of the program, which is logged."""
    return failure(f"{type(error).__name__}: {error}")


def plain_status(status: bytes) -> bytes:
    """The same for the versions before 4, which support texts only; nothing for success."""
    tree = orjson.loads(status)
    return b"" if tree["status"] == "Success" else str(tree["message"]).encode()
