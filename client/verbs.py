"""The client of controllers: typed verbs on resources, which take and return trees.

`sender` handles credentials, rate limits and retries. Errors are the classes of `mockube.apimachinery.status`, and
`wire.Unreachable` and `wire.OutcomeUnknown`.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Literal, NamedTuple, Protocol, TypedDict, Unpack
from urllib.parse import quote, urlencode

import orjson

from mockube.apimachinery import meta, status
from mockube.apimachinery.gotext import escape_html
from mockube.apimachinery.groups import NO_RESOURCE, GroupResource
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree

from .resources import Key, Resource
from .sender import Sender
from .wire import NoResponse, Request, Response, ResponseStream, Transport, Unreachable, no_response

AnyResource = Resource[Any]
Parsed = dict[str, Any]

TIMEOUT: Final = 65.0
"""The timeout of a request in seconds: longer than the server's, so that the server returns the outcome."""

_JSON: Final = "application/json"
_JSON_HEADERS: Final = {"Accept": _JSON, "Content-Type": _JSON}
_PATCH_TYPES: Final = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
_METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_UNKNOWN_OUTCOME_CODES: Final = frozenset({502, 504})
"""The status codes after which it is unknown whether a write was executed."""
_UNRESERVED: Final = "/:@!$&'()*+,;=~"
"""The characters of a path that are not escaped, in addition to letters and digits."""


class RequestedObject(NamedTuple):
    """The resource and name of a request for an error, which a response without a Status does not contain."""

    resource: GroupResource
    name: str = ""


NO_SUBJECT: Final = RequestedObject(NO_RESOURCE)


class ObjectList(NamedTuple):
    """A page of a list."""

    items: list[Parsed]
    """The objects; their kind and apiVersion, which the server omits in lists, are set."""
    resource_version: str
    continue_token: str


class ListOptions(TypedDict, total=False):
    """The options of a list: the query parameters in snake case, with `continue_token` for `continue`."""

    label_selector: str
    field_selector: str
    limit: int
    continue_token: str
    resource_version: str | None
    resource_version_match: str


class PatchOptions(TypedDict, total=False):
    kind: Literal["merge", "strategic", "json", "apply"]
    subresource: str
    field_manager: str
    force: bool
    dry_run: bool


class DeleteOptions(TypedDict, total=False):
    """The options of a deletion; the uid and the resourceVersion are preconditions."""

    uid: str
    resource_version: str
    grace_period_seconds: int | None
    propagation: Literal["", "Background", "Foreground", "Orphan"]


class Identities(Protocol):
    """Provides the senders of controllers, by service account."""

    @property
    def need_accounts(self) -> bool:
        """Whether the senders authenticate as the service accounts, so that these have to exist."""
        ...

    def of(self, service_account: str) -> Sender: ...


class ForeignTransports(Protocol):
    """Transports for requests whose credentials are not the client's."""

    def anonymous(self) -> Transport:
        """Return a transport without credentials, which all requests share."""
        ...

    def with_certificate(self, certificate: bytes, key: bytes) -> Transport:
        """Return a new transport for the owner of a certificate, which the caller closes."""
        ...


