"""Renewals of many Leases of nodes by one request, for kubelets that one process simulates.

Each renewal is a write of its own, with the same stages, rights and events as a patch by that client. Only the decoding of a
patch is left out, since nothing but times changes.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from mockube.apimachinery.groups import LEASES
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.timestamps import format_micro_time, format_time
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apimachinery.wellknown import NAMESPACE_NODE_LEASE
from mockube.apiserver.authz.chain import Attributes
from mockube.apiserver.patch.apply.managers import UPDATE
from mockube.apiserver.user import User

from . import metadata
from .registry import CorruptObject, Registry
from .request_context import RequestContext, WriteOptions
from .update import guaranteed_update
from .write import Write

_BATCH: Final = 50
"""The renewals that are in progress at once; a durable store commits them together."""
_OPTIONS: Final = WriteOptions()


class _NeedsPatch(Exception):
    """More than the times of a Lease would change."""


async def renew_leases(
    registry: Registry,
    names: Sequence[str],
    renew_time: datetime,
    *,
    user: User,
    user_agent: str,
    audit_id: str,
) -> Sequence[str]:
    """Renew the Leases of nodes that hold them; return the names of the others, which need a creation or a patch."""
    row = registry.rows[LEASES]
    await registry.authorization.require(Attributes.of_row(user, "patch", row, NAMESPACE_NODE_LEASE))
    others: list[str] = []
    for start in range(0, len(names), _BATCH):
        batch = names[start : start + _BATCH]
        contexts = (
            RequestContext(
                verb="patch",
                resource=row,
                namespace=NAMESPACE_NODE_LEASE,
                name=name,
                user=user,
                user_agent=user_agent,
                audit_id=audit_id,
            )
            for name in batch
        )
        renewed = await asyncio.gather(*(_renew(registry, context, renew_time) for context in contexts))
        others += (name for name, is_renewed in zip(batch, renewed, strict=True) if not is_renewed)
    return others


async def _renew(registry: Registry, context: RequestContext, renew_time: datetime) -> bool:
    """Renew a Lease; return False if that failed, so that its node's client patches it and gets the error."""

    def change(_: Write, old: Tree) -> Tree:
        return _renewed(registry, context, old, renew_time)

    try:
        await guaranteed_update(Write(registry=registry, context=context, options=_OPTIONS, change=change))
    except (ApiError, CorruptObject, _NeedsPatch):
        return False
    return True


def _renewed(registry: Registry, context: RequestContext, old: Tree, renew_time: datetime) -> Tree:
    spec = old.get("spec") or {}
    if spec.get("holderIdentity") != context.name:
        raise _NeedsPatch
    manager, now = metadata.manager_name(context, _OPTIONS), format_time(registry.clock.now())
    managers = _at_time(old["metadata"].get("managedFields") or (), manager, old["apiVersion"], now)
    return {
        **old,
        "metadata": {**old["metadata"], "managedFields": managers},
        "spec": {**spec, "renewTime": format_micro_time(renew_time)},
    }


def _at_time(
    entries: Sequence[ReadOnlyTree], manager: str, api_version: str, time: str
) -> Sequence[ReadOnlyTree]:
    """Return the entries of managers with the time of an update by the manager that owns `renewTime`."""
    owned = ["f:renewTime" in (entry.get("fieldsV1") or {}).get("f:spec", ()) for entry in entries]
    identity = {"manager": manager, "operation": UPDATE, "apiVersion": api_version}
    if owned.count(True) != 1 or not identity.items() <= entries[owned.index(True)].items():
        raise _NeedsPatch
    return [
        {**entry, "time": time} if is_owner else entry for entry, is_owner in zip(entries, owned, strict=True)
    ]
