"""Simple commands: assignments, redirections, and the execution of functions, builtins and programs."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Final

from . import builtins, declarations, jobs, limits, reading
from .assignments import assign, declare_word, expand_assignment
from .builtin_errors import BuiltinError, MissingFile, UsageError
from .invoking import NOT_EXECUTABLE, CommandNotFound, find_program, note_unknown
from .messages import message_of, usage
from .network_programs.bash_connections import is_connection, open_connection
from .process import (
    CommandStart,
    DescriptorStream,
    Effect,
    Interrupted,
    Process,
    ProgramKilled,
    Run,
    Steps,
    pass_work,
)
from .quoting import quote_if_needed
from .redirection import RedirectionError, ResolvedRedirect, redirect
from .signals import SIGNAL_CODE, report_killed, run_with_traps_of_function
from .state import ExpansionError, FunctionReturn, Shell, ShellExit
from .streams import BadDescriptor, deliver
from .syntax import Assignment, Redirect, ShellSyntaxError, SimpleCommand
from .variables import ReadOnlyVariable
from .vfs.file_entry import FileError
from .words import expand_text, expand_words

_SYNTAX_ERROR: Final = "Syntax error: "
_BAD_SUBSTITUTION: Final = "Bad substitution"
SPECIAL_BUILTINS: Final = frozenset(
    [
        "break",
        ":",
        "continue",
        ".",
        "eval",
        "exec",
        "exit",
        "export",
        "readonly",
        "return",
        "set",
        "shift",
        "source",
        "times",
        "trap",
        "unset",
    ]
)
"""The builtins whose failure ends a POSIX shell, and before which assignments persist."""
PROGRAM_BUILTINS: Final = frozenset(["echo", "printf", "test", "[", "true", "false", "pwd", "kill"])
"""The programs that are builtins too."""
_ASSIGNING: Final = frozenset(["export", "readonly", "read"])
"""The builtins whose assignment to a read-only variable bash reports as one without a builtin."""
_VARIABLE_NANOSECONDS: Final = 500
"""What a variable in the environment of a program takes."""
_FIRST_FREE: Final = 10
"""The least descriptor that a shell chooses itself."""
Builtin = Callable[[Shell, Sequence[str]], Run]
BUILTINS: Final[Mapping[str, Builtin]] = {
    **builtins.BUILTINS,
    **declarations.BUILTINS,
    **jobs.BUILTINS,
    **reading.BUILTINS,
}


def run(shell: Shell, command: SimpleCommand, *, tested: bool) -> Run:
    pipes = shell.pipes_opened
    try:
        return (yield from _run(shell, command, tested=tested))
    finally:
        shell.close_output_pipes(pipes)


def _run(shell: Shell, command: SimpleCommand, *, tested: bool) -> Run:
    shell.line = command.line
    yield CommandStart()
    yield from pass_work(shell.process.host)
    shell.captured_status = None
    shell.is_tested = tested
    argv = yield from _expand_arguments(shell, command)
    is_special = bool(argv) and argv[0] in SPECIAL_BUILTINS and argv[0] not in shell.functions
    descriptors = shell.descriptors
    if command.redirects:
        try:
            descriptors = yield from apply_redirects(
                shell, (yield from resolve_redirects(shell, command.redirects))
            )
        except FileError as error:
            yield from shell.report(str(error))
            return _fail(shell, is_special=is_special)
        except ExpansionError as error:  # in a here-document: only this command fails
            if is_special or shell.is_bash:
                raise
            yield from shell.report(str(error))
            return 2
    with nullcontext() if shell.is_bash or not command.redirects else shell.with_descriptors(descriptors):
        # bash expands the values of assignments before it redirects, a POSIX shell after that
        if not argv:
            yield from _assign_all(shell, command.assignments)
            return shell.substitution_code
        values = yield from _temporary_values(shell, command.assignments)
    if "xtrace" in shell.options:
        yield from _trace(shell, argv, values)
    if argv[0] == "exec":
        return (yield from _exec(shell, argv, values, descriptors))
    if descriptors is shell.descriptors:
        return (yield from invoke(shell, argv, values))
    with shell.with_descriptors(descriptors):
        return (yield from report_errors(shell, invoke(shell, argv, values)))


def report_error(shell: Shell, error: Exception) -> Steps:
    """Write the message of an error that ends the shell, once."""
    text = message_of(error, is_bash=shell.is_bash)
    if not isinstance(error, ShellSyntaxError):
        yield from shell.report(text)
        return
    if error.is_reported:
        return
    error.is_reported = True
    shell.line = (error.bash_line if shell.is_bash else 0) or error.line or shell.line
    if isinstance(error, ExpansionError) or not shell.is_bash:
        yield from shell.report(_in_words_of_busybox(text) if shell.process.host.has_busybox else text)
        return
    for line in (text, error.source) if error.source else (text,):
        yield from shell.report_parser(line)


def _in_words_of_busybox(text: str) -> str:
    """Return a message of dash about a syntax error as busybox words it, such as `syntax error: unexpected ")"`."""
    problem = text.removeprefix(_SYNTAX_ERROR)
    if problem == text != _BAD_SUBSTITUTION:
        return text
    token, unexpected, expected = problem.partition(" unexpected")
    if unexpected:
        problem = f"unexpected {token}{expected}"
    elif not problem.startswith("EOF"):
        problem = problem[0].lower() + problem[1:]
    return f"{_SYNTAX_ERROR.lower()}{problem}"


def report_errors(shell: Shell, execution: Run) -> Run:
    """Execute a command whose redirections also apply to the message of an error that ends the shell."""
    try:
        return (yield from execution)
    except ShellSyntaxError as error:
        yield from report_error(shell, error)
        raise


def _fail(shell: Shell, *, is_special: bool) -> int:
    if is_special and not shell.is_bash:
        raise ShellExit(shell.failed_redirection_code)
    return shell.failed_redirection_code


def _expand_arguments(shell: Shell, command: SimpleCommand) -> Generator[Effect, bytes | None, list[str]]:
    words = command.words
    if not any(isinstance(word, Assignment) for word in words):
        return (yield from expand_words(shell, words))  # type: ignore[arg-type]
    argv: list[str] = []
    for word in words:
        if isinstance(word, Assignment):
            argv.append((yield from declare_word(shell, word, argv)))
        else:
            argv += yield from expand_words(shell, [word])
    return argv


def _assign_all(shell: Shell, assignments: Sequence[Assignment]) -> Steps:
    for assignment in assignments:
        yield from assign(shell, assignment)
        if "xtrace" in shell.options and assignment.elements is None:
            value = quote_if_needed(shell.variables.get(assignment.name) or "")
            yield from shell.write(2, f"{shell.parameter('PS4')}{assignment.name}={value}\n")


def _temporary_values(
    shell: Shell, assignments: Sequence[Assignment]
) -> Generator[Effect, bytes | None, dict[str, str]]:
    values: dict[str, str] = {}
    for assignment in assignments:
        value = yield from expand_assignment(shell, assignment)
        try:
            shell.variables.check_writable(assignment.name)
        except ReadOnlyVariable as error:
            if not shell.is_bash:
                raise
            yield from shell.report(error.bash)
            continue
        if assignment.appends:
            value = (shell.parameter(assignment.name) or "") + value
        values[assignment.name] = value
    return values


def _trace(shell: Shell, argv: Sequence[str], values: Mapping[str, str]) -> Steps:
    words = [f"{name}={quote_if_needed(value)}" for name, value in values.items()]
    words += [quote_if_needed(word) for word in argv]
    yield from shell.write(2, f"{shell.parameter('PS4')}{' '.join(words)}\n")


# --- redirections


def resolve_redirects(
    shell: Shell, redirects: Sequence[Redirect]
) -> Generator[Effect, bytes | None, list[ResolvedRedirect | Redirect]]:
    """Expand the targets of redirections, but not the texts of here-documents."""
    resolved: list[ResolvedRedirect | Redirect] = []
    for each in redirects:
        if each.document is not None or each.operator == "<<<":
            resolved.append(each)
            continue
        target = yield from _target(shell, each)
        descriptor = _variable_descriptor(shell, each, target) if each.variable else each.descriptor
        resolved.append(ResolvedRedirect(descriptor, each.operator, target))
    return resolved


def _target(shell: Shell, each: Redirect) -> Generator[Effect, bytes | None, str]:
    """Expand the target of a redirection: one word in bash, which may be the name of a file that matches."""
    if not shell.is_bash:
        return (yield from expand_text(shell, each.target))
    words = yield from expand_words(shell, [each.target])
    if len(words) != 1:
        raise RedirectionError(f"{each.source}: ambiguous redirect")
    return words[0]


def _variable_descriptor(shell: Shell, each: Redirect, target: str) -> int:
    """Return the descriptor of `{name}>file`: a free one, whose number the variable gets, or the one to be closed."""
    if target == "-":
        value = shell.parameter(each.variable) or ""
        if not (value.isascii() and value.isdecimal()):
            raise ExpansionError(f"{each.variable}: ambiguous redirect")
        return int(value[:9])
    number = _FIRST_FREE
    while number in shell.descriptors:
        number += 1
    shell.assign(each.variable, str(number))
    return number


def apply_redirects(
    shell: Shell, redirects: Sequence[ResolvedRedirect | Redirect]
) -> Generator[Effect, bytes | None, dict[int, DescriptorStream]]:
    """Return the shell's descriptors after redirections; raise `RedirectionError`."""
    descriptors = dict(shell.descriptors)
    for each in redirects:
        resolved = each
        if isinstance(each, Redirect):
            if each.document is not None:
                text = yield from expand_text(shell, each.document.text)
            else:
                text = (yield from expand_text(shell, each.target)) + "\n"
            resolved = ResolvedRedirect(each.descriptor, "<<", text)
        assert isinstance(resolved, ResolvedRedirect)
        if shell.is_bash and is_connection(resolved.target):
            descriptors[resolved.descriptor] = yield from open_connection(shell.process, resolved.target)
            continue
        redirect(shell.process, descriptors, resolved, keeps_files="noclobber" in shell.options)
    return descriptors


