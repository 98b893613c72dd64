"""Requests of kubectl to the API server, and the resources that the server serves."""

from collections.abc import Generator, Iterator, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode

import orjson
from msgspec import Struct

from mockube.apimachinery.schema import minors
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.simulated.network.calls import HttpRequest, Reply
from mockube.container_runtime.simulated.shell.network_programs.network import call, resolve, wait_for_failure
from mockube.container_runtime.simulated.shell.process import Effect, Process

from .connection import Connection, KubectlError

T = TypeVar("T")
Work = Generator[Effect, bytes | None, T]
"""A part of an execution that returns a value."""
JSON: Final = "application/json"
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
_DISCOVERY: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_AGENT: Final = f"kubectl/v{minors.NEWEST}"
_TIMEOUT: Final = 30.0


class ServerError(KubectlError):
    """The API server has refused a request."""

    def __init__(self, status: ReadOnlyTree, http_code: int) -> None:
        self.reason = status.get("reason") or ""
        self.text = status.get("message") or f"the server responded with the status code {http_code}"
        self.http_code = http_code
        super().__init__(self.describe())

    def describe(self, action: str = "") -> str:
        """Return kubectl's message; `action` says what kubectl was doing."""
        if self.reason == "Unauthorized":
            return "error: You must be logged in to the server (Unauthorized)"
        if self.reason == "Invalid":
            return f"The {self.text}" if self.text[:1].isupper() else self.text
        text = f"{action}: {self.text}" if action else self.text
        return f"Error from server ({self.reason}): {text}" if self.reason else f"Error from server: {text}"


class ServedResource(Struct, frozen=True, kw_only=True):
    """A resource that the server serves."""

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    is_namespaced: bool
    short_names: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The name of the kind in messages, such as deployment.apps."""
        return f"{self.singular}.{self.group}" if self.group else self.singular

    @property
    def plural_title(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str, name: str = "") -> str:
        root = f"/apis/{self.group}" if self.group else "/api"
        parts = [root, self.version]
        if self.is_namespaced and namespace:
            parts += ["namespaces", quote(namespace, safe="")]
        parts += [self.plural, *([quote(name, safe="")] if name else [])]
        return "/".join(parts)


class ApiClient:
    """The connection of one kubectl process to the API server."""

    def __init__(self, process: Process, connection: Connection | None, namespace: str) -> None:
        self._process = process
        self._connection = connection
        self._resources: list[ServedResource] = []
        configured = connection.namespace if connection is not None else ""
        self.namespace = namespace or configured or "default"

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> Work[dict[str, Any]]:
        """Send a request and return the object in the response; raise `ServerError` for another response."""
        present = {name: value for name, value in (query or {}).items() if value}
        target = f"{path}?{urlencode(present)}" if present else path
        reply = yield from self._exchange(
            method, target, body, {"Content-Type": content_type, "Accept": accept}
        )
        try:
            tree = orjson.loads(reply.body) if reply.body else {}
        except orjson.JSONDecodeError:
            tree = {"message": reply.body.decode("utf-8", "replace").strip()}
        if not 200 <= reply.status < 300:
            raise ServerError(tree if isinstance(tree, dict) else {}, reply.status)
        if not isinstance(tree, dict):
            raise KubectlError("error: the server returned no object")
        return tree

    @property
    def server(self) -> str:
        """The URL of the server."""
        connection = self._require_connection()
        return f"https://{connection.host}:{connection.port}"

    def _require_connection(self) -> Connection:
        if self._connection is None:
            raise KubectlError(
                "The connection to the server localhost:8080 was refused - did you specify the right host or port?"
            )
        return self._connection

    def _exchange(self, method: str, target: str, body: Any, headers: Mapping[str, str]) -> Work[Reply]:
        connection = self._require_connection()
        server = f"{connection.host}:{connection.port}"
        found = yield from resolve(self._process, connection.host)
        if not found.addresses:
            name = connection.host
            raise KubectlError(f"Unable to connect to the server: dial tcp: lookup {name}: no such host")
        token = {"Authorization": f"Bearer {connection.token}"} if connection.token else {}
        request = HttpRequest(
            address=found.addresses[0],
            port=connection.port,
            method=method,
            path=target,
            headers=tuple({**token, "User-Agent": _AGENT, **headers}.items()),
            body=b"" if body is None else orjson.dumps(body),
            uses_tls=True,
            certificate=connection.certificate,
            key=connection.key,
        )
        reply = yield from call(self._process, request)
        if reply.outcome == "refused":
            raise KubectlError(
                f"The connection to the server {server} was refused - did you specify the right host or port?"
            )
        if not reply.is_open:
            yield from wait_for_failure(reply, _TIMEOUT)
            reason = "i/o timeout" if reply.outcome == "timeout" else "connect: no route to host"
            raise KubectlError(f"Unable to connect to the server: dial tcp {server}: {reason}")
        if reply.status == 0:
            raise KubectlError("Unable to connect to the server: EOF")
        if connection.authority is not None and not _is_trusted(connection.authority, reply.authority):
            raise KubectlError(
                "Unable to connect to the server: tls: failed to verify certificate: x509: certificate signed by unknown authority"
            )
        return reply

    def resource(self, name: str) -> Work[ServedResource]:
        """Return the resource of a name such as po, deployments or deployment.apps."""
        resources = yield from self._discover()
        word, _, group = name.lower().partition(".")
        for resource in resources:
            names = (resource.plural, resource.singular, *resource.short_names)
            qualified = (resource.group, f"{resource.version}.{resource.group}")
            if word in names and (not group or group in qualified):
                return resource
        raise KubectlError(f'error: the server doesn\'t have a resource type "{name}"')

    def resource_of_kind(self, api_version: str, kind: str) -> Work[ServedResource]:
        resources = yield from self._discover()
        for resource in resources:
            if (resource.api_version, resource.kind) == (api_version, kind):
                return resource
        problem = f'no matches for kind "{kind}" in version "{api_version}"'
        raise KubectlError(f"error: resource mapping not found: {problem}\nensure CRDs are installed first")

    def _discover(self) -> Work[list[ServedResource]]:
        if not self._resources:
            for path in ("/api", "/apis"):
                groups = yield from self.send("GET", path, accept=_DISCOVERY)
                self._resources += _resources_of(groups)
        return self._resources


def _is_trusted(authority: bytes, of_server: bytes) -> bool:
    """Return whether CA certificates include the one that signs the server's."""
    return bool(of_server.strip()) and of_server.strip() in authority


def _resources_of(groups: ReadOnlyTree) -> Iterator[ServedResource]:
    for group in groups.get("items") or ():
        for version in group.get("versions") or ():
            for entry in version.get("resources") or ():
                kind = (entry.get("responseKind") or {}).get("kind") or ""
                yield ServedResource(
                    group=(group.get("metadata") or {}).get("name") or "",
                    version=version["version"],
                    plural=entry["resource"],
                    singular=entry.get("singularResource") or kind.lower(),
                    kind=kind,
                    is_namespaced=entry.get("scope") == "Namespaced",
                    short_names=tuple(entry.get("shortNames") or ()),
                )
