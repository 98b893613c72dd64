"""The quota evaluator of pods: object counts, requests and limits."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from mockube.apimachinery import meta, resource_names
from mockube.apimachinery.groups import PODS
from mockube.apimachinery.pod_sizes import SizeRules
from mockube.apimachinery.quantity import Quantity
from mockube.apimachinery.tree import ReadOnlyTree

from .amounts import ONE, Amounts, read
from .evaluator import CREATE, UPDATE, Evaluator, is_selected
from .pod_amounts import has_pod_level, pod_limits, pod_requests

_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_STANDARD_RESOURCES: Final = frozenset(
    {"pods", *_COMPUTE, *(f"{prefix}.{name}" for prefix in ("requests", "limits") for name in _COMPUTE)}
)
_REQUIRED: Final = frozenset(
    {"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}
)
"""The amounts that every container must declare if a quota limits them."""


def is_extended_in_quota(name: str) -> bool:
    implicit = name.startswith(resource_names.REQUESTS + resource_names.IMPLICIT_DEVICES)
    return name.startswith(resource_names.REQUESTS) and (implicit or not resource_names.is_native(name))


class PodEvaluator(Evaluator):
    def __init__(self, rules: SizeRules) -> None:
        super().__init__(PODS)
        self._rules = rules

    def matching_resources(self, names: Iterable[str]) -> Sequence[str]:
        return [name for name in names if self._is_matching_resource(name)]

    def _is_matching_resource(self, name: str) -> bool:
        return (
            name in _STANDARD_RESOURCES
            or name == self.count_name
            or name.startswith(
                (resource_names.HUGE_PAGES, resource_names.REQUESTS + resource_names.HUGE_PAGES)
            )
            or is_extended_in_quota(name)
        )

    def usage(self, tree: ReadOnlyTree, now: datetime) -> Amounts:
        return pod_usage(tree, now, self._rules)

    def handles(self, operation: str, subresource: str, new: ReadOnlyTree, old: ReadOnlyTree | None) -> bool:
        if subresource:
            return subresource == "resize" and operation == UPDATE
        if operation == UPDATE and old is not None:
            return is_terminating(old) != is_terminating(new)
        return operation == CREATE

    def is_in_scope(self, requirement: ReadOnlyTree, tree: ReadOnlyTree) -> bool:
        scope = requirement.get("scopeName")
        if scope in ("Terminating", "NotTerminating"):
            return is_terminating(tree) is (scope == "Terminating")
        if scope in ("BestEffort", "NotBestEffort"):
            return _is_best_effort(tree) is (scope == "BestEffort")
        if scope == "PriorityClass":
            return is_selected(requirement, (tree.get("spec") or {}).get("priorityClassName") or "")
        return scope == "CrossNamespacePodAffinity" and any(_cross_namespace_terms(tree))

    def problem(self, required: Iterable[str], tree: ReadOnlyTree) -> str:
        spec = tree.get("spec") or {}
        needed = _REQUIRED.intersection(required)
        if not needed or has_pod_level(spec):
            return ""
        missing: dict[str, set[str]] = {}
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
            resources = container.get("resources") or {}
            usage = _usage_of(read(resources.get("requests")), read(resources.get("limits")))
            for name in needed - usage.keys():
                missing.setdefault(name, set()).add(container.get("name", ""))
        if not missing:
            return ""
        missing_texts = (f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))
        return f"must specify {'; '.join(missing_texts)}"

    def may_release_quota(self, old: ReadOnlyTree, new: ReadOnlyTree, now: datetime) -> bool:
        if is_terminating(old) != is_terminating(new) or _container_resources(old) != _container_resources(
            new
        ):
            return True
        return is_live(old, now) and not is_live(new, now)


def pod_usage(pod: ReadOnlyTree, now: datetime, rules: SizeRules) -> Amounts:
    counted: dict[str, Quantity] = {"count/pods": ONE}
    if not is_live(pod, now):
        return counted
    return counted | _usage_of(pod_requests(pod, rules), pod_limits(pod, rules))


def _usage_of(requests: Amounts, limits: Amounts) -> dict[str, Quantity]:
    used = {"pods": ONE}
    for name, amount in requests.items():
        if name in _COMPUTE or name.startswith(resource_names.HUGE_PAGES):
            used[name] = amount
        if (
            name in _COMPUTE
            or name.startswith((resource_names.HUGE_PAGES, resource_names.IMPLICIT_DEVICES))
            or resource_names.is_extended(name)
        ):
            used[resource_names.REQUESTS + name] = amount
    return used | {f"limits.{name}": amount for name, amount in limits.items() if name in _COMPUTE}


def is_live(pod: ReadOnlyTree, now: datetime) -> bool:
    """Return whether a pod counts: it has not ended, and its deletion grace period, if any, is not over (QuotaV1Pod)."""
    if (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return False
    deleted, grace = meta.deletion_timestamp(pod), meta.deletion_grace_period_seconds(pod)
    return deleted is None or grace is None or now <= deleted + timedelta(seconds=grace)


def is_terminating(pod: ReadOnlyTree) -> bool:
    seconds = (pod.get("spec") or {}).get("activeDeadlineSeconds")
    return seconds is not None and bool(seconds >= 0)


def _is_best_effort(pod: ReadOnlyTree) -> bool:
    qos_class = (pod.get("status") or {}).get("qosClass")
    if qos_class:
        return bool(qos_class == "BestEffort")
    spec = pod.get("spec") or {}
    resource_owners = [spec] if spec.get("resources") is not None else []
    resource_owners = resource_owners or [
        *(spec.get("containers") or ()),
        *(spec.get("initContainers") or ()),
    ]
    resources = (
        read((owner.get("resources") or {}).get(field))
        for owner in resource_owners
        for field in ("requests", "limits")
    )
    return not any(amounts.get(name) for amounts in resources for name in ("cpu", "memory"))


def _cross_namespace_terms(pod: ReadOnlyTree) -> Iterator[ReadOnlyTree]:
    affinity = (pod.get("spec") or {}).get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        weighted = terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        for term in (
            *(terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()),
            *(entry.get("podAffinityTerm") or {} for entry in weighted),
        ):
            if term.get("namespaces") or term.get("namespaceSelector") is not None:
                yield term


def _container_resources(pod: ReadOnlyTree) -> Mapping[str, object]:
    """Return the resources in the container statuses, by container."""
    status = pod.get("status") or {}
    container_statuses = (
        *(status.get("containerStatuses") or ()),
        *(status.get("initContainerStatuses") or ()),
    )
    return {
        container_status.get("name", ""): container_status.get("resources")
        for container_status in container_statuses
    }
