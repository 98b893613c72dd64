"""The start of a command in a container: a program by its name, or a script in a shell."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import Struct, field

from mockube.container_runtime.behavior import NOT_FOUND
from mockube.container_runtime.start_errors import StartError

from . import limits, parser
from .builtin_errors import BuiltinError
from .builtins import set_option
from .interpreter import Interpreter
from .invoking import NOT_EXECUTABLE, CommandNotFound, find_program, start_problem
from .messages import message_of
from .process import CommandStart, Host, Interrupted, Process, Run, UnknownProgram, WaitUntil
from .scheduling import ProcessScheduler
from .state import OPTION_LETTERS, ShellExit
from .streams import container_descriptors, deliver, read_line
from .thread_turns import in_turns
from .variables import ShellVariable
from .vfs.file_entry import FileError, NoSuchFile

_INTERRUPTED: Final = 130
"""The status of a command that SIGINT ends."""
_NOT_EXECUTED: Final = 255
"""The exit code of runc's process if the kernel does not execute a file: its interpreter does not exist, or it names none."""
_BASH: Final = frozenset({"bash", "zsh"})
_BASH_VERSION: Final = ("5", "2", "15", "1", "release", "x86_64-pc-linux-gnu")
_BASH_VARIABLES: Final[Mapping[str, ShellVariable]] = {
    "BASH_ALIASES": ShellVariable(elements={}, is_map=True),
    "BASH_CMDS": ShellVariable(elements={}, is_map=True),
    "BASH_VERSINFO": ShellVariable(elements=dict(enumerate(_BASH_VERSION))),
}


def run_command(host: Host, argv: Sequence[str], environment: Mapping[str, str], directory: str = "/") -> Run:
    """Run a program of a container; raise `StartError` if it has none of that name, and `UnknownProgram` if it is not simulated."""
    scheduler = ProcessScheduler(
        host.first_pid,
        is_protected=host.is_first,
        change_memory=lambda size: host.memory.change(size, 0, host.elapsed),
    )
    host.send_signal, host.listed_processes = scheduler.signal_first, scheduler.listed_processes
    host.interrupt = scheduler.interrupt
    process = Process(
        host=host,
        argv=argv,
        environment=environment,
        directory=directory,
        descriptors=container_descriptors(host),
        processes=scheduler,
    )
    try:
        return (yield from scheduler.run(argv, _start(process), process.descriptors))
    finally:
        host.drop_command(scheduler.interrupt)


def _start(process: Process) -> Run:
    yield CommandStart()
    name = process.argv[0]
    if problem := start_problem(process):
        raise StartError(problem)
    try:
        program = find_program(process, "")
    except CommandNotFound as error:
        if error.code != NOT_FOUND or process.host.files.knows(
            process.host.files.resolve(process.path(name))
        ):
            problem = "no such file or directory" if error.code == NOT_FOUND else str(error).lower()
            yield process.report(f"exec {name}: {problem}")  # the kernel's words about its interpreter
            return _NOT_EXECUTED
        raise UnknownProgram(name) from None
    short_name = name.rpartition("/")[2]
    process.is_executed = True
    process.path_name = name if "/" in name else ""
    return (
        yield from deliver(
            program(process.with_arguments([short_name, *process.arguments], process.host.first_pid)), process
        )
    )


def run_program(process: Process) -> Run:
    """Run a program for another one, such as `env`; raise `CommandNotFound`, or `UnknownProgram` if the host is strict."""
    yield CommandStart()
    program = find_program(process)
    return (yield from deliver(program(process), process))


class _Options(Struct, kw_only=True):
    """The options of a shell's invocation."""

    enabled: set[str] = field(default_factory=set)
    disabled: set[str] = field(default_factory=set)
    letters: str = ""
    arguments: list[str] = field(default_factory=list)


def _parse_options(arguments: Sequence[str], name: str) -> _Options:
    options = _Options(arguments=list(arguments))
    rest = options.arguments
    while rest and len(rest[0]) > 1 and rest[0][0] in "-+":
        argument = rest.pop(0)
        if argument == "--":
            break
        if argument in ("--init-file", "--rcfile"):
            del rest[:1]
        elif argument == "--posix":
            options.enabled.add("posix")
        elif not argument.startswith("--"):
            _add_letters(options, argument, name)
    return options


def _add_letters(options: _Options, argument: str, name: str) -> None:
    target = options.enabled if argument[0] == "-" else options.disabled
    for letter in argument[1:]:
        if letter in "csil":
            options.letters += letter
        elif letter == "o":
            target.add(options.arguments.pop(0) if options.arguments else "")
        elif letter == "O":
            del options.arguments[:1]
        elif letter in OPTION_LETTERS:
            target.add(OPTION_LETTERS[letter])
        else:
            raise BuiltinError(
                f"{name}: 0: Illegal option -{letter}", bash=f"{name}: -{letter}: invalid option"
            )


