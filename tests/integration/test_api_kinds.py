"""Behaviour that is specific to one kind, over HTTP: versions, deletions, generations, subresource views."""

import asyncio

import pytest

from mockube.component_base.clock import SteppedClock
from tests.support.server import apiserver

CORE = "/api/v1/namespaces/default"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


def template(image="nginx", **spec):
    containers = [{"name": "c", "image": image}]
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers} | spec}


async def test_update_creates_lease_but_needs_resource_version_of_existing_one(client):
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 5}}
    created = await client.put(f"{LEASES}/l", lease)
    assert created.status == 201
    refused = await client.put(f"{LEASES}/l", lease)
    assert refused.status == 422
    assert refused.body["message"] == (
        'leases.coordination.k8s.io "l" is invalid: '
        "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    )
    seen = lease | {"metadata": {"name": "l", "resourceVersion": created.body["metadata"]["resourceVersion"]}}
    assert (await client.put(f"{LEASES}/l", seen)).status == 200


async def test_concurrent_patches_do_not_lose_changes(client):
    await client.post(f"{CORE}/configmaps", {"metadata": {"name": "a"}, "data": {}})
    answers = await asyncio.gather(
        *(client.patch(f"{CORE}/configmaps/a", {"data": {f"k{number}": "v"}}) for number in range(20))
    )
    assert {answer.status for answer in answers} == {200}
    assert len((await client.get(f"{CORE}/configmaps/a")).body["data"]) == 20


async def test_deleted_job_orphans_pods_with_warning(client):
    await client.post(
        JOBS, {"metadata": {"name": "j"}, "spec": {"template": template(restartPolicy="Never")}}
    )
    deleted = await client.delete(f"{JOBS}/j")
    assert deleted.body["metadata"]["finalizers"] == ["orphan"]
    assert "child pods are preserved by default when jobs are deleted" in deleted.headers["Warning"]


async def test_explicit_propagation_policy_is_not_warned_of(client):
    await client.post(
        JOBS, {"metadata": {"name": "j"}, "spec": {"template": template(restartPolicy="Never")}}
    )
    deleted = await client.delete(f"{JOBS}/j?propagationPolicy=Background")
    assert deleted.body["status"] == "Success"
    assert "Warning" not in deleted.headers


async def test_terminating_object_keeps_deletion_time():
    clock = SteppedClock()
    async with apiserver.running(clock=clock) as client:
        held = {"metadata": {"name": "a", "finalizers": ["example.com/a"]}}
        await client.post(f"{CORE}/configmaps", held)
        first = (await client.delete(f"{CORE}/configmaps/a")).body
        clock.advance(5)
        second = (await client.delete(f"{CORE}/configmaps/a")).body
        assert second["metadata"]["deletionTimestamp"] == first["metadata"]["deletionTimestamp"]


async def test_propagation_policy_of_terminating_object_can_change(client):
    deployment = {
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template()},
    }
    await client.post(DEPLOYMENTS, deployment)
    await client.delete(f"{DEPLOYMENTS}/d?propagationPolicy=Foreground")
    assert (await client.get(f"{DEPLOYMENTS}/d")).body["metadata"]["finalizers"] == ["foregroundDeletion"]
    await client.delete(f"{DEPLOYMENTS}/d?propagationPolicy=Background")
    assert (await client.get(f"{DEPLOYMENTS}/d")).status == 404


@pytest.mark.parametrize(
    ("change", "generation"),
    [
        pytest.param({"metadata": {"labels": {"a": "b"}}}, 1, id="labels"),
        pytest.param({"metadata": {"annotations": {"a": "b"}}}, 2, id="annotations of a deployment"),
        pytest.param({"spec": {"replicas": 3}}, 2, id="spec"),
        pytest.param({"status": {"replicas": 3}}, 1, id="status through the main resource"),
    ],
)
async def test_deployment_generation_follows_spec(client, change, generation):
    deployment = {
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template()},
    }
    await client.post(DEPLOYMENTS, deployment)
    changed = (await client.patch(f"{DEPLOYMENTS}/d", change)).body
    assert changed["metadata"]["generation"] == generation
    assert changed["status"] == {}


async def test_secret_string_data_is_stored_as_data(client):
    created = (
        await client.post(f"{CORE}/secrets", {"metadata": {"name": "s"}, "stringData": {"a": "1"}})
    ).body
    assert created["data"] == {"a": "MQ=="}
    assert "stringData" not in created


async def test_endpoints_are_warned_of(client):
    assert "v1 Endpoints is deprecated" in (await client.get(f"{CORE}/endpoints")).headers["Warning"]
    refused = await client.post(f"{CORE}/endpoints", {"metadata": {}})
    assert refused.status == 422
    assert "v1 Endpoints is deprecated" in refused.headers["Warning"]


EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
EVENT = {
    "metadata": {"name": "e"},
    "eventTime": "2030-01-01T00:00:00.000000Z",
    "reportingController": "example.com/c",
    "reportingInstance": "i",
    "action": "Acting",
    "reason": "R",
    "type": "Normal",
    "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
    "note": "hello",
}


async def test_event_is_served_in_both_groups(client):
    created = (await client.post(EVENTS, EVENT)).body
    assert (created["apiVersion"], created["note"]) == ("events.k8s.io/v1", "hello")
    core = (await client.get(f"{CORE}/events/e")).body
    assert (core["apiVersion"], core["message"], core["involvedObject"]["name"]) == ("v1", "hello", "p")
    listed = (await client.get(EVENTS)).body
    assert (listed["apiVersion"], listed["items"][0]["note"]) == ("events.k8s.io/v1", "hello")
    changed = (await client.patch(f"{CORE}/events/e", {"count": 2})).body
    assert changed["count"] == 2
    assert (await client.get(f"{EVENTS}/e")).body["deprecatedCount"] == 2


async def test_event_watch_has_group_of_request(client):
    async with (
        client.watch(f"{EVENTS}?watch=true") as events,
        client.watch(f"{CORE}/events?watch=true") as core,
    ):
        await client.post(EVENTS, EVENT)
        shown, stored = await anext(events), await anext(core)
    assert (shown["object"]["apiVersion"], shown["object"]["note"]) == ("events.k8s.io/v1", "hello")
    assert (stored["object"]["apiVersion"], stored["object"]["message"]) == ("v1", "hello")


async def test_v1_autoscaler_is_stored_as_v2(client):
    v1, v2 = (
        f"/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers" for version in ("v1", "v2")
    )
    target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
    created = await client.post(
        v1, {"metadata": {"name": "h"}, "spec": {"maxReplicas": 3, "scaleTargetRef": target}}
    )
    # Defaults of v2 are visible in v1.
    assert created.body["spec"]["targetCPUUtilizationPercentage"] == 80
    await client.patch(f"{v1}/h", {"spec": {"targetCPUUtilizationPercentage": 50}})
    (metric,) = (await client.get(f"{v2}/h")).body["spec"]["metrics"]
    assert metric["resource"]["target"] == {"type": "Utilization", "averageUtilization": 50}


async def test_deprecated_values_are_warned_of(client):
    odd = {"name": "a.b", "annotations": {"service.kubernetes.io/topology-aware-hints": "auto"}}
    service = {"metadata": odd | {"name": "a"}, "spec": {"ports": [{"port": 80}]}}
    answer = await client.post(f"{CORE}/services", service)
    hints = (
        '299 - "annotation service.kubernetes.io/topology-aware-hints is deprecated, '
        'please use service.kubernetes.io/topology-mode instead"'
    )
    assert answer.headers.getall("Warning") == [hints]
    answer = await client.patch(f"{CORE}/services/a", {"spec": {"externalName": "e"}})
    ignored = '299 - "spec.externalName is ignored when spec.type is not \\"ExternalName\\""'
    assert answer.headers.getall("Warning") == [hints, ignored]
    answer = await client.patch(f"{CORE}/services/a/status", {"metadata": {"labels": {"a": "b"}}})
    assert "Warning" not in answer.headers


RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"


@pytest.mark.parametrize(
    ("path", "body", "way"),
    [
        pytest.param(RBAC, {"rules": []}, ("rules",), id="role"),
        pytest.param(f"{CORE}/limitranges", {"spec": {"limits": []}}, ("spec", "limits"), id="limit range"),
        pytest.param(SLICES, {"addressType": "IPv4", "endpoints": [], "ports": []}, ("ports",), id="slice"),
        pytest.param(
            "/apis/storage.k8s.io/v1/csinodes", {"spec": {"drivers": []}}, ("spec", "drivers"), id="drivers"
        ),
        pytest.param(
            "/apis/storage.k8s.io/v1/csinodes",
            {"spec": {"drivers": [{"name": "d", "nodeID": "n", "topologyKeys": []}]}},
            ("spec", "drivers", 0, "topologyKeys"),
            id="keys of drivers",
        ),
    ],
)
async def test_always_present_empty_list_is_null(client, path, body, way):
    created = await client.post(path, {"metadata": {"name": "a"}} | body)
    assert created.status == 201
    found = created.body
    for step in way:
        found = found[step]
    assert found is None
    version = created.body["metadata"]["resourceVersion"]
    again = await client.put(f"{path}/a", {"metadata": {"name": "a", "resourceVersion": version}} | body)
    assert again.body["metadata"]["resourceVersion"] == version
