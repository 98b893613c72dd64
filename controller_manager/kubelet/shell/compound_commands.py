"""The execution of `if`, loops and `case`."""

from collections.abc import Generator, Sequence
from typing import Final

from mockube.controller_manager.kubelet.shell.patterns import matches
from mockube.controller_manager.kubelet.shell.process import (
    CommandStart,
    Effect,
    RepeatedIteration,
    Run,
    Sleep,
    Steps,
)
from mockube.controller_manager.kubelet.shell.state import (
    LoopControl,
    Shell,
)
from mockube.controller_manager.kubelet.shell.syntax import (
    ArithmeticFor,
    Case,
    Command,
    CommandList,
    For,
    If,
    Loop,
)
from mockube.controller_manager.kubelet.shell.words import (
    evaluate_word,
    expand_pattern,
    expand_text,
    expand_words,
)

ITERATION_SECONDS: Final = 0.001
"""The duration of a loop's iteration in which no command sleeps."""


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
                before = self._moment()
                condition, continues = yield from self._iterate(command.condition, tested=True)
                if (condition == 0) is not command.is_while or not continues:
                    break
                code, continues = yield from self._iterate(command.body, tested=tested)
                if continues:
                    yield from self._pass_time(before)
        finally:
            self.loops -= 1
        return code

    def _moment(self) -> tuple[int, float, bool]:
        processes = self.process.processes
        return self.changes, processes.time, processes.is_alone()

    def _pass_time(self, before: tuple[int, float, bool]) -> Steps:
        """Let time pass in an iteration without sleep; skip iterations if nothing changed since the beginning of this one."""
        changes, begin, was_alone = before
        processes = self.process.processes
        if processes.time == begin:
            yield Sleep(ITERATION_SECONDS)
        duration = processes.time - begin
        if was_alone and changes == self.changes and duration > 0:
            iterations = yield RepeatedIteration(duration)
            if iterations:
                self.process.host.elapsed += duration * int(iterations)
                processes.skip(duration * int(iterations))

    def execute_for(self, command: For, *, tested: bool) -> Run:
        self.line = command.line
        if command.words is None:
            values: Sequence[str] = list(self.arguments)
        else:
            values = yield from expand_words(self, command.words)
        code = 0
        self.loops += 1
        try:
            for value in values:
                yield CommandStart()  # the body may have no command that counts
                self.assign(command.name, value)
                code, continues = yield from self._iterate(command.body, tested=tested)
                if not continues:
                    break
        finally:
            self.loops -= 1
        return code

    def execute_arithmetic_for(self, command: ArithmeticFor, *, tested: bool) -> Run:
        yield from evaluate_word(self, command.start)
        code, continues = 0, True
        self.loops += 1
        try:
            while continues:
                before = self._moment()
                yield CommandStart()
                if command.condition and not (yield from evaluate_word(self, command.condition)):
                    break
                code, continues = yield from self._iterate(command.body, tested=tested)
                if continues:
                    yield from evaluate_word(self, command.step)
                    yield from self._pass_time(before)
        finally:
            self.loops -= 1
        return code

    def execute_case(self, command: Case, *, tested: bool) -> Run:
        self.line = command.line
        value = yield from expand_text(self, command.word)
        code, falls_through = 0, False
        for branch in command.branches:
            if not falls_through:
                for word in branch.patterns:
                    pattern = yield from expand_pattern(self, word)
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
