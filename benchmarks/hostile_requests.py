"""Requests that are as expensive as possible for their size, for each verb and content type.

An attacker who has read the code would send them. `benchmarks/hostile.py` measures the latency of other
requests; a test measures the event loop.

Bodies have about `size` bytes: most are refused, or are too large for the store.
"""

import base64
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson

from benchmarks.hostile_heads import with_large_headers, with_large_targets
from benchmarks.hostile_kinds import (
    APPLY,
    DEFINITIONS,
    JSON,
    KINDS,
    MERGE,
    Request,
    definition,
    of_kinds,
    stored_kinds,
    stored_objects,
    wide,
)
from benchmarks.hostile_lists import with_related_lists
from mockube.apiserver.wire.protobuf import envelope

NAMESPACE = "/api/v1/namespaces/default"
MAPS = f"{NAMESPACE}/configmaps"
PODS = f"{NAMESPACE}/pods"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
CROWD = "/api/v1/namespaces/crowded/configmaps"
LARGE_MAP, LARGE_POD = f"{MAPS}/large", f"{PODS}/large"
STORED = 600_000
"""Bytes of the large objects that are there, at most: with the fields of their manager about what the store takes."""

YAML = "application/yaml"
JSON_PATCH, STRATEGIC = (f"application/{name}-patch+json" for name in ("json", "strategic-merge"))
PROTOBUF = "application/vnd.kubernetes.protobuf"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


Shape = Callable[[int], Mapping[str, Any]]
"""Returns the fields of an object besides its name, with about the given number of bytes."""


