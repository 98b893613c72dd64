"""custom.metrics.k8s.io and external.metrics.k8s.io: the values of kwok's CustomMetrics, ExternalMetrics and usages.

A metric of an object is the value that a CustomMetric gives for its kind, or, of a pod, the amount of a ResourceUsage that is
neither CPU nor memory. An ExternalMetric has its own labels as those of its metric.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from mockube.apimachinery import labels, meta, quantity
from mockube.apimachinery.groups import PODS, GroupResource, GroupVersion
from mockube.apimachinery.labels import Selector, SelectorError
from mockube.apimachinery.status import BadRequest, NotFound
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apimachinery.usage.expressions import Expressions
from mockube.apimachinery.usage.usage import is_selected, total
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.metrics.resource_metrics import CUSTOM, EXTERNAL
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.component_base.loop import yield_to_loop

from . import resource_metrics
from .registry import WRONG_TYPE_ERRORS, Backend
from .resource_metrics import UsageMeter

CUSTOM_METRICS: Final = GroupResource("kwok.x-k8s.io", "custommetrics")
EXTERNAL_METRICS: Final = GroupResource("kwok.x-k8s.io", "externalmetrics")
ALL: Final = "*"


class CustomMetrics:
    def __init__(self, backend: Backend, expressions: Expressions) -> None:
        self._backend = backend
        self._expressions = expressions

    async def values(
        self, version: str, resource: GroupResource, namespace: str, name: str, metric: str, selector: str
    ) -> Tree:
        """Return the MetricValueList of one object, or of all objects that a label selector matches."""
        row = self._backend.rows.get(resource)
        chosen = None if row is None else self._objects(row, namespace, name, _selector(selector))
        measure = UsageMeter(self._backend, self._expressions)
        items = []
        for index, stored in enumerate(chosen or ()):
            if index % resource_metrics.SLICE == resource_metrics.SLICE - 1:
                await yield_to_loop()
            value = None if row is None else self._value(row, stored, metric, measure)
            if row is not None and value is not None:
                items.append(self._item(version, row, stored.tree(), metric, value))
        if not items and name != ALL:
            of = f"{resource} {name}"
            raise NotFound(f"the server could not find the metric {metric} for {of}")
        return _list("MetricValueList", f"{CUSTOM.name}/{version}", items)

    def external(self, namespace: str, metric: str, selector: str) -> Tree:
        """Return the ExternalMetricValueList of a namespace."""
        now, matches = format_time(self._backend.clock.now()), _selector(selector).matches
        items = [
            {"metricName": metric, "metricLabels": meta.labels(tree), "timestamp": now, "value": value}
            for tree in self._all(EXTERNAL_METRICS, namespace)
            if _name_of(tree) == metric and matches(meta.labels(tree))
            for value in _values((tree.get("spec") or {}).get("metrics") or ())
        ]
        return _list("ExternalMetricValueList", f"{EXTERNAL.name}/{EXTERNAL.versions[0]}", items)

    def metric_names(self) -> Iterator[tuple[str, bool]]:
        """Yield the names of metrics as in discovery, such as `pods/requests`, and whether they are namespaced."""
        namespaced_by_name: dict[str, bool] = {}
        kinds = {(row.group, row.kind): row for row in self._backend.rows.values()}
        for tree in self._all(CUSTOM_METRICS):
            reference = (tree.get("spec") or {}).get("resourceRef") or {}
            row = kinds.get((_group_of(reference), reference.get("kind") or ""))
            if row is not None:
                names = [metric["name"] for metric in tree["spec"].get("metrics") or ()]
                namespaced_by_name |= {f"{row.group_resource}/{name}": row.namespaced for name in names}
        for resource in (resource_metrics.RESOURCE_USAGES, resource_metrics.CLUSTER_RESOURCE_USAGES):
            for tree in self._all(resource):
                for rule in (tree.get("spec") or {}).get("usages") or ():
                    namespaced_by_name |= {
                        f"pods/{name}": True
                        for name in rule.get("usage") or ()
                        if name not in resource_metrics.MEASURED_RESOURCES
                    }
        yield from sorted(namespaced_by_name.items())

    def external_names(self) -> list[str]:
        return sorted({_name_of(tree) for tree in self._all(EXTERNAL_METRICS)})

    def _objects(
        self, row: Resource, namespace: str, name: str, selector: Selector
    ) -> Iterable[StoredObject]:
        scope = namespace if row.namespaced else ""
        if name != ALL:
            stored = self._backend.find_cached(row.group_resource, scope, name)
            return () if stored is None else (stored,)
        objects = self._backend.list_cached(row.group_resource, scope)
        return [stored for stored in objects if selector.matches(stored.labels)]

    def _value(self, row: Resource, stored: StoredObject, metric: str, measure: UsageMeter) -> str | None:
        tree = stored.tree()
        for custom in self._all(CUSTOM_METRICS):
            spec = custom.get("spec") or {}
            reference = spec.get("resourceRef") or {}
            is_of_kind = (_group_of(reference), reference.get("kind")) == (row.group, row.kind)
            if is_of_kind and is_selected(tree, spec.get("selector") or {}):
                named = [entry for entry in spec.get("metrics") or () if entry["name"] == metric]
                if values := _values(named):
                    return values[0]
        if row.group_resource != PODS or metric in resource_metrics.MEASURED_RESOURCES:
            return None
        try:
            used = total(measure.pod(tree).values())
        except WRONG_TYPE_ERRORS as error:
            self._backend.watch_cache.report_malformed(stored, error)
            return None
        return str(used[metric]) if metric in used else None

    def _item(self, version: str, row: Resource, tree: ReadOnlyTree, metric: str, value: str) -> Tree:
        described = {"kind": row.kind, "namespace": meta.namespace(tree), "name": meta.name(tree)}
        described["apiVersion"] = f"{row.group}/{row.version}"
        about = {"metricName": metric} if version == "v1beta1" else {"metric": {"name": metric}}
        now = format_time(self._backend.clock.now())
        return {
            "describedObject": {field: text for field, text in described.items() if text},
            **about,
            "timestamp": now,
            "value": value,
        }

    def _all(self, resource: GroupResource, namespace: str = "") -> Iterable[ReadOnlyTree]:
        if resource in self._backend.rows:
            for stored in self._backend.list_cached(resource, namespace):
                try:
                    yield stored.tree()
                except WRONG_TYPE_ERRORS as error:
                    self._backend.watch_cache.report_malformed(stored, error)


def _selector(text: str) -> Selector:
    try:
        return labels.parse(text)
    except SelectorError as error:
        raise BadRequest(f"unable to parse label selector: {error}") from error


def _group_of(reference: ReadOnlyTree) -> str:
    """Return the group of a reference: kwok writes the version in place of the core group."""
    group = str(reference.get("apiGroup") or "")
    if group == "v1":
        return ""
    return GroupVersion.parse(group).group if group.count("/") == 1 else group


def _name_of(external: ReadOnlyTree) -> str:
    return str((external.get("spec") or {}).get("name") or meta.name(external))


def _values(metrics: Iterable[ReadOnlyTree]) -> list[str]:
    return [str(quantity.from_json(metric["value"])) for metric in metrics if metric.get("value") is not None]


def _list(kind: str, api_version: str, items: list[Tree]) -> Tree:
    return {"kind": kind, "apiVersion": api_version, "metadata": {}, "items": items}


def resource_list(version: str, group: str, names: Iterable[Mapping[str, Any]]) -> Tree:
    """Return the discovery document of a group of metrics."""
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}",
        "resources": [{"singularName": "", "verbs": ["get"], **name} for name in names],
    }
