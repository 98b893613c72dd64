"""The verbs of metrics.k8s.io: what the pods and nodes in the watch cache use, computed for each request."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from mockube.apimachinery import conditions, meta, status
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.quota.amounts import Amounts, to_tree
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.usage.expressions import Expressions
from mockube.apimachinery.usage.usage import containers_usage, total
from mockube.apiserver.kinds.metrics.resource_metrics import GROUP_NAME, NODE_METRICS, POD_METRICS
from mockube.apiserver.long_work import yield_to_loop
from mockube.apiserver.registry.call import Call, ListResult, ObjectResult, list_options
from mockube.apiserver.registry.registry import OF_WRONG_TYPES, Backend, OwnVerbs
from mockube.apiserver.registry.selection import selection
from mockube.apiserver.storage.stored import Stored, canonical

WINDOW: Final = "15s"
"""Over which usage is measured: metrics-server's resolution."""
MEASURED_RESOURCES: Final = ("cpu", "memory")
SLICE: Final = 50
"""Pods that are measured before others have their turn."""
PODS, NODES = GroupResource("", "pods"), GroupResource("", "nodes")
POD_USAGES, NODE_USAGES = GroupResource(GROUP_NAME, "pods"), GroupResource(GROUP_NAME, "nodes")
RESOURCE_USAGES = GroupResource("kwok.x-k8s.io", "resourceusages")
CLUSTER_RESOURCE_USAGES = GroupResource("kwok.x-k8s.io", "clusterresourceusages")


class StoredUsages:
    """kwok's objects, where their kinds are defined; read once for each request."""

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


class Measure:
    """What pods use now; for one request."""

    def __init__(self, backend: Backend, expressions: Expressions) -> None:
        self._backend = backend
        self._expressions = expressions
        self._usages = StoredUsages(backend)
        self._nodes: dict[str, ReadOnlyTree | None] = {}

    def pod(self, pod: ReadOnlyTree) -> Mapping[str, Amounts]:
        """Return usage by container; none for a pod that does not run, or whose node is not ready."""
        node = self.ready_node((pod.get("spec") or {}).get("nodeName") or "")
        return {} if node is None else containers_usage(pod, node, self._usages, self._expressions)

    def ready_node(self, name: str) -> ReadOnlyTree | None:
        if name not in self._nodes:
            stored = self._backend.find_cached(NODES, "", name) if name else None
            node = None if stored is None else stored.tree()
            is_ready = node is not None and conditions.is_true(node, "Ready")
            self._nodes[name] = node if is_ready else None
        return self._nodes[name]


class ResourceMetrics:
    def __init__(self, expressions: Expressions) -> None:
        self._expressions = expressions

    def verbs(self) -> OwnVerbs:
        return {
            (POD_USAGES, ""): {"get": self.get_pod, "list": self.list_pods},
            (NODE_USAGES, ""): {"get": self.get_node, "list": self.list_nodes},
        }

    async def get_pod(self, backend: Backend, call: Call) -> ObjectResult:
        stored = backend.find_cached(PODS, call.namespace, call.name)
        if stored is None:
            raise status.not_found(PODS, call.name)
        metrics = _pod_metrics(backend, Measure(backend, self._expressions), stored)
        if metrics is None:
            resource = GroupResource(GROUP_NAME, "podmetrics")
            raise status.not_found(resource, f"{call.namespace}/{call.name}")
        return ObjectResult(stored=metrics)

    async def list_pods(self, backend: Backend, call: Call) -> ListResult:
        options, measure = list_options(call), Measure(backend, self._expressions)
        matches = selection(call.resource, options.label_selector, options.field_selector).matches
        items = []
        for index, stored in enumerate(backend.list_cached(PODS, call.namespace)):
            if index % SLICE == SLICE - 1:
                await yield_to_loop()
            if matches is None or matches(stored):
                metrics = _pod_metrics(backend, measure, stored)
                items += [] if metrics is None else [metrics]
        return _list(call, items)

    async def get_node(self, backend: Backend, call: Call) -> ObjectResult:
        if backend.find_cached(NODES, "", call.name) is None:
            raise status.not_found(NODES, call.name)
        measure = Measure(backend, self._expressions)
        node = measure.ready_node(call.name)
        if node is None:
            raise status.not_found(GroupResource(GROUP_NAME, "nodemetrics"), call.name)
        used = await self._used_on_nodes(backend, measure, {call.name})
        return ObjectResult(stored=_node_metrics(backend, node, used.get(call.name, {})))

    async def list_nodes(self, backend: Backend, call: Call) -> ListResult:
        options, measure = list_options(call), Measure(backend, self._expressions)
        matches = selection(call.resource, options.label_selector, options.field_selector).matches
        chosen = [stored for stored in backend.list_cached(NODES) if matches is None or matches(stored)]
        nodes = [
            node for stored in chosen if (node := measure.ready_node(meta.name(stored.tree()))) is not None
        ]
        used = await self._used_on_nodes(backend, measure, {meta.name(node) for node in nodes})
        return _list(call, [_node_metrics(backend, node, used.get(meta.name(node), {})) for node in nodes])

    async def _used_on_nodes(
        self, backend: Backend, measure: Measure, names: set[str]
    ) -> Mapping[str, Amounts]:
        """What the pods of these nodes use together."""
        used: dict[str, Amounts] = {}
        for index, stored in enumerate(backend.list_cached(PODS)):
            if index % SLICE == SLICE - 1:
                await yield_to_loop()
            pod = stored.tree()
            node = (pod.get("spec") or {}).get("nodeName") or ""
            if node in names:
                used[node] = total([used.get(node, {}), *_try_to_measure(backend, measure, stored).values()])
        return used


def _try_to_measure(backend: Backend, measure: Measure, stored: Stored) -> Mapping[str, Amounts]:
    """A pod whose fields have other types than a pod's uses nothing."""
    try:
        return measure.pod(stored.tree())
    except OF_WRONG_TYPES as error:
        backend.watch_cache.report_malformed(stored, error)
        return {}


def _pod_metrics(backend: Backend, measure: Measure, stored: Stored) -> Stored | None:
    used = _try_to_measure(backend, measure, stored)
    if not used:
        return None
    containers = [{"name": name, "usage": _usage_tree(amounts)} for name, amounts in used.items()]
    return _as_stored(backend, POD_METRICS.resource.kind, stored.tree(), {"containers": containers})


def _node_metrics(backend: Backend, node: ReadOnlyTree, used: Amounts) -> Stored:
    usage = {"cpu": "0", "memory": "0", **_usage_tree(used)}
    return _as_stored(backend, NODE_METRICS.resource.kind, node, {"usage": usage})


def _usage_tree(amounts: Amounts) -> dict[str, str]:
    return to_tree({name: amount for name, amount in amounts.items() if name in MEASURED_RESOURCES})


def _as_stored(backend: Backend, kind: str, about: ReadOnlyTree, content: Mapping[str, Any]) -> Stored:
    now = format_time(backend.clock.now())
    named = {"name": meta.name(about), "namespace": meta.namespace(about), "labels": meta.labels(about)}
    metadata = {"creationTimestamp": now, **{name: value for name, value in named.items() if value}}
    tree = {"kind": kind, "apiVersion": POD_METRICS.resource.api_version, "metadata": metadata}
    return Stored.without_revision(canonical({**tree, "timestamp": now, "window": WINDOW, **content}))


def _list(call: Call, items: Sequence[Stored]) -> ListResult:
    resource = call.resource
    return ListResult(api_version=resource.api_version, kind=resource.list_kind, items=items, metadata={})
