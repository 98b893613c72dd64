"""The defaults of a pod's own resources, which its containers share: CPU, memory and huge pages.

They are set when a pod is created or resized, after admission has added its containers. Minors before 1.37 set them with the
other defaults, whenever a pod is decoded, and set no limits of CPU and memory.
"""

from collections.abc import Mapping
from itertools import chain
from typing import Any, Final, TypeAlias

from mockube.apimachinery import quantity
from mockube.apimachinery.pods import container_total, every_container, is_pod_level
from mockube.apimachinery.quantity import Quantity
from mockube.apimachinery.resource_names import HUGE_PAGES
from mockube.apimachinery.tree import ReadOnlyTree, Tree

_Amounts: TypeAlias = dict[str, Quantity]
_Texts: TypeAlias = Mapping[str, str]

_OVERCOMMITTABLE: Final = frozenset({"cpu", "memory"})


def has_pod_level(resources: ReadOnlyTree | None) -> bool:
    """Return whether a pod has resources of its own."""
    amounts = ((resources or {}).get(name) or {} for name in ("requests", "limits"))
    return any(map(is_pod_level, chain.from_iterable(amounts)))


def fill_pod_level(spec: Tree) -> None:
    """Set the default resources of a pod that has some of its own. The tree may share its inner parts with others."""
    resources = spec.get("resources") or {}
    if not (resources.get("limits") or resources.get("requests")):
        return
    requests, limits = resources.get("requests") or {}, _with_huge_pages(spec, resources)
    requests = _default_requests(spec, limits) | requests
    _set(spec, requests, _default_limits(spec, requests, limits) | limits)


def fill_older_pod_level(spec: Tree) -> None:
    """Set the default resources as minors before 1.37 do."""
    resources = spec.get("resources") or {}
    if not (resources.get("limits") or resources.get("requests")):
        return
    requests, limits = resources.get("requests") or {}, _with_huge_pages(spec, resources)
    _set(spec, _default_requests(spec, limits) | requests if limits else requests, limits)


def _with_huge_pages(spec: ReadOnlyTree, resources: ReadOnlyTree) -> dict[str, str]:
    """Return the limits with those of huge pages: the sum over the containers, unless the pod requests them."""
    requests = resources.get("requests") or {}
    summed = {
        name: amount
        for name, amount in aggregate(spec, "limits").items()
        if name.startswith(HUGE_PAGES) and name not in requests
    }
    return summed | (resources.get("limits") or {})


def _default_requests(spec: ReadOnlyTree, limits: _Texts) -> dict[str, str]:
    """Return the sum over the containers, else the limits."""
    summed = aggregate(spec, "requests")
    limited = {name: amount for name, amount in limits.items() if is_pod_level(name)}
    return limited | {name: amount for name, amount in summed.items() if name in _OVERCOMMITTABLE}


def _default_limits(spec: ReadOnlyTree, requests: _Texts, limits: _Texts) -> dict[str, str]:
    """Return the sum over the containers where all have limits, or the request if that is more."""
    names = {name for name in requests if is_pod_level(name) and name not in limits}
    for container in every_container(spec):
        names &= ((container.get("resources") or {}).get("limits") or {}).keys()
    summed = aggregate(spec, "limits") if names else {}
    return {name: max(summed[name], requests[name], key=quantity.parse) for name in names & summed.keys()}


def _set(spec: Tree, requests: _Texts, limits: _Texts) -> None:
    """Set the resources, in the order of Go's encoding."""
    amounts = {"limits": limits, "requests": requests}
    filled = {name: dict(sorted(texts.items())) for name, texts in amounts.items() if texts}
    spec["resources"] = filled | {
        name: value for name, value in spec["resources"].items() if name not in amounts
    }


def aggregate(spec: Mapping[str, Any], field: str) -> dict[str, str]:
    """Return the maximum of the containers' amounts: during each init container, and when all containers run.

    An init container that is always restarted, a sidecar, keeps running during the later ones.
    """
    total = container_total(spec, lambda container, _: _amounts(container, field))
    return {name: str(amount) for name, amount in total.items()}


def _amounts(container: ReadOnlyTree, field: str) -> _Amounts:
    amounts = (container.get("resources") or {}).get(field) or {}
    return {name: quantity.parse(text) for name, text in amounts.items()}
