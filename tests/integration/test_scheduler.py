"""Scheduling with a real server: the node of each pod, and the message of an unschedulable pod."""

import orjson
import pytest

from mockube.apimachinery.status import Forbidden
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.components import KUBE_SCHEDULER
from mockube.controller_manager.controllers.persistentvolume.controller import PERSISTENT_VOLUME_BINDER
from mockube.controller_manager.controllers.serviceaccount.controller import SERVICE_ACCOUNT
from mockube.etcd.kv import Put
from tests.support.controllers.running_manager import running_manager
from tests.support.controllers.scheduling import NO_HELP, NODES, PODS, SchedulingScenario, scheduling
from tests.support.metric_samples import sample_value
from tests.support.server.apiserver import running


@pytest.fixture
async def cluster():
    async with scheduling() as scenario:
        yield scenario


async def test_pods_are_spread_over_equal_nodes(cluster):
    for name in "abc":
        await cluster.node(name)
    places = [await cluster.pod(f"web-{at}") for at in range(6)]
    assert sorted(places) == ["a", "a", "b", "b", "c", "c"]
    (event,) = [one for one in await cluster.events("Scheduled") if one["regarding"]["name"] == "web-0"]
    assert event["note"] == f"Successfully assigned default/web-0 to {places[0]}"
    assert (event["reportingController"], event["action"]) == ("default-scheduler", "Binding")


async def test_pod_is_pending_without_nodes(cluster):
    assert await cluster.pod("a") is None
    assert await cluster.refusal("a") == "no nodes available to schedule pods"
    await cluster.node("late")
    await cluster.manager.step(2)
    assert await cluster.place("a") == "late"


async def test_pod_is_pending_without_free_resources(cluster):
    await cluster.node("small", cpu="1")
    await cluster.node("full", pods="0")
    assert await cluster.pod("first", cpu="600m") == "small"
    assert await cluster.pod("second", cpu="600m") is None
    assert await cluster.refusal("second") == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 Too many pods. "
        "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."
    )
    (event,) = await cluster.events("FailedScheduling")
    assert event["type"] == "Warning"
    await cluster.server.delete(f"{PODS}/first", {"gracePeriodSeconds": 0})
    await cluster.manager.step(2)
    assert await cluster.place("second") == "small"


async def test_pod_larger_than_any_node_is_pending(cluster):
    await cluster.node("a", cpu="1")
    await cluster.pod("big", cpu="2")
    assert await cluster.refusal("big") == f"0/1 nodes are available: 1 Insufficient cpu. {NO_HELP.format(1)}"


async def test_taints_and_unschedulable_nodes_are_respected(cluster):
    await cluster.node("tainted", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    await cluster.node("closed", unschedulable=True)
    assert await cluster.pod("plain") is None
    assert await cluster.refusal("plain") == (
        "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable. "
        + NO_HELP.format(2)
    )
    assert await cluster.pod("brave", tolerations=[{"key": "k", "operator": "Exists"}]) == "tainted"
    await cluster.server.patch(f"{NODES}/closed", {"spec": {"unschedulable": False, "taints": None}})
    await cluster.manager.step(2)
    assert await cluster.place("plain") == "closed"


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"nodeSelector": {"disk": "ssd"}}, id="selector"),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {
                                    "matchExpressions": [
                                        {"key": "disk", "operator": "NotIn", "values": ["hdd"]}
                                    ]
                                }
                            ]
                        }
                    }
                }
            },
            id="required affinity",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "weight": 1,
                                "preference": {
                                    "matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]
                                },
                            }
                        ]
                    }
                }
            },
            id="preferred affinity",
        ),
    ],
)
async def test_node_labels_are_respected(cluster, spec):
    await cluster.node("slow", disk="hdd")
    await cluster.node("fast", disk="ssd")
    assert {await cluster.pod(f"web-{at}", **spec) for at in range(3)} == {"fast"}


async def test_pod_is_pending_without_matching_labels(cluster):
    await cluster.node("a")
    await cluster.pod("web", nodeSelector={"none": "such"})
    assert await cluster.refusal("web") == (
        f"0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. {NO_HELP.format(1)}"
    )


async def test_host_ports_are_respected(cluster):
    await cluster.node("a")
    assert await cluster.pod("first", port=80) == "a"
    assert await cluster.pod("second", port=80) is None
    refusal = await cluster.refusal("second")
    assert refusal.startswith(
        "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
    )
    assert await cluster.pod("other", port=81) == "a"


