"""metrics.k8s.io as the API server serves it of simulated usage."""

import pytest

from mockube.apimachinery.clock import SteppedClock
from mockube.apimachinery.timestamps import format_time
from mockube.apiserver.http.settings import Settings
from tests.support.apiserver import running
from tests.support.definitions import define

CORE = "/api/v1/namespaces/default"
ROOT = "/apis/metrics.k8s.io/v1beta1"
PODS = f"{ROOT}/namespaces/default/pods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.fixture
async def server():
    clock = SteppedClock()
    async with running(clock=clock, settings=Settings(simulate_metrics=True)) as client:
        client.clock = clock
        await client.post(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
        for name, ready in (("n1", "True"), ("n2", "False")):
            await client.post("/api/v1/nodes", {"metadata": {"name": name, "labels": {"zone": name}}})
            condition = {"type": "Ready", "status": ready}
            await client.patch(f"/api/v1/nodes/{name}/status", {"status": {"conditions": [condition]}})
        yield client


async def run_pod(server, name, node="n1", phase="Running", cpu="200m", **metadata):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    spec = {"nodeName": node, "containers": [container]}
    body = {"metadata": {"name": name, "labels": {"app": name}, **metadata}, "spec": spec}
    answer = await server.post(f"{CORE}/pods", body)
    assert answer.status == 201, answer.body
    answer = await server.patch(f"{CORE}/pods/{name}/status", {"status": {"phase": phase}})
    assert answer.status == 200, answer.body


async def test_a_pod(server):
    await run_pod(server, "p")
    now = format_time(server.clock.now())
    metrics = (await server.get(f"{PODS}/p")).body
    assert metrics == {
        "kind": "PodMetrics",
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": {
            "name": "p",
            "namespace": "default",
            "creationTimestamp": now,
            "labels": {"app": "p"},
        },
        "timestamp": now,
        "window": "15s",
        "containers": [{"name": "c", "usage": {"cpu": "100m", "memory": "32Mi"}}],
    }


async def test_lists_and_selectors(server):
    for name in ("a", "b"):
        await run_pod(server, name)
    found = (await server.get(f"{ROOT}/pods")).body
    assert (found["kind"], found["apiVersion"]) == ("PodMetricsList", "metrics.k8s.io/v1beta1")
    assert "kind" not in found["items"][0]
    for query, expected in (
        ("", ["a", "b"]),
        ("?labelSelector=app%3Da", ["a"]),
        ("?fieldSelector=metadata.name%3Db", ["b"]),
        ("?labelSelector=app%3Dc", []),
    ):
        items = (await server.get(f"{PODS}{query}")).body["items"]
        assert [one["metadata"]["name"] for one in items] == expected
    assert (await server.get(f"{ROOT}/namespaces/other/pods")).body["items"] == []


async def test_what_does_not_run_has_no_metrics(server):
    await run_pod(server, "pending", phase="Pending")
    await run_pod(server, "lost", node="n2")
    await run_pod(server, "nowhere", node="n3")
    assert (await server.get(PODS)).body["items"] == []
    answers = {
        "pending": 'podmetrics.metrics.k8s.io "default/pending" not found',
        "lost": 'podmetrics.metrics.k8s.io "default/lost" not found',
        "gone": 'pods "gone" not found',
    }
    for name, message in answers.items():
        answer = await server.get(f"{PODS}/{name}")
        assert (answer.status, answer.body["message"]) == (404, message)


async def test_nodes(server):
    await run_pod(server, "a")
    await run_pod(server, "b", cpu="1")
    found = (await server.get(f"{ROOT}/nodes")).body["items"]
    assert [(one["metadata"]["name"], one["usage"]) for one in found] == [
        ("n1", {"cpu": "600m", "memory": "64Mi"})
    ]
    assert (await server.get(f"{ROOT}/nodes/n1")).body["metadata"]["labels"] == {"zone": "n1"}
    assert (await server.get(f"{ROOT}/nodes?labelSelector=zone%3Dn2")).body["items"] == []
    for name, message in (
        ("n2", 'nodemetrics.metrics.k8s.io "n2" not found'),
        ("n9", 'nodes "n9" not found'),
    ):
        answer = await server.get(f"{ROOT}/nodes/{name}")
        assert (answer.status, answer.body["message"]) == (404, message)


async def test_tables(server):
    await run_pod(server, "a")
    table = (await server.get(PODS, Accept=TABLE)).body
    assert [(one["name"], one["format"]) for one in table["columnDefinitions"]] == [
        ("Name", "name"),
        ("cpu", "quantity"),
        ("memory", "quantity"),
        ("Window", "duration"),
    ]
    assert [row["cells"] for row in table["rows"]] == [["a", "100m", "32Mi", "15s"]]
    table = (await server.get(f"{ROOT}/nodes", Accept=TABLE)).body
    assert [row["cells"] for row in table["rows"]] == [["n1", "100m", "32Mi", "15s"]]


async def test_discovery(server):
    group = (await server.get(ROOT)).body
    assert group["resources"] == [
        {
            "name": name,
            "singularName": "",
            "namespaced": namespaced,
            "kind": kind,
            "verbs": ["get", "list"],
        }
        for name, namespaced, kind in (("nodes", False, "NodeMetrics"), ("pods", True, "PodMetrics"))
    ]
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    items = (await server.get("/apis", Accept=accept)).body["items"]
    assert "metrics.k8s.io" in [one["metadata"]["name"] for one in items]


async def test_what_cannot_be_done(server):
    await run_pod(server, "p")
    for method in ("PUT", "PATCH", "DELETE"):
        answer = await server.send(method, f"{PODS}/p", {})
        assert answer.status == 405
    assert (await server.get(f"{PODS}?watch=true")).status == 405


async def test_kwoks_objects_say_what_is_used(server):
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    for plural, kind, scope in (
        ("resourceusages", "ResourceUsage", "Namespaced"),
        ("clusterresourceusages", "ClusterResourceUsage", "Cluster"),
    ):
        version = {
            "name": "v1alpha1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": anything},
        }
        names = {"plural": plural, "kind": kind}
        spec = {"group": "kwok.x-k8s.io", "scope": scope, "names": names, "versions": [version]}
        await define(server, {"metadata": {"name": f"{plural}.kwok.x-k8s.io"}, "spec": spec})
    for name in ("a", "b"):
        await run_pod(server, name)
    root = "/apis/kwok.x-k8s.io/v1alpha1"
    ramp = {"expression": 'Quantity("10m") * (pod.SinceSecond() / 60.0)'}
    for path, kind, name, cpu in (
        (f"{root}/clusterresourceusages", "ClusterResourceUsage", "all", ramp),
        (f"{root}/namespaces/default/resourceusages", "ResourceUsage", "b", {"value": "7m"}),
    ):
        body = {
            "apiVersion": "kwok.x-k8s.io/v1alpha1",
            "kind": kind,
            "metadata": {"name": name},
            "spec": {"usages": [{"usage": {"cpu": cpu}}]},
        }
        answer = await server.post(path, body)
        assert answer.status == 201, answer.body
    server.clock.advance(180)
    items = (await server.get(PODS)).body["items"]
    assert [one["containers"][0]["usage"]["cpu"] for one in items] == ["30m", "7m"]


async def test_without_the_flag_there_is_no_such_group():
    async with running() as server:
        assert (await server.get(ROOT)).status == 404
