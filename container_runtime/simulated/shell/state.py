"""The state of a shell: variables, options, arguments, functions, traps, jobs and descriptors."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple
from zlib import crc32

from msgspec import Struct, field
from msgspec.structs import replace

from .process import Child, DescriptorStream, Effect, Process, Run, Steps
from .syntax import Command, ShellSyntaxError
from .variables import ValueTooLong, VariableTable

_LAST_DESCRIPTOR: Final = 63
OPTION_LETTERS: Final[Mapping[str, str]] = {
    "a": "allexport",
    "b": "notify",
    "C": "noclobber",
    "e": "errexit",
    "f": "noglob",
    "h": "hashall",
    "m": "monitor",
    "n": "noexec",
    "u": "nounset",
    "v": "verbose",
    "x": "xtrace",
    "E": "errtrace",
    "T": "functrace",
    "B": "braceexpand",
    "p": "privileged",
}
"""The names of the options of `set`."""
OPTION_NAMES: Final = frozenset(
    [
        *OPTION_LETTERS.values(),
        "pipefail",
        "posix",
        "ignoreeof",
        "emacs",
        "vi",
        "nolog",
        "interactive",
        "stdin",
    ]
)

FEATURES_AT_START: Final = frozenset(
    [
        "checkwinsize",
        "cmdhist",
        "complete_fullquote",
        "extquote",
        "force_fignore",
        "globasciiranges",
        "globskipdots",
        "hostcomplete",
        "interactive_comments",
        "patsub_replacement",
        "progcomp",
        "promptvars",
        "sourcepath",
    ]
)
"""The options of `shopt` that bash sets itself."""


class ShellExit(Exception):
    """`exit` ends the shell, or a command fails under `set -e`."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class FunctionReturn(Exception):
    """`return` ends a function or a file that is read by `.`."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class LoopControl(Exception):
    """`break` or `continue` changes a loop."""

    def __init__(self, levels: int, *, is_continue: bool) -> None:
        super().__init__(levels)
        self.levels = levels
        self.is_continue = is_continue


class ExpansionError(ShellSyntaxError):
    """An expansion or a special builtin fails, which ends the shell."""


class ExpansionTooLong(ExpansionError, ValueTooLong):
    """An expansion is longer than the interpreter keeps."""


class DiscardError(ExpansionError):
    """An expansion fails, which ends a POSIX shell; bash continues with the next line."""


class BadIndex(DiscardError):
    """The index of an array is no expression, which ends a bash of `-c`."""


class OutputPipe(NamedTuple):
    """The input of a `>(script)`."""

    serial: int
    descriptor: int
    child: Child
    """The process that reads it."""


class Origin(Struct):
    """Where the commands come from that a shell executes at present, which its messages name."""

    sources: int = 0
    """The number of files that `.` reads."""
    definitions: dict[str, str] = field(default_factory=dict)
    """The file in which each function is defined, as bash names it."""
    files: list[str] = field(default_factory=list)
    """The files of the functions that are executed, and of those that `.` reads; the latest last."""
    reader: str = ""
    """The file that `.` reads, or `eval`, with which the messages of dash begin."""
    evaluates: bool = False
    """Whether the text is an argument of `eval`."""

    def copy(self) -> "Origin":
        """Return the origin of a subshell's commands."""
        return replace(self, definitions=dict(self.definitions), files=list(self.files))


