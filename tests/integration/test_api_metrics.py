"""The API server serves metrics.k8s.io from simulated usage."""

import pytest

from mockube.apimachinery.timestamps import format_time
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.horizontalpodautoscaler.controller import (
    HORIZONTAL_POD_AUTOSCALER,
)
from tests.support.controllers.running_manager import running_manager
from tests.support.server.apiserver import running
from tests.support.server.definitions import define

CORE = "/api/v1/namespaces/default"
ROOT = "/apis/metrics.k8s.io/v1beta1"
PODS = f"{ROOT}/namespaces/default/pods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.fixture
async def server():
    clock = SteppedClock()
    async with running("--simulate-metrics=true", clock=clock) as client:
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


async def test_pod_metrics_are_served(server):
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


async def test_pod_metrics_support_lists_and_selectors(server):
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


async def test_pod_without_running_container_has_no_metrics(server):
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


async def test_node_metrics_are_served(server):
    await run_pod(server, "a")
    await run_pod(server, "b", cpu="1")
    items = (await server.get(f"{ROOT}/nodes")).body["items"]
    assert [(one["metadata"]["name"], one["usage"]) for one in items] == [
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


async def test_metrics_tables_have_columns(server):
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


async def test_metrics_group_is_in_discovery(server):
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


async def test_metrics_are_read_only(server):
    await run_pod(server, "p")
    for method in ("PUT", "PATCH", "DELETE"):
        answer = await server.send(method, f"{PODS}/p", {})
        assert answer.status == 405
    assert (await server.get(f"{PODS}?watch=true")).status == 405


KWOK = "/apis/kwok.x-k8s.io/v1alpha1"
KINDS = {
    "resourceusages": ("ResourceUsage", "Namespaced"),
    "clusterresourceusages": ("ClusterResourceUsage", "Cluster"),
    "custommetrics": ("CustomMetric", "Cluster"),
    "externalmetrics": ("ExternalMetric", "Namespaced"),
}


@pytest.fixture
async def kwok(server):
    """Creates an object of one of kwok's kinds."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": anything}
    for plural, (kind, scope) in KINDS.items():
        version = {"name": "v1alpha1", "served": True, "storage": True, "schema": schema}
        names = {"plural": plural, "kind": kind}
        spec = {"group": "kwok.x-k8s.io", "scope": scope, "names": names, "versions": [version]}
        await define(server, {"metadata": {"name": f"{plural}.kwok.x-k8s.io"}, "spec": spec})

    async def make(plural, name, spec, **metadata):
        kind, scope = KINDS[plural]
        path = f"{KWOK}/namespaces/default/{plural}" if scope == "Namespaced" else f"{KWOK}/{plural}"
        body = {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": kind, "spec": spec}
        answer = await server.post(path, {**body, "metadata": {"name": name, **metadata}})
        assert answer.status == 201, answer.body

    return make


async def test_kwok_usage_objects_determine_metrics(server, kwok):
    for name in ("a", "b"):
        await run_pod(server, name)
    ramp = {"expression": 'Quantity("10m") * (pod.SinceSecond() / 60.0)'}
    await kwok("clusterresourceusages", "all", {"usages": [{"usage": {"cpu": ramp}}]})
    await kwok("resourceusages", "b", {"usages": [{"usage": {"cpu": {"value": "7m"}}}]})
    server.clock.advance(180)
    items = (await server.get(PODS)).body["items"]
    assert [one["containers"][0]["usage"]["cpu"] for one in items] == ["30m", "7m"]


CUSTOM = "/apis/custom.metrics.k8s.io"


async def values(server, path):
    answer = await server.get(f"{CUSTOM}/v1beta2/{path}")
    assert answer.status == 200, answer.body
    return {one["describedObject"]["name"]: one["value"] for one in answer.body["items"]}


async def test_custom_metrics_of_pods_are_served(server, kwok):
    for name in ("a", "b"):
        await run_pod(server, name)
    await kwok("resourceusages", "a", {"usages": [{"usage": {"rps": {"value": "12.5"}}}]})
    await kwok(
        "custommetrics",
        "m",
        {
            "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
            "selector": {"matchNames": ["b"]},
            "metrics": [{"name": "rps", "value": "3"}],
        },
    )
    inside = "namespaces/default/pods"
    assert await values(server, f"{inside}/*/rps") == {"a": "12500m", "b": "3"}
    assert await values(server, f"{inside}/*/rps?labelSelector=app%3Db") == {"b": "3"}
    assert await values(server, f"{inside}/a/rps") == {"a": "12500m"}
    assert await values(server, f"{inside}/*/other") == {}
    answer = await server.get(f"{CUSTOM}/v1beta2/{inside}/a/other")
    message = "the server could not find the metric other for pods a"
    assert (answer.status, answer.body["message"]) == (404, message)
    body = (await server.get(f"{CUSTOM}/v1beta1/{inside}/b/rps")).body
    assert body == {
        "kind": "MetricValueList",
        "apiVersion": "custom.metrics.k8s.io/v1beta1",
        "metadata": {},
        "items": [
            {
                "describedObject": {
                    "kind": "Pod",
                    "namespace": "default",
                    "name": "b",
                    "apiVersion": "/v1",
                },
                "metricName": "rps",
                "timestamp": format_time(server.clock.now()),
                "value": "3",
            }
        ],
    }
    found = (await server.get(f"{CUSTOM}/v1beta2")).body
    resource = {"singularName": "", "verbs": ["get"], "name": "pods/rps", "namespaced": True}
    assert found["resources"] == [{**resource, "kind": "MetricValueList"}]


async def test_custom_metrics_of_other_objects_are_served(server, kwok):
    for group, kind in (("apps/v1", "Deployment"), ("v1", "Namespace")):
        reference = {"apiGroup": group, "kind": kind}
        metrics = [{"name": "load", "value": "7"}]
        await kwok("custommetrics", kind.lower(), {"resourceRef": reference, "metrics": metrics})
    labels = {"app": "d"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    await server.post(deployments, {"metadata": {"name": "d"}, "spec": spec})
    assert await values(server, "namespaces/default/deployments.apps/d/load") == {"d": "7"}
    assert await values(server, "namespaces/default/metrics/load") == {"default": "7"}
    assert await values(server, "namespaces/default/deployments.apps/*/load") == {"d": "7"}
    for path in ("namespaces/default/odd.apps/d/load", "namespaces/default/deployments.apps/x/load"):
        assert (await server.get(f"{CUSTOM}/v1beta2/{path}")).status == 404


async def test_external_metrics_are_served(server, kwok):
    spec = {"name": "queue", "metrics": [{"value": "5"}, {"value": "500m"}]}
    await kwok("externalmetrics", "m", spec, labels={"q": "a"})
    root = "/apis/external.metrics.k8s.io/v1beta1"
    body = (await server.get(f"{root}/namespaces/default/queue?labelSelector=q%3Da")).body
    assert (body["kind"], body["apiVersion"]) == (
        "ExternalMetricValueList",
        "external.metrics.k8s.io/v1beta1",
    )
    now = format_time(server.clock.now())
    about = {"metricName": "queue", "metricLabels": {"q": "a"}, "timestamp": now}
    assert body["items"] == [{**about, "value": "5"}, {**about, "value": "500m"}]
    for path in ("default/queue?labelSelector=q%3Db", "default/other", "other/queue"):
        assert (await server.get(f"{root}/namespaces/{path}")).body["items"] == []
    assert [one["name"] for one in (await server.get(root)).body["resources"]] == ["queue"]
    for path in (f"{root}/queue", f"{root}/namespaces/default/queue/x"):
        assert (await server.get(path)).status == 404
    assert (await server.get(f"{root}/namespaces/default/queue?labelSelector=((")).status == 400
    assert (await server.send("POST", f"{root}/namespaces/default/queue", {})).status == 405


async def test_autoscaler_uses_served_metrics(server, kwok):
    await kwok("externalmetrics", "m", {"name": "queue", "metrics": [{"value": "30"}]})
    await kwok("resourceusages", "p", {"usages": [{"usage": {"rps": {"value": "100"}}}]})
    await run_pod(server, "p")
    template = {
        "metadata": {"labels": {"app": "p"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "p"}}, "template": template}
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    await server.post(deployments, {"metadata": {"name": "d"}, "spec": spec})
    target = {"type": "AverageValue", "averageValue": "10"}
    metrics = [
        {"type": "External", "external": {"metric": {"name": "queue"}, "target": target}},
        {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": {**target, "averageValue": "50"}}},
    ]
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    body = {"scaleTargetRef": reference, "maxReplicas": 9, "metrics": metrics}
    path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    await server.post(path, {"metadata": {"name": "h"}, "spec": body})
    async with running_manager(server, server.clock, runnables=[HORIZONTAL_POD_AUTOSCALER]) as manager:
        await manager.step(15)
    assert (await server.get(f"{deployments}/d")).body["spec"]["replicas"] == 3


async def test_metrics_group_is_absent_without_flag():
    async with running() as server:
        assert (await server.get(ROOT)).status == 404
