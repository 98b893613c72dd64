"""Builtins that change the shell or its control flow: exit, eval, `.`, set, shift, trap, cd, command and the like."""

from collections.abc import Callable, Mapping, Sequence
from posixpath import join
from typing import Final

from . import limits
from .arithmetic import evaluate
from .builtin_errors import BuiltinError
from .command_lookup import BUILTINS as LOOKUP_BUILTINS
from .directories import BUILTINS as DIRECTORY_BUILTINS
from .filesystem import FileError
from .parameters import ExpressionVariables
from .process import Run, UnknownProgram
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
        "progcomp",
        "progcomp_alias",
        "promptvars",
        "restricted_shell",
        "shift_verbose",
        "sourcepath",
        "xpg_echo",
    ]
)
_NOT_SIMULATED: Final = frozenset(
    ["extglob", "globstar", "lastpipe", "failglob", "nocaseglob", "dotglob", "expand_aliases", "xpg_echo"]
)
"""The options of `shopt` that would change what scripts do, and have no effect here."""


def number_argument(text: str) -> int:
    """Return a count that is an argument; raise `BuiltinError`."""
    digits = text.removeprefix("+")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 10):
        raise BuiltinError(f"Illegal number: {text}")
    return int(digits)


def _colon(_shell: Shell, _argv: Sequence[str]) -> Run:
    return 0
    yield


def _exit(shell: Shell, argv: Sequence[str]) -> Run:
    raise ShellExit(_code(shell, argv))
    yield


def _return(shell: Shell, argv: Sequence[str]) -> Run:
    if shell.is_bash and not shell.calls and not shell.sources:
        raise BuiltinError("can only `return' from a function or sourced script", 2, is_mild=True)
    raise FunctionReturn(_code(shell, argv))
    yield


def _code(shell: Shell, argv: Sequence[str]) -> int:
    if len(argv) < 2:
        return shell.status
    text = argv[1]
    if text.startswith("-") and text[1:].isdecimal() and shell.is_bash:
        return -int(text[1:][:9]) % 256
    return number_argument(text) % 256


def _break(shell: Shell, argv: Sequence[str]) -> Run:
    levels = number_argument(argv[1]) if len(argv) > 1 else 1
    if levels == 0:
        raise BuiltinError("Illegal number: 0")
    if shell.loops:
        raise LoopControl(min(levels, shell.loops), is_continue=argv[0] == "continue")
    return 0
    yield


def _eval(shell: Shell, argv: Sequence[str]) -> Run:
    arguments = argv[2:] if argv[1:2] == ["--"] else argv[1:]
    try:
        return (yield from shell.run_text(" ".join(arguments), tested=shell.is_tested))
    except ShellSyntaxError as error:
        if isinstance(error, ExpansionError) or not shell.is_bash:
            raise
        raise BuiltinError(str(error)) from error


def _source(shell: Shell, argv: Sequence[str]) -> Run:
    arguments = list(argv[2:] if argv[1:2] == ["--"] else argv[1:])
    if not arguments:
        if shell.is_bash:
            raise BuiltinError("filename argument required", 2)
        return 0
    text = _read_source(shell, arguments[0])
    if shell.sources >= limits.MAX_SOURCES:
        raise BuiltinError("files are nested too deeply")
    before = shell.arguments
    if len(arguments) > 1 and shell.is_bash:
        shell.arguments = arguments[1:]
    shell.sources += 1
    try:
        return (yield from shell.run_text(text, tested=shell.is_tested and shell.is_bash))
    except FunctionReturn as stop:
        return stop.code
    finally:
        shell.sources -= 1
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
            raise BuiltinError(f"{name}: not found", 1 if shell.is_bash else 2)
    if not files.exists(paths[0]) and files.may_exist(paths[0]) and process.host.is_strict:
        raise UnknownProgram(name)
    try:
        data = files.read(paths[0])
    except FileError as error:
        message = f"cannot open {name}: No such file" if "No such" in str(error) else f"{name}: {error}"
        raise BuiltinError(message, 1 if shell.is_bash else 2) from error
    return data.decode("utf-8", "surrogateescape")


def _shift(shell: Shell, argv: Sequence[str]) -> Run:
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
        for name in shell.variables.names():
            value = shell.variables.get(name)
            if value is not None:
                yield from shell.write(1, f"{name}={quote(value)}\n")
        return 0
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
                set_option(shell, name, enables=enables, word=f"-{letter}" if letter != "o" else f"-o {name}")
    return 0


def set_option(shell: Shell, name: str, *, enables: bool, word: str) -> None:
    """Enable or disable an option of `set`; raise `BuiltinError` if it does not exist."""
    if name not in OPTION_NAMES:
        raise BuiltinError(f"Illegal option {word}")
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
            raise BuiltinError(f"{argument}: bad trap", 1, is_mild=True)
        if condition == "DEBUG" and action:
            raise BuiltinError("DEBUG is not simulated", 2)
        if action is None:
            shell.traps.pop(condition, None)
        else:
            shell.traps[condition] = action
    shell.variables.changes += 1
    if shell.owns_process:
        shell.process.processes.catch_signals(caught_signals(shell))
    return 0


def _let(shell: Shell, argv: Sequence[str]) -> Run:
    value = 0
    for expression in argv[1:]:
        try:
            value = evaluate(expression, ExpressionVariables(shell))
        except DiscardError as error:
            raise BuiltinError(str(error), 1) from error
    return int(not value)
    yield


def _umask(shell: Shell, argv: Sequence[str]) -> Run:
    if len(argv) < 2:
        yield from shell.write(1, "0022\n")
    return 0


def _ulimit(shell: Shell, argv: Sequence[str]) -> Run:
    if not any(argument.isdecimal() or argument == "unlimited" for argument in argv[1:]):
        yield from shell.write(1, "1048576\n" if "-n" in argv or "-Hn" in argv else "unlimited\n")
    return 0


def _times(shell: Shell, _: Sequence[str]) -> Run:
    yield from shell.write(1, "0m0.00s 0m0.00s\n0m0.00s 0m0.00s\n")
    return 0


def _alias(_: Shell, argv: Sequence[str]) -> Run:
    if len(argv) > 1 and argv[0] == "alias" and any("=" in argument for argument in argv[1:]):
        raise BuiltinError("aliases are not simulated", 1)
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
