"""The execution of `if`, loops and `case`."""

from collections.abc import Generator, Sequence
from math import inf
from typing import Final, NamedTuple

from . import words
from .patterns import matches, parse_pattern
from .process import CommandStart, Effect, RepeatedIteration, Run, Sleep, fill_memory
from .state import LoopControl, Shell
from .syntax import ArithmeticFor, Case, Command, CommandList, For, If, Loop
from .variables import ReadOnlyVariable, ValueTooLong

ITERATION_SECONDS: Final = 0.001
"""The duration of a loop's iteration in which no command sleeps."""
TIMED_ITERATIONS: Final = 1_000
"""The number of iterations that read the time, which may end the loop, before it counts as one that nothing ends."""


class _IterationStart(NamedTuple):
    """The state at the beginning of an iteration."""

    changes: int
    time: float
    is_alone: bool
    time_reads: int
    busy_seconds: float


class CompoundCommands(Shell):
    """The part of a shell that executes conditions and loops."""

    def execute_if(self, command: If, *, tested: bool) -> Run:
        for condition, body in command.branches:
            if (yield from self.run(condition, tested=True)) == 0:
                return (yield from self.run(body, tested=tested))
        return 0 if command.otherwise is None else (yield from self.run(command.otherwise, tested=tested))

    def _iterate(self, body: Command, *, tested: bool) -> Generator[Effect, bytes | None, tuple[int, bool]]:
        """Execute an iteration; return its code and whether the loop continues."""
        try:
            return (yield from self.run(body, tested=tested)), True
        except LoopControl as control:
            if control.levels > 1:
                raise LoopControl(control.levels - 1, is_continue=control.is_continue) from None
            return 0, control.is_continue

    def execute_loop(self, command: Loop, *, tested: bool) -> Run:
        code, continues, timed = 0, True, 0
        self.loops += 1
        try:
            while continues:
                before = self._iteration_start()
                condition, continues = yield from self._iterate(command.condition, tested=True)
                if (condition == 0) is not command.is_while or not continues:
                    break
                code, continues = yield from self._iterate(command.body, tested=tested)
                if continues:
                    timed = yield from self._pass_time(before, timed)
        except ValueTooLong:  # a loop without a number of iterations lets it grow on
            yield from fill_memory(self.process, inf)
        finally:
            self.loops -= 1
        return code

    def _iteration_start(self) -> _IterationStart:
        processes = self.process.processes
        return _IterationStart(
            self.changes,
            processes.time,
            processes.is_alone(),
            self.process.host.time_reads,
            processes.busy_seconds,
        )

    def _pass_time(self, before: _IterationStart, timed: int) -> Generator[Effect, bytes | None, int]:
        """Let time pass in an iteration without sleep; skip iterations if nothing changed since the beginning of this one.

        `timed` is the number of earlier iterations that have read the time; it is returned with this one. A loop that reads
        the time may end at one.
        """
        processes = self.process.processes
        timed += self.process.host.time_reads != before.time_reads
        if processes.time == before.time:
            yield Sleep(ITERATION_SECONDS, cores=1.0)
        duration = processes.time - before.time
        depends_on_time = 0 < timed <= TIMED_ITERATIONS
        if before.is_alone and before.changes == self.changes and duration > 0 and not depends_on_time:
            cores = (processes.busy_seconds - before.busy_seconds) / duration
            iterations = yield RepeatedIteration(duration, cores)
            if iterations:
                self.process.host.elapsed += duration * int(iterations)
                processes.skip(duration * int(iterations))
        return timed

    def execute_for(self, command: For, *, tested: bool) -> Run:
        self.line = command.line
        if command.words is None:
            values: Sequence[str] = list(self.arguments)
        else:
            values = yield from words.expand_words(self, command.words)
        code = 0
        self.loops += 1
        try:
            for value in values:
                yield CommandStart()  # the body may have no command that counts
                try:
                    self.assign(command.name, value)
                except ReadOnlyVariable as error:
                    if not self.is_bash:
                        raise
                    yield from self.report(error.bash)
                    return 1
                code, continues = yield from self._iterate(command.body, tested=tested)
                if not continues:
                    break
        finally:
            self.loops -= 1
        return code

    def execute_arithmetic_for(self, command: ArithmeticFor, *, tested: bool) -> Run:
        yield from words.evaluate_word(self, command.start)
        code, continues, timed = 0, True, 0
        self.loops += 1
        try:
            while continues:
                before = self._iteration_start()
                yield CommandStart()
                if command.condition and not (yield from words.evaluate_word(self, command.condition)):
                    break
                code, continues = yield from self._iterate(command.body, tested=tested)
                if continues:
                    yield from words.evaluate_word(self, command.step)
                    timed = yield from self._pass_time(before, timed)
        finally:
            self.loops -= 1
        return code

    def execute_case(self, command: Case, *, tested: bool) -> Run:
        self.line = command.line
        value = yield from words.expand_text(self, command.word)
        ignores_case = "nocasematch" in self.features
        value = value.lower() if ignores_case else value
        code, falls_through = 0, False
        for branch in command.branches:
            if not falls_through:
                for word in branch.patterns:
                    pieces = yield from words.pattern_pieces(self, word)
                    if ignores_case:
                        pieces = [(text.lower(), quoted) for text, quoted in pieces]
                    pattern = parse_pattern(pieces)
                    if (yield from matches(value, pattern)):
                        break
                else:
                    continue
            if branch.body != CommandList(()):
                code = yield from self.run(branch.body, tested=tested)
            else:
                code = 0
            if branch.end == ";;":
                return code
            falls_through = branch.end == ";&"
        return code
