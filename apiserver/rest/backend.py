"""What every verb works with, wired together once in `app.py`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from apimachinery import status
from apimachinery.chance import Chance
from apimachinery.clock import Clock
from apimachinery.errors import FieldError
from apimachinery.groups import GroupResource
from apimachinery.patch.apply import FieldManager
from apimachinery.schema.decode import Decoder
from apimachinery.schema.model import Schemas
from apiserver.resources.conversion.lookup import Conversion, Conversions
from apiserver.resources.spec import Resource
from apiserver.resources.strategy import DEFAULT, Request, Strategy
from apiserver.rest.attributes import Attributes
from apiserver.rest.call import Call, User
from apiserver.storage.expiry import Expiry
from apiserver.storage.keys import Layout
from apiserver.storage.mirror import Mirror
from apiserver.storage.stored import Stored, Tree
from etcd.kv import KV, NO_LEASE, Compare, Operation, Range


class Admission(Protocol):
    async def mutate(self, backend: "Backend", attributes: Attributes) -> None: ...

    async def validate(self, backend: "Backend", attributes: Attributes) -> None: ...


class Rules(Protocol):
    """What kinds demand of their objects, beyond their schemas."""

    def default(self, api_version: str, kind: str, tree: Tree) -> None:
        """Fill in what was left out; the tree is nobody else's yet."""

    def check_create(self, resource: Resource, tree: Tree) -> Sequence[FieldError]: ...

    def check_update(
        self, resource: Resource, subresource: str, new: Tree, old: Tree
    ) -> Sequence[FieldError]: ...

    def warn_create(self, resource: Resource, tree: Tree) -> Iterable[str]:
        """What a client should be told of a new object that is not refused."""

    def warn_update(self, resource: Resource, subresource: str, new: Tree, old: Tree) -> Iterable[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What a write takes or gives back besides its object, in the same transaction: so nothing is ever held twice."""

    compare: Sequence[Compare] = ()
    then: Sequence[Operation] = ()


NO_CLAIMS = Claims()


class Claimant(Protocol):
    """Gives the objects of a resource what no two of them may hold, such as addresses."""

    async def claim(self, backend: "Backend", new: Tree | None, old: Tree | None) -> Claims:
        """Fill in what the new object is given. `old` is None at its creation, `new` at its deletion."""


Permits: TypeAlias = Callable[[User, str, GroupResource, str], bool]
"""Whether a user may do what a verb says with a resource of a name, where the request's own check is not all."""


def _everything(_user: User, _verb: str, _resource: GroupResource, _name: str) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """The store and all that is known of objects."""

    kv: KV
    layout: Layout
    mirror: Mirror
    schemas: Schemas
    decoder: Decoder
    clock: Clock
    chance: Chance
    admission: Admission
    rules: Rules
    read_value: Callable[[bytes], bytes]
    """Canonical text of a stored value, whoever wrote it."""
    rows: Mapping[GroupResource, Resource]
    """The built-in resources, each in the version that it is stored in."""
    strategies: Mapping[GroupResource, Strategy]
    claimants: Mapping[GroupResource, Claimant] = field(default_factory=dict)
    permits: Permits = _everything
    watch_list: bool = True
    """Whether watches may begin with what there is, if their clients wish."""
    expiry: Mapping[GroupResource, Expiry] = field(default_factory=dict)
    """Of objects that are forgotten by themselves."""
    conversions: Conversions = field(default_factory=dict)
    field_managers: dict[tuple[Resource, str], FieldManager] = field(default_factory=dict)
    """For each resource and subresource that was written so far."""

    def strategy(self, resource: Resource) -> Strategy:
        return self.strategies.get(resource.group_resource, DEFAULT)

    def stored_row(self, resource: Resource) -> Resource:
        """The resource in the version that its objects are stored in."""
        group, version = resource.storage_version or resource.group_version
        if (group, version) == resource.group_version:
            return resource
        return self.rows[GroupResource(group, resource.name)]

    def conversion(self, resource: Resource) -> Conversion | None:
        return self.conversions.get((resource.group_version, resource.name))

    def request(self, call: Call) -> Request:
        """What a strategy may know of a call."""
        return Request(user=call.user, now=self.clock.now(), warn=call.warn)

    def may_claim(self, resource: Resource) -> bool:
        """Whether objects of the resource may be given what others ask for at the same time."""
        return resource.group_resource in self.claimants

    async def claims(self, resource: Resource, new: Tree | None, old: Tree | None) -> Claims:
        claimant = self.claimants.get(resource.group_resource)
        return NO_CLAIMS if claimant is None else await claimant.claim(self, new, old)

    async def lease(self, resource: Resource) -> int:
        """What an object of the resource is put under."""
        expiry = self.expiry.get(resource.group_resource)
        return NO_LEASE if expiry is None else await expiry.lease()

    def seen(self, resource: GroupResource, namespace: str, name: str) -> Stored | None:
        """An object as the mirror shows it, which must be fresh."""
        row = self.rows[resource]
        shelf = self.mirror.shelf(self.layout.shelf(row))
        return shelf.get(self.layout.object(row, namespace, name))

    def all_seen(self, resource: GroupResource, namespace: str = "") -> Sequence[Stored]:
        """Every object of a resource, or those in a namespace, as the mirror shows them."""
        row = self.rows[resource]
        shelf = self.mirror.shelf(self.layout.shelf(row))
        return shelf.select(self.layout.scope(row, namespace)) if len(shelf) else ()

    async def find(self, resource: Resource, namespace: str, name: str) -> Stored | None:
        """An object as it is now."""
        key = self.layout.object(resource, namespace, name)
        kvs = (await self.kv.range(Range(key=key))).kvs
        return Stored(key, self.read_value(kvs[0].value), kvs[0].mod_revision) if kvs else None

    async def get(self, resource: Resource, namespace: str, name: str) -> Stored:
        stored = await self.find(resource, namespace, name)
        if stored is None:
            raise status.not_found(resource.group_resource, name)
        return stored
