"""The options of programs: short ones that may be joined, and long ones. What a program does not have is refused by name."""

from collections import deque
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from msgspec import Struct, field

from .process import ProgramUsageError

OptionTable = Mapping[str, str]
"""The names of options, such as `-T` or `--timeout`; a name with `=` at its end has a value."""


def has_letter(argument: str, letter: str) -> bool:
    """Return whether an argument consists of short options, and a letter is one of them."""
    return argument[:1] == "-" and argument[1:].isalpha() and letter in argument


class UnknownOption(Exception):
    """A program does not have an option."""


class MissingValue(UnknownOption):
    """An option has no value."""


class ProgramOptions(Struct):
    """The options of a command line by their names, with all their values, and the other arguments."""

    values: dict[str, list[str]] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def has_any(self, names: str) -> bool:
        """Return whether one of several letters is an option."""
        return any(name in self.values for name in names)

    def get(self, name: str, default: str = "") -> str:
        """Return the last value of an option."""
        return self.values.get(name, [default])[-1]

    def all(self, name: str) -> Sequence[str]:
        return self.values.get(name, ())

    def count(self, name: str) -> int:
        return len(self.values.get(name, ()))

    def add(self, name: str, value: str = "") -> None:
        self.values.setdefault(name, []).append(value)


def parse_command_line(
    arguments: Sequence[str],
    table: OptionTable,
    *,
    stops: bool = False,
    numbers: str = "",
    strips_equals: bool = False,
) -> ProgramOptions:
    """Parse a command line; raise `UnknownOption`.

    With `stops`, the first other argument ends the options. `numbers` is the option for which `-5` is short. With
    `strips_equals`, `-o=json` is the same as `-ojson`, as in Go's programs.
    """
    options = ProgramOptions()
    remaining = deque(arguments)
    while remaining:
        argument = remaining.popleft()
        if argument == "--":
            options.arguments += remaining
            break
        if not argument.startswith("-") or argument == "-":
            options.arguments.append(argument)
            if stops:
                options.arguments += remaining
                break
        elif argument.startswith("--"):
            _add_long(options, argument, table, remaining)
        elif numbers and argument[1:].isdecimal():
            options.add(numbers, argument[1:])
        else:
            _add_short(options, argument[1:], table, remaining, strips_equals=strips_equals)
    return options


def _add_long(options: ProgramOptions, argument: str, table: OptionTable, remaining: deque[str]) -> None:
    option, equals, value = argument.partition("=")
    name = table.get(option)
    if name is None:
        raise UnknownOption(option)
    if name.endswith("=") and not equals:
        if not remaining:
            raise MissingValue(option)
        value = remaining.popleft()
    options.add(name.removesuffix("="), value)


def _add_short(
    options: ProgramOptions, letters: str, table: OptionTable, remaining: deque[str], *, strips_equals: bool
) -> None:
    for index, letter in enumerate(letters):
        name = table.get(f"-{letter}")
        if name is None:
            raise UnknownOption(f"-{letter}")
        if not name.endswith("="):
            options.add(name)
            continue
        value = letters[index + 1 :]
        if not value:
            if not remaining:
                raise MissingValue(f"-{letter}")
            value = remaining.popleft()
        elif strips_equals:
            value = value.removeprefix("=")
        options.add(name[:-1], value)
        return


def parse_options(
    arguments: Sequence[str],
    letters: str,
    *,
    long: Mapping[str, str] | None = None,
    stops: bool = False,
    numbers: str = "",
    code: int = 1,
) -> ProgramOptions:
    """Parse options: letters, those with values before a colon, and long names; raise `ProgramUsageError`.

    A long name is that of a letter, or of an option without one, with `=` at its end if it has a value.
    """
    table = _table_of(letters, tuple((long or {}).items()))
    try:
        return parse_command_line(arguments, table, stops=stops, numbers=numbers)
    except MissingValue as error:
        option = str(error)
        words = f": {option[2:]}" if option.startswith("--") else f" -- '{option[1:]}'"
        raise ProgramUsageError(f"option requires an argument{words}", code) from error
    except UnknownOption as error:
        raise ProgramUsageError(f"unrecognized option: {str(error).lstrip('-')}", code) from error


@lru_cache(maxsize=256)
def _table_of(letters: str, long: tuple[tuple[str, str], ...]) -> OptionTable:
    with_values = {letter for letter, mark in pairwise(letters) if mark == ":"}

    def name_of(letter: str) -> str:
        return f"{letter}=" if letter in with_values else letter

    table = {f"-{letter}": name_of(letter) for letter in letters if letter != ":"}
    return {**table, **{f"--{name}": name_of(letter) for name, letter in long}}
