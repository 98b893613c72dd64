"""Requests whose path, query or headers are as large as the server accepts, and expensive to parse."""

from collections.abc import Iterator, Mapping
from typing import Final

from benchmarks.hostile_kinds import Request

SIZE: Final = 1_000_000
"""Bytes of a path, query or header; a request line and its headers have at most 1 MiB together."""
OBJECT: Final = "/api/v1/namespaces/default"

_REPEATED: Final[Mapping[str, Mapping[str, str]]] = {
    "Accept": {
        "ranges of all types": "*/*,", "ranges with a weight": "application/json;q=0.1,", "commas": ",",
        "unknown types": "a/b;c=d,", "parameters": "application/json;a=b;", "slashes": "/",
    },
    "Accept-Encoding": {"codings": "gzip;q=0,", "commas": ","},
    "Authorization": {"dots": ".", "words": "Bearer "},
    "Connection": {"options": "a,", "commas": ","},
    "Content-Type": {"types": "application/json,", "parameters": ";a=b", "semicolons": ";"},
    "Cookie": {"pairs": "a=b;"},
    "Expect": {"expectations": "100-continue,"},
    "If-None-Match": {"tags": '"a",', "commas": ","},
    "Impersonate-Group": {"letters": "a"},
    "Impersonate-User": {"letters": "a", "an account": "system:serviceaccount:"},
    "Range": {"ranges": "bytes=0-0,", "commas": ","},
    "Sec-WebSocket-Protocol": {"protocols": "v4.channel.k8s.io,", "commas": ","},
    "Traceparent": {"digits": "0"},
    "Transfer-Encoding": {"codings": "chunked,"},
    "Upgrade": {"protocols": "websocket,"},
    "User-Agent": {"words": "kubectl/", "letters": "a"},
    "X-Forwarded-For": {"addresses": "1.2.3.4,", "commas": ","},
    "X-Stream-Protocol-Version": {"protocols": "v4.channel.k8s.io,"},
}  # fmt: skip
_BEFORE: Final[Mapping[str, str]] = {"Authorization": "Bearer ", "Range": "bytes="}
_PATHS: Final[Mapping[str, str]] = {
    "Accept": "/metrics", "If-None-Match": "/openapi/v2", "Range": "/openapi/v3",
    "Sec-WebSocket-Protocol": f"{OBJECT}/pods/large/exec?command=a",
    "X-Stream-Protocol-Version": f"{OBJECT}/pods/large/exec?command=a", "Upgrade": f"{OBJECT}/pods/large/exec?command=a",
}  # fmt: skip


_QUERIES: Final[Mapping[str, str]] = {
    "parameters": "a=b&", "separators": "&", "semicolons": ";", "escapes": "%41", "wrong escapes": "%", "plus signs": "+",
    "field managers": "fieldManager=a&", "dry runs": "dryRun=All&", "invalid UTF-8": "%ff",
}  # fmt: skip
_TARGETS: Final[Mapping[str, str]] = {
    "slashes": "/", "segments": "/a", "parents": "/..", "escapes": "%41", "escaped slashes": "%2f", "dots": ".", "letters": "a",
}  # fmt: skip


def with_large_targets(_size: int) -> Iterator[tuple[str, Request]]:
    """Yield requests with a long path or query."""
    for name, unit in _TARGETS.items():
        yield f"path of {name}", Request("GET", f"{OBJECT}/configmaps/{unit * (SIZE // len(unit))}")
        yield f"path of {name} of no resource", Request("GET", f"/{unit * (SIZE // len(unit))}")
    for name, unit in _QUERIES.items():
        query = unit * (SIZE // len(unit))
        yield f"query of {name}", Request("GET", f"{OBJECT}?{query}")
        yield f"query of {name} for exec", Request("GET", f"{OBJECT}/pods/large/exec?{query}")
        yield f"query of {name} for OpenAPI", Request("GET", f"/openapi/v3?{query}")


def with_large_headers(_size: int) -> Iterator[tuple[str, Request]]:
    """Yield a request for each header, and for some a second one to an endpoint that parses the header itself."""
    for header, units in _REPEATED.items():
        for name, unit in units.items():
            text = _BEFORE.get(header, "") + unit * (SIZE // len(unit))
            for path in sorted({OBJECT, _PATHS.get(header, OBJECT)}):
                yield (
                    f"{header} of {name} to {path.partition('?')[0]}",
                    Request("GET", path, headers={header: text}),
                )
    extra = {f"Impersonate-Extra-{'%41' * 8}{n}": "a" for n in range(SIZE // 40)}
    yield "many impersonated values", Request("GET", OBJECT, headers={"Impersonate-User": "a"} | extra)
    yield "many headers", Request("GET", OBJECT, headers={f"X-{n}": "a" for n in range(SIZE // 12)})
