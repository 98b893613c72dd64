"""The identity Lease of this server, which shows that it is alive."""

import base64
import hashlib
import logging
from collections.abc import Callable

from mockube.apimachinery import wellknown
from mockube.apimachinery.clock import Clock
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.timestamps import format_micro_time
from mockube.apiserver.bootstrap.ensure import ensure
from mockube.apiserver.bootstrap.required_object import Name, RequiredObject
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.backend import Backend
from mockube.etcd.errors import KVError

LOG = logging.getLogger(__name__)

LEASES = ("coordination.k8s.io", "v1", "leases")
DURATION_SECONDS, RENEW_SECONDS = 3600, 10.0
LABEL_IDENTITY = "apiserver.kubernetes.io/identity"


def server_name(host: str, port: int) -> str:
    """A name that a server has again after a restart, and that no other on the same machine has."""
    digest = hashlib.sha256(f"{host}:{port}".encode()).digest()[:16]
    return f"apiserver-{base64.b32encode(digest).decode().rstrip('=').lower()}"


async def keep_alive(
    backend: Backend,
    resources: Callable[[Name], Resource],
    *,
    host: str,
    name: str,
    holder: str,
    clock: Clock,
) -> None:
    """Renew the Lease until cancelled."""
    while True:
        try:
            await ensure(backend, resources, [_lease(host, name, holder, format_micro_time(clock.now()))])
        except (ApiError, KVError) as error:
            LOG.warning("The lease of this server was not renewed: %s", error)
        await clock.sleep(RENEW_SECONDS)


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
