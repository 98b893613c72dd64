"""Executes a simulated command for a client: sends its output, receives its input, and sleeps in real time."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from mockube.component_base.clock import Clock
from mockube.component_base.loop import yield_to_loop
from mockube.component_base.supervision import run_until
from mockube.container_runtime.runtime import CommandFailed
from mockube.container_runtime.start_errors import StartError, message_of_exec
from mockube.container_runtime.streams import InputStream, ProgramStreams, Streams, StreamsClosed

from .client_pace import CLIENT, ClientPace
from .network.calls import NetworkCaller
from .network.open_sockets import OPEN_SOCKETS, OpenSockets
from .shell.process import CommandStart, Effect, Host, Input, NetworkCall, Output, Run, Sleep, UnknownProgram
from .shell.syntax import ShellSyntaxError
from .shell.vfs.file_system import FileSystem
from .shell.vfs.mount_table import MountedFiles
from .work_turns import SLICE, Turn

_FEW_COMMANDS = 5
_LONGEST_SLEEP = 1e9
_WATCH_SECONDS = 1.0
"""The time after which a command looks whether others have changed a file: that of tail."""
_SHORT_SLEEP = 0.01
_MAX_COMMANDS = 5_000
"""The number of commands without a sleep after which the command of a container pauses."""
_FIRST_PAUSE, _PAUSE_FACTOR = 0.02, 1.2
"""The pauses of a loop that takes no time grow to a second: one that works for a moment ends soon, and one that never ends costs little."""
_MAX_SHORT_SLEEPS = 0.1
"""The seconds of short sleeps, such as the round trips of the network, that are slept together: a timer costs more than they do."""


class CommandStreams(Protocol):
    """The input and output of a command."""

    @property
    def stdin(self) -> InputStream | None: ...

    async def write(self, stream: int, data: bytes) -> None: ...


class InterruptiblePause:
    """The pauses of one command, which its user can interrupt."""

    def __init__(self, clock: Clock, host: Host) -> None:
        self._clock = clock
        self._host = host
        self._interrupted = asyncio.Event()
        self._is_sleeping = False

    def interrupt(self) -> bool:
        """Interrupt what runs; return whether it was pausing, and did not wait for input."""
        self._host.interrupt()
        self._interrupted.set()
        return self._is_sleeping

    async def sleep(self, seconds: float, clock: Clock) -> float | None:
        """Sleep by a clock; return the time after which an interrupt has ended the sleep, None without one."""
        if not self._host.has_terminal:  # Nobody can interrupt it.
            return await _sleep(seconds, clock)
        begin = self._clock.monotonic()
        self._interrupted.clear()
        self._is_sleeping = True
        try:
            await run_until(self._interrupted.wait(), clock.sleep(seconds))
        finally:
            self._is_sleeping = False
        return self._clock.monotonic() - begin if self._interrupted.is_set() else None


async def _sleep(seconds: float, clock: Clock) -> float | None:
    await clock.sleep(seconds)
    return None


async def execute(  # noqa: PLR0913 - each argument is a dependency
    execution: Run,
    container: str,
    pace: ClientPace,
    network: NetworkCaller,
    streams: Streams,
    *,
    pause: InterruptiblePause,
    has_program: Callable[[str], bool] = lambda _: False,
) -> int:
    """Execute a command of a client in a container to its end; return its exit code. `has_program` says what the image has.

    Without its client, it goes on as with containerd, until it works and does not wait: then it ends, by `StreamsClosed`.
    """
    try:
        return await run_to_end(
            execution,
            ProgramStreams(streams),
            pace,
            network,
            sleep=pause.sleep,
            on_work=partial(_end_without_client, streams),
        )
    except StartError as error:
        message = message_of_exec(container, error)
        raise CommandFailed(f"error executing command in container: {message}") from error
    except UnknownProgram as error:
        problem = (
            f'the program "{error}" of its image is not simulated'
            if has_program(str(error))
            else f'the container is simulated, and has no program "{error}": executable file not found in $PATH'
        )
        raise CommandFailed(f"error executing command in container: {problem}") from error
    except (ShellSyntaxError, RecursionError) as error:
        raise CommandFailed(f"error executing command in container: {error}") from error


def _end_without_client(streams: Streams) -> None:
    if streams.departure.is_set():
        raise StreamsClosed


async def run_to_end(  # noqa: PLR0913 - each argument is a dependency
    execution: Run,
    streams: CommandStreams,
    pace: ClientPace,
    network: NetworkCaller,
    after_sleep: Callable[[], Awaitable[None]] | None = None,
    sleep: Callable[[float, Clock], Awaitable[float | None]] = _sleep,
    *,
    on_answer: Callable[[], None] = lambda: None,
    on_work: Callable[[], None] = lambda: None,
    wake: Callable[[], None] | None = None,
) -> int:
    """Execute a command to its end; return its exit code. `network` answers its use of the network.

    `sleep` sleeps by a clock, and returns the time after which a signal has ended it, or None. `on_answer` is called after an answer
    of the network or of the input, and `on_work` while a command works on and on. `wake` ends a sleep when something has happened on a socket, if `sleep` may not be cancelled for that.
    """
    CLIENT.set(pace)
    woken = _WokenSleep(sleep, wake, streams.stdin)
    token = OPEN_SOCKETS.set(woken.sockets)
    try:
        return await _run_to_end(execution, streams, pace, network, after_sleep, woken, on_answer, on_work)
    finally:
        woken.sockets.close_all()
        OPEN_SOCKETS.reset(token)


async def _run_to_end(  # noqa: PLR0913, PLR0917 - as above
    execution: Run,
    streams: CommandStreams,
    pace: ClientPace,
    network: NetworkCaller,
    after_sleep: Callable[[], Awaitable[None]] | None,
    sleep: Callable[[float, Clock], Awaitable[float | None]],
    on_answer: Callable[[], None],
    on_work: Callable[[], None],
) -> int:
    reply: bytes | None = None
    turn = Turn()
    commands_without_wait = 0
    short_sleeps = 0.0
    try:
        while True:
            effect = turn.advance(execution, reply)
            if isinstance(effect, CommandStart):
                commands_without_wait += 1
                if commands_without_wait % SLICE == 0:
                    on_work()
            if turn.is_over:
                await turn.take_next()
            if isinstance(effect, NetworkCall):
                reply = await network(effect.request)
                on_answer()
            elif (
                isinstance(effect, Sleep)
                and effect.seconds + short_sleeps < _MAX_SHORT_SLEEPS
                and effect.seconds < _SHORT_SLEEP
            ):
                short_sleeps, reply = short_sleeps + effect.seconds, None
                pace.pass_time(effect.seconds, effect.cores)
                await _let_others_run(turn)
            elif isinstance(effect, Sleep):
                commands_without_wait = 0
                short_sleeps, reply = 0.0, await _sleep_after(effect, short_sleeps, pace, sleep, after_sleep)
            else:
                reply = await _apply_effect(effect, streams, on_answer)
                if isinstance(effect, Output):
                    await _let_others_run(turn)
    except StopIteration as stop:
        code: int = stop.value
        return code
    finally:
        execution.close()


async def _sleep_after(
    effect: Sleep,
    short_sleeps: float,
    pace: ClientPace,
    sleep: Callable[[float, Clock], Awaitable[float | None]],
    after_sleep: Callable[[], Awaitable[None]] | None,
) -> bytes | None:
    """Sleep, also for the short sleeps before, which the pace knows already; return for how long, if it ended earlier."""
    max_seconds = _WATCH_SECONDS if effect.watches_files else _LONGEST_SLEEP
    seconds = min(effect.seconds + short_sleeps, max_seconds)
    with pace.waiting(min(effect.seconds, max_seconds), effect.cores):
        slept = await sleep(seconds, pace.clock.routine if effect.is_routine else pace.clock)
    if slept is None and seconds < effect.seconds and effect.watches_files:
        slept = seconds
    if after_sleep is not None:
        await after_sleep()
    return None if slept is None else str(slept).encode()


async def _let_others_run(turn: Turn) -> None:
    """Let other tasks run, and other commands if this one has worked."""
    if turn.commands < _FEW_COMMANDS:
        await yield_to_loop()
    else:
        await turn.take_next()


class _WokenSleep:
    """The sleeps of a command, which end when something happens on one of its sockets."""

    def __init__(
        self,
        sleep: Callable[[float, Clock], Awaitable[float | None]],
        wake: Callable[[], None] | None,
        stdin: InputStream | None,
    ) -> None:
        self._sleep = sleep
        self._news = asyncio.Event()
        self._is_cancelled = wake is None
        self.sockets = OpenSockets(wake or self._news.set, lambda: stdin is None or stdin.is_ready)
        if stdin is not None:
            stdin.observe(self.sockets.note_input)

    async def __call__(self, seconds: float, clock: Clock) -> float | None:
        if self.sockets.take_news():
            return 0.0
        if not (self.sockets.is_used() and self._is_cancelled):
            return await self._sleep(seconds, clock)
        begin = clock.monotonic()
        self._news.clear()
        ended = await run_until(self._news.wait(), self._sleep_to_end(seconds, clock))
        return clock.monotonic() - begin if ended is None else ended[0]

    async def _sleep_to_end(self, seconds: float, clock: Clock) -> tuple[float | None]:
        return (await self._sleep(seconds, clock),)


async def _apply_effect(
    effect: Effect, streams: CommandStreams, on_answer: Callable[[], None]
) -> bytes | None:
    match effect:
        case Output(descriptor=descriptor, data=data):
            await streams.write(descriptor, data)
        case Input(limit=limit):
            data = b"" if streams.stdin is None else await streams.stdin.read(limit)
            on_answer()
            return data
        case _:
            pass
    return None


class VolumeCharge(NamedTuple):
    """What counts the growth of volumes in memory as memory of a container."""

    volumes: Sequence[MountedFiles]
    charge: Callable[[int], None]


def in_container(
    execution: Run,
    files: FileSystem | None = None,
    *,
    charge: VolumeCharge | None = None,
    before_sleep: Callable[[], None] | None = None,
) -> Run:
    """Run a command with what its container adds: the memory of its volumes, and what a kubelet would find in a pause.

    With `files`, it is the command of the container itself, which may read files of its image, and never loops without taking time.
    """
    reply: bytes | None = None
    commands, pause = 0, _FIRST_PAUSE
    try:
        while True:
            before = sum(each.inodes.used for each in charge.volumes) if charge is not None else 0
            if files is not None:
                files.unknown.is_partial = True
            try:
                effect = execution.send(reply) if reply else next(execution)
            except StopIteration as stop:
                code: int = stop.value
                return code
            finally:
                if files is not None:
                    files.unknown.is_partial = False
                if charge is not None and (
                    written := sum(each.inodes.used for each in charge.volumes) - before
                ):
                    charge.charge(written)
            if isinstance(effect, Sleep):
                commands, pause = 0, _FIRST_PAUSE
                if before_sleep is not None:
                    before_sleep()
            commands += files is not None and isinstance(effect, CommandStart)
            if commands > _MAX_COMMANDS:
                commands = 0
                if before_sleep is not None:
                    before_sleep()
                yield Sleep(pause)
                pause = min(pause * _PAUSE_FACTOR, 1.0)
            reply = yield effect
    finally:
        execution.close()
