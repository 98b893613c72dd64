"""How known servers read the options of their command line and the lines of their configuration files. Pure."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from mockube.container_runtime.images.options import ServerOptions

_SETTING: Final = re.compile(r"([A-Za-z_][\w.$]*)(?:\s*=\s*|\s+)('(?:[^'\\]|''|\\.)*'|[^\s#']+)\s*(?:#.*)?$")
"""A line of postgresql.conf."""
_MYSQL_GROUPS: Final = frozenset(("mysqld", "server", "mysqld-5.7", "mysqld-8.0", "mysqld-8.4"))


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


def _mysql(options: ServerOptions, arguments: Sequence[str]) -> Iterator[Use]:
    """MySQL: `--name=value`; dashes and underscores are the same, and a name may be cut where it remains clear."""
    for word in arguments:
        if not word.startswith("--") or word == "--":
            continue
        name, equals, value = word[2:].partition("=")
        name = name.replace("_", "-")
        for prefix in ("skip-", "disable-", "enable-", "maximum-"):
            if name not in options.by_name:
                name = name.removeprefix(prefix)
        is_cut = any(known.startswith(name) for known in options.by_name)
        yield Use(
            next(known for known in options.by_name if known.startswith(name))
            if is_cut and name not in options.by_name
            else name,
            value if equals else None,
            word[2:],
        )


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


def _directive_lines(lines: Sequence[str]) -> Iterator[Use]:
    for number, line in enumerate(map(str.strip, lines), start=1):
        name, _, value = line.partition(" ")
        if line and not line.startswith("#"):
            yield Use(name.lower(), _unquoted(value.strip()) if value.strip() else None, line, number)


def _setting_lines(lines: Sequence[str]) -> Iterator[Use]:
    for number, line in enumerate(map(str.strip, lines), start=1):
        match = _SETTING.match(line)
        if match is not None:
            yield Use(match[1].lower(), _unquoted(match[2]), line, number)


def _mysql_lines(lines: Sequence[str]) -> Iterator[Use]:
    """Yield the options of the groups that the server reads."""
    is_read = False
    for number, line in enumerate(map(str.strip, lines), start=1):
        if line.startswith("["):
            is_read = line.partition("]")[0][1:].strip() in _MYSQL_GROUPS
        elif is_read and line and line[0] not in "#;!":
            name, equals, value = (part.strip() for part in line.partition("="))
            option = f"--{name}{equals}{_unquoted(value.partition(' #')[0].strip())}"
            yield Use(option, line=number)


def _unquoted(text: str) -> str:
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if is_quoted else text


def file_uses(options: ServerOptions, text: str) -> Iterator[Use]:
    """Yield the options that a configuration file sets, with their lines."""
    lines = text.split("\n")
    if options.syntax == "mysql":
        for line in _mysql_lines(lines):
            for use in _mysql(options, [line.name]):
                yield use._replace(line=line.line)
    else:
        yield from (_directive_lines if options.syntax == "directives" else _setting_lines)(lines)


Syntax = Callable[[ServerOptions, Sequence[str]], Iterator[Use]]
SYNTAXES: Final[Mapping[str, Syntax]] = {
    "directives": _directives,
    "settings": _settings,
    "mysql": _mysql,
    "letters": _letters,
    "flags": _flags,
    "kingpin": _kingpin,
}
