"""Fields that clients seldom send. `rare_fields.jsonl` has patches of objects, and the message of a real kube-apiserver 1.36.3."""

from pathlib import Path

import orjson
import pytest

from tests.support.server import apiserver

CASES = [
    orjson.loads(line) for line in (Path(__file__).parent / "rare_fields.jsonl").read_bytes().splitlines()
]
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
JOBS = "/apis/batch/v1/namespaces/default/jobs"


@pytest.fixture
async def client():
    async with apiserver.running("--kubernetes-version=1.36") as client:
        yield client


def object_x(**more):
    return {"metadata": {"name": "x"}, **more}


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES])
async def test_message_is_that_of_real_server(client, case):
    created = await client.post(case["path"], object_x(**case["object"]))
    assert created.status == 201, created.body
    answer = await client.patch(f"{case['path']}/x{case['subresource']}", case["patch"])
    assert answer.body.get("message", "accepted") == case["message"]


async def test_field_that_is_not_stored_increments_generation_of_endpoint_slice(client):
    endpoint = {"addresses": ["192.0.2.1"]}
    created = await client.post(SLICES, object_x(addressType="IPv4", endpoints=[endpoint]))
    assert created.status == 201, created.body
    changed = await client.patch(
        f"{SLICES}/x", {"endpoints": [endpoint | {"deprecatedTopology": {"a": "b"}}]}
    )
    assert (changed.body["metadata"]["generation"], changed.body["endpoints"]) == (
        2,
        created.body["endpoints"],
    )
    same = await client.patch(f"{SLICES}/x", {"endpoints": [endpoint | {"deprecatedTopology": {}}]})
    assert same.body["metadata"]["generation"] == 2


async def test_empty_bytes_increment_generation_of_webhook_configuration(client):
    webhook = {
        "name": "a.example.com",
        "clientConfig": {"url": "https://example.com/x"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    created = await client.post(WEBHOOKS, object_x(webhooks=[webhook]))
    assert created.body["metadata"]["generation"] == 1, created.body
    webhook["clientConfig"]["caBundle"] = ""
    changed = await client.patch(f"{WEBHOOKS}/x", {"webhooks": [webhook]})
    assert changed.body["metadata"]["generation"] == 2


async def test_owner_references_of_review_are_returned_once(client):
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
    answer = await client.post(
        REVIEWS, {"metadata": {"ownerReferences": [owner, owner]}, "spec": {"token": "t"}}
    )
    assert answer.body["metadata"]["ownerReferences"] == [owner]
    warnings = [value for name, value in answer.headers.items() if name.lower() == "warning"]
    assert "duplicate UID(s) observed: u" in warnings[0]


async def test_labels_of_generated_selector_are_in_alphabetical_order(client):
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    refused = await client.post(JOBS, object_x(spec=spec))
    value = 'spec.selector: Invalid value: {"matchLabels":{"a":"b","batch.kubernetes.io/controller-uid":'
    assert value in refused.body["message"]
