"""The status of custom objects whose schema has a default for it: responses of kube-apiserver 1.36.3."""

import pytest

from tests.support.server import apiserver
from tests.support.server.definitions import GROUP, WIDGETS, define, definition, version

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
BEGINS_PENDING = {
    "type": "object",
    "x-kubernetes-validations": [
        {"rule": "oldSelf.hasValue() || !has(self.status)", "optionalOldSelf": True, "message": "a status"}
    ],
    "properties": {
        "spec": {"type": "object", "properties": {"a": TEXT | {"default": "x"}}},
        "status": {
            "type": "object",
            "default": {"seen": -1},
            "properties": {"seen": NUMBER, "phase": TEXT | {"default": "Pending"}},
        },
    },
}
PENDING = {"seen": -1, "phase": "Pending"}


def widget():
    return {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {}}


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        await define(client, definition(version(schema=BEGINS_PENDING, subresources={"status": {}})))
        yield client


async def test_default_replaces_status_of_new_object(client):
    """Validation rules do not see the default, because upstream applies it when it reads the stored object."""
    one, sent = f"{WIDGETS}/w", widget() | {"status": {"phase": "no"}}
    tried = await client.post(f"{WIDGETS}?dryRun=All", sent)
    created = await client.post(WIDGETS, sent)
    changed = await client.patch(one, {"spec": {"a": "y"}})
    emptied = await client.patch(f"{one}/status", {"status": None})
    read = await client.get(one)
    assert [answer.status for answer in (tried, created, changed, emptied)] == [201, 201, 200, 200]
    assert [answer.body["status"] for answer in (tried, created, changed, emptied, read)] == [PENDING] * 5
    assert read.body["metadata"]["generation"] == 2


async def test_newly_applied_object_gets_default_status(client):
    patched = await client.patch(f"{WIDGETS}/w?fieldManager=m", widget(), kind="apply-patch+yaml")
    assert (patched.status, patched.body["status"], patched.body["spec"]) == (201, PENDING, {"a": "x"})
