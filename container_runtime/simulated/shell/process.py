"""The effects that a running command yields, and its context: arguments, environment, files, time."""

from codecs import getincrementaldecoder
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from posixpath import join, normpath
from typing import Protocol, Self, TypeAlias, TypeVar

from msgspec import Struct, field

from mockube.apimachinery.quantity import scaled_value_or
from mockube.container_runtime.images.programs import ImagePrograms
from mockube.container_runtime.images.table import PortBehavior
from mockube.container_runtime.simulated.server_contract import RunningServer

from . import limits
from .access import DEFAULT_UMASK
from .gnu_messages import gnu_words
from .memory import Memory
from .messages import WordedError
from .vfs.file_system import FileSystem
from .vfs.mount_table import MountedFiles


class Output(Struct, frozen=True):
    """A write to descriptor 1 or 2."""

    descriptor: int
    data: bytes


class Sleep(Struct, frozen=True):
    """A wait; infinite if the command does not end by itself. The reply, if there is one, is the time after which a signal has ended it."""

    seconds: float
    cores: float = 0.0
    """The cores that it keeps busy."""
    watches_files: bool = False
    """Whether others may end it, by a change of files; the reply is then the time after which the command is to look at them."""
    is_routine: bool = False
    """Whether it is the interval of a check that has no effect while nothing else changes: an advance of the clock leaps over it."""


class Input(Struct, frozen=True):
    """A read of at most `limit` bytes from the standard input; the reply is the data, b"" at the end."""

    limit: int


class CommandStart(Struct, frozen=True):
    """The start of a command, or of as much other work, at which the caller may count it or let other tasks run."""


class RepeatedIteration(Struct, frozen=True):
    """An iteration of a loop that never ends by itself, and lasted `seconds`; the reply is the number of iterations to skip."""

    seconds: float
    cores: float = 0.0
    """The cores that it kept busy."""
    changes: bool = False
    """Whether it changed something, so that no iteration is like it, and none can be skipped."""


class NetworkCall(Struct, frozen=True):
    """A use of the cluster's network; `network.calls` describes the request and the reply, both in MessagePack.

    There is no reply if the caller does not simulate the network.
    """

    request: bytes


class ContainerWrite(Output, frozen=True):
    """A write to the output of the container; redirections do not apply to it any more."""


class ContainerRead(Input, frozen=True):
    """A read of the container's input; redirections do not apply to it any more."""


class WaitUntil(Struct, frozen=True):
    """A wait of a process for another process, which the scheduler ends; callers never receive it."""

    condition: Callable[[], bool]
    seconds: float = float("inf")
    """The time after which the process continues in any case."""
    watches_files: bool = False
    """Whether the condition depends on files, which others may change."""


Effect: TypeAlias = Output | Sleep | Input | CommandStart | RepeatedIteration | NetworkCall | WaitUntil
Run: TypeAlias = Generator[Effect, bytes | None, int]
"""The execution of a command: yields effects, receives the replies, and returns the exit code."""
Steps: TypeAlias = Generator[Effect, bytes | None, None]
"""A part of an execution."""


class UnknownProgram(Exception):
    """The program is not simulated."""


class TooLarge(UnknownProgram):
    """A program needs so much memory that it is not simulated, unless it has less, which ends its container."""


class Interrupted(Exception):
    """The user of a terminal has interrupted the command of an interactive shell."""


class ForegroundProgram:
    """A program that a shell has started, and waits for."""

    def __init__(self, argv: Sequence[str]) -> None:
        self.argv = argv
        self.child: Child | None = None
        """The process that executes it, if that is not the shell's."""


class ProgramKilled(Exception):
    """A signal has ended the program for which a shell waits."""

    def __init__(self, program: ForegroundProgram, number: int) -> None:
        super().__init__(number)
        self.program = program
        self.number = number


class BrokenPipe(Exception):
    """A process writes to a pipe that no process reads: SIGPIPE ends it."""


class ProgramUsageError(WordedError):
    """The arguments of a program are invalid; the message is the program's, and the code its exit code."""

    def __init__(
        self, message: str, code: int = 1, *, bash: str | None = None, bash_code: int | None = None
    ) -> None:
        """`bash` and `bash_code` are those of a program that is a builtin of bash."""
        super().__init__(message, bash)
        self.code = code
        self.bash_code = code if bash_code is None else bash_code


class MissingArguments(ProgramUsageError):
    """A program has too few arguments, and bash prints only which it has."""