class Client:
    def __init__(
        self,
        sender: Sender,
        identities: Identities,
        *,
        timeout: float = TIMEOUT,
        transports: ForeignTransports | None = None,
    ) -> None:
        """Create a client; only `exchange` needs `transports`."""
        self._sender = sender
        self._identities = identities
        self._transports = transports
        self._timeout = timeout

    @property
    def needs_service_accounts(self) -> bool:
        """Whether controllers have credentials of their own."""
        return self._identities.need_accounts

    def for_service_account(self, service_account: str) -> "Client":
        """Return the client of a controller, with its own user agent and, if configured, its own credentials."""
        sender = self._identities.of(service_account)
        return Client(sender, self._identities, transports=self._transports, timeout=self._timeout)

    def with_timeout(self, seconds: float) -> "Client":
        return Client(self._sender, self._identities, transports=self._transports, timeout=seconds)

    async def exchange(self, request: Request, certificate: bytes = b"", key: bytes = b"") -> Response:
        """Send a request once with the credentials in its headers or a certificate, not the client's; return the response, also an error."""
        transports = self._transports
        if transports is None:
            raise Unreachable(
                f"{request.method} {request.target}: the client has credentials of its own only"
            )
        if not certificate:
            return await transports.anonymous().send(request, {})
        transport = transports.with_certificate(certificate, key)
        try:
            return await transport.send(request, {})
        finally:
            await transport.close()

    async def get(self, resource: AnyResource, key: Key, *, subresource: str = "") -> Parsed:
        target = _target(resource, key, subresource)
        return await self._send("GET", target, headers=_read_headers(resource, _METADATA))

    async def list(
        self, resource: AnyResource, namespace: str = "", **options: Unpack[ListOptions]
    ) -> ObjectList:
        """List objects; without a resourceVersion the server returns the most recent ones."""
        target = _target(resource, Key(namespace, "")) + _list_query(options)
        tree = await self._send("GET", target, headers=_read_headers(resource, _METADATA_LIST))
        items = tree.get("items") or []
        for item in items:
            item.setdefault("kind", resource.kind)
            item.setdefault("apiVersion", resource.api_version)
        metadata = tree["metadata"]
        return ObjectList(items, metadata.get("resourceVersion") or "", metadata.get("continue") or "")

    async def create(
        self, resource: AnyResource, body: ReadOnlyTree, *, key: Key | None = None, subresource: str = ""
    ) -> Parsed:
        """Create an object in the namespace of the body, or a subresource of the object with this key."""
        target = _target(resource, key or Key(meta.namespace(body), ""), subresource)
        return await self._send("POST", target, _go_json(body))

    async def update(self, resource: AnyResource, body: ReadOnlyTree, *, subresource: str = "") -> Parsed:
        key = Key.of(body)
        return await self._send("PUT", _target(resource, key, subresource), _go_json(body))

    async def patch(
        self,
        resource: AnyResource,
        key: Key,
        body: ReadOnlyTree | Sequence[ReadOnlyTree],
        **options: Unpack[PatchOptions],
    ) -> Parsed:
        query = {
            "fieldManager": options.get("field_manager"),
            "force": options.get("force") and "true",
            "dryRun": options.get("dry_run") and "All",
        }
        target = _target(resource, key, options.get("subresource", "")) + _query(query)
        headers = {"Accept": _JSON, "Content-Type": _PATCH_TYPES[options.get("kind", "merge")]}
        return await self._send("PATCH", target, orjson.dumps(body), headers=headers)

    async def delete(self, resource: AnyResource, key: Key, **options: Unpack[DeleteOptions]) -> Parsed:
        """Delete an object. Return it if finalizers or a grace period keep it, else a `Status` or the last object."""
        return await self._send("DELETE", _target(resource, key), _delete_options(options))

    async def delete_collection(
        self,
        resource: AnyResource,
        namespace: str = "",
        *,
        list_options: ListOptions | None = None,
        **options: Unpack[DeleteOptions],
    ) -> Parsed:
        target = _target(resource, Key(namespace, "")) + _list_query(list_options or {})
        return await self._send("DELETE", target, _delete_options(options))

    async def raw(
        self,
        method: str,
        path: str,
        *,
        body: bytes = b"",
        accept: str = _JSON,
        about: RequestedObject = NO_SUBJECT,
    ) -> Parsed:
        """Send a request for a path that is no resource, such as discovery; `path` includes the query.

        An error contains `about` if the response is no Status.
        """
        headers = {"Accept": accept, "Content-Type": _JSON}
        return await self._send(method, path, body, headers=headers, about=about)

    @asynccontextmanager
    async def watch(
        self, resource: AnyResource, query: Mapping[str, object], *, timeout_seconds: float
    ) -> AsyncIterator[ResponseStream]:
        """Watch all namespaces: the stream has an event as JSON in each line. It is closed after `timeout_seconds`."""
        target = _target(resource, Key("", "")) + _query({"watch": "true", **query})
        headers = _read_headers(resource, _METADATA)
        request = Request(method="GET", target=target, headers=headers, timeout=timeout_seconds)
        async with self._open_stream(request) as stream:
            yield stream

    @asynccontextmanager
    async def download(self, path: str, *, timeout_seconds: float) -> AsyncIterator[ResponseStream]:
        """Stream a path that is no resource. The caller has to check that the content is complete."""
        async with self._open_stream(
            Request(method="GET", target=path, headers={}, timeout=timeout_seconds)
        ) as stream:
            yield stream

    @asynccontextmanager
    async def _open_stream(self, request: Request) -> AsyncIterator[ResponseStream]:
        async with self._sender.stream(request) as stream:
            if stream.status != 200:
                raise _error(request, Response(stream.status, None, await stream.read()))
            yield stream

    async def _send(
        self,
        method: str,
        target: str,
        body: bytes = b"",
        *,
        headers: Mapping[str, str] = _JSON_HEADERS,
        about: RequestedObject = NO_SUBJECT,
    ) -> Parsed:
        request = Request(method=method, target=target, headers=headers, body=body, timeout=self._timeout)
        response = await self._sender.send(request)
        if response.status >= 300:
            raise _error(request, response, about)
        try:
            parsed: Parsed = orjson.loads(response.body)
        except orjson.JSONDecodeError as error:
            raise no_response(request, f"the response is not JSON: {error}") from error
        return parsed


