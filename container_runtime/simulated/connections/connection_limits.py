"""How many connections the servers of databases accept at once, and what they say to one that is too many."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock
from mockube.container_runtime.records import Records
from mockube.container_runtime.runs import container_status
from mockube.container_runtime.simulated.servers.server_programs import option

from .port_answers import OpenPort

_OPTIONS: Final = {
    "mysql": ("--max-connections",),
    "postgres": ("--max-connections", "max-connections", "-cmax-connections", "-N"),
    "redis": ("--maxclients",),
}
"""The options of the servers, with dashes for underscores; the value of PostgreSQL's `-c` is one, too."""
_VARIABLES: Final = ("MYSQL_MAX_CONNECTIONS", "MARIADB_MAX_CONNECTIONS", "POSTGRESQL_MAX_CONNECTIONS")
_DEFAULTS: Final = {"mysql": 151, "postgres": 100, "redis": 10_000}
_FATAL: Final = b"SFATAL\0VFATAL\0C53300\0Msorry, too many clients already\0Fproc.c\0L356\0RInitProcess\0\0"
_REFUSALS: Final = {
    "mysql": b"\x17\0\0\0\xff\x10\x04Too many connections",
    "postgres": b"E" + (len(_FATAL) + 4).to_bytes(4, "big") + _FATAL,
    "redis": b"-ERR max number of clients reached\r\n",
}
"""What a server sends to a connection that is too many, before it closes it; PostgreSQL after the first message of the client."""
SPEAKS_FIRST: Final = frozenset({"mysql", "redis"})


class _Connections(dict[tuple[str, int], dict[int, float]]):
    """The ends of a pod's connections, by the run of the container that has accepted them, and their numbers: infinite for one that its client closes."""


class OpenConnections:
    """The connections of clients that stay open."""

    def __init__(self, records: Records, clock: Clock) -> None:
        self._records = records
        self._clock = clock
        self._numbers = count()

    @contextmanager
    def hold(self, pod: ReadOnlyTree, opened: OpenPort) -> Iterator[bytes]:
        """Count a connection while its client keeps it open; yield what the server says if it is too many, or else nothing."""
        if refusal := self.refusal(pod, opened):
            yield refusal
            return
        ends, number = self._ends(pod, opened), next(self._numbers)
        ends[number] = float("inf")
        try:
            yield b""
        finally:
            ends.pop(number, None)

    def hold_for(self, pod: ReadOnlyTree, opened: OpenPort, seconds: float) -> None:
        """Count a connection for a time, such as that of a query."""
        if seconds > 0:
            self._ends(pod, opened)[next(self._numbers)] = self._clock.monotonic() + seconds

    def refusal(self, pod: ReadOnlyTree, opened: OpenPort) -> bytes:
        """Return what the server says to one more connection if it has too many; b"" if it accepts it."""
        now, runs = self._clock.monotonic(), self._records.find(meta.uid(pod), _Connections)
        ends = None if runs is None else runs.get(_run_of(pod, opened))
        if not ends or opened.container is None or opened.speaks not in _REFUSALS:
            return b""
        for number in [number for number, end in ends.items() if end <= now]:
            del ends[number]
        return _REFUSALS[opened.speaks] if len(ends) >= limit_of_connections(opened) else b""

    def _ends(self, pod: ReadOnlyTree, opened: OpenPort) -> dict[int, float]:
        return self._records.ensure(meta.uid(pod), _Connections).setdefault(_run_of(pod, opened), {})


def _run_of(pod: ReadOnlyTree, opened: OpenPort) -> tuple[str, int]:
    name = "" if opened.container is None else opened.container["name"]
    return name, (container_status(pod, name) or {}).get("restartCount") or 0


def limit_of_connections(opened: OpenPort) -> int:
    """Return how many connections a server accepts: by an option of its command, a variable of its image, or its default."""
    container = opened.container or {}
    arguments = [word.replace("_", "-").replace(" ", "") for word in opened.argv]
    value = option(arguments, *_OPTIONS[opened.speaks]) or ""
    if value.isdecimal():
        return int(value[:6])
    values = {entry["name"]: entry.get("value") or "" for entry in container.get("env") or ()}
    value = next((values[name] for name in _VARIABLES if values.get(name, "").isdecimal()), "")
    return int(value[:6]) if value else _DEFAULTS[opened.speaks]
