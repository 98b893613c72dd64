"""An APIService for each group and version that the server serves itself, which `kubectl get apiservices` shows as Local."""

from collections.abc import Mapping, Sequence

from mockube.apiserver.bootstrap.required_object import RequiredObject
from mockube.apiserver.kinds.kind import Group

API_SERVICES = ("apiregistration.k8s.io", "v1", "apiservices")
AUTOREGISTERED = {"kube-aggregator.kubernetes.io/automanaged": "onstart"}

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
    ("networking.k8s.io", "v1beta1"): 9,
    ("resource.k8s.io", "v1"): 21,
    ("resource.k8s.io", "v1beta2"): 15,
    ("resource.k8s.io", "v1beta1"): 9,
    ("storage.k8s.io", "v1beta1"): 9,
    ("flowcontrol.apiserver.k8s.io", "v1"): 21,
    ("flowcontrol.apiserver.k8s.io", "v1beta3"): 18,
    ("metrics.k8s.io", "v1beta1"): 100,
    ("custom.metrics.k8s.io", "v1beta2"): 200,
    ("custom.metrics.k8s.io", "v1beta1"): 100,
    ("external.metrics.k8s.io", "v1beta1"): 100,
}
USUAL_VERSION_PRIORITY = 15


def api_services(groups: Sequence[Group]) -> Sequence[RequiredObject]:
    """Return the APIServices of the built-in groups; those of custom resources are registered with their definitions."""
    built_in = [group for group in groups if group.name in GROUP_PRIORITY]
    return [_api_service(group.name, version) for group in built_in for version in group.versions]


def _api_service(group: str, version: str) -> RequiredObject:
    of_version = VERSION_PRIORITY.get((group, version), USUAL_VERSION_PRIORITY)
    priority = {"groupPriorityMinimum": GROUP_PRIORITY[group], "versionPriority": of_version}
    spec = {"version": version} | priority
    return RequiredObject(
        resource=API_SERVICES,
        name=f"{version}.{group}",
        content={"metadata": {"labels": AUTOREGISTERED}, "spec": ({"group": group} if group else {}) | spec},
        skips_admission=True,
    )