class DescriptorStream(Protocol):
    """An open file, pipe or other source and destination of data."""

    def read(self, limit: int) -> Generator[Effect, bytes | None, bytes]:
        """Return at least one and at most `limit` bytes, or b"" at the end; raise `FileError`."""
        ...

    def unread(self, data: bytes) -> None:
        """Return the last bytes that were read, which will be read again."""
        ...

    def write(self, data: bytes) -> Steps:
        """Write all data; raise `FileError` or `BrokenPipe`."""
        ...


CHROOT = "chroot"
NSENTER = "nsenter"
"""The ways from a container to the machine of its node."""
NAMES: Mapping[int, str] = {0: "root", 1: "daemon", 65534: "nobody"}
"""The names of the accounts that nearly all images have."""


_DECODED_AT_ONCE = 1 << 14
_DECODED_PER_COMMAND = 512
"""The bytes that are no text, and that become one in the time of a command."""
COMMAND_NANOSECONDS = 60_000
"""What a command of a shell takes: the unit in which all work is counted."""
FIRST_PID = 1
"""The id of the first process of a namespace."""
DEFAULT_MEMORY: int = 1 << 30
"""The memory of a node of which nothing is known."""


class OtherProcess(Struct, frozen=True):
    """A process that runs beside those of a command: the first one of a container, or one of another container of its pod."""

    pid: int
    argv: tuple[str, ...]
    user: int
    started: datetime
    may_have_others: bool = False
    """Whether nobody knows which processes it starts, or which it becomes."""
    send_signal: Callable[[int], None] = lambda _: None

    @property
    def name(self) -> Sequence[str]:
        return self.argv


class NodeSize(Struct, frozen=True, kw_only=True):
    cpus: int = 1
    memory_bytes: int = DEFAULT_MEMORY


def size_of(resources: Mapping[str, str]) -> NodeSize:
    """Return the size of a node with these resources."""
    return NodeSize(
        cpus=max(scaled_value_or(resources.get("cpu"), 0), 1),
        memory_bytes=scaled_value_or(resources.get("memory"), 0) or DEFAULT_MEMORY,
    )


class ProgramCall(Struct, frozen=True):
    """A call of a program that may listen."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = {}
    directory: str = "/"
    seconds: float = 0.0
    """The seconds that the command had slept before."""
    is_reconfigured: bool = False
    """Whether the container has written files of the server's configuration."""
    ports: Mapping[int, PortBehavior | None] | None = None
    """On which ports it listens, and what it does there, as it says itself; None if it does not say so."""


