"""A stored built-in object with fields of wrong types is corrupt, and does not affect other objects.

Its metadata is readable: another program wrote it to the store without the API server.
"""

import orjson
import pytest

from mockube.apimachinery.schema import builtin
from mockube.apimachinery.schema.model import Shape
from mockube.apiserver.kinds.built_in_kinds import GROUPS
from mockube.apiserver.storage.shapes import TypeCheckedReader
from mockube.etcd.kv import Put, Range, prefix_end
from tests.support.server.apiserver import running

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
SCHEMAS = builtin.load()
STORED = {
    row.folder: row
    for group in GROUPS
    for row in group.resources
    if {"get", "patch", "delete"} <= {*row.verbs}
}
REFUSES = (Shape.STRUCT, Shape.LIST, Shape.MAP, Shape.STRING)


@pytest.fixture
async def client():
    async with running() as client:
        yield client


async def write(client, folder, name, tree, namespace=""):
    metadata = {"name": name, "uid": "u"} | ({"namespace": namespace} if namespace else {})
    backend = client.server.registry
    key = b"/registry/%b%b" % (folder, (f"{namespace}/" if namespace else "").encode() + name.encode())
    value = orjson.dumps(tree | {"metadata": metadata})
    result = await backend.kv.put(Put(key=key, value=value))
    await backend.watch_cache.wait_reached(result.revision)


def malformed_object(row):
    """Return an object with one field of a wrong type, or None for a kind that has no such field."""
    schema = SCHEMAS.kind(row.api_version, row.kind)
    fields = {} if schema is None else schema.fields
    of_wrong_type = {
        name: 7
        for name, field in fields.items()
        if field.type.shape in REFUSES and name not in ("metadata", "kind", "apiVersion")
    }
    first = dict([*of_wrong_type.items()][:1])
    return {"kind": row.kind, "apiVersion": row.api_version} | first if first else None


CASES = [row for row in STORED.values() if malformed_object(row) is not None]


def path_of(row):
    root = "/api/v1" if not row.group else f"/apis/{row.api_version}"
    return f"{root}/namespaces/default/{row.name}" if row.namespaced else f"{root}/{row.name}"


@pytest.mark.parametrize("row", CASES, ids=lambda row: row.kind)
async def test_every_verb_on_corrupt_object_is_an_error(client, caplog, row):
    await write(client, row.folder, "bad", malformed_object(row), "default" if row.namespaced else "")
    path = f"{path_of(row)}/bad"
    answers = [
        await client.get(path),
        await client.get(path, Accept=TABLE),
        await client.get(path, Accept="application/vnd.kubernetes.protobuf,application/json"),
        await client.patch(path, {"metadata": {"labels": {"a": "b"}}}),
    ]
    for answer in answers:
        assert answer.status == 500
        assert b"StorageError: corrupt object, Code: 7, Key: /registry/" in answer.data
        assert b"json: cannot unmarshal number into Go struct field" in answer.data
    listed = await client.get(path_of(row))
    assert listed.status == 200
    assert "bad" not in [item["metadata"]["name"] for item in listed.body["items"]]
    assert "cannot be read" in " ".join(listed.headers.getall("Warning"))
    assert [record for record in caplog.records if record.exc_info] == []
    assert (await client.send("DELETE", path)).status == 200
    assert (await client.get(path)).status == 404


async def test_updates_of_corrupt_object_and_status_are_errors(client):
    await write(client, b"pods/", "bad", {"kind": "Pod", "apiVersion": "v1", "spec": []}, "default")
    path = "/api/v1/namespaces/default/pods/bad"
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "bad", "namespace": "default"}}
    pod["spec"] = {"containers": [{"name": "a", "image": "b"}]}
    for answer in (
        await client.put(path, pod),
        await client.put(f"{path}/status", pod),
        await client.patch(f"{path}/status", {"status": {"phase": "Running"}}),
        await client.post(
            f"{path}/eviction", {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "bad"}}
        ),
    ):
        assert (answer.status, b"corrupt object" in answer.data) == (500, True), answer.data