# --- invocation


def invoke(
    shell: Shell, argv: Sequence[str], values: Mapping[str, str], *, finds_functions: bool = True
) -> Run:
    """Execute a function, builtin or program."""
    name = argv[0]
    if finds_functions and name in shell.functions:
        with _with_values(shell, values):
            return (yield from call(shell, name, argv))
    builtin = BUILTINS.get(name)
    if builtin is None:
        return (yield from run_program(shell, argv, values))
    if name in SPECIAL_BUILTINS and finds_functions and not shell.is_bash:
        for variable, value in values.items():
            shell.assign(variable, value)
        return (yield from _run_builtin(shell, builtin, argv, is_special=True))
    with _with_values(shell, values):
        return (yield from _run_builtin(shell, builtin, argv, is_special=False))


def _run_builtin(shell: Shell, builtin: Builtin, argv: Sequence[str], *, is_special: bool) -> Run:
    try:
        return (yield from builtin(shell, argv))
    except BuiltinError as error:
        yield from _report_builtin(shell, argv[0], error)
        if is_special and not shell.is_bash and not error.is_mild:
            raise ShellExit(error.code) from None
        return error.bash_code if shell.is_bash else error.code
    except ReadOnlyVariable as error:
        if argv[0] == "read" or shell.is_bash:
            name = "" if shell.is_bash and argv[0] in _ASSIGNING else f"{argv[0]}: "
            yield from shell.report(f"{name}{message_of(error, is_bash=shell.is_bash)}")
            return 1 if shell.is_bash else 2
        raise ExpansionError(f"{argv[0]}: {error}") from None
    except BadDescriptor:
        return 1