def affinity_of(key="kubernetes.io/hostname", kind="podAntiAffinity"):
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": key}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


async def test_pod_anti_affinity_is_respected(cluster):
    await cluster.node("a")
    await cluster.node("b")
    assert sorted([await cluster.pod(f"web-{at}", affinity=affinity_of()) for at in range(2)]) == ["a", "b"]
    assert await cluster.pod("third", affinity=affinity_of()) is None
    assert "2 node(s) didn't match pod anti-affinity rules." in await cluster.refusal("third")
    assert await cluster.pod("plain") is None
    assert "2 node(s) didn't satisfy existing pods anti-affinity rules." in await cluster.refusal("plain")
    assert await cluster.pod("stranger", labels={"app": "other"}) is not None


async def test_pod_affinity_is_respected(cluster):
    for name, zone in (("a", "x"), ("b", "x"), ("c", "y")):
        await cluster.node(name, zone=zone)
    with_others = affinity_of("zone", "podAffinity")
    await cluster.pod("lost", labels={"app": "other"}, affinity=with_others)
    assert "3 node(s) didn't match pod affinity rules." in await cluster.refusal("lost")
    first = await cluster.pod("first", affinity=with_others)
    zone = {"a", "b"} if first in "ab" else {"c"}
    assert {await cluster.pod(f"web-{at}", affinity=with_others) for at in range(4)} == zone
    await cluster.manager.step(2)
    assert await cluster.place("lost") in zone


async def test_topology_spread_is_respected(cluster):
    for name, zone in (("a", "x"), ("b", "x"), ("c", "y")):
        await cluster.node(name, zone=zone, cpu="1" if name == "c" else "32")
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    places = [
        await cluster.pod(f"web-{at}", cpu="500m", topologySpreadConstraints=[constraint]) for at in range(5)
    ]
    assert sorted("y" if place == "c" else "x" for place in places) == ["x", "x", "x", "y", "y"]
    assert await cluster.pod("sixth", cpu="500m", topologySpreadConstraints=[constraint]) is None
    refusal = await cluster.refusal("sixth")
    assert "1 Insufficient cpu, 2 node(s) didn't match pod topology spread constraints." in refusal


async def test_pod_of_higher_priority_preempts(cluster):
    for name, value in (("low", 1), ("high", 10)):
        await cluster.post(
            "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value}
        )
    await cluster.node("a", cpu="1")
    assert await cluster.pod("lesser", cpu="500m", priorityClassName="low") == "a"
    assert await cluster.pod("least", cpu="500m") == "a"
    assert await cluster.pod("greater", cpu="500m", priorityClassName="high") is None
    pod = (await cluster.server.get(f"{PODS}/greater")).body
    assert pod["status"]["nominatedNodeName"] == "a"
    victim = (await cluster.server.get(f"{PODS}/least")).body
    assert victim["metadata"]["deletionTimestamp"]
    (condition,) = [one for one in victim["status"]["conditions"] if one["type"] == "DisruptionTarget"]
    assert condition["message"] == "default-scheduler: preempting to accommodate a higher priority pod"
    (event,) = await cluster.events("Preempted")
    assert event["note"] == f"Preempted by pod {pod['metadata']['uid']} on node a"
    assert "deletionTimestamp" not in (await cluster.server.get(f"{PODS}/lesser")).body["metadata"]
    await cluster.server.delete(f"{PODS}/least", {"gracePeriodSeconds": 0})
    await cluster.manager.step(2)
    assert await cluster.place("greater") == "a"


async def test_scheduling_gates_hold_pod(cluster):
    await cluster.node("a")
    assert await cluster.pod("gated", schedulingGates=[{"name": "example.com/wait"}]) is None
    assert await cluster.events("FailedScheduling") == []
    await cluster.server.patch(f"{PODS}/gated", {"spec": {"schedulingGates": None}})
    await cluster.manager.settle()
    assert await cluster.place("gated") == "a"


async def test_pods_of_other_scheduler_are_ignored(cluster):
    await cluster.node("a")
    assert await cluster.pod("other", schedulerName="another") is None


