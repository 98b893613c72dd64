"""An APIService for each group and version that the server serves itself, which `kubectl get apiservices` shows as Local.

Simulated metrics have none, so that the charts of metrics-server, KEDA and adapters can create theirs.
"""

import logging
from collections.abc import Collection, Mapping, Sequence

from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import ApiError
from mockube.apiserver.aggregation.registration import AUTOMANAGED
from mockube.apiserver.kinds.kind import Group
from mockube.apiserver.kinds.metrics import resource_metrics
from mockube.apiserver.registry.delete import delete
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import Body, RequestContext
from mockube.apiserver.user import SERVER
from mockube.etcd.errors import KVError

from .required_object import RequiredObject

LOG = logging.getLogger(__name__)

API_SERVICES = ("apiregistration.k8s.io", "v1", "apiservices")
ON_START = "onstart"
"""The label of an APIService that is created when the server starts."""
_SIMULATED = frozenset(group.name for group in resource_metrics.GROUPS)

GROUP_PRIORITY: Mapping[str, int] = {
    "": 18000,
    "apps": 17800,
    "events.k8s.io": 17750,
    "authentication.k8s.io": 17700,
    "authorization.k8s.io": 17600,
    "autoscaling": 17500,
    "batch": 17400,
    "certificates.k8s.io": 17300,
    "networking.k8s.io": 17200,
    "policy": 17100,
    "rbac.authorization.k8s.io": 17000,
    "storage.k8s.io": 16800,
    "apiextensions.k8s.io": 16700,
    "admissionregistration.k8s.io": 16700,
    "scheduling.k8s.io": 16600,
    "coordination.k8s.io": 16500,
    "node.k8s.io": 16300,
    "discovery.k8s.io": 16200,
    "resource.k8s.io": 16200,
    "flowcontrol.apiserver.k8s.io": 16100,
    "storagemigration.k8s.io": 15800,
    "metrics.k8s.io": 100,
    "custom.metrics.k8s.io": 100,
    "external.metrics.k8s.io": 100,
}
"""The group of APIServices has no APIService itself, and no priority."""
VERSION_PRIORITY: Mapping[tuple[str, str], int] = {
    ("", "v1"): 1,
    ("admissionregistration.k8s.io", "v1beta1"): 12,
    ("admissionregistration.k8s.io", "v1alpha1"): 9,
    ("autoscaling", "v2"): 30,
    ("certificates.k8s.io", "v1beta1"): 9,
    ("networking.k8s.io", "v1beta1"): 9,
    ("resource.k8s.io", "v1"): 21,
    ("resource.k8s.io", "v1beta2"): 15,
    ("resource.k8s.io", "v1beta1"): 9,
    ("storage.k8s.io", "v1beta1"): 9,
    ("storagemigration.k8s.io", "v1beta1"): 9,
    ("flowcontrol.apiserver.k8s.io", "v1"): 21,
    ("flowcontrol.apiserver.k8s.io", "v1beta3"): 18,
    ("metrics.k8s.io", "v1"): 200,
    ("metrics.k8s.io", "v1beta1"): 100,
    ("custom.metrics.k8s.io", "v1beta2"): 200,
    ("custom.metrics.k8s.io", "v1beta1"): 100,
    ("external.metrics.k8s.io", "v1beta1"): 100,
}
USUAL_VERSION_PRIORITY = 15


def api_services(groups: Sequence[Group]) -> Sequence[RequiredObject]:
    """Return the APIServices of the built-in groups; those of custom resources are registered with their definitions."""
    built_in = [group for group in groups if group.name in GROUP_PRIORITY.keys() - _SIMULATED]
    return [_api_service(group.name, version) for group in built_in for version in group.versions]


def _api_service(group: str, version: str) -> RequiredObject:
    of_version = VERSION_PRIORITY.get((group, version), USUAL_VERSION_PRIORITY)
    priority = {"groupPriorityMinimum": GROUP_PRIORITY[group], "versionPriority": of_version}
    spec = {"version": version} | priority
    return RequiredObject(
        resource=API_SERVICES,
        name=f"{version}.{group}",
        content={
            "metadata": {"labels": {AUTOMANAGED: ON_START}},
            "spec": ({"group": group} if group else {}) | spec,
        },
        skips_admission=True,
    )


async def delete_unserved(registry: Registry, required: Collection[str]) -> None:
    """Delete the APIServices that a server created at its start, and that this one does not serve, as upstream does."""
    await registry.watch_cache.fresh()
    row = registry.rows[GroupResource("apiregistration.k8s.io", "apiservices")]
    for stored in [*registry.list_cached(row.group_resource)]:
        name = stored.key.rpartition(b"/")[2].decode()
        if name in required or stored.labels.get(AUTOMANAGED) != ON_START:
            continue
        context = RequestContext(verb="delete", resource=row, name=name, body=Body(data=b""), user=SERVER)
        try:
            await delete(registry, context)
        except (ApiError, KVError) as error:
            LOG.warning("the APIService %s was not deleted: %s", name, error)
