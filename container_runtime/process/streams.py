"""The streams of clients to containers that are processes of this machine: of their commands, and of the containers themselves."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, Protocol

from mockube.component_base import supervision
from mockube.container_runtime.attach import attach
from mockube.container_runtime.output import AttachedOutput
from mockube.container_runtime.runtime import CommandFailed, ExecRequest
from mockube.container_runtime.start_errors import StartError, message_of_exec
from mockube.container_runtime.streams import InputStream, ProgramStreams, Streams, TerminalSizes

from .local_process import LocalProcess, read_chunk
from .process_run import ProcessRun

READ: Final = 32 << 10


class CommandRunner(Protocol):
    """Starts commands on this machine."""

    async def start_exec(
        self, command: Sequence[str], *, stdin: bool = False, terminal: bool = False
    ) -> LocalProcess: ...

    async def end_exec(self, process: LocalProcess) -> None: ...


async def run_exec(runner: CommandRunner, request: ExecRequest, streams: Streams) -> int:
    """Run a command to its end; return its exit code."""
    has_terminal = request.has_terminal
    try:
        process = await runner.start_exec(
            request.command, stdin=streams.stdin is not None, terminal=has_terminal
        )
    except (StartError, OSError) as error:
        raise CommandFailed(
            f"error executing command in container: {message_of_exec(request.command[0], error)}"
        ) from error
    program = ProgramStreams(streams)
    tasks = (
        [supervision.start("input of a command", _copy_input(process, program.stdin))]
        if program.stdin
        else []
    )
    if has_terminal:
        tasks.append(supervision.start("sizes of a terminal", _resize_terminal(process, program.sizes)))

    async def run_to_end() -> int:
        await _copy_outputs(process.outputs, program)
        return await process.wait()

    try:
        return await supervision.run_with(run_to_end(), background_tasks=tasks)
    finally:
        await runner.end_exec(process)


async def attach_to(run: ProcessRun, output: AttachedOutput, streams: Streams) -> None:
    """Send the output of a container to a client, and receive its input."""
    process, has_terminal = run.process, bool(run.container.get("tty"))
    forward_input = sizes = None
    if process is not None and process.stdin is not None:
        closes_input = bool(run.container.get("stdinOnce")) and not has_terminal
        forward_input = partial(_copy_input, process, close=closes_input)
    if process is not None and has_terminal:
        sizes = supervision.start("sizes of a terminal", _resize_terminal(process, streams.sizes))
    await attach(output, streams, forward_input, background_tasks=[sizes] if sizes else [])


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
            if process.stdin.is_closing():  # uvloop closes it when the process has ended, and refuses writes
                raise BrokenPipeError
            process.stdin.write(data)
            await process.stdin.drain()
        if close:
            await process.end_input()
    except (ConnectionError, OSError):  # the process reads no more
        source.discard()


async def _resize_terminal(process: LocalProcess, sizes: TerminalSizes) -> None:
    while size := await sizes.next():
        process.resize(size.width & 0xFFFF, size.height & 0xFFFF)
