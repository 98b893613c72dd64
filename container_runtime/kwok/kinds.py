"""The kinds of kwok's objects about containers, and what finds their entries."""

from enum import Enum
from typing import Protocol

from mockube.apimachinery.tree import ReadOnlyTree


class KwokKind(Enum):
    """The kinds of kwok's objects; the value is the plural name."""

    LOGS = "logs"
    EXEC = "execs"
    ATTACH = "attaches"
    PORT_FORWARD = "portforwards"

    @property
    def entries(self) -> str:
        return "forwards" if self is KwokKind.PORT_FORWARD else self.value


class EntryFinder(Protocol):
    async def entry(
        self, kind: KwokKind, pod: ReadOnlyTree, container_or_port: str | int
    ) -> ReadOnlyTree | None:
        """Return the entry of a container or a port, or None; raise `NotPermitted` for an entry that the settings do not permit."""
