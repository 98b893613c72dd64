"""The state of a running awk program: variables, arrays, frames of functions, and output."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Final

from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.process import Process
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError

from .awk_lexer import AwkError, AwkNode
from .awk_parser import AwkProgram
from .awk_records import AwkRecords
from .awk_values import AwkValue, InputText, to_number, to_text

STEPS_PER_COMMAND: Final = 100
"""The statements and operands that take the time of a command of the shell."""
_STEPS_PER_PAUSE: Final = 5_000
_STEPS_PER_SEARCH: Final = 10
_SEARCH_STEPS: Final = 400
_COPIED_PER_STEP: Final = 1_000
AwkArray = dict[str, AwkValue]
Local = AwkValue | AwkArray


class AwkState(AwkRecords):
    def __init__(self, process: Process, program: AwkProgram, arguments: Sequence[str]) -> None:
        super().__init__(process, arguments)
        self.program = program
        self.arrays.update(ENVIRON={name: InputText(value) for name, value in process.environment.items()})
        self.errors: list[str] = []
        self.frames: list[dict[str, Local]] = []
        self._output: list[str] = []
        self._output_size = 0
        self._commands: dict[str, list[str]] = {}
        self._closed: list[tuple[str, str]] = []
        self._opened: set[str] = set()
        self._steps = 0
        self._stored = 0
        """The characters that were assigned to elements since all were counted."""

    # --- output

    def take_output(self) -> str:
        output, self._output, self._output_size = "".join(self._output), [], 0
        return output

    def take_closed(self) -> list[tuple[str, str]]:
        """Return the commands that are executed now, with their input."""
        closed, self._closed = self._closed, []
        return closed

    def close_all(self) -> None:
        self._closed += [(command, "".join(texts)) for command, texts in self._commands.items()]
        self._commands.clear()

    def close(self, name: str) -> float:
        if name in self._commands:
            self._closed.append((name, "".join(self._commands.pop(name))))
            return 0.0
        if name in self._opened:
            self._opened.discard(name)
            return 0.0
        return -1.0

    def write(self, target: AwkNode, text: str) -> None:
        self._output_size += len(text)
        if self._output_size > limits.MAX_AWK_OUTPUT:
            raise AwkError("the output is too long")
        if target.kind == "none":
            self._output.append(text)
            return
        name = self.text_of(target.nodes[0])
        if target.text == "|":
            self._commands.setdefault(name, []).append(text)
        elif name in ("/dev/stdout", "-"):
            self._output.append(text)
        elif name == "/dev/stderr":
            self.errors.append(text)
        elif name != "/dev/null":
            self._write_file(name, text, appends=target.text == ">>" or name in self._opened)
            self._opened.add(name)

    def _write_file(self, name: str, text: str, *, appends: bool) -> None:
        host = self.process.host
        host.changes += 1
        try:
            host.files.write(
                self.process.path(name),
                text.encode("utf-8", "surrogateescape"),
                append=appends,
                modified=host.now_running(is_shown=True).timestamp(),
            )
        except FileError as error:
            raise AwkError(f"can't open '{name}': {error}") from error

    # --- variables

    def get(self, name: str) -> AwkValue:
        if self.frames and name in self.frames[-1]:
            value = self.frames[-1][name]
            if isinstance(value, dict):
                raise AwkError(f"{name} is an array")
            return value
        return self.variable(name)

    def put(self, name: str, value: AwkValue) -> None:
        if isinstance(value, str) and len(value) > limits.MAX_AWK_VALUE:
            raise AwkError("the value is too long")
        if self.frames and name in self.frames[-1]:
            self.frames[-1][name] = value
        else:
            self.set_variable(name, value)

    def array(self, name: str) -> AwkArray:
        if self.frames and name in self.frames[-1]:
            local = self.frames[-1][name]
            if local is None:
                local = self.frames[-1][name] = {}
            if not isinstance(local, dict):
                raise AwkError(f"{name} is not an array")
            return local
        return self.arrays.setdefault(name, {})

    def key(self, nodes: Sequence[AwkNode]) -> str:
        return to_text(self.get("SUBSEP")).join(to_text(self.evaluate(node)) for node in nodes)

    def assign(self, target: AwkNode, value: AwkValue) -> None:
        if target.kind == "name":
            self.put(target.text, value)
        elif target.kind == "field":
            self.set_field(int(self.number(target.nodes[0])), to_text(value))
        else:
            array = self.array(target.text)
            array[self.key(target.nodes)] = value
            if isinstance(value, str):
                self._stored += len(value)
                self.process.processes.keep(len(value))
            if len(array) > limits.MAX_AWK_ELEMENTS:
                raise AwkError("the array has too many elements")
            if self._stored > limits.MAX_VARIABLES:
                self._count_stored()

    def _count_stored(self) -> None:
        """Count what all arrays have now; raise `AwkError` if it is too much."""
        stored = sum(
            len(value) for array in self.arrays.values() for value in array.values() if isinstance(value, str)
        )
        self.process.processes.keep(stored - self._stored)
        self._stored = stored
        if self._stored > limits.MAX_VARIABLES // 2:
            raise AwkError("the arrays are too large")

    def text_of(self, node: AwkNode) -> str:
        return to_text(self.evaluate(node), to_text(self.get("CONVFMT")))

    def number(self, node: AwkNode) -> float:
        return to_number(self.evaluate(node))

    @abstractmethod
    def evaluate(self, node: AwkNode) -> AwkValue: ...

    def expression_of(self, node: AwkNode) -> str:
        """Return the regular expression that a node stands for: its text, or the value as one."""
        return self.convert(node.text if node.kind == "regex" else self.text_of(node))

    def is_array(self, name: str) -> bool:
        if self.frames and name in self.frames[-1]:
            return isinstance(self.frames[-1][name], dict)
        return name in self.arrays

    def count_step(self) -> None:
        self._steps += 1
        if self._steps > limits.MAX_AWK_STEPS:
            raise AwkError("an expression needs too many steps")

    def count_search(self, steps: int) -> None:
        """Count what a search for a pattern takes: instructions times characters."""
        self._steps += _STEPS_PER_SEARCH + steps // _SEARCH_STEPS

    def count_copy(self, characters: int) -> None:
        """Count a value that a function reads or makes."""
        self._steps += characters // _COPIED_PER_STEP

    def needs_pause(self) -> bool:
        return self._steps >= _STEPS_PER_PAUSE

    def take_commands(self) -> int:
        """Return as how many commands of the shell the steps since the last time count."""
        commands, self._steps = divmod(self._steps, STEPS_PER_COMMAND)
        return commands
