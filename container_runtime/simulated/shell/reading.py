"""Builtins that read input and arguments: read, mapfile and getopts."""

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Final

from . import limits
from .assignments import assign_word
from .builtin_errors import BuiltinError, UsageError, invalid_name, invalid_option
from .builtins import number_argument
from .messages import message_of
from .options import parse_options
from .process import CommandStart, DescriptorStream, Effect, ProgramUsageError, Run, count_work, decoded
from .programs.printf import Formatter, unescape
from .separators import BLANK, OTHER, mark_separators
from .state import ExpansionError, Shell
from .streams import read_line
from .variables import ShellVariable

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TARGET: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[.*\])?", re.DOTALL)
_SECONDS: Final = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
_RAW_FIELD: Final = re.compile(f"[^{BLANK}{OTHER}]*")
_FIELD: Final = re.compile(f"(?:[^{BLANK}{OTHER}\\\\]|\\\\[\\s\\S]?)*")
_DELIMITER: Final = re.compile(f"{BLANK}*(?:{OTHER}{BLANK}*)?")
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_BYTES_PER_COMMAND: Final = 4096
_FIELDS_PER_COMMAND: Final = 50

Line = Generator[Effect, bytes | None, bytes]


def _read(shell: Shell, argv: Sequence[str]) -> Run:
    options, names = _read_options(argv)
    if shell.is_bash and "t" in options and not _SECONDS.fullmatch(options["t"]):
        raise BuiltinError(f"{options['t']}: invalid timeout specification", 1)
    stream = shell.descriptors.get(number_argument(options.get("u", "0")))
    for name in names:
        if not _NAME.fullmatch(name):
            raise invalid_name(name, name)
    if "p" in options and shell.process.host.has_terminal:
        yield from shell.write(2, options["p"])
    if stream is None:
        raise BuiltinError("read error: 0: Bad file descriptor", 1)
    line, is_complete = yield from _read_input(stream, options)
    yield from count_work(len(line), _BYTES_PER_COMMAND)
    text = yield from decoded(line.translate(None, b"\0"))
    separators = shell.variables.get("IFS")
    separators = " \t\n" if separators is None else separators
    if "a" in options:
        values = yield from split_line(text, separators, limits.MAX_VALUE, raw="r" in options)
        shell.variables.put(options["a"], ShellVariable(elements=dict(enumerate(values))))
    elif not names and shell.is_bash:
        shell.assign("REPLY", text if "r" in options else _ESCAPED.sub(r"\1", text))
    elif "N" in options:
        shell.assign(names[0], text)
    else:
        names = names or ["REPLY"]
        values = yield from split_line(text, separators, len(names), raw="r" in options)
        for index, name in enumerate(names):
            shell.assign(name, values[index] if index < len(values) else "")
    return 0 if is_complete else 1


