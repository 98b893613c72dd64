"""Serve custom.metrics.k8s.io and external.metrics.k8s.io, whose resources are named after metrics."""

from collections.abc import Callable, Container, Iterator

import orjson
from msgspec.structs import replace

from mockube.apimachinery.groups import GroupResource, GroupVersion
from mockube.apimachinery.status import Details, MethodNotSupported, NotFound
from mockube.apimachinery.tree import Tree
from mockube.apimachinery.usage.expressions import Expressions
from mockube.apiserver.aggregation.discovery import resources_of
from mockube.apiserver.aggregation.merging import OtherGroups
from mockube.apiserver.aggregation.remotes import RemoteAPIService, RemoteDocuments
from mockube.apiserver.bootstrap.apiservices import GROUP_PRIORITY, VERSION_PRIORITY
from mockube.apiserver.kinds.kind import Group
from mockube.apiserver.kinds.metrics.resource_metrics import CUSTOM, EXTERNAL
from mockube.apiserver.registry.custom_metrics import CustomMetrics, resource_list
from mockube.apiserver.registry.metric_names import MetricNames
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.wire.negotiation import FORMATS, MediaType

from .page import Page, Pages
from .pages import document
from .request import Request
from .response import Response, json_body, text_response
from .routes import NOT_ALLOWED, get_only


class MetricsPages:
    """A version of a group is served while the group has metrics, unless another server serves that version."""

    def __init__(
        self,
        backend: Backend,
        expressions: Expressions,
        served_elsewhere: Callable[[], Container[GroupVersion]],
    ) -> None:
        self._metrics = CustomMetrics(backend, expressions)
        self._names = names = MetricNames(backend, self._metrics)
        self._served_elsewhere = served_elsewhere
        self.refresh, self.on_change = names.refresh, names.on_change
        self.handle_definition = names.handle_definition

    def versions(self) -> Pages:
        """Return the discovery document of each served version."""
        return {
            f"/apis/{group.name}/{version}": get_only(
                document(self._resource_list(group, version)), consumed=FORMATS
            )
            for group, version in self._served_versions()
        }

    def add_to(self, others: OtherGroups) -> OtherGroups:
        """Add the groups to those of other servers: discovery has them as if an adapter served them."""
        remotes, documents = [*others.remotes], {**others.documents}
        for group, version in self._served_versions():
            served, name = GroupVersion(group.name, version), f"{version}.{group.name}"
            priority = GROUP_PRIORITY[group.name], VERSION_PRIORITY[served]
            remotes.append(RemoteAPIService(name=name, served=served, service=("", "", 0), priority=priority))
            resources = resources_of(orjson.dumps(self._resource_list(group, version)))
            documents[name] = RemoteDocuments(resources=resources)
        return replace(others, remotes=remotes, documents=documents)

    def groups(self) -> Pages:
        """Return the handler of the resource paths of each group; it returns 404 while the group is not served."""

        def if_served(group: Group, page: Page) -> Page:
            async def answer(request: Request) -> Response:
                if group not in (served for served, _ in self._served_versions()):
                    return text_response("404 page not found\n", 404)
                return await page(request)

            return answer

        return {
            CUSTOM.name: if_served(CUSTOM, self._custom),
            EXTERNAL.name: if_served(EXTERNAL, self._external),
        }

    def _served_versions(self) -> Iterator[tuple[Group, str]]:
        entries, elsewhere = self._names.entries, self._served_elsewhere()
        for group in (CUSTOM, EXTERNAL):
            if group.name in entries:
                yield from (
                    (group, version)
                    for version in group.versions
                    if GroupVersion(group.name, version) not in elsewhere
                )

    def _resource_list(self, group: Group, version: str) -> Tree:
        return resource_list(version, group.name, self._names.entries[group.name])

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


class NoMetricsPages:
    """The pages of a server that simulates no metrics."""

    def __init__(self) -> None:
        self.on_change: list[Callable[[], None]] = []

    def refresh(self) -> None:
        """Look for no new metrics."""

    def versions(self) -> Pages:
        return {}

    def add_to(self, others: OtherGroups) -> OtherGroups:
        return others

    def groups(self) -> Pages:
        return {}


def _parameter(request: Request, name: str) -> str:
    return request.query.get(name, ("",))[0]


def _json(request: Request, tree: Tree) -> Response:
    if request.method not in ("GET", "HEAD"):
        raise MethodNotSupported(NOT_ALLOWED, Details())
    return Response(200, json_body([orjson.dumps(tree)], pretty=request.wants_pretty), MediaType.JSON.value)