def _report_builtin(shell: Shell, name: str, error: BuiltinError) -> Steps:
    if isinstance(error, UsageError) and shell.is_bash:
        yield from shell.write(2, f"{usage(name)}\n")
    elif isinstance(error, MissingFile):
        yield from shell.report(str(error))
    else:
        yield from shell.report(f"{name}: {message_of(error, is_bash=shell.is_bash)}")


@contextmanager
def _with_values(shell: Shell, values: Mapping[str, str]) -> Iterator[None]:
    """Set variables for the time of a command."""
    if not values:
        yield
        return
    shell.variables.enter_scope()
    try:
        for name, value in values.items():
            shell.variables.make_local(name, inherits=True)
            shell.variables.set(name, value)
            shell.variables.change(name, is_exported=True)
        yield
    finally:
        shell.variables.leave_scope()


def call(shell: Shell, name: str, argv: Sequence[str]) -> Run:
    """Call a function."""
    if len(shell.calls) >= limits.MAX_FUNCTION_CALLS:
        raise ExpansionError(f"{name}: functions are nested too deeply")
    before, loops = shell.arguments, shell.loops
    shell.arguments, shell.loops = list(argv[1:]), 0
    shell.calls.append(name)
    shell.origin.files.append(shell.origin.definitions[name])
    shell.variables.enter_scope()
    try:
        return (yield from run_with_traps_of_function(shell, _function_body(shell, name)))
    except ShellSyntaxError as error:
        yield from report_error(shell, error)  # with the file of the function
        raise
    finally:
        shell.variables.leave_scope()
        shell.calls.pop()
        shell.origin.files.pop()
        shell.arguments, shell.loops = before, loops