DISTURBERS = {
    "LimitRange": ("v1", b"limitranges/", "default"),
    "ResourceQuota": ("v1", b"resourcequotas/", "default"),
    "ServiceAccount": ("v1", b"serviceaccounts/", "default"),
    "Service": ("v1", b"services/specs/", "default"),
    "Pod": ("v1", b"pods/", "default"),
    "Namespace": ("v1", b"namespaces/", ""),
    "Node": ("v1", b"minions/", ""),
    "PriorityClass": ("scheduling.k8s.io/v1", b"priorityclasses/", ""),
    "StorageClass": ("storage.k8s.io/v1", b"storageclasses/", ""),
    "IngressClass": ("networking.k8s.io/v1", b"ingressclasses/", ""),
    "ServiceCIDR": ("networking.k8s.io/v1", b"servicecidrs/", ""),
    "IPAddress": ("networking.k8s.io/v1", b"ipaddresses/", ""),
    "RuntimeClass": ("node.k8s.io/v1", b"runtimeclasses/", ""),
    "APIService": ("apiregistration.k8s.io/v1", b"apiregistration.k8s.io/apiservices/", ""),
    "CustomResourceDefinition": (
        "apiextensions.k8s.io/v1",
        b"apiextensions.k8s.io/customresourcedefinitions/",
        "",
    ),
}
"""Kinds that writes of other objects read."""

_AMOUNTS = [
    {"type": "Container", "max": None, "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}},
    {"max": {"cpu": "1"}},
    None,
]
BODIES = {
    "nothing else": {},
    "null": {"spec": None, "status": None},
    "a list": {"spec": [], "status": [], "value": [], "provisioner": [], "handler": [], "secrets": 7},
    "a text": {"spec": "x", "status": "x", "value": "x", "secrets": "x"},
    "empty": {"spec": {}, "status": {}, "value": 0, "provisioner": "", "handler": ""},
    "nulls inside": {
        "spec": {
            "limits": _AMOUNTS,
            "hard": None,
            "cidrs": None,
            "ports": [None],
            "versions": [None],
            "names": None,
        },
        "overhead": None,
        "secrets": [None],
        "imagePullSecrets": [None],
        "globalDefault": None,
    },
    "quantities and networks that are none": {
        "spec": {
            "limits": [{"type": "Container", "max": {"cpu": "x"}}],
            "cidrs": ["x"],
            "hard": {"pods": "x"},
        },
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        "overhead": {"podFixed": {"cpu": "x"}},
    },
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
async def test_corrupt_object_does_not_fail_other_writes(client, caplog, body):
    assert (
        await client.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    ).status in (201, 409)
    for kind, (api_version, folder, namespace) in DISTURBERS.items():
        await write(
            client,
            folder,
            "10.0.0.77" if kind == "IPAddress" else "bad",
            {"kind": kind, "apiVersion": api_version} | body,
            namespace,
        )
    created = {
        "/api/v1/namespaces": {},
        "/api/v1/namespaces/default/pods": {"spec": {"containers": [{"name": "a", "image": "b"}]}},
        "/api/v1/namespaces/default/persistentvolumeclaims": {
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        },
        "/api/v1/namespaces/default/services": {"spec": {"type": "NodePort", "ports": [{"port": 80}]}},
        "/apis/networking.k8s.io/v1/namespaces/default/ingresses": {
            "spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}
        },
        "/apis/scheduling.k8s.io/v1/priorityclasses": {"value": 5, "globalDefault": True},
    }
    for path, tree in created.items():
        answer = await client.post(path, {"metadata": {"name": "good"}} | tree)
        assert answer.status == 201, (path, answer.data)
        assert (await client.patch(f"{path}/good", {"metadata": {"labels": {"a": "b"}}})).status == 200
        assert (await client.get(path, Accept=TABLE)).status == 200
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []
    assert (await client.get("/readyz")).status == 200


async def test_missing_fields_are_completed_as_in_go(client):
    await write(client, b"limitranges/", "bare", {"kind": "LimitRange", "apiVersion": "v1"}, "default")
    answer = await client.get("/api/v1/namespaces/default/limitranges/bare")
    assert (answer.status, answer.body["spec"]) == (200, {"limits": None})


async def test_written_objects_are_read_back_unchanged(client):
    await client.post(
        "/api/v1/namespaces/default/services", {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}
    )
    await client.post(
        "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}, "binaryData": {"a": "AAE="}}
    )
    shapes, kv = TypeCheckedReader(SCHEMAS), client.server.registry.kv
    found = (await kv.range(Range(key=b"/registry/", range_end=prefix_end(b"/registry/")))).kvs
    values = [kv.value for kv in found if kv.value.startswith(b'{"kind"')]
    assert len(values) == 4
    assert [value for value in values if shapes.read(value) is not value] == []
