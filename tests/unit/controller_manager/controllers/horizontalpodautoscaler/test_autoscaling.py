"""HorizontalPodAutoscalers and their controller with a real server, on a clock that the test steps."""

import pytest

from mockube.apimachinery.timestamps import format_time
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.horizontalpodautoscaler.controller import (
    HORIZONTAL_POD_AUTOSCALER,
)
from tests.support.controllers.autoscaling_cluster import (
    AUTOSCALERS,
    CORE,
    DEPLOYMENTS,
    METRICS,
    PERIOD,
    AutoscalingCluster,
    autoscaling_cluster,
    serve_metrics,
)
from tests.support.controllers.disturbances import (
    ConflictingWrites,
    CutWatches,
    Disturbance,
    LoseRequests,
    LoseResponses,
    RefuseWrites,
)
from tests.support.controllers.running_manager import running_manager
from tests.support.metric_samples import sample_value
from tests.support.server.apiserver import running
from tests.support.server.definitions import define


@pytest.fixture
async def cluster():
    async with autoscaling_cluster() as cluster:
        yield cluster


@pytest.fixture
async def older_cluster():
    async with autoscaling_cluster("1.36") as cluster:
        yield cluster


async def test_new_autoscaler_acts_at_once(cluster):
    await cluster.deploy(replicas=7)
    await cluster.autoscale()
    await cluster.manager.settle()
    assert await cluster.scale() == 5
    assert (await cluster.status())["observedGeneration"] == 1


async def test_changed_autoscaler_acts_at_once(cluster):
    await cluster.deploy(replicas=7)
    await cluster.autoscale()
    await cluster.manager.settle()
    await cluster.server.patch(f"{AUTOSCALERS}/h", {"spec": {"maxReplicas": 3}})
    await cluster.manager.settle()
    assert await cluster.scale() == 3
    assert (await cluster.status())["observedGeneration"] == 2


async def test_autoscaler_with_other_labels_waits_for_sync_period(cluster):
    await cluster.deploy(replicas=5)
    await cluster.autoscale()
    await cluster.manager.settle()
    await cluster.server.patch(f"{DEPLOYMENTS}/d", {"spec": {"replicas": 7}})
    await cluster.server.patch(f"{AUTOSCALERS}/h", {"metadata": {"labels": {"a": "b"}}})
    await cluster.manager.settle()
    assert await cluster.scale() == 7
    await cluster.period()
    assert await cluster.scale() == 5


async def test_older_autoscaler_acts_after_sync_period(older_cluster):
    cluster = older_cluster
    await cluster.deploy(replicas=7)
    await cluster.autoscale()
    await cluster.manager.step(PERIOD - 1)
    assert await cluster.scale() == 7
    await cluster.manager.step(1)
    assert await cluster.scale() == 5
    reason = "New size: 5; reason: Current number of replicas above Spec.MaxReplicas"
    assert await cluster.events() == [("Normal", "SuccessfulRescale", reason)]
    assert await cluster.conditions() == {"AbleToScale": ("True", "SucceededRescale")}
    status = await cluster.status()
    assert (status["currentReplicas"], status["desiredReplicas"]) == (7, 5)
    assert status["lastScaleTime"] == format_time(cluster.clock.now())


async def test_target_with_0_replicas_is_not_scaled(cluster):
    await cluster.deploy(replicas=0)
    await cluster.autoscale()
    await cluster.period()
    assert await cluster.scale() == 0
    assert (await cluster.conditions())["ScalingActive"] == ("False", "ScalingDisabled")
    assert await cluster.events() == []