def _function_body(shell: Shell, name: str) -> Run:
    try:
        return (yield from shell.run(shell.functions[name], tested=shell.is_tested))
    except FunctionReturn as stop:
        return stop.code


def run_program(
    shell: Shell, argv: Sequence[str], values: Mapping[str, str], *, is_exec: bool = False
) -> Run:
    environment = {**shell.variables.environment(), **values}
    shell.process.host.work += _VARIABLE_NANOSECONDS * len(environment)
    process = shell.process.child(argv, environment, shell.descriptors)
    replaces_shell = is_exec or isinstance(shell.whole_command, SimpleCommand)
    process.is_executed, process.parent = replaces_shell, shell.process.parent
    is_builtin = argv[0] in PROGRAM_BUILTINS
    if is_builtin:
        process.is_bash, process.place = shell.is_bash, shell.place()
    try:
        program = find_program(
            process, shell="bash" if shell.is_bash else "sh", is_builtin=is_builtin and not is_exec
        )
    except CommandNotFound as error:
        note_unknown(process, error)
        yield from _report_missing(shell, process, error, is_exec=is_exec)
        return error.code
    if is_builtin:
        return (yield from deliver(program(process), process, is_builtin=True))
    with process.processes.execute(argv, replaces_shell=replaces_shell) as running:
        execution = deliver(program(process), process)
        if process.host.has_terminal:
            execution = _interruptible(execution, process)
        try:
            code = yield from execution
        except ProgramKilled as killed:
            if killed.program is not running:
                raise
            code = SIGNAL_CODE + killed.number
            yield from report_killed(shell, killed.number, process.processes.next_pid(), argv)
    if running.child is not None and (number := running.child.killed_by):
        yield from report_killed(shell, number, running.child.pid, argv)
    return code


def _interruptible(execution: Run, process: Process) -> Run:
    """Execute a program until the user of the terminal interrupts it; raise `Interrupted` then."""
    reply: bytes | None = None
    try:
        while True:
            if process.processes.take_interrupt():
                raise Interrupted
            try:
                effect = execution.send(reply) if reply else next(execution)
            except StopIteration as stop:
                code: int = stop.value
                return code
            reply = yield effect
    finally:
        execution.close()


def _report_missing(shell: Shell, process: Process, error: CommandNotFound, *, is_exec: bool) -> Steps:
    """Report a program that cannot be executed."""
    name, message = process.name, message_of(error, is_bash=shell.is_bash)
    if is_exec and not shell.is_bash:
        name = f"exec: {name}"
    elif is_exec and "/" not in name:
        name, message = f"exec: {name}", str(error)
    elif is_exec:
        name = process.path(name)
    yield from shell.report(f"{name}: {message}")
    if is_exec and shell.is_bash and error.code == NOT_EXECUTABLE:
        yield from shell.report(f"exec: {name}: cannot execute: {message}")


def _exec(
    shell: Shell, argv: Sequence[str], values: Mapping[str, str], descriptors: dict[int, DescriptorStream]
) -> Run:
    arguments = list(argv[1:])
    while arguments and arguments[0].startswith("-") and shell.is_bash:
        option = arguments.pop(0)
        if option == "-a":
            arguments = arguments[1:]
    if not arguments:
        if descriptors is not shell.descriptors:
            shell.descriptors.clear()
            shell.descriptors.update(descriptors)
        for name, value in values.items():
            shell.assign(name, value)
        return 0
    with shell.with_descriptors(descriptors):
        code = yield from run_program(shell, arguments, values, is_exec=True)
    shell.traps.clear()
    raise ShellExit(code)
