"""Parse a URL into the RequestInfo that routing, authorization and audit share.

/api/v1/nodes                                      list nodes
/api/v1/namespaces/NS/pods/NAME                    get a pod
/apis/apps/v1/namespaces/NS/deployments/D/scale    get a subresource
/api/v1/watch/namespaces/NS/pods                   watch by a deprecated path; /proxy/ is parsed, but not served any more
/api/v1/namespaces/NS                              get a namespace; NS is both its name and its namespace
/healthz, /version, /openapi/v2, …                 non-resource requests
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct

from mockube.apimachinery import uri

_VERBS: Mapping[str, str] = {
    "POST": "create",
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})
"""Subresources of a namespace itself: /namespaces/NS/status is not a resource `status` in NS."""
_PREFIXES = frozenset({"watch", "proxy"})
CONNECT_SUBRESOURCES: Final = frozenset({"attach", "exec", "log", "portforward", "proxy"})
"""Subresources that lead to a node or a pod."""


class RequestInfo(Struct, frozen=True, kw_only=True, cache_hash=True):
    """The attributes of a request. `verb` is the API verb for a resource, otherwise the method in lower case."""

    path: str
    verb: str
    is_resource: bool = False
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    rest: tuple[str, ...] = ()
    """The path segments after the subresource, which only proxied subresources have."""
    prefix: str = ""
    """The verb, if the path names it: watch or proxy."""
    is_complete: bool = True
    """Whether something follows the verb that the path names."""
    has_empty_namespace: bool = False
    """Whether the path has a segment for the namespace which is empty."""


def parse(method: str, path: str, *, watch: bool) -> RequestInfo:
    """Return the RequestInfo of a decoded path; `watch` is whether the query requests a watch."""
    return (_parse_usual if len(path) <= _USUAL_LENGTH else _parse)(method, path, watch)


def _parse(method: str, path: str, watch: bool) -> RequestInfo:  # noqa: FBT001 - positional, for the cache
    parts = path.strip("/").split("/")
    verb = _VERBS.get(method, "")
    plain = RequestInfo(path=path, verb=method.lower())
    if parts[0] == "api":
        group, parts = "", parts[1:]
    elif parts[0] == "apis" and len(parts) > 1:
        group, parts = parts[1], parts[2:]
    else:
        return plain
    if len(parts) < 2:
        return plain
    version, *parts = parts
    prefix = ""
    if parts[0] in _PREFIXES:
        prefix, *parts = parts
        verb = prefix
        if not parts:
            return RequestInfo(path=path, verb=verb, is_resource=True, is_complete=False)
    has_empty_namespace = (
        parts[:2] == ["namespaces", ""] and len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES
    )
    namespace, parts = _split_namespace(parts)
    resource, name, subresource, *rest = [*parts, "", "", ""][: max(len(parts), 3)]
    if prefix == "proxy":
        subresource, rest = "", [subresource, *rest]
    return RequestInfo(
        path=path,
        verb=verb if name or prefix else _collection_verb(verb, watch=watch),
        is_resource=True,
        group=group,
        version=version,
        namespace=namespace,
        resource=resource,
        subresource=subresource,
        name=name,
        rest=tuple(rest),
        prefix=prefix,
        has_empty_namespace=has_empty_namespace,
    )


# Most requests have one of a few paths; long paths are rare, and are not cached, to limit the memory.
_USUAL_LENGTH: Final = 255
_parse_usual = lru_cache(maxsize=4096)(_parse)


def _split_namespace(parts: list[str]) -> tuple[str, list[str]]:
    if parts[0] != "namespaces" or len(parts) == 1:
        return "", parts
    if len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES:
        return parts[1], parts[2:]
    return parts[1], parts


def _collection_verb(verb: str, *, watch: bool) -> str:
    if verb == "get":
        return "watch" if watch else "list"
    return "deletecollection" if verb == "delete" else verb


def parse_query(query: str) -> Mapping[str, Sequence[str]]:
    return (_parse_usual_query if len(query) <= _USUAL_LENGTH else uri.parse_query)(query)


_parse_usual_query = lru_cache(maxsize=1024)(uri.parse_query)