def _read_options(argv: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    options: dict[str, str] = {}
    arguments = list(argv[1:])
    while arguments and len(arguments[0]) > 1 and arguments[0].startswith("-"):
        argument = arguments.pop(0)
        if argument == "--":
            break
        for index, letter in enumerate(argument[1:], start=2):
            if letter in "ptndNaui":
                options[letter] = argument[index:] or (arguments.pop(0) if arguments else "")
                break
            if letter not in "rse":
                raise invalid_option("read", letter)
            options[letter] = ""
    return options, arguments


def _read_input(
    stream: DescriptorStream, options: Mapping[str, str]
) -> Generator[Effect, bytes | None, tuple[bytes, bool]]:
    """Return the input without its delimiter, and whether it was complete."""
    count = options.get("n") or options.get("N")
    delimiter = (options["d"].encode()[:1] or b"\0") if "d" in options else b"\n"
    if count:
        limit = min(number_argument(count), limits.MAX_VALUE)
        data = yield from _read_count(stream, limit, b"" if "N" in options else delimiter)
        return data.removesuffix(delimiter), len(data) == limit or data.endswith(delimiter)
    line = yield from read_line(stream, limits.MAX_VALUE, delimiter)
    while "r" not in options and line.endswith(b"\\\n") and _is_escaped(line[:-1]):
        following = yield from read_line(stream, limits.MAX_VALUE, delimiter)
        line = line[:-2] + following
        if not following or len(line) > limits.MAX_VALUE:
            break
    return line.removesuffix(delimiter), line.endswith(delimiter)


def _is_escaped(line: bytes) -> bool:
    """Return whether the backslash at the end of a line is not escaped by the one before it."""
    return (len(line) - len(line.rstrip(b"\\"))) % 2 == 1


def _read_count(stream: DescriptorStream, limit: int, delimiter: bytes) -> Line:
    data = bytearray()
    while len(data) < limit and not (delimiter and data.endswith(delimiter)):
        byte = yield from stream.read(1)
        if not byte:
            break
        if len(data) % _FIELDS_PER_COMMAND == _FIELDS_PER_COMMAND - 1:
            yield CommandStart()
        data += byte
    return bytes(data)


def split_line(
    line: str, separators: str, count: int, *, raw: bool
) -> Generator[Effect, bytes | None, list[str]]:
    """Split a line into at most `count` fields, the last of which is the rest; raise `ExpansionError` if there are too many."""
    field = _RAW_FIELD if raw else _FIELD
    marked_line = yield from mark_separators(line, separators if raw else separators.replace("\\", ""))
    blanks = "".join(char for char in separators if char in " \t\n")
    position = len(line) - len(line.lstrip(blanks)) if blanks else 0
    values: list[str] = []
    while position < len(line) and len(values) < count - 1:
        match = field.match(marked_line, position)
        assert match is not None
        if len(values) % _FIELDS_PER_COMMAND == _FIELDS_PER_COMMAND - 1:
            yield CommandStart()
        values.append(line[position : match.end()])
        end = _DELIMITER.match(marked_line, match.end())
        position = end.end() if end else match.end()
        if len(values) > limits.MAX_READ_LINES:
            raise ExpansionError("the line has too many fields")
    if position < len(line):
        rest = line[position:]
        end_of_rest = rest.rstrip(blanks) if blanks else rest
        is_escaped = not raw and (len(end_of_rest) - len(end_of_rest.rstrip("\\"))) % 2 == 1
        rest = rest[: len(end_of_rest) + is_escaped]
        end_of_line = position + len(rest)
        match = field.match(marked_line, position, end_of_line)
        assert match is not None
        if match.end() < end_of_line and _DELIMITER.fullmatch(marked_line, match.end(), end_of_line):
            rest = line[position : match.end()]
        values.append(rest)
    return values if raw else [_ESCAPED.sub(r"\1", value) for value in values]


def _map_file(shell: Shell, argv: Sequence[str]) -> Run:
    try:
        options = parse_options(argv[1:], "td:n:s:u:")
        limit, skipped, number = (int(options.get(letter, "0")) for letter in "nsu")
    except (ProgramUsageError, ValueError) as error:
        raise BuiltinError(str(error), 2) from None
    name = (options.arguments or ["MAPFILE"])[0]
    delimiter = options.get("d", "\n")[:1] or "\0"
    stream = shell.descriptors.get(number)
    lines: dict[int | str, str] = {}
    while stream is not None and (not limit or len(lines) < limit):
        line = yield from read_line(stream, limits.MAX_VALUE, delimiter.encode("utf-8", "surrogateescape"))
        if not line:
            break
        if skipped > 0:
            skipped -= 1
            continue
        yield from count_work(len(lines) % _FIELDS_PER_COMMAND == _FIELDS_PER_COMMAND - 1, 1)
        text = line.decode("utf-8", "surrogateescape")
        lines[len(lines)] = text.removesuffix(delimiter) if "t" in options else text.replace("\0", "")
        if len(lines) > limits.MAX_READ_LINES:
            raise ExpansionError("the input has too many lines")
    shell.variables.put(name, ShellVariable(elements=lines))
    return 0


def _get_options(shell: Shell, argv: Sequence[str]) -> Run:
    if len(argv) < 3:
        raise UsageError("Usage: getopts optstring var [arg...]")
    specification, name, *arguments = argv[1:]
    arguments = arguments or list(shell.arguments)
    is_silent = specification.startswith(":")
    text = shell.parameter("OPTIND") or "1"
    if text == shell.option_state[0]:
        _, index, offset = shell.option_state
    else:
        index, offset = (int(text) if text.isdecimal() and int(text[:9]) > 0 else 1), 0
    argument = arguments[index - 1] if index <= len(arguments) else ""
    if offset == 0:
        if argument in ("", "-") or not argument.startswith("-") or argument == "--":
            _set_option_index(shell, index + (argument == "--"), 0)
            shell.assign(name, "?")
            shell.variables.remove("OPTARG")
            return 1
        offset = 1
    letter = argument[offset]
    offset += 1
    position = specification.find(letter, int(is_silent))
    value: str | None = None
    problem = ""
    if position < 0 or letter == ":":
        problem = f"Illegal option -{letter}"
    elif specification[position + 1 : position + 2] == ":":
        value = argument[offset:]
        if not value:
            value = arguments[index] if index < len(arguments) else None
            problem = "" if value is not None else f"No arg for -{letter} option"
            index += value is not None
        offset = len(argument)
    is_end = offset >= len(argument)
    _set_option_index(shell, index + is_end, 0 if is_end else offset)
    if problem:
        yield from _report_option(shell, name, letter, problem, is_silent=is_silent)
        return 0
    shell.assign(name, letter)
    if value is None and shell.is_bash:
        shell.variables.remove("OPTARG")
    else:
        shell.assign("OPTARG", value or "")
    return 0


def _set_option_index(shell: Shell, index: int, offset: int) -> None:
    """Set the position; in a POSIX shell, OPTIND is that of the next argument also within an argument."""
    text = str(index + (offset > 0 and not shell.is_bash))
    shell.assign("OPTIND", text)
    shell.option_state = text, index, offset


def _report_option(shell: Shell, name: str, letter: str, problem: str, *, is_silent: bool) -> Run:
    if is_silent:
        shell.assign(name, ":" if problem.startswith("No arg") else "?")
        shell.assign("OPTARG", letter)
        return 0
    shell.assign(name, "?")
    shell.variables.remove("OPTARG")
    if shell.is_bash:
        words = "illegal option" if problem.startswith("Illegal") else "option requires an argument"
        problem = f"{shell.script_name}: {words} -- {letter}"
    yield from shell.write(2, f"{problem}\n")
    return 0


def _printf(shell: Shell, argv: Sequence[str]) -> Run:
    """Assign the output of `printf -v NAME`; otherwise execute the program."""
    if argv[1:2] != ["-v"] or len(argv) < 4:
        return (yield from shell.run_program(argv))
    if shell.is_bash and not _TARGET.fullmatch(argv[2]):
        raise invalid_name(argv[2], argv[2])
    formatter = Formatter(unescape(argv[3]), argv[4:], shell.process)
    texts: list[str] = []
    for part in formatter.parts():
        yield CommandStart()
        texts.append(part)
    assign_word(shell, f"{argv[2]}={''.join(texts)}")
    for error in formatter.errors:
        yield from shell.report(f"printf: {message_of(error, is_bash=shell.is_bash)}")
    return int(bool(formatter.errors))


BUILTINS: Final[Mapping[str, Callable[[Shell, Sequence[str]], Run]]] = {
    "read": _read,
    "mapfile": _map_file,
    "readarray": _map_file,
    "getopts": _get_options,
    "printf": _printf,
}
