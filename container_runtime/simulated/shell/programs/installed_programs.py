"""Programs that other distributions add to simulated containers and nodes, each by an entry point.

The name of an entry point is that of the program; its object is a `Program`, as those of this folder. It is imported when the
program is called for the first time.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

from mockube.container_runtime.simulated.shell.process import Program, UnknownProgram

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "mockube.programs"
"""The group of the programs of containers."""
NODE_GROUP: Final = "mockube.node_programs"
"""The group of those that only nodes have, or that show something else on nodes."""


def find_entry_points(group: str) -> "Mapping[str, EntryPoint]":
    from importlib.metadata import entry_points  # noqa: PLC0415 - a process that runs no command needs no such module

    return {entry.name: entry for entry in entry_points(group=group)}


class InstalledPrograms(Mapping[str, Program]):
    """The programs of a group of entry points by name."""

    def __init__(
        self, group: str, find: "Callable[[str], Mapping[str, EntryPoint]]" = find_entry_points
    ) -> None:
        self._group, self._find = group, find
        self._imported: dict[str, Program] = {}

    @cached_property
    def _entries(self) -> "Mapping[str, EntryPoint]":
        return self._find(self._group)

    def __getitem__(self, name: str) -> Program:
        if (imported := self._imported.get(name)) is None:
            imported = self._imported[name] = _import(self._entries[name])
        return imported

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


class LayeredPrograms(Mapping[str, Program]):
    """Programs of several mappings: of two with one name the first counts."""

    def __init__(self, *layers: Mapping[str, Program]) -> None:
        self._layers = layers

    def __getitem__(self, name: str) -> Program:
        for layer in self._layers:
            if name in layer:
                return layer[name]
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return any(name in layer for layer in self._layers)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for layer in self._layers for name in layer))

    def __len__(self) -> int:
        return len({name for layer in self._layers for name in layer})


def _import(entry: "EntryPoint") -> Program:
    """Return the program of an entry point; raise `UnknownProgram`, with the reason, if it cannot be used."""
    try:
        program: Program = entry.load()
    except Exception as error:
        raise _unusable(entry, f"{type(error).__name__}: {error}") from error
    if not callable(program):
        raise _unusable(entry, f"it is a {type(program).__name__}, not a function")
    return program


def _unusable(entry: "EntryPoint", reason: str) -> UnknownProgram:
    return UnknownProgram(f"{entry.name}, whose entry point {entry.value} cannot be used ({reason}),")
