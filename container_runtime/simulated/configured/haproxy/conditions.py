"""The conditions of HAProxy: criteria of a request with their patterns, by names or in braces. Pure."""

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from ipaddress import ip_address, ip_network
from typing import Final
from urllib.parse import parse_qs

from msgspec import Struct

from mockube.apimachinery.regexp.perl import PerlPatternError
from mockube.container_runtime.simulated.configured.contract import Request
from mockube.container_runtime.simulated.configured.patterns import compile_text

_FETCH: Final = re.compile(
    r"([\w.]+?)(?:_(beg|end|sub|reg|dir|dom|len))?(?:\(([^)]*)\))?((?:,[\w.]+(?:\([^)]*\))?)*)"
)
_BUILT_IN: Final = {
    "TRUE": ("always_true", ()), "FALSE": ("always_false", ()), "HTTP": ("always_true", ()), "METH_GET": ("method", ("GET", "HEAD")),
    "METH_POST": ("method", ("POST",)), "METH_HEAD": ("method", ("HEAD",)), "METH_OPTIONS": ("method", ("OPTIONS",)), "METH_PUT": ("method", ("PUT",)),
    "METH_DELETE": ("method", ("DELETE",)), "LOCALHOST": ("src", ("127.0.0.1/8", "::1")), "HTTP_1.1": ("always_true", ()),
    "HTTP_URL_ABS": ("always_false", ()), "HTTP_URL_STAR": ("always_false", ()), "REQ_CONTENT": ("always_true", ()), "WAIT_END": ("always_true", ()),
}  # fmt: skip
_KNOWN: Final = frozenset(
    {"path", "hdr", "req.hdr", "req.fhdr", "method", "src", "dst_port", "ssl_fc", "urlp", "url_param", "query", "url", "base", "always_true",
     "always_false", "hdr_cnt", "req.hdr_cnt", "cook", "req.cook", "pathq", "capture.req.method", "capture.req.uri", "req.ver", "hdr_dom",
     "ssl_fc_has_sni", "host_only"}
)  # fmt: skip


class ConditionError(ValueError):
    """A condition is invalid."""


class Acl(Struct, frozen=True, kw_only=True):
    fetch: str
    argument: str = ""
    match: str = "str"
    patterns: tuple[str, ...] = ()
    ignores_case: bool = False
    lowers: bool = False
    unknown: str = ""
    """The criterion, if it is not simulated: then it never holds."""

    def holds(self, request: Request, path: str) -> bool:
        if self.unknown:
            return False
        if self.fetch in ("always_true", "always_false"):
            return self.fetch == "always_true"
        if self.fetch == "ssl_fc":
            return request.tls
        values = _values(self, request, path)
        if self.match == "found" or not self.patterns:
            return bool(values)
        if self.lowers:
            values = [value.lower() for value in values]
        return any(_matches(self, value, pattern) for value in values for pattern in self.patterns)


def _values(acl: Acl, request: Request, path: str) -> list[str]:
    """Return the values of a criterion in a request."""
    query = request.target.partition("?")[2]
    url = f"{path}?{query}" if query else path
    if acl.fetch in ("hdr", "req.hdr", "req.fhdr"):
        value = request.headers.get(acl.argument.partition(",")[0].lower())
        return [] if value is None else [value]
    if acl.fetch in ("urlp", "url_param"):
        return parse_qs(query, keep_blank_values=True).get(acl.argument, [])
    if acl.fetch in ("cook", "req.cook"):
        pairs = (part.strip().partition("=") for part in request.headers.get("cookie", "").split(";"))
        return [value for name, _, value in pairs if name == acl.argument]
    values = {
        "path": path,
        "pathq": url,
        "url": url,
        "capture.req.uri": url,
        "query": query,
        "base": request.headers.get("host", "") + path,
        "hdr_cnt": str(int(acl.argument.lower() in request.headers)),
        "req.hdr_cnt": str(int(acl.argument.lower() in request.headers)),
        "method": request.method,
        "capture.req.method": request.method,
        "src": request.client,
        "dst_port": str(request.port),
    }
    return [values[acl.fetch]] if acl.fetch in values else []


def _matches(acl: Acl, value: str, pattern: str) -> bool:
    if acl.fetch == "src":
        return _is_in_network(value, pattern)
    if acl.match == "reg":
        return compile_text(pattern, ignores_case=acl.ignores_case).search(value) is not None
    if acl.ignores_case:
        value, pattern = value.lower(), pattern.lower()
    test = _TESTS.get(acl.match)
    return value == pattern if test is None else test(value, pattern)