class Host(Struct, kw_only=True):
    """The container in which commands run."""

    hostname: str
    """The host name, which is the pod's."""
    files: FileSystem
    now: Callable[[], datetime]
    """Returns the time without the seconds in `elapsed`."""
    is_strict: bool = False
    """Whether an unknown program raises `UnknownProgram`; otherwise the shell reports it."""
    programs: "Mapping[str, Program]"
    installed: ImagePrograms | None = None
    """The programs of the image; None if nobody knows them, so that any counts as there."""
    address: str = ""
    image: str = ""
    """The reference of the container's image; "" if it does not matter."""
    user: int = 0
    group: int = 0
    other_groups: tuple[int, ...] = ()
    user_names: Mapping[int, str] = field(default_factory=lambda: NAMES)
    """The names of the image's accounts by their numbers."""
    group_names: Mapping[int, str] = field(default_factory=lambda: NAMES)
    pid: int = 0
    """The id of a command's first process; 0 for one that is behind those that run already."""
    find_others: Callable[[], tuple[OtherProcess, ...]] = tuple
    """Returns the processes that run beside those of the command."""
    unlisted: str = ""
    """The processes that a list of all processes lacks, because nobody knows them; a command that fails may succeed with them."""
    occupied_ports: frozenset[int] = frozenset()
    """The ports on which other containers of the pod listen."""
    ask_hostname: Callable[[], None] = lambda: None
    """Called before each use of the host name; raises `ValueAsked` if it is left out."""
    find_size: Callable[[], NodeSize] = NodeSize
    """Returns how large the node is."""
    umask: int = DEFAULT_UMASK
    """The rights that new files do not get."""
    has_terminal: bool = False
    has_open_input: bool = False
    """Whether a read of the standard input waits for a client."""
    elapsed: float = 0.0
    """The seconds that commands have slept, if sleeping takes no real time."""
    on_unknown: Callable[[str], None] = lambda _: None
    """Called with the name of an unknown program that fails."""
    ask_variable: Callable[[str], None] = lambda _: None
    """Called with the name of a variable that is not set, empty for a list of all; raises `OutsideAnswer` if nobody knows its value yet."""
    send_signal: Callable[[int], None] = lambda _: None
    """Sends a signal to the first process of the command that runs."""
    catches_signals: bool = False
    """Whether a command has said what it does after a signal."""
    interrupt: Callable[[], None] = lambda: None
    """Interrupts the command that runs, as Ctrl-C does."""
    listed_processes: "Callable[[], Sequence[ListedProcess]]" = lambda: ()
    """Returns the processes of the command that runs, as ps lists them."""
    calls: "list[ProgramCall]" = field(default_factory=list)
    """The first calls of programs that may listen, one for each command line."""
    changes: int = 0
    """The number of times that commands have written a file or read input."""
    moved_bytes: int = 0
    """The bytes that programs have read and written."""
    work: float = 0.0
    """The nanoseconds that was worked since the last command that counts: what moves data, or steps, adds to it."""
    time_reads: int = 0
    """The number of times that commands have read the time."""
    memory: Memory = field(default_factory=Memory)
    prompt: str = "{directory} # "
    """What an interactive shell prints before it reads a line."""
    before_program: "Callable[[Process], Steps] | None" = None
    """Called before each program: the machine of a node brings the files up to date that the program may read."""
    environment: "Mapping[str, str]" = field(default_factory=dict)
    """The variables that a program gets that enters the machine."""
    is_node: bool = False
    """Whether it is the machine of a node itself."""
    enter_node: "Callable[[str, MountedFiles | None], Host | None]" = lambda *_: None
    """Returns the machine of the node for chroot to files, or for nsenter; None if the container may not enter it."""
    find_server: Callable[[], RunningServer | None] = lambda: None
    """Returns the server that a program of the container starts or reloads; None where nobody can connect to it."""

    @property
    def name(self) -> str:
        self.ask_hostname()
        return self.hostname

    @property
    def server(self) -> RunningServer | None:
        return self.find_server()

    @property
    def has_busybox(self) -> bool:
        """Return whether the shell is that of busybox, whose messages have no numbers of lines; otherwise it is dash, or bash."""
        return self.installed is not None and "busybox" in self.installed.names

    @property
    def has_gnu_programs(self) -> bool:
        """Return whether the programs are GNU's, as in images of Debian; otherwise they count as those of busybox."""
        return self.installed is not None and not self.has_busybox

    @property
    def groups(self) -> list[int]:
        """The group and the supplementary ones, in the kernel's order."""
        return sorted({self.group, *self.other_groups})

    @property
    def cpus(self) -> int:
        return self.find_size().cpus

    @property
    def memory_bytes(self) -> int:
        return self.find_size().memory_bytes

    def seconds_up(self) -> float:
        """Return for how long the container has run."""
        now = self.now_running()
        started = min((other.started for other in self.other_processes), default=None)
        return max((now - started).total_seconds(), 0.0) if started is not None else self.elapsed

    @property
    def other_processes(self) -> tuple[OtherProcess, ...]:
        """The processes that run beside those of the command; without them, and without an id, it is the first of the container."""
        return self.find_others()

    @property
    def first_pid(self) -> int:
        """The id of a command's first process."""
        return self.pid or max((other.pid for other in self.other_processes), default=-5) + 6

    def note_call(
        self,
        process: "Process",
        *,
        is_reconfigured: bool = False,
        ports: Mapping[int, PortBehavior | None] | None = None,
    ) -> None:
        """Note the call of a program that may listen, whose configuration may have been written by the container, or that says on which ports."""
        argv = tuple(process.argv)
        if len(self.calls) < limits.MAX_CALLS and all(call.argv != argv for call in self.calls):
            self.calls.append(
                ProgramCall(
                    argv,
                    process.environment,
                    process.directory,
                    self.elapsed,
                    is_reconfigured=is_reconfigured,
                    ports=ports,
                )
            )

    def note_end_at(self, name: str) -> None:
        """Note the program at which a command ends because it is not simulated."""
        name = name.rpartition("/")[2]
        if all(call.argv[0].rpartition("/")[2] != name for call in self.calls):
            self.calls.append(ProgramCall((name,), seconds=self.elapsed))

    def join(self, find_others: Callable[[], tuple[OtherProcess, ...]]) -> None:
        """Let the command run beside processes that run already, with an id behind theirs, which stays when they change."""
        self.find_others, self.pid = find_others, 0
        self.pid = self.first_pid

    def drop_command(self, interrupt: Callable[[], None]) -> None:
        """Keep nothing of a command that has ended, unless another one runs."""
        if self.interrupt == interrupt:
            self.send_signal, self.listed_processes, self.interrupt = lambda _: None, tuple, lambda: None

    @property
    def is_first(self) -> bool:
        """Whether the first process of a command is that of its namespace."""
        return self.pid == FIRST_PID

    def now_running(self, *, is_shown: bool = False) -> datetime:
        """Return the present time for commands, including the simulated sleeps.

        The result of a command does not depend on a time that is only shown, or the one at which a file changes.
        """
        self.time_reads += not is_shown
        return self.now() + timedelta(seconds=self.elapsed)


