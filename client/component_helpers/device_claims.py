"""The ResourceClaims of pods: names, reservations and allocations. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.resource_names import IMPLICIT_DEVICES, is_extended
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Lister
from mockube.client.podview import PodView

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
BY_RESOURCE_CLAIM: Final = "podResourceClaim"
POD_CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a claim from a template: the name of the claim in the pod's spec."""


class NotCreated(LookupError):
    """The ResourceClaim of a template is not in the pod's status yet."""


def pod_claims(pod: PodView) -> Sequence[ReadOnlyTree]:
    return (pod.object.get("spec") or {}).get("resourceClaims") or ()


def claim_name(pod: PodView, pod_claim: ReadOnlyTree) -> str | None:
    """Return the name of the ResourceClaim; None if none is needed. Raises `NotCreated` before it is created."""
    if pod_claim.get("resourceClaimName"):
        return str(pod_claim["resourceClaimName"])
    for status in (pod.object.get("status") or {}).get("resourceClaimStatuses") or ():
        if status["name"] == pod_claim["name"]:
            name: str | None = status.get("resourceClaimName")
            return name
    raise NotCreated(f'pod "{pod.key}": ResourceClaim not created yet')


def has_claim(
    pod: PodView, claims: Lister[ReadOnlyTree], condition: Callable[[ReadOnlyTree | None, bool], bool]
) -> bool:
    """Return whether a claim of the pod is not created yet, or fulfils the condition.

    The condition takes the ResourceClaim, None if there is none, and whether it comes from a template.
    """
    for pod_claim in pod_claims(pod):
        try:
            name = claim_name(pod, pod_claim)
        except NotCreated:
            return True
        is_from_template = bool(pod_claim.get("resourceClaimTemplateName"))
        if name is not None and condition(claims.get(pod.key.namespace, name), is_from_template):
            return True
    return False


def claim_names(pod: PodView) -> Iterator[str]:
    """Yield the names of all ResourceClaims that are created and needed."""
    for pod_claim in pod_claims(pod):
        try:
            name = claim_name(pod, pod_claim)
        except NotCreated:
            continue
        if name is not None:
            yield name


def claims_of_pod(pod: PodView) -> Iterator[str]:
    """Return the keys of a pod's claims, `namespace/name`: the function of the index `BY_RESOURCE_CLAIM`."""
    return (f"{pod.key.namespace}/{name}" for name in dict.fromkeys(claim_names(pod)))


def is_for_pod(pod: PodView, claim: ReadOnlyTree) -> bool:
    """Return whether a claim from a template belongs to the pod."""
    return meta.is_controlled_by(claim, pod.object)


def is_reserved_for(pod: PodView, claim: ReadOnlyTree) -> bool:
    return any(consumer["uid"] == pod.uid for consumer in reserved_for(claim))


def reserved_for(claim: ReadOnlyTree) -> Sequence[ReadOnlyTree]:
    return (claim.get("status") or {}).get("reservedFor") or ()


def allocation(claim: ReadOnlyTree) -> ReadOnlyTree | None:
    allocation_result: ReadOnlyTree | None = (claim.get("status") or {}).get("allocation")
    return allocation_result


def unallocated_claims(claims: Iterable[ReadOnlyTree]) -> list[ReadOnlyTree]:
    return [claim for claim in claims if allocation(claim) is None]


def with_consumer(pod: PodView, claim: ReadOnlyTree) -> dict[str, Any]:
    """Return the claim with an additional reservation for the pod."""
    consumer = {"resource": "pods", "name": pod.key.name, "uid": pod.uid}
    return meta.with_value(claim, ("status", "reservedFor"), [*reserved_for(claim), consumer])


def is_done(pod: PodView) -> bool:
    """Return whether no container of the pod runs or will run."""
    return pod.is_terminal or (pod.deleting and not pod.node)


def owning_pod(claim: ReadOnlyTree) -> ReadOnlyTree | None:
    """Return the owner reference to the pod for which a claim was created; None if there is none."""
    owner = meta.controller_of(claim) or {}
    return owner if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Pod") else None


def has_admin_access(claim: ReadOnlyTree) -> bool:
    requests = ((claim.get("spec") or {}).get("devices") or {}).get("requests") or ()
    return any((request.get("exactly") or {}).get("adminAccess") for request in requests)


_TAINT_RULES_ADDED_IN: Final = "1.37"
"""The first minor release that serves DeviceTaintRules as v1, the version that the manager reads."""


def has_taint_rules(gates: FeatureGates) -> bool:
    return gates.is_on("DRADeviceTaintRules") and not gates.is_before(_TAINT_RULES_ADDED_IN)


_EXTENDED_RESOURCES_ADDED_IN: Final = "1.36"
"""The first minor release with them by default; the versions before are not implemented."""


def has_extended_resources(gates: FeatureGates) -> bool:
    """Return whether device classes provide extended resources."""
    return gates.is_on("DRAExtendedResource") and not gates.is_before(_EXTENDED_RESOURCES_ADDED_IN)


_SHARED_COUNTERS_ADDED_IN: Final = "1.36"
"""The first minor release with them by default; the versions before are not implemented."""


def has_shared_counters(gates: FeatureGates) -> bool:
    """Return whether devices can consume counters that they share, and each device of a slice can have own nodes."""
    return gates.is_on("DRAPartitionableDevices") and not gates.is_before(_SHARED_COUNTERS_ADDED_IN)


def may_need_devices(pod: PodView, gates: FeatureGates) -> bool:
    """Return whether a pod has claims for devices, or requests resources that device classes may provide."""
    spec = pod.object["spec"]
    if spec.get("resourceClaims"):
        return True
    return has_extended_resources(gates) and any(
        is_extended(name) or name.startswith(IMPLICIT_DEVICES)
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
        for name in (container.get("resources") or {}).get("requests") or ()
        if "/" in name
    )


def rule_selects(rule: ReadOnlyTree, driver: str, pool: str, device: str) -> bool:
    """Return whether a DeviceTaintRule taints a device; a rule without a selector taints none."""
    selector = rule["spec"].get("deviceSelector")
    if selector is None:
        return False
    values = {"driver": driver, "pool": pool, "device": device}
    return all(selector.get(name) in (None, value) for name, value in values.items())


def tolerates_taint(toleration: ReadOnlyTree, taint: ReadOnlyTree) -> bool:
    """Return whether a toleration of a device request matches a taint."""
    for name in ("effect", "key"):
        if toleration.get(name) and toleration[name] != taint.get(name):
            return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("value", "") == taint.get("value", ""))
