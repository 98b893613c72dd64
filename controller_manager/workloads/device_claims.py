"""Which ResourceClaims a pod uses, and which pods a claim is for. Pure."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.store import Lister
from mockube.controller_manager.client.podview import PodView

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
BY_RESOURCE_CLAIM: Final = "podResourceClaim"
OF_POD_CLAIM: Final = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a claim that was created from a template: which of the pod's claims it is."""


class NotCreated(LookupError):
    """A pod's claim of a template whose ResourceClaim the pod's status does not name."""


def pod_claims(pod: PodView) -> Sequence[ReadOnlyTree]:
    return (pod.object.get("spec") or {}).get("resourceClaims") or ()


def claim_name(pod: PodView, pod_claim: ReadOnlyTree) -> str | None:
    """The name of the ResourceClaim; None where none is needed. `NotCreated` before it is there."""
    if pod_claim.get("resourceClaimName"):
        return str(pod_claim["resourceClaimName"])
    for status in (pod.object.get("status") or {}).get("resourceClaimStatuses") or ():
        if status["name"] == pod_claim["name"]:
            name: str | None = status.get("resourceClaimName")
            return name
    raise NotCreated(f'pod "{pod.key}": ResourceClaim not created yet')


def has_claim(
    pod: PodView, claims: Lister[ReadOnlyTree], holds: Callable[[ReadOnlyTree | None, bool], bool]
) -> bool:
    """Whether a claim is not created yet, or the condition holds of one that the pod needs.

    `holds` takes the ResourceClaim, None if there is none, and whether it is created from a template.
    """
    for pod_claim in pod_claims(pod):
        try:
            name = claim_name(pod, pod_claim)
        except NotCreated:
            return True
        is_made = bool(pod_claim.get("resourceClaimTemplateName"))
        if name is not None and holds(claims.get(pod.key.namespace, name), is_made):
            return True
    return False


def claim_names(pod: PodView) -> Iterator[str]:
    """Those of all that are there and needed."""
    for pod_claim in pod_claims(pod):
        try:
            name = claim_name(pod, pod_claim)
        except NotCreated:
            continue
        if name is not None:
            yield name


def claims_of_pod(pod: PodView) -> Iterator[str]:
    """The index of pods by the claims that they use, as `namespace/name`."""
    return (f"{pod.key.namespace}/{name}" for name in dict.fromkeys(claim_names(pod)))


def is_for_pod(pod: PodView, claim: ReadOnlyTree) -> bool:
    """Whether a claim that was created from a template is the pod's."""
    return meta.is_controlled_by(claim, pod.object)


def is_reserved_for(pod: PodView, claim: ReadOnlyTree) -> bool:
    return any(consumer["uid"] == pod.uid for consumer in reserved_for(claim))


def reserved_for(claim: ReadOnlyTree) -> Sequence[ReadOnlyTree]:
    return (claim.get("status") or {}).get("reservedFor") or ()


def allocation(claim: ReadOnlyTree) -> ReadOnlyTree | None:
    allocation_result: ReadOnlyTree | None = (claim.get("status") or {}).get("allocation")
    return allocation_result


def with_consumer(pod: PodView, claim: ReadOnlyTree) -> dict[str, Any]:
    """The claim, reserved for the pod as well."""
    consumer = {"resource": "pods", "name": pod.key.name, "uid": pod.uid}
    return meta.with_value(claim, ("status", "reservedFor"), [*reserved_for(claim), consumer])


def is_done(pod: PodView) -> bool:
    """Return whether no container runs or will run."""
    return pod.is_terminal or (pod.deleting and not pod.node)


def owning_pod(claim: ReadOnlyTree) -> ReadOnlyTree | None:
    """The reference to the pod that a claim was made for."""
    owners = meta.owner_references(claim)
    return next(
        (
            reference
            for reference in owners
            if reference.get("controller")
            and (reference.get("apiVersion"), reference.get("kind")) == ("v1", "Pod")
        ),
        None,
    )


def has_admin_access(claim: ReadOnlyTree) -> bool:
    requests = ((claim.get("spec") or {}).get("devices") or {}).get("requests") or ()
    return any((request.get("exactly") or {}).get("adminAccess") for request in requests)


def tolerates_taint(toleration: ReadOnlyTree, taint: ReadOnlyTree) -> bool:
    """Whether a toleration of a device request is about a taint; what either does is another question."""
    for name in ("effect", "key"):
        if toleration.get(name) and toleration[name] != taint.get(name):
            return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("value", "") == taint.get("value", ""))
