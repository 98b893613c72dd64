"""The simulated usage of each container of a pod, by resource.

The source is the ResourceUsage with the pod's name, else the first ClusterResourceUsage that selects the pod, else the
pod's annotations, else what the container's program uses as far as it is known, else the container's requests.
"""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Final, Protocol

from mockube.apimachinery import meta, quantity
from mockube.apimachinery.quantity import NANO, Format, Quantity, QuantityError
from mockube.apimachinery.quota.amounts import Amounts
from mockube.apimachinery.tree import ReadOnlyTree

from .expressions import Expressions, UsageExpressionError

ANNOTATIONS: Final[Mapping[str, str]] = {
    "cpu": "kwok.x-k8s.io/usage-cpu",
    "memory": "kwok.x-k8s.io/usage-memory",
}
"""The annotations of pods with the usage of each container, by resource; kwok defines them."""
REQUEST_RATIO: Final = Decimal("0.5")
"""The ratio of its requests that a container uses if no usage is declared."""
MIN_USAGE: Final[Mapping[str, Quantity]] = {
    "cpu": quantity.parse("1m"),
    "memory": quantity.parse("16Mi"),
}
"""The usage of a container without requests, by resource."""


class Usages(Protocol):
    """The objects that declare usage."""

    def of_pod(self, namespace: str, name: str) -> ReadOnlyTree | None:
        """Return the ResourceUsage with this name."""

    def of_cluster(self) -> Iterable[ReadOnlyTree]:
        """Return the ClusterResourceUsages, in the order of their precedence."""


UsageByContainer = Mapping[str, Amounts]
_NOTHING: Final[Amounts] = {}
_NOTHING_KNOWN: Final[UsageByContainer] = {}


def containers_usage(
    pod: ReadOnlyTree,
    node: ReadOnlyTree,
    usages: Usages,
    expressions: Expressions,
    measured: UsageByContainer = _NOTHING_KNOWN,
) -> dict[str, Amounts]:
    """Return the usage of each running container, by name and in order. An amount that cannot be computed is left out.

    `measured` is what containers use whose programs are known.
    """
    rules = _rules(pod, usages)
    return {
        container["name"]: dict(
            _usage(pod, node, container, rules, expressions, measured.get(container["name"], _NOTHING))
        )
        for container in running_containers(pod)
    }


def total(amounts: Iterable[Amounts]) -> dict[str, Quantity]:
    totals: dict[str, Quantity] = {}
    for usage in amounts:
        for name, amount in usage.items():
            totals[name] = totals[name] + amount if name in totals else amount
    return totals


def running_containers(pod: ReadOnlyTree) -> Iterator[ReadOnlyTree]:
    """Yield the containers of a running pod that run by their status; sidecars are last."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    if status.get("phase") != "Running":
        return
    sidecars = [
        container
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    ]
    container_statuses = (
        *(status.get("containerStatuses") or ()),
        *(status.get("initContainerStatuses") or ()),
    )
    states = {
        container_status.get("name"): container_status.get("state") or {}
        for container_status in container_statuses
    }
    for container in (*(spec.get("containers") or ()), *sidecars):
        state = states.get(container["name"]) or {}
        if not state or "running" in state:
            yield container


def _rules(pod: ReadOnlyTree, usages: Usages) -> Iterable[ReadOnlyTree]:
    pod_usage_object = usages.of_pod(meta.namespace(pod), meta.name(pod))
    if pod_usage_object is not None:
        return (pod_usage_object.get("spec") or {}).get("usages") or ()
    for cluster_usage in usages.of_cluster():
        spec = cluster_usage.get("spec") or {}
        if is_selected(pod, spec.get("selector") or {}):
            return spec.get("usages") or ()
    return ()


def is_selected(obj: ReadOnlyTree, selector: ReadOnlyTree) -> bool:
    """Return whether the names and namespaces of a selector of kwok contain those of an object; an empty list contains all."""
    names, namespaces = selector.get("matchNames"), selector.get("matchNamespaces")
    return (not names or meta.name(obj) in names) and (not namespaces or meta.namespace(obj) in namespaces)


def _usage(
    pod: ReadOnlyTree,
    node: ReadOnlyTree,
    container: ReadOnlyTree,
    rules: Iterable[ReadOnlyTree],
    expressions: Expressions,
    measured: Amounts,
) -> Iterator[tuple[str, Quantity]]:
    """Yield the usage of each resource; an amount that cannot be computed is left out, not guessed."""
    values: dict[str, ReadOnlyTree] = {}
    for rule in rules:
        names = rule.get("containers")
        if not names or container["name"] in names:
            for resource, value in (rule.get("usage") or {}).items():
                values.setdefault(resource, value)
    for resource in dict.fromkeys((*ANNOTATIONS, *values)):
        try:
            if resource not in values:
                yield resource, _simulated_usage(pod, container, resource, measured)
            elif values[resource].get("value") is not None:
                yield resource, quantity.from_json(values[resource]["value"])
            elif values[resource].get("expression"):
                text = values[resource]["expression"]
                yield resource, expressions.amount(text, pod, node, container)
        except (QuantityError, UsageExpressionError):
            continue


def measured_amounts(cores: float, memory: float) -> Amounts:
    """Return the amounts of cores and bytes that were measured."""
    return {
        "cpu": Quantity(Decimal(str(cores)), Format.DECIMAL_SI).round_up(NANO),
        "memory": Quantity(Decimal(round(memory)), Format.BINARY_SI),
    }


def _simulated_usage(
    pod: ReadOnlyTree, container: ReadOnlyTree, resource: str, measured: Amounts
) -> Quantity:
    annotated = meta.annotations(pod).get(ANNOTATIONS[resource])
    if annotated is not None:
        return quantity.parse(annotated)
    if resource in measured:
        return measured[resource]
    request = ((container.get("resources") or {}).get("requests") or {}).get(resource)
    if request is None:
        return MIN_USAGE[resource]
    amount = quantity.from_json(request)
    form = Format.BINARY_SI if resource == "memory" else Format.DECIMAL_SI
    return Quantity(amount.number * REQUEST_RATIO, form).round_up(0 if resource == "memory" else NANO)
