"""Warn the client that records a release of helm as deployed: some of its pods are ready by assumption."""

from collections.abc import Iterator
from typing import Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.groups import PODS, SECRETS, GroupResource
from mockube.apimachinery.pods import assumption_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation

from .plugin import Plugin

RELEASE: Final = "helm.sh/release.v1"
"""The type of the Secrets in which helm keeps its releases."""
RELEASE_NAME: Final = "meta.helm.sh/release-name"
"""The annotation by which helm marks the objects of a release."""
_WORKLOADS: Final = (
    GroupResource("apps", "deployments"),
    GroupResource("apps", "statefulsets"),
    GroupResource("apps", "daemonsets"),
    GroupResource("batch", "jobs"),
)
_REPLICA_SETS: Final = GroupResource("apps", "replicasets")


class WarnOfAssumedPods(Plugin):
    """It refuses nothing. helm records a release as deployed after it has waited for its pods, if it waits."""

    operations = frozenset({Operation.CREATE, Operation.UPDATE})
    targets = frozenset({(SECRETS.group, SECRETS.resource, "")})

    async def validate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        secret = attributes.object or {}
        if secret.get("type") != RELEASE or meta.labels(secret).get("status") != "deployed":
            return
        await registry.watch_cache.fresh()
        namespace, release = attributes.namespace, meta.labels(secret).get("name") or ""
        pods = [*_pods_of(registry, namespace, release)]
        assumed = [pod for pod in pods if conditions.is_true(pod, "Ready") and assumption_of(pod)]
        if assumed and not attributes.dry_run:
            attributes.context.report.warn(
                f"{len(assumed)} of {len(pods)} pods of the release {release} are ready by assumption, such as {meta.name(assumed[0])}: "
                f"{assumption_of(assumed[0])}; what would make it known: mockube why pod/{meta.name(assumed[0])} -n {namespace}"
            )


def _pods_of(registry: Registry, namespace: str, release: str) -> Iterator[ReadOnlyTree]:
    """Yield the pods of the workloads of a release."""
    owners = {
        meta.uid(tree)
        for resource in _WORKLOADS
        for tree in (each.shared_tree() for each in registry.list_cached(resource, namespace))
        if meta.annotations(tree).get(RELEASE_NAME) == release
    }
    for replica_set in (each.shared_tree() for each in registry.list_cached(_REPLICA_SETS, namespace)):
        if (meta.controller_of(replica_set) or {}).get("uid") in owners:
            owners.add(meta.uid(replica_set))
    for pod in (each.shared_tree() for each in registry.list_cached(PODS, namespace)):
        is_own = meta.annotations(pod).get(RELEASE_NAME) == release
        if is_own or (meta.controller_of(pod) or {}).get("uid") in owners:
            yield pod
