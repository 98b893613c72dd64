"""Run a command in a container, over a WebSocket."""

import shlex
from collections.abc import Sequence
from typing import Any, Final

import aiohttp
import orjson
from msgspec import Struct

from mockube.client.kubeconfig import Access
from mockube.component_base.clock import RealClock
from mockube.component_base.supervision import timeout

from .errors import InvalidType, InvalidValue, WaitFailed
from .websocket import StreamFailed, messages, open_websocket

PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
STDIN, STDOUT, STDERR, ERROR, CLOSE = 0, 1, 2, 3, 255
"""The channels. CLOSE, of the newer protocol, ends another channel."""
CHUNK: Final = 64 * 1024


class ExecResult(Struct, frozen=True, kw_only=True):
    """The result of a command in a container."""

    stdout: str
    stderr: str
    exit_code: int
    """0 if the command succeeded."""


class ExecOptions(Struct, frozen=True, kw_only=True):
    command: Sequence[str]
    container: str
    stdin: bytes | None
    """What the command reads; None for no input."""
    seconds: float

    def query(self, container: str) -> list[tuple[str, object]]:
        streams = ("stdout", "stderr") if self.stdin is None else ("stdin", "stdout", "stderr")
        return [
            ("container", container),
            *((stream, "true") for stream in streams),
            *(("command", argument) for argument in self.command),
        ]


def read_command(command: Any) -> list[str]:
    """Return the arguments of a command: a str is split as by a shell, but run without one."""
    if isinstance(command, str):
        try:
            arguments = shlex.split(command)
        except ValueError as error:
            raise InvalidValue(f"the command cannot be split: {error}") from error
    elif isinstance(command, Sequence) and all(isinstance(argument, str) for argument in command):
        arguments = [*command]
    else:
        raise InvalidType('a command is a str, or a list of str such as ["ls", "/etc"]')
    if not arguments:
        raise InvalidValue("the command is empty")
    return arguments


async def run_command(access: Access, path: str, options: ExecOptions) -> ExecResult:
    """Run the command of a path, and return its output; raise WaitFailed if it does not end in time."""
    output: dict[int, list[bytes]] = {STDOUT: [], STDERR: [], ERROR: []}
    try:
        async with timeout(RealClock(), options.seconds), open_websocket(access, path, PROTOCOLS) as socket:
            if options.stdin is not None:
                await _send_stdin(socket, options.stdin)
            async for channel, data in messages(socket):
                output.get(channel, []).append(data)
    except TimeoutError:
        text = _text(output[STDOUT])[-500:]
        raise WaitFailed(
            f"the command did not end within {options.seconds:g} s; its output ends with {text!r}"
        ) from None
    return ExecResult(
        stdout=_text(output[STDOUT]),
        stderr=_text(output[STDERR]),
        exit_code=_exit_code(b"".join(output[ERROR])),
    )


async def _send_stdin(socket: aiohttp.ClientWebSocketResponse, stdin: bytes) -> None:
    if socket.protocol != PROTOCOLS[0]:
        raise StreamFailed(f"the server cannot end stdin: it does not support {PROTOCOLS[0]}")
    for start in range(0, len(stdin), CHUNK):
        await socket.send_bytes(bytes([STDIN]) + stdin[start : start + CHUNK])
    await socket.send_bytes(bytes([CLOSE, STDIN]))


def _exit_code(error: bytes) -> int:
    """Return the exit code of the status that ends a command; raise StreamFailed if the command did not run."""
    if not error:
        raise StreamFailed("the connection was closed before the command ended")
    try:
        status = orjson.loads(error)
    except orjson.JSONDecodeError:
        raise StreamFailed(error.decode(errors="replace")) from None
    if status.get("status") == "Success":
        return 0
    for cause in (status.get("details") or {}).get("causes") or ():
        if cause.get("reason") == "ExitCode":
            return int(cause["message"])
    raise StreamFailed(status.get("message") or "the command failed without a message")


def _text(parts: Sequence[bytes]) -> str:
    return b"".join(parts).decode(errors="replace")
