"""Which programs an image has: those of sets such as busybox' applets, and single ones. The data of the sets: `programs.yaml`.

An image whose programs nobody knows has none of this, and any program counts as there.
"""

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

from mockube.apimachinery.yaml_decode import load

from .table import ImageTable

_DATA: Final = Path(__file__).with_name("programs.yaml")
_MIN_MISSPELLED: Final = 3
"""Shorter names are near to too many others."""
_SYSTEMS: Final = ("busybox", "debian", "procps")
NO_SYSTEM: Final = "distroless"
"""The set of an image with no more than the files that programs of their own need."""
OTHERS: Final = "*"
"""Stands, in the `programs` of an image, for programs that nobody knows."""


class ProgramSet(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Programs that images of the same origin have."""

    programs: str = ""
    """Their names, with spaces between them."""
    includes: tuple[str, ...] = ()
    """Other sets whose programs belong to the set."""
    variants: Mapping[str, str] = field(default_factory=dict)
    """The sets that an image has instead, by the beginning of a part of its tag: `alpine` for 3.20-alpine3.20."""
    folders: Mapping[str, str] = field(default_factory=dict)
    """Which of them are in a folder, by its path, with other paths of the same folder after a space; * is all that are in no other one.

    Nobody knows where the others are.
    """
    is_open: bool = False
    """Whether images of the set have other programs, too."""


Places = tuple[tuple[tuple[str, ...], frozenset[str]], ...]
"""Folders, each by its paths, with the programs in them; those without a path are somewhere."""


class ImagePrograms(Struct, frozen=True):
    """The programs of an image."""

    names: frozenset[str]
    is_open: bool = False
    """Whether it may have others."""
    lacks_system: bool = False
    """Whether it has no programs of a system, such as a shell, although it may have others."""
    places: Places = ()

    def folders(self, name: str) -> Iterator[tuple[str, ...]]:
        """Yield the folders that have a program, each by its paths; one without a path if nobody knows where it is."""
        return (paths for paths, names in self.places if name in names)

    def has(self, name: str) -> bool | None:
        """Return whether the image has a program; None if nobody knows.

        An image that may have others lacks those that no image has, and whose name is nearly that of one that some have.
        """
        if name in self.names:
            return True
        if not self.is_open or (self.lacks_system and name in system_programs()):
            return False
        return False if is_misspelled(name) else None


@cache
def program_sets() -> Mapping[str, ProgramSet]:
    return msgspec.convert(load(_DATA.read_bytes()).tree, dict[str, ProgramSet])


@cache
def known_programs() -> frozenset[str]:
    """Return the names of all programs of all sets."""
    return frozenset(name for each in program_sets().values() for name in each.programs.split())


@cache
def system_programs() -> frozenset[str]:
    """Return the programs of the sets of systems, which images without a system do not have."""
    return frozenset(name for each in _SYSTEMS for name in program_sets()[each].programs.split())


@lru_cache(maxsize=1024)
def is_misspelled(name: str) -> bool:
    """Return whether a name is that of no program, and one letter away from one: `slep`, `wge`, `ehco`, `python4`."""
    known = known_programs()
    return len(name) >= _MIN_MISSPELLED and name not in known and not known.isdisjoint(_names_near(name))


def _names_near(name: str) -> Iterator[str]:
    """Yield what a name is after one letter was added, removed, replaced, or exchanged with the next one."""
    letters = "abcdefghijklmnopqrstuvwxyz0123456789-_.+"
    for index in range(len(name) + 1):
        head, tail = name[:index], name[index:]
        yield from (f"{head}{letter}{tail}" for letter in letters)
        if tail:
            yield head + tail[1:]
            yield from (f"{head}{letter}{tail[1:]}" for letter in letters)
        if len(tail) > 1:
            yield f"{head}{tail[1]}{tail[0]}{tail[2:]}"


def programs_of_image(images: ImageTable, image: str) -> ImagePrograms | None:
    """Return the programs of an image such as docker.io/library/nginx:1.29; None if nobody knows them."""
    entry = images.behavior_of_image(image)
    if entry is None or entry.programs is None:
        return None
    return _programs_of(entry.programs, image.partition("@")[0].rpartition("/")[2].partition(":")[2])


@cache
def _programs_of(items: tuple[str, ...], tag: str) -> ImagePrograms:
    places: list[tuple[tuple[str, ...], frozenset[str]]] = []
    is_open = False
    for item in items:
        for each in _with_included(_variant(item, tag)):
            members = program_sets().get(each)
            places += [_place_of(each)] if members is None else _places_of(members)
            is_open |= each == OTHERS or (members is not None and members.is_open)
    names = frozenset[str]().union(*(names for _, names in places))
    return ImagePrograms(names - {OTHERS}, is_open, NO_SYSTEM in items, tuple(places))


def _place_of(item: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return where a single program is: one in the root folder is known by its path only."""
    folder, _, name = item.rpartition("/")
    return ((folder,), frozenset([name])) if folder else ((), frozenset([item]))


def _places_of(members: ProgramSet) -> Iterator[tuple[tuple[str, ...], frozenset[str]]]:
    rest = frozenset(members.programs.split())
    for paths, listed in members.folders.items():
        names = rest if listed == OTHERS else frozenset(listed.split())
        rest -= names
        yield tuple(paths.split()), names
    if rest:
        yield (), rest


def _variant(item: str, tag: str) -> str:
    """Return the set that an image with a tag has instead of another one."""
    members = program_sets().get(item)
    for beginning, other in members.variants.items() if members is not None else ():
        if any(part.startswith(beginning) for part in tag.split("-")):
            return _variant(other, tag) if other != item else item
    return item


def _with_included(item: str) -> Iterator[str]:
    yield item
    members = program_sets().get(item)
    for other in members.includes if members is not None else ():
        yield from _with_included(other)
