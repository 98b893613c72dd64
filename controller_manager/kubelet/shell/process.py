"""The effects that a running command yields, and its context: arguments, environment, files, time."""

from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import datetime, timedelta
from posixpath import join, normpath
from typing import Final, TypeAlias

from msgspec import Struct

from mockube.controller_manager.kubelet.shell.filesystem import FileSystem

_READ_PER_COMMAND: Final = 256
"""The number of bytes that are read one by one in the time of a command."""


class Output(Struct, frozen=True):
    """A write to descriptor 1 or 2."""

    descriptor: int
    data: bytes


class Sleep(Struct, frozen=True):
    """A wait; infinite if the command does not end by itself."""

    seconds: float


class Input(Struct, frozen=True):
    """A read of at most `limit` bytes from the standard input; the reply is the data, b"" at the end."""

    limit: int


class CommandStart(Struct, frozen=True):
    """The start of a command, or of as much other work, at which the caller may count it or let other tasks run."""


class RepeatedIteration(Struct, frozen=True):
    """An iteration of a loop that lasted `seconds` and changed nothing; the reply is the number of iterations to skip."""

    seconds: float


class NetworkCall(Struct, frozen=True):
    """A use of the cluster's network; `network.calls` describes the request and the reply, both in MessagePack.

    There is no reply if the caller does not simulate the network.
    """

    request: bytes


Effect: TypeAlias = Output | Sleep | Input | CommandStart | RepeatedIteration | NetworkCall
Run: TypeAlias = Generator[Effect, bytes | None, int]
"""The execution of a command: yields effects, receives the replies, and returns the exit code."""


class UnknownProgram(Exception):
    """The program is not simulated."""


class ShellExit(Exception):
    """`exit` ends the shell, or a command fails under `set -e`."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class FunctionReturn(ShellExit):
    """`return` ends a function."""


class LoopControl(Exception):
    """`break` or `continue` changes a loop."""

    def __init__(self, levels: int, *, is_continue: bool) -> None:
        super().__init__(levels)
        self.levels = levels
        self.is_continue = is_continue


class Host(Struct, kw_only=True):
    """The container in which commands run."""

    name: str
    """The host name, which is the pod's."""
    files: FileSystem
    now: Callable[[], datetime]
    """Returns the time without the seconds in `elapsed`."""
    is_strict: bool = False
    """Whether an unknown program raises `UnknownProgram`; otherwise the shell reports it."""
    programs: "Mapping[str, Program]"
    address: str = ""
    user: int = 0
    group: int = 0
    has_terminal: bool = False
    elapsed: float = 0.0
    """The seconds that commands have slept, if sleeping takes no real time."""

    def now_running(self) -> datetime:
        """Return the present time for commands, including the simulated sleeps."""
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
        """Return the absolute path of a path."""
        full_path = normpath(join(self.directory, text))
        return full_path.replace("//", "/", 1) if full_path.startswith("//") else full_path

    def error(self, text: str) -> Output:
        return Output(2, f"{self.name}: {text}\n".encode("utf-8", "surrogateescape"))


Program: TypeAlias = Callable[[Process], Run]


def write_text(text: str) -> Output:
    return Output(1, text.encode("utf-8", "surrogateescape"))


def count_work(amount: int, per_command: int) -> Generator[Effect, bytes | None, None]:
    """Count work as so many commands as it takes time, without a remainder."""
    for _ in range(amount // per_command):
        yield CommandStart()


def read_input(limit: int) -> Generator[Effect, bytes | None, bytes]:
    """Read at most `limit` bytes from the standard input; return b"" at its end."""
    return (yield Input(limit)) or b""


def read_line(limit: int) -> Generator[Effect, bytes | None, bytes]:
    """Read at most `limit` bytes up to a newline, one by one, so that the next command reads what follows."""
    line = bytearray()
    while not line.endswith(b"\n") and len(line) < limit:
        if len(line) % _READ_PER_COMMAND == _READ_PER_COMMAND - 1:
            yield CommandStart()
        data = yield from read_input(1)
        if not data:
            break
        line += data
    return bytes(line)
