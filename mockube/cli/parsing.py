"""The parser of every command: flags, environment variables, and the errors of invalid command lines.

Each flag can also be set by a variable, `--data-dir` by `MOCKUBE_DATA_DIR`; the flag takes precedence.
"""

import argparse
import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final, NoReturn

from .output import Code

PREFIX: Final = "MOCKUBE_"
TRUE_VALUES, FALSE_VALUES = frozenset({"1", "true", "yes"}), frozenset({"0", "false", "no"})


class CommandParser(argparse.ArgumentParser):
    """A parser with errors of one line and without abbreviated flags."""

    arguments: Sequence[str] = ()
    """The arguments to be read, on which the flags of a command may depend."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def read(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        namespace: argparse.Namespace | None = None,
    ) -> argparse.Namespace:
        self.read_environment(environment, flag_names=set(_flag_names(arguments)))
        options, rest = self.parse_known_args([*_with_dashes(arguments)], namespace)
        if rest:
            self.error(_unknown_problem(rest[0], [*self.flags()]))
        return options

    def flags(self) -> Iterator[str]:
        """Yield the flags of this command and its subcommands, except hidden ones."""
        for action in self._actions:
            if action.help != argparse.SUPPRESS:
                yield from action.option_strings
        for subparser in self._command_parsers():
            yield from subparser.flags()

    def error(self, message: str) -> NoReturn:
        self.exit(Code.USAGE, f"mockube: {message.removeprefix('argument ')} (see `{self.prog} --help`)\n")

    def _command_parsers(self) -> Iterator["CommandParser"]:
        for action in self._actions:
            if isinstance(action.choices, Mapping):
                yield from (parser for parser in action.choices.values() if isinstance(parser, CommandParser))

    def read_environment(self, environment: Mapping[str, str], *, flag_names: set[str]) -> None:
        """Set the defaults of flags from the environment, if they are not on the command line."""
        for action in self._actions:
            text = environment.get(variable_name(action)) if action.option_strings else ""
            if text and flag_names.isdisjoint(action.option_strings):
                action.default, action.required = self._value(action, text), False
        for subparser in self._command_parsers():
            subparser.read_environment(environment, flag_names=flag_names)

    def _value(self, action: argparse.Action, text: str) -> Any:
        try:
            return _parse_value(action, text)
        except (argparse.ArgumentTypeError, ValueError) as error:
            self.error(f"{variable_name(action)}: {error}")


def variable_name(action: argparse.Action) -> str:
    """Return the name of the environment variable that sets a flag."""
    name = max(action.option_strings, key=len)
    return PREFIX + name.lstrip("-").replace("-", "_").upper()


def suggestion(word: str, known_names: Iterable[str]) -> str:
    """Return a suggestion: the names that end with the word, or else the most similar name; "" if there is none."""
    names = [*dict.fromkeys(known_names)]
    ending = f"-{word.lstrip('-')}"
    likely = [name for name in names if name.endswith(ending)] or difflib.get_close_matches(word, names, n=1)
    return f": did you mean {' or '.join(likely)}?" if likely else ""


def _parse_value(action: argparse.Action, text: str) -> Any:
    if action.nargs == 0:
        return _parse_bool(text)
    value = action.type(text) if callable(action.type) else text
    if action.choices is not None and value not in action.choices:
        raise ValueError(f'"{text}" is not one of {", ".join(action.choices)}')
    return [value] if isinstance(action.default, list) else value


def _parse_bool(text: str) -> bool:
    if text.lower() not in TRUE_VALUES | FALSE_VALUES:
        raise ValueError(f'"{text}" is neither true nor false')
    return text.lower() in TRUE_VALUES


def _before_separator(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the arguments before `--`; those after it belong to the command that `mockube run` runs."""
    return takewhile(lambda argument: argument != "--", arguments)


def _flag_names(arguments: Sequence[str]) -> Iterator[str]:
    return (argument.partition("=")[0].replace("_", "-") for argument in _before_separator(arguments))


def _with_dashes(arguments: Sequence[str]) -> Iterator[str]:
    """Replace underscores in flag names by dashes, as Kubernetes' programs accept both."""
    own_arguments = [*_before_separator(arguments)]
    for argument in own_arguments:
        name, equals, value = argument.partition("=")
        yield (name.replace("_", "-") if name.startswith("--") else name) + equals + value
    yield from arguments[len(own_arguments) :]


def _unknown_problem(word: str, known_names: Sequence[str]) -> str:
    name = word.partition("=")[0]
    if name.startswith("-"):
        return f"unknown flag {name}{suggestion(name, known_names)}"
    return f'unexpected argument "{word}"'
