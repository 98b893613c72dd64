"""Builtins that change the shell or its control flow: exit, eval, `.`, set, shift, trap, cd, command and the like."""

from collections.abc import Callable, Mapping, Sequence
from posixpath import join
from typing import Final

from . import limits
from .arithmetic import evaluate
from .builtin_errors import BuiltinError, MissingFile, UsageError, invalid_number, invalid_option
from .command_lookup import BUILTINS as LOOKUP_BUILTINS
from .declarations import print_values
from .directories import BUILTINS as DIRECTORY_BUILTINS
from .messages import usage
from .parameters import ExpressionVariables
from .process import ProgramUsageError, Run, UnknownProgram
from .programs.modes import parse_mode, symbolic_rights
from .quoting import quote
from .signals import caught_signals, condition_name
from .state import (
    OPTION_LETTERS,
    OPTION_NAMES,
    DiscardError,
    ExpansionError,
    FunctionReturn,
    LoopControl,
    Shell,
    ShellExit,
)
from .syntax import ShellSyntaxError
from .vfs.file_entry import AccessDenied, FileError

_FEATURES: Final = frozenset(
    [
        "autocd",
        "cdspell",
        "checkhash",
        "checkjobs",
        "checkwinsize",
        "cmdhist",
        "compat31",
        "complete_fullquote",
        "dotglob",
        "execfail",
        "expand_aliases",
        "extdebug",
        "extglob",
        "extquote",
        "failglob",
        "force_fignore",
        "globasciiranges",
        "globskipdots",
        "globstar",
        "gnu_errfmt",
        "histappend",
        "histreedit",
        "histverify",
        "hostcomplete",
        "huponexit",
        "inherit_errexit",
        "interactive_comments",
        "lastpipe",
        "lithist",
        "localvar_inherit",
        "localvar_unset",
        "login_shell",
        "mailwarn",
        "no_empty_cmd_completion",
        "nocaseglob",
        "nocasematch",
        "nullglob",
        "patsub_replacement",
        "progcomp",
        "progcomp_alias",
        "promptvars",
        "restricted_shell",
        "shift_verbose",
        "sourcepath",
        "xpg_echo",
    ]
)
_BAD_LEVELS: Final = 128
"""The exit code of bash after a `break` with an argument that is no number."""
_NOT_SIMULATED: Final = frozenset(
    ["extglob", "globstar", "lastpipe", "failglob", "nocaseglob", "dotglob", "expand_aliases", "xpg_echo"]
)
"""The options of `shopt` that would change what scripts do, and have no effect here."""


def number_argument(text: str) -> int:
    """Return a count that is an argument; raise `BuiltinError`."""
    digits = text.removeprefix("+")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 10):
        raise invalid_number(text)
    return int(digits)


def _colon(_shell: Shell, _argv: Sequence[str]) -> Run:
    return 0
    yield


def _exit(shell: Shell, argv: Sequence[str]) -> Run:
    raise ShellExit(_code(shell, argv))
    yield


def _return(shell: Shell, argv: Sequence[str]) -> Run:
    if shell.is_bash and not shell.calls and not shell.origin.sources:
        raise BuiltinError("can only `return' from a function or sourced script", 2, is_mild=True)
    raise FunctionReturn(_code(shell, argv))
    yield


def _code(shell: Shell, argv: Sequence[str]) -> int:
    if len(argv) < 2:
        return shell.status
    text = argv[1]
    if text.startswith("-") and text[1:].isdecimal() and shell.is_bash:
        return -int(text[1:][:9]) % 256
    try:
        code = number_argument(text) % 256
    except BuiltinError:
        raise invalid_number(text, bash_code=2) from None
    if len(argv) > 2 and shell.is_bash:
        raise BuiltinError("too many arguments", 1)
    return code