async def test_restarted_scheduler_counts_running_pods():
    clock = SteppedClock()
    async with running(clock=clock) as server:
        async with running_manager(
            server, clock, controllers=[SERVICE_ACCOUNT, PERSISTENT_VOLUME_BINDER], runnables=[KUBE_SCHEDULER]
        ) as manager:
            scenario = SchedulingScenario(server, manager)
            await scenario.node("a", cpu="1")
            assert await scenario.pod("first", cpu="600m") == "a"
        async with running_manager(
            server, clock, controllers=[SERVICE_ACCOUNT, PERSISTENT_VOLUME_BINDER], runnables=[KUBE_SCHEDULER]
        ) as manager:
            assert await SchedulingScenario(server, manager).pod("second", cpu="600m") is None


async def test_failed_binding_is_logged_and_retried(cluster, caplog):
    faults = ["a fault in the program"]

    async def fail(request):
        if request.target.endswith("/binding") and faults:
            raise RuntimeError(faults.pop())

    cluster.manager.transport.before_request = fail
    await cluster.node("a")
    await cluster.pod("web")
    await cluster.manager.step(20)
    assert await cluster.place("web") == "a"
    (record,) = [record for record in caplog.records if record.exc_info]
    assert "binding failed" in record.getMessage()
    restarts = sample_value(
        cluster.manager.metrics.registry, "mockube_task_restarts_total", {"task": "scheduler/bind"}
    )
    assert restarts == 1.0


async def test_refused_binding_is_reported_and_retried_with_backoff(cluster):
    refusals = 3 * ["no pods today"]

    async def refuse(request):
        if request.target.endswith("/binding") and refusals:
            raise Forbidden(refusals.pop())

    cluster.manager.transport.before_request = refuse
    await cluster.node("a")
    assert await cluster.pod("web") is None
    message = 'running Bind plugin "DefaultBinder": no pods today'
    pod = (await cluster.server.get(f"{PODS}/web")).body
    (condition,) = pod["status"]["conditions"]
    assert (condition["reason"], condition["message"]) == ("SchedulerError", message)
    await cluster.manager.step(1)
    await cluster.manager.step(1)
    assert (len(refusals), await cluster.place("web")) == (1, None)
    await cluster.manager.step(10)
    assert await cluster.place("web") == "a"
    assert {event["note"] for event in await cluster.events("FailedScheduling")} == {message}


async def test_failed_scheduling_is_retried_and_others_continue(cluster, caplog):
    """Another program may have written this to the store: an operator that no node can be scored by."""
    odd = {"matchExpressions": [{"key": "k", "operator": "Odd", "values": ["v"]}]}
    preferred = [{"weight": 1, "preference": odd}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    tree = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "bad", "namespace": "default", "uid": "uid-of-bad"},
        "spec": {"containers": [], "schedulerName": "default-scheduler", "affinity": affinity},
    }
    backend = cluster.server.server.registry
    result = await backend.kv.put(Put(key=b"/registry/pods/default/bad", value=orjson.dumps(tree)))
    await backend.watch_cache.wait_reached(result.revision)
    await cluster.manager.settle()
    await cluster.node("a")
    await cluster.node("b")
    assert await cluster.pod("good") is not None
    await cluster.manager.step(20)
    failed = [record for record in caplog.records if "default/bad: scheduling failed" in record.getMessage()]
    assert len(failed) >= 3
    assert await cluster.place("bad") is None
    assert await cluster.pod("another") is not None


async def test_labels_of_a_namespace_change_which_pods_anti_affinity_matches(cluster):
    for name in "ab":
        await cluster.node(name, zone=name)
    await cluster.post("/api/v1/namespaces", {"metadata": {"name": "shop"}})
    container = {"name": "c", "image": "i"}
    far = {"topologyKey": "zone", "labelSelector": {}, "namespaceSelector": {"matchLabels": {"team": "x"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [far]}}
    spec = {"containers": [container], "affinity": apart, "nodeName": "a"}
    busy = {"metadata": {"name": "busy"}, "spec": spec}
    await cluster.server.post("/api/v1/namespaces/shop/pods", busy)
    await cluster.manager.settle()
    assert await cluster.pod("before", affinity=apart) == "b"
    await cluster.server.patch("/api/v1/namespaces/shop", {"metadata": {"labels": {"team": "x"}}})
    places = {await cluster.pod(f"after-{number}", affinity=apart) for number in range(4)}
    assert places == {"b"}
