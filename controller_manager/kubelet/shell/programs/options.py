"""The options of programs."""

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise

from msgspec import Struct, field

from mockube.controller_manager.kubelet.shell.process import ProgramUsageError


class ProgramOptions(Struct, kw_only=True):
    """The options with their values, all values of repeated options, and the other arguments."""

    values: dict[str, str] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def get(self, name: str, default: str = "") -> str:
        return self.values.get(name, default)

    def has_any(self, names: str) -> bool:
        """Return whether one of several letters is an option."""
        return any(name in self.values for name in names)

    def add(self, name: str, value: str = "") -> None:
        self.values[name] = value
        self.lists.setdefault(name, []).append(value)


def parse_options(
    arguments: Sequence[str],
    letters: str,
    *,
    long: Mapping[str, str] | None = None,
    stops: bool = False,
    numbers: str = "",
    code: int = 1,
) -> ProgramOptions:
    """Parse options: letters, those with values before a colon, and long names for letters; raise `ProgramUsageError` for another one.

    With `stops`, the first other argument ends the options. `numbers` is the letter for which `-5` is short.
    """
    with_values = "".join(letter for letter, mark in pairwise(f"{letters}.") if mark == ":")
    flags = letters.replace(":", "")
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
            _add_long(options, argument[2:], long or {}, with_values, remaining, code)
        elif numbers and argument[1:].isdecimal():
            options.add(numbers, argument[1:])
        else:
            _add_short(options, argument[1:], flags, with_values, remaining, code)
    return options


def _add_long(
    options: ProgramOptions,
    text: str,
    long: Mapping[str, str],
    with_values: str,
    remaining: deque[str],
    code: int,
) -> None:
    name, separator, value = text.partition("=")
    letter = long.get(name)
    if letter is None:
        raise ProgramUsageError(f"unrecognized option: {name}", code)
    if letter in with_values and not separator:
        if not remaining:
            raise ProgramUsageError(f"option requires an argument: {name}", code)
        value = remaining.popleft()
    options.add(letter, value)


def _add_short(
    options: ProgramOptions, letters: str, flags: str, with_values: str, remaining: deque[str], code: int
) -> None:
    for index, letter in enumerate(letters):
        if letter in with_values:
            value = letters[index + 1 :]
            if not value:
                if not remaining:
                    raise ProgramUsageError(f"option requires an argument -- '{letter}'", code)
                value = remaining.popleft()
            options.add(letter, value)
            return
        if letter not in flags:
            raise ProgramUsageError(f"unrecognized option: {letter}", code)
        options.add(letter)