class ProcessTable(Protocol):
    """The processes that run beside a process."""

    @property
    def time(self) -> float:
        """The seconds since the first process started."""
        ...

    @property
    def wakes(self) -> int:
        """The number of times that something from outside has ended a sleep of all processes."""
        ...

    @property
    def busy_seconds(self) -> float:
        """The seconds of CPU that all processes have used."""
        ...

    def is_alone(self) -> bool:
        """Return whether all other processes wait for the present one."""
        ...

    def start(
        self,
        name: Sequence[str],
        execution: Run,
        descriptors: "Mapping[int, DescriptorStream]",
        *,
        is_executed: bool = False,
    ) -> "Child":
        """Start a process that runs beside the present one, or takes its place (`is_executed`)."""
        ...

    def holds(self, stream: DescriptorStream) -> bool:
        """Return whether a process has a stream open."""
        ...

    def hold(self, descriptors: "Mapping[int, DescriptorStream]") -> AbstractContextManager[None]:
        """Keep streams open while the present process executes something."""
        ...

    def keep(self, size: int) -> None:
        """Note that the present process keeps so many bytes more in memory; raise `OutOfMemory` if all keep too many."""
        ...

    def kept_until_end(self) -> AbstractContextManager[None]:
        """Free at the end of a program or a shell what the present process has kept for it."""
        ...

    def children(self) -> "Sequence[Child]":
        """Return all processes."""
        ...

    def listed_processes(self) -> "Sequence[ListedProcess]":
        """Return all processes, and the programs for which shells wait, as ps lists them."""
        ...

    def execute(
        self, argv: Sequence[str], *, replaces_shell: bool
    ) -> AbstractContextManager[ForegroundProgram]:
        """Show a program that a shell executes beside the shell's process, or in its place."""
        ...

    def become(self, argv: Sequence[str]) -> None:
        """Show another program in the place of the one that the present process executes, as env is replaced."""
        ...

    def note_child(self, child: "Child") -> None:
        """Note that another process executes the program for which the present one waits."""
        ...

    def skip(self, seconds: float) -> None:
        """Move the time forward."""
        ...

    def catch_signals(self, actions: Mapping[int, str]) -> Mapping[int, str]:
        """Set the signals that the present process handles, or ignores if the text is empty; return those before."""
        ...

    def ignored_signals(self) -> frozenset[int]:
        """Return the signals that the present process ignores."""
        ...

    def take_signals(self) -> Sequence[int]:
        """Return the signals that the present process has received and handles."""
        ...

    def has_signals(self) -> bool:
        """Return whether the present process has received signals."""
        ...

    def first_signal(self) -> int: ...

    def take_interrupt(self) -> bool:
        """Return whether the command of the present process was interrupted, once for each interrupt."""
        ...

    def be_interactive(self) -> None:
        """Let interrupts end the commands of the present process, and not itself."""
        ...

    def next_pid(self) -> int: ...

    def current_pid(self) -> int:
        """Return the id of the present process; 0 without one."""
        ...


class RunningProcess(Protocol):
    @property
    def pid(self) -> int: ...

    @property
    def name(self) -> Sequence[str]: ...

    @property
    def send_signal(self) -> Callable[[int], None]: ...


class ListedProcess(RunningProcess, Protocol):
    @property
    def owner(self) -> "Child":
        """The process that executes it."""
        ...


