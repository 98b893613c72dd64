"""HorizontalPodAutoscaler: proposal and status of each metric type, with upstream's error messages."""

import orjson
import pytest

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.schema.minors import NEWEST
from mockube.apimachinery.timestamps import format_time
from mockube.client.metrics.requests import ClientMetrics
from mockube.client.sender import FixedToken, Sender
from mockube.client.verbs import Client
from mockube.client.wire import Response
from mockube.component_base.clock import SteppedClock
from mockube.component_base.metrics import MetricsRegistry
from mockube.controller_manager.controllers.horizontalpodautoscaler.metrics_api import MetricsApi
from mockube.controller_manager.controllers.horizontalpodautoscaler.proposals import (
    FailedMetricError,
    TargetMetrics,
    propose,
)
from mockube.controller_manager.controllers.horizontalpodautoscaler.targets import RestMapper
from tests.support.controllers.autoscaling import NOW, pod, situation
from tests.support.stores.scripted_transport import ScriptedTransport, answer

NOT_FOUND = Response(404, None, b"404 page not found\n")
SELECTOR = {"matchLabels": {"q": "a"}}
SELECTOR_TEXT = (
    "&LabelSelector{MatchLabels:map[string]string{q: a,},MatchExpressions:[]LabelSelectorRequirement{},}"
)
DISCOVERED = [
    {"items": []},
    {
        "items": [
            {
                "metadata": {"name": "apps"},
                "versions": [
                    {
                        "version": "v1",
                        "resources": [
                            {
                                "resource": "deployments",
                                "responseKind": {"kind": "Deployment"},
                                "scope": "Namespaced",
                            }
                        ],
                    }
                ],
            },
            {"metadata": {"name": "custom.metrics.k8s.io"}, "versions": [{"version": "v1beta1"}]},
        ]
    },
]


class ScriptedMetricsApi:
    """A metrics API with scripted responses."""

    def __init__(self, *outcomes, discovered=DISCOVERED):
        self.transport = ScriptedTransport()
        clock = SteppedClock()
        sender = Sender(
            transport=self.transport,
            credential=FixedToken("admin"),
            agent="test",
            limit=None,
            clock=clock,
            metrics=ClientMetrics(MetricsRegistry()),
        )
        client = Client(sender, identities=None)
        self._discovered = [answer(body=document) for document in discovered]
        self._outcomes = outcomes
        self.api = MetricsApi(client, RestMapper(client, clock))

    async def propose(self, spec, *pods, discovers=False, minor=NEWEST, **how):
        self.transport.will(*(self._discovered if discovers else ()), *self._outcomes)
        found = situation(*(pods or (pod("p0"), pod("p1"))), **how)
        return await propose(spec, TargetMetrics(self.api, "ns", "app=web", FeatureGates(minor)), found)


def pod_metrics(*usages, containers=1):
    items = [
        {
            "metadata": {"name": f"p{at}", "namespace": "ns"},
            "timestamp": format_time(NOW),
            "window": "30s",
            "containers": [{"name": f"c{number}", "usage": usage} for number in range(containers)],
        }
        for at, usage in enumerate(usages)
    ]
    return answer(body={"items": items})


def values(*amounts, name="p"):
    items = [
        {
            "describedObject": {"name": f"{name}{at}"},
            "timestamp": format_time(NOW),
            "windowSeconds": 60,
            "value": amount,
        }
        for at, amount in enumerate(amounts)
    ]
    return answer(body={"items": items})


def resource(target, name="cpu", **fields):
    type_ = "ContainerResource" if fields else "Resource"
    key = "containerResource" if fields else "resource"
    return {"type": type_, key: {"name": name, "target": target, **fields}}


UTILIZATION = {"type": "Utilization", "averageUtilization": 50}


async def test_utilization_metric():
    metrics_api = ScriptedMetricsApi(pod_metrics({"cpu": "500m"}, {"cpu": "1"}))
    proposal = await metrics_api.propose(resource(UTILIZATION))
    assert proposal.replicas == 3
    assert proposal.metric == "cpu resource utilization (percentage of request)"
    current = {"averageUtilization": 75, "averageValue": "750m"}
    assert proposal.status == {"type": "Resource", "resource": {"name": "cpu", "current": current}}
    path = "/apis/metrics.k8s.io/v1beta1/namespaces/ns/pods"
    assert metrics_api.transport.targets == [f"GET {path}?labelSelector=app%3Dweb"]


async def test_memory_amount_is_printed_in_binary_units():
    metrics_api = ScriptedMetricsApi(pod_metrics({"memory": "1Gi"}, {"memory": "3Gi"}))
    proposal = await metrics_api.propose(resource({"type": "AverageValue", "averageValue": "1Gi"}, "memory"))
    assert (proposal.replicas, proposal.metric) == (4, "memory resource")
    assert proposal.status["resource"]["current"] == {"averageValue": "2Gi"}