def _many(unit: int, item: Callable[[int], Any]) -> Callable[[int], list[Any]]:
    return lambda size: [item(number) for number in range(max(size // unit, 1))]


def _keys(size: int) -> dict[str, str]:
    return {f"k{number}": "" for number in range(size // 12)}


def _meta(**fields: Any) -> Mapping[str, Any]:
    return {"metadata": fields}


def _container(number: int) -> Any:
    return {"name": f"c{number}", "image": "i"}


def _env(number: int) -> Any:
    return {"name": f"E{number}", "value": ""}


def _spec(**fields: Any) -> Mapping[str, Any]:
    return {"spec": {"containers": [{"name": "c", "image": "i"}]} | fields}


_MAPS: Mapping[str, Shape] = {
    "one text": lambda size: {"data": {"a": "x" * size}},
    "a text of escapes": lambda size: {"data": {"a": "\x01\n" * (size // 8)}},
    "many keys": lambda size: {"data": _keys(size)},
    "unknown fields": _keys,
    "empty lists": lambda size: {"unknown": [[]] * (size // 3)},
    "numbers": lambda size: {"data": {"a": [1] * (size // 2)}},
    "labels": lambda size: _meta(labels=_keys(size)),
    "annotations": lambda size: _meta(annotations=_keys(size)),
    "finalizers": lambda size: _meta(finalizers=_many(14, lambda n: f"a.b/{n}")(size)),
    "owners": lambda size: _meta(
        ownerReferences=_many(60, lambda n: {"apiVersion": "v1", "kind": "Pod", "name": f"p{n}", "uid": f"{n}"})(size)
    ),
    "managers": lambda size: _meta(
        managedFields=_many(
            120,
            lambda n: {
                "manager": f"m{n}", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
                "fieldsV1": {f"f:k{n}": {}},
            },
        )(size)
    ),
    "one manager": lambda size: _meta(
        managedFields=[{
            "manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {f"f:k{n}": {} for n in range(size // 14)}},
        }]
    ),
}  # fmt: skip

_PODS: Mapping[str, Shape] = {
    "containers": lambda size: {"spec": {"containers": _many(30, _container)(size)}},
    "environment": lambda size: _spec(containers=[_container(0) | {"env": _many(28, _env)(size)}]),
    "ports": lambda size: _spec(
        containers=[_container(0) | {"ports": _many(26, lambda n: {"containerPort": n % 60000 + 1})(size)}]
    ),
    "volumes": lambda size: _spec(volumes=_many(32, lambda n: {"name": f"v{n}", "emptyDir": {}})(size)),
    "tolerations": lambda size: _spec(tolerations=_many(34, lambda n: {"key": f"k{n}", "operator": "Exists"})(size)),
    "spreading": lambda size: _spec(
        topologySpreadConstraints=_many(
            80, lambda n: {"maxSkew": 1, "topologyKey": f"k{n}", "whenUnsatisfiable": "DoNotSchedule"}
        )(size)
    ),
    "host aliases": lambda size: _spec(hostAliases=_many(34, lambda n: {"ip": "1.1.1.1", "hostnames": [f"h{n}"]})(size)),
    "wrong names": lambda size: {"spec": {"containers": _many(30, lambda _: {"name": "_", "image": ""})(size)}},
}  # fmt: skip


def _object(kind: str, name: str, fields: Mapping[str, Any], api_version: str = "v1") -> dict[str, Any]:
    metadata = {"name": name} | fields.get("metadata", {})
    return {"apiVersion": api_version, "kind": kind} | dict(fields) | {"metadata": metadata}


def _fitting(shape: Shape, size: int) -> Shape:
    """Scale a shape down if its body exceeds the size, as the size of an item is an estimate."""
    length = len(orjson.dumps(shape(size)))
    return shape if length <= size else lambda size: shape(size * size // length)


def _bodies(size: int) -> Iterator[tuple[str, Request]]:
    """Yield creations of objects, and updates and patches of an existing object to the same content."""
    for name, about in _MAPS.items():
        shape = _fitting(about, size)
        tree = _object("ConfigMap", "new", shape(size))
        body = orjson.dumps(tree)
        yield f"create, {name}", Request("POST", f"{MAPS}?dryRun=All", body)
        yield f"create from YAML, {name}", Request("POST", f"{MAPS}?dryRun=All", _as_yaml(tree), YAML)
        yield (
            f"update, {name}",
            Request(
                "PUT", f"{LARGE_MAP}?dryRun=All", orjson.dumps(_object("ConfigMap", "large", shape(size)))
            ),
        )
        yield f"merge, {name}", Request("PATCH", f"{LARGE_MAP}?dryRun=All", orjson.dumps(shape(size)), MERGE)
        yield (
            f"strategic merge, {name}",
            Request("PATCH", f"{LARGE_MAP}?dryRun=All", orjson.dumps(shape(size)), STRATEGIC),
        )
        yield (
            f"apply, {name}",
            Request(
                "PATCH",
                f"{LARGE_MAP}?dryRun=All&fieldManager=m&force=true",
                body.replace(b'"new"', b'"large"', 1),
                APPLY,
            ),
        )


def _other_bodies(size: int) -> Iterator[tuple[str, Request]]:
    """Yield requests on kinds with more validation rules."""
    for name, about in _PODS.items():
        shape = _fitting(about, size)
        yield (
            f"create a pod, {name}",
            Request("POST", f"{PODS}?dryRun=All", orjson.dumps(_object("Pod", "new", shape(size)))),
        )
        yield (
            f"update a pod, {name}",
            Request("PUT", f"{LARGE_POD}?dryRun=All", orjson.dumps(_object("Pod", "large", shape(size)))),
        )
        yield (
            f"apply a pod, {name}",
            Request(
                "PATCH",
                f"{PODS}/new?dryRun=All&fieldManager=m",
                orjson.dumps(_object("Pod", "new", shape(size))),
                APPLY,
            ),
        )
    rules = _many(60, lambda n: {"apiGroups": [""], "resources": [f"r{n}"], "verbs": ["get"]})(size)
    yield (
        "create a role, rules",
        Request(
            "POST",
            f"{ROLES}?dryRun=All",
            orjson.dumps(_object("ClusterRole", "new", {"rules": rules}, "rbac.authorization.k8s.io/v1")),
        ),
    )
    yield (
        "create a definition, properties",
        Request(
            "POST",
            f"{DEFINITIONS}?dryRun=All",
            orjson.dumps(definition("wides", "Wide", wide(size * 9 // 10))),
        ),
    )


def _protobuf_bodies(size: int) -> Iterator[tuple[str, Request]]:
    shapes = {"one text", "many keys", "labels", "annotations", "finalizers", "owners"}
    for name, shape in _MAPS.items():
        if name in shapes:
            body = envelope.encode(_object("ConfigMap", "new", shape(size // 2)))
            yield f"create from protobuf, {name}", Request("POST", f"{MAPS}?dryRun=All", body, PROTOBUF)
    for name, shape in _PODS.items():
        body = envelope.encode(_object("Pod", "new", shape(size // 2)))
        yield f"create a pod from protobuf, {name}", Request("POST", f"{PODS}?dryRun=All", body, PROTOBUF)


def _protobuf_envelope(fields: bytes) -> bytes:
    """Return a protobuf envelope of a ConfigMap with these encoded fields."""
    length = b""
    rest = len(fields)
    while rest > 0x7F:
        length, rest = length + bytes([rest & 0x7F | 0x80]), rest >> 7
    return b"k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12" + length + bytes([rest]) + fields


def _as_yaml(tree: Mapping[str, Any]) -> bytes:
    """Return YAML whose first line makes it invalid as JSON."""
    return b"---\n" + orjson.dumps(tree)


def _texts(size: int) -> Iterator[tuple[str, Request]]:
    """Yield requests whose bodies are not objects."""
    flat, nested, pairs = b"1," * (size // 2), b"[]," * (size // 3), b'"a":1,' * (size // 6)
    json = {
        "a flat list that is not closed": b"[" + flat,
        "nested lists that are not closed": b"[" + nested,
        "pairs that are not closed": b"{" + pairs,
        "a text that is not closed": b'"' + b"a\\n" * (size // 3),
        "no text in UTF-8": b'{"data":{"a":"\xff"},"b":[' + flat + b"1]}",
        "nesting": b"[" * size,
        "the same key again": b'{"kind":"ConfigMap",' + pairs + b'"a":1}',
        "long numbers": b'{"a":[' + b"1234567890123456789.5e-7," * (size // 25) + b"1]}",
        "spaces": b" " * size,
    }
    for name, body in json.items():
        yield f"JSON, {name}", Request("POST", MAPS, body)
        yield f"merge patch, {name}", Request("PATCH", LARGE_MAP, body, MERGE)
        yield f"deletion, {name}", Request("DELETE", f"{MAPS}/none", body)
    merges = (
        b"{a: &a {"
        + b", ".join(b"k%d: 1" % n for n in range(size // 20))
        + b"}, b: {"
        + b"<<: *a, " * (size // 20)
    )
    yaml = {
        "digits": b"a: " + b"9" * size,
        "numbers": b"a: [" + b"1e3," * (size // 4) + b"1]",
        "block list": b"a:\n" + b"- b\n" * (size // 4),
        "block pairs": b"".join(b"k%d: b\n" % n for n in range(size // 11)),
        "nesting": b"- " * (size // 2),
        "merges": merges + b"}}",
        "aliases": b"a: &a x\nb: [" + b"*a," * (size // 3) + b"]",
        "directives": b"%TAG !a! x\n" * (size // 11) + b"--- a",
        "comments": b"# a\n" * (size // 4),
        "a flow list that is not closed": b"[" + flat,
        "the same key again": b"a: 1\n" * (size // 5),
    }
    for name, body in yaml.items():
        yield f"YAML, {name}", Request("POST", MAPS, body, YAML)
    yield "apply, block pairs", Request("PATCH", f"{LARGE_MAP}?fieldManager=m", yaml["block pairs"], APPLY)
    texts = (b"\x7a\x01a", b"\x0a\x03\x0a\x01a", b"\xf8\x07\x01")
    for number, part in enumerate(texts):
        fields = part * (size // len(part))
        yield (
            f"protobuf, many small fields {number}",
            Request("POST", MAPS, _protobuf_envelope(fields), PROTOBUF),
        )
    yield "protobuf, empty fields", Request("POST", MAPS, b"k8s\x00" + b"\x12\x00" * (size // 2), PROTOBUF)
    yield "protobuf, zeros", Request("POST", MAPS, b"k8s\x00" + b"\x00" * size, PROTOBUF)


def _patches(size: int) -> Iterator[tuple[str, Request]]:
    add = [{"op": "add", "path": f"/data/k{n}", "value": ""} for n in range(min(size // 45, 10_000))]
    test = b'[{"op":"test","path":"/data","value":{' + b'"a":1,' * (size // 6) + b'"b":1}}]'
    deep = b'[{"op":"add","path":"' + b"/a" * (size // 2) + b'","value":1}]'
    bodies = {"additions": orjson.dumps(add), "a long test": test, "a long path": deep}
    for name, body in bodies.items():
        yield f"JSON patch, {name}", Request("PATCH", f"{LARGE_MAP}?dryRun=All", body, JSON_PATCH)
    small = orjson.dumps({"metadata": {"labels": {"a": "b"}}})
    for kind in (MERGE, STRATEGIC):
        yield (
            f"a small patch of a large object, {kind}",
            Request("PATCH", f"{LARGE_MAP}?dryRun=All", small, kind),
        )
        yield (
            f"a small patch of a large pod, {kind}",
            Request("PATCH", f"{LARGE_POD}?dryRun=All", small, kind),
        )
    named = orjson.dumps(_object("ConfigMap", "large", {}))
    yield (
        "a small apply to a large object",
        Request("PATCH", f"{LARGE_MAP}?dryRun=All&fieldManager=n", named, APPLY),
    )


def _reads(size: int) -> Iterator[tuple[str, Request]]:
    yaml_stream = f"{YAML};stream=watch"
    forms = {"JSON": JSON, "YAML": YAML, "a table": TABLE, "protobuf": PROTOBUF, "metadata": PARTIAL}
    for name, accept in forms.items():
        yield f"list as {name}", Request("GET", MAPS, accept=accept)
        yield (
            f"watch as {name}",
            Request(
                "GET", f"{MAPS}?watch=1", accept=yaml_stream if accept == YAML else accept, watch=4 << 20
            ),
        )
        for kind, path in (("object", LARGE_MAP), ("pod", LARGE_POD)):
            if accept != PARTIAL:
                yield f"get a large {kind} as {name}", Request("GET", path, accept=accept)
    long = ",".join(f"k{n}!=v" for n in range(min(size, 900_000) // 9))
    initial = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    for name, accept in (forms | {"YAML": yaml_stream}).items():
        yield (
            f"watch all that is there as {name}",
            Request("GET", f"{MAPS}?{initial}", accept=accept, watch=4 << 20),
        )
    selectors = {
        "one label": "labelSelector=app%3Dnone", "another label": "labelSelector=other%3Da",
        "no label": "labelSelector=!app", "a field": "fieldSelector=metadata.name!%3Da", "many labels": f"labelSelector={long}",
    }  # fmt: skip
    for name, query in selectors.items():
        yield f"list by {name}", Request("GET", f"{MAPS}?{query}")
        yield f"watch by {name}", Request("GET", f"{MAPS}?{initial}&{query}", watch=1 << 16)
    values = b"1," * (min(size, 700_000) // 2)
    for name, text in {
        "a long continue token": b"[%b1]",
        "a continue token that is not closed": b"[%b1",
    }.items():
        token = base64.urlsafe_b64encode(text % values).decode().rstrip("=")
        yield f"list by {name}", Request("GET", f"{MAPS}?limit=1&continue={token}")
    yield (
        "list of all at a revision",
        Request("GET", f"{MAPS}?resourceVersion=1&resourceVersionMatch=NotOlderThan"),
    )
    yield "try to delete all", Request("DELETE", f"{MAPS}?dryRun=All")
    yield "OpenAPI v2", Request("GET", "/openapi/v2")
    yield "OpenAPI v3", Request("GET", "/openapi/v3/apis/apps/v1")
    yield "metrics", Request("GET", "/metrics")
    yield "save a snapshot", Request("GET", "/mockube/snapshot")


def table(size: int) -> Mapping[str, Request]:
    """Return all requests by name."""
    requests = {
        name: one
        for part in (
            _bodies,
            _other_bodies,
            _protobuf_bodies,
            _texts,
            _patches,
            with_related_lists,
            with_large_targets,
            with_large_headers,
            of_kinds,
            _reads,
        )
        for name, one in part(size)
    }
    last = {
        "delete a namespace with many objects": Request("DELETE", "/api/v1/namespaces/crowded"),
        "delete all of a namespace that ends": Request("DELETE", CROWD),
        "delete all": Request("DELETE", MAPS),
    }
    return requests | last


def objects_before(objects: int, size: int, kinds: int = KINDS) -> Iterator[tuple[str, bytes]]:
    """Yield (collection, body) of the initial objects: many small ones, and some of the maximum size."""
    yield "/api/v1/namespaces", orjson.dumps(_object("Namespace", "default", {}))
    yield from stored_kinds(size, kinds)
    yield MAPS, orjson.dumps(_object("ConfigMap", "large", {"data": _keys(min(size, STORED))}))
    yield f"{NAMESPACE}/serviceaccounts", orjson.dumps(_object("ServiceAccount", "default", {}))
    yield PODS, orjson.dumps(_object("Pod", "large", _PODS["environment"](min(size, STORED))))
    for number in range(objects):
        labels = {"app": f"a{number % 100}", "other": "a"}
        yield (
            MAPS,
            orjson.dumps(
                _object("ConfigMap", f"map-{number}", {"metadata": {"labels": labels}, "data": {"a": "b"}})
            ),
        )
    yield "/api/v1/namespaces", orjson.dumps(_object("Namespace", "crowded", {}))
    for number in range(objects // 4):
        yield CROWD, orjson.dumps(_object("ConfigMap", f"map-{number}", {"data": {"a": "b"}}))
    yield from stored_objects(kinds)
