"""The execution of `if`, loops and `case`."""

from collections.abc import Generator, Sequence
from math import inf
from typing import Final, NamedTuple

from . import words
from .lasting_loops import lasts
from .messages import message_of
from .patterns import matches, parse_pattern
from .process import CommandStart, Effect, RepeatedIteration, Run, Sleep, Steps, fill_memory
from .state import DiscardError, LoopControl, Shell
from .syntax import ArithmeticFor, Case, Command, CommandList, For, If, Loop, Word
from .variables import ReadOnlyVariable, ValueTooLong

ITERATION_SECONDS: Final = 0.001
"""The duration of a loop's iteration in which no command sleeps."""


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
        code, continues = 0, True
        self.loops += 1
        try:
            while continues:
                before = self._iteration_start()
                condition, continues = yield from self._iterate(command.condition, tested=True)
                if (condition == 0) is not command.is_while or not continues:
                    break
                code, continues = yield from self._iterate(command.body, tested=tested)
                if continues:
                    yield from self._pass_time(before, command)
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

    def _pass_time(self, before: _IterationStart, loop: Loop | ArithmeticFor) -> Steps:
        """Let time pass in an iteration without sleep; skip iterations if nothing but the time changed since the beginning of this one.

        A loop that reads the time may end as it demands.
        """
        processes, host = self.process.processes, self.process.host
        if processes.time == before.time:
            yield Sleep(ITERATION_SECONDS, cores=1.0)
        duration, changes = processes.time - before.time, self.changes != before.changes
        may_end = changes or host.time_reads != before.time_reads
        if not before.is_alone or duration <= 0 or (may_end and not self._lasts(loop)):
            return
        cores = (processes.busy_seconds - before.busy_seconds) / duration
        iterations = yield RepeatedIteration(duration, cores, changes)
        if iterations:
            host.elapsed += duration * int(iterations)
            processes.skip(duration * int(iterations))

    def _lasts(self, loop: Loop | ArithmeticFor) -> bool:
        return isinstance(loop, Loop) and lasts(loop, self)

    def execute_for(self, command: For, *, tested: bool) -> Run:
        self.line = command.line
        if not (command.name.isascii() and command.name.isidentifier()):
            yield from self.report(f"`{command.name}': not a valid identifier")
            return 1
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

    def evaluate(self, expression: Word, line: int) -> Generator[Effect, bytes | None, int | None]:
        """Return the value of an expression in `((`; None for an invalid one, about which there is a message."""
        self.line = line
        try:
            return (yield from words.evaluate_word(self, expression))
        except DiscardError as error:
            yield from self.report(f"((: {message_of(error, is_bash=self.is_bash)}")
            return None

    def execute_arithmetic_for(self, command: ArithmeticFor, *, tested: bool) -> Run:
        if (yield from self.evaluate(command.start, command.line)) is None:
            return 1
        code, continues = 0, True
        self.loops += 1
        try:
            while continues:
                before = self._iteration_start()
                yield CommandStart()
                condition = command.condition
                value = (yield from self.evaluate(condition, command.line)) if condition else 1
                if not value:
                    return code if value == 0 else 1
                code, continues = yield from self._iterate(command.body, tested=tested)
                if continues:
                    if (yield from self.evaluate(command.step, command.line)) is None:
                        return 1
                    yield from self._pass_time(before, command)
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
                    pattern = yield from parse_pattern(pieces)
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