def _break(shell: Shell, argv: Sequence[str]) -> Run:
    if not shell.loops and shell.is_bash:
        yield from shell.report(f"{argv[0]}: only meaningful in a `for', `while', or `until' loop")
        return 0
    try:
        levels = number_argument(argv[1]) if len(argv) > 1 else 1
    except BuiltinError as error:
        if not shell.is_bash:
            raise
        yield from shell.report(f"{argv[0]}: {error.bash}")
        raise ShellExit(_BAD_LEVELS) from None
    if levels == 0:
        raise BuiltinError("Illegal number: 0", bash="0: loop count out of range", bash_code=1)
    if shell.loops:
        raise LoopControl(min(levels, shell.loops), is_continue=argv[0] == "continue")
    return 0


def _eval(shell: Shell, argv: Sequence[str]) -> Run:
    arguments = argv[2:] if argv[1:2] == ["--"] else argv[1:]
    reader, shell.origin.reader = shell.origin.reader, "eval"
    evaluates, shell.origin.evaluates = shell.origin.evaluates, True
    try:
        return (yield from _run_text(shell, " ".join(arguments), line=shell.line if shell.is_bash else 1))
    finally:
        shell.origin.reader, shell.origin.evaluates = reader, evaluates


def _run_text(shell: Shell, text: str, *, line: int = 1) -> Run:
    """Execute a text; bash continues behind one that is no script."""
    try:
        return (yield from shell.run_text(text, tested=shell.is_tested, line=line))
    except ShellSyntaxError as error:
        yield from shell.report_error(error)
        if isinstance(error, ExpansionError) or not shell.is_bash:
            raise
        return 2


def _source(shell: Shell, argv: Sequence[str]) -> Run:
    arguments = list(argv[2:] if argv[1:2] == ["--"] else argv[1:])
    if not arguments:
        if shell.is_bash:
            raise BuiltinError(f"filename argument required\n{usage(argv[0])}", 2)
        return 0
    text = _read_source(shell, arguments[0])
    if shell.origin.sources >= limits.MAX_SOURCES:
        raise BuiltinError("files are nested too deeply")
    before = shell.arguments
    if len(arguments) > 1 and shell.is_bash:
        shell.arguments = arguments[1:]
    shell.origin.sources += 1
    reader, shell.origin.reader = shell.origin.reader, arguments[0]
    evaluates, shell.origin.evaluates = shell.origin.evaluates, False
    shell.origin.files.append(arguments[0])
    shell.is_tested = shell.is_tested and shell.is_bash
    line = shell.line
    try:
        return (yield from _run_text(shell, text))
    except FunctionReturn as stop:
        return stop.code
    finally:
        shell.origin.sources -= 1
        shell.origin.reader, shell.origin.evaluates, shell.line = reader, evaluates, line
        shell.origin.files.pop()
        if len(arguments) > 1 and shell.is_bash:
            shell.arguments = before


def _read_source(shell: Shell, name: str) -> str:
    files, process = shell.process.host.files, shell.process
    paths = [process.path(name)]
    if "/" not in name:
        paths = [join(folder or ".", name) for folder in (shell.parameter("PATH") or "").split(":")]
        paths += [name] if shell.is_bash else []
        paths = [path for path in map(process.path, paths) if files.exists(path)]
        if not paths:
            if shell.is_bash:
                raise MissingFile(f"{name}: No such file or directory")
            raise BuiltinError(f"{name}: not found")
    if not files.exists(paths[0]) and files.unknown.may_exist(paths[0]) and process.host.is_strict:
        raise UnknownProgram(name)
    try:
        data = files.read(paths[0])
    except FileError as error:
        if str(error) == "Is a directory" and not shell.is_bash:
            return ""
        if shell.is_bash and "No such" in str(error):
            raise MissingFile(f"{name}: {error}") from error
        message = f"cannot open {name}: No such file" if "No such" in str(error) else f"{name}: {error}"
        bash = f"{name}: {str(error)[0].lower()}{str(error)[1:]}"
        if isinstance(error, AccessDenied):
            message, bash = f"cannot open {name}: {error}", f"{name}: {error}"
        raise BuiltinError(message, bash=bash, bash_code=1) from error
    return data.decode("utf-8", "surrogateescape")