async def test_container_resource_metric():
    metrics_api = ScriptedMetricsApi(pod_metrics({"cpu": "500m"}, {"cpu": "1"}, containers=2))
    pods = (pod("p0", requests=("1", "2")), pod("p1", requests=("1", "2")))
    proposal = await metrics_api.propose(resource(UTILIZATION, container="c1"), *pods)
    assert proposal.metric == "cpu container resource utilization (percentage of request)"
    current = {"averageUtilization": 37, "averageValue": "750m"}
    described = {"name": "cpu", "container": "c1", "current": current}
    assert proposal.status == {"type": "ContainerResource", "containerResource": described}


async def test_pod_with_missing_container_sample_is_skipped():
    metrics_api = ScriptedMetricsApi(pod_metrics({"cpu": "500m"}, {"memory": "1"}))
    assert (await metrics_api.propose(resource(UTILIZATION))).status["resource"]["current"] == {
        "averageUtilization": 50,
        "averageValue": "500m",
    }


PODS = {
    "type": "Pods",
    "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "10"}},
}


async def test_pods_metric():
    metrics_api = ScriptedMetricsApi(values("20", "30"))
    proposal = await metrics_api.propose(PODS, discovers=True)
    assert (proposal.replicas, proposal.metric) == (5, "pods metric rps")
    assert proposal.status == {
        "type": "Pods",
        "pods": {"metric": {"name": "rps"}, "current": {"averageValue": "25"}},
    }
    path = "/apis/custom.metrics.k8s.io/v1beta1/namespaces/ns/pods/*/rps?labelSelector=app%3Dweb"
    assert metrics_api.transport.targets[-1] == f"GET {path}"


def of_object(target, kind="Deployment", version="apps/v1"):
    described = {"kind": kind, "name": "d", "apiVersion": version}
    return {
        "type": "Object",
        "object": {
            "describedObject": described,
            "metric": {"name": "rps", "selector": SELECTOR},
            "target": target,
        },
    }


VALUE = {"type": "Value", "value": "10"}
AVERAGE = {"type": "AverageValue", "averageValue": "10"}


async def test_object_metric():
    metrics_api = ScriptedMetricsApi(values("25", name="d"))
    proposal = await metrics_api.propose(of_object(VALUE), discovers=True)
    assert (proposal.replicas, proposal.metric) == (5, "Deployment metric rps")
    assert proposal.status["object"]["current"] == {"value": "25"}
    path = "/apis/custom.metrics.k8s.io/v1beta1/namespaces/ns/deployments.apps/d/rps"
    assert metrics_api.transport.targets[-1] == f"GET {path}?metricLabelSelector=q%3Da"


async def test_object_metric_average():
    proposal = await ScriptedMetricsApi(values("25", name="d")).propose(of_object(AVERAGE), discovers=True)
    assert (proposal.replicas, proposal.metric) == (3, f"external metric rps({SELECTOR_TEXT})")
    assert proposal.status["object"]["current"] == {"averageValue": "12500m"}


async def test_namespace_metric():
    metrics_api = ScriptedMetricsApi(values("25"))
    await metrics_api.propose(of_object(VALUE, "Namespace", "v1"), discovers=True)
    assert "/v1beta1/namespaces/ns/metrics/rps?" in metrics_api.transport.targets[-1]


def external(target, **fields):
    return {"type": "External", "external": {"metric": {"name": "queue", **fields}, "target": target}}


async def test_external_metric():
    metrics_api = ScriptedMetricsApi(values("20", "30"))
    proposal = await metrics_api.propose(external(VALUE, selector=SELECTOR))
    assert (proposal.replicas, proposal.metric) == (10, f"external metric queue({SELECTOR_TEXT})")
    assert proposal.status["external"]["current"] == {"value": "50"}
    path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/ns/queue"
    assert metrics_api.transport.targets == [f"GET {path}?labelSelector=q%3Da"]
    proposal = await ScriptedMetricsApi(values("20", "30")).propose(external(AVERAGE))
    assert (proposal.replicas, proposal.metric) == (5, "external metric queue(nil)")


