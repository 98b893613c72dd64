"""An API server of one minor in this process, without a socket, that is thrown away after the check."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Any, Final
from urllib.parse import quote, urlencode

import orjson
from msgspec import Struct
from multidict import CIMultiDict

from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.randomness import SystemRandom
from mockube.apimachinery.schema.model import SchemaType
from mockube.apimachinery.timestamps import format_time
from mockube.apiserver.app import ApiServer
from mockube.apiserver.authn.chain import Trust
from mockube.apiserver.bootstrap.cluster import ServerProperties, cluster_objects
from mockube.apiserver.bootstrap.ensure import ensure
from mockube.apiserver.config.command_line import Config, parse
from mockube.apiserver.customresources.custom_version import CustomVersion
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.resource_config import REGISTERED
from mockube.apiserver.parts.environment import ServerEnvironment
from mockube.apiserver.request.request import Request
from mockube.apiserver.user import AUTHENTICATED, User
from mockube.client import wire
from mockube.component_base.clock import RealClock
from mockube.embedded.direct import DirectClient
from mockube.etcd.embedded.store import MemoryStore

CREATE: Final = "application/json"
MERGE: Final = "application/merge-patch+json"
FIELD_MANAGER: Final = "mockube-lint"
_TOKEN: Final = "lint"  # noqa: S105 - no other process can reach the server
_USER: Final = User(name="lint", groups=("system:masters", AUTHENTICATED))
_SECONDS: Final = 60.0


class Answer(Struct, frozen=True):
    """A response: its status, the object or Status in it, and its warnings."""

    status: int
    tree: Mapping[str, Any]
    warnings: Sequence[str] = ()

    @property
    def is_success(self) -> bool:
        return self.status < 300


class SharedParts(Struct, frozen=True):
    """What all servers share, because it takes long to make."""

    trust: Trust
    """The accepted credentials, with a generated key."""
    custom_versions: dict[tuple[str, bytes], CustomVersion]
    """The versions of custom resources whose functions are built, by name and schema."""

    @classmethod
    def make(cls) -> "SharedParts":
        return cls(Trust(tokens={_TOKEN: _USER}), {})


class MinorServer:
    def __init__(self, minor: str, server: ApiServer, shared: SharedParts) -> None:
        self.minor = minor
        self._server = server
        self._shared = shared

    @cached_property
    def _built_in(self) -> Mapping[tuple[str, str], Resource]:
        """The kinds of Kubernetes and of packs, by apiVersion and kind."""
        return {(row.api_version, row.kind): row for row in self._server.catalog.rows.values()}

    @property
    def pack_kinds(self) -> Collection[GroupKind]:
        return {row.group_kind for row in self._built_in.values() if row.group not in REGISTERED}

    def resource_of(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource of a kind whose objects can be created; None if there is none."""
        row = self._built_in.get((api_version, kind))
        if row is None:
            custom = self._server.catalog.custom_kinds.get((api_version, kind))
            row = custom.row if custom is not None and custom.served else None
        return row if row is not None and "create" in row.verbs else None

    def schema_of(self, api_version: str, kind: str) -> SchemaType | None:
        return self._server.registry.scheme.schemas.kind(api_version, kind)

    async def create(self, row: Resource, namespace: str, body: bytes, *, dry_run: bool) -> Answer:
        return await self._send("POST", _path(row, namespace), body, CREATE, dry_run=dry_run)

    async def patch(self, row: Resource, namespace: str, name: str, body: bytes) -> Answer:
        """Merge an object into an existing one as a dry run, as `kubectl apply` does."""
        path = f"{_path(row, namespace)}/{quote(name, safe='')}"
        return await self._send("PATCH", path, body, MERGE, dry_run=True)

    async def wait_definitions(self) -> None:
        """Wait until all created definitions are served."""
        await self._server.wait_definitions_served()
        for custom in self._server.catalog.custom_kinds.values():
            built = self._shared.custom_versions.get(_key(custom))
            if built is not None and not custom.is_prepared:
                custom.prepare_as(built)

    def share_custom_versions(self) -> None:
        """Let later servers use the functions that this one has built for custom resources."""
        for custom in self._server.catalog.custom_kinds.values():
            if custom.is_prepared:
                self._shared.custom_versions[_key(custom)] = custom

    async def _send(
        self,
        method: str,
        path: str,
        body: bytes,
        content_type: str,
        *,
        dry_run: bool,
    ) -> Answer:
        options = {"fieldValidation": "Warn", "fieldManager": FIELD_MANAGER}
        query = urlencode(options | ({"dryRun": "All"} if dry_run else {}))
        headers = CIMultiDict(
            {"Host": "localhost", "Authorization": f"Bearer {_TOKEN}", "Content-Type": content_type}
        )
        client = DirectClient(
            wire.Request(
                method=method, target=f"{path}?{query}", headers=headers, body=body, timeout=_SECONDS
            )
        )
        response = await self._server.handler.handle(Request(method, path, query, headers, client))
        return Answer(response.status, _tree(response.body), tuple(dict.fromkeys(response.warnings)))


def _tree(body: bytes) -> Mapping[str, Any]:
    """Return the object of a response; the errors of some filters are texts."""
    try:
        tree: Mapping[str, Any] = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {"message": body.decode(errors="replace").strip()}
    return tree


def _path(row: Resource, namespace: str) -> str:
    prefix = f"/apis/{row.api_version}" if row.group else f"/api/{row.version}"
    return (
        f"{prefix}/namespaces/{quote(namespace, safe='')}/{row.name}"
        if row.namespaced
        else f"{prefix}/{row.name}"
    )


@asynccontextmanager
async def run_server(minor: str, shared: SharedParts, packs: str) -> AsyncIterator[MinorServer]:
    """Run a server with the namespaces and priority classes of every cluster."""
    clock = RealClock()
    config = parse(
        [f"--kubernetes-version={minor}", f"--packs={packs}", "--authorization-mode=AlwaysAllow"], {}
    )
    store = MemoryStore(clock=clock)
    environment = ServerEnvironment(trust=shared.trust, clock=clock, random=SystemRandom())
    async with ApiServer(store, environment, config) as server:
        await ensure(
            server.registry,
            server.registry.row,
            cluster_objects(_properties(config, minor, clock), server.catalog.groups),
        )
        running = MinorServer(minor, server, shared)
        yield running
        running.share_custom_versions()
    await store.close()


def _key(custom: CustomVersion) -> tuple[str, bytes]:
    return custom.definition_name, custom.packed_schema


def _properties(config: Config, minor: str, clock: RealClock) -> ServerProperties:
    return ServerProperties(
        port=config.serving.secure_port,
        service_ranges=config.services.service_cluster_ip_range,
        client_ca=b"",
        now=format_time(clock.now()),
        minor=minor,
    )
