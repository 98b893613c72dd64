"""Renew the identity Lease of this server, and remove the expired Leases of other servers."""

import base64
import hashlib
import logging
import math
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

import orjson

from mockube.apimachinery import meta, wellknown
from mockube.apimachinery.status import ApiError, Conflict, NotFound
from mockube.apimachinery.timestamps import TimestampError, format_micro_time, parse_micro_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.delete import delete
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import Body, RequestContext
from mockube.component_base.clock import Clock
from mockube.etcd.errors import KVError

from .ensure import SERVER, USER_AGENT, ensure
from .required_object import GroupVersionResource, RequiredObject

LOG = logging.getLogger(__name__)

LEASES = ("coordination.k8s.io", "v1", "leases")
DURATION_SECONDS, RENEW_SECONDS, REMOVAL_SECONDS = 3600, 10.0, 3600.0
LABEL_IDENTITY = "apiserver.kubernetes.io/identity"


def server_name(host: str, port: int) -> str:
    """Return a name that stays the same after a restart, and differs from those of other servers on the same machine."""
    digest = hashlib.sha256(f"{host}:{port}".encode()).digest()[:16]
    return f"apiserver-{base64.b32encode(digest).decode().rstrip('=').lower()}"


async def keep_alive(
    registry: Registry,
    resources: Callable[[GroupVersionResource], Resource],
    *,
    host: str,
    name: str,
    holder: str,
    clock: Clock,
) -> None:
    """Renew the Lease until cancelled, and remove expired ones at times."""
    removed_at = -math.inf
    while True:
        try:
            await ensure(registry, resources, [_lease(host, name, holder, format_micro_time(clock.now()))])
            if clock.monotonic() - removed_at >= REMOVAL_SECONDS:
                removed_at = clock.monotonic()
                await _remove_expired(registry, resources(LEASES), clock.now())
        except (ApiError, KVError, TimestampError) as error:
            LOG.warning("The lease of this server was not renewed: %s", error)
        await clock.renewals.sleep(RENEW_SECONDS)


async def _remove_expired(registry: Registry, row: Resource, now: datetime) -> None:
    """Delete the identity Leases of servers that have not renewed them in time."""
    for stored in registry.list_cached(row.group_resource, wellknown.NAMESPACE_SYSTEM):
        if stored.labels.get(LABEL_IDENTITY) == "kube-apiserver" and _is_expired(stored.tree(), now):
            context = RequestContext(
                verb="delete",
                resource=row,
                namespace=wellknown.NAMESPACE_SYSTEM,
                name=meta.name(stored.tree()),
                body=Body(data=orjson.dumps({"preconditions": {"resourceVersion": str(stored.revision)}})),
                user=SERVER,
                user_agent=USER_AGENT,
            )
            with suppress(NotFound, Conflict):  # another server deleted or renewed it
                await delete(registry, context)


def _is_expired(lease: ReadOnlyTree, now: datetime) -> bool:
    spec = lease.get("spec") or {}
    renewed_at, seconds = spec.get("renewTime"), spec.get("leaseDurationSeconds")
    if not renewed_at or seconds is None:
        return True
    return parse_micro_time(renewed_at) + timedelta(seconds=seconds) < now


def _lease(host: str, name: str, holder: str, now: str) -> RequiredObject:
    labels = {LABEL_IDENTITY: "kube-apiserver", wellknown.LABEL_HOSTNAME: host}
    spec = {"holderIdentity": holder, "leaseDurationSeconds": DURATION_SECONDS, "renewTime": now}
    return RequiredObject(
        resource=LEASES,
        name=name,
        namespace=wellknown.NAMESPACE_SYSTEM,
        content={"metadata": {"labels": labels}, "spec": spec},
        is_reconciled=True,
    )
