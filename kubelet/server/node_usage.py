"""The resource usage of a simulated node's pods, present and cumulative."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.cel.declarations import declare
from mockube.apimachinery.cel.environment import Library
from mockube.apimachinery.cel.values import CelError
from mockube.apimachinery.quota.amounts import Amounts
from mockube.apimachinery.randomness import Random
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.usage.expressions import Expressions
from mockube.apimachinery.usage.usage import (
    UsageByContainer,
    containers_usage,
    measured_amounts,
    running_containers,
    total,
)
from mockube.client.cache.store import Lister
from mockube.client.component_helpers.indexes import BY_NODE
from mockube.client.podview import PodView
from mockube.component_base.clock import Clock
from mockube.component_base.loop import yield_to_loop
from mockube.container_runtime.runs import container_status
from mockube.container_runtime.runtime import ContainerRuntime
from mockube.kubelet.kwok_objects import KwokObjects

from .node_counters import KubeletCounters, UsageTotal, UsageTotals

SLICE: Final = 20
"""The number of pods that are measured before other tasks run."""
_NODE: Final = ("", "")
_DECLARED: Final = declare(
    """
    Usage metric_usage dyn.(string) -> double
    Usage metric_usage_container dyn.(string, string) -> double
    CumulativeUsage metric_cumulative dyn.(string) -> double
    CumulativeUsage metric_cumulative_container dyn.(string, string) -> double
    StartedContainersTotal metric_started dyn.() -> double
    """
)


class _UsageObjects:
    """kwok's ResourceUsage and ClusterResourceUsage objects."""

    def __init__(self, namespaced: Sequence[ReadOnlyTree], cluster: Sequence[ReadOnlyTree]) -> None:
        self._namespaced = {(meta.namespace(tree), meta.name(tree)): tree for tree in namespaced}
        self._cluster = cluster

    def of_pod(self, namespace: str, name: str) -> ReadOnlyTree | None:
        return self._namespaced.get((namespace, name))

    def of_cluster(self) -> Sequence[ReadOnlyTree]:
        return self._cluster


FindClaim = Callable[[str, str], ReadOnlyTree | None]


class ScrapedNode:
    """A node, and its pods that have not ended."""

    def __init__(
        self, node: ReadOnlyTree, pods: Sequence[ReadOnlyTree], find_claim: FindClaim = lambda _, __: None
    ) -> None:
        self.node = node
        self.pods = pods
        self.find_claim = find_claim
        """Returns the PersistentVolumeClaim of a namespace and a name, or None."""


class Measurement(ScrapedNode):
    """The usage of one node's pods at one time."""

    def __init__(
        self,
        node: ReadOnlyTree,
        pods: Sequence[ReadOnlyTree],
        at: datetime,
        find_claim: FindClaim = lambda _, __: None,
    ) -> None:
        super().__init__(node, pods, find_claim)
        self.at = at
        self.usage: dict[tuple[str, str], Mapping[str, Amounts]] = {}
        self.totals: dict[tuple[str, str], Mapping[str, Mapping[str, float]]] = {}
        """By pod, the cumulative usage of each container."""
        self.sums: dict[tuple[str, str], Mapping[str, float]] = {}
        """The cumulative usage of each pod, and of the node as _NODE, with that of containers and pods that have ended."""
        self.started = 0
        """The number of container starts, including restarts."""

    def running_containers(self) -> Iterator[tuple[ReadOnlyTree, ReadOnlyTree]]:
        """Yield each running container with its pod."""
        return ((pod, container) for pod in self.pods for container in running_containers(pod))

    def usage_of(self, obj: Any, resource: str, container: str = "") -> float:
        """Return the present usage of a pod, of one of its containers, or of a node with all its pods."""
        amounts = [self._total(usage, container) for usage in self._select(self.usage, obj)]
        return sum(float(amount[resource].number) for amount in amounts if resource in amount)

    def cumulative_usage(self, obj: Any, resource: str, container: str = "") -> float:
        if not container:
            amount: float = self.sums.get(_name_of(obj), {}).get(resource, 0.0)
            return amount
        totals = [by_container.get(container, {}) for by_container in self._select(self.totals, obj)]
        return sum(float(amounts.get(resource, 0.0)) for amounts in totals)

    @staticmethod
    def _total(usage: Mapping[str, Amounts], container: str) -> Amounts:
        return usage.get(container, {}) if container else total(usage.values())

    @staticmethod
    def _select(by_pod: Mapping[tuple[str, str], Any], obj: Any) -> list[Any]:
        """Return the value of a pod, or the values of all pods if `obj` is the node."""
        name = _name_of(obj)
        if name == _NODE:
            return [*by_pod.values()]
        return [by_pod[name]] if name in by_pod else []


class UsageSources(Struct, frozen=True, kw_only=True):
    """What the usage of containers is made from, besides their pods."""

    kwok: KwokObjects
    random: Random
    """The source of randomness for metric expressions."""
    find_claim: FindClaim
    counters: KubeletCounters
    measure: Callable[[ReadOnlyTree], UsageByContainer] = lambda _: {}
    """Returns what the containers of a pod use whose programs are known, by name."""


