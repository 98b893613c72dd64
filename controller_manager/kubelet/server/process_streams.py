"""Logs, exec, attach and ports of containers that are processes of this machine, and of kwok's objects."""

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
    read_chunk,
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
    failure_status,
    success_status,
)
from mockube.controller_manager.supervision import cancel_and_wait, run_with, start

READ: Final = 32 << 10
MAX_RESIZE: Final = 1024


def open_log(path: Path) -> LogSource:
    return LogFile(path)


class CommandRunner(Protocol):
    """Starts commands on this machine."""

    async def start_exec(
        self, command: Sequence[str], *, stdin: bool = False, terminal: bool = False
    ) -> LocalProcess: ...

    async def end_exec(self, process: LocalProcess) -> None: ...


class HostCommands:
    """Starts commands of this machine for kwok's Exec."""

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


async def run_exec(run: CommandRunner, command: list[str], options: StreamOptions, streams: Streams) -> bytes:
    """Run a command in a container; return the Status for the client."""
    try:
        process = await run.start_exec(command, stdin=streams.stdin is not None, terminal=options.tty)
    except (StartError, OSError) as error:
        return failure_status(
            "error executing command in container: failed to exec in container: failed to start exec: OCI runtime exec "
            f"failed: exec failed: unable to start container process: {error}"
        )
    tasks = [start("input of a command", _copy_input(process, streams.stdin))] if streams.stdin else []
    if options.tty:
        tasks.append(start("sizes of a terminal", _resize_terminal(process, streams.resize)))

    async def run_to_end() -> bytes:
        await _copy_outputs(process.outputs, streams)
        return exit_status(await process.wait())

    try:
        return await run_with(run_to_end(), background_tasks=tasks)
    finally:
        await run.end_exec(process)


async def attach_to(run: ProcessRun, output: Output, streams: Streams) -> bytes:
    """Send the output of a container to a client, and receive its input."""
    tasks = []
    if run.process is not None and streams.stdin is not None and run.process.stdin is not None:
        closes_input = bool(run.container.get("stdinOnce"))
        tasks.append(
            start("input of a container", _copy_input(run.process, streams.stdin, close=closes_input))
        )
    if run.process is not None and run.container.get("tty"):
        tasks.append(start("sizes of a terminal", _resize_terminal(run.process, streams.resize)))

    async def copy_output() -> None:
        while (piece := await output.get()) != OUTPUT_END:
            await streams.write(*piece)

    await run_with(copy_output(), background_tasks=tasks)
    return success_status()


async def _copy_outputs(outputs: Mapping[int, asyncio.StreamReader], streams: Streams) -> None:
    async def copy(number: int, reader: asyncio.StreamReader) -> None:
        while data := await read_chunk(reader):
            await streams.write(number, data)

    copy_tasks = [start("output of a command", copy(number, reader)) for number, reader in outputs.items()]
    try:
        await asyncio.gather(*copy_tasks)
    finally:
        await cancel_and_wait(copy_tasks)


async def _copy_input(process: LocalProcess, source: InputStream, *, close: bool = True) -> None:
    assert process.stdin is not None
    with suppress(ConnectionError, OSError):
        while data := await source.read(READ):
            process.stdin.write(data)
            await process.stdin.drain()
        if close:
            process.close_input()


async def _resize_terminal(process: LocalProcess, sizes: InputStream) -> None:
    """Resize the terminal for each size, a JSON object with `Width` and `Height`."""
    while data := await sizes.read(MAX_RESIZE):
        with suppress(ValueError, KeyError, TypeError, OverflowError):
            size = orjson.loads(data)
            process.resize(int(size["Width"]) & 0xFFFF, int(size["Height"]) & 0xFFFF)


async def connect_port(port: int, stream: ByteStream, host: str = "127.0.0.1") -> str:
    """Connect a stream to a port of this machine until it ends; return the error, or ""."""
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
        await run_with(receive(), background_tasks=[start("a connection to a process", send())])
    finally:
        writer.close()
    return ""


async def connect_target(entry: ReadOnlyTree, stream: ByteStream) -> str:
    """Connect a stream to the target of kwok's PortForward until it ends; return the error, or ""."""
    target = entry.get("target")
    if entry.get("command") or not target:
        return "a PortForward with a command is not supported: give it a target"
    return await connect_port(target["port"], stream, target.get("address") or "127.0.0.1")
