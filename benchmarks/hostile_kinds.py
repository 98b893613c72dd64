"""Custom kinds with expensive schemas, and requests on their objects and definitions."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import orjson

GROUP: Final = "h.example.com"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OBJECTS: Final = f"/apis/{GROUP}/v1/namespaces/default"
MAX_DEFINITION_BYTES: Final = 1_400_000
"""Maximum size in bytes of a definition that the store accepts."""
PATTERN: Final = "^" + "(?:[a-z]?){1000}" * 40 + "$"
"""Nearly half as many instructions as the patterns of a schema may have together: spec and status have it."""
MAX_TEXT_LENGTH: Final = 2_000
KINDS: Final = 200

JSON, MERGE, APPLY = "application/json", "application/merge-patch+json", "application/apply-patch+yaml"


class Request(NamedTuple):
    method: str
    path: str
    body: bytes = b""
    content_type: str = JSON
    accept: str = JSON
    watch: int = 0
    """How many bytes of a stream are read before the connection is closed."""
    headers: Mapping[str, str] = MappingProxyType({})


def wide(size: int) -> Mapping[str, Any]:
    """Return a schema with many fields."""
    return {"type": "object", "properties": {f"k{n}": {"type": "string"} for n in range(size // 26)}}


_HEAVY: Final[Mapping[str, Any]] = {
    "type": "object", "properties": {"text": {"type": "string", "pattern": PATTERN}, "replicas": {"type": "integer"}},
}  # fmt: skip


def definition(
    plural: str, kind: str, spec: Mapping[str, Any], status: Mapping[str, Any] | None = None
) -> Any:
    fields = {"spec": spec, "status": status or {"type": "object"}}
    version = {
        "name": "v1", "served": True, "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": fields}},
        "subresources": {
            "status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
        },
    }  # fmt: skip
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "versions": [version], "names": names},
    }  # fmt: skip


def _object(kind: str, name: str, **fields: Any) -> bytes:
    return orjson.dumps({"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name}} | fields)


def stored_kinds(size: int, kinds: int) -> Iterator[tuple[str, bytes]]:
    yield DEFINITIONS, orjson.dumps(definition("broads", "Broad", wide(min(size, MAX_DEFINITION_BYTES))))
    yield DEFINITIONS, orjson.dumps(definition("heavies", "Heavy", _HEAVY, _HEAVY))
    for number in range(kinds):
        yield DEFINITIONS, orjson.dumps(definition(f"many{number}s", f"Many{number}", wide(2_000)))


def stored_objects(kinds: int) -> Iterator[tuple[str, bytes]]:
    """Yield objects of the kinds; a kind has metrics from its first object on."""
    for number in range(kinds):
        yield f"{OBJECTS}/many{number}s", _object(f"Many{number}", "one", spec={})
    yield f"{OBJECTS}/heavies", _object("Heavy", "one", spec={"text": "a", "replicas": 1})


def of_kinds(size: int) -> Iterator[tuple[str, Request]]:
    yield (
        "the first object of a kind with many fields",
        Request("POST", f"{OBJECTS}/broads", _object("Broad", "one", spec={})),
    )
    yield (
        "many objects in an object of few bytes",
        Request("POST", f"{OBJECTS}/broads", _object("Broad", "two", spec={"k1": 1})),
    )
    text = {"text": "a" * min(size // 100, MAX_TEXT_LENGTH) + "!", "replicas": 2}
    one = f"{OBJECTS}/heavies/one"
    yield "create, a heavy pattern", Request("POST", f"{OBJECTS}/heavies", _object("Heavy", "new", spec=text))
    yield "merge, a heavy pattern", Request("PATCH", one, orjson.dumps({"spec": text}), MERGE)
    yield "status, a heavy pattern", Request("PATCH", f"{one}/status", orjson.dumps({"status": text}), MERGE)
    yield (
        "apply, a heavy pattern",
        Request("PATCH", f"{one}?fieldManager=m&force=true", _object("Heavy", "one", spec=text), APPLY),
    )
    yield "scale, a heavy pattern", Request("PATCH", f"{one}/scale", b'{"spec":{"replicas":3}}', MERGE)
    body = orjson.dumps(definition("others", "Other", wide(min(size, MAX_DEFINITION_BYTES))))
    yield "store a definition", Request("POST", DEFINITIONS, body)
    yield "read a definition of many fields", Request("GET", f"{DEFINITIONS}/others.{GROUP}")
    described = orjson.dumps({"spec": {"names": {"shortNames": ["br"]}}})
    documents = {
        "OpenAPI v2": "/openapi/v2", "the list of OpenAPI v3": "/openapi/v3", "OpenAPI v3": f"/openapi/v3/apis/{GROUP}/v1",
        "discovery": f"/apis/{GROUP}/v1", "groups": "/apis",
    }  # fmt: skip
    for name, path in documents.items():
        change = described.replace(b"br", b"br%d" % len(path))
        yield (
            f"change a definition before {name}",
            Request("PATCH", f"{DEFINITIONS}/broads.{GROUP}", change, MERGE),
        )
        yield f"{name} of many kinds", Request("GET", path)
    aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    yield "aggregated discovery of many kinds", Request("GET", "/apis", accept=aggregated)