def _target(resource: AnyResource, key: Key, subresource: str = "") -> str:
    return quote(resource.path(key.namespace, key.name, subresource), safe=_UNRESERVED)


def _read_headers(resource: AnyResource, partial: str) -> Mapping[str, str]:
    return {"Accept": f"{partial},{_JSON}" if resource.metadata_only else _JSON}


def _query(parameters: Mapping[str, object]) -> str:
    present = {name: value for name, value in parameters.items() if value not in ("", None, False, 0)}
    return f"?{urlencode(present)}" if present else ""


def _list_query(options: ListOptions) -> str:
    return _query(
        {
            "labelSelector": options.get("label_selector"),
            "fieldSelector": options.get("field_selector"),
            "limit": options.get("limit"),
            "continue": options.get("continue_token"),
            "resourceVersion": options.get("resource_version"),
            "resourceVersionMatch": options.get("resource_version_match"),
        }
    )


def _go_json(body: ReadOnlyTree) -> bytes:
    """Encode an object as Go clients do: the server keeps the text of raw fields, and compares it, such as the data of a ControllerRevision."""
    return escape_html(orjson.dumps(body))


def _delete_options(options: DeleteOptions) -> bytes:
    preconditions = {"uid": options.get("uid"), "resourceVersion": options.get("resource_version")}
    fields = {
        "gracePeriodSeconds": options.get("grace_period_seconds"),
        "preconditions": {name: value for name, value in preconditions.items() if value},
        "propagationPolicy": options.get("propagation"),
    }
    present = {name: value for name, value in fields.items() if value not in (None, "", {})}
    return orjson.dumps({"kind": "DeleteOptions", "apiVersion": "v1", **present}) if present else b""


def _error(
    request: Request, response: Response, about: RequestedObject = NO_SUBJECT
) -> ApiError | NoResponse:
    error = _api_error(request, response, about)
    if response.status in _UNKNOWN_OUTCOME_CODES and not request.is_read:
        unknown = no_response(request, error.message)
        unknown.__cause__ = error
        return unknown
    return error


def _api_error(request: Request, response: Response, about: RequestedObject) -> ApiError:
    """Return the error of the Status in the response, or of the HTTP code if a proxy has sent the response."""
    try:
        tree = orjson.loads(response.body)
    except orjson.JSONDecodeError:
        tree = None
    if isinstance(tree, dict) and tree.get("kind") == "Status":
        return status.from_tree(tree, response.status)
    message = response.body.decode(errors="replace").strip() or "unknown"
    return status.generic(
        response.status, verb=request.method, resource=about.resource, name=about.name, server_message=message
    )
