"""The execution of a script of `sed`."""

from collections.abc import Generator, Iterator, Sequence
from typing import Final

from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.posix_matches import (
    SCANNED_PER_COMMAND,
    SearchSteps,
    Spans,
    find_matches,
)
from mockube.container_runtime.simulated.shell.process import (
    CommandStart,
    Effect,
    Process,
    Run,
    count_work,
    write_text,
)
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError

from .sed_script import LineAddress, SedCommand, SedError, SedSubstitution

_CHARACTERS_PER_COMMAND: Final = 16 * 1024
_STEPS_PER_COMMAND: Final = 100
_Work = Generator[Effect, bytes | None, None]


class _Quit(Exception):
    def __init__(self, code: int, *, prints: bool) -> None:
        super().__init__(code)
        self.code = code
        self.prints = prints


class _NextCycle(Exception):
    """The cycle ends without output; with `keeps_space`, the next one begins without reading a line."""

    def __init__(self, *, keeps_space: bool = False) -> None:
        super().__init__(keeps_space)
        self.keeps_space = keeps_space


class SedOptions:
    def __init__(self) -> None:
        self.scripts: list[str] = []
        self.files: list[str] = []
        self.is_quiet = self.is_extended = self.edits = self.is_separate = False
        self.suffix = ""
        self.names: list[str] = []


