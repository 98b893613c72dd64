"""The total requests and limits of a pod for quotas, with its overhead."""

from mockube.apimachinery.pod_sizes import PodSizes, SizeRules
from mockube.apimachinery.pods import is_pod_level
from mockube.apimachinery.tree import ReadOnlyTree

from .amounts import Amounts, add, read

OF_SPEC = SizeRules(has_resizes=False, has_pod_resizes=False, adds_up_sizes=False)
"""The rules of a pod without a status."""


def pod_requests(pod: ReadOnlyTree, rules: SizeRules = OF_SPEC) -> Amounts:
    overhead = read((pod.get("spec") or {}).get("overhead"))
    return add(PodSizes(pod, read, rules).requests(), overhead)


def pod_limits(pod: ReadOnlyTree, rules: SizeRules = OF_SPEC) -> Amounts:
    total, overhead = PodSizes(pod, read, rules).limits(), read((pod.get("spec") or {}).get("overhead"))
    return add(total, {name: amount for name, amount in overhead.items() if total.get(name)})


def has_pod_level(spec: ReadOnlyTree) -> bool:
    """Return whether the pod has pod-level resources, so that its containers need none."""
    resources = spec.get("resources") or {}
    return any(is_pod_level(name) for field in ("requests", "limits") for name in resources.get(field) or ())
