"""What becomes of a request by the rules of HTTPRoutes. Pure.

Upstream: the fields and their order of precedence are those of the Gateway API (apis/v1/httproute_types.go of kubernetes-sigs/gateway-api).
"""

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl

from msgspec import Struct
from msgspec.structs import replace
from sortedcontainers import SortedKeyList

from mockube.apimachinery import meta
from mockube.apimachinery.memoize import memoize
from mockube.apimachinery.regexp.captures import CapturingPattern, capturing_pattern
from mockube.apimachinery.regexp.errors import RegexpError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.resources import Key
from mockube.network.ingress import Backend
from mockube.network.request_paths import (
    normal_path,
    path_without_escaped_slashes,
)

from .http_routing import FixedAnswer, Forward, Header, ProxiedRequest

_PREFIX: Final = "PathPrefix"
_DURATION: Final = re.compile(r"(\d{1,5})(ms|h|m|s)")
_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DEFAULT_SECONDS: Final = 60.0
_MAX_TEXT: Final = 8192
"""The length of a path or a value that patterns are compared with."""
_MAX_HOST: Final = 253
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class BackendChoice(Struct, frozen=True, kw_only=True):
    backend: Backend | None
    """None for a reference that leads nowhere, which gets 500."""
    weight: int
    filters: Sequence[ReadOnlyTree]


Listener = tuple[str, str, str]
"""The namespace and the name of a Gateway, and the name of a listener of it."""


class RouteMatch(Struct, frozen=True, kw_only=True):
    """One match of a rule, for one host."""

    route: ReadOnlyTree
    host: str
    """A host, one that begins with `*.`, or "" for any."""
    is_secure: bool
    """Whether the listener has TLS."""
    listener: Listener
    match: ReadOnlyTree
    rule: ReadOnlyTree
    backends: Sequence[BackendChoice]

    @property
    def path(self) -> tuple[str, str]:
        """The type and the value of the path."""
        path = self.match.get("path") or {}
        return path.get("type") or _PREFIX, path.get("value") or "/"

    @property
    def rank(self) -> tuple[Any, ...]:
        """The order of precedence among the matches of a host: the smallest goes first."""
        path_type, value = self.path
        metadata = self.route.get("metadata") or {}
        return (
            {"Exact": 0, "RegularExpression": 1}.get(path_type, 2),
            -len(value),
            "method" not in self.match,
            -len(self.match.get("headers") or ()),
            -len(self.match.get("queryParams") or ()),
            metadata.get("creationTimestamp") or "",
            meta.namespace(self.route),
            meta.name(self.route),
        )


def shared_host(listener: str, route: str) -> str | None:
    """Return the host of a route at a listener: what both have in common; None if that is nothing."""
    listener, route = listener.lower(), route.lower()
    if not listener or listener == route:
        return route
    if not route:
        return listener
    if listener.startswith("*.") and route.removeprefix("*").endswith(listener[1:]):
        return route
    if route.startswith("*.") and listener.endswith(route[1:]):
        return listener
    return None


class MatchTable:
    """The matches of all routes, by host and sorted by their precedence. A change costs what its route has."""

    def __init__(self) -> None:
        self._by_host: dict[str, SortedKeyList[RouteMatch, Any]] = {}
        self._by_route: dict[Key, Sequence[RouteMatch]] = {}

    def put(self, key: Key, matches: Sequence[RouteMatch]) -> None:
        """Replace the matches of a route."""
        for match in self._by_route.pop(key, ()):
            present = self._by_host[match.host]
            present.remove(match)
            if not present:
                del self._by_host[match.host]
        if matches:
            self._by_route[key] = matches
        for match in matches:
            self._by_host.setdefault(match.host, SortedKeyList(key=lambda each: each.rank)).add(match)

    def of_host(self, host: str) -> Iterator[RouteMatch]:
        """Yield the matches for a host: its own ones, those of wildcards, the longest first, and those of any host."""
        yield from self._by_host.get(host, ())
        labels = host.split(".")
        for start in range(1, len(labels)):
            yield from self._by_host.get(f"*.{'.'.join(labels[start:])}", ())
        if host:
            yield from self._by_host.get("", ())


