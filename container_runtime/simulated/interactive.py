"""One run of a simulated container whose command runs in real time: its state, its log, its output and input."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock, Timer
from mockube.component_base.loop import yield_to_loop
from mockube.container_runtime.attach import attach
from mockube.container_runtime.behavior import KILLED, NOT_SIMULATED, TERM, has_open_input
from mockube.container_runtime.output import AttachedOutput, ContainerOutput
from mockube.container_runtime.runs import ContainerNotFound
from mockube.container_runtime.state import ContainerState, Exit
from mockube.container_runtime.streams import InputStream, Streams

from .command_time import CommandTime
from .network.calls import NetworkCaller
from .run_log import RunLog
from .shell.process import RunningProcess

READ: Final = 4096


class SignalledProcess(Struct, frozen=True):
    """A process of a run, which a signal wakes."""

    pid: int
    name: Sequence[str]
    send_signal: Callable[[int], None]


class InteractiveRun:
    """One run of a container; it implements `CommandStreams` for its command."""

    def __init__(
        self, container: ReadOnlyTree, restarts: int, clock: Clock, on_output: Callable[[], None]
    ) -> None:
        self.container = container
        self.state = ContainerState(restarts=restarts, is_simulated=True)
        self.stdin = InputStream() if has_open_input(container) else None
        """The input, which is empty without `stdin`, and waits for ever with `tty` alone."""
        self.log = RunLog()
        self.task: asyncio.Task[None] | None = None
        self.stop_reason = ""
        self._clock = clock
        self.send_signal: Callable[[int], None] = lambda _: None
        """Sends a signal to the first process of the command."""
        self.send_interrupt: Callable[[], None] = lambda: None
        """Interrupts what an interactive shell of the command runs."""
        self.listed_processes: Callable[[], Sequence[RunningProcess]] = tuple
        """Returns the processes of the command."""
        self.find_stop_code: Callable[[], int | None] = lambda: None
        """Returns the exit code of a first process that ends at once when it is stopped; None for one that goes on, unless a trap ends it."""
        self.stop_code: int | None = None
        """The exit code of a command that ends at once when it is stopped; None for one that goes on, unless a trap ends it."""
        self._kill_at: datetime | None = None
        """When the run is killed, if it is being stopped."""
        self._kill_timer: Timer | None = None
        self.has_paused = asyncio.Event()
        """Set when the command waits for the first time, or ends: what it does at its start is done."""
        self._on_start: Callable[[], None] = lambda: None
        self._started = clock.now()
        self._time = CommandTime(clock)
        self._is_sleeping = False
        self._is_signalled = False
        self._on_output = on_output
        self._output = ContainerOutput()

    async def write(self, stream: int, data: bytes) -> None:
        self.log.write(self.now(), stream, data)
        self._on_output()
        await self._output.send(stream, data)

    def begin(self, on_start: Callable[[], None]) -> None:
        """Begin the command, which counts as started now; `on_start` is called when what it does at its start is done."""
        self._started = self._clock.now()
        self.catch_up()
        self._on_start = on_start

    def now(self) -> datetime:
        """Return the date that the command sees."""
        return self._time.now()

    def catch_up(self) -> None:
        """Let the command be at the present: it has waited for something from outside."""
        self._time.catch_up()

    def pause(self) -> None:
        if self.has_paused.is_set():
            return
        self.has_paused.set()
        self._note_start()
        self._on_start()

    def show_work(self) -> None:
        """Show that the command runs which has not waited yet: it has done more than a command does that fails at its start."""
        if self.state.started is None:
            self._note_start()
            self._on_start()

    def wait_for_program(self, message: str) -> None:
        """Stay at a program that is not simulated, and not be ready."""
        self.pause()
        self.state = replace(self.state, waiting_reason=NOT_SIMULATED, waiting_message=message)
        self._on_start()

    def _note_start(self) -> None:
        if self.state.started is None:
            self.state = replace(self.state, started=self._started, is_ready=True, passed_startup=True)

    def end(self, code: int, reason: str = "", message: str = "") -> None:
        self._cancel_kill()
        self.pause()
        now = self.now()
        self.log.flush(now)
        end = Exit(code=code, at=now, reason=reason, message=message)
        self.state = replace(self.state, exit=end, is_ready=False)
        if self.stdin is not None:
            self.stdin.discard()
        self._output.end()
        self._on_output()

    def terminate(self) -> None:
        """Send SIGTERM to the first process of the command, which may end the run, at once or later."""
        if self.task is None or self.state.exit is not None or self.state.is_stopping:
            return
        self.state = replace(self.state, is_stopping=True)
        if self.stop_code is None:
            self.stop_code = self.find_stop_code()
        if self.stop_code is not None:
            self.task.cancel()
        else:
            self.signal(TERM)

    def signal(self, number: int) -> None:
        """Send a signal to the first process of the command, and wake it up."""
        self._signal(self.send_signal, number)

    def _signal(self, send: Callable[[int], None], number: int) -> None:
        if self.task is None or self.state.exit is not None:
            return
        send(number)
        self.wake()

    def wake(self) -> None:
        """Let the processes of the command see what has happened while all of them sleep."""
        if self.task is not None and self._is_sleeping and not self._is_signalled:
            self._is_signalled = True
            self.task.cancel()

    def processes(self) -> Sequence[RunningProcess]:
        """Return the processes of the command, for commands beside it that send them signals."""
        return [
            SignalledProcess(each.pid, each.name, partial(self._signal, each.send_signal))
            for each in self.listed_processes()
        ]

    def interrupt(self) -> bool:
        """Interrupt what runs, as Ctrl-C does; return whether it was sleeping, and did not wait for input."""
        if self.task is None or self.state.exit is not None:
            return False
        self.send_interrupt()
        self.wake()
        return self._is_sleeping

    def kill(self, reason: str = "") -> None:
        """Kill the run; `reason` is that in the status, empty for Error."""
        if self.task is not None and self.state.exit is None:
            self.stop_reason = reason
            self.state = replace(self.state, is_stopping=True)
            self.stop_code, self._is_signalled = None, False
            self.task.cancel()

    def exit(self, code: int) -> None:
        """End the run as a process does that exits."""
        if self.task is not None and self.state.exit is None:
            self.state = replace(self.state, is_stopping=True)
            self.stop_code, self._is_signalled = code, False
            self.task.cancel()

    def kill_by(self, deadline: datetime) -> None:
        """Kill the run at a time, unless it ends or is to be killed earlier."""
        if self.state.exit is not None or (self._kill_at is not None and self._kill_at <= deadline):
            return
        self._cancel_kill()
        self._kill_at = deadline
        seconds = (deadline - self._clock.now()).total_seconds()
        if seconds > 0:
            self._kill_timer = self._clock.call_later(seconds, self.kill)
        else:
            self.kill()

    def _cancel_kill(self) -> None:
        if self._kill_timer is not None:
            self._kill_timer.cancel()
            self._kill_timer = None

    def end_stopped(self) -> None:
        """Record the end of a run whose task was cancelled."""
        self.catch_up()
        self.end(KILLED if self.stop_code is None else self.stop_code, self.stop_reason)

    async def sleep(self, seconds: float, clock: Clock) -> float | None:
        """Sleep for the command, by a clock; return the time after which a signal has ended the sleep, None without one.

        A sleep that is over at the present time does not wait for the next step of an advance.
        """
        remaining = self._time.begin_sleep(seconds)
        self.pause()
        self._is_sleeping = True
        try:
            await (clock.sleep(remaining) if remaining > 0 else yield_to_loop())
        except asyncio.CancelledError:
            if not self._is_signalled or self.task is None:
                raise
            self._is_signalled = False
            self.task.uncancel()
            return self._time.interrupt_sleep()
        finally:
            self._is_sleeping = False
        self._time.end_sleep(seconds, clock)
        return None

    def pausing(
        self, network: NetworkCaller, is_starting: Callable[[], bool] = lambda: False
    ) -> NetworkCaller:
        """Return the network of the command, at which it waits, too, unless its server is starting, for which it looks up names."""

        async def call(request: bytes) -> bytes:
            if not is_starting():
                self.pause()
            return await network(request)

        return call

    @contextmanager
    def listen(self) -> Iterator[AttachedOutput]:
        """Queue the output from now on, up to `OUTPUT_END`.

        It raises `ContainerNotFound` if the run has ended; kubectl then reads the log.
        """
        if self.state.exit is not None:
            raise ContainerNotFound(self.container["name"])
        with self._output.listen() as output:
            yield output

    async def attach(self, output: AttachedOutput, streams: Streams) -> None:
        """Send the output to a client, and receive its input."""
        if self.stdin is None or not self.container.get("stdin"):
            await attach(output, streams, None)
        else:
            await attach(output, streams, partial(self._forward_input, self.stdin))

    async def _forward_input(self, stdin: InputStream, source: InputStream) -> None:
        while data := await source.read(READ):
            await stdin.feed(data)
        if self.container.get("stdinOnce"):
            await stdin.end()
