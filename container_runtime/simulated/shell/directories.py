"""Builtins that change the working directory: cd, pushd, popd and dirs."""

from collections.abc import Callable, Mapping, Sequence
from posixpath import join
from typing import Final

from . import limits
from .access import SEARCH
from .builtin_errors import BuiltinError
from .process import Run
from .state import Shell


def _change_directory(shell: Shell, argv: Sequence[str]) -> Run:
    arguments = [argument for argument in argv[1:] if argument not in ("-P", "-L", "--", "-e", "-@")]
    if len(arguments) > 1 and shell.is_bash:
        raise BuiltinError("too many arguments", 1)
    home_directory = shell.parameter("HOME")
    if not arguments and home_directory is None:
        if shell.is_bash:
            raise BuiltinError("HOME not set", 1)
        return 0
    name = arguments[0] if arguments else home_directory or ""
    prints = name == "-"
    if prints:
        name = shell.parameter("OLDPWD") or ("" if shell.is_bash else shell.process.directory)
        if not name:
            raise BuiltinError("OLDPWD not set", 1)
    target, prints = _cd_target(shell, name, prints=prints)
    files = shell.process.host.files
    is_possible = files.exists(target) and files.entry(target).is_directory
    if is_possible and not files.rights.may(files.entry(target), SEARCH):
        raise BuiltinError(
            f"can't cd to {name}", is_mild=True, bash=f"{name}: Permission denied", bash_code=1
        )
    if not is_possible and not (not files.exists(target) and files.unknown.may_exist(target)):
        words = "Not a directory" if files.exists(target) else "No such file or directory"
        message = f"{name}: {words}" if shell.is_bash else f"can't cd to {name}"
        raise BuiltinError(message, 1 if shell.is_bash else 2, is_mild=True)
    if "-P" in argv:
        target = files.resolve(target)
    shell.variables.set("OLDPWD", shell.process.directory)
    shell.variables.set("PWD", target)
    shell.process.directory = target
    shell.variables.changes += 1
    if prints:
        yield from shell.write(1, f"{target}\n")
    return 0


def _cd_target(shell: Shell, name: str, *, prints: bool) -> tuple[str, bool]:
    """Return the directory, which may be in a folder of CDPATH, and whether it is printed."""
    files = shell.process.host.files
    if not name.startswith(("/", "./", "../")) and name not in (".", ".."):
        for folder in (shell.parameter("CDPATH") or "").split(":"):
            path = shell.process.path(join(folder, name))
            if folder and files.exists(path) and files.entry(path).is_directory:
                return path, True
    return shell.process.path(name), prints


def _push_directory(shell: Shell, argv: Sequence[str]) -> Run:
    """Change to a directory and remember the present one; without an argument, exchange the two latest."""
    if len(argv) < 2 and not shell.directories:
        raise BuiltinError("no other directory", 1)
    if len(argv) > 1 and (argv[1][:1] in ("-", "+") or len(shell.directories) >= limits.MAX_DIRECTORY_STACK):
        raise BuiltinError(f"{argv[1]} is not simulated", 1)
    before = shell.process.directory
    target = argv[1] if len(argv) > 1 else shell.directories[-1]
    yield from _change_directory(shell, ["cd", target])
    if len(argv) < 2:
        shell.directories.pop()
    shell.directories.append(before)
    return (yield from _print_directories(shell, []))


def _pop_directory(shell: Shell, argv: Sequence[str]) -> Run:
    if len(argv) > 1:
        raise BuiltinError(f"{argv[1]} is not simulated", 1)
    if not shell.directories:
        raise BuiltinError("directory stack empty", 1)
    yield from _change_directory(shell, ["cd", shell.directories.pop()])
    return (yield from _print_directories(shell, []))


def _print_directories(shell: Shell, argv: Sequence[str]) -> Run:
    options = [argument for argument in argv[1:] if argument not in ("-l", "-p")]
    if options == ["-c"]:
        shell.directories.clear()
        return 0
    if options:
        raise BuiltinError(f"{options[0]} is not simulated", 1)
    directories = [shell.process.directory, *reversed(shell.directories)]
    parent = shell.parameter("HOME") or ""
    if "-l" not in argv and len(parent) > 1:
        directories = [
            f"~{path[len(parent) :]}" if f"{path}/".startswith(f"{parent}/") else path for path in directories
        ]
    yield from shell.write(1, ("\n" if "-p" in argv else " ").join(directories) + "\n")
    return 0


BUILTINS: Final[Mapping[str, Callable[[Shell, Sequence[str]], Run]]] = {
    "cd": _change_directory,
    "pushd": _push_directory,
    "popd": _pop_directory,
    "dirs": _print_directories,
}