class Child(Protocol):
    """A process that was started by another one."""

    pid: int
    code: int | None
    """The exit code; None while it runs."""
    name: Sequence[str]
    started: float
    ended: float
    """When it has ended; infinite while it runs."""
    killed_by: int
    """The signal that has ended it; 0 if it has ended by itself."""

    def is_running(self) -> bool: ...

    def send_signal(self, number: int) -> None: ...


class Process(Struct, kw_only=True):
    host: Host
    argv: Sequence[str]
    environment: Mapping[str, str]
    directory: str = "/"
    descriptors: Mapping[int, DescriptorStream] = field(default_factory=dict)
    processes: ProcessTable
    pid: int = 0
    """The process id of a shell; 0 for a program without a process of its own."""
    parent: int = 0
    """The process id of a shell's parent; 0 for the first process."""
    is_bash: bool = False
    """Whether the process is bash, or a program that is a builtin of it."""
    path_name: str = ""
    """The path by which the program was called, which is the name of a shell in its messages; "" for one without a path."""
    is_executed: bool = False
    """Whether it takes the place of the process that starts it."""
    place: str = ""
    """The place in the script with which the messages of a builtin begin, such as `sh: 1: `."""

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

    def report(self, text: str) -> Output:
        """Return the output of an error message that names the program itself."""
        return Output(2, f"{text}\n".encode("utf-8", "surrogateescape"))

    def error(self, text: str) -> Output:
        is_builtin = bool(self.place) or self.is_bash
        words = gnu_words(self.name, text) if self.host.has_gnu_programs and not is_builtin else text
        return self.report(f"{self.place}{self.name}: {words}")

    def child(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str] | None = None,
        descriptors: Mapping[int, DescriptorStream] | None = None,
    ) -> "Process":
        """Return a process for another program with the same files, input and output."""
        return Process(
            host=self.host,
            argv=argv,
            environment=self.environment if environment is None else environment,
            directory=self.directory,
            descriptors=self.descriptors if descriptors is None else descriptors,
            processes=self.processes,
        )

    def with_arguments(self, argv: Sequence[str], pid: int | None = None) -> "Process":
        """Return the same process with another command line."""
        process = self.child(argv)
        process.pid = self.pid if pid is None else pid
        process.path_name, process.is_executed = self.path_name, self.is_executed
        process.is_bash = self.is_bash
        return process


Program: TypeAlias = Callable[[Process], Run]


def listening(program: Program) -> Program:
    """Return a program that may listen, which notes its calls."""

    def run(process: Process) -> Run:
        process.host.note_call(process)
        return program(process)

    return run


def write_text(text: str) -> Output:
    return Output(1, text.encode("utf-8", "surrogateescape"))


class Sliceable(Protocol):
    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> Self: ...


S = TypeVar("S", bound=Sliceable)


def slices(items: S, size: int) -> Iterator[S]:
    """Yield the parts of a sequence, of at most `size` items."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def decoded(data: bytes | bytearray) -> Generator[Effect, bytes | None, str]:
    """Return data as text, block by block: bytes that are no text take long."""
    if len(data) <= _DECODED_PER_COMMAND:
        return data.decode("utf-8", "surrogateescape")
    decoder = getincrementaldecoder("utf-8")("surrogateescape")
    texts = []
    for block in slices(data, _DECODED_AT_ONCE):
        yield from count_work(1 if block.isascii() else len(block) // _DECODED_PER_COMMAND, 1)
        texts.append(decoder.decode(block))
    return "".join(texts) + decoder.decode(b"", final=True)


def pass_work(host: Host) -> Steps:
    """Count the work of a container as so many commands as it takes time; the rest stays."""
    while host.work >= COMMAND_NANOSECONDS:
        host.work -= COMMAND_NANOSECONDS
        yield CommandStart()


def count_work(amount: int, per_command: int) -> Steps:
    """Count work as so many commands as it takes time, without a remainder."""
    for _ in range(amount // per_command):
        yield CommandStart()


def fill_memory(process: Process, size: float) -> Steps:
    """Let a program fill memory, which takes time; raise `OutOfMemory` if there is less, always if the size is infinite."""
    memory = process.host.memory
    if seconds := memory.seconds_to_fill(size):
        yield Sleep(seconds, cores=1.0)
    memory.change(size, process.processes.current_pid(), process.host.elapsed)


def read_input(limit: int) -> Generator[Effect, bytes | None, bytes]:
    """Read at most `limit` bytes from the standard input; return b"" at its end."""
    return (yield Input(limit)) or b""
