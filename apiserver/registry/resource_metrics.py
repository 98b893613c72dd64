"""The verbs of metrics.k8s.io: what the pods and nodes in the watch cache use, computed for each request."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from mockube.apimachinery import conditions, meta, status
from mockube.apimachinery.groups import NODES, PODS, GroupResource
from mockube.apimachinery.quota.amounts import Amounts, to_tree
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.usage.expressions import Expressions
from mockube.apimachinery.usage.usage import UsageByContainer, containers_usage, total
from mockube.apiserver.kinds.metrics.resource_metrics import GROUP_NAME
from mockube.apiserver.storage.stored_object import StoredObject, canonical
from mockube.component_base.loop import yield_to_loop

from .registry import WRONG_TYPE_ERRORS, Backend, OwnVerbs
from .request_context import ListResult, ObjectResult, RequestContext
from .selection import select_by

WINDOW: Final = "15s"
"""The reported interval over which usage was measured: metrics-server's resolution."""
MEASURED_RESOURCES: Final = ("cpu", "memory")
SLICE: Final = 50
"""The number of pods that are measured before other requests are served."""
POD_USAGES, NODE_USAGES = GroupResource(GROUP_NAME, "pods"), GroupResource(GROUP_NAME, "nodes")
RESOURCE_USAGES = GroupResource("kwok.x-k8s.io", "resourceusages")
CLUSTER_RESOURCE_USAGES = GroupResource("kwok.x-k8s.io", "clusterresourceusages")


