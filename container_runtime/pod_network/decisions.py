"""Where the connections of pods lead: what the network asks of those who know the objects of the cluster."""

from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import Protocol

from msgspec import Struct

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.runtime import PortConnection

from .packet_queue import NewConnection


class Refusal(Enum):
    """Why a connection is not opened."""

    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    DROPPED = "dropped"
    """Nothing answers."""


class Direct(Struct, frozen=True):
    """The kernel sends the packets to an address and a port of another pod."""

    address: str
    port: int


class Served(Struct, frozen=True):
    """The manager accepts the connection."""

    connect: PortConnection
    abandon: Callable[[], None] = lambda: None
    """Called in its place if the client gives up before."""


class Forwarded(Struct, frozen=True):
    """The manager sends the datagrams to an address outside of the cluster, as the machine can."""

    address: str
    port: int


class Answered(Struct, frozen=True):
    """A simulated pod answers each datagram, or sends nothing."""

    reply: Callable[[bytes], Awaitable[bytes]]


class Echoed(Struct, frozen=True):
    """The network answers echo requests in the place of a simulated pod."""


class ClusterNames(Struct, frozen=True):
    """The name server of the cluster answers."""


Decision = Refusal | Direct | Served | Forwarded | Answered | Echoed | ClusterNames


class Names(Struct, frozen=True, kw_only=True):
    """The answer of the cluster's name server."""

    exists: bool = False
    records: Sequence[tuple[str, str, str]] = ()
    """Name, type and value of each record."""
    is_outside: bool = False
    """Whether name servers of the machine know the answer."""
    target: str = ""
    """The name outside to which the records, aliases, lead; "" if the name itself is outside."""
    is_dropped: bool = False
    """Whether nothing answers."""


class Connections(Protocol):
    """Decides on the connections of pods."""

    async def decide(self, pod: ReadOnlyTree, connection: NewConnection) -> Decision: ...

    async def look_up(self, pod: ReadOnlyTree, name: str, record_type: str) -> Names: ...


class NoConnections:
    """Refuses all connections."""

    async def decide(self, _pod: ReadOnlyTree, _connection: NewConnection) -> Decision:
        return Refusal.REFUSED

    async def look_up(self, _pod: ReadOnlyTree, _name: str, _record_type: str) -> Names:
        return Names(is_dropped=True)
