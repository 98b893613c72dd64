"""`/metrics/…` of simulated nodes: what kwok's Metric objects say, and a kubelet's `/metrics/resource` where none says it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, NamedTuple

from prometheus_client.utils import floatToGoString

from mockube.apimachinery import meta
from mockube.apimachinery.cel.declarations import declare
from mockube.apimachinery.cel.environment import Library
from mockube.apimachinery.cel.values import CelError
from mockube.apimachinery.chance import Chance
from mockube.apimachinery.clock import Clock
from mockube.apimachinery.quota.amounts import Amounts
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.usage.expressions import Expressions, UsageError
from mockube.apimachinery.usage.usage import containers_usage, running_containers, total
from mockube.controller_manager.cache.store import Lister
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.kubelet.containers.runs import container_status
from mockube.controller_manager.kubelet.server.kwok_objects import KwokObjects
from mockube.controller_manager.supervision import yield_to_loop
from mockube.controller_manager.workloads.indexes import BY_NODE

SLICE: Final = 20
"""Pods that are measured before others have their turn."""
_KINDS: Final = frozenset({"counter", "gauge"})
_OF_POD: Final = (("namespace", "pod.metadata.namespace"), ("pod", "pod.metadata.name"))
_OF_CONTAINER: Final = (("container", "container.name"), *_OF_POD)
_STARTED: Final = "container.startTime"
_BUILT_IN: Final = (
    (
        "container_cpu_usage_seconds_total",
        "counter",
        "container",
        'pod.CumulativeUsage("cpu", container.name)',
        "[STABLE] Cumulative cpu time consumed by the container in core-seconds",
    ),
    (
        "container_memory_working_set_bytes",
        "gauge",
        "container",
        'pod.Usage("memory", container.name)',
        "[STABLE] Current working set of the container in bytes",
    ),
    (
        "container_start_time_seconds",
        "gauge",
        "container",
        _STARTED,
        "[STABLE] Start time of the container since unix epoch in seconds",
    ),
    (
        "node_cpu_usage_seconds_total",
        "counter",
        "node",
        'node.CumulativeUsage("cpu")',
        "[STABLE] Cumulative cpu time consumed by the node in core-seconds",
    ),
    (
        "node_memory_working_set_bytes",
        "gauge",
        "node",
        'node.Usage("memory")',
        "[STABLE] Current working set of the node in bytes",
    ),
    (
        "pod_cpu_usage_seconds_total",
        "counter",
        "pod",
        'pod.CumulativeUsage("cpu")',
        "[STABLE] Cumulative cpu time consumed by the pod in core-seconds",
    ),
    (
        "pod_memory_working_set_bytes",
        "gauge",
        "pod",
        'pod.Usage("memory")',
        "[STABLE] Current working set of the pod in bytes",
    ),
    (
        "resource_scrape_error",
        "gauge",
        "node",
        "0.0",
        "[STABLE] 1 if there was an error while getting container metrics, 0 otherwise",
    ),
)
_LABELS: Final[Mapping[str, Any]] = {"container": _OF_CONTAINER, "pod": _OF_POD, "node": ()}
RESOURCE_METRICS: Final[Sequence[ReadOnlyTree]] = [
    {
        "name": name,
        "kind": kind,
        "dimension": dimension,
        "value": value,
        "help": text,
        "labels": [{"name": label, "value": of} for label, of in _LABELS[dimension]],
    }
    for name, kind, dimension, value, text in _BUILT_IN
]
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
        self._own = {(meta.namespace(one), meta.name(one)): one for one in own}
        self._cluster = cluster

    def of_pod(self, namespace: str, name: str) -> ReadOnlyTree | None:
        return self._own.get((namespace, name))

    def of_cluster(self) -> Sequence[ReadOnlyTree]:
        return self._cluster


class _Counted(NamedTuple):
    amount: float
    at: datetime


_Totals = dict[tuple[str, str, str], _Counted]
"""By pod, container and resource: what was used until a time."""


class _Scrape:
    """What the pods of one node use, by namespace, name and container."""

    def __init__(self) -> None:
        self.usage: dict[tuple[str, str], Mapping[str, Amounts]] = {}
        self.totals: dict[tuple[str, str], Mapping[str, Mapping[str, float]]] = {}
        self.started = 0

    def used(self, obj: Any, resource: str, container: str = "") -> float:
        amounts = [self._total(one, container) for one in self._of(self.usage, obj)]
        return sum(float(one[resource].number) for one in amounts if resource in one)

    def used_so_far(self, obj: Any, resource: str, container: str = "") -> float:
        found = self._of(self.totals, obj)
        return sum(
            float(amounts.get(resource, 0.0))
            for one in found
            for name, amounts in one.items()
            if container in ("", name)
        )

    @staticmethod
    def _total(usage: Mapping[str, Amounts], container: str) -> Amounts:
        return usage.get(container, {}) if container else total(usage.values())

    @staticmethod
    def _of(known: Mapping[tuple[str, str], Any], obj: Any) -> list[Any]:
        """That of a pod, or of all on the node."""
        try:
            metadata = obj["metadata"]
            namespace = metadata.get("namespace")
            if not namespace:
                return [*known.values()]
            return [known[namespace, metadata["name"]]] if (namespace, metadata["name"]) in known else []
        except (KeyError, TypeError, AttributeError) as error:
            raise CelError("no such overload") from error


class NodeMetrics:
    def __init__(self, pods: Lister[PodView], kwok: KwokObjects, clock: Clock, chance: Chance) -> None:
        self._pods = pods
        self._kwok = kwok
        self._clock = clock
        self._scrape = _Scrape()
        self._totals: dict[str, _Totals] = {}
        functions: Mapping[str, Callable[..., Any]] = {
            "metric_usage": self._used,
            "metric_usage_container": self._used,
            "metric_cumulative": self._used_so_far,
            "metric_cumulative_container": self._used_so_far,
            "metric_started": self._started,
        }
        self._expressions = Expressions(clock, chance, Library(_DECLARED, functions))

    async def render(self, path: str, node: ReadOnlyTree) -> str | None:
        """The text of a path; None if nothing is served there."""
        metrics = await self._metrics(path, meta.name(node))
        if metrics is None:
            return None
        usages = _Usages(
            await self._kwok.listed("resourceusages"), await self._kwok.listed("clusterresourceusages")
        )
        pods = [one.object for one in self._pods.by_index(BY_NODE, meta.name(node)) if not one.is_terminal]
        scrape = await self._measure(pods, node, usages)
        lines: list[str] = []
        for metric in metrics:
            await yield_to_loop()
            self._scrape = scrape  # another request may have had its turn
            lines += self._lines(metric, pods, node)
        return "".join(f"{line}\n" for line in lines)

    def _used(self, obj: Any, resource: str, container: str = "") -> float:
        return self._scrape.used(obj, resource, container)

    def _used_so_far(self, obj: Any, resource: str, container: str = "") -> float:
        return self._scrape.used_so_far(obj, resource, container)

    def _started(self, _: Any) -> float:
        return float(self._scrape.started)

    async def _metrics(self, path: str, node: str) -> Sequence[ReadOnlyTree] | None:
        for one in await self._kwok.listed("metrics"):
            spec = one.get("spec") or {}
            if (spec.get("path") or "").replace("{nodeName}", node) == path:
                return spec.get("metrics") or ()
        return RESOURCE_METRICS if path == "/metrics/resource" else None

    async def _measure(self, pods: Sequence[ReadOnlyTree], node: ReadOnlyTree, usages: _Usages) -> _Scrape:
        scrape, now = _Scrape(), self._clock.now()
        before, after = self._totals.get(meta.name(node), {}), _Totals()
        for number, pod in enumerate(pods):
            if number % SLICE == SLICE - 1:
                await yield_to_loop()
            key = (meta.namespace(pod), meta.name(pod))
            scrape.usage[key] = usage = containers_usage(pod, node, usages, self._expressions)
            scrape.totals[key] = {
                name: dict(_totals(pod, name, amounts, before, after, now)) for name, amounts in usage.items()
            }
            statuses = (pod.get("status") or {}).get("containerStatuses") or ()
            scrape.started += sum((one.get("restartCount") or 0) + 1 for one in statuses)
        self._totals[meta.name(node)] = after
        return scrape

    def _lines(self, metric: ReadOnlyTree, pods: Sequence[ReadOnlyTree], node: ReadOnlyTree) -> Iterator[str]:
        name, kind = metric.get("name") or "", metric.get("kind") or ""
        if kind not in _KINDS:
            return
        text = " ".join((metric.get("help") or "").split())
        yield f"# HELP {name} {text}"
        yield f"# TYPE {name} {kind}"
        for pod, container in _subjects(metric.get("dimension") or "node", pods):
            with suppress(UsageError, KeyError, TypeError, ValueError):
                labels = [
                    (one["name"], self._value(one["value"], pod, node, container))
                    for one in metric.get("labels") or ()
                ]
                value = self._value(metric["value"], pod, node, container)
                yield _sample(name, labels, _number(value))

    def _value(self, text: str, pod: ReadOnlyTree, node: ReadOnlyTree, container: ReadOnlyTree) -> Any:
        if text == _STARTED:
            status = container_status(pod, container["name"]) or {}
            return parse_time(status["state"]["running"]["startedAt"]).timestamp()
        return self._expressions.value(text, pod, node, container)


def _totals(
    pod: ReadOnlyTree, name: str, amounts: Amounts, before: _Totals, after: _Totals, now: datetime
) -> Iterator[tuple[str, float]]:
    running = ((container_status(pod, name) or {}).get("state") or {}).get("running") or {}
    started = parse_time(running["startedAt"]) if running.get("startedAt") else now
    for resource, amount in amounts.items():
        key = (meta.uid(pod), name, resource)
        known = before.get(key, _Counted(0.0, started))
        sum_ = known.amount + float(amount.number) * max((now - known.at).total_seconds(), 0.0)
        after[key] = _Counted(sum_, now)
        yield resource, sum_


def _subjects(dimension: str, pods: Sequence[ReadOnlyTree]) -> Iterator[tuple[ReadOnlyTree, ReadOnlyTree]]:
    if dimension == "node":
        yield {}, {}
    elif dimension == "pod":
        yield from ((pod, {}) for pod in pods)
    elif dimension == "container":
        yield from ((pod, container) for pod in pods for container in running_containers(pod))


def _sample(name: str, labels: Sequence[tuple[str, Any]], value: float) -> str:
    shown = ",".join(f'{label}="{_escaped(str(of))}"' for label, of in labels)
    number: str = floatToGoString(value)  # type: ignore[no-untyped-call]
    return f"{name}{{{shown}}} {number}" if shown else f"{name} {number}"


def _number(value: Any) -> float:
    found = getattr(value, "quantity", value)
    return float(getattr(found, "number", found))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
