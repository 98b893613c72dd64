"""Hostile requests, made by random changes of valid ones. The same seed makes the same requests."""

from dataclasses import dataclass
from urllib.parse import quote

import orjson

from tests.support.hostile import hostile_bodies as bodies
from tests.support.hostile import hostile_frames
from tests.support.hostile.hostile_samples import NAMESPACE, OWN, recorded_samples
from tests.support.seeded import source
from tests.support.server import raw_http

CREDENTIALS = (b"Authorization", b"Bearer admin")


@dataclass(frozen=True)
class HostileRequest:
    """Pieces to send over one connection. A well-framed request must get a response; on others it may be closed."""

    pieces: tuple[bytes, ...]
    well_framed: bool = True
    hangs_up: bool = False


class HostileRequests:
    """Generates requests; most have a wrong body."""

    def __init__(self, seed):
        self._random = source("hostile", seed)
        self._samples = [OWN, recorded_samples() or OWN]

    def next(self):
        random = self._random
        make = random.choices(
            (_wrong_body, _bomb, _wrong_path, _wrong_query, _wrong_headers, _wrong_frame),
            weights=(50, 12, 10, 14, 8, 6),
        )[0]
        return make(random.choice(random.choice(self._samples)), random)


_PATCHES = ("json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml")


def _wrong_body(sample, random):
    if sample.body is None:
        return _wrong_query(sample, random)
    media_type, data = bodies.encoded(bodies.mutated(sample.body, random), random)
    path = sample.path
    if sample.method == "PATCH":
        patch = "json-patch+json" if isinstance(sample.body, list) else random.choice(_PATCHES)
        media_type = f"application/{patch}"
        path = _with_query(path, "fieldManager=fuzz&force=true") if patch == "apply-patch+yaml" else path
    return request_with_headers(sample.method, path, data, (b"Content-Type", media_type.encode()))


def _bomb(sample, random):
    media_type, data = bodies.bomb(random)
    method = "PATCH" if "patch" in media_type else random.choice(("POST", "PUT", "DELETE", "GET"))
    path = (
        f"/api/v1/namespaces/{NAMESPACE}/configmaps"
        if random.random() < 0.5
        else sample.path.partition("?")[0]
    )
    if method in ("PATCH", "PUT") and path.endswith("/configmaps"):
        path += "/many?fieldManager=fuzz"
    return request_with_headers(method, path, data, (b"Content-Type", media_type.encode()))


_ODD_SEGMENTS = (
    "", ".", "..", "%2f", "%2e%2e", "%00", "%0d%0aX:%20y", "%ff", "%ed%a0%80", "%", "%zz", "a" * 300, "x" * 60_000, "A", "é", "a b",
    "watch", "proxy", "namespaces", "status", "scale", "log", "exec", "*", ":80", "https:a:1", ";a", "~", "[", "{}", "`", "|", "\\", "a%20b",
)  # fmt: skip
_ODD_TARGETS = (
    "*", "", "?", "#", "//", "/..", "/../..", "http://example.com/api", "/api//v1", "/apis//", "/apis/apps", "/apis/apps/v1/", "/api/v1/watch", "/api/v1/watch/",
    "/openapi/v3/..", "/openapi/v3/apis/none/v1", "/openapi/v3?hash=x", "/healthz/x", "/readyz?exclude=x&verbose", "/livez/ping/x", "/metrics/x", "/a\x01b", "/\x7f",
    "/" * 50_000, "/api/v1" + "/x" * 3_000, "/?" + "&" * 50_000, "/version?" + "a=b&" * 9_000, "/.well-known/x", "/debug/pprof", "/api/v1/namespaces//pods",
)  # fmt: skip


def _wrong_path(sample, random):
    path, _, query = sample.path.partition("?")
    if random.random() < 0.3:
        return request_with_headers(sample.method, random.choice(_ODD_TARGETS), b"")
    parts = path.split("/")
    position = random.randrange(1, len(parts) + 1)
    parts[position : position + random.choice((0, 1))] = [random.choice(_ODD_SEGMENTS)] * random.choice(
        (1, 1, 1, 2, 50)
    )
    body = orjson.dumps(sample.body) if sample.body is not None and random.random() < 0.5 else b""
    return request_with_headers(sample.method, "/".join(parts) + (query and f"?{query}"), body)


_PARAMETERS = (
    "watch", "limit", "continue", "labelSelector", "fieldSelector", "resourceVersion", "resourceVersionMatch", "timeoutSeconds", "timeout",
    "sendInitialEvents", "allowWatchBookmarks", "dryRun", "fieldManager", "fieldValidation", "pretty", "force", "gracePeriodSeconds",
    "propagationPolicy", "orphanDependents", "includeObject", "ignoreStoreReadErrorWithClusterBreakingPotential", "as", "", "container",
)  # fmt: skip
_ODD_VALUES = (
    "", "0", "1", "-1", "true", "yes", "9" * 25, "9" * 5000, "-" + "9" * 20, "1e3", "0x1", " 1", "+1", "1.5", "\u0663", "\x00", "\n", "a" * 200, "b" * 60_000, "é\U0001f600",
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi8uLi94In0", "e30", "bnVsbA", "W10", "eyJydiI6Im5vIn0", "====", "Exact", "NotOlderThan", "All", "Strict", "1s", "-1h", "9999999999h",
    "1ns", "a in (b,c", "a in ()", "!a,!a", "a>1", "a<9" + "9" * 5000, "a==b,a!=b", ",,,", "=", "!", "(((", "metadata.name=", "metadata.name=..", "spec.nodeName=a", "status.phase!=x", "x=\\", "a=b\\,c",
    ",".join(["a=b"] * 5_000), "a in (" + ",".join(["b"] * 5_000) + ")", "Foreground", "Metadata", "None",
)  # fmt: skip


