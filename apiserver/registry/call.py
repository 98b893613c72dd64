"""A request for an object or a collection, and its answer, independent of the transport."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from msgspec import Struct

from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import Resource, Subresource
from mockube.apiserver.memory_limit import Reservation
from mockube.apiserver.storage.stored import Stored
from mockube.apiserver.user import User


class Body(Struct, frozen=True, kw_only=True):
    """What was sent, as it was sent."""

    data: bytes
    media_type: str = ""


NO_BODY = Body(data=b"")


class Call(Struct, kw_only=True):
    """One request. `warnings` collects the response's warnings."""

    verb: str
    resource: Resource
    subresource: Subresource | None = None
    namespace: str = ""
    name: str = ""
    query: Mapping[str, Sequence[str]] = {}
    body: Body = NO_BODY
    user: User
    user_agent: str = ""
    warnings: list[str] = []
    annotations: dict[str, str] = {}
    """Annotations of the audit event; collected like the warnings."""
    is_internal: bool = False
    """Part of another request that was admitted already: admission is not run again."""
    live: Stored | None = None
    """The object that is changed, as it is stored."""
    patched: Any = None
    """What a patch made of the object, before it was read as one of its kind."""
    growth: int = 0
    """Bytes that the object may become larger by, beyond what was sent."""
    bytes: int = 0
    """Bytes of the body and of the object that is changed."""
    size: int = 0
    """Bytes to work on, of an object of the usual kind that takes as long as this one."""

    reservation: Reservation | None = None
    """Of memory for these bytes, where it is limited."""
    body_reservation: Reservation | None = None
    """Of memory for the bytes of the body. It is made before the other."""

    def __post_init__(self) -> None:
        self.measure(0)

    def measure(self, stored_size: int) -> None:
        """Set `bytes` and `size`, where the object that is changed has so many bytes."""
        self.bytes = len(self.body.data) + stored_size + self.growth
        self.size = self.bytes * self.resource.work

    @property
    def is_unstructured(self) -> bool:
        """Whether it is about a custom object itself, which has no Go struct; a Scale of one has."""
        return self.resource.custom and not (self.subresource and self.subresource.kind)

    @property
    def lacks_memory(self) -> bool:
        """Whether memory for the bytes is to be reserved."""
        return self.reservation is not None and self.reservation.lacks(self.bytes)

    async def reserve(self) -> bool:
        """Reserve memory for the bytes; return whether other requests were waited for meanwhile."""
        return self.reservation is not None and await self.reservation.grow(self.bytes)

    @asynccontextmanager
    async def calling_out(self) -> AsyncIterator[None]:
        """Release the memory while another server is called, because it may have to send large requests to this one."""
        async with AsyncExitStack() as stack:
            for reservation in (self.reservation, self.body_reservation):  # the last one is reserved first
                if reservation is not None:
                    await stack.enter_async_context(reservation.suspend())
            yield

    def parameter(self, name: str) -> str:
        """A parameter of the query; "" if it was not given."""
        values = self.query.get(name)
        return values[0] if values else ""

    def warn(self, text: str) -> None:
        """Add a warning to the response, once."""
        self.warnings.append(text)


class ObjectAnswer(Struct, frozen=True, kw_only=True):
    """One object: as stored, or as a tree where it is not stored as it is shown."""

    code: int = 200
    stored: Stored | None = None
    tree: Tree | None = None

    def object(self) -> Tree:
        if self.tree is not None:
            return self.tree
        assert self.stored is not None
        return self.stored.tree()


class ListAnswer(Struct, frozen=True, kw_only=True):
    """A list: its items as stored, and its metadata."""

    api_version: str
    kind: str
    items: Sequence[Stored]
    metadata: Mapping[str, Any]
    named: bool = False
    """Whether items have kind and apiVersion, as those of custom resources do."""
