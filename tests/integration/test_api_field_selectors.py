"""Objects matched by field selectors: labels by version, and absent values as Go's zero values."""

import pytest

from tests.support.server import apiserver

NS = "/api/v1/namespaces/default"
UNSUPPORTED = "field label not supported: {}"
UNKNOWN = '"{}" is not a known field selector: only "metadata.name", "metadata.namespace"'


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


async def names(client, path, selector):
    answer = await client.get(f"{path}?fieldSelector={selector}")
    assert answer.status == 200, answer.data
    return [item["metadata"]["name"] for item in answer.body["items"]]


@pytest.mark.parametrize(
    ("path", "body", "selector"),
    [
        ("/api/v1/nodes", {}, "spec.unschedulable=false"),
        ("/api/v1/nodes", {"spec": {"unschedulable": True}}, "spec.unschedulable=true"),
        (f"{NS}/pods", {"spec": {"containers": [{"name": "c", "image": "i"}]}}, "spec.hostNetwork=false"),
        (
            f"{NS}/pods",
            {"spec": {"containers": [{"name": "c", "image": "i"}], "hostNetwork": True}},
            "spec.hostNetwork=true",
        ),
        (
            f"{NS}/pods",
            {"spec": {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}},
            "spec.host=n",
        ),
        (
            f"{NS}/replicationcontrollers",
            {
                "spec": {
                    "selector": {"a": "b"},
                    "replicas": 1,
                    "template": {
                        "metadata": {"labels": {"a": "b"}},
                        "spec": {"containers": [{"name": "c", "image": "i"}]},
                    },
                }
            },
            "status.replicas=0",
        ),
        (
            "/apis/batch/v1/namespaces/default/jobs",
            {
                "spec": {
                    "template": {
                        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
                    }
                }
            },
            "status.successful=0",
        ),
    ],
)
async def test_absent_value_matches_zero_in_field_selector(client, path, body, selector):
    await client.post(f"{NS}/serviceaccounts", {"metadata": {"name": "default"}})
    created = await client.post(path, {"metadata": {"name": "x"}} | body)
    assert created.status == 201, created.data
    assert await names(client, path, selector) == ["x"]
    assert await names(client, path, selector.replace("=", "!=", 1)) == []


@pytest.mark.parametrize(
    ("path", "label", "message"),
    [
        ("/api/v1/nodes", "metadata.namespace", UNSUPPORTED),
        ("/api/v1/namespaces", "metadata.namespace", UNSUPPORTED),
        ("/apis/certificates.k8s.io/v1/certificatesigningrequests", "metadata.namespace", UNSUPPORTED),
        ("/apis/apps/v1/replicasets", "status.replicas", UNKNOWN),
        ("/apis/networking.k8s.io/v1/ipaddresses", "spec.parentRef.name", UNKNOWN),
        ("/apis/batch/v1/jobs", "x", 'field label "{}" not supported for Job'),
        (
            "/apis/resource.k8s.io/v1/resourceslices",
            "x",
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {}",
        ),
        ("/apis/events.k8s.io/v1/events", "involvedObject.name", UNSUPPORTED),
        ("/apis/events.k8s.io/v1/events", "source", UNSUPPORTED),
        ("/api/v1/events", "regarding.name", UNSUPPORTED),
    ],
)
async def test_unsupported_field_label_is_refused(client, path, label, message):
    answer = await client.get(f"{path}?fieldSelector={label}%3Dx")
    assert (answer.status, answer.body["message"]) == (400, message.format(label))


async def test_pod_certificate_requests_are_not_selected_by_namespace(client):
    path = "/apis/certificates.k8s.io/v1/namespaces/default/podcertificaterequests"
    answer = await client.get(f"{path}?fieldSelector=metadata.namespace!=x")
    assert (answer.status, answer.body["message"]) == (400, UNSUPPORTED.format("metadata.namespace"))


async def test_events_of_both_versions_have_their_field_labels(client):
    event = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reportingComponent": "c",
        "reportingInstance": "i",
        "action": "a",
        "type": "Normal",
    }
    created = await client.post(f"{NS}/events", event)
    assert created.status == 201, created.data
    core, events = f"{NS}/events", "/apis/events.k8s.io/v1/namespaces/default/events"
    for _ in range(2):
        assert await names(client, core, "involvedObject.name=p,source=c,reportingComponent=c") == ["e"]
        assert await names(client, events, "regarding.name=p,reportingController=c,type=Normal") == ["e"]
        assert await names(client, events, "regarding.name=other") == []


@pytest.mark.parametrize("path", ["/api/v1/nodes", "/apis/rbac.authorization.k8s.io/v1/clusterroles"])
async def test_namespace_of_cluster_scoped_object_is_cleared(client, path):
    body = {"metadata": {"name": "x", "namespace": "other"}}
    created = await client.post(path, body)
    assert (created.status, "namespace" in created.body["metadata"]) == (201, False)
    replaced = await client.put(
        f"{path}/x", created.body | {"metadata": created.body["metadata"] | {"namespace": "n"}}
    )
    assert (replaced.status, "namespace" in replaced.body["metadata"]) == (200, False)
    for kind in ("merge-patch+json", "strategic-merge-patch+json"):
        patched = await client.patch(f"{path}/x", {"metadata": {"namespace": "n"}}, kind=kind)
        assert (patched.status, "namespace" in patched.body["metadata"]) == (200, False)
