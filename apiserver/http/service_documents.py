"""Fetches the discovery and OpenAPI documents of other API servers.

Their resources are requested as kube-aggregator does: first in the document of all groups, which is fetched once for all
versions that the same Service serves, then, from a server without that document, in the list of the one version.
"""

import asyncio
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, NamedTuple, TypeAlias

from mockube.apimachinery.tree import Tree
from mockube.apiserver.aggregation.availability import Unreachable
from mockube.apiserver.aggregation.discovery import (
    ACCEPT,
    DiscoveredVersions,
    is_aggregated,
    resources_of,
    versions_of,
)
from mockube.apiserver.aggregation.remotes import Documents, Remote, index_of
from mockube.apiserver.http.service_proxy import Fetched, ServiceProxy
from mockube.apiserver.user import User

LOG: Final = logging.getLogger(__name__)
CHECKER: Final = User(name="system:kube-aggregator", groups=("system:masters",))
LISTER: Final = User(name=CHECKER.name)
"""Upstream requests the list of one version without a group."""
MOST_CACHED: Final = 100
"""Servers whose document of all groups is kept, to request it again only after it has changed."""
JSON: Final = {"Accept": "application/json"}

_Server: TypeAlias = tuple[tuple[str, str, int], bytes, bool]


class _Discovery(NamedTuple):
    """The document of all groups of a server; `order` is the number of the last inspection when it was requested."""

    versions: DiscoveredVersions
    etag: str
    order: int


class ServiceDocuments:
    def __init__(self, proxy: ServiceProxy) -> None:
        self._proxy = proxy
        self._cached: dict[_Server, _Discovery] = {}
        self._locks: dict[_Server, asyncio.Lock] = {}
        self._inspections = 0

    async def inspect(self, remote: Remote) -> Documents:
        """Fetch the documents of an available server, or raise `Unreachable`."""
        self._inspections += 1
        number = self._inspections
        check = await self._proxy.fetch(remote, remote.path, CHECKER, JSON)
        if not HTTPStatus.OK <= check.code < HTTPStatus.MULTIPLE_CHOICES:
            problem = (
                f"failing or missing response from {check.url}: bad status from {check.url}: {check.code}"
            )
            raise Unreachable(problem)
        documents = Documents()
        try:
            documents.resources = await self._resources(remote, number)
        except (Unreachable, ValueError) as error:
            LOG.info("The resources of %s could not be fetched: %s", remote.name, error)
        documents.index = await self._index(remote)
        documents.v2 = await self._document(remote, "/openapi/v2")
        return documents

    async def _resources(self, remote: Remote, number: int) -> list[Tree]:
        """Return what a server lists for a version, since an inspection began."""
        server = remote.service, remote.authority, remote.is_insecure
        async with self._locks.setdefault(server, asyncio.Lock()):
            discovery = self._cached.get(server)
            if discovery is None or discovery.order < number:
                discovery = await self._discover(remote, self._cached.pop(server, None))
            if discovery is not None:
                self._cached[server] = discovery
                if len(self._cached) > MOST_CACHED:
                    del self._cached[next(iter(self._cached))]
        if discovery is not None:
            return [*discovery.versions.get(remote.served, ())]
        response = await self._proxy.fetch(remote, remote.path, LISTER, JSON)
        if response.code != HTTPStatus.OK:
            raise Unreachable(f"bad status from {response.url}: {response.code}")
        return [*await asyncio.to_thread(resources_of, response.data)]

    async def _discover(self, remote: Remote, cached: _Discovery | None) -> _Discovery | None:
        """Return the document of all groups; None if a server has none."""
        order = self._inspections
        headers = {"Accept": ACCEPT} | ({"If-None-Match": cached.etag} if cached and cached.etag else {})
        response = await self._proxy.fetch(remote, "/apis", CHECKER, headers)
        if response.code == HTTPStatus.NOT_MODIFIED and cached is not None:
            return cached._replace(order=order)
        if response.code == HTTPStatus.SERVICE_UNAVAILABLE:
            raise Unreachable(f"bad status from {response.url}: {response.code}")
        if response.code != HTTPStatus.OK or not is_aggregated(_header(response, "Content-Type")):
            return None
        versions = await asyncio.to_thread(versions_of, response.data)
        return _Discovery(versions, _header(response, "ETag"), order)

    async def _index(self, remote: Remote) -> Mapping[str, object]:
        index = await self._document(remote, "/openapi/v3")
        try:
            return index_of(index, remote) if index else {}
        except (ValueError, KeyError, TypeError):
            return {}

    async def _document(self, remote: Remote, path: str) -> bytes:
        try:
            response = await self._proxy.fetch(remote, path, CHECKER, JSON)
        except Unreachable:
            return b""
        return response.data if response.code == HTTPStatus.OK else b""


def _header(response: Fetched, name: str) -> str:
    return response.headers.get(name, "")
