"""The amount of work that one request causes: where its stages run, and how much memory it reserves."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from msgspec import Struct

from mockube.apiserver.memory_limit import MemoryLimit, Reservation


class RequestWork(Struct, kw_only=True):
    """The sizes of a request and of its object, and the memory that is reserved for them."""

    user: str
    """The name of the user whose share of the memory the request uses."""
    body_size: int
    factor: int
    """How much longer than most kinds the kind takes to process."""
    growth: int = 0
    """The number of bytes by which the object may grow, besides the size of the body."""
    bytes: int = 0
    """The size of the body and of the object that the request changes."""
    size: int = 0
    """The size of an object of most kinds that takes as long to process as this one."""
    memory: MemoryLimit | None = None
    """The limit of the memory for `bytes`; None if the request reserves none."""
    reservation: Reservation | None = None
    """The reservation of memory for `bytes`; only large requests have one."""
    body_reservation: Reservation | None = None
    """The reservation of memory for the body, which is made before the other one."""

    def __post_init__(self) -> None:
        self.measure(0)

    def measure(self, stored_size: int) -> None:
        """Set `bytes` and `size` for a stored object of this size."""
        self.bytes = self.body_size + stored_size + self.growth
        self.size = self.bytes * self.factor

    @property
    def needs_reservation(self) -> bool:
        """Whether memory for `bytes` must be reserved."""
        memory, reservation = self.memory, self.reservation
        return (
            memory is not None
            and self.bytes >= memory.minimum
            and (reservation is None or reservation.needs_reservation(self.bytes))
        )

    async def reserve(self) -> bool:
        """Reserve memory for `bytes`; return whether the request waited for others."""
        if self.memory is None:
            return False
        if self.reservation is None:
            self.reservation = Reservation(self.memory, self.user)
        return await self.reservation.grow(self.bytes)

    def release(self) -> None:
        if self.reservation is not None:
            self.reservation.release()

    @asynccontextmanager
    async def without_memory(self) -> AsyncIterator[None]:
        """Release the memory during a call of another server, which may send large requests to this one meanwhile."""
        async with AsyncExitStack() as stack:
            for reservation in (
                self.reservation,
                self.body_reservation,
            ):  # the last one is reserved again first
                if reservation is not None:
                    await stack.enter_async_context(reservation.suspend())
            yield