_TESTS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "beg": str.startswith,
    "end": str.endswith,
    "sub": lambda value, pattern: pattern in value,
    "dir": lambda value, pattern: f"/{pattern.strip('/')}/" in f"{value}/",
    "dom": lambda value, pattern: f".{pattern.strip('.')}." in f".{value.partition(':')[0]}.",
    "len": lambda value, pattern: str(len(value)) == pattern,
}


def _is_in_network(address: str, network: str) -> bool:
    try:
        return ip_address(address) in ip_network(network, strict=False)
    except ValueError:
        return False


def is_unsupported_pattern(text: str) -> bool:
    """Return whether the syntax of a valid pattern is not supported; raise `ConditionError` for an invalid one."""
    try:
        return compile_text(text).is_unsupported
    except PerlPatternError as error:
        message = f"regex '{text}' is invalid (error={error}, erroroffset={error.offset})"
        raise ConditionError(message) from error


def acl_of(words: Sequence[str]) -> Acl:
    """Return a criterion with its options and patterns; raise `ConditionError` for an invalid pattern."""
    match = _FETCH.fullmatch(words[0])
    rest = deque(words[1:])
    if match is None:
        return Acl(fetch="always_false", unknown=words[0])
    fetch, kind, argument, converters = match[1], match[2] or "", match[3] or "", match[4]
    if f"{fetch}_{kind}" in _KNOWN:
        fetch, kind = f"{fetch}_{kind}", ""
    ignores_case, method = False, kind or "str"
    while rest and rest[0].startswith("-"):
        option = rest.popleft()
        if option == "--":
            break
        if option == "-i":
            ignores_case = True
        elif option == "-m" and rest:
            method = rest.popleft()
        elif option in ("-f", "-M", "-u"):
            return Acl(fetch="always_false", unknown=f"{words[0]} {option}")
    unknown = "" if fetch in _KNOWN and set(filter(None, converters.split(","))) <= {"lower"} else words[0]
    if len(rest) > 1 and rest[0] in ("eq", "gt", "ge", "lt", "le"):
        unknown = unknown or ("" if rest.popleft() == "eq" else words[0])
    if method == "reg" and not unknown:
        unsupported = [pattern for pattern in rest if is_unsupported_pattern(pattern)]
        unknown = f"{words[0]} {unsupported[0]}" if unsupported else ""
    return Acl(
        fetch=fetch,
        argument=argument,
        match=method,
        patterns=tuple(rest),
        ignores_case=ignores_case,
        lowers="lower" in converters,
        unknown=unknown,
    )


class _Term(Struct, frozen=True, kw_only=True):
    alternatives: tuple[Acl, ...]
    """The criteria of one name, of which one must hold."""
    negated: bool = False


class Condition(Struct, frozen=True, kw_only=True):
    groups: tuple[tuple[_Term, ...], ...]
    """Groups of terms: all of one group must hold."""
    negated: bool = False

    def holds(self, request: Request, path: str) -> bool:
        found = any(
            all(
                any(acl.holds(request, path) for acl in term.alternatives) is not term.negated
                for term in group
            )
            for group in self.groups
        )
        return found is not self.negated

    def acls(self) -> Iterator[Acl]:
        for group in self.groups:
            for term in group:
                yield from term.alternatives


def condition_of(words: Sequence[str], acls: Mapping[str, Sequence[Acl]], *, negated: bool) -> Condition:
    """Return a condition; raise `ConditionError` for a name that is not defined."""
    groups: list[list[_Term]] = [[]]
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word in ("or", "||", "OR"):
            groups.append([])
            continue
        is_negated = word.startswith("!")
        name = word.removeprefix("!")
        if not name:
            name = "".join(words[at : at + 1])
            at += 1
        if name == "{":
            try:
                end = words.index("}", at)
            except ValueError:
                raise ConditionError("missing closing '}' in condition") from None
            alternatives: tuple[Acl, ...] = (acl_of(words[at:end]),) if end > at else ()
            at = end + 1
        elif name in acls:
            alternatives = tuple(acls[name])
        elif name in _BUILT_IN:
            fetch, patterns = _BUILT_IN[name]
            alternatives = (Acl(fetch=fetch, patterns=patterns),)
        else:
            raise ConditionError(f"no such ACL : '{name}'")
        groups[-1].append(_Term(alternatives=alternatives, negated=is_negated))
    return Condition(groups=tuple(tuple(group) for group in groups), negated=negated)