class Shell(ABC):
    depth = 0
    """The number of shells around a subshell."""

    whole_command: Command | None = None
    """The command that is all that the shell executes, if it is known."""

    def __init__(self, process: Process, arguments: Sequence[str], *, is_bash: bool) -> None:
        self.process = process
        self.is_bash = is_bash
        self.variables = VariableTable(process.environment)
        self.options: set[str] = {"braceexpand"} if is_bash else set()
        self.features = set(FEATURES_AT_START)
        """The options of `shopt` that are enabled."""
        self.script_name = arguments[0]
        self.arguments: list[str] = list(arguments[1:])
        self.functions: dict[str, Command] = {}
        self.traps: dict[str, str] = {}
        self.status = 0
        self.descriptors: dict[int, DescriptorStream] = dict(process.descriptors)
        self.line = 1
        self.calls: list[str] = []
        """The names of the functions that are executed."""
        self.origin = Origin()
        self.loops = 0
        """The number of loops around the present command."""
        self.directories: list[str] = []
        """The directories that `pushd` has left, the latest last."""
        self.output_pipes: list[OutputPipe] = []
        """The pipes of `>(script)` whose processes run."""
        self.pipes_opened = 0
        """The number of pipes that were opened for `>(script)` up to now."""
        self.jobs: list[Child] = []
        self.last_job: Child | None = None
        self.started = process.processes.time
        self.owns_process = True
        """Whether signals to the process of the shell are for this shell, and not for one around it."""
        self.ignored_signals: frozenset[int] = frozenset()
        """The signals that were ignored when the shell started, and cannot be handled."""
        self.letters = ""
        """The option letters of the invocation, such as `c` or `s`."""
        self.option_state = ("1", 1, 0)
        """The value of OPTIND that `getopts` has set, its argument, and its position within the argument."""
        self.random = 0
        self.captured_status: int | None = None
        """The exit code of the last command substitution of the present command."""
        self.is_tested = False
        """Whether a failure of the present builtin does not end the shell."""

    @property
    def substitution_code(self) -> int:
        """The exit code of the last command substitution, or 0 without one."""
        return self.captured_status or 0

    # --- execution

    @abstractmethod
    def run(self, command: Command, *, tested: bool = False) -> Run:
        """Execute a command; a failure of one that is `tested` does not end the shell under `set -e`."""

    @abstractmethod
    def capture(self, script: Command, *, keeps_end: bool = False) -> Generator[Effect, bytes | None, str]:
        """Return the output of a script, without the newlines at its end unless `keeps_end`."""

    @abstractmethod
    def open_output_pipe(self, script: Command) -> str:
        """Start a script beside this shell; return the path of the descriptor that is its input."""

    @abstractmethod
    def run_text(self, text: str, *, tested: bool = False, line: int = 1) -> Run:
        """Parse and execute a script in this shell; `line` is the number of its first line."""

    @abstractmethod
    def invoke(self, argv: Sequence[str], values: Mapping[str, str], *, finds_functions: bool = True) -> Run:
        """Execute a function, builtin or program, with some more variables in its environment."""

    @abstractmethod
    def report_error(self, error: Exception) -> Steps:
        """Write the message of an error that ends the shell or the text that it executes, once."""

    @abstractmethod
    def run_program(self, argv: Sequence[str]) -> Run:
        """Execute a program that is a builtin too."""

    # --- descriptors

    @contextmanager
    def with_descriptors(self, descriptors: dict[int, DescriptorStream]) -> Iterator[None]:
        """Replace the descriptors of commands for some time."""
        before, self.descriptors = self.descriptors, descriptors
        try:
            with self.process.processes.hold(descriptors):
                yield
        finally:
            self.descriptors = before

    def free_descriptor(self) -> int:
        """Return the descriptor of the next `<(script)` or `>(script)`; bash uses the greatest first."""
        number = _LAST_DESCRIPTOR
        while number in self.descriptors:
            number -= 1
        return number

    def write(self, descriptor: int, text: str) -> Steps:
        stream = self.descriptors.get(descriptor)
        if stream is not None:
            yield from stream.write(text.encode("utf-8", "surrogateescape"))

    def file_name(self) -> str:
        """Return the name of the file whose commands are executed, as bash does."""
        if self.origin.files:
            return self.origin.files[-1]
        return self.script_name if "c" not in self.letters and "s" not in self.letters else ""

    @property
    def failed_redirection_code(self) -> int:
        """The exit code of a command whose redirection fails: 2 in dash."""
        return 1 if self.is_bash or self.process.host.has_busybox else 2

    def place(self) -> str:
        """Return the beginning of an error message: the file and the line."""
        if not self.is_bash and self.process.host.has_busybox:
            return f"{self.script_name}: " if self.letters else f"{self.script_name}: line {self.line}: "
        if not self.is_bash:
            return f"{self.script_name}: {self.line}: "
        if "i" in self.letters:
            return "bash: "
        return f"{self.file_name() or self.script_name}: line {self.line}: "

    def report(self, text: str) -> Steps:
        """Write an error message."""
        reader = "" if self.is_bash else self.origin.reader
        if reader and self.process.host.has_busybox:  # it counts the lines of an argument from 0
            line = self.line - ("c" in self.letters)
            yield from self.write(2, f"{self.script_name}: {reader}: line {line}: {text}\n")
            return
        yield from self.write(2, f"{self.place()}{reader}{': ' * bool(reader)}{text}\n")

    def report_parser(self, text: str) -> Steps:
        """Write an error message of the parser, in which bash names where the text is from."""
        if self.origin.evaluates:
            place = f"{self.script_name}: eval: line {self.line}: "
        elif "c" in self.letters and not self.origin.files:
            place = f"{self.script_name}: -c: line {self.line}: "
        else:
            place = self.place()
        yield from self.write(2, f"{place}{text}\n")

    def close_output_pipes(self, first: int) -> None:
        """Close the descriptors of `>(script)` that a command has opened; the pipes before `first` are others'."""
        for pipe in self.output_pipes if self.pipes_opened > first else ():
            if pipe.serial >= first:
                self.descriptors.pop(pipe.descriptor, None)

    # --- parameters

    def option_letters(self) -> str:
        letters = "".join(letter for letter, name in OPTION_LETTERS.items() if name in self.options)
        return letters + self.letters

    def parameter(self, name: str) -> str | None:
        """Return the value of a parameter; None if it is not set."""
        if name.isdecimal():
            index = int(name[:9])
            if index == 0:
                return self.script_name
            return self.arguments[index - 1] if index <= len(self.arguments) else None
        special = _SPECIAL.get(name)
        if special is not None:
            return special(self)
        value = self.variables.get(name)
        if value is None and (dynamic := _DYNAMIC.get(name)) is not None:
            value = dynamic(self)
        if value is None:
            self.process.host.ask_variable(name)
        return value

    def variable_names(self) -> list[str]:
        """Return the names of all variables, for a list of them."""
        self.process.host.ask_variable("")
        return self.variables.names()

    def seconds(self) -> str:
        """Return the seconds since the start of the shell."""
        self.process.host.time_reads += 1
        return str(int(self.process.processes.time - self.started))

    def next_random(self) -> str:
        """Return a number that differs between pods, and is the same in each run of a command."""
        self.random += 1
        self.variables.changes += 1
        return str(crc32(f"{self.process.host.name}/{self.process.pid}/{self.random}".encode()) >> 8 & 0x7FFF)

    @property
    def changes(self) -> int:
        """The number of changes of what later commands can observe."""
        return self.variables.changes + self.process.host.changes

    def assign(self, name: str, value: str) -> None:
        self.variables.set(name, value)
        if "allexport" in self.options:
            self.variables.change(name, is_exported=True)


