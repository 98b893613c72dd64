"""Servers whose command line has an option that they do not know, or with a wrong value: what they say, and how they end. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.environment import References, environment_of
from mockube.container_runtime.config.variables import expand_references
from mockube.container_runtime.images.options import (
    NEWEST,
    ServerOptions,
    Version,
    image_version,
    options_of,
)
from mockube.container_runtime.images.references import parse_reference
from mockube.container_runtime.images.table import Requirement, behavior_of, without_entrypoint

from .option_syntax import SYNTAXES, Use

_PLACEHOLDER: Final = re.compile(r"\$\((\w+)\)")
_ENDING: Final = frozenset(("--help", "--version"))
"""With one of these, a server prints something and ends."""


def wrong_option(pod: ReadOnlyTree, container: ReadOnlyTree, references: References) -> Requirement | None:
    """Return what the server of a container says of its first wrong option; None if all are right, as far as anybody knows."""
    argv = server_argv(container)
    if len(argv) <= 1:
        return None
    return wrong_option_of(
        expand_references(argv, environment_of(pod, container, references)), container.get("image") or ""
    )


def names_options(container: ReadOnlyTree) -> bool:
    """Return whether a container's server has options that are checked."""
    argv = server_argv(container)
    return len(argv) > 1 and options_of(_program(argv), container.get("image") or "") is not None


def server_argv(container: ReadOnlyTree) -> Sequence[str]:
    """Return the command line of a container, with the server to which its entrypoint gives options; () if it has none."""
    image = behavior_of(container)
    if image is None or image.is_guess:
        return ()
    command, arguments = without_entrypoint(container)
    argv = (*command, *arguments)
    if command or not argv or not argv[0].startswith("-"):
        return argv
    if not image.takes_options:
        return ()
    name = parse_reference(container.get("image") or "").path.rpartition("/")[2]
    server = next((each for each in image.servers if options_of(each, name) is not None), "")
    return (server or next(iter(image.servers), name), *argv)


def wrong_option_of(argv: Sequence[str], image: str) -> Requirement | None:
    options = options_of(_program(argv), image)
    arguments = argv[1:]
    if options is None or not _ENDING.isdisjoint(arguments):
        return None
    version = image_version(image)
    for use in SYNTAXES[options.syntax](options, arguments):
        if problem := _problem(options, use, version):
            values = {"problem": problem, "line": str(use.line), "text": use.text}
            values |= {"arguments": " ".join(arguments), "version": _version_text(options, version)}
            return Requirement(one_of=(), logs=_lines(options.logs, values), exit_code=options.exit_code)
    return None


def _program(argv: Sequence[str]) -> str:
    return argv[0].rpartition("/")[2] if argv else ""


def _problem(options: ServerOptions, use: Use, version: Version | None) -> str:
    """Return what a server says of an option; "" if it is right, or if its value is a variable that nobody knows."""
    if "$" in use.name or "$" in (use.value or ""):
        return ""
    values = {"name": use.name, "value": use.value or "", "text": use.text}
    if use.is_argument or use.is_letter:
        is_known = use.is_letter and use.name in options.takes_value
        text = options.unexpected if use.is_argument else options.unknown_letter
        return "" if is_known else _replace(text, values)
    if not options.has(use.name, version):
        is_variable = use.value is not None or options.syntax != "mysql"
        return _replace(options.unknown if is_variable else options.lacks_value, values)
    return _problem_of_value(options, use, values)


def _problem_of_value(options: ServerOptions, use: Use, values: Mapping[str, str]) -> str:
    option = options.by_name.get(use.name)
    kind = None if option is None else options.kinds.get(option.kind)
    if option is None or (kind is None and not option.values):
        return ""
    if use.value is None:
        return "" if options.syntax in ("mysql", "kingpin") else _replace(options.lacks_value, values)
    if option.values and use.value.lower() not in option.values:
        return _replace(options.other_value, {**values, "values": ", ".join(option.values)})
    if kind is not None and not re.fullmatch(kind.values, use.value):
        return _replace(kind.says, values)
    return ""


def _version_text(options: ServerOptions, version: Version | None) -> str:
    if version in (None, NEWEST):
        return options.version
    numbers = [str(int(number)) if number < float("inf") else "0" for number in version or ()]
    return ".".join([*numbers, "0", "0"][:3])


def _lines(lines: Sequence[str], values: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(part for line in lines for part in _replace(line, values).split("\n"))


def _replace(text: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)