def _shift(shell: Shell, argv: Sequence[str]) -> Run:
    if shell.is_bash and argv[1:2] and argv[1].startswith("-") and argv[1][1:].isdecimal():
        raise BuiltinError(f"{argv[1]}: shift count out of range", 1)
    count = number_argument(argv[1]) if len(argv) > 1 else 1
    if count > len(shell.arguments):
        if shell.is_bash:
            return 1
        raise BuiltinError("can't shift that many")
    del shell.arguments[:count]
    shell.variables.changes += 1
    return 0
    yield


def _set(shell: Shell, argv: Sequence[str]) -> Run:
    arguments = list(argv[1:])
    if not arguments:
        return (yield from print_values(shell))
    shell.variables.changes += 1
    while arguments:
        argument = arguments.pop(0)
        if argument in ("--", "-"):
            shell.arguments = arguments if argument == "--" or arguments else shell.arguments
            return 0
        if argument[:1] not in ("-", "+") or len(argument) < 2:
            shell.arguments = [argument, *arguments]
            return 0
        enables = argument[0] == "-"
        for letter in argument[1:]:
            if letter == "o" and not arguments:
                yield from _print_options(shell)
            else:
                name = arguments.pop(0) if letter == "o" else OPTION_LETTERS.get(letter, "")
                if not name:
                    raise invalid_option("set", letter)
                set_option(shell, name, enables=enables, word=f"-{letter}" if letter != "o" else f"-o {name}")
    return 0


def set_option(shell: Shell, name: str, *, enables: bool, word: str) -> None:
    """Enable or disable an option of `set`; raise `BuiltinError` if it does not exist."""
    if name not in OPTION_NAMES:
        raise BuiltinError(f"Illegal option {word}", bash=f"{name}: invalid option name")
    if enables:
        shell.options.add(name)
    else:
        shell.options.discard(name)


def _print_options(shell: Shell) -> Run:
    lines = [f"{name:<16}{'on' if name in shell.options else 'off'}\n" for name in sorted(OPTION_NAMES)]
    yield from shell.write(1, "".join(lines))
    return 0


def _shopt(shell: Shell, argv: Sequence[str]) -> Run:
    options = "".join(argument[1:] for argument in argv[1:] if argument.startswith("-"))
    names = [argument for argument in argv[1:] if not argument.startswith("-")]
    code = 0
    for name in names:
        if "o" in options:
            set_option(shell, name, enables="s" in options, word=name)
            continue
        if name not in _FEATURES:
            raise BuiltinError(f"{name}: invalid shell option name", 1)
        if "s" in options and name in _NOT_SIMULATED:
            raise BuiltinError(f"{name} is not simulated", 1)
        if "s" in options:
            shell.features.add(name)
        elif "u" in options:
            shell.features.discard(name)
        else:
            code = code or int(name not in shell.features)
            if "q" not in options:
                yield from shell.write(1, f"{name}\t{'on' if name in shell.features else 'off'}\n")
    return code


def _trap(shell: Shell, argv: Sequence[str]) -> Run:
    arguments = [argument for argument in argv[1:] if argument != "--"]
    if not arguments or arguments[0] == "-p":
        for name, text in shell.traps.items():
            yield from shell.write(1, f"trap -- {quote(text)} {name}\n")
        return 0
    if arguments[0] == "-l":
        raise BuiltinError("-l is not simulated")
    action: str | None = arguments[0]
    names = arguments[1:]
    if action == "-" or (not names) or arguments[0].isdecimal():
        names = names if action == "-" else arguments
        action = None
    for argument in names:
        condition = condition_name(argument)
        if condition is None:
            raise _bad_trap(argument, has_action=arguments[0] != argument)
        if condition == "DEBUG" and action:
            raise BuiltinError("DEBUG is not simulated", 2)
        if action is None:
            shell.traps.pop(condition, None)
        else:
            shell.traps[condition] = action
    shell.variables.changes += 1
    if shell.owns_process:
        shell.process.processes.catch_signals(caught_signals(shell))
        shell.process.host.catches_signals = True
    return 0