def _last_job(shell: Shell) -> str | None:
    return None if shell.last_job is None else str(shell.last_job.pid)


_SPECIAL: Final[Mapping[str, Callable[[Shell], str | None]]] = {
    "?": lambda shell: str(shell.status),
    "#": lambda shell: str(len(shell.arguments)),
    "$": lambda shell: str(shell.process.pid),
    "!": _last_job,
    "-": lambda shell: shell.option_letters(),
}
_DYNAMIC: Final[Mapping[str, Callable[[Shell], str | None]]] = {
    "RANDOM": lambda shell: shell.next_random(),
    "LINENO": lambda shell: str(shell.line),
    "PPID": lambda shell: str(shell.process.parent),
    "SECONDS": lambda shell: shell.seconds(),
    "UID": lambda shell: str(shell.process.host.user) if shell.is_bash else None,
    "EUID": lambda shell: str(shell.process.host.user) if shell.is_bash else None,
    "HOSTNAME": lambda shell: shell.process.host.name if shell.is_bash else None,
    "BASH_VERSION": lambda shell: "5.2.15(1)-release" if shell.is_bash else None,
    "BASH": lambda shell: "/bin/bash" if shell.is_bash else None,
    "FUNCNAME": lambda shell: shell.calls[-1] if shell.calls and shell.is_bash else None,
    "BASH_SOURCE": lambda shell: (shell.file_name() or None) if shell.is_bash else None,
    "BASHPID": lambda shell: str(shell.process.pid) if shell.is_bash and shell.owns_process else None,
    "OSTYPE": lambda shell: "linux-gnu" if shell.is_bash else None,
    "EPOCHSECONDS": lambda shell: str(int(shell.process.host.now_running().timestamp())),
    "SHLVL": lambda _: "1",
    "PATH": lambda _: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "PS4": lambda _: "+ ",
}