class NodeUsage:
    def __init__(self, pods: Lister[PodView], clock: Clock, sources: UsageSources) -> None:
        self._pods = pods
        self._measure = sources.measure
        self._find_claim = sources.find_claim
        self._kwok = sources.kwok
        self._clock = clock
        self._current: Measurement | None = None
        self._totals = sources.counters.usage_totals
        functions: Mapping[str, Callable[..., Any]] = {
            "metric_usage": self._usage_of,
            "metric_usage_container": self._usage_of,
            "metric_cumulative": self._cumulative_usage,
            "metric_cumulative_container": self._cumulative_usage,
            "metric_started": self._started_total,
        }
        self._expressions = Expressions(clock.now, sources.random, Library(_DECLARED, functions))

    def scraped_node(self, node: ReadOnlyTree) -> ScrapedNode:
        views = self._pods.by_index(BY_NODE, meta.name(node))
        return ScrapedNode(node, [view.object for view in views if not view.is_terminal], self._find_claim)

    async def measure(self, node: ReadOnlyTree) -> Measurement:
        usages = _UsageObjects(
            await self._kwok.list("resourceusages"), await self._kwok.list("clusterresourceusages")
        )
        pods, now = self.scraped_node(node).pods, self._clock.now()
        measurement = Measurement(node, pods, now, self._find_claim)
        before, after = self._totals.get(meta.name(node), UsageTotals()), UsageTotals(now)
        measurement.sums[_NODE] = after.begin_sum("", before)
        for number, pod in enumerate(pods):
            if number % SLICE == SLICE - 1:
                await yield_to_loop()
            key = (meta.namespace(pod), meta.name(pod))
            measured = self._measure(pod)
            measurement.usage[key] = usage = containers_usage(pod, node, usages, self._expressions, measured)
            measurement.sums[key] = after.begin_sum(meta.uid(pod), before)
            measurement.totals[key] = {
                name: dict(_totals(pod, name, amounts, before, after)) for name, amounts in usage.items()
            }
            statuses = (pod.get("status") or {}).get("containerStatuses") or ()
            measurement.started += sum((run_status.get("restartCount") or 0) + 1 for run_status in statuses)
        if self._totals.get(meta.name(node), before).at <= now:  # another scrape may have overtaken this one
            self._totals[meta.name(node)] = after
        return measurement

    def value(self, text: str, measurement: Measurement, pod: ReadOnlyTree, container: ReadOnlyTree) -> Any:
        """Evaluate an expression of a Metric object."""
        self._current = measurement
        return self._expressions.value(text, pod, measurement.node, container)

    def _usage_of(self, obj: Any, resource: str, container: str = "") -> float:
        return self._measurement().usage_of(obj, resource, container)

    def _cumulative_usage(self, obj: Any, resource: str, container: str = "") -> float:
        return self._measurement().cumulative_usage(obj, resource, container)

    def _started_total(self, _: Any) -> float:
        return float(self._measurement().started)

    def _measurement(self) -> Measurement:
        if self._current is None:
            raise CelError("no such overload")
        return self._current


def measured_usage(pod: ReadOnlyTree, runtime: ContainerRuntime) -> dict[str, Amounts]:
    """Return what the running containers of a pod use whose programs are known, by name."""
    measured = {
        container["name"]: runtime.container_stats(pod, container["name"])
        for container in running_containers(pod)
    }
    return {
        name: measured_amounts(stats.cores, stats.memory)
        for name, stats in measured.items()
        if stats is not None
    }


def started_at(pod: ReadOnlyTree, name: str) -> datetime | None:
    """Return the start time of a container's run; None if it does not run."""
    running = ((container_status(pod, name) or {}).get("state") or {}).get("running") or {}
    return parse_time(running["startedAt"]) if running.get("startedAt") else None


def _name_of(obj: Any) -> tuple[str, str]:
    """Return the namespace and the name of a pod, or _NODE for a node."""
    try:
        metadata = obj["metadata"]
        namespace = metadata.get("namespace")
        return (namespace, metadata["name"]) if namespace else _NODE
    except (KeyError, TypeError, AttributeError) as error:
        raise CelError("no such overload") from error


def _totals(
    pod: ReadOnlyTree, name: str, amounts: Amounts, before: UsageTotals, after: UsageTotals
) -> Iterator[tuple[str, float]]:
    """Yield the cumulative usage of a container by resource, and add what is new of it to the sums of its pod and its node."""
    uid, now = meta.uid(pod), after.at
    started = started_at(pod, name) or now
    for resource, amount in amounts.items():
        key = (uid, name, resource)
        previous = before.containers.get(key, UsageTotal(0.0, started))
        added = float(amount.number) * max((now - previous.at).total_seconds(), 0.0)
        after.containers[key] = UsageTotal(previous.amount + added, now)
        for owner in (uid, ""):
            after.sums[owner][resource] = after.sums[owner].get(resource, 0.0) + added
        yield resource, previous.amount + added
