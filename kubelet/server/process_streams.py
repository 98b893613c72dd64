"""Logs, exec, attach and ports of containers that are processes of this machine, and of kwok's objects."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base import supervision
from mockube.component_base.clock import Clock
from mockube.kubelet.container_output import AttachedOutput
from mockube.kubelet.processes.command import CommandSpec, Identity, StartError, find_program
from mockube.kubelet.processes.local_process import LocalProcess, read_chunk, start_process
from mockube.kubelet.processes.log_files import LogFile
from mockube.kubelet.processes.process_run import ProcessRun

from .attach import attach
from .container_logs import LogSource
from .kwok_objects import exec_variables
from .streams import (
    ClientConnection,
    InputStream,
    ProgramStreams,
    Streams,
    StreamsClosed,
    TerminalSizes,
    exit_status,
    failure_status,
)

READ: Final = 32 << 10
LEAVE_SECONDS: Final = 1.0


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
        directory, group = Path(local.get("workDir") or "/"), user.get("runAsGroup")
        spec = CommandSpec(
            argv=[find_program(command[0], environment, directory), *command[1:]],
            environment=environment,
            directory=directory,
            identity=Identity(user=user.get("runAsUser"), groups=() if group is None else (group,)),
        )
        return await start_process(spec, stdin=stdin, terminal=terminal)

    async def end_exec(self, process: LocalProcess) -> None:
        await process.end()


async def run_exec(
    run: CommandRunner, command: Sequence[str], streams: Streams, *, has_terminal: bool
) -> bytes:
    """Run a command in a container; return the Status for the client."""
    try:
        process = await run.start_exec(command, stdin=streams.stdin is not None, terminal=has_terminal)
    except (StartError, OSError) as error:
        return failure_status(
            "error executing command in container: failed to exec in container: failed to start exec: OCI runtime exec "
            f"failed: exec failed: unable to start container process: {error}"
        )
    program = ProgramStreams(streams)
    tasks = (
        [supervision.start("input of a command", _copy_input(process, program.stdin))]
        if program.stdin
        else []
    )
    if has_terminal:
        tasks.append(supervision.start("sizes of a terminal", _resize_terminal(process, program.sizes)))

    async def run_to_end() -> bytes:
        await _copy_outputs(process.outputs, program)
        return exit_status(await process.wait())

    try:
        return await supervision.run_with(run_to_end(), background_tasks=tasks)
    finally:
        await run.end_exec(process)


async def attach_to(run: ProcessRun, output: AttachedOutput, streams: Streams) -> bytes:
    """Send the output of a container to a client, and receive its input."""
    process, has_terminal = run.process, bool(run.container.get("tty"))
    forward_input = sizes = None
    if process is not None and process.stdin is not None:
        closes_input = bool(run.container.get("stdinOnce")) and not has_terminal
        forward_input = partial(_copy_input, process, close=closes_input)
    if process is not None and has_terminal:
        sizes = supervision.start("sizes of a terminal", _resize_terminal(process, streams.sizes))
    return await attach(output, streams, forward_input, background_tasks=[sizes] if sizes else [])


async def _copy_outputs(outputs: Mapping[int, asyncio.StreamReader], streams: ProgramStreams) -> None:
    async def copy(number: int, reader: asyncio.StreamReader) -> None:
        while data := await read_chunk(reader):
            await streams.write(number, data)

    copy_tasks = [
        supervision.start("output of a command", copy(number, reader)) for number, reader in outputs.items()
    ]
    try:
        await asyncio.gather(*copy_tasks)
    finally:
        await supervision.cancel_and_wait(copy_tasks)


async def _copy_input(process: LocalProcess, source: InputStream, *, close: bool = True) -> None:
    assert process.stdin is not None
    try:
        while data := await source.read(READ):
            process.stdin.write(data)
            await process.stdin.drain()
        if close:
            await process.end_input()
    except (ConnectionError, OSError):  # the process reads no more
        source.discard()


async def _resize_terminal(process: LocalProcess, sizes: TerminalSizes) -> None:
    while size := await sizes.next():
        process.resize(size.width & 0xFFFF, size.height & 0xFFFF)


async def connect_port(port: int, client: ClientConnection, clock: Clock, host: str = "127.0.0.1") -> str:
    """Connect a client to a port of this machine until both have ended; return the error, or "".

    When one has left, all that it sent is delivered. The other one can still send for a second, as with containerd.
    """
    try:
        reader, writer = await asyncio.open_connection(host, port)
    except OSError:
        return f"dial tcp4 {host}:{port}: connect: connection refused"
    sender = supervision.start("a connection to a process", _send_to(writer, client))
    receiver = supervision.start("a connection from a process", _receive_from(reader, client))

    async def run() -> None:
        await supervision.run_until(client.departure.wait(), asyncio.wait({receiver}))
        if not receiver.done():
            await asyncio.wait({sender})
            await _wait(receiver, clock)
        elif await client.end():
            await _wait(sender, clock)

    try:
        await supervision.run_with(run(), background_tasks=[sender, receiver])
    finally:
        writer.close()
    return ""


async def _wait(task: "asyncio.Task[None]", clock: Clock) -> None:
    with suppress(TimeoutError):
        async with supervision.timeout(clock.real, LEAVE_SECONDS):
            await asyncio.wait({task})


async def _send_to(writer: asyncio.StreamWriter, stream: ClientConnection) -> None:
    with suppress(ConnectionError, StreamsClosed):
        while data := await stream.read(READ):
            writer.write(data)
            await writer.drain()
        writer.write_eof()


async def _receive_from(reader: asyncio.StreamReader, stream: ClientConnection) -> None:
    """Forward what a port sends, or discard it when the client has left: its input may not be delivered yet."""
    with suppress(ConnectionError):
        with suppress(StreamsClosed):
            while data := await reader.read(READ):
                await stream.write(data)
        while await reader.read(READ):
            pass


async def connect_target(entry: ReadOnlyTree, stream: ClientConnection, clock: Clock) -> str:
    """Connect a client to the target of kwok's PortForward until it ends; return the error, or ""."""
    target = entry.get("target")
    if entry.get("command") or not target:
        return "a PortForward with a command is not supported: give it a target"
    return await connect_port(target["port"], stream, clock, target.get("address") or "127.0.0.1")
