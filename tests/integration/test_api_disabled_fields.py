"""Fields behind feature gates that are off are dropped, as kube-apiserver drops them."""

import pytest

from tests.support.server import apiserver

CORE, APPS = "/api/v1/namespaces/default", "/apis/apps/v1/namespaces/default"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
SLICES, DRIVERS = "/apis/resource.k8s.io/v1/resourceslices", "/apis/storage.k8s.io/v1/csidrivers"
BATCH = "/apis/batch/v1/namespaces/default"


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        await client.post(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
        yield client


SLEEP = {"preStop": {"sleep": {"seconds": 1}}}
SPEC = {
    "os": {"name": "linux"},
    "schedulingGroup": {"podGroupName": "x"},
    "containers": [
        {"name": "a", "image": "b", "lifecycle": {"stopSignal": "SIGTERM"}},
        {"name": "b", "image": "b", "lifecycle": {"stopSignal": "SIGTERM"} | SLEEP},
        {"name": "c", "image": "b", "lifecycle": {}},
    ],
    "initContainers": [
        {"name": "i", "image": "b", "restartPolicy": "Always", "lifecycle": {"stopSignal": "SIGTERM"}}
    ],
}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": SPEC}
SELECTOR = {"selector": {"matchLabels": {"a": "b"}}}


def nested(value, *keys):
    for key in reversed(keys):
        value = {key: value}
    return value


def value_at(tree, *keys):
    for key in keys:
        tree = tree[key]
    return tree


@pytest.mark.parametrize(
    ("path", "keys", "more"),
    [
        (f"{CORE}/pods", ("spec",), {}),
        (f"{CORE}/podtemplates", ("template", "spec"), {}),
        (f"{CORE}/replicationcontrollers", ("spec", "template", "spec"), {}),
        *(
            (f"{APPS}/{name}", ("spec", "template", "spec"), SELECTOR)
            for name in ("deployments", "replicasets", "statefulsets", "daemonsets")
        ),
        (f"{BATCH}/jobs", ("spec", "template", "spec"), {"template": {"spec": {"restartPolicy": "Never"}}}),
        (
            f"{BATCH}/cronjobs",
            ("spec", "jobTemplate", "spec", "template", "spec"),
            {
                "schedule": "* * * * *",
                "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never"}}}},
            },
        ),
    ],
)
async def test_disabled_fields_of_pods_and_templates_are_dropped(client, path, keys, more):
    spec = SPEC | {"restartPolicy": "Never"} if path.startswith(BATCH) else SPEC
    tree = nested(spec, *keys)
    if len(keys) > 1:
        value_at(tree, *keys[:-1])["metadata"] = {"labels": {"a": "b"}}
    if "spec" in tree:
        tree["spec"] = more | tree["spec"]
    created = await client.post(path, {"metadata": {"name": "x"}} | tree)
    assert created.status == 201, created.body
    spec = value_at(created.body, *keys)
    assert "schedulingGroup" not in spec
    assert [one.get("lifecycle") for one in spec["containers"]] == [None, SLEEP, {}]
    assert "lifecycle" not in spec["initContainers"][0]
    changed = await client.patch(f"{path}/x", nested({"schedulingGroup": {"podGroupName": "y"}}, *keys))
    assert changed.status == 200, changed.body
    assert "schedulingGroup" not in value_at(changed.body, *keys)
    assert changed.body["metadata"].get("generation") == created.body["metadata"].get("generation")
    assert b"f:schedulingGroup" in changed.data  # a dropped field is managed too


async def test_disabled_fields_of_pod_status_are_dropped(client):
    await client.post(
        f"{CORE}/pods", {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
    )
    mount = {"name": "v", "mountPath": "/x"}
    status = {
        "nodeAllocatableResourceClaimStatuses": [
            {"resourceClaimName": "x", "containers": ["a"], "resources": {"cpu": "1"}}
        ],
        "containerStatuses": [
            {"name": "a", "image": "b", "imageID": "c", "ready": False, "restartCount": 0}
            | {"volumeMounts": [mount | {"volumeStatus": {"image": {"imageRef": "x"}}}]}
        ],
    }
    answer = await client.patch(f"{CORE}/pods/x/status", {"status": status})
    assert answer.status == 200, answer.body
    shown = answer.body["status"]
    assert "nodeAllocatableResourceClaimStatuses" not in shown
    assert shown["containerStatuses"][0]["volumeMounts"] == [mount]


async def test_disabled_fields_of_leases_are_dropped(client):
    spec = {"holderIdentity": "x", "strategy": "Bad Strategy", "preferredHolder": "y"}
    created = await client.post(LEASES, {"metadata": {"name": "x"}, "spec": spec})
    assert (created.status, created.body["spec"]) == (201, {"holderIdentity": "x"})
    changed = await client.patch(f"{LEASES}/x", {"spec": spec})
    assert (changed.status, changed.body["spec"]) == (200, {"holderIdentity": "x"})


@pytest.mark.parametrize(("minor", "kept"), [("1.36", None), ("1.37", True)])
async def test_disabled_fields_of_csi_drivers_are_dropped(minor, kept):
    spec = {"preventPodSchedulingIfMissing": True}
    async with apiserver.running(f"--kubernetes-version={minor}") as client:
        created = await client.post(DRIVERS, {"metadata": {"name": "x"}, "spec": spec})
        assert created.status == 201
        changed = await client.patch(f"{DRIVERS}/x", {"spec": spec})
        assert changed.status == 200
    for answer in (created, changed):
        assert answer.body["spec"].get("preventPodSchedulingIfMissing") == kept


async def test_disabled_fields_of_resource_slices_are_dropped(client):
    device = {
        "name": "d",
        "nodeAllocatableResourceMappings": {"cpu": {"capacityKey": "x"}},
        "attributes": {"b": {"ints": [1], "int": 2}},
    }
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "a.b", "nodeName": "n", "pool": pool, "devices": [device]}
    created = await client.post(SLICES, {"metadata": {"name": "x"}, "spec": spec})
    assert created.status == 201, created.body
    assert created.body["spec"]["devices"] == [{"name": "d", "attributes": {"b": {"int": 2}}}]


REFERENCE = {"kind": "PersistentVolumeClaim", "name": "x"}
SHOWN = {"apiGroup": None} | REFERENCE


@pytest.mark.parametrize(
    ("sources", "shown"),
    [
        ({"dataSourceRef": REFERENCE | {"namespace": "other"}}, {}),
        ({"dataSourceRef": REFERENCE}, {"dataSource": SHOWN, "dataSourceRef": SHOWN}),
        (
            {"dataSourceRef": REFERENCE | {"namespace": ""}},
            {"dataSource": SHOWN, "dataSourceRef": SHOWN | {"namespace": ""}},
        ),
        (
            {"dataSource": REFERENCE, "dataSourceRef": REFERENCE | {"namespace": "other"}},
            {"dataSource": SHOWN, "dataSourceRef": SHOWN},
        ),
        ({"dataSource": REFERENCE | {"kind": "Other", "apiGroup": "a.b"}}, {}),
    ],
)
async def test_disabled_sources_of_claims_are_dropped(client, sources, shown):
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    answer = await client.post(
        f"{CORE}/persistentvolumeclaims", {"metadata": {"name": "x"}, "spec": asked | sources}
    )
    assert answer.status == 201, answer.body
    spec = answer.body["spec"]
    assert {name: spec[name] for name in ("dataSource", "dataSourceRef") if name in spec} == shown
