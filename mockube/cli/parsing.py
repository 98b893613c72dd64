"""The parser of every command: flags of the environment, and the errors of invalid command lines.

Each flag can be set by a variable as well, `--data-dir` by `MOCKUBE_DATA_DIR`; the flag wins.
"""

import argparse
import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final, NoReturn

from mockube.cli.output import Code

PREFIX: Final = "MOCKUBE_"
TRUE_VALUES, FALSE_VALUES = frozenset({"1", "true", "yes"}), frozenset({"0", "false", "no"})


class Parser(argparse.ArgumentParser):
    """Errors are one line; nothing is abbreviated."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def read(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        namespace: argparse.Namespace | None = None,
    ) -> argparse.Namespace:
        self.take(environment, flag_names=set(_names(arguments)))
        options, rest = self.parse_known_args([*_with_dashes(arguments)], namespace)
        if rest:
            self.error(_unknown_problem(rest[0], [*self.flags()]))
        return options

    def flags(self) -> Iterator[str]:
        """Of this command and of those below it, but for hidden ones."""
        for action in self._actions:
            if action.help != argparse.SUPPRESS:
                yield from action.option_strings
        for below in self._command_parsers():
            yield from below.flags()

    def error(self, message: str) -> NoReturn:
        self.exit(Code.USAGE, f"mockube: {message.removeprefix('argument ')} (see `{self.prog} --help`)\n")

    def _command_parsers(self) -> Iterator["Parser"]:
        for action in self._actions:
            if isinstance(action.choices, Mapping):
                yield from (parser for parser in action.choices.values() if isinstance(parser, Parser))

    def take(self, environment: Mapping[str, str], *, flag_names: set[str]) -> None:
        """Read the defaults of flags that are not on the command line from the environment."""
        for action in self._actions:
            text = environment.get(variable(action)) if action.option_strings else ""
            if text and flag_names.isdisjoint(action.option_strings):
                action.default, action.required = self._value(action, text), False
        for below in self._command_parsers():
            below.take(environment, flag_names=flag_names)

    def _value(self, action: argparse.Action, text: str) -> Any:
        try:
            return _read(action, text)
        except (argparse.ArgumentTypeError, ValueError) as error:
            self.error(f"{variable(action)}: {error}")


def variable(action: argparse.Action) -> str:
    """That sets a flag."""
    name = max(action.option_strings, key=len)
    return PREFIX + name.lstrip("-").replace("-", "_").upper()


def suggestion(word: str, known_names: Iterable[str]) -> str:
    """Return a suggestion: names that end with the word, or else the most similar one; or ""."""
    names = [*dict.fromkeys(known_names)]
    ending = f"-{word.lstrip('-')}"
    likely = [name for name in names if name.endswith(ending)] or difflib.get_close_matches(word, names, n=1)
    return f": did you mean {' or '.join(likely)}?" if likely else ""


def _read(action: argparse.Action, text: str) -> Any:
    if action.nargs == 0:
        return _switch(text)
    value = action.type(text) if callable(action.type) else text
    if action.choices is not None and value not in action.choices:
        raise ValueError(f'"{text}" is not one of {", ".join(action.choices)}')
    return [value] if isinstance(action.default, list) else value


def _switch(text: str) -> bool:
    if text.lower() not in TRUE_VALUES | FALSE_VALUES:
        raise ValueError(f'"{text}" is neither true nor false')
    return text.lower() in TRUE_VALUES


def _before_separator(arguments: Sequence[str]) -> Iterator[str]:
    """Those before `--`, which belong to no command that we run."""
    return takewhile(lambda argument: argument != "--", arguments)


def _names(arguments: Sequence[str]) -> Iterator[str]:
    return (argument.partition("=")[0].replace("_", "-") for argument in _before_separator(arguments))


def _with_dashes(arguments: Sequence[str]) -> Iterator[str]:
    """`--a_b` stands for `--a-b`, as in Kubernetes' programs."""
    own = [*_before_separator(arguments)]
    for argument in own:
        name, equals, value = argument.partition("=")
        yield (name.replace("_", "-") if name.startswith("--") else name) + equals + value
    yield from arguments[len(own) :]


def _unknown_problem(word: str, known_names: Sequence[str]) -> str:
    name = word.partition("=")[0]
    if name.startswith("-"):
        return f"unknown flag {name}{suggestion(name, known_names)}"
    return f'unexpected argument "{word}"'
