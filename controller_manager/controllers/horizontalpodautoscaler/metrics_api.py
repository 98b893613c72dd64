"""The client of the metrics APIs: metrics.k8s.io, custom.metrics.k8s.io and external.metrics.k8s.io.

The messages of errors are those of upstream's clients.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final
from urllib.parse import quote, urlencode

from mockube.apimachinery import quantity
from mockube.apimachinery.durations import parse_duration
from mockube.apimachinery.groups import GroupKind, GroupResource, GroupVersion
from mockube.apimachinery.quantity import MILLI
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.verbs import Client, RequestedObject
from mockube.client.wire import NoResponse

from .replicas import PodMetric, Samples
from .targets import RestMapper, UnknownKindError

RESOURCE_METRICS: Final = GroupVersion("metrics.k8s.io", "v1beta1")
CUSTOM_METRICS: Final = "custom.metrics.k8s.io"
CUSTOM_VERSIONS: Final = ("v1beta2", "v1beta1")
"""The versions that upstream can read, the preferred one first."""
EXTERNAL_METRICS: Final = GroupVersion("external.metrics.k8s.io", "v1beta1")
WINDOW: Final = timedelta(minutes=1)
"""The window of a metric that has none."""
_NAMESPACE: Final = GroupKind("", "Namespace")


class MetricsError(Exception):
    """A metric cannot be read."""


class MetricsApi:
    def __init__(self, client: Client, rest_mapper: RestMapper) -> None:
        self._client = client
        self._rest_mapper = rest_mapper

    async def of_resource(self, namespace: str, selector: str, resource: str, container: str) -> Samples:
        """Return the pods' usage of a resource, by one container or by all."""
        path = f"/apis/{RESOURCE_METRICS}/namespaces/{namespace}/pods"
        subject = RequestedObject(GroupResource(RESOURCE_METRICS.group, "pods"))
        items = await self._items("resource", path, {"labelSelector": selector}, subject)
        return dict(_resource_samples(items, resource, container))

    async def of_pods(self, namespace: str, selector: str, metric: str, metric_selector: str) -> Samples:
        """Return a custom metric of pods."""
        path = f"{await self._custom_path()}/namespaces/{namespace}/pods/*/{metric}"
        query = {"labelSelector": selector, "metricLabelSelector": metric_selector}
        subject = RequestedObject(GroupResource(CUSTOM_METRICS, "pods"), "*")
        items = await self._items("custom", path, query, subject)
        return {item["describedObject"]["name"]: _sample(item) for item in items}

    async def of_object(
        self, namespace: str, described: ReadOnlyTree, metric: str, metric_selector: str
    ) -> int:
        """Return a custom metric of an object, in thousandths."""
        root = await self._custom_path()
        version = GroupVersion.parse(described.get("apiVersion") or "")
        kind = GroupKind(version.group, described["kind"])
        if kind == _NAMESPACE:
            resource, name = "metrics", metric
            rest = f"metrics/{metric}"
        else:
            resource, name = await self._resource_of(kind), described["name"]
            rest = f"{resource}/{name}/{metric}"
        path = f"{root}/namespaces/{namespace}/{rest}"
        subject = RequestedObject(GroupResource(CUSTOM_METRICS, resource), name)
        answer = await self._get("custom", path, {"metricLabelSelector": metric_selector}, subject)
        items = list(answer.get("items") or [])
        if len(items) != 1:
            raise MetricsError(
                "unable to fetch metrics from custom metrics API: the custom metrics API server returned "
                f"{len(items)} results when we asked for exactly one"
            )
        return milli_value(items[0].get("value"))

    async def of_external(self, namespace: str, metric: str, metric_selector: str) -> list[int]:
        """Return all values of an external metric that the selector matches, in thousandths."""
        path = f"/apis/{EXTERNAL_METRICS}/namespaces/{namespace}/{metric}"
        subject = RequestedObject(GroupResource(EXTERNAL_METRICS.group, metric))
        items = await self._items("external", path, {"labelSelector": metric_selector}, subject)
        return [milli_value(item.get("value")) for item in items]

    async def _custom_path(self) -> str:
        """Return the path of the version of the custom metrics API: of the readable ones, the server's preferred one."""
        try:
            versions = await self._rest_mapper.versions(CUSTOM_METRICS)
        except (ApiError, NoResponse) as error:
            raise MetricsError(f"unable to fetch metrics from custom metrics API: {error}") from error
        readable = [version for version in versions if version in CUSTOM_VERSIONS]
        if not readable:
            raise MetricsError(
                "unable to fetch metrics from custom metrics API: "
                f"no custom metrics API ({CUSTOM_METRICS}) registered"
            )
        return f"/apis/{CUSTOM_METRICS}/{readable[0]}"

    async def _resource_of(self, kind: GroupKind) -> str:
        try:
            return str((await self._rest_mapper.find(kind)).group_resource)
        except (UnknownKindError, ApiError, NoResponse) as error:
            raise MetricsError(
                "unable to fetch metrics from custom metrics API: "
                f"unable to map kind {kind} to resource: {error}"
            ) from error

    async def _items(
        self, api: str, path: str, query: Mapping[str, str], subject: RequestedObject
    ) -> list[ReadOnlyTree]:
        items = (await self._get(api, path, query, subject)).get("items")
        if not items:
            raise MetricsError(f"no metrics returned from {api} metrics API")
        return list(items)

    async def _get(
        self, api: str, path: str, query: Mapping[str, str], subject: RequestedObject
    ) -> ReadOnlyTree:
        parameters = {name: value for name, value in query.items() if value}
        target = quote(path, safe="/*") + (f"?{urlencode(parameters)}" if parameters else "")
        try:
            answer: ReadOnlyTree = await self._client.raw("GET", target, about=subject)
        except (ApiError, NoResponse) as error:
            raise MetricsError(f"unable to fetch metrics from {api} metrics API: {error}") from error
        return answer


def _resource_samples(
    items: list[ReadOnlyTree], resource: str, container: str
) -> Iterator[tuple[str, PodMetric]]:
    """Yield the sample of each pod whose containers all have one; with `container`, only that one counts."""
    for item in items:
        containers = [entry for entry in item.get("containers") or () if container in ("", entry["name"])][
            : 1 if container else None
        ]
        usages = [(entry.get("usage") or {}).get(resource) for entry in containers]
        if usages and None not in usages:
            window = timedelta(microseconds=parse_duration(item.get("window") or "0s") // 1000)
            yield (
                item["metadata"]["name"],
                PodMetric(sum(map(milli_value, usages)), parse_time(item["timestamp"]), window),
            )


def _sample(item: ReadOnlyTree) -> PodMetric:
    seconds = item.get("windowSeconds", item.get("window"))
    window = WINDOW if seconds is None else timedelta(seconds=seconds)
    return PodMetric(milli_value(item.get("value")), parse_time(item["timestamp"]), window)


def milli_value(value: object) -> int:
    """Return the amount of a quantity in thousandths."""
    return quantity.from_json(value).scaled_value(MILLI)
