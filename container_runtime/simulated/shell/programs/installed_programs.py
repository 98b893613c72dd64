"""Programs that other distributions add to simulated containers, each by an entry point of the group `mockube.programs`.

The name of an entry point is that of the program; its object is a `Program`, as those of this folder. It is imported when the
program is called for the first time.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Final

from mockube.container_runtime.simulated.shell.process import Program, UnknownProgram

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "mockube.programs"


@cache
def _entry_points() -> "Mapping[str, EntryPoint]":
    from importlib.metadata import entry_points  # noqa: PLC0415 - a process that runs no command needs no such module

    return {entry.name: entry for entry in entry_points(group=GROUP)}


class InstalledPrograms(Mapping[str, Program]):
    """The programs of mockube itself, and those that are added; mockube's own come first."""

    def __init__(
        self, own: Mapping[str, Program], find: "Callable[[], Mapping[str, EntryPoint]]" = _entry_points
    ) -> None:
        self._own = own
        self._find = find
        self._imported: dict[str, Program] = {}

    def extended(self, programs: Mapping[str, Program]) -> "InstalledPrograms":
        """Return these programs with others, which come first."""
        return InstalledPrograms({**self._own, **programs}, self._find)

    @cached_property
    def _added(self) -> "Mapping[str, EntryPoint]":
        return {name: entry for name, entry in self._find().items() if name not in self._own}

    def __getitem__(self, name: str) -> Program:
        if (own := self._own.get(name)) is not None:
            return own
        if (imported := self._imported.get(name)) is None:
            imported = self._imported[name] = _import(self._added[name])
        return imported

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._added

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from self._added

    def __len__(self) -> int:
        return len(self._own) + len(self._added)


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
