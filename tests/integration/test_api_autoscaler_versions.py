"""Field managers of HorizontalPodAutoscalers that are written in two versions."""

import pytest

from tests.support.server.apiserver import running

V1 = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
V2 = V1.replace("v1", "v2", 1)
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
MEMORY = {
    "type": "Resource",
    "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 60}},
}


@pytest.fixture
async def client():
    async with running() as client:
        yield client


def autoscaler_body(version, **spec):
    return {
        "apiVersion": f"autoscaling/{version}",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "a"},
        "spec": {"scaleTargetRef": TARGET, **spec},
    }


async def apply(client, path, name, body, options=""):
    return await client.patch(f"{path}/a?fieldManager={name}{options}", body, kind="apply-patch+yaml")


def managers(answer):
    return {one["manager"]: one for one in answer.body["metadata"]["managedFields"]}


async def test_each_version_has_its_managed_fields(client):
    old = autoscaler_body("v1", maxReplicas=3, targetCPUUtilizationPercentage=50)
    new = autoscaler_body("v2", maxReplicas=4, metrics=[MEMORY])
    assert (await apply(client, V1, "one", old)).status == 201
    refused = await apply(client, V2, "two", new)
    assert (refused.status, refused.body["message"]) == (
        *(409, 'Apply failed with 1 conflict: conflict with "one": .spec.maxReplicas'),
    )
    taken = managers(await apply(client, V2, "two", new, "&force=true"))
    assert taken["one"]["apiVersion"] == "autoscaling/v1"
    assert taken["one"]["fieldsV1"] == {"f:spec": {"f:scaleTargetRef": {}}}
    assert taken["two"]["fieldsV1"]["f:spec"].keys() == {"f:maxReplicas", "f:metrics", "f:scaleTargetRef"}
    back = await apply(client, V1, "one", old)
    assert "- .spec.maxReplicas\n- .spec.metrics" in back.body["message"]


async def test_unreadable_v1_annotation_is_ignored(client):
    body = autoscaler_body("v1", maxReplicas=3) | {
        "metadata": {"name": "b", "annotations": {"autoscaling.alpha.kubernetes.io/conditions": "[1]"}}
    }
    created = await client.post(V1, body)
    assert (created.status, created.body["metadata"].get("annotations")) == (201, None)
