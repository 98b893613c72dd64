"""Which write took a right from a user: the newest one of a role or a binding without which RBAC would have allowed a request.

Writes are undone one by one, the newest first, in a policy of its own. So it does not matter whether a binding, its subjects, a role
or its rules went.
"""

from collections.abc import Sequence
from operator import itemgetter
from typing import Final, NamedTuple

import orjson

from mockube.apimachinery import meta
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.authz.chain import Attributes, Decision
from mockube.apiserver.authz.rbac.authorizer import Grants
from mockube.apiserver.authz.rbac.policy import (
    CLUSTER_ROLE_BINDINGS,
    GROUP,
    RESOURCES,
    ROLE_BINDINGS,
    RBACPolicy,
)
from mockube.apiserver.event_loop import QUICK_SLICE
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.component_base.loop import yield_to_loop

from .changes import ADDED, Changes, ObjectWrite

_BINDINGS: Final = (ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS)


class Loss(NamedTuple):
    """A write that took a right."""

    row: Resource
    object: ReadOnlyTree
    """The role or binding before the write."""
    field: str
    """What lacks the right since; "" if the object was deleted."""


async def find_loss(cluster: Registry, changes: Changes, attributes: Attributes, time: str) -> Loss | None:
    """Return the newest write until a time by which RBAC allows a request no more; None if it allowed it at that time, or never."""
    policy = RBACPolicy()
    for resource in RESOURCES:
        for stored in cluster.list_cached(GroupResource(GROUP, resource)):
            policy.put(resource, stored)
    was_refused = False
    for position, (_, row, write) in enumerate(await _newest_first(cluster, changes)):
        if position % QUICK_SLICE == QUICK_SLICE - 1:
            await yield_to_loop()
        is_before = write.time <= time
        if is_before and not was_refused:
            if _allows(policy, attributes):
                return None
            was_refused = True
        _undo(policy, cluster, row, write)
        if is_before and write.before is not None and _allows(policy, attributes):
            field = "subjects" if row.name in _BINDINGS else "rules"
            return Loss(row, write.before, "" if write.after is None else field)
    return None


async def _newest_first(cluster: Registry, changes: Changes) -> Sequence[tuple[int, Resource, ObjectWrite]]:
    rows = [cluster.rows.get(GroupResource(GROUP, resource)) for resource in RESOURCES]
    writes = [
        (write.revision, row, write)
        for row in rows
        if row is not None
        async for write in changes.of_resource(row)
    ]
    return sorted(writes, key=itemgetter(0), reverse=True)


def _undo(policy: RBACPolicy, cluster: Registry, row: Resource, write: ObjectWrite) -> None:
    if write.before is not None:
        policy.put(row.name, _stored(cluster, row, write.before, write))
    elif write.type == ADDED and write.after is not None:
        policy.remove(row.name, _stored(cluster, row, write.after, write))


def _stored(cluster: Registry, row: Resource, tree: ReadOnlyTree, write: ObjectWrite) -> StoredObject:
    key = cluster.layout.object(row, meta.namespace(tree), meta.name(tree))
    return StoredObject(key, orjson.dumps(tree), write.revision)


def _allows(policy: RBACPolicy, attributes: Attributes) -> bool:
    decision, _ = Grants(policy, attributes.user, attributes.namespace).decide(attributes)
    return decision is Decision.ALLOW
