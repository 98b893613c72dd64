"""The identity of a StatefulSet's pod, which consists of ordinal, name and labels; and the watches of such sets."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import (
    LABEL_CONTROLLER_REVISION_HASH,
    LABEL_POD_INDEX,
    LABEL_STATEFULSET_POD_NAME,
)
from mockube.client.cache.store import Caches, Change
from mockube.client.component_helpers.volumes import pod_volumes
from mockube.client.kinds import CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS
from mockube.client.podview import PENDING, PodView
from mockube.client.resources import Key, Resource
from mockube.controller_manager.control.controller import ToKeys, Watch
from mockube.controller_manager.workloads import templates, watches
from mockube.controller_manager.workloads.ownership import keys_of_owners, selector_of
from mockube.controller_manager.workloads.revisions import template_of

from . import storage
from .spec import SetView

_BATCH_DELAY: Final = timedelta(milliseconds=50)
"""The delay of changes after which no next step is due, so that one reconciliation counts several of them: of a set's status,
and of pods that are starting or being deleted.
"""


def watches_of(resource: Resource[ReadOnlyTree]) -> tuple[Watch, ...]:
    """Return the watches of a controller of such sets."""
    return (
        *watches.watches_of(resource, delay=_BATCH_DELAY),
        *_watches_of_pods(keys_of_owners(PODS, resource, selector_of)),
        Watch(resource=PERSISTENT_VOLUME_CLAIMS, keys=_keys_of_claims(resource)),
        Watch(
            resource=CONTROLLER_REVISIONS, keys=keys_of_owners(CONTROLLER_REVISIONS, resource, selector_of)
        ),
    )


def _watches_of_pods(owners: ToKeys) -> tuple[Watch, Watch]:
    def keys_now(caches: Caches, change: Change) -> Iterable[Key]:
        return () if _is_between_steps(change) else owners(caches, change)

    def keys_later(caches: Caches, change: Change) -> Iterable[Key]:
        return owners(caches, change) if _is_between_steps(change) else ()

    return (
        Watch(resource=PODS, keys=keys_now),
        Watch(resource=PODS, keys=keys_later, delay=_BATCH_DELAY),
    )


def _is_between_steps(change: Change) -> bool:
    """Return whether a pod is starting or being deleted: a set waits for its readiness or its end, and only counts it."""
    pod: PodView | None = change.new
    if pod is None:
        return False
    if pod.phase != PENDING or pod.deleting:
        return pod.deleting
    return not (pod.object.get("spec") or {}).get("readinessGates")  # the set's controller may open a gate


def _keys_of_claims(resource: Resource[ReadOnlyTree]) -> ToKeys:
    """Return the mapping of a claim to the sets with such claims, by name, because retained claims have no owner."""

    def keys(caches: Caches, change: Change) -> Iterable[Key]:
        claim: ReadOnlyTree = change.last_known
        for owner in caches.of(resource).in_namespace(meta.namespace(claim)):
            if storage.is_claim_of(owner, meta.name(claim)):
                yield Key.of(owner)

    return keys


_MAX_ORDINAL: Final = 2**31 - 1


def pod_name(owner: SetView, ordinal: int) -> str:
    return f"{owner.key.name}-{ordinal}"


def ordinal_in(owner: SetView, name: str) -> int | None:
    """Return the ordinal in the name of a pod of this set; None if the set has no pod of this name."""
    parent, _, digits = name.rpartition("-")
    if parent != owner.key.name or not (digits.isascii() and digits.isdecimal()):
        return None
    ordinal = int(digits)
    return ordinal if str(ordinal) == digits and ordinal <= _MAX_ORDINAL else None


def revision_of(pod: PodView) -> str:
    """Return the name of the ControllerRevision from which the pod was created."""
    return pod.labels.get(LABEL_CONTROLLER_REVISION_HASH, "")


def new_pod(owner: SetView, ordinal: int, revision: ReadOnlyTree) -> dict[str, Any]:
    name = pod_name(owner, ordinal)
    pod = templates.pod_of(template_of(revision), owner.object)
    labels = {**_labels(name, ordinal), LABEL_CONTROLLER_REVISION_HASH: meta.name(revision)}
    labelled = meta.with_labels(meta.with_metadata(pod, name=name), labels)
    spec = pod["spec"]
    hostname = {"hostname": name} | ({"subdomain": owner.service_name} if owner.service_name else {})
    volumes = pod_volumes(spec, storage.claims_by_template(owner, ordinal))
    return {**labelled, "spec": {**spec, **hostname, **volumes}}


def matches(owner: SetView, pod: PodView, ordinal: int) -> bool:
    """Return whether a pod has its name label and its claims."""
    return pod.labels.get(LABEL_STATEFULSET_POD_NAME) == pod.key.name and storage.matches(owner, ordinal, pod)


def restore_identity(owner: SetView, pod: PodView, ordinal: int) -> dict[str, Any]:
    """Return the pod with its identity labels and its claims."""
    labelled = meta.with_labels(pod.object, _labels(pod.key.name, ordinal))
    spec = labelled["spec"]
    return {**labelled, "spec": {**spec, **pod_volumes(spec, storage.claims_by_template(owner, ordinal))}}


def _labels(name: str, ordinal: int) -> dict[str, str]:
    return {LABEL_STATEFULSET_POD_NAME: name, LABEL_POD_INDEX: str(ordinal)}
