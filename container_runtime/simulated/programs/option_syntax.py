"""How known servers read the options of their command line. Pure; `configuration_lines` has their files."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from mockube.container_runtime.images.options import ServerOptions


class Use(NamedTuple):
    """An option that a command line or a file sets."""

    name: str
    value: str | None = None
    """None without a value."""
    text: str = ""
    """How it is written, as far as the server repeats it."""
    line: int = 0
    is_letter: bool = False
    is_argument: bool = False
    """It is no option."""
    problem: str = ""
    """What the server says of it, if it has no valid form."""


def _directives(_: ServerOptions, arguments: Sequence[str]) -> Iterator[Use]:
    """Redis: each option with its values is a line of a configuration, which follows those of its file."""
    lines: list[list[str]] = []
    for word in arguments:
        if word.startswith("--"):
            lines.append([word[2:]])
        elif lines:
            lines[-1].append(word)
    for number, (name, *values) in enumerate(lines, start=2):
        text = " ".join([name, *(f'"{value}"' for value in values)])
        yield Use(name.lower(), " ".join(values) if values else None, text, number)


def _settings(options: ServerOptions, arguments: Sequence[str]) -> Iterator[Use]:
    """PostgreSQL: `-c name=value`, `--name=value`, and short options."""
    for use in _letters(options, arguments):
        if use.name == "c" and use.is_letter:
            name, equals, value = (use.value or "").partition("=")
            yield Use(name.replace("-", "_").lower(), value if equals else None)
        elif not use.is_letter and not use.is_argument:
            yield Use(use.name.replace("-", "_").lower(), use.value)
        else:
            yield use


def mysql_options(options: ServerOptions, arguments: Sequence[str]) -> Iterator[Use]:
    """MySQL: `--name=value`; dashes and underscores are the same, and a name may be cut where it remains clear."""
    for word in arguments:
        if not word.startswith("--") or word == "--":
            continue
        name, equals, value = word[2:].partition("=")
        name = name.replace("_", "-")
        for prefix in ("skip-", "disable-", "enable-", "maximum-"):
            if name not in options.by_name:
                name = name.removeprefix(prefix)
        if name not in options.by_name:
            name = next((known for known in options.by_name if known.startswith(name)), name)
        yield Use(name, value if equals else None, word[2:])


def _letters(options: ServerOptions, arguments: Sequence[str]) -> Iterator[Use]:
    """Getopt: `-a`, `-ab`, `-p 80`, `-p80`, `--name`, `--name=value`."""
    words = iter(arguments)
    for word in words:
        if word.startswith("--") and len(word) > len("--"):
            name, equals, value = word[2:].partition("=")
            yield Use(name, value if equals else None, word)
        elif word.startswith("-") and len(word) > 1:
            yield from _letters_of(word[1:], words, options.takes_value)
        else:
            yield Use(word, text=word, is_argument=True)


def _letters_of(letters: str, words: Iterator[str], takes_value: Mapping[str, bool]) -> Iterator[Use]:
    for index, letter in enumerate(letters):
        if takes_value.get(letter):
            value = letters[index + 1 :] or next(words, None)
            yield Use(letter, value, is_letter=True)
            return
        yield Use(letter, is_letter=True)


def _flags(options: ServerOptions, arguments: Sequence[str]) -> Iterator[Use]:
    """Go's package flag: `-name value`, `--name=value`, until something that is no option."""
    words = iter(arguments)
    for word in words:
        if not word.startswith("-") or word in ("-", "--"):
            return
        name, equals, value = word.removeprefix("-").removeprefix("-").partition("=")
        option = options.by_name.get(name)
        if equals or option is None or option.kind == "bool":
            yield Use(name, value if equals else None, word)
        else:
            yield Use(name, next(words, None), word)


def _kingpin(options: ServerOptions, arguments: Sequence[str]) -> Iterator[Use]:
    """Kingpin: `--name=value`, `--name value`, `--no-name`; what follows one dash are letters."""
    for word in arguments:
        if word.startswith("--") and len(word) > len("--"):
            name, equals, value = word[2:].partition("=")
            positive = name.removeprefix("no-")
            yield Use(positive if positive in options.by_name else name, value if equals else None, word)
        elif word.startswith("-") and len(word) > 1:
            yield Use(word[1], text=word, is_letter=True)


def _overrides(_options: ServerOptions, arguments: Sequence[str]) -> Iterator[Use]:
    """Kafka: `--override name=value` behind the file."""
    for flag, word in pairwise(arguments):
        if flag == "--override":
            name, _, value = word.partition("=")
            yield Use(name.strip(), value.strip(), word)


Syntax = Callable[[ServerOptions, Sequence[str]], Iterator[Use]]
SYNTAXES: Final[Mapping[str, Syntax]] = {
    "directives": _directives,
    "settings": _settings,
    "mysql": mysql_options,
    "letters": _letters,
    "flags": _flags,
    "kingpin": _kingpin,
    "overrides": _overrides,
}
