"""What a running command yields, and what it can see: its arguments, its environment, its files, the time."""

from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import datetime, timedelta
from posixpath import join, normpath
from typing import TypeAlias

from msgspec import Struct

from mockube.controller_manager.kubelet.shell.filesystem import FileSystem


class Output(Struct, frozen=True):
    """Bytes to descriptor 1 or 2."""

    descriptor: int
    data: bytes


class Sleep(Struct, frozen=True):
    seconds: float
    """Infinite for what never ends by itself."""


class Input(Struct, frozen=True):
    """Send what can be read from the standard input, at most so many bytes; b"" at its end."""

    limit: int


class CommandStart(Struct, frozen=True):
    """A command begins: the caller may count it, or yield to other tasks."""


class RepeatedIteration(Struct, frozen=True):
    """A turn of an endless loop took so many seconds and left no trace; send how many like it may be left out."""

    seconds: float


Effect: TypeAlias = Output | Sleep | Input | CommandStart | RepeatedIteration
Run: TypeAlias = Generator[Effect, bytes | None, int]
"""Returns the exit code."""


class UnknownProgram(Exception):
    """A container has no such program that is simulated."""


class ShellExit(Exception):
    """`exit` ends the shell, or a command under `set -e` fails."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class FunctionReturn(ShellExit):
    """`return`."""


class LoopControl(Exception):
    """`break` or `continue`."""

    def __init__(self, levels: int, *, again: bool) -> None:
        super().__init__(levels)
        self.levels = levels
        self.again = again


class Host(Struct, kw_only=True):
    """The container in which commands run."""

    name: str
    """Of the host, which is the pod's."""
    files: FileSystem
    now: Callable[[], datetime]
    """Without the time that the commands have slept."""
    is_strict: bool = False
    """A program that is not known is an error, and not one that a shell reports."""
    programs: "Mapping[str, Program]"
    address: str = ""
    user: int = 0
    group: int = 0
    has_terminal: bool = False
    elapsed: float = 0.0
    """The seconds that commands have slept so far, where sleeping takes no real time."""

    def now_running(self) -> datetime:
        """The time as commands see it."""
        return self.now() + timedelta(seconds=self.elapsed)


class Process(Struct, kw_only=True):
    host: Host
    argv: Sequence[str]
    environment: Mapping[str, str]
    directory: str = "/"

    @property
    def name(self) -> str:
        return self.argv[0]

    @property
    def arguments(self) -> Sequence[str]:
        return self.argv[1:]

    def path(self, text: str) -> str:
        """Return a path from the root."""
        full_path = normpath(join(self.directory, text))
        return full_path.replace("//", "/", 1) if full_path.startswith("//") else full_path

    def error(self, text: str) -> Output:
        return Output(2, f"{self.name}: {text}\n".encode("utf-8", "surrogateescape"))


Program: TypeAlias = Callable[[Process], Run]


def write_text(text: str) -> Output:
    return Output(1, text.encode("utf-8", "surrogateescape"))


def read_input(limit: int) -> Generator[Effect, bytes | None, bytes]:
    """Return what can be read from the standard input; b"" at its end."""
    return (yield Input(limit)) or b""