def run_shell(process: Process) -> Run:
    """Run `sh -c SCRIPT [NAME [ARGUMENT...]]`, `sh FILE`, or `sh` with a script as its input, as a process of its own."""
    if process.pid:
        return (yield from _run_shell(process))
    processes, is_executed = process.processes, process.is_executed
    shell = process.with_arguments(
        process.argv, processes.current_pid() if is_executed else processes.next_pid()
    )
    shell.parent = process.parent if is_executed else processes.current_pid()
    child = processes.start(process.argv, _run_shell(shell), process.descriptors, is_executed=is_executed)
    if not is_executed:
        processes.note_child(child)
    yield WaitUntil(lambda: child.code is not None)
    return child.code or 0


def _run_shell(process: Process) -> Run:
    try:
        options = _parse_options(process.arguments, process.name)
    except BuiltinError as error:
        yield process.report(message_of(error, is_bash=process.name in _BASH))
        return 2
    rest = options.arguments
    text: str | None = None
    name = process.path_name or process.name
    if "c" in options.letters:
        if not rest:
            is_bash = process.name in _BASH
            words = "-c: option requires an argument" if is_bash else "0: -c requires an argument"
            yield process.report(f"{process.name}: {words}")
            return 2
        text, rest = rest[0], rest[1:]
        name, rest = (rest[0], rest[1:]) if rest else (name, [])
    elif rest and "s" not in options.letters:
        name, rest = rest[0], rest[1:]
        try:
            text = _read_script(process, name)
        except FileError as error:
            return (yield from _report_unreadable(process, name, error))
    shell = Interpreter(process, [name, *rest], is_bash=process.name in _BASH)
    shell.letters = options.letters
    shell.ignored_signals = process.processes.ignored_signals()
    process.is_bash |= shell.is_bash
    for variable_name, variable in (_BASH_VARIABLES if shell.is_bash else {}).items():
        shell.variables.put(variable_name, variable)
    shell.variables.set("PWD", process.directory)
    try:
        for option in sorted(options.enabled - {""}):
            set_option(shell, option, enables=True, word=f"-o {option}")
        shell.options -= options.disabled
    except BuiltinError as error:
        place = f"{process.name}: line 0: {process.name}" if shell.is_bash else f"{process.name}: 0"
        yield process.report(f"{place}: {message_of(error, is_bash=shell.is_bash)}")
        return 2
    if text is not None:
        return (yield from shell.run_to_end(text))
    return (yield from _run_input(shell))


def _report_unreadable(process: Process, name: str, error: FileError) -> Run:
    """Report a script that cannot be read; return the exit code."""
    if process.name in _BASH:
        is_directory = "directory" in str(error) and "No such" not in str(error)
        place = f"{name}: {name}" if is_directory else f"{process.name}: {name}"
        yield process.report(f"{place}: {error}")
        return NOT_EXECUTABLE if is_directory else NOT_FOUND
    words = "No such file" if "No such" in str(error) else str(error)
    yield process.report(f"{process.name}: 0: cannot open {name}: {words}")
    return 2


def _read_script(process: Process, name: str) -> str:
    files, path = process.host.files, process.path(name)
    if not files.exists(path) and files.unknown.may_exist(path):
        if process.host.is_strict:
            raise UnknownProgram(name)
        raise NoSuchFile
    return files.read(path).decode("utf-8", "surrogateescape")


def _run_input(shell: Interpreter) -> Run:
    """Run each command of the input as soon as it is complete."""
    shell.letters += "" if "s" in shell.letters else "s"
    if shell.process.host.has_terminal and shell.is_bash:
        shell.letters += "i"
    text = ""
    first_line = 1
    host = shell.process.host
    if host.has_terminal:
        shell.process.processes.be_interactive()
    with shell.process.processes.hold(shell.descriptors):
        while True:
            if host.has_terminal:
                prompt = host.prompt.format(directory=shell.process.directory)
                yield from shell.write(1, "> " if text else prompt)
            stream = shell.descriptors.get(0)
            line = b"" if stream is None else (yield from read_line(stream, limits.MAX_SCRIPT))
            text += line.decode("utf-8", "surrogateescape")
            if (
                line
                and len(text) < limits.MAX_SCRIPT
                and not (yield from in_turns(partial(parser.is_complete, text)))
            ):
                continue
            shell.process.processes.take_interrupt()  # one before the command
            try:
                yield from shell.run_interactively(text, first_line)
            except Interrupted:
                shell.status = _INTERRUPTED
            except ShellExit as stop:
                return (yield from shell.end(stop.code))
            first_line += text.count("\n")
            text = ""
            if not line:
                return (yield from shell.end(shell.status))