async def test_cpu_scales_up_at_once_and_down_after_five_minutes(cluster):
    await serve_metrics(cluster.server)
    await cluster.deploy()
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
    }
    await cluster.autoscale(metrics=[metric])
    for name in ("p0", "p1"):
        await cluster.run_pod(name, "1")
    await cluster.period()
    assert await cluster.scale() == 4
    assert (await cluster.status())["currentMetrics"] == [
        {
            "type": "Resource",
            "resource": {"name": "cpu", "current": {"averageUtilization": 100, "averageValue": "1"}},
        }
    ]
    assert await cluster.events() == [
        (
            "Normal",
            "SuccessfulRescale",
            "New size: 4; reason: cpu resource utilization (percentage of request) above target",
        )
    ]
    for name in ("p0", "p1"):
        usage = [{"name": "c", "usage": {"cpu": "250m", "memory": "1Gi"}}]
        answer = await cluster.server.patch(f"{METRICS}/{name}", {"containers": usage})
        assert answer.status == 200, answer.body
    await cluster.period(19)
    assert await cluster.scale() == 4
    assert (await cluster.conditions())["AbleToScale"] == ("True", "ScaleDownStabilized")
    await cluster.period(3)
    assert await cluster.scale() == 1
    assert ("Normal", "SuccessfulRescale", "New size: 1; reason: All metrics below target") in (
        await cluster.events()
    )


async def test_unchanged_autoscaler_is_not_written(cluster):
    await cluster.deploy()
    await cluster.autoscale()
    await cluster.period(2)
    cluster.manager.transport.writes.clear()
    await cluster.period(4)
    assert {method for method, target in cluster.manager.transport.writes if "events" not in target} == set()


async def test_two_autoscalers_of_same_pods_are_ambiguous(cluster):
    await serve_metrics(cluster.server)
    await cluster.deploy()
    await cluster.autoscale()
    await cluster.autoscale("other")
    await cluster.run_pod("p0", "1")
    await cluster.period(2)
    for name in ("h", "other"):
        assert (await cluster.conditions(name))["ScalingActive"] == ("False", "AmbiguousSelector")
    problem = "pods by selector app=d are controlled by more than one HPA (e.g. [default/h default/other])"
    assert ("Warning", "AmbiguousSelector", problem) in await cluster.events()
    await cluster.server.delete(f"{AUTOSCALERS}/other")
    await cluster.period()
    assert (await cluster.conditions())["ScalingActive"] == ("True", "ValidMetricFound")


async def test_unscalable_targets_set_condition(cluster):
    kinds = {
        "odd": ({"apiVersion": "x/v1", "kind": "Odd", "name": "d"}, 'no matches for kind "Odd" in group "x"'),
        "set": (
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d"},
            "the server could not find the requested resource",
        ),
    }
    for name, (target, _) in kinds.items():
        await cluster.autoscale(name, target=target)
    await cluster.period()
    for name, (_, problem) in kinds.items():
        (condition,) = (await cluster.status(name))["conditions"]
        assert condition["reason"] == "FailedGetScale"
        assert condition["message"] == (
            f"the HPA controller was unable to get the target's current scale: {problem}"
        )
        assert ("Warning", "FailedGetScale", problem) in await cluster.events()


async def test_custom_resource_is_scaled_by_its_scale(cluster):
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"scale": scale, "status": {}},
    }
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    await define(cluster.server, {"metadata": {"name": "widgets.example.com"}, "spec": spec})
    widgets = "/apis/example.com/v1/namespaces/default/widgets"
    body = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "spec": {"replicas": 9},
    }
    await cluster.post(widgets, body)
    await cluster.autoscale(target={"apiVersion": "example.com/v1", "kind": "Widget", "name": "w"})
    await cluster.period()
    assert (await cluster.server.get(f"{widgets}/w")).body["spec"]["replicas"] == 5
    await cluster.period()
    (active,) = [one for one in (await cluster.status())["conditions"] if one["type"] == "ScalingActive"]
    assert (active["reason"], active["message"]) == (
        "InvalidSelector",
        "the HPA target's scale is missing a selector",
    )
    assert ("Warning", "SelectorRequired", "selector is required") in await cluster.events()


