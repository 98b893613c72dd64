"""What every verb uses, wired together once in `assembly.py`."""

from collections.abc import Callable
from functools import partial
from typing import Final, Protocol, TypeVar

from msgspec import field

from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.kinds.strategy import Request
from mockube.apiserver.long_work import LARGE
from mockube.apiserver.memory_limit import MemoryLimit
from mockube.apiserver.registry.allocations import Allocations
from mockube.apiserver.registry.backend import Backend
from mockube.apiserver.registry.call import Attributes, Call
from mockube.apiserver.registry.scheme import Scheme
from mockube.apiserver.user import User

_R = TypeVar("_R")

DECODED_BYTES: Final = 8 << 20
"""The size of all bodies, and of the objects that they change, that are decoded at a time: two of the largest."""


class Admission(Protocol):
    async def mutate(self, backend: "Registry", attributes: Attributes) -> None: ...

    async def validate(self, backend: "Registry", attributes: Attributes) -> None: ...


class Permits(Protocol):
    def __call__(
        self,
        user: User,
        verb: str,
        resource: GroupResource,
        name: str,
        /,
        *,
        namespace: str = "",
        subresource: str = "",
    ) -> bool:
        """Return whether a user is allowed a verb on an object, besides the request's own authorization."""


def _allow_all(*_about: object, **_more: object) -> bool:
    return True


class Registry(Backend, frozen=True, kw_only=True):
    """What the verbs need; for all else that handles objects, a `Backend` is enough."""

    scheme: Scheme
    admission: Admission
    allocations: Allocations = field(default_factory=Allocations)
    permits: Permits = _allow_all
    watch_list: bool = True
    """Whether watches may send initial events if their clients request them."""
    memory: MemoryLimit = field(default_factory=partial(MemoryLimit, DECODED_BYTES, least=LARGE))
    """The memory for bodies, and for the objects that they change, while they are decoded."""

    async def begin(self, call: Call, work: Callable[..., _R], *arguments: object) -> _R:
        """Reserve memory, then return the result of the first work on a body, which is done in a thread if it may take long."""
        if call.lacks_memory:
            await call.reserve()
        if call.resource.custom and self.scheme.prepare is not None:
            await self.scheme.prepare(self.worker, call.resource)
        return await self.worker.run(call.size, work, *arguments)

    def request(self, call: Call) -> Request:
        """Return the parts of a call that strategies use."""
        return Request(user=call.user, now=self.clock.now(), warn=call.warn)
