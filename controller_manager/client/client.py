"""The API as controllers use it: verbs on resources, trees in and out, typed errors.

Connections and retries are `sender`'s; no resource is special here. Errors are classes of
`mockube.apimachinery.status`, or `wire.Unreachable` and `wire.OutcomeUnknown`.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Literal, NamedTuple, Protocol, TypedDict, Unpack
from urllib.parse import quote, urlencode

import orjson

from mockube.apimachinery import meta, status
from mockube.apimachinery.groups import NO_RESOURCE, GroupResource
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.resources import Key, Resource
from mockube.controller_manager.client.sender import Sender
from mockube.controller_manager.client.wire import Answer, NoAnswer, Request, Stream, no_answer

AnyResource = Resource[Any]
Parsed = dict[str, Any]

TIMEOUT: Final = 65.0
"""Seconds: longer than a server's own timeout, so that the server times out first and returns the outcome."""

_JSON: Final = "application/json"
_SENT: Final = {"Accept": _JSON, "Content-Type": _JSON}
_PATCHES: Final = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
_METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_UNTOLD: Final = frozenset({502, 504})
"""Codes that leave open whether a write was done."""
_UNRESERVED: Final = "/:@!$&'()*+,;=~"
"""Characters of a path that are not escaped, beside letters and digits."""


class Subject(NamedTuple):
    """What a request is about, in the words of an error."""

    resource: GroupResource
    name: str = ""


NO_SUBJECT: Final = Subject(NO_RESOURCE)


class ObjectList(NamedTuple):
    items: list[Parsed]
    """Each with its kind and apiVersion, which a server leaves out."""
    resource_version: str
    continue_token: str


class ListOptions(TypedDict, total=False):
    """As the query calls them in camelCase, but for `continue_token`."""

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


class DeleteOptions(TypedDict, total=False):
    """A uid and a resourceVersion are preconditions."""

    uid: str
    resource_version: str
    grace_period_seconds: int | None
    propagation: Literal["", "Background", "Foreground", "Orphan"]


class Identities(Protocol):
    """The senders of service accounts."""

    def of(self, service_account: str) -> Sender: ...


