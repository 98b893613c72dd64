"""What objects hold besides their fields: addresses and ports, and a time to live."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct, field

from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.backend import Backend
from mockube.apiserver.storage.compaction import Expiry
from mockube.etcd.kv import NO_LEASE, Compare, Operation


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
    """The resources whose objects hold such things."""

    claimants: Mapping[GroupResource, Claimant] = field(default_factory=dict)
    expiry: Mapping[GroupResource, Expiry] = field(default_factory=dict)
    """The leases of objects with a time to live."""

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
