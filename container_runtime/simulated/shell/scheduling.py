"""The processes of a command: pipelines and background jobs, which run beside each other in virtual time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from math import inf
from typing import Final, NamedTuple

from . import limits
from .process import (
    BrokenPipe,
    Child,
    DescriptorStream,
    Effect,
    ForegroundProgram,
    ProgramKilled,
    RepeatedIteration,
    Run,
    Sleep,
    WaitUntil,
    count_work,
)
from .signals import SIGNAL_CODE
from .state import ExpansionError

_GAP: Final = 5
"""The distance of the ids of the first process and the next one."""
KILL: Final = 9
_PIPE: Final = 13
_INTERRUPT: Final = 2
_CONTINUE, _STOP = 18, 19
_IGNORED: Final = frozenset({17, 23, 28})
"""The signals that have no effect on a process which does not handle them: CHLD, URG, WINCH."""
_STOPPING: Final = frozenset({_STOP, 20, 21, 22})
"""The signals that stop a process until it gets CONT: STOP, TSTP, TTIN, TTOU."""


_FEW_PROCESSES: Final = 64
_PROCESS_SIZE: Final = 512 << 10
"""The memory of a process of a shell, besides what it shares with that which has started it."""
_CHECKED_AT_ONCE: Final = 16
_CHECKED_PER_COMMAND: Final = 24


class TooManyProcesses(ExpansionError):
    """A process cannot be started, which ends the shell that starts it."""

    def __init__(self) -> None:
        super().__init__("Cannot fork", "fork: retry: Resource temporarily unavailable")


class ProcessEntry(NamedTuple):
    """A process as ps lists it: one of a command, or the program for which a shell waits."""

    pid: int
    name: Sequence[str]
    send_signal: Callable[[int], None]
    owner: "SimulatedProcess"
    """The process that executes it."""


class SimulatedProcess:
    """A process: its execution, and what it waits for."""

    def __init__(
        self,
        pid: int,
        name: Sequence[str],
        execution: Run,
        descriptors: Mapping[int, DescriptorStream],
        now: Callable[[], float],
    ) -> None:
        self.pid = pid
        self.name = name
        self.code: int | None = None
        self.started = now()
        self.ended = inf
        self._now = now
        self.execution = execution
        self.tables: list[Mapping[int, DescriptorStream]] = [descriptors]
        """The descriptors of the process and of what it executes."""
        self.reply: bytes | None = None
        self.wake_time = 0.0
        self.cores = 0.0
        """The cores that it keeps busy until it wakes."""
        self.is_routine = False
        """Whether it waits for the time of a check that has no effect while nothing else changes."""
        self.condition: WaitUntil | None = None
        self.caught_signals: Mapping[int, str] = {}
        """The signals that the process handles with a trap, or ignores with an empty text."""
        self.pending_signals: list[int] = []
        self.is_interactive = False
        """Whether an interrupt ends the command that it executes, and not the process itself."""
        self.is_interrupted = False
        self.programs: list[ForegroundProgram] = []
        """The programs that a shell has started in it, and waits for."""
        self.killed: ProgramKilled | None = None
        """The program of these that a signal is to end."""
        self.is_protected = False
        """Whether it is the first process of a namespace, which gets only those signals from it that it handles."""
        self.replaced: SimulatedProcess | None = None
        """The process whose place it has taken."""
        self.is_replaced = False
        """Whether another one has taken its place."""
        self.is_stopped = False
        self.killed_by = 0
        """The signal that has ended the process."""
        self.memory_bytes = 0
        """The bytes that it keeps in memory."""

    def is_ready(self, time: float) -> bool:
        if self.is_stopped:
            return False
        if self.condition is not None and (self.condition.condition() or self.pending_signals):
            self.wake_time = time
        if self.wake_time > time:
            return False
        self.condition = None
        return True

    def is_running(self) -> bool:
        return self.code is None

    def send_signal(self, number: int) -> None:
        if self.code is not None:
            return
        if number == _CONTINUE:
            self.is_stopped = False
        if number not in (KILL, _STOP) and (trap := self.caught_signals.get(number)) is not None:
            if trap:
                self.pending_signals.append(number)
        elif not self.is_protected:
            self._react(number, None)

    def signal_program(self, program: ForegroundProgram, number: int) -> None:
        """Send a signal to a program for which the shell of the process waits; it handles none."""
        if self.code is None and program in self.programs and (number == KILL or self._may_end_by(number)):
            self._react(number, program)

    def _may_end_by(self, number: int) -> bool:
        """Return whether a program that the process starts is not started with a signal ignored."""
        return self.caught_signals.get(number) != ""

    def _react(self, number: int, program: ForegroundProgram | None) -> None:
        """Do what a signal does that nobody handles: to a program for which the shell waits, or to the process."""
        if number in _STOPPING or number == _CONTINUE:
            self.is_stopped = number in _STOPPING
        elif not number or number in _IGNORED:
            return
        elif program is None:
            self.killed_by = number
            self.end(SIGNAL_CODE + number)
        else:
            self.killed = ProgramKilled(program, number)
            self.condition, self.wake_time = None, 0.0

    def end(self, code: int) -> None:
        if self.code is None:
            self.code, self.ended = code, self._now()
            if self.replaced is not None:
                self.replaced.is_replaced = False
        self.tables = []


class ProcessScheduler:
    """It implements `ProcessTable`."""

    def __init__(
        self,
        first_pid: int = 1,
        *,
        is_protected: bool = False,
        change_memory: Callable[[float], None] = lambda _: None,
    ) -> None:
        """`is_protected` says whether the first process is that of its namespace; `change_memory` changes what processes use."""
        self.time = 0.0
        self._first_pid = first_pid
        self._is_protected = is_protected
        self._change_memory = change_memory
        self._memory = 0
        """The memory of the processes themselves."""
        self._memory_bytes = 0
        """The bytes that all processes keep in memory."""
        self.wakes = 0
        self.busy_seconds = 0.0
        self._processes: list[SimulatedProcess] = []
        self._next_pid = first_pid + _GAP
        self.current: SimulatedProcess | None = None

    def is_alone(self) -> bool:
        return all(
            process is self.current or (process.condition is not None and process.wake_time == inf)
            for process in self._processes
            if process.code is None
        )

    def start(
        self,
        name: Sequence[str],
        execution: Run,
        descriptors: Mapping[int, DescriptorStream],
        *,
        is_executed: bool = False,
    ) -> SimulatedProcess:
        alive = [process for process in self._processes if process.code is None]
        if len(alive) >= limits.MAX_PROCESSES:
            raise TooManyProcesses
        replaced = self.current if is_executed else None
        pid = self._next_pid if replaced is None else replaced.pid
        process = SimulatedProcess(pid, name, execution, descriptors, lambda: self.time)
        if replaced is None:
            self._next_pid += 1
        else:
            process.is_protected, process.replaced, replaced.is_replaced = (
                replaced.is_protected,
                replaced,
                True,
            )
        if self.current is not None:  # A child inherits what its parent ignores.
            process.caught_signals = {
                number: action for number, action in self.current.caught_signals.items() if not action
            }
        self._processes.append(process)
        self._count_memory(len(alive) + 1)
        return process

    def _count_memory(self, count: int) -> None:
        """Count the memory of processes if there are many: few take no more than a container has in any case."""
        size = max(count - _FEW_PROCESSES, 0) * _PROCESS_SIZE
        change, self._memory = size - self._memory, size
        if change:
            self._change_memory(change)

    def holds(self, stream: DescriptorStream) -> bool:
        return any(
            stream is other
            for process in self._processes
            for table in process.tables
            for other in table.values()
        )

    @contextmanager
    def hold(self, descriptors: Mapping[int, DescriptorStream]) -> Iterator[None]:
        process = self.current
        if process is None:
            yield
            return
        tables = process.tables
        tables.append(descriptors)
        try:
            yield
        finally:
            for index in range(len(tables) - 1, -1, -1):
                if tables[index] is descriptors:
                    del tables[index]
                    break

    def keep(self, size: int) -> None:
        """Note that the present process keeps so many bytes more in memory, or fewer: a container whose processes keep too many ends as without memory."""
        if self.current is not None:
            self.current.memory_bytes += size
            self._memory_bytes += size
            if size > 0 and self._memory_bytes > limits.MAX_KEPT:
                self._change_memory(inf)

    @contextmanager
    def kept_until_end(self) -> Iterator[None]:
        """Free at the end of a program or a shell what the present process has kept for it."""
        process = self.current
        before = 0 if process is None else process.memory_bytes
        try:
            yield
        finally:
            if process is not None:
                self._memory_bytes -= process.memory_bytes - before
                process.memory_bytes = before

    def children(self) -> Sequence[SimulatedProcess]:
        return [process for process in self._processes if process.code is None and not process.is_replaced]

    def listed_processes(self) -> Sequence[ProcessEntry]:
        children = sorted(self.children(), key=lambda process: process.pid)
        programs = [
            (program, process)
            for process in children
            for program in process.programs
            if not (program.child is not None and program.child.is_running())
        ]
        return [
            *(ProcessEntry(process.pid, process.name, process.send_signal, process) for process in children),
            *(
                ProcessEntry(pid, program.argv, partial(process.signal_program, program), process)
                for pid, (program, process) in enumerate(programs, start=self._next_pid)
            ),
        ]

    @contextmanager
    def execute(self, argv: Sequence[str], *, replaces_shell: bool) -> Iterator[ForegroundProgram]:
        process, program = self.current, ForegroundProgram(argv)
        if process is None:
            yield program
            return
        name = process.name
        if replaces_shell:
            process.name = argv
        else:
            process.programs.append(program)
        try:
            yield program
        finally:
            if replaces_shell:
                process.name = name
            else:
                process.programs.remove(program)

    def become(self, argv: Sequence[str]) -> None:
        process = self.current
        if process is not None and process.programs:
            process.programs[-1].argv = argv
        elif process is not None:
            process.name = argv

    def note_child(self, child: Child) -> None:
        if self.current is not None and self.current.programs:
            self.current.programs[-1].child = child

    def skip(self, seconds: float) -> None:
        self.time += seconds

    def catch_signals(self, actions: Mapping[int, str]) -> Mapping[int, str]:
        process = self.current
        assert process is not None
        before, process.caught_signals = process.caught_signals, actions
        return before

    def ignored_signals(self) -> frozenset[int]:
        caught = {} if self.current is None else self.current.caught_signals
        return frozenset(number for number, action in caught.items() if not action)

    def take_signals(self) -> Sequence[int]:
        if self.current is None:
            return ()
        numbers = self.current.pending_signals
        self.current.pending_signals = []
        return numbers

    def has_signals(self) -> bool:
        return self.current is not None and bool(self.current.pending_signals)

    def next_pid(self) -> int:
        """Return the id of the process that is started next."""
        return self._next_pid

    def current_pid(self) -> int:
        return self.current.pid if self.current is not None else 0

    def first_signal(self) -> int:
        return self.current.pending_signals[0] if self.current is not None else 0

    def interrupt(self) -> None:
        """Interrupt what runs in the foreground, as Ctrl-C does: all processes but the shells that read commands."""
        for process in self.children():
            if not process.is_interactive:
                process.send_signal(_INTERRUPT)
            elif process.condition is None:
                process.is_interrupted, process.wake_time = True, self.time

    def take_interrupt(self) -> bool:
        """Return whether the command of the present process was interrupted, once for each interrupt."""
        process = self.current
        if process is None or not process.is_interrupted:
            return False
        process.is_interrupted = False
        return True

    def be_interactive(self) -> None:
        """Let interrupts end the commands of the present process, and not itself."""
        if self.current is not None:
            self.current.is_interactive = True

    def signal_first(self, number: int) -> None:
        """Send a signal to the first process of the command."""
        first = next((process for process in self.children() if process.pid == self._first_pid), None)
        if first is not None:
            first.send_signal(number)

    def run(self, name: Sequence[str], execution: Run, descriptors: Mapping[int, DescriptorStream]) -> Run:
        """Execute the first process to its end, and the others until then."""
        first = SimulatedProcess(self._first_pid, name, execution, descriptors, lambda: self.time)
        first.is_protected = self._is_protected
        self._processes.append(first)
        try:
            while first.code is None:
                is_idle = True
                for index, process in enumerate(list(self._processes), start=1):
                    if not index % _CHECKED_AT_ONCE:  # What one waits for may depend on all others.
                        yield from count_work(len(self._processes), _CHECKED_PER_COMMAND)
                    if process.code is not None:
                        process.execution.close()
                        self._processes.remove(process)
                        continue
                    if process.is_ready(self.time):
                        is_idle = False
                        yield from self._advance(process)
                        if first.code is not None:
                            break
                if self._memory:
                    self._count_memory(len(self._processes))
                if is_idle and first.code is None:
                    yield from self._sleep()
        finally:
            for process in self._processes:
                process.execution.close()
            self._processes.clear()
            self.current = None
        return first.code

    def _sleep(self) -> Run:
        alive = [process for process in self._processes if process.code is None and not process.is_stopped]
        wake_time = min((process.wake_time for process in alive), default=inf)
        cores = sum(process.cores for process in alive)
        watches = any(process.condition is not None and process.condition.watches_files for process in alive)
        is_routine = wake_time < inf and all(each.is_routine for each in alive if each.wake_time < inf)
        slept = yield Sleep(wake_time - self.time, cores, watches, is_routine)
        self.wakes += bool(slept)
        begin, self.time = self.time, wake_time if not slept else self.time + float(slept)
        if cores:
            self.busy_seconds += cores * (self.time - begin)
        return 0

    def _advance(self, process: SimulatedProcess) -> Run:
        """Execute a process until it waits or ends."""
        while process.code is None:
            self.current = process
            try:
                effect = self._step(process)
            except StopIteration as stop:
                process.end(stop.value)
                break
            except BrokenPipe:
                process.end(SIGNAL_CODE + _PIPE)
                break
            process.reply = None
            if isinstance(effect, Sleep):
                process.wake_time, process.cores = self.time + effect.seconds, effect.cores
                process.is_routine = effect.is_routine
                if effect.seconds:
                    break
            elif isinstance(effect, WaitUntil):
                process.condition, process.cores, process.is_routine = effect, 0.0, False
                process.wake_time = self.time + effect.seconds
                break
            elif not isinstance(effect, RepeatedIteration) or self.is_alone():
                process.reply = yield effect
        if process.code is not None:
            process.execution.close()
        return 0

    @staticmethod
    def _step(process: SimulatedProcess) -> Effect:
        if process.killed is not None:
            killed, process.killed = process.killed, None
            return process.execution.throw(killed)
        return process.execution.send(process.reply) if process.reply else next(process.execution)
