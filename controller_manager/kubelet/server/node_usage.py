"""What the pods of a simulated node use at a time, and have used since they started."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.cel.declarations import declare
from mockube.apimachinery.cel.environment import Library
from mockube.apimachinery.cel.values import CelError
from mockube.apimachinery.clock import Clock
from mockube.apimachinery.quota.amounts import Amounts
from mockube.apimachinery.randomness import Random
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.usage.expressions import Expressions
from mockube.apimachinery.usage.usage import containers_usage, running_containers, total
from mockube.controller_manager.cache.store import Lister
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.kubelet.containers.runs import container_status
from mockube.controller_manager.kubelet.server.kwok_objects import KwokObjects
from mockube.controller_manager.supervision import yield_to_loop
from mockube.controller_manager.workloads.indexes import BY_NODE

SLICE: Final = 20
"""Pods that are measured before others have their turn."""
_DECLARED: Final = declare(
    """
    Usage metric_usage dyn.(string) -> double
    Usage metric_usage_container dyn.(string, string) -> double
    CumulativeUsage metric_cumulative dyn.(string) -> double
    CumulativeUsage metric_cumulative_container dyn.(string, string) -> double
    StartedContainersTotal metric_started dyn.() -> double
    """
)


class _Usages:
    """kwok's objects as they are now."""

    def __init__(self, own: Sequence[ReadOnlyTree], cluster: Sequence[ReadOnlyTree]) -> None:
        self._own = {(meta.namespace(tree), meta.name(tree)): tree for tree in own}
        self._cluster = cluster

    def of_pod(self, namespace: str, name: str) -> ReadOnlyTree | None:
        return self._own.get((namespace, name))

    def of_cluster(self) -> Sequence[ReadOnlyTree]:
        return self._cluster


class _UsageTotal(NamedTuple):
    amount: float
    at: datetime


_Totals = dict[tuple[str, str, str], _UsageTotal]
"""By pod, container and resource: what was used until a time."""


class Measurement:
    """What the pods of one node use, by namespace, name and container."""

    def __init__(self, node: ReadOnlyTree, pods: Sequence[ReadOnlyTree], at: datetime) -> None:
        self.node = node
        self.pods = pods
        """Those that have not ended."""
        self.at = at
        self.usage: dict[tuple[str, str], Mapping[str, Amounts]] = {}
        self.totals: dict[tuple[str, str], Mapping[str, Mapping[str, float]]] = {}
        self.started = 0
        """Containers, with each of their restarts."""

    def running(self) -> Iterator[tuple[ReadOnlyTree, ReadOnlyTree]]:
        """Each container that runs, with its pod."""
        return ((pod, container) for pod in self.pods for container in running_containers(pod))

    def usage_of(self, obj: Any, resource: str, container: str = "") -> float:
        """How much a pod, or a node with all its pods, uses now."""
        amounts = [self._total(usage, container) for usage in self._select(self.usage, obj)]
        return sum(float(amount[resource].number) for amount in amounts if resource in amount)

    def cumulative_usage(self, obj: Any, resource: str, container: str = "") -> float:
        totals = self._select(self.totals, obj)
        return sum(
            float(amounts.get(resource, 0.0))
            for by_container in totals
            for name, amounts in by_container.items()
            if container in ("", name)
        )

    @staticmethod
    def _total(usage: Mapping[str, Amounts], container: str) -> Amounts:
        return usage.get(container, {}) if container else total(usage.values())

    @staticmethod
    def _select(by_pod: Mapping[tuple[str, str], Any], obj: Any) -> list[Any]:
        """That of a pod, or of all on the node."""
        try:
            metadata = obj["metadata"]
            namespace = metadata.get("namespace")
            if not namespace:
                return [*by_pod.values()]
            return [by_pod[namespace, metadata["name"]]] if (namespace, metadata["name"]) in by_pod else []
        except (KeyError, TypeError, AttributeError) as error:
            raise CelError("no such overload") from error


class NodeUsage:
    def __init__(self, pods: Lister[PodView], kwok: KwokObjects, clock: Clock, random: Random) -> None:
        self._pods = pods
        self._kwok = kwok
        self._clock = clock
        self._current: Measurement | None = None
        self._totals: dict[str, _Totals] = {}
        functions: Mapping[str, Callable[..., Any]] = {
            "metric_usage": self._usage_of,
            "metric_usage_container": self._usage_of,
            "metric_cumulative": self._used_so_far,
            "metric_cumulative_container": self._used_so_far,
            "metric_started": self._start_time,
        }
        self._expressions = Expressions(clock, random, Library(_DECLARED, functions))

    async def measure(self, node: ReadOnlyTree) -> Measurement:
        usages = _Usages(
            await self._kwok.list("resourceusages"), await self._kwok.list("clusterresourceusages")
        )
        pods = [view.object for view in self._pods.by_index(BY_NODE, meta.name(node)) if not view.is_terminal]
        now = self._clock.now()
        measured = Measurement(node, pods, now)
        before, after = self._totals.get(meta.name(node), {}), _Totals()
        for number, pod in enumerate(pods):
            if number % SLICE == SLICE - 1:
                await yield_to_loop()
            key = (meta.namespace(pod), meta.name(pod))
            measured.usage[key] = usage = containers_usage(pod, node, usages, self._expressions)
            measured.totals[key] = {
                name: dict(_totals(pod, name, amounts, before, after, now)) for name, amounts in usage.items()
            }
            statuses = (pod.get("status") or {}).get("containerStatuses") or ()
            measured.started += sum((run_status.get("restartCount") or 0) + 1 for run_status in statuses)
        self._totals[meta.name(node)] = after
        return measured

    def value(self, text: str, measured: Measurement, pod: ReadOnlyTree, container: ReadOnlyTree) -> Any:
        """The value of an expression of a Metric."""
        self._current = measured
        return self._expressions.value(text, pod, measured.node, container)

    def _usage_of(self, obj: Any, resource: str, container: str = "") -> float:
        return self._measurement().usage_of(obj, resource, container)

    def _used_so_far(self, obj: Any, resource: str, container: str = "") -> float:
        return self._measurement().cumulative_usage(obj, resource, container)

    def _start_time(self, _: Any) -> float:
        return float(self._measurement().started)

    def _measurement(self) -> Measurement:
        if self._current is None:
            raise CelError("no such overload")
        return self._current


def started_at(pod: ReadOnlyTree, name: str) -> datetime | None:
    """When a container of a pod started; None if it does not run."""
    running = ((container_status(pod, name) or {}).get("state") or {}).get("running") or {}
    return parse_time(running["startedAt"]) if running.get("startedAt") else None


def _totals(
    pod: ReadOnlyTree, name: str, amounts: Amounts, before: _Totals, after: _Totals, now: datetime
) -> Iterator[tuple[str, float]]:
    started = started_at(pod, name) or now
    for resource, amount in amounts.items():
        key = (meta.uid(pod), name, resource)
        previous = before.get(key, _UsageTotal(0.0, started))
        sum_ = previous.amount + float(amount.number) * max((now - previous.at).total_seconds(), 0.0)
        after[key] = _UsageTotal(sum_, now)
        yield resource, sum_
