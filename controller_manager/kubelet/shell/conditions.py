"""`test` and `[`: conditions on texts, numbers and files."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from mockube.apimachinery.gotext import int_or_none
from mockube.controller_manager.kubelet.shell.process import Process, Run

_NUMBERS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "-eq": lambda left, right: left == right,
    "-ne": lambda left, right: left != right,
    "-lt": lambda left, right: left < right,
    "-le": lambda left, right: left <= right,
    "-gt": lambda left, right: left > right,
    "-ge": lambda left, right: left >= right,
}
_TEXTS: Final = frozenset({"=", "==", "!="})
_FILES: Final = frozenset({"-e", "-f", "-d", "-s", "-r", "-w", "-x", "-L", "-h"})


class _BadCondition(Exception):
    pass


def test(process: Process) -> Run:
    arguments = list(process.arguments)
    if process.name == "[" and (not arguments or arguments.pop() != "]"):
        yield process.error("missing ]")
        return 2
    try:
        return int(not _any(process, arguments))
    except _BadCondition as error:
        yield process.error(str(error))
        return 2


def _any(process: Process, arguments: Sequence[str]) -> bool:
    """Conditions that `-o` joins, each of conditions that `-a` joins."""
    return any(
        all(_condition(process, condition) for condition in _split(part, "-a"))
        for part in _split(arguments, "-o")
    )


def _split(arguments: Sequence[str], mark: str) -> Sequence[Sequence[str]]:
    if len(arguments) <= 3 or mark not in arguments[1:-1]:
        return [arguments]
    parts: list[list[str]] = [[]]
    for argument in arguments:
        if argument == mark:
            parts.append([])
        else:
            parts[-1].append(argument)
    return parts


def _condition(process: Process, arguments: Sequence[str]) -> bool:
    match list(arguments):
        case []:
            return False
        case [text]:
            return bool(text)
        case ["!", *rest] if len(arguments) != 3 or rest[0] not in _TEXTS:
            return not _condition(process, rest)
        case [kind, text]:
            return _unary(process, kind, text)
        case [left, kind, right]:
            return _binary(left, kind, right)
        case _:
            raise _BadCondition(f"{arguments[0]}: unknown operand")


def _unary(process: Process, kind: str, text: str) -> bool:
    if kind in ("-z", "-n"):
        return bool(text) is (kind == "-n")
    if kind == "-t":
        return False
    if kind not in _FILES:
        raise _BadCondition(f"{kind}: unknown operand")
    return _is_file(process, kind, text)


def _binary(left: str, kind: str, right: str) -> bool:
    if kind in _TEXTS:
        return (left == right) is (kind != "!=")
    if kind not in _NUMBERS:
        raise _BadCondition(f"{left}: unknown operand")
    first, second = int_or_none(left), int_or_none(right)
    if first is None or second is None:
        raise _BadCondition(f"{left if first is None else right}: bad number")
    return _NUMBERS[kind](first, second)


def _is_file(process: Process, kind: str, path: str) -> bool:
    files, place = process.host.files, process.path(path)
    if not files.exists(place):
        return files.is_partial
    entry = files.entry(place)
    match kind:
        case "-f":
            return not entry.is_directory and not entry.target
        case "-d":
            return entry.is_directory
        case "-s":
            return entry.size > 0
        case "-L" | "-h":
            return bool(entry.target)
        case "-w":
            return not entry.read_only
        case "-x":
            return bool(entry.mode & 0o111)
        case _:
            return True