class SedEditor:
    def __init__(
        self,
        process: Process,
        options: SedOptions,
        commands: Sequence[SedCommand],
        labels: dict[str, int],
        text: str,
        *,
        keeps_output: bool = False,
    ) -> None:
        self._process = process
        self._is_quiet = options.is_quiet
        self._commands = commands
        self._labels = labels
        self._text = text
        self._position = 0
        """Where the next line begins."""
        self._next = 0
        """The number of lines that were read."""
        self._space = self._hold = ""
        self._output: list[str] = []
        self._appended: list[str] = []
        self._keeps_output = keeps_output
        self._range_ends: dict[int, int] = {}
        """The last line of each active range; -1 if it is not known yet."""
        self._last_expression = ""
        self._steps = self._work = 0
        self._searches = SearchSteps()
        self._is_changed = False

    def take_output(self) -> str:
        output, self._output = "".join(self._output), []
        return output

    def _is_last(self) -> bool:
        return self._position >= len(self._text)

    def _print(self, text: str) -> None:
        newline = "" if self._is_last() and not self._text.endswith("\n") else "\n"
        if newline and self._output and self._output[-1] and not self._output[-1].endswith("\n"):
            self._output.append("\n")
        self._output.append(text + newline)

    def _read_line(self) -> None:
        end = self._text.find("\n", self._position)
        end = len(self._text) if end < 0 else end
        self._space = self._text[self._position : end]
        self._position = end + 1
        self._next += 1

    def run(self) -> Run:
        keeps_space = False
        while keeps_space or not self._is_last():
            if not keeps_space:
                self._read_line()
            keeps_space = False
            try:
                yield from self._cycle()
            except _NextCycle as end:
                keeps_space = end.keeps_space
                self._flush_appended()
                continue
            except _Quit as quit_:
                if quit_.prints:
                    self._end_cycle()
                return quit_.code
            self._end_cycle()
            if not self._keeps_output and len(self._output) > 100:
                yield write_text(self.take_output())
        return 0

    def _end_cycle(self) -> None:
        if not self._is_quiet:
            self._print(self._space)
        self._flush_appended()

    def _flush_appended(self) -> None:
        self._output += self._appended
        self._appended.clear()

    def _cycle(self) -> _Work:
        index = 0
        self._is_changed = False
        while index < len(self._commands):
            self._steps += 1
            if self._steps % _STEPS_PER_COMMAND == 0:
                yield CommandStart()
            self._work += len(self._space)
            if (
                self._steps > limits.MAX_SED_STEPS
                or self._work > limits.MAX_SED_WORK
                or len(self._space) + len(self._hold) > limits.MAX_SED_SPACE
            ):
                raise SedError("the input needs too many steps")
            command = self._commands[index]
            index += 1
            size = len(self._space)
            if command.substitution is not None and command.substitution.is_global:
                yield from count_work(size**2, SCANNED_PER_COMMAND)
            else:
                yield from count_work(size, _CHARACTERS_PER_COMMAND)
            if self._is_selected(index, command) is command.negated:
                if command.name == "{":
                    index = command.end
            elif command.substitution is not None:
                yield from self._substitute(command.substitution)
            else:
                target = self._execute(command, index)
                index = index if target is None else target
            yield from self._searches.count()

    # --- addresses

    def _is_selected(self, index: int, command: SedCommand) -> bool:
        first, second = command.first, command.second
        if first is None:
            return True
        if second is None:
            return self._matches(first)
        end = self._range_ends.get(index)
        if end is None:
            is_zero = first.line == 0 and not first.is_last and first.expression is None and not first.step
            if is_zero and self._next == 1:
                self._range_ends[index] = -1
                return self._continue_range(index, second)
            if not self._matches(first):
                return False
            self._begin_range(index, second)
            return True
        return self._continue_range(index, second)

    def _begin_range(self, index: int, second: LineAddress) -> None:
        line = self._next
        if second.expression is not None or second.is_last:
            if not (second.is_last and self._is_last()):
                self._range_ends[index] = -1
            return
        if second.multiple:
            last_line = line + (-line) % second.multiple
        else:
            last_line = line + second.relative if second.relative else second.line
        if last_line > line:
            self._range_ends[index] = last_line

    def _continue_range(self, index: int, second: LineAddress) -> bool:
        end = self._range_ends[index]
        if end < 0:
            if self._matches(second):
                del self._range_ends[index]
            return True
        if self._next >= end:
            del self._range_ends[index]
        return self._next <= end

    def _matches(self, address: LineAddress) -> bool:
        if address.expression is not None:
            return next(self._find(address.expression, self._space, 1), None) is not None
        if address.is_last:
            return self._is_last()
        if address.step:
            return self._next >= address.line and (self._next - address.line) % address.step == 0
        return self._next == address.line

    def _find(self, expression: str, text: str, maximum: int = -1) -> Iterator[Spans]:
        expression = expression or self._last_expression
        if not expression:
            raise SedError("no previous regular expression")
        self._last_expression = expression
        return find_matches(expression, text, maximum, count_steps=self._searches.add)

    # --- commands

    def _execute(self, command: SedCommand, index: int) -> int | None:
        """Execute a command; return the index of the next one if it is not the following one."""
        name = command.name
        if name in "btT{:":
            return self._jump(command)
        if name in "dDnNqQ":
            self._control(command)
        elif name in "gGhHx":
            self._exchange(name)
        elif name == "y":
            self._space = self._space.translate(command.table or {})
        elif name in "aicr":
            self._insert(command, index)
        elif name == "w":
            self._write(command.text, self._space)
        else:
            self._show(name)
        return None

    def _jump(self, command: SedCommand) -> int | None:
        if command.name in "{:":
            return None
        if command.name in "tT":
            jumps = self._is_changed is (command.name == "t")
            self._is_changed = False
            if not jumps:
                return None
        return self._labels[command.text] if command.text else len(self._commands)

    def _control(self, command: SedCommand) -> None:
        match command.name:
            case "d":
                raise _NextCycle
            case "D":
                _, newline, self._space = self._space.partition("\n")
                raise _NextCycle(keeps_space=bool(newline))
            case "n":
                if self._is_last():
                    raise _Quit(0, prints=True)
                if not self._is_quiet:
                    self._print(self._space)
                self._flush_appended()
                self._read_line()
            case "N":
                if self._is_last():
                    raise _Quit(0, prints=True)
                self._flush_appended()
                before = self._space
                self._read_line()
                self._space = f"{before}\n{self._space}"
            case _:
                raise _Quit(int(command.text or 0), prints=command.name == "q")

    def _exchange(self, name: str) -> None:
        if name == "x":
            self._space, self._hold = self._hold, self._space
        elif name == "g":
            self._space = self._hold
        elif name == "G":
            self._space = f"{self._space}\n{self._hold}"
        elif name == "h":
            self._hold = self._space
        else:
            self._hold = f"{self._hold}\n{self._space}"

    def _insert(self, command: SedCommand, index: int) -> None:
        if command.name == "i":
            self._output.append(command.text)
        elif command.name == "a":
            self._appended.append(command.text)
        elif command.name == "r":
            try:
                data = self._process.host.files.read(self._process.path(command.text))
            except FileError:
                return
            self._appended.append(data.decode("utf-8", "surrogateescape"))
        else:
            if command.second is None or index not in self._range_ends or command.negated:
                self._output.append(command.text)
            raise _NextCycle

    def _show(self, name: str) -> None:
        if name == "p":
            self._print(self._space)
        elif name == "P":
            self._output.append(self._space.partition("\n")[0] + "\n")
        elif name == "=":
            self._output.append(f"{self._next}\n")
        else:
            text = self._space.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
            self._output.append(f"{text}$\n")

    def _write(self, name: str, text: str) -> None:
        if name in ("/dev/stdout", "/dev/stderr"):
            self._output.append(f"{text}\n")
            return
        path, host = self._process.path(name), self._process.host
        try:
            host.files.write(
                path, f"{text}\n".encode(), append=True, modified=host.now_running(is_shown=True).timestamp()
            )
        except FileError as error:
            raise SedError(f"couldn't open file {name}: {error}") from error

    def _substitute(self, command: SedSubstitution) -> _Work:
        space = self._space
        parts: list[str] = []
        position, size = 0, 0
        maximum = -1 if command.is_global else command.number
        for number, spans in enumerate(self._find(command.expression, space, maximum), start=1):
            yield from self._searches.count()
            if number < command.number:
                continue
            start, end = spans[0]
            replacement = "".join(
                part if isinstance(part, str) else self._group(spans, part) for part in command.replacement
            )
            parts += [space[position:start], replacement]
            size += len(replacement)
            if size > limits.MAX_SED_SPACE:
                raise SedError("the line is too long")
            position = end
        if not parts:
            return
        self._space = "".join(parts) + space[position:]
        self._is_changed = True
        if command.prints:
            self._print(self._space)
        if command.file:
            self._write(command.file, self._space)

    def _group(self, spans: Spans, number: int) -> str:
        if number >= len(spans):
            raise SedError(f"invalid reference \\{number} on 's' command's RHS")
        start, end = spans[number]
        return self._space[start:end] if start >= 0 else ""
