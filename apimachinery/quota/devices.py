"""The quota evaluator of ResourceClaims: the devices of each class, which can also count as extended resources."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, Protocol

from mockube.apimachinery import meta
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.pod_sizes import SizeRules
from mockube.apimachinery.quantity import Quantity
from mockube.apimachinery.resource_names import IMPLICIT_DEVICES, REQUESTS, is_extended_resource_claim
from mockube.apimachinery.tree import ReadOnlyTree

from .amounts import ONE, Amounts, add, maximum
from .evaluator import CREATE, UPDATE, Evaluator
from .pods import is_extended_in_quota, pod_usage

_BY_CLASS: Final = ".deviceclass.resource.k8s.io/devices"
_MAX_DEVICES: Final = 32
"""The number of devices that a request for all devices counts as: the maximum of one claim."""


class Devices(Protocol):
    """Access to the objects that the usage of a claim depends on."""

    def extended_resources(self) -> Mapping[str, str]:
        """Return the extended resource of each device class; "" if it has none."""

    def pod(self, namespace: str, name: str) -> ReadOnlyTree | None: ...

    def claims(self, namespace: str) -> Iterable[ReadOnlyTree]: ...


class DeviceClaimEvaluator(Evaluator):
    def __init__(self, devices: Devices, rules: SizeRules) -> None:
        super().__init__(GroupResource("resource.k8s.io", "resourceclaims"))
        self._devices = devices
        self._rules = rules

    def matching_resources(self, names: Iterable[str]) -> Sequence[str]:
        return [name for name in names if self._is_matching_resource(name)]

    def _is_matching_resource(self, name: str) -> bool:
        if name == self.count_name or name.endswith(_BY_CLASS):
            return True
        if not is_extended_in_quota(name):
            return False
        extended, resource = self._devices.extended_resources(), name.removeprefix(REQUESTS)
        if resource.startswith(IMPLICIT_DEVICES):
            return bool(extended.get(resource.removeprefix(IMPLICIT_DEVICES)))
        return resource in extended.values()

    def usage(self, tree: ReadOnlyTree, now: datetime) -> Amounts:
        used: Amounts = {self.count_name: ONE}
        devices = (tree.get("spec") or {}).get("devices") or {}
        for request in devices.get("requests") or ():
            used = add(used, _devices_of_request(request))
        return {**used, **self._extended_resources(used, self._usage_of_pod(tree, now))}

    def handles(
        self, operation: str, subresource: str, _new: ReadOnlyTree, _old: ReadOnlyTree | None
    ) -> bool:
        return operation in (CREATE, UPDATE) and not subresource

    def _extended_resources(self, used: Amounts, pod_usage_amounts: Amounts) -> Amounts:
        """Return the devices as extended resources, without the amounts that the claim's pod is charged for."""
        extended, classes = dict[str, Quantity](), self._devices.extended_resources()
        for name, amount in used.items():
            device_class = name.removesuffix(_BY_CLASS)
            if name == device_class or not device_class:
                continue
            extended[REQUESTS + IMPLICIT_DEVICES + device_class] = amount
            if resource := classes.get(device_class):
                extended[REQUESTS + resource] = amount
        rest = {
            name: amount - pod_usage_amounts[name] if name in pod_usage_amounts else amount
            for name, amount in extended.items()
        }
        return {name: amount for name, amount in rest.items() if amount > Quantity(0)}

    def _usage_of_pod(self, claim: ReadOnlyTree, now: datetime) -> Amounts:
        """Return the usage of the pod whose extended resources the claim was created for; {} for other claims."""
        owner = meta.controller_of(claim)
        if not is_extended_resource_claim(claim) or owner is None:
            return {}
        if (owner.get("kind"), owner.get("apiVersion")) != ("Pod", "v1"):
            return {}
        pod = self._devices.pod(meta.namespace(claim), owner.get("name", ""))
        if pod is None or meta.uid(pod) != owner.get("uid"):
            return {}
        status = (pod.get("status") or {}).get("extendedResourceClaimStatus")
        if status is not None:
            is_claim_of_pod = status.get("resourceClaimName") == meta.name(claim)
        else:
            is_claim_of_pod = not any(
                _comes_before(other, claim) for other in self._siblings(claim, owner["uid"])
            )
        return pod_usage(pod, now, self._rules) if is_claim_of_pod else {}

    def _siblings(self, claim: ReadOnlyTree, owner: str) -> Iterable[ReadOnlyTree]:
        for other in self._devices.claims(meta.namespace(claim)):
            controller = meta.controller_of(other) or {}
            if is_extended_resource_claim(other) and controller.get("uid") == owner:
                yield other


def _comes_before(first: ReadOnlyTree, second: ReadOnlyTree) -> bool:
    def sort_key(claim: ReadOnlyTree) -> tuple[str, str]:
        return meta.metadata(claim).get("creationTimestamp") or "", meta.name(claim)

    return sort_key(first) < sort_key(second)


def _devices_of_request(request: ReadOnlyTree) -> Amounts:
    """Return the devices of a request: for each class, the maximum of its alternatives."""
    alternatives = request.get("firstAvailable")
    if alternatives:
        amounts: Amounts = {}
        for alternative in alternatives:
            amounts = maximum(amounts, _devices_of_exact_request(alternative))
        return {name: amount for name, amount in amounts.items() if amount}
    exactly = request.get("exactly")
    return _devices_of_exact_request(exactly) if exactly is not None else {}


def _devices_of_exact_request(request: ReadOnlyTree) -> Amounts:
    mode, count = request.get("allocationMode"), 0
    if mode == "ExactCount":
        count = request.get("count") or 0
    elif mode == "All":
        count = _MAX_DEVICES
    return {f"{request.get('deviceClassName', '')}{_BY_CLASS}": Quantity(count)}
