"""Updates whose objects contain empty lists, which kube-apiserver takes for missing ones."""

import pytest

from tests.support.server import apiserver
from tests.support.server.definitions import define, definition, version

APPS = "/apis/apps/v1/namespaces/default"
BATCH = "/apis/batch/v1/namespaces/default"
CORE = "/api/v1/namespaces/default"
POD = {
    "containers": [{"name": "c", "image": "x", "args": []}],
    "volumes": [{"name": "v", "projected": {"sources": []}}],
}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": POD}
NEVER = {"spec": POD | {"restartPolicy": "Never"}}
SELECTED = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
KINDS = [
    (f"{CORE}/pods", "v1", "Pod", {"spec": POD}),
    (f"{CORE}/podtemplates", "v1", "PodTemplate", {"template": TEMPLATE}),
    (f"{APPS}/deployments", "apps/v1", "Deployment", {"spec": SELECTED}),
    (f"{APPS}/daemonsets", "apps/v1", "DaemonSet", {"spec": SELECTED}),
    (f"{APPS}/statefulsets", "apps/v1", "StatefulSet", {"spec": SELECTED}),
    (
        f"{BATCH}/cronjobs",
        "batch/v1",
        "CronJob",
        {"spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": NEVER}}}},
    ),
    (f"{BATCH}/jobs", "batch/v1", "Job", {"spec": {"template": NEVER, "podFailurePolicy": {"rules": []}}}),
]


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        await client.post(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
        yield client


@pytest.mark.parametrize(("path", "api_version", "kind", "fields"), KINDS, ids=[row[2] for row in KINDS])
async def test_update_with_empty_lists_changes_nothing(client, path, api_version, kind, fields):
    created = await client.post(path, {"metadata": {"name": "x"}, **fields})
    assert created.status == 201, created.body
    applied = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **fields}
    for answer in (
        await client.patch(f"{path}/x", fields, kind="strategic-merge-patch+json"),
        await client.patch(f"{path}/x?fieldManager=m&force=true", applied, kind="apply-patch+yaml"),
        await client.patch(f"{path}/x?fieldManager=m&force=true", applied, kind="apply-patch+yaml"),
    ):
        assert answer.status == 200, answer.body
        assert answer.body["metadata"]["generation"] == 1


async def test_removal_of_last_item_is_change(client):
    named = [{"configMap": {"name": "x", "items": []}}]
    spec = SELECTED | {
        "template": TEMPLATE | {"spec": POD | {"volumes": [{"name": "v", "projected": {"sources": named}}]}}
    }
    await client.post(f"{APPS}/deployments", {"metadata": {"name": "x"}, "spec": spec})
    answer = await client.put(f"{APPS}/deployments/x", {"metadata": {"name": "x"}, "spec": SELECTED})
    assert answer.body["metadata"]["generation"] == 2
    stored = await client.get(f"{APPS}/deployments/x")
    assert stored.body["spec"]["template"]["spec"]["volumes"][0]["projected"]["sources"] is None


LISTS = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": {"items": {"type": "array", "items": {"type": "string"}}}}
    },
}


@pytest.mark.parametrize("options", [{}, {"schema": LISTS}], ids=["any value", "declared list"])
async def test_empty_list_of_custom_object_is_value(client, options):
    await define(client, definition(version(**options)))
    widgets = "/apis/example.com/v1/namespaces/default/widgets"
    await client.post(
        widgets, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "x"}, "spec": {}}
    )
    answer = await client.patch(f"{widgets}/x", {"spec": {"items": []}})
    assert (answer.body["spec"], answer.body["metadata"]["generation"]) == ({"items": []}, 2)
