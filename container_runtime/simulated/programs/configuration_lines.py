"""How known servers find their configuration files, and read the lines. Pure."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from posixpath import basename, dirname, join
from typing import Final

from mockube.apimachinery.wildcards import WildcardsTooCostly, matches_wildcards
from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError
from mockube.container_runtime.images.options import ServerOptions
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem

from .option_syntax import Use, mysql_options

_SETTING: Final = re.compile(
    r"([A-Za-z_][\w.$]*)(?:\s*=\s*|\s+)('(?:[^'\\]|''|\\.)*'|[^\s#'=][^\s#']*)\s*(?:#.*)?$"
)
"""A line of postgresql.conf."""
_SETTING_PARTS: Final = re.compile(
    r"([A-Za-z_][\w.$]*+)?\s*+=?\s*+('(?:[^'\\]|''|\\.)*+'|[\w.$/+-]++)?\s*+([^\s#]*+).*"
)
"""Matches any line: the name and the value of a setting, as far as there are some, and what follows."""
_PROPERTY: Final = re.compile(r"([^\s=:]+)\s*[=:\s]?\s*(.*)$")
"""A line of server.properties, without the spaces before it."""
_MYSQL_GROUPS: Final = frozenset(
    ("mysqld", "server", "mysqld-5.7", "mysqld-8.0", "mysqld-8.4", "mariadb", "mariadbd", "client-server")
)
_YAML_LINE: Final = re.compile(r"line (\d+)")
_VALUE_OF_PARENT: Final = "value"


def matching_paths(files: FileSystem, path: str) -> Sequence[str]:
    """Return the files that a path with wildcards stands for."""
    folder, pattern = dirname(path), basename(path)
    try:
        names = files.children(folder) if files.exists(folder) else ()
        visible = [name for name in names if not name.startswith(".")]
        return [join(folder, name) for name in visible if matches_wildcards(name, pattern)]
    except (FileError, WildcardsTooCostly):
        return ()


def file_uses(options: ServerOptions, text: str) -> Iterator[Use]:
    """Yield the options that a configuration file sets, with their lines."""
    return _FILES[options.files](options, text.split("\n"))


def _directive_lines(_: ServerOptions, lines: Sequence[str]) -> Iterator[Use]:
    for number, line in enumerate(map(str.strip, lines), start=1):
        if line and not line.startswith("#"):
            name, *values = line.split(None, 1)
            yield Use(name.lower(), _unquoted(values[0]) if values else None, line, number)


def _setting_lines(_: ServerOptions, lines: Sequence[str]) -> Iterator[Use]:
    for number, line in enumerate(map(str.strip, lines), start=1):
        match = _SETTING.match(line)
        if match is not None:
            yield Use(match[1].lower(), _unquoted(match[2]), line, number)
        elif line and not line.startswith("#"):
            yield Use("", text=line, line=number, problem=_near(line))


def _near(line: str) -> str:
    """Return where PostgreSQL finds that a line is no setting."""
    match = _SETTING_PARTS.fullmatch(line)
    assert match is not None, line
    name, value, token = match.groups()
    if name and not value and not token:
        return "near end of line"
    return f'near token "{token if name else line[0]}"'


def _mysql_lines(options: ServerOptions, lines: Sequence[str]) -> Iterator[Use]:
    """Yield the options of the groups that the server reads."""
    is_read = has_group = False
    for number, line in enumerate(map(str.strip, lines), start=1):
        if line.startswith("["):
            has_group = True
            if "]" not in line:
                yield Use("", text=line, line=number, problem="Wrong group definition")
            is_read = line.partition("]")[0][1:].strip() in _MYSQL_GROUPS
        elif not has_group and line and line[0] not in "#;!":
            yield Use("", text=line, line=number, problem="Found option without preceding group")
        elif is_read and line and line[0] not in "#;!":
            name, equals, value = (part.strip() for part in _without_comment(line).partition("="))
            option = f"--{name}{equals}{_unquoted(value)}"
            for use in mysql_options(options, [option]):
                yield use._replace(line=number)


def _without_comment(line: str) -> str:
    """Return a line of MySQL without the comment at its end, which may follow a value directly."""
    quote, is_escaped = "", False
    for place, character in enumerate(line):
        if character in "'\"" and not is_escaped:
            quote = "" if character == quote else quote or character
        elif character == "#" and not quote:
            return line[:place]
        is_escaped = bool(quote) and character == "\\" and not is_escaped
    return line


def _yaml_lines(options: ServerOptions, lines: Sequence[str]) -> Iterator[Use]:
    """mongod.conf: nested names are joined by dots. Of a file of MongoDB 2.4, whose lines are one text for YAML, nobody knows."""
    try:
        tree = load("\n".join(lines).encode()).tree
    except YamlError as error:
        place = _YAML_LINE.search(str(error))
        yield Use(
            "", problem=f"Error parsing YAML config file: yaml-cpp: error at line {place[1] if place else 1}"
        )
        return
    if isinstance(tree, Mapping):
        yield from _yaml_options(options, tree, "")


def _yaml_options(options: ServerOptions, tree: Mapping[str, object], parent: str) -> Iterator[Use]:
    for key, value in tree.items():
        name = parent if parent and key == _VALUE_OF_PARENT else f"{parent}.{key}" if parent else key
        if isinstance(value, Mapping) and name not in options.by_name:
            yield from _yaml_options(options, value, name)
        elif isinstance(value, bool):
            yield Use(name, str(value).lower())
        else:
            yield Use(name, str(value) if isinstance(value, (str, int)) else None)


def _property_lines(_: ServerOptions, lines: Sequence[str]) -> Iterator[Use]:
    """Java's properties: a line that ends with a backslash goes on in the next one."""
    text, first = "", 0
    for number, line in enumerate(map(str.lstrip, lines), start=1):
        if not text and (not line or line[0] in "#!"):
            continue
        first = first if text else number
        text += line
        if text.endswith("\\") and not text.endswith("\\\\"):
            text = text[:-1]
        else:
            match = _PROPERTY.match(text)
            if match is not None:
                yield Use(match[1], match[2].strip(), text, first)
            text = ""


def _ini_lines(_: ServerOptions, lines: Sequence[str]) -> Iterator[Use]:
    """grafana.ini: nothing is known of the names, but each line is a section or has a value."""
    end = ""
    for number, line in enumerate(map(str.strip, lines), start=1):
        if end:
            end = "" if (end == "\\" and not line.endswith("\\")) or (end != "\\" and end in line) else end
        elif line.startswith("["):
            if "]" not in line:
                yield Use(line, text=line, line=number, problem=f"unclosed section: {line}")
        elif line and line[0] not in '#;"`':
            delimiter = re.search("[=:]", line)
            if delimiter is None:
                yield Use(line, text=line, line=number, problem=f"key-value delimiter not found: {line}\\n")
            else:
                end = _end_of_value(line[delimiter.end() :].strip())


def _end_of_value(value: str) -> str:
    """Return with what a value of several lines ends; a backslash if each of its lines but the last ends with one."""
    for quotes in ('"""', "`"):
        if value.startswith(quotes) and quotes not in value[len(quotes) :]:
            return quotes
    return "\\" if value.endswith("\\") else ""


def _unquoted(text: str) -> str:
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if is_quoted else text


_FILES: Final[Mapping[str, Callable[[ServerOptions, Sequence[str]], Iterator[Use]]]] = {
    "directives": _directive_lines,
    "settings": _setting_lines,
    "mysql": _mysql_lines,
    "yaml": _yaml_lines,
    "properties": _property_lines,
    "ini": _ini_lines,
}