class GatewayRouter:
    """Decides by the matches of all routes."""

    def __init__(
        self, table: MatchTable, random: Callable[[int], int], unserved: Container[Listener] = ()
    ) -> None:
        """`random` returns a number below another one; `unserved` has the listeners without a certificate."""
        self._table = table
        self._unserved = unserved
        self._random = random

    def error_body(self, status: int) -> bytes:
        del status
        return b""

    def decide(self, request: ProxiedRequest) -> FixedAnswer | Forward:
        unescaped = path_without_escaped_slashes(request.path)
        for path in dict.fromkeys((unescaped, request.path)):
            normal = normal_path(path.replace("\\", "/"))  # a backslash is a slash for Envoy
            candidate = replace(request, target=f"{normal}{request.query}")
            match = self._find(candidate)
            if match is not None and unescaped != request.path:
                return FixedAnswer(status=307, headers=[("Location", f"{unescaped}{request.query}")])
            if match is not None:
                return self._apply(match, candidate)
        return FixedAnswer(status=404)

    def _find(self, request: ProxiedRequest) -> RouteMatch | None:
        query = (
            parse_qsl(request.query[1:], keep_blank_values=True, max_num_fields=1000) if request.query else []
        )
        for match in self._table.of_host(request.host[:_MAX_HOST]):
            if match.is_secure is not request.uses_tls or match.listener in self._unserved:
                continue
            if _matches(match, request, dict(query[::-1])):
                return match
        return None

    def _apply(self, match: RouteMatch, request: ProxiedRequest) -> FixedAnswer | Forward:
        filters = match.rule.get("filters") or ()
        redirect = next((each["requestRedirect"] for each in filters if "requestRedirect" in each), None)
        if redirect is not None:
            return _redirection(redirect, match, request)
        chosen = self._choose(match.backends)
        if chosen is None or chosen.backend is None:
            return FixedAnswer(status=500)
        host, target = "", request.target
        changes, response_changes = _Changes(), _Changes()
        for each in (*filters, *chosen.filters):
            changes.apply(each.get("requestHeaderModifier") or {}, request.headers)
            response_changes.apply(each.get("responseHeaderModifier") or {}, {})
            if rewrite := each.get("urlRewrite"):
                host = rewrite.get("hostname") or host
                target = f"{_rewritten(rewrite.get('path'), match, request.path)}{request.query}"
        forwarded = [
            ("X-Forwarded-For", request.client),
            ("X-Forwarded-Proto", "https" if request.uses_tls else "http"),
        ]
        timeouts = match.rule.get("timeouts") or {}
        return Forward(
            backend=chosen.backend,
            target=target,
            host=host,
            headers=[*forwarded, *changes.replaced],
            added_headers=changes.added,
            response_headers=response_changes.replaced,
            added_response_headers=response_changes.added,
            seconds=_seconds(timeouts.get("backendRequest") or timeouts.get("request")),
        )

    def _choose(self, backends: Sequence[BackendChoice]) -> BackendChoice | None:
        """Return a backend by the weights of all; None if there is none."""
        total = sum(each.weight for each in backends)
        number = self._random(total) if total else 0
        for each in backends:
            if number < each.weight:
                return each
            number -= each.weight
        return None


class _Changes:
    """The headers that filters replace, remove and add."""

    def __init__(self) -> None:
        self.replaced: list[Header] = []
        self.added: list[Header] = []

    def apply(self, change: ReadOnlyTree, present: Mapping[str, str]) -> None:
        self.replaced += [(each["name"], each["value"]) for each in change.get("set") or ()]
        self.replaced += [(name, "") for name in change.get("remove") or ()]
        for each in change.get("add") or ():
            before = present.get(each["name"].lower())
            if before is None:
                self.added.append((each["name"], each["value"]))
            else:
                self.replaced.append((each["name"], f"{before},{each['value']}"))


def _matches(match: RouteMatch, request: ProxiedRequest, query: Mapping[str, str]) -> bool:
    path_type, value = match.path
    path = request.path
    if path_type == "Exact":
        is_path = path == value
    elif path_type == _PREFIX:
        prefix = value.rstrip("/")
        is_path = path == prefix or path.startswith(f"{prefix}/")
    else:
        is_path = is_whole_match(value, path)
    condition = match.match
    return (
        is_path
        and condition.get("method") in (None, request.method)
        and all(
            _has(each, request.headers.get(each["name"].lower())) for each in condition.get("headers") or ()
        )
        and all(_has(each, query.get(each["name"])) for each in condition.get("queryParams") or ())
    )


def is_whole_match(pattern: str, text: str) -> bool:
    """Return whether a pattern matches all of a text; one that is invalid matches nothing."""
    compiled = _pattern(pattern)
    return compiled is not None and len(text) <= _MAX_TEXT and compiled.fullmatch(text) is not None


@memoize(512, max_length=300)
def _pattern(pattern: str) -> CapturingPattern | None:
    try:
        return capturing_pattern(pattern)
    except RegexpError:
        return None


def _has(condition: ReadOnlyTree, value: str | None) -> bool:
    if value is None:
        return False
    if condition.get("type") == "RegularExpression":
        return is_whole_match(condition["value"], value)
    return bool(condition["value"] == value)


def _rewritten(rule: ReadOnlyTree | None, match: RouteMatch, path: str) -> str:
    """Return the path after a rewrite of all of it, or of the prefix that matched."""
    if not rule:
        return path
    if rule.get("type") == "ReplaceFullPath":
        return rule.get("replaceFullPath") or "/"
    prefix = match.path[1].rstrip("/")
    replacement = (rule.get("replacePrefixMatch") or "").rstrip("/")
    return f"{replacement}{path[len(prefix) :]}" or "/"


def _redirection(redirect: ReadOnlyTree, match: RouteMatch, request: ProxiedRequest) -> FixedAnswer:
    scheme = redirect.get("scheme") or ("https" if request.uses_tls else "http")
    port = redirect.get("port") or (_DEFAULT_PORTS[scheme] if redirect.get("scheme") else request.port)
    host = redirect.get("hostname") or request.host
    suffix = "" if port == _DEFAULT_PORTS.get(scheme) else f":{port}"
    path = _rewritten(redirect.get("path"), match, request.path)
    location = f"{scheme}://{host}{suffix}{path}{request.query}"
    if any(ord(letter) < 32 for letter in location):
        return FixedAnswer(status=400)
    return FixedAnswer(status=redirect.get("statusCode") or 302, headers=[("Location", location)])


def _seconds(text: str | None) -> float:
    """Return the seconds of a duration such as 1m30s; 0s means that there is no limit."""
    if not text:
        return _DEFAULT_SECONDS
    return sum(int(number) * _SECONDS[unit] for number, unit in _DURATION.findall(text)) or 86400.0


def matches_of(rule: ReadOnlyTree) -> Iterator[ReadOnlyTree]:
    """Yield the matches of a rule; one without any matches all."""
    yield from rule.get("matches") or ({},)
