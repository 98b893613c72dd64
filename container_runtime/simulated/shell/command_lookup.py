"""Builtins that look up commands: command, builtin, type and hash."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from .builtin_errors import BuiltinError
from .invoking import CommandNotFound, find_program, program_path
from .process import Run, UnknownProgram
from .state import Shell
from .syntax import BASH_KEYWORDS, KEYWORDS

BUILTIN_NAMES: Final = frozenset(
    [
        ".",
        ":",
        "[",
        "alias",
        "bg",
        "break",
        "cd",
        "chdir",
        "command",
        "continue",
        "echo",
        "eval",
        "exec",
        "exit",
        "export",
        "false",
        "fg",
        "getopts",
        "hash",
        "jobs",
        "kill",
        "local",
        "printf",
        "pwd",
        "read",
        "readonly",
        "return",
        "set",
        "shift",
        "test",
        "times",
        "trap",
        "true",
        "type",
        "ulimit",
        "umask",
        "unalias",
        "unset",
        "wait",
    ]
)
BASH_BUILTIN_NAMES: Final = frozenset(
    [
        "source",
        "declare",
        "typeset",
        "let",
        "shopt",
        "mapfile",
        "readarray",
        "builtin",
        "pushd",
        "popd",
        "dirs",
        "disown",
        "enable",
        "caller",
    ]
)
SHELL_WORDS: Final = KEYWORDS | BASH_KEYWORDS | BUILTIN_NAMES | BASH_BUILTIN_NAMES
"""The first words of commands that a shell executes itself."""


def _command(shell: Shell, argv: Sequence[str]) -> Run:
    arguments = list(argv[1:])
    options = ""
    while arguments and arguments[0].startswith("-") and arguments[0] != "--":
        options += arguments.pop(0)[1:]
    if arguments[:1] == ["--"]:
        arguments.pop(0)
    if not arguments:
        return 0
    if "v" in options or "V" in options:
        code = 0
        for name in arguments[: None if shell.is_bash else 1]:
            code = (yield from _describe(shell, "command", name, is_long="V" in options)) or code
        return code
    return (yield from shell.invoke(arguments, {}, finds_functions=False))


def _builtin(shell: Shell, argv: Sequence[str]) -> Run:
    if len(argv) < 2:
        return 0
    if not _is_builtin(shell, argv[1]):
        raise BuiltinError(f"{argv[1]}: not a shell builtin", 1)
    return (yield from shell.invoke(argv[1:], {}, finds_functions=False))


def _is_builtin(shell: Shell, name: str) -> bool:
    return name in BUILTIN_NAMES or (shell.is_bash and name in BASH_BUILTIN_NAMES)


def _type(shell: Shell, argv: Sequence[str]) -> Run:
    code = 0
    options = "".join(argument[1:] for argument in argv[1:] if argument.startswith("-"))
    for name in (argument for argument in argv[1:] if not argument.startswith("-")):
        if "t" in options:
            kind = _kind(shell, name)
            code = code or int(not kind)
            yield from shell.write(1, f"{kind}\n" if kind else "")
        elif "p" in options or "P" in options:
            path = _path(shell, name)
            code = code or int(not path)
            yield from shell.write(1, f"{path}\n" if path else "")
        else:
            code = (yield from _describe(shell, "type", name, is_long=True)) or code
    return code


def _kind(shell: Shell, name: str) -> str:
    if name in KEYWORDS or (shell.is_bash and name in BASH_KEYWORDS):
        return "keyword"
    if name in shell.functions:
        return "function"
    if _is_builtin(shell, name):
        return "builtin"
    return "file" if _path(shell, name) else ""


def _path(shell: Shell, name: str) -> str:
    process = shell.process.child([name], shell.variables.environment())
    try:
        find_program(process)
    except (CommandNotFound, UnknownProgram):
        return ""
    return program_path(process)


def _describe(shell: Shell, builtin: str, name: str, *, is_long: bool) -> Run:
    kind = _kind(shell, name)
    if not kind:
        if is_long and not shell.is_bash:
            yield from shell.write(1, f"{name}: not found\n")
        elif is_long:
            yield from shell.report(f"{builtin}: {name}: not found")
        return 1 if shell.is_bash else 127
    text = _path(shell, name) if kind == "file" else name
    if is_long:
        special = "special shell" if name in ("exit", "set", "eval", ":", ".", "export", "trap") else "shell"
        text = {
            "keyword": f"{name} is a shell keyword",
            "function": f"{name} is a {'' if shell.is_bash else 'shell '}function",
            "builtin": f"{name} is a {'shell' if shell.is_bash else special} builtin",
            "file": f"{name} is {text}",
        }[kind]
    yield from shell.write(1, f"{text}\n")
    return 0


def _hash(shell: Shell, argv: Sequence[str]) -> Run:
    code = 0
    for name in (argument for argument in argv[1:] if not argument.startswith("-")):
        if not _kind(shell, name):
            yield from shell.report(f"hash: {name}: not found")
            code = 1
    return code


BUILTINS: Final[Mapping[str, Callable[[Shell, Sequence[str]], Run]]] = {
    "command": _command,
    "builtin": _builtin,
    "type": _type,
    "hash": _hash,
}
