"""What every verb uses: the kinds, admission, and what objects allocate. `assembly.py` makes it."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol, TypeAlias, TypeVar

from msgspec import Struct, field

from mockube.apimachinery.errors import DisplayedValue, FieldError
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.patch.apply import FieldManager
from mockube.apimachinery.schema.decode import Decoder
from mockube.apimachinery.schema.model import Schemas
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.kind import Conversion
from mockube.apiserver.kinds.registry import Conversions
from mockube.apiserver.kinds.strategy import DEFAULT, Request, Strategy
from mockube.apiserver.long_work import LARGE, Worker
from mockube.apiserver.memory_limit import MemoryLimit
from mockube.apiserver.registry.backend import Backend
from mockube.apiserver.registry.call import Attributes, Call, ListAnswer, ObjectAnswer
from mockube.apiserver.storage.compaction import Expiry
from mockube.apiserver.user import User
from mockube.etcd.kv import NO_LEASE, Compare, Operation

_R = TypeVar("_R")

DECODED_BYTES: Final = 8 << 20
"""The size of all bodies, and of the objects that they change, that are decoded at a time: two of the largest."""


class Rules(Protocol):
    """The defaults, validation and warnings of kinds, besides their schemas."""

    no_version: int | DisplayedValue
    """The value that messages show if an update has no resourceVersion."""

    def default(self, api_version: str, kind: str, tree: Tree) -> None:
        """Set defaults in place: the tree is not shared yet."""

    def check_create(self, resource: Resource, tree: Tree) -> Sequence[FieldError]: ...

    def check_update(
        self, resource: Resource, subresource: str, new: Tree, old: Tree
    ) -> Sequence[FieldError]: ...

    def warn_create(self, resource: Resource, tree: Tree) -> Iterable[str]:
        """Return the warnings about a new object that is valid."""

    def warn_update(self, resource: Resource, subresource: str, new: Tree, old: Tree) -> Iterable[str]: ...

    def warn_refused(self, resource: Resource, new: Tree, old: Tree) -> Iterable[str]:
        """Return the warnings that accompany the errors of the update that was checked last."""


class Scheme(Struct, frozen=True, kw_only=True):
    """The schemas, decoders, rules, strategies and conversions of all kinds that are served."""

    schemas: Schemas
    decoder: Decoder
    rules: Rules
    strategies: Mapping[GroupResource, Strategy]
    conversions: Conversions = field(default_factory=dict)
    prepare: Callable[[Worker, Resource], Awaitable[None]] | None = None
    """Compiles what a custom resource needs, before its first object is handled."""
    field_managers: dict[tuple[Resource, str], FieldManager] = field(default_factory=dict)
    """By resource and subresource; created at the first write."""

    def strategy(self, resource: Resource) -> Strategy:
        return self.strategies.get(resource.group_resource, DEFAULT)

    def conversion(self, resource: Resource) -> Conversion | None:
        return self.conversions.get((resource.group_version, resource.name))


class Claims(Struct, frozen=True, kw_only=True):
    """What a write allocates or releases in the transaction that writes its object, so that nothing is allocated twice."""

    compare: Sequence[Compare] = ()
    then: Sequence[Operation] = ()


NO_CLAIMS = Claims()


class Claimant(Protocol):
    """Allocates what no two objects of a resource may have, such as addresses."""

    async def claim(self, backend: Backend, new: Tree | None, old: Tree | None, *, dry_run: bool) -> Claims:
        """Set the allocated fields of the new object. `old` is None at a creation, `new` at a deletion."""

    async def reclaim(self, backend: Backend, namespace: str, name: str) -> Claims:
        """Return the claims that release all allocations of a deleted object that cannot be read."""


class Allocations(Struct, frozen=True, kw_only=True):
    """What writes of objects allocate, by resource, and the leases of objects with a time to live."""

    claimants: Mapping[GroupResource, Claimant] = field(default_factory=dict)
    expiry: Mapping[GroupResource, Expiry] = field(default_factory=dict)
    """By resource."""

    def may_claim(self, resource: Resource) -> bool:
        """Return whether objects of the resource allocate something for which concurrent requests may compete."""
        return resource.group_resource in self.claimants

    async def claims(
        self,
        backend: Backend,
        resource: Resource,
        new: Tree | None,
        old: Tree | None,
        *,
        dry_run: bool = False,
    ) -> Claims:
        claimant = self.claimants.get(resource.group_resource)
        return NO_CLAIMS if claimant is None else await claimant.claim(backend, new, old, dry_run=dry_run)

    async def claims_of_unreadable(
        self, backend: Backend, resource: Resource, namespace: str, name: str
    ) -> Claims:
        claimant = self.claimants.get(resource.group_resource)
        return NO_CLAIMS if claimant is None else await claimant.reclaim(backend, namespace, name)

    async def lease(self, resource: Resource) -> int:
        """Return the lease of the store under which an object of the resource is put."""
        expiry = self.expiry.get(resource.group_resource)
        return NO_LEASE if expiry is None else await expiry.lease()


class Admission(Protocol):
    async def mutate(self, registry: "Registry", attributes: Attributes) -> None: ...

    async def validate(self, registry: "Registry", attributes: Attributes) -> None: ...


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


Verb: TypeAlias = Callable[[Registry, Call], Awaitable[ObjectAnswer | ListAnswer]]
OwnVerbs: TypeAlias = dict[tuple[GroupResource, str], Mapping[str, Verb]]
"""The verbs, by name, of resources and subresources ("" for the resource itself) that have verbs of their own."""
