"""A command on a simulated node: its streams over a WebSocket of the API server, and the terminal of the user."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final
from urllib.parse import quote, urlencode

import aiohttp
import orjson

from mockube.client.kubeconfig import Access
from mockube.client.tls import tls_context
from mockube.command_client import AGENT
from mockube.component_base.clock import Clock
from mockube.component_base.supervision import cancel_and_wait, start
from mockube.failure import Failure, Missing

PROTOCOL: Final = "v5.channel.k8s.io"
_STDIN, _STDOUT, _STDERR, _ERROR, _RESIZE, _CLOSE = 0, 1, 2, 3, 4, 255
_READ: Final = 64 * 1024
_NOT_FOUND: Final = 404
_MAX_TEXT: Final = 500


class NodeShell:
    """Runs commands of root on one node."""

    def __init__(self, access: Access, clock: Clock, node: str) -> None:
        self._access = access
        self._clock = clock
        self._node = node

    async def run(self, command: Sequence[str], *, has_terminal: bool) -> int:
        """Run a command with the streams of this process; return its exit code."""
        async with self._connect(command, has_terminal=has_terminal) as socket:
            with _raw_terminal() if has_terminal else _as_it_is():
                senders = [start("input of the shell", _send_input(socket))]
                if has_terminal:
                    senders.append(start("size of the terminal", _send_sizes(socket)))
                try:
                    status = await _receive(socket)
                finally:
                    await cancel_and_wait(senders)
        return _exit_code(status)

    @asynccontextmanager
    async def _connect(
        self, command: Sequence[str], *, has_terminal: bool
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        access = self._access
        streams = [("input", "1"), ("output", "1"), ("tty", "1") if has_terminal else ("error", "1")]
        query = urlencode([*streams, *(("command", word) for word in command)])
        server = access.server.rstrip("/")
        url = f"{server}/api/v1/nodes/{quote(self._node, safe='')}/proxy/mockube/shell?{query}"
        context = tls_context(access, self._clock) if server.startswith("https") else None
        headers = {"User-Agent": AGENT}
        if token := _token(access):
            headers["Authorization"] = f"Bearer {token}"
        connector = aiohttp.TCPConnector(ssl=context or True)
        async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
            # A GET, with which WebSockets begin usually, needs only the verb get.
            options: dict[str, Any] = {"method": "POST", "protocols": (PROTOCOL,), "max_msg_size": 0}
            if access.server_name:
                options["server_hostname"] = access.server_name
            try:
                socket = await session.ws_connect(url, **options)
            except aiohttp.WSServerHandshakeError as error:
                raise await self._refusal(session, url, error.status) from error
            except (aiohttp.ClientError, OSError) as error:
                raise Failure(f"the server does not respond: {error}") from error
            async with socket:
                yield socket

    async def _refusal(self, session: aiohttp.ClientSession, url: str, code: int) -> Failure:
        """Return the error of a refused shell; the message is in the response to the same request without an upgrade."""
        message = f"the server refuses the shell with the status {code}"
        with suppress(aiohttp.ClientError, OSError):
            async with session.post(url) as response:
                data, code = await response.read(), response.status
                message = _message(data) or message
        return Missing(message) if code == _NOT_FOUND else Failure(message)


def _message(data: bytes) -> str:
    """Return the message of a Status, or the text of a kubelet."""
    try:
        return str(orjson.loads(data).get("message") or "")
    except (orjson.JSONDecodeError, AttributeError):
        return data.decode("utf-8", "replace").strip()[:_MAX_TEXT]


def _token(access: Access) -> str:
    if access.token_file is not None:
        return access.token_file.read_text(encoding="utf-8").strip()
    return access.token


async def _send_input(socket: aiohttp.ClientWebSocketResponse) -> None:
    """Send what this process reads, up to its end."""
    async for data in _standard_input():
        await socket.send_bytes(bytes([_STDIN]) + data)
    with suppress(ConnectionError):
        await socket.send_bytes(bytes([_CLOSE, _STDIN]))


async def _standard_input() -> AsyncIterator[bytes]:
    loop, chunks = asyncio.get_running_loop(), asyncio.Queue[bytes](maxsize=1)
    number = sys.stdin.fileno()

    def read() -> None:
        if chunks.full():
            return
        try:
            data = os.read(number, _READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        chunks.put_nowait(data)

    try:
        loop.add_reader(number, read)
    except PermissionError:  # a file is always readable, and cannot be waited for
        while data := await asyncio.to_thread(os.read, number, _READ):
            yield data
        return
    try:
        while data := await chunks.get():
            yield data
    finally:
        loop.remove_reader(number)


async def _send_sizes(socket: aiohttp.ClientWebSocketResponse) -> None:
    """Send the size of the terminal, and each new one."""
    changed, loop = asyncio.Event(), asyncio.get_running_loop()
    changed.set()
    loop.add_signal_handler(signal.SIGWINCH, changed.set)
    try:
        while True:
            await changed.wait()
            changed.clear()
            with suppress(OSError):
                size = os.get_terminal_size(sys.stdout.fileno())
                body = orjson.dumps({"Width": size.columns, "Height": size.lines})
                await socket.send_bytes(bytes([_RESIZE]) + body)
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)


async def _receive(socket: aiohttp.ClientWebSocketResponse) -> bytes:
    """Print what the command writes; return the Status at its end."""
    status = b""
    async for message in socket:
        if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
            continue
        channel, data = message.data[0], message.data[1:]
        if channel == _ERROR:
            status += data
        elif channel in (_STDOUT, _STDERR):
            _print(1 if channel == _STDOUT else 2, data)
    return status


def _print(number: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(number, data) :]
        except BlockingIOError:
            os.set_blocking(number, True)


def _exit_code(status: bytes) -> int:
    """Return the exit code in a Status; raise `Failure` for a command that could not run."""
    if not status:
        raise Failure("the connection to the node was lost")
    tree = orjson.loads(status)
    if tree.get("status") == "Success":
        return 0
    if tree.get("reason") == "NonZeroExitCode":
        causes = (tree.get("details") or {}).get("causes") or ()
        return int(next((each["message"] for each in causes if each.get("reason") == "ExitCode"), 1))
    raise Failure(tree.get("message") or "the command failed")


@contextmanager
def _as_it_is() -> Iterator[None]:
    yield


@contextmanager
def _raw_terminal() -> Iterator[None]:
    """Let the node echo and edit what is typed, and restore the terminal at the end."""
    import termios  # noqa: PLC0415 - not on every system
    import tty  # noqa: PLC0415 - as above

    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    tty.setraw(number)
    try:
        yield
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)