def _bad_trap(condition: str, *, has_action: bool) -> BuiltinError:
    message = f"{condition}: bad trap"
    if not has_action:
        return UsageError(message, 1, bash_code=2, is_mild=True)
    return BuiltinError(message, 1, bash=f"{condition}: invalid signal specification", is_mild=True)


def _let(shell: Shell, argv: Sequence[str]) -> Run:
    value = 0
    if len(argv) < 2:
        raise BuiltinError("expression expected", 1)
    for expression in argv[1:]:
        try:
            value = evaluate(expression, ExpressionVariables(shell))
        except DiscardError as error:
            raise BuiltinError(str(error), 1, bash=error.bash) from error
    return int(not value)
    yield


_MAX_MODE_DIGITS: Final = 5


def _umask(shell: Shell, argv: Sequence[str]) -> Run:
    host, arguments = shell.process.host, argv[1:]
    if not arguments:
        yield from shell.write(1, f"{host.umask:04o}\n")
    elif arguments[0] == "-S":
        yield from shell.write(1, f"{symbolic_rights(0o777 & ~host.umask)}\n")
    elif arguments[0].startswith("-"):
        raise invalid_option("umask", arguments[0][1:2])
    elif arguments[0].isdecimal():
        if not set(arguments[0]) <= set("01234567") or len(arguments[0]) > _MAX_MODE_DIGITS:
            bash = f"{arguments[0]}: octal number out of range"
            raise BuiltinError(f"Illegal number: {arguments[0]}", 2, bash=bash, bash_code=1)
        host.umask = int(arguments[0], 8) & 0o777
    else:
        try:
            host.umask = 0o777 & ~parse_mode(arguments[0], 0o777 & ~host.umask)
        except ProgramUsageError as error:
            bash = f"`{arguments[0][:1]}': invalid symbolic mode operator"
            raise BuiltinError(f"Illegal mode: {arguments[0]}", 2, bash=bash, bash_code=1) from error
    return 0


def _ulimit(shell: Shell, argv: Sequence[str]) -> Run:
    if not any(argument.isdecimal() or argument == "unlimited" for argument in argv[1:]):
        yield from shell.write(1, "1048576\n" if "-n" in argv or "-Hn" in argv else "unlimited\n")
    return 0


def _times(shell: Shell, _: Sequence[str]) -> Run:
    yield from shell.write(1, "0m0.00s 0m0.00s\n0m0.00s 0m0.00s\n")
    return 0


def _alias(_: Shell, argv: Sequence[str]) -> Run:
    if argv[0] == "alias" and any("=" in argument for argument in argv[1:]):
        raise BuiltinError("aliases are not simulated", 1)
    for name in argv[1:]:
        if not name.startswith("-"):
            raise BuiltinError(f"{name}: not found", 1)
    return 0
    yield


BUILTINS: Final[Mapping[str, Callable[[Shell, Sequence[str]], Run]]] = {
    **LOOKUP_BUILTINS,
    **DIRECTORY_BUILTINS,
    ":": _colon,
    "exit": _exit,
    "return": _return,
    "break": _break,
    "continue": _break,
    "eval": _eval,
    ".": _source,
    "source": _source,
    "shift": _shift,
    "set": _set,
    "shopt": _shopt,
    "trap": _trap,
    "let": _let,
    "umask": _umask,
    "ulimit": _ulimit,
    "times": _times,
    "alias": _alias,
    "unalias": _alias,
}
