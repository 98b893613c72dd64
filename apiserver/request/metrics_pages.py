"""Serve custom.metrics.k8s.io and external.metrics.k8s.io, whose resources are named after metrics."""

from collections.abc import Callable, Container

import orjson

from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import Details, MethodNotSupported, NotFound
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.metrics.resource_metrics import CUSTOM, EXTERNAL
from mockube.apiserver.registry.custom_metrics import CustomMetrics, resource_list
from mockube.apiserver.request.health import Page, Pages
from mockube.apiserver.request.request import Request
from mockube.apiserver.request.response import Response, json_body, text_response
from mockube.apiserver.request.routes import NOT_ALLOWED
from mockube.apiserver.wire.negotiation import MediaType


class MetricsPages:
    def __init__(self, metrics: CustomMetrics) -> None:
        self._metrics = metrics

    def versions(self) -> Pages:
        """Return the discovery document of each version."""

        def make_page(group: str, version: str) -> Page:
            async def page(request: Request) -> Response:
                return _json(request, self._resources(group, version))

            return page

        return {
            f"/apis/{group.name}/{version}": make_page(group.name, version)
            for group in (CUSTOM, EXTERNAL)
            for version in group.versions
        }

    def groups(self, replaced: Callable[[], Container[str]]) -> Pages:
        """Return the handler of the resource paths of each group; it returns 404 if another server replaces the group."""

        def unless_replaced(group: str, page: Page) -> Page:
            async def answer(request: Request) -> Response:
                if group in replaced():
                    return text_response("404 page not found\n", 404)
                return await page(request)

            return answer

        pages = {CUSTOM.name: self._custom, EXTERNAL.name: self._external}
        return {group: unless_replaced(group, page) for group, page in pages.items()}

    def _resources(self, group: str, version: str) -> Tree:
        if group == EXTERNAL.name:
            kind = "ExternalMetricValueList"
            names = [
                {"name": name, "namespaced": True, "kind": kind} for name in self._metrics.external_names()
            ]
        else:
            names = [
                {"name": name, "namespaced": namespaced, "kind": "MetricValueList"}
                for name, namespaced in self._metrics.metric_names()
            ]
        return resource_list(version, group, names)

    async def _custom(self, request: Request) -> Response:
        info, selector = request.info, _parameter(request, "labelSelector")
        group_resource, name, metric = info.resource, info.name, info.subresource
        if group_resource == "metrics" and info.namespace and name and not metric:
            # A metric of the namespace itself.
            group_resource, name, metric = "namespaces", info.namespace, name
        if not (group_resource and name and metric) or info.rest or info.version not in CUSTOM.versions:
            raise NotFound("the server could not find the requested resource", Details())
        resource, _, group = group_resource.partition(".")
        about = GroupResource(group, resource)
        values = await self._metrics.values(info.version, about, info.namespace, name, metric, selector)
        return _json(request, values)

    async def _external(self, request: Request) -> Response:
        info = request.info
        if not info.namespace or info.name or info.version not in EXTERNAL.versions:
            raise NotFound("the server could not find the requested resource", Details())
        selector = _parameter(request, "labelSelector")
        return _json(request, self._metrics.external(info.namespace, info.resource, selector))


def _parameter(request: Request, name: str) -> str:
    return request.query.get(name, ("",))[0]


def _json(request: Request, tree: Tree) -> Response:
    if request.method not in ("GET", "HEAD"):
        raise MethodNotSupported(NOT_ALLOWED, Details())
    return Response(200, json_body([orjson.dumps(tree)], pretty=request.wants_pretty), MediaType.JSON.value)
