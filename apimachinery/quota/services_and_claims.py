"""Quota evaluators of Services and PersistentVolumeClaims."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from mockube.apimachinery import quantity
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.quantity import ZERO, Quantity
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.volumes import attributes_classes, storage_class_name

from .amounts import ONE, Amounts
from .evaluator import CREATE, UPDATE, Evaluator, is_selected

LOAD_BALANCERS, NODE_PORTS = "services.loadbalancers", "services.nodeports"
CLAIMS, STORAGE = "persistentvolumeclaims", "requests.storage"
_BY_CLASS: Final = ".storageclass.storage.k8s.io/"
_WRITES: Final = (CREATE, UPDATE)


class ServiceEvaluator(Evaluator):
    def __init__(self) -> None:
        super().__init__(GroupResource("", "services"))

    def matching_resources(self, names: Iterable[str]) -> Sequence[str]:
        counted = {self.count_name, "services", LOAD_BALANCERS, NODE_PORTS}
        return [name for name in names if name in counted]

    def usage(self, tree: ReadOnlyTree, _now: datetime) -> Amounts:
        spec = tree.get("spec") or {}
        service_type, ports = spec.get("type"), spec.get("ports") or ()
        node_ports = len(ports) if service_type in ("NodePort", "LoadBalancer") else 0
        if service_type == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
            node_ports = sum(bool(port.get("nodePort")) for port in ports)
        return {
            self.count_name: ONE,
            "services": ONE,
            LOAD_BALANCERS: ONE if service_type == "LoadBalancer" else ZERO,
            NODE_PORTS: Quantity(node_ports),
        }

    def handles(
        self, operation: str, subresource: str, _new: ReadOnlyTree, _old: ReadOnlyTree | None
    ) -> bool:
        return operation in _WRITES and not subresource

    def may_release_quota(self, old: ReadOnlyTree, new: ReadOnlyTree, _now: datetime) -> bool:
        return _external_type(old) != _external_type(new)


def _external_type(service: ReadOnlyTree) -> str:
    service_type = (service.get("spec") or {}).get("type") or ""
    return service_type if service_type in ("NodePort", "LoadBalancer") else ""


class ClaimEvaluator(Evaluator):
    def __init__(self) -> None:
        super().__init__(GroupResource("", CLAIMS))

    def matching_resources(self, names: Iterable[str]) -> Sequence[str]:
        exact, endings = (self.count_name, CLAIMS, STORAGE), (_BY_CLASS + CLAIMS, _BY_CLASS + STORAGE)
        return [name for name in names if name in exact or name.endswith(endings)]

    def usage(self, tree: ReadOnlyTree, _now: datetime) -> Amounts:
        used = {CLAIMS: ONE}
        if (storage := _storage(tree)) is not None:
            used[STORAGE] = storage
        if storage_class := storage_class_name(tree):
            used |= {f"{storage_class}{_BY_CLASS}{name}": amount for name, amount in used.items()}
        return used | {self.count_name: ONE}

    def handles(self, operation: str, subresource: str, new: ReadOnlyTree, old: ReadOnlyTree | None) -> bool:
        if subresource:
            return subresource == "status" and old is not None and _has_changed_usage(old, new)
        return operation in _WRITES

    def is_in_scope(self, requirement: ReadOnlyTree, tree: ReadOnlyTree) -> bool:
        if requirement.get("scopeName") != "VolumeAttributesClass":
            return False
        return any(is_selected(requirement, name) for name in attributes_classes(tree) or ("",))

    def may_release_quota(self, old: ReadOnlyTree, new: ReadOnlyTree, _now: datetime) -> bool:
        return _has_changed_usage(old, new)


def _storage(claim: ReadOnlyTree) -> Quantity | None:
    """Return the requested storage, or the allocated storage if that is more, in whole bytes; None if none is requested."""
    request = (((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}).get("storage")
    if request is None:
        return None
    allocated = _allocated_storage(claim)
    storage = quantity.from_json(request).round_up(0)
    return storage if allocated is None or allocated <= storage else allocated.round_up(0)


def _allocated_storage(claim: ReadOnlyTree) -> Quantity | None:
    amount = ((claim.get("status") or {}).get("allocatedResources") or {}).get("storage")
    return None if amount is None else quantity.from_json(amount)


def _has_changed_usage(old: ReadOnlyTree, new: ReadOnlyTree) -> bool:
    """Return whether the allocated storage or the volume attributes classes of a claim changed."""
    has_same_classes = attributes_classes(old) == attributes_classes(new)
    return _allocated_storage(old) != _allocated_storage(new) or not has_same_classes
