"""Compute a pod's requests for scheduling, in integers, with a resize in progress.

Pure. Upstream: scheduler/framework (PodInfo), plugins/noderesources.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from mockube.apimachinery import pod_sizes
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.pod_sizes import PodSizes, SizeRules
from mockube.apimachinery.tree import ReadOnlyTree

from .pod_requests import DEFAULT_REQUESTS, Amounts, amounts, nonzero_requests, pod_requests


class EffectiveRequests(NamedTuple):
    requested: Amounts
    """Without amounts of 0."""
    nonzero: Amounts
    """The requests by which nodes are scored that the pod runs on, with defaults for containers without requests."""
    scored: Amounts
    """The requests by which nodes are scored for the pod: those of its containers, as upstream's NodeResourcesFit has them."""


def effective_requests(pod: ReadOnlyTree, gates: FeatureGates) -> EffectiveRequests:
    spec = pod["spec"]
    scored = nonzero_requests(spec)
    if not spec.get("resources") and not _has_other_sizes(pod):
        return EffectiveRequests(pod_requests(spec), scored, scored)
    overhead, sizes = amounts(spec.get("overhead")), PodSizes(pod, amounts, SizeRules.of(gates))
    requested = sizes.requests()
    has_own = bool(sizes.pod_level_requests())
    missing = {
        name: amount for name, amount in DEFAULT_REQUESTS.items() if not has_own or name not in requested
    }
    return EffectiveRequests(
        +Counter(requested) + overhead, +Counter(sizes.requests(missing)) + overhead, scored
    )


def size_fields(pod: ReadOnlyTree) -> Sequence[object]:
    """Return the fields of a pod's status on which its requests depend, to compare them; none if the status agrees with the spec."""
    if not _has_other_sizes(pod):
        return ()
    status = pod.get("status") or {}
    return [
        status.get("resources"),
        status.get("allocatedResources"),
        pod_sizes.is_resize_infeasible(pod),
        *(
            (container_status.get("name"), *pod_sizes.sizes_of(container_status))
            for name in pod_sizes.STATUS_LISTS
            for container_status in status.get(name) or ()
        ),
    ]


def _has_other_sizes(pod: ReadOnlyTree) -> bool:
    """Return whether the status may have other amounts than the spec, as after a resize."""
    status = pod.get("status") or {}
    if status.get("resources") or status.get("allocatedResources") or pod_sizes.is_resize_infeasible(pod):
        return True
    if not any(
        size is not None
        for name in pod_sizes.STATUS_LISTS
        for container_status in status.get(name) or ()
        for size in pod_sizes.sizes_of(container_status)
    ):
        return False
    statuses = pod_sizes.statuses_of(pod)
    return any(
        size not in (None, (container.get("resources") or {}).get("requests") or {})
        for name in ("containers", "initContainers")
        for container in pod["spec"].get(name) or ()
        for size in pod_sizes.sizes_of(statuses.get(container.get("name", "")))
    )