@pytest.mark.parametrize(
    ("selector", "problem"),
    [
        (
            "a in (",
            "couldn't parse the selector string \"a in (\": unable to parse requirement: found '', expected: ',', ')' or identifier",
        ),
        ("a>1", '"gt" isn\'t supported in label selectors'),
    ],
)
async def test_scale_with_invalid_selector_sets_condition(cluster, selector, problem):
    await make_widget(cluster, selector)
    await cluster.period()
    prefix = (
        "received an object from a /scale endpoint which was not convertible to autoscaling Scale: "
        "failed to parse target selector: "
    )
    (condition,) = (await cluster.status())["conditions"]
    assert condition["reason"] == "FailedGetScale"
    assert condition["message"].endswith(f": {prefix}{problem}")


async def make_widget(cluster, selector):
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"scale": scale},
    }
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    await define(cluster.server, {"metadata": {"name": "widgets.example.com"}, "spec": spec})
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    status = {"selector": selector, "replicas": 2}
    path = "/apis/example.com/v1/namespaces/default/widgets"
    await cluster.post(path, {**body, "spec": {"replicas": 2}, "status": status})
    await cluster.autoscale(target={"apiVersion": "example.com/v1", "kind": "Widget", "name": "w"})


async def test_autoscaler_metrics_are_counted(cluster):
    await cluster.deploy(replicas=7)
    await cluster.autoscale()
    await cluster.period(2)
    prefix = "horizontal_pod_autoscaler_controller"

    def value(name, **labels):
        return sample_value(cluster.manager.metrics.registry, f"{prefix}_{name}", labels)

    assert value("reconciliations_total", action="scale_down", error="none") == 1
    assert value("reconciliations_total", action="none", error="internal") == 2
    assert value("reconciliation_duration_seconds_count", action="scale_down", error="none") == 1
    labels = {"action": "none", "error": "internal", "metric_type": "Resource"}
    assert value("metric_computation_total", **labels) == 2
    assert value("num_horizontal_pod_autoscalers") == 1
    assert value("desired_replicas", namespace="default", hpa_name="h") == 5
    await cluster.server.delete(f"{AUTOSCALERS}/h")
    await cluster.period()
    assert value("num_horizontal_pod_autoscalers") == 0
    assert value("desired_replicas", namespace="default", hpa_name="h") is None


DISTURBANCES = {
    "nothing": lambda *_: Disturbance(),
    "409": lambda *_: RefuseWrites(2, 409, "Conflict"),
    "500": lambda *_: RefuseWrites(2, 500, "InternalError"),
    "conflicts": lambda server, *_: ConflictingWrites(2, server, maximum=15),
    "lost requests": lambda *_: LoseRequests(2),
    "lost responses": lambda *_: LoseResponses(2),
    "cut watches": lambda *_: CutWatches(1),
    "expired watches": lambda *_: CutWatches(3, forgets=True),
}


@pytest.mark.thorough
@pytest.mark.parametrize("disturbance_of", DISTURBANCES.values(), ids=DISTURBANCES)
async def test_disturbed_autoscaler_reaches_same_state(disturbance_of):
    clock = SteppedClock()
    async with running(clock=clock) as server:
        disturbance = disturbance_of(server, clock)
        async with running_manager(
            server, clock, runnables=[HORIZONTAL_POD_AUTOSCALER], disturbance=disturbance
        ) as manager:
            cluster = AutoscalingCluster(server, manager, clock)
            await server.post(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
            await serve_metrics(server)
            for name in ("p0", "p1"):
                await cluster.run_pod(name, "1600m")
            await cluster.deploy(replicas=9)
            await cluster.autoscale()
            await cluster.period(10)
            assert await cluster.scale() == 4 or await cluster.scale() == 5
            status = await cluster.status()
            assert status["desiredReplicas"] == await cluster.scale()
            assert (await cluster.conditions())["ScalingActive"] == ("True", "ValidMetricFound")
