"""Carries out a command for a client: what it writes is sent, what it reads is received, and its waits take real time."""

from typing import Protocol

from mockube.apimachinery.clock import Clock
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.kubelet.containers.runs import (
    ContainerRun,
    NoLogs,
    container_spec,
    run_of,
)
from mockube.controller_manager.kubelet.server.http_errors import HttpError
from mockube.controller_manager.kubelet.server.streams import InputStream, Streams, exit_status, failure
from mockube.controller_manager.kubelet.shell.process import (
    CommandStart,
    Effect,
    Input,
    Output,
    Run,
    Sleep,
    UnknownProgram,
)
from mockube.controller_manager.kubelet.shell.syntax import ShellSyntaxError
from mockube.controller_manager.supervision import yield_to_loop

SLICE = 50
"""Commands between which others are let run."""


def running_container(pod: ReadOnlyTree, name: str) -> tuple[ReadOnlyTree, ContainerRun]:
    """The container that a client names, with its run."""
    container = container_spec(pod, name)
    try:
        run = run_of(pod, name)
    except NoLogs:
        run = None
    if container is None or run is None or run.finished is not None:
        raise HttpError(500, f'container not found ("{name}")')
    return container, run


class CommandStreams(Protocol):
    """What a command reads and writes."""

    @property
    def stdin(self) -> InputStream | None: ...

    async def write(self, stream: int, data: bytes) -> None: ...


async def execute(running: Run, streams: Streams, clock: Clock) -> bytes:
    """Run to the end; return the Status by which it ends."""
    try:
        return exit_status(await run_to_end(running, streams, clock))
    except UnknownProgram as error:
        return failure(
            "error executing command in container: the container is simulated, and has no program "
            f'"{error}": executable file not found in $PATH'
        )
    except (ShellSyntaxError, RecursionError) as error:
        return failure(f"error executing command in container: {error}")


async def run_to_end(running: Run, streams: CommandStreams, clock: Clock) -> int:
    """Return the exit code."""
    answer: bytes | None = None
    commands = 0
    try:
        while True:
            effect = running.send(answer) if answer else next(running)
            commands += isinstance(effect, CommandStart)
            if commands >= SLICE:
                commands = 0
                await yield_to_loop()
            answer = await _carry_out(effect, streams, clock)
    except StopIteration as ended:
        code: int = ended.value
        return code
    finally:
        running.close()


async def _carry_out(effect: Effect, streams: CommandStreams, clock: Clock) -> bytes | None:
    match effect:
        case Output(descriptor=descriptor, data=data):
            await streams.write(descriptor, data)
            await yield_to_loop()
        case Sleep(seconds=seconds):
            await clock.sleep(min(seconds, 1e9))
        case Input(limit=limit):
            return b"" if streams.stdin is None else await streams.stdin.read(limit)
        case _:
            pass
    return None
