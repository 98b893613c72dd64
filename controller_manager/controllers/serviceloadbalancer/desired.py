"""What is to be done about one Service, as upstream's service controller decides it. Pure."""

from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree

FINALIZER: Final = "service.kubernetes.io/load-balancer-cleanup"
_LOAD_BALANCER: Final = "LoadBalancer"
_FIELDS: Final = (
    "loadBalancerSourceRanges",
    "ports",
    "sessionAffinity",
    "sessionAffinityConfig",
    "loadBalancerIP",
    "externalIPs",
    "externalTrafficPolicy",
    "healthCheckNodePort",
    "ipFamilies",
)
"""Those of the specification that make a load balancer another."""


def needs_load_balancer(service: ReadOnlyTree) -> bool:
    """A service of another class belongs to another implementation."""
    spec = service["spec"]
    return spec.get("type") == _LOAD_BALANCER and spec.get("loadBalancerClass") is None


def needs_cleanup(service: ReadOnlyTree) -> bool:
    if FINALIZER not in meta.finalizers(service):
        return False
    return meta.is_deleting(service) or service["spec"].get("type") != _LOAD_BALANCER


def needs_look(old: ReadOnlyTree | None, new: ReadOnlyTree) -> bool:
    """Whether a change of the Service is to be acted on."""
    if needs_cleanup(new) or old is None:
        return needs_cleanup(new) or needs_load_balancer(new)
    if not needs_load_balancer(old) and not needs_load_balancer(new):
        return False
    return needs_load_balancer(old) != needs_load_balancer(new) or _relevant_fields(old) != _relevant_fields(
        new
    )


def _relevant_fields(service: ReadOnlyTree) -> tuple[object, ...]:
    spec = service["spec"]
    return (meta.uid(service), meta.annotations(service), *(spec.get(field) for field in _FIELDS))


def addresses(service: ReadOnlyTree) -> list[str]:
    """The addresses in its status."""
    ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return [entry["ip"] for entry in ingress if entry.get("ip")]


def status_patch(service: ReadOnlyTree, address: str) -> dict[str, Any] | None:
    """A patch that writes the address, or none if it is empty, into the status; None without a difference."""
    ingress = [{"ip": address, "ipMode": "VIP"}] if address else []
    present = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    if present == ingress:
        return None
    return {"metadata": _uid_precondition(service), "status": {"loadBalancer": {"ingress": ingress or None}}}


def finalizer_patch(service: ReadOnlyTree, *, present: bool) -> dict[str, Any] | None:
    """What makes the finalizer present, or absent; None if it is already."""
    if (FINALIZER in meta.finalizers(service)) == present:
        return None
    field = "finalizers" if present else "$deleteFromPrimitiveList/finalizers"
    return {"metadata": {**_uid_precondition(service), field: [FINALIZER]}}


def _uid_precondition(service: ReadOnlyTree) -> dict[str, str]:
    """The uid keeps a patch from another Service that took this one's name."""
    return {"uid": meta.uid(service)}
