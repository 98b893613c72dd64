"""Options of programs: short ones that may be joined, and long ones. What a program does not know is refused by name."""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field


class UnknownOption(Exception):
    """An option that a program does not have, or that has no value."""


class OptionValues(Struct):
    """The options of a command line by their canonical names, and the other arguments."""

    values: dict[str, list[str]] = field(default_factory=dict)
    operands: list[str] = field(default_factory=list)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def last(self, name: str, default: str = "") -> str:
        return self.values.get(name, [default])[-1]

    def all(self, name: str) -> Sequence[str]:
        return self.values.get(name, ())

    def count(self, name: str) -> int:
        return len(self.values.get(name, ()))


def parse_options(
    arguments: Sequence[str], names: Mapping[str, str], *, strips_equals: bool = False
) -> OptionValues:
    """Parse a command line. `names` maps an option, such as `-T` or `--timeout`, to its name: with `=` it has a value.

    With `strips_equals`, `-o=json` is the same as `-ojson`, as in Go's programs.
    """
    parsed = OptionValues()
    remaining = list(arguments)
    while remaining:
        argument = remaining.pop(0)
        if argument == "--":
            parsed.operands += remaining
            break
        if argument.startswith("--"):
            _add_long(parsed, argument, names, remaining)
        elif argument.startswith("-") and len(argument) > 1:
            _add_short(parsed, argument, names, remaining, strips_equals=strips_equals)
        else:
            parsed.operands.append(argument)
    return parsed


def _add_long(parsed: OptionValues, argument: str, names: Mapping[str, str], remaining: list[str]) -> None:
    option, equals, value = argument.partition("=")
    name = names.get(option)
    if name is None:
        raise UnknownOption(option)
    if not name.endswith("="):
        parsed.values.setdefault(name, []).append(value)
        return
    if not equals:
        if not remaining:
            raise UnknownOption(option)
        value = remaining.pop(0)
    parsed.values.setdefault(name[:-1], []).append(value)


def _add_short(
    parsed: OptionValues,
    argument: str,
    names: Mapping[str, str],
    remaining: list[str],
    *,
    strips_equals: bool,
) -> None:
    letters = argument[1:]
    while letters:
        name = names.get(f"-{letters[0]}")
        if name is None:
            raise UnknownOption(f"-{letters[0]}")
        letters = letters[1:]
        if name.endswith("="):
            if not letters and not remaining:
                raise UnknownOption(argument)
            value = letters or remaining.pop(0)
            if strips_equals and letters:
                value = value.removeprefix("=")
            parsed.values.setdefault(name[:-1], []).append(value)
            return
        parsed.values.setdefault(name, []).append("")
