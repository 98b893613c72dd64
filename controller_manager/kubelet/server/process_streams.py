"""Exec, attach and ports of containers that are processes of this machine."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import orjson

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.kubelet.processes.command import Identity, StartError, find_program
from mockube.controller_manager.kubelet.processes.local_process import (
    LocalProcess,
    read_some,
    start_process,
)
from mockube.controller_manager.kubelet.processes.log_files import LogFile
from mockube.controller_manager.kubelet.processes.process_run import OUTPUT_END, Output, ProcessRun
from mockube.controller_manager.kubelet.server.container_logs import LogSource
from mockube.controller_manager.kubelet.server.kwok_objects import exec_variables
from mockube.controller_manager.kubelet.server.remote_command import StreamOptions
from mockube.controller_manager.kubelet.server.spdy_session import ByteStream
from mockube.controller_manager.kubelet.server.streams import (
    InputStream,
    Streams,
    StreamsClosed,
    exit_status,
    failure,
    success,
)
from mockube.controller_manager.supervision import cancel_and_wait, run_with, start

READ: Final = 32 << 10
MAX_RESIZE: Final = 1024


def open_log(path: Path) -> LogSource:
    return LogFile(path)


class Commands(Protocol):
    """Where commands are run."""

    async def start_exec(
        self, command: Sequence[str], *, stdin: bool = False, terminal: bool = False
    ) -> LocalProcess: ...

    async def end_exec(self, process: LocalProcess) -> None: ...


class HostCommands:
    """Run a command of this machine for kwok's Exec."""

    def __init__(self, entry: ReadOnlyTree) -> None:
        self._entry = entry

    async def start_exec(
        self, command: Sequence[str], *, stdin: bool = False, terminal: bool = False
    ) -> LocalProcess:
        local = self._entry.get("local") or {}
        user = local.get("securityContext") or {}
        if user and os.geteuid() != 0:
            raise StartError("only root can run commands as another user")
        environment = exec_variables(self._entry, {"PATH": os.environ.get("PATH") or os.defpath})
        directory = Path(local.get("workDir") or "/")
        return await start_process(
            [find_program(command[0], environment, directory), *command[1:]],
            environment=environment,
            directory=directory,
            identity=Identity(user=user.get("runAsUser"), group=user.get("runAsGroup")),
            stdin=stdin,
            terminal=terminal,
        )

    async def end_exec(self, process: LocalProcess) -> None:
        await process.end()


async def run_exec(run: Commands, command: list[str], options: StreamOptions, streams: Streams) -> bytes:
    """Run a command in a container; return the Status by which it ends."""
    try:
        process = await run.start_exec(command, stdin=streams.stdin is not None, terminal=options.tty)
    except (StartError, OSError) as error:
        return failure(
            "error executing command in container: failed to exec in container: failed to start exec: OCI runtime exec "
            f"failed: exec failed: unable to start container process: {error}"
        )
    tasks = [start("input of a command", _feed(process, streams.stdin))] if streams.stdin else []
    if options.tty:
        tasks.append(start("sizes of a terminal", _follow_sizes(process, streams.resize)))

    async def run_to_end() -> bytes:
        await _copy_all(process.outputs, streams)
        return exit_status(await process.wait())

    try:
        return await run_with(run_to_end(), beside=tasks)
    finally:
        await run.end_exec(process)


async def attach_to(run: ProcessRun, output: Output, streams: Streams) -> bytes:
    """Send the output of a container to a client, and receive its input."""
    tasks = []
    if run.process is not None and streams.stdin is not None and run.process.stdin is not None:
        once = bool(run.container.get("stdinOnce"))
        tasks.append(start("input of a container", _feed(run.process, streams.stdin, close=once)))
    if run.process is not None and run.container.get("tty"):
        tasks.append(start("sizes of a terminal", _follow_sizes(run.process, streams.resize)))

    async def copy_output() -> None:
        while (piece := await output.get()) != OUTPUT_END:
            await streams.write(*piece)

    await run_with(copy_output(), beside=tasks)
    return success()


async def _copy_all(outputs: Mapping[int, asyncio.StreamReader], streams: Streams) -> None:
    async def copy(number: int, reader: asyncio.StreamReader) -> None:
        while data := await read_some(reader):
            await streams.write(number, data)

    copying = [start("output of a command", copy(number, reader)) for number, reader in outputs.items()]
    try:
        await asyncio.gather(*copying)
    finally:
        await cancel_and_wait(copying)


async def _feed(process: LocalProcess, source: InputStream, *, close: bool = True) -> None:
    assert process.stdin is not None
    with suppress(ConnectionError, OSError):
        while data := await source.read(READ):
            process.stdin.write(data)
            await process.stdin.drain()
        if close:
            process.close_input()


async def _follow_sizes(process: LocalProcess, sizes: InputStream) -> None:
    """Each is a JSON object of `Width` and `Height`."""
    while data := await sizes.read(MAX_RESIZE):
        with suppress(ValueError, KeyError, TypeError, OverflowError):
            size = orjson.loads(data)
            process.resize(int(size["Width"]) & 0xFFFF, int(size["Height"]) & 0xFFFF)


async def connect_port(port: int, stream: ByteStream, host: str = "127.0.0.1") -> str:
    """Join a stream and a port of this machine; return why that cannot be, or ""."""
    try:
        reader, writer = await asyncio.open_connection(host, port)
    except OSError:
        return f"dial tcp4 {host}:{port}: connect: connection refused"

    async def send() -> None:
        with suppress(ConnectionError, StreamsClosed):
            while data := await stream.read(READ):
                writer.write(data)
                await writer.drain()
            writer.write_eof()

    async def receive() -> None:
        with suppress(ConnectionError, StreamsClosed):
            while data := await reader.read(READ):
                await stream.write(data)

    try:
        await run_with(receive(), beside=[start("a connection to a process", send())])
    finally:
        writer.close()
    return ""


async def connect_target(entry: ReadOnlyTree, stream: ByteStream) -> str:
    """Join a stream and the target of kwok's PortForward."""
    target = entry.get("target")
    if entry.get("command") or not target:
        return "a PortForward with a command is not supported: give it a target"
    return await connect_port(target["port"], stream, target.get("address") or "127.0.0.1")
