"""Definitions stored by a real kube-apiserver 1.36, which stores v1beta1, are served as v1."""

import orjson
import pytest

from mockube.etcd.kv import Put
from tests.support.server import apiserver
from tests.support.server.definitions import DEFINITIONS, established

NAME = "shirts.example.com"
SCHEMA = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}
COLUMN = {"name": "Color", "type": "string"}
NAMES = {"plural": "shirts", "singular": "shirt", "kind": "Shirt", "listKind": "ShirtList"}
METADATA = {"name": NAME, "uid": "u", "generation": 1, "creationTimestamp": "2030-01-01T00:00:00Z"}
STATUS = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": None}
STORED = {
    "group": "example.com",
    "version": "v1",
    "names": NAMES,
    "scope": "Namespaced",
    "validation": SCHEMA,
    "subresources": {"status": {}},
    "versions": [{"name": "v1", "served": True, "storage": True}],
    "additionalPrinterColumns": [COLUMN | {"JSONPath": ".spec.color"}],
    "conversion": {"strategy": "None"},
    "preserveUnknownFields": False,
}
VERSION = {
    "name": "v1",
    "served": True,
    "storage": True,
    "schema": SCHEMA,
    "subresources": {"status": {}},
    "additionalPrinterColumns": [COLUMN | {"jsonPath": ".spec.color"}],
}
SERVED = {
    "group": "example.com",
    "names": NAMES,
    "scope": "Namespaced",
    "versions": [VERSION],
    "conversion": {"strategy": "None"},
}
CLIENT = {"url": "https://127.0.0.1:1/convert", "caBundle": "Q0E="}


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


async def store(client, spec):
    tree = {"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1beta1"}
    tree |= {"metadata": METADATA, "spec": spec, "status": STATUS}
    backend = client.server.registry
    key = f"/registry/apiextensions.k8s.io/customresourcedefinitions/{NAME}".encode()
    result = await backend.kv.put(Put(key=key, value=orjson.dumps(tree)))
    await backend.watch_cache.wait_reached(result.revision)


def without(tree, *names):
    return {name: value for name, value in tree.items() if name not in names}


@pytest.mark.parametrize(
    ("stored", "served"),
    [
        pytest.param(STORED, SERVED, id="one version"),
        pytest.param(without(STORED, "versions"), SERVED, id="the name of the version alone"),
        pytest.param(
            STORED
            | {
                "versions": [
                    {"name": "v1", "served": True, "storage": True, "schema": SCHEMA},
                    {
                        "name": "v2",
                        "served": True,
                        "storage": False,
                        "schema": SCHEMA,
                        "additionalPrinterColumns": [COLUMN | {"JSONPath": ".spec.other"}],
                    },
                ]
            }
            | dict.fromkeys(("validation", "subresources", "additionalPrinterColumns")),
            SERVED
            | {
                "versions": [
                    {"name": "v1", "served": True, "storage": True, "schema": SCHEMA},
                    {
                        "name": "v2",
                        "served": True,
                        "storage": False,
                        "schema": SCHEMA,
                        "additionalPrinterColumns": [COLUMN | {"jsonPath": ".spec.other"}],
                    },
                ]
            },
            id="versions that differ",
        ),
        pytest.param(
            without(STORED, "conversion", "preserveUnknownFields", "scope")
            | {"names": {"plural": "shirts", "kind": "Shirt"}},
            SERVED | {"preserveUnknownFields": True},
            id="defaults",
        ),
        pytest.param(
            STORED | {"conversion": {"strategy": "Webhook", "webhookClientConfig": CLIENT}},
            SERVED
            | {
                "conversion": {
                    "strategy": "Webhook",
                    "webhook": {"clientConfig": CLIENT, "conversionReviewVersions": ["v1beta1"]},
                }
            },
            id="a webhook",
        ),
    ],
)
async def test_stored_v1beta1_definition_is_served_as_v1(client, stored, served):
    await store(client, stored)
    shown = (await client.get(f"{DEFINITIONS}/{NAME}")).body
    assert (shown["apiVersion"], shown["spec"]) == ("apiextensions.k8s.io/v1", served)


async def test_objects_of_stored_definition_are_served_and_it_is_rewritten_as_v1(client):
    await store(client, STORED)
    await established(client, NAME)
    shirts = "/apis/example.com/v1/namespaces/default/shirts"
    shirt = {"apiVersion": "example.com/v1", "kind": "Shirt", "metadata": {"name": "a"}}
    created = await client.post(shirts, shirt | {"spec": {"b": 1}, "c": 1})
    assert created.status == 201, created.body
    assert (created.body["spec"], "c" in created.body) == ({}, False)
    changed = await client.patch(f"{DEFINITIONS}/{NAME}", {"metadata": {"labels": {"a": "b"}}})
    assert (changed.status, changed.body["spec"]) == (200, SERVED)


@pytest.mark.parametrize(
    "spec",
    [1, STORED | {"versions": ["v1"]}, STORED | {"names": 1}, STORED | {"conversion": "None"}],
    ids=str,
)
async def test_invalid_stored_definition_is_unreadable(client, spec):
    await store(client, spec)
    assert (await client.get(DEFINITIONS)).body["items"] == []
    assert (await client.get(f"{DEFINITIONS}/{NAME}")).status == 500
