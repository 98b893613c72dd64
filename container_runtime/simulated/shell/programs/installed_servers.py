"""Servers with a configuration, which other distributions add to simulated containers, each by an entry point.

The object of an entry point is a `ServerKind`. All are imported when an image is met that may have one.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.container_runtime.extras import missing_distribution
from mockube.container_runtime.images.table import Image
from mockube.container_runtime.simulated.server_contract import RunningServer
from mockube.container_runtime.simulated.shell.network_programs.programs import report_unknown
from mockube.container_runtime.simulated.shell.process import Process, Program, UnknownProgram, listening

from . import servers
from .installed_programs import LayeredPrograms, find_entry_points

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

LOG: Final = logging.getLogger(__name__)
GROUP: Final = "mockube.servers"


class ServerKind(Struct, frozen=True, kw_only=True):
    """A server that reads a configuration: how an image starts it, and its programs."""

    folder: str
    """The folder of the configuration, by which an image with the server is known."""
    programs: Mapping[str, Program]
    """Its programs by their names; one that serves lets `server_of` its process accept a `ServedConfiguration`."""
    command: tuple[str, ...]
    """What the entrypoint of the image runs without arguments."""
    places: tuple[str, ...] = ()
    """Other folders that the server uses, such as those of its logs."""
    reload: Program | None = None
    """Reads the configuration again, as the server does at a signal."""
    reload_signals: frozenset[int] = frozenset()

    def has(self, argv: Sequence[str]) -> bool:
        """Return whether a command line is one of its programs."""
        return bool(argv) and argv[0].rpartition("/")[2] in self.programs


@cache
def server_kinds() -> tuple[ServerKind, ...]:
    """Return the servers of all distributions that are installed."""
    return tuple(filter(None, map(_load, find_entry_points(GROUP).values())))


def kind_of(image: Image) -> ServerKind | None:
    """Return the server of an image whose configuration is known; None if it is not simulated."""
    if not image.configuration:
        return None
    kind = next((kind for kind in server_kinds() if kind.folder in image.configuration), None)
    is_known = kind is not None and any(path.startswith(f"{kind.folder}/") for path in image.files)
    return kind if is_known else None


def missing_server(image: Image) -> str:
    """Return the distribution that would read the configuration of an image's server; "" if none does, or if it is installed."""
    has_files = any(path.startswith(f"{folder}/") for folder in image.configuration for path in image.files)
    return missing_distribution(next(iter(image.servers), "")) if has_files and not image.is_guess else ""


def _load(entry: "EntryPoint") -> ServerKind | None:
    """Return the object of an entry point; None, with a warning, for one that cannot be used."""
    try:
        kind = entry.load()
    except Exception as error:  # noqa: BLE001 - whatever another distribution raises
        LOG.warning("The server %s cannot be used: %s: %s", entry.value, type(error).__name__, error)
        return None
    if not isinstance(kind, ServerKind):
        LOG.warning(
            "The server %s cannot be used: it is a %s, no ServerKind", entry.value, type(kind).__name__
        )
        return None
    programs = {name: listening(report_unknown(each)) for name, each in kind.programs.items()}
    return replace(kind, programs=programs)


def server_of(process: Process) -> RunningServer:
    """Return the server that a program starts or reloads; raise `UnknownProgram` where nobody can connect to it."""
    server = process.host.server
    if server is None:
        raise UnknownProgram(process.name)
    return server


class _ServerPrograms(Mapping[str, Program]):
    """The programs of all servers."""

    def __getitem__(self, name: str) -> Program:
        return next(kind.programs[name] for kind in server_kinds() if name in kind.programs)

    def __contains__(self, name: object) -> bool:
        return any(name in kind.programs for kind in server_kinds())

    def __iter__(self) -> Iterator[str]:
        return (name for kind in server_kinds() for name in kind.programs)

    def __len__(self) -> int:
        return sum(1 for _ in self)


PROGRAMS: Final = LayeredPrograms(servers.PROGRAMS, _ServerPrograms())
"""The programs that an image may have as its server: of httpd, that of busybox comes before that of Apache, which its images have."""