def _wrong_query(sample, random):
    """Return a few query parameters; each may be repeated, and have any value."""
    pairs = [
        (random.choice(_PARAMETERS), random.choice(_ODD_VALUES))
        for _ in range(random.choice((1, 1, 2, 3, 8)))
    ]
    text = random.choice("&&&&;").join(f"{name}={quote(value)}" for name, value in pairs)
    if random.random() < 0.2:
        text += random.choice(
            ("&%", "&%ff=%fe", "&=", "&&&", "&a", "&%00=%00", "&watch=%ed%a0%80", "#x", "??")
        )
    body = orjson.dumps(sample.body) if sample.body is not None else b""
    media_type = "application/merge-patch+json" if sample.method == "PATCH" else bodies.JSON
    return request_with_headers(
        sample.method, _with_query(sample.path, text), body, (b"Content-Type", media_type.encode())
    )


_ODD_HEADERS = (
    (b"Accept", b"text/html"), (b"Accept", b"*/*;q=nan"), (b"Accept", b"application/json;as=Table;v=v1;g=meta.k8s.io"), (b"Accept", b"application/json;as=Table;v=v9"),
    (b"Accept", b"application/yaml;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"), (b"Accept", b"application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1"),
    (b"Accept", b"application/json;q=1e999,application/yaml;q=-1"), (b"Accept", b",;,;=" * 5_000), (b"Accept", b"\xff\xfe"), (b"Accept", b"application/cbor"),
    (b"Content-Type", b"\xff"), (b"Content-Type", b"application/json; charset=\xff"), (b"Content-Type", b"multipart/form-data; boundary=x"), (b"Content-Type", b"application/cbor"),
    (b"Content-Type", b";" * 60_000), (b"Content-Encoding", b"gzip"), (b"Content-Encoding", b"deflate"), (b"Content-Encoding", b"br"), (b"Content-Encoding", b"x"),
    (b"User-Agent", b"\xff\xed\xa0\x80/1"), (b"User-Agent", b"a" * 60_000), (b"User-Agent", b"\x01"), (b"User-Agent", "\u2028\U0001f600".encode()),
    (b"Impersonate-User", b"\xff"), (b"Impersonate-Group", b"a"), (b"Impersonate-Uid", b"1"), (b"Impersonate-Extra-%ff%", b"x"), (b"Impersonate-User", b"system:serviceaccount:a:b:c"),
    (b"Authorization", b"Bearer"), (b"Authorization", b"Bearer \xff"), (b"Authorization", b"Basic !!"), (b"Authorization", b"Bearer a.b.c"), (b"Authorization", b"Bearer e30.e30.e30"),
    (b"Expect", b"100-continue"), (b"Expect", b"x"), (b"Upgrade", b"websocket"), (b"Connection", b"Upgrade"), (b"If-None-Match", b"\xff"), (b"Range", b"bytes=0-"), (b"X" * 20_000, b"y"),
    (b"Accept-Encoding", b"gzip;q=0"), (b"X-Http-Method-Override", b"DELETE"), (b"Host", b"\xff"), (b"Kubectl-Command", b"\xff"), (b"Audit-Id", b"\xff" * 900),
)  # fmt: skip
_METHODS = (
    "GET",
    "HEAD",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "PROPFIND",
    "get",
    "FOO",
    "GET\x00",
    "",
)


def _wrong_headers(sample, random):
    method = random.choice(_METHODS) if random.random() < 0.3 else sample.method
    body = orjson.dumps(sample.body) if sample.body is not None else b""
    headers = [random.choice(_ODD_HEADERS) for _ in range(random.choice((1, 1, 2, 5)))]
    if random.random() < 0.05:
        headers += [(b"X-Many-%d" % index, b"v") for index in range(2_000)]
    return request_with_headers(method, sample.path, body, *headers)


def _wrong_frame(sample, random):
    body = b"" if sample.body is None else orjson.dumps(sample.body)
    head = b"%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer admin\r\nContent-Type: application/json\r\n"
    head %= (sample.method.encode(), _target(sample.path))
    if random.random() < 0.3:
        return HostileRequest(
            random.choice(hostile_frames.cut_off(head, body)), well_framed=False, hangs_up=True
        )
    return HostileRequest(random.choice(hostile_frames.broken(head, body)), well_framed=False)


def request_with_headers(method, path, body, *headers):
    """Return a request whose headers replace the usual ones."""
    header_names = {name for name, _ in headers}
    usual = [(b"Content-Type", bodies.JSON.encode()), CREDENTIALS]
    headers = [*headers, *(header for header in usual if header[0] not in header_names)]
    return HostileRequest((raw_http.request(method.encode(), _target(path), headers, body),))


def _target(path):
    return path.encode("utf-8", "surrogatepass").replace(b" ", b"+")


def _with_query(path, query):
    return f"{path}{'&' if '?' in path else '?'}{query}"
