"""The options of known servers: which they accept, and what they say of a wrong one. The data: `options.yaml`.

Nobody knows whether a server that is not in it accepts an option.
"""

import re
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct, field

from mockube.apimachinery.yaml_decode import load

from .references import parse_reference

_DATA: Final = Path(__file__).with_name("options.yaml")
Version = tuple[float, ...]
NEWEST: Final[Version] = (float("inf"),)
"""The version of a tag without one, such as latest."""


class OptionKind(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What the values of some options look like."""

    values: str
    """A pattern."""
    says: str
    """What the server says of another value; $(name) and $(value) are replaced, and $(level) is that of PostgreSQL."""


class Option(Struct, frozen=True):
    """An option, and the versions of its program that have it: from `since` to before `until`."""

    kind: str = ""
    """A kind of the program; "" for a value that is not checked, or for none."""
    values: tuple[str, ...] = ()
    """The values of which it has one; empty for any."""
    since: Version = ()
    until: Version = NEWEST


class ServerOptions(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, dict=True):
    """The options of a server, and what it says and how it ends if one is wrong."""

    programs: tuple[str, ...]
    images: tuple[str, ...]
    """The ends of the names of images that have the program: others may have another one of its name."""
    source: str
    syntax: Literal["directives", "settings", "mysql", "letters", "flags", "kingpin", "overrides"]
    """How it reads its arguments: see `option_syntax`."""
    files: Literal["", "directives", "settings", "mysql", "yaml", "properties", "ini"] = ""
    """How it reads its configuration files: see `configuration_lines`."""
    subcommand: str = ""
    """The argument before its options; its entrypoint adds it."""
    variables: str = ""
    """The beginning of the names of variables that set options, with _ in place of a dot."""
    options: str = ""
    """The options, each as NAME, NAME:KIND or NAME:VALUE|VALUE, with @SINCE-UNTIL behind it where not all versions have it."""
    configuration: tuple[str, ...] = ()
    """Its configuration files: paths, with * for any name, and --NAME for the value of an option, without which those that follow
    are read, or 1 for the first argument."""
    include: str = ""
    """The option of a file whose value is another file that it reads."""
    file_unknown: str = ""
    """What it says of an option in a file that it does not have, if other words; $(file) and $(line) are replaced."""
    file_logs: tuple[str, ...] = ()
    """The lines that it logs if an option in a file is wrong, if others than `logs`."""
    syntax_logs: tuple[str, ...] = ()
    """The lines that it logs if a line of a file has no valid form, if others than `file_logs`."""
    letters: str = ""
    """The short options as for getopt: a colon follows one that has a value."""
    others: tuple[str, ...] = ()
    """The beginnings of options that parts of the server have of which nobody knows, such as plugins."""
    has_parts: bool = False
    """Whether it accepts an option with a dot, as one of such a part."""
    ignored: tuple[str, ...] = ()
    """The beginnings of options that it ignores if it does not have them."""
    is_partial: bool = False
    """Whether not all options are listed: nobody knows whether it has another one."""
    checked_before: str = ""
    """The version from which on nobody has listed the options; "" if all are listed."""
    kinds: Mapping[str, OptionKind] = field(default_factory=dict)
    unknown: str = ""
    """What it says of an option that it does not have; "" if it ignores one. $(name), $(value) and $(text) are replaced."""
    unknown_without_value: str = ""
    """What it says of an unknown option without a value, if other words."""
    lacks_value: str = ""
    """What it says of an option that has to have a value; "" if it takes any option without one."""
    other_value: str = ""
    """What it says of a value that is none of the option's; $(values) are these."""
    unknown_letter: str = ""
    unexpected: str = ""
    """What it says of an argument that is no option; "" if it accepts any."""
    logs: tuple[str, ...] = ()
    """The lines that it logs; $(problem) is one of the above, $(line), $(text), $(command) and $(version) are replaced."""
    version: str = ""
    """The version that it prints if the tag of its image does not say which one it is."""
    exit_code: int = 1

    @cached_property
    def by_name(self) -> Mapping[str, Option]:
        return dict(map(_option, self.options.split()))

    @cached_property
    def takes_value(self) -> Mapping[str, bool]:
        """Return for each letter whether it has a value."""
        return {
            letter: self.letters[index + 1 : index + 2] == ":"
            for index, letter in enumerate(self.letters)
            if letter != ":"
        }

    def has(self, name: str, version: Version | None) -> bool:
        """Return whether a version has an option, as far as anybody knows; None is a version that nobody knows."""
        if (
            self.is_partial
            or name.startswith(self.others)
            or (version is not None and self._is_unlisted(version))
        ):
            return True
        return self.lists(name, version)

    def lists(self, name: str, version: Version | None) -> bool:
        """Return whether a version certainly accepts an option."""
        if name.startswith(self.ignored) or (self.has_parts and "." in name):
            return True
        option = self.by_name.get(name)
        return option is not None and (version is None or option.since <= version < option.until)

    def _is_unlisted(self, version: Version) -> bool:
        return bool(self.checked_before) and parse_version(self.checked_before) <= version != NEWEST


def _option(text: str) -> tuple[str, Option]:
    text, _, versions = text.partition("@")
    name, _, kind = text.partition(":")
    since, _, until = versions.partition("-")
    values = tuple(kind.split("|")) if "|" in kind else ()
    last = parse_version(until) if until else (float("inf"), float("inf"))
    return name, Option("" if values else kind, values, parse_version(since) if since else (), last)


def parse_version(text: str) -> Version:
    """Return the numbers of a version; those that a tag such as 8 leaves open are the newest ones."""
    numbers = re.match(r"v?([0-9]+(?:\.[0-9]+)*)", text)
    return tuple(map(float, numbers[1].split("."))) if numbers else NEWEST


def image_version(image: str) -> Version | None:
    """Return the version in the tag of an image, as an upper bound: 8 is the newest 8; None for an image by its digest alone."""
    tag = parse_reference(image).tag
    if not tag:
        return None
    version = parse_version(tag)
    return version if version == NEWEST or len(version) > 2 else (*version, float("inf"))


@cache
def _programs() -> Mapping[str, tuple[ServerOptions, ...]]:
    entries = msgspec.convert(load(_DATA.read_bytes()).tree, dict[str, ServerOptions])
    table: dict[str, tuple[ServerOptions, ...]] = {}
    for entry in entries.values():
        for name in entry.programs:
            table[name] = (*table.get(name, ()), entry)
    return table


def options_of(program: str, image: str) -> ServerOptions | None:
    """Return the options of a program of an image; None if nobody has listed them."""
    entries = _programs().get(program, ())
    repository = f"/{parse_reference(image).repository}" if entries else ""
    return next(
        (entry for entry in entries if any(repository.endswith(f"/{name}") for name in entry.images)), None
    )