class Client:
    def __init__(self, sender: Sender, identities: Identities, *, timeout: float = TIMEOUT) -> None:
        self._sender = sender
        self._identities = identities
        self._timeout = timeout

    def for_service_account(self, service_account: str) -> "Client":
        """The client of a controller: with its own user agent and, if configured, its own credentials."""
        return Client(self._identities.of(service_account), self._identities, timeout=self._timeout)

    def with_timeout(self, seconds: float) -> "Client":
        return Client(self._sender, self._identities, timeout=seconds)

    async def get(self, resource: AnyResource, key: Key, *, subresource: str = "") -> Parsed:
        target = _target(resource, key, subresource)
        return await self._send("GET", target, headers=_read_headers(resource, _METADATA))

    async def list(
        self, resource: AnyResource, namespace: str = "", **options: Unpack[ListOptions]
    ) -> ObjectList:
        """Without a resourceVersion the server returns the most recent objects."""
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
        """In the namespace that the body names; `key` names the parent of a subresource that is made."""
        target = _target(resource, key or Key(meta.namespace(body), ""), subresource)
        return await self._send("POST", target, orjson.dumps(body))

    async def update(self, resource: AnyResource, body: ReadOnlyTree, *, subresource: str = "") -> Parsed:
        key = Key.of(body)
        return await self._send("PUT", _target(resource, key, subresource), orjson.dumps(body))

    async def patch(
        self,
        resource: AnyResource,
        key: Key,
        body: ReadOnlyTree | Sequence[ReadOnlyTree],
        **options: Unpack[PatchOptions],
    ) -> Parsed:
        query = {"fieldManager": options.get("field_manager"), "force": options.get("force") and "true"}
        target = _target(resource, key, options.get("subresource", "")) + _query(query)
        headers = {"Accept": _JSON, "Content-Type": _PATCHES[options.get("kind", "merge")]}
        return await self._send("PATCH", target, orjson.dumps(body), headers=headers)

    async def delete(self, resource: AnyResource, key: Key, **options: Unpack[DeleteOptions]) -> Parsed:
        """The object as it was left if something keeps it, else a `Status` or the object as it was."""
        return await self._send("DELETE", _target(resource, key), _delete_options(options))

    async def delete_collection(
        self,
        resource: AnyResource,
        namespace: str = "",
        *,
        selecting: ListOptions | None = None,
        **options: Unpack[DeleteOptions],
    ) -> Parsed:
        target = _target(resource, Key(namespace, "")) + _list_query(selecting or {})
        return await self._send("DELETE", target, _delete_options(options))

    async def raw(
        self,
        method: str,
        path: str,
        *,
        body: bytes = b"",
        accept: str = _JSON,
        about: Subject = NO_SUBJECT,
    ) -> Parsed:
        """What is no resource, such as discovery; `path` holds its query, if it has one.

        `about` is what an error names where the server answers with a code alone.
        """
        headers = {"Accept": accept, "Content-Type": _JSON}
        return await self._send(method, path, body, headers=headers, about=about)

    @asynccontextmanager
    async def watch(
        self, resource: AnyResource, query: Mapping[str, object], *, within: float
    ) -> AsyncIterator[Stream]:
        """A running watch of all namespaces, whose chunks are events as JSON, a line each; cut after `within` seconds."""
        target = _target(resource, Key("", "")) + _query({"watch": "true", **query})
        headers = _read_headers(resource, _METADATA)
        request = Request(method="GET", target=target, headers=headers, timeout=within)
        async with self._open_stream(request) as stream:
            yield stream

    @asynccontextmanager
    async def download(self, path: str, *, within: float) -> AsyncIterator[Stream]:
        """Stream a path that is no resource. Only its content shows whether it is complete."""
        async with self._open_stream(
            Request(method="GET", target=path, headers={}, timeout=within)
        ) as stream:
            yield stream

    @asynccontextmanager
    async def _open_stream(self, request: Request) -> AsyncIterator[Stream]:
        async with self._sender.stream(request) as stream:
            if stream.status != 200:
                raise _error(request, Answer(stream.status, None, await stream.read()))
            yield stream

    async def _send(
        self,
        method: str,
        target: str,
        body: bytes = b"",
        *,
        headers: Mapping[str, str] = _SENT,
        about: Subject = NO_SUBJECT,
    ) -> Parsed:
        request = Request(method=method, target=target, headers=headers, body=body, timeout=self._timeout)
        answer = await self._sender.send(request)
        if answer.status >= 300:
            raise _error(request, answer, about)
        try:
            parsed: Parsed = orjson.loads(answer.body)
        except orjson.JSONDecodeError as error:
            raise no_answer(request, f"the response is not JSON: {error}") from error
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


def _delete_options(options: DeleteOptions) -> bytes:
    preconditions = {"uid": options.get("uid"), "resourceVersion": options.get("resource_version")}
    fields = {
        "gracePeriodSeconds": options.get("grace_period_seconds"),
        "preconditions": {name: value for name, value in preconditions.items() if value},
        "propagationPolicy": options.get("propagation"),
    }
    present = {name: value for name, value in fields.items() if value not in (None, "", {})}
    return orjson.dumps({"kind": "DeleteOptions", "apiVersion": "v1", **present}) if present else b""


def _error(request: Request, answer: Answer, about: Subject = NO_SUBJECT) -> ApiError | NoAnswer:
    error = _api_error(request, answer, about)
    if answer.status in _UNTOLD and not request.is_read:
        unknown = no_answer(request, error.message)
        unknown.__cause__ = error
        return unknown
    return error


def _api_error(request: Request, answer: Answer, about: Subject) -> ApiError:
    """Return the error of the server's Status, or of the HTTP code where a proxy has answered."""
    try:
        tree = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        tree = None
    if isinstance(tree, dict) and tree.get("kind") == "Status":
        return status.from_tree(tree, answer.status)
    message = answer.body.decode(errors="replace").strip() or "unknown"
    return status.generic(
        answer.status, verb=request.method, resource=about.resource, name=about.name, server_message=message
    )
