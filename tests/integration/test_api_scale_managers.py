"""Managers of an object's replicas after requests to its /scale: responses of a real kube-apiserver."""

import pytest

from tests.support.server import apiserver

REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
CREATED = ("creator", "Update", "", "all")
REST = ("creator", "Update", "", "rest")
REPLICAS = ("creator", "Update", "", "replicas")


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


async def send(client, verb, replicas, manager):
    scale = {"metadata": {"name": "x"}, "spec": {"replicas": replicas}}
    path, agent = f"{REPLICA_SETS}/x/scale", {"User-Agent": f"{manager}/1"}
    if verb == "patch":
        return await client.patch(path, {"spec": scale["spec"]}, **agent)
    if verb == "put":
        return await client.put(path, scale | {"metadata": {"name": "x", "namespace": "default"}}, **agent)
    path += f"?fieldManager={manager}{'&force=true' if verb == 'force' else ''}"
    scale |= {"apiVersion": "autoscaling/v1", "kind": "Scale"}
    return await client.patch(path, scale, kind="apply-patch+yaml")


def managers(tree):
    found = []
    for entry in tree["metadata"].get("managedFields", ()):
        spec = entry["fieldsV1"].get("f:spec", {})
        owned = {(True, True): "all", (True, False): "replicas", (False, True): "rest"}
        part = owned["f:replicas" in spec, "f:selector" in spec]
        found.append((entry["manager"], entry["operation"], entry.get("subresource", ""), part))
    return sorted(found)


def scale_entry(manager, operation="Update"):
    return manager, operation, "scale", "replicas"


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ([], [CREATED]),
        ([("patch", 4)], [REST, scale_entry("m0")]),
        ([("put", 4)], [REST, scale_entry("m0")]),
        ([("patch", 4), ("patch", 5)], [REST, scale_entry("m1")]),
        ([("patch", 4), ("patch", 4)], [REST, scale_entry("m0")]),
        ([("patch", 3)], [REPLICAS, REST]),
        ([("put", 3)], [REPLICAS, REST]),
        ([("patch", 3), ("patch", 5)], [REST]),
        ([("put", 3), ("put", 3)], [REST]),
        ([("patch", 0)], [REST]),
        ([("put", 0)], [REST]),
        ([("patch", 0), ("patch", 5)], [REST]),
        ([("patch", 4), ("patch", 0)], [REST]),
        ([("apply", 3)], [REPLICAS, REST, scale_entry("m0", "Apply")]),
        ([("apply", 3), ("patch", 3)], [REST, scale_entry("m0", "Apply")]),
        ([("force", 4), ("patch", 5)], [REST, scale_entry("m1")]),
        ([("force", 4), ("patch", 4)], [REST, scale_entry("m0", "Apply")]),
    ],
)
async def test_managers_after_scale(client, requests, expected):
    spec = {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
    body = {"metadata": {"name": "x"}, "spec": spec}
    created = await client.post(REPLICA_SETS, body, **{"User-Agent": "creator/1"})
    assert created.status == 201, created.data
    for number, (verb, replicas) in enumerate(requests):
        answer = await send(client, verb, replicas, f"m{number}")
        assert answer.status == 200, answer.data
    assert managers((await client.get(f"{REPLICA_SETS}/x")).body) == sorted(expected)


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        pytest.param({"spec": {}}, [REST, scale_entry("m", "Apply")], id="another field"),
        pytest.param({}, [REST], id="nothing"),
    ],
)
async def test_applier_of_scale_keeps_replicas_while_it_applies_any_field(client, scale, expected):
    spec = {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
    await client.post(REPLICA_SETS, {"metadata": {"name": "x"}, "spec": spec}, **{"User-Agent": "creator/1"})
    await send(client, "force", 5, "m")
    body = {"apiVersion": "autoscaling/v1", "kind": "Scale"} | scale
    path = f"{REPLICA_SETS}/x/scale?fieldManager=m"
    applied = await client.patch(path, body, kind="apply-patch+yaml")
    assert applied.status == 200, applied.data
    assert managers((await client.get(f"{REPLICA_SETS}/x")).body) == sorted(expected)


async def test_apply_after_scale_conflicts_with_before_first_apply(client):
    """If the replicas have no manager, an apply finds them managed by `before-first-apply`."""
    spec = {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
    await client.post(REPLICA_SETS, {"metadata": {"name": "x"}, "spec": spec})
    for replicas in (0, 7):
        await send(client, "put", replicas, "m")
    refused = await send(client, "apply", 5, "applier")
    assert (refused.status, "before-first-apply" in refused.body["message"]) == (409, True)
    # An empty Scale has a status of no replicas, which therefore have no manager.
    status = {"replicas": 1, "selector": "x=y"}
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 7}, "status": status}
    path = f"{REPLICA_SETS}/x/scale?fieldManager=applier"
    refused = await client.patch(path, scale, kind="apply-patch+yaml")
    assert [cause["field"] for cause in refused.body["details"]["causes"]] == [".status.selector"]


async def test_template_generation_of_daemon_set_is_managed(client):
    path = "/apis/apps/v1/namespaces/default/daemonsets"
    body = {
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE},
    }
    created = await client.post(path, body)
    (entry,) = created.body["metadata"]["managedFields"]
    annotation = "deprecated.daemonset.template.generation"
    assert entry["fieldsV1"]["f:metadata"] == {"f:annotations": {".": {}, f"f:{annotation}": {}}}
    assert created.body["metadata"]["annotations"] == {annotation: "1"}


async def test_external_name_has_no_internal_traffic_policy(client):
    path = "/api/v1/namespaces/default/services"
    created = await client.post(path, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    assert created.body["spec"]["internalTrafficPolicy"] == "Cluster"
    changed = await client.patch(f"{path}/s", {"spec": {"type": "ExternalName", "externalName": "a.b"}})
    assert (changed.status, "internalTrafficPolicy" in changed.body["spec"]) == (200, False)