class ResourceUsages:
    """kwok's ResourceUsages and ClusterResourceUsages, read for one request; none if kwok's kinds are not defined."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._cluster = [*self._all(CLUSTER_RESOURCE_USAGES)]

    def of_pod(self, namespace: str, name: str) -> ReadOnlyTree | None:
        if RESOURCE_USAGES not in self._backend.rows:
            return None
        stored = self._backend.find_cached(RESOURCE_USAGES, namespace, name)
        return None if stored is None else stored.tree()

    def of_cluster(self) -> Iterable[ReadOnlyTree]:
        return self._cluster

    def _all(self, resource: GroupResource) -> Iterable[ReadOnlyTree]:
        if resource in self._backend.rows:
            yield from (stored.tree() for stored in self._backend.list_cached(resource))


MeasuredUsage = Mapping[str, UsageByContainer]
"""What containers use, by the uid of their pod and their name."""
_NOTHING_MEASURED: Final[MeasuredUsage] = {}


async def _measure_nothing(_namespace: str = "", _name: str = "") -> MeasuredUsage:
    return _NOTHING_MEASURED


class UsageMeter:
    """Computes the usage of pods at the time of one request."""

    def __init__(
        self, backend: Backend, expressions: Expressions, measured: MeasuredUsage = _NOTHING_MEASURED
    ) -> None:
        """`measured` is what containers use whose programs are known."""
        self._backend = backend
        self._expressions = expressions
        self._measured = measured
        self._usages = ResourceUsages(backend)
        self._nodes: dict[str, ReadOnlyTree | None] = {}

    def pod(self, pod: ReadOnlyTree) -> Mapping[str, Amounts]:
        """Return usage by container; none for a pod that does not run, or whose node is not ready."""
        node = self.ready_node((pod.get("spec") or {}).get("nodeName") or "")
        if node is None:
            return {}
        measured = self._measured.get(meta.uid(pod), {})
        return containers_usage(pod, node, self._usages, self._expressions, measured)

    def ready_node(self, name: str) -> ReadOnlyTree | None:
        if name not in self._nodes:
            stored = self._backend.find_cached(NODES, "", name) if name else None
            node = None if stored is None else stored.tree()
            is_ready = node is not None and conditions.is_true(node, "Ready")
            self._nodes[name] = node if is_ready else None
        return self._nodes[name]


class ResourceMetrics:
    def __init__(
        self,
        expressions: Expressions,
        measure: Callable[[str, str], Awaitable[MeasuredUsage]] = _measure_nothing,
    ) -> None:
        """`measure` returns the usage of the pods of a namespace, or all, of those with a name, or any."""
        self._expressions = expressions
        self._measure = measure

    async def _meter(self, backend: Backend, namespace: str = "", name: str = "") -> UsageMeter:
        return UsageMeter(backend, self._expressions, await self._measure(namespace, name))

    def verbs(self) -> OwnVerbs:
        return {
            (POD_USAGES, ""): {"get": self.get_pod, "list": self.list_pods},
            (NODE_USAGES, ""): {"get": self.get_node, "list": self.list_nodes},
        }

    async def get_pod(self, backend: Backend, context: RequestContext) -> ObjectResult:
        stored = backend.find_cached(PODS, context.namespace, context.name)
        if stored is None:
            raise status.not_found(PODS, context.name)
        measure = await self._meter(backend, context.namespace, context.name)
        metrics = _pod_metrics(context, backend, measure, stored)
        if metrics is None:
            resource = GroupResource(GROUP_NAME, "podmetrics")
            raise status.not_found(resource, f"{context.namespace}/{context.name}")
        return ObjectResult(stored=metrics)

    async def list_pods(self, backend: Backend, context: RequestContext) -> ListResult:
        _, chosen = await select_by(backend, context)
        matches, measure = chosen.matches, await self._meter(backend, context.namespace)
        items = []
        for index, stored in enumerate(backend.list_cached(PODS, context.namespace)):
            if index % SLICE == SLICE - 1:
                await yield_to_loop()
            if matches is None or matches(stored):
                metrics = _pod_metrics(context, backend, measure, stored)
                items += [] if metrics is None else [metrics]
        return _list(context, items)

    async def get_node(self, backend: Backend, context: RequestContext) -> ObjectResult:
        if backend.find_cached(NODES, "", context.name) is None:
            raise status.not_found(NODES, context.name)
        measure = await self._meter(backend)
        node = measure.ready_node(context.name)
        if node is None:
            raise status.not_found(GroupResource(GROUP_NAME, "nodemetrics"), context.name)
        used = await self._used_on_nodes(backend, measure, {context.name})
        return ObjectResult(stored=_node_metrics(context, backend, node, used.get(context.name, {})))

    async def list_nodes(self, backend: Backend, context: RequestContext) -> ListResult:
        _, chosen = await select_by(backend, context)
        matches, measure = chosen.matches, await self._meter(backend)
        matching = [stored for stored in backend.list_cached(NODES) if matches is None or matches(stored)]
        nodes = [
            node for stored in matching if (node := measure.ready_node(meta.name(stored.tree()))) is not None
        ]
        used = await self._used_on_nodes(backend, measure, {meta.name(node) for node in nodes})
        return _list(
            context, [_node_metrics(context, backend, node, used.get(meta.name(node), {})) for node in nodes]
        )

    async def _used_on_nodes(
        self, backend: Backend, measure: UsageMeter, names: set[str]
    ) -> Mapping[str, Amounts]:
        """Return the total usage of the pods of each of these nodes."""
        used: dict[str, Amounts] = {}
        for index, stored in enumerate(backend.list_cached(PODS)):
            if index % SLICE == SLICE - 1:
                await yield_to_loop()
            pod = stored.tree()
            node = (pod.get("spec") or {}).get("nodeName") or ""
            if node in names:
                used[node] = total([used.get(node, {}), *_measure_pod(backend, measure, stored).values()])
        return used


def _measure_pod(backend: Backend, measure: UsageMeter, stored: StoredObject) -> Mapping[str, Amounts]:
    """Return the usage of a pod by container; a malformed pod is reported and uses nothing."""
    try:
        return measure.pod(stored.tree())
    except WRONG_TYPE_ERRORS as error:
        backend.watch_cache.report_malformed(stored, error)
        return {}


def _pod_metrics(
    context: RequestContext, backend: Backend, measure: UsageMeter, stored: StoredObject
) -> StoredObject | None:
    used = _measure_pod(backend, measure, stored)
    if not used:
        return None
    containers = [{"name": name, "usage": _usage_tree(amounts)} for name, amounts in used.items()]
    return _as_stored(context, backend, stored.tree(), {"containers": containers})


def _node_metrics(
    context: RequestContext, backend: Backend, node: ReadOnlyTree, used: Amounts
) -> StoredObject:
    usage = {"cpu": "0", "memory": "0", **_usage_tree(used)}
    return _as_stored(context, backend, node, {"usage": usage})


def _usage_tree(amounts: Amounts) -> dict[str, str]:
    return to_tree({name: amount for name, amount in amounts.items() if name in MEASURED_RESOURCES})


def _as_stored(
    context: RequestContext, backend: Backend, about: ReadOnlyTree, content: Mapping[str, Any]
) -> StoredObject:
    now = format_time(backend.clock.now())
    named = {"name": meta.name(about), "namespace": meta.namespace(about), "labels": meta.labels(about)}
    metadata = {"creationTimestamp": now, **{name: value for name, value in named.items() if value}}
    tree = {
        "kind": context.resource.kind,
        "apiVersion": context.resource.api_version,
        "metadata": metadata,
    }
    return StoredObject.without_revision(canonical({**tree, "timestamp": now, "window": WINDOW, **content}))


def _list(context: RequestContext, items: Sequence[StoredObject]) -> ListResult:
    resource = context.resource
    return ListResult(api_version=resource.api_version, kind=resource.list_kind, items=items, metadata={})