RESOURCE_404 = (
    "unable to fetch metrics from resource metrics API: the server could not find the requested resource "
    "(get pods.metrics.k8s.io)"
)
EXTERNAL_404 = (
    "unable to fetch metrics from external metrics API: the server could not find the requested resource "
    "(get queue.external.metrics.k8s.io)"
)
NO_CUSTOM = "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered"
NOTHING = "no metrics returned from resource metrics API"
FAILURES = {
    "utilization": (
        resource(UTILIZATION),
        NOT_FOUND,
        "FailedGetResourceMetric",
        f"failed to get cpu utilization: unable to get metrics for resource cpu: {RESOURCE_404}",
        "failed to get cpu resource metric value: ",
    ),
    "usage": (
        resource(AVERAGE),
        NOT_FOUND,
        "FailedGetResourceMetric",
        f"failed to get cpu usage: unable to get metrics for resource cpu: {RESOURCE_404}",
        "failed to get cpu resource metric value: ",
    ),
    "nothing": (
        resource(UTILIZATION, container="c0"),
        answer(body={"items": []}),
        "FailedGetContainerResourceMetric",
        f"failed to get cpu utilization: unable to get metrics for resource cpu: {NOTHING}",
        "failed to get c0 container metric value: ",
    ),
    "pods": (
        PODS,
        None,
        "FailedGetPodsMetric",
        f"unable to get metric rps: {NO_CUSTOM}",
        "failed to get pods metric value: ",
    ),
    "object": (
        of_object(VALUE),
        None,
        "FailedGetObjectMetric",
        f"unable to get metric rps on Deployment ns/d: {NO_CUSTOM}",
        "failed to get object metric value: ",
    ),
    "average of an object": (
        of_object(AVERAGE),
        None,
        "FailedGetObjectMetric",
        f"unable to get metric rps on Deployment ns/d: {NO_CUSTOM}",
        "failed to get object metric value: failed to get rps object metric: ",
    ),
    "external": (
        external(VALUE),
        NOT_FOUND,
        "FailedGetExternalMetric",
        f"unable to get external metric ns/queue/nil: {EXTERNAL_404}",
        "failed to get queue external metric value: failed to get external metric queue: ",
    ),
    "average of an external": (
        external(AVERAGE),
        NOT_FOUND,
        "FailedGetExternalMetric",
        f"unable to get external metric ns/queue/nil: {EXTERNAL_404}",
        "failed to get queue external metric value: failed to get queue external metric: ",
    ),
    "no target": (
        external({}),
        None,
        "FailedGetExternalMetric",
        "invalid external metric source: neither a value target nor an average value target was set",
        "failed to get queue external metric value: ",
    ),
}


@pytest.mark.parametrize(("spec", "given", "reason", "problem", "prefix"), FAILURES.values(), ids=FAILURES)
async def test_failed_metrics_have_upstreams_errors(spec, given, reason, problem, prefix):
    kinds = [DISCOVERED[0], {"items": DISCOVERED[1]["items"][:1]}]
    metrics_api = ScriptedMetricsApi(*([given] if given else []), discovered=kinds)
    with pytest.raises(FailedMetricError) as caught:
        await metrics_api.propose(spec, discovers=given is None)
    assert (caught.value.reason, caught.value.problem) == (reason, problem)
    assert str(caught.value) == f"{prefix}{problem}"


async def test_older_message_about_object_has_odd_separators():
    metrics_api = ScriptedMetricsApi(discovered=[DISCOVERED[0], {"items": DISCOVERED[1]["items"][:1]}])
    with pytest.raises(FailedMetricError) as caught:
        await metrics_api.propose(of_object(VALUE), discovers=True, minor="1.36")
    assert caught.value.problem == f"unable to get metric rps: Deployment on ns d/{NO_CUSTOM}"


async def test_unknown_metric_type_is_a_spec_error():
    with pytest.raises(FailedMetricError, match=r'^unknown metric source type "Odd"$') as caught:
        await ScriptedMetricsApi().propose({"type": "Odd"})
    assert caught.value.is_spec


async def test_unknown_kind_has_no_metrics():
    with pytest.raises(FailedMetricError) as caught:
        await ScriptedMetricsApi().propose(of_object(VALUE, "Odd"), discovers=True)
    assert 'unable to map kind Odd.apps to resource: no matches for kind "Odd" in group "apps"' in str(
        caught.value
    )


async def test_discovery_is_refreshed_after_30_seconds():
    clock, transport = SteppedClock(), ScriptedTransport()
    sender = Sender(
        transport=transport,
        credential=FixedToken("admin"),
        agent="test",
        limit=None,
        clock=clock,
        metrics=ClientMetrics(MetricsRegistry()),
    )
    kinds = RestMapper(Client(sender, identities=None), clock)
    for seconds, requests in ((0, 2), (29, 2), (1, 4)):
        clock.advance(seconds)
        transport.outcomes.clear()
        transport.will(*(answer(body=orjson.loads(orjson.dumps(document))) for document in DISCOVERED))
        assert (await kinds.find(GroupKind("apps", "Deployment"))).plural == "deployments"
        assert len(transport.sent) == requests
