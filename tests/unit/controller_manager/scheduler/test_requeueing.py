"""The events by which a pod is tried again that a plugin rejected."""

import pytest

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.scheduler.requeueing import (
    ANYTHING,
    Action,
    ClusterEvent,
    is_worth_requeuing,
    node_actions,
    pod_actions,
)

TAINT = {"key": "dedicated", "effect": "NoSchedule"}


def node(*, cpu="1", labels=(), features=(), **spec):
    status = {"allocatable": {"cpu": cpu, "pods": "9"}, "declaredFeatures": list(features)}
    return {"metadata": {"name": "a", "labels": dict(labels)}, "spec": spec, "status": status}


def view(name="web", *, cpu="2", labels=(), port=None, **spec):
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    container |= {"ports": [{"hostPort": port}]} if port else {}
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": name,
        "resourceVersion": "1",
        "labels": dict(labels),
    }
    return PodView.of({"metadata": metadata, "spec": {"containers": [container], **spec}, "status": {}})


def term(**labels):
    selected = {"labelSelector": {"matchLabels": labels}, "topologyKey": "zone"}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [selected]}


def spread(**labels):
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return [{**constraint, "labelSelector": {"matchLabels": labels}}]


def node_event(old, new):
    return ClusterEvent("Node", node_actions(old, new), old, new)


def pod_event(old, new):
    return ClusterEvent("Pod", pod_actions(old, new), old, new)


def with_actual(cpu):
    resized = view("other", cpu="1").object
    status = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return PodView.of({**resized, "status": {"containerStatuses": [status]}})


SSD = {"nodeSelector": {"disk": "ssd"}}
WEB = view("other", labels={"app": "web"})


@pytest.mark.parametrize(
    ("plugin", "pod", "event", "is_worth"),
    [
        ("NodeResourcesFit", view(), node_event(None, node(cpu="2")), True),
        ("NodeResourcesFit", view(), node_event(None, node(cpu="1")), False),
        ("NodeResourcesFit", view(), node_event(node(cpu="1"), node(cpu="2")), True),
        ("NodeResourcesFit", view(), node_event(node(cpu="3"), node(cpu="2")), False),
        ("NodeResourcesFit", view(), node_event(node(cpu="2"), node(cpu="2", labels={"a": "b"})), False),
        ("NodeResourcesFit", view(), pod_event(WEB, None), True),
        ("NodeResourcesFit", view(), pod_event(None, WEB), False),
        ("NodeResourcesFit", view(), pod_event(view(cpu="3"), view(cpu="1")), True),
        ("NodeResourcesFit", view(), pod_event(view(cpu="1"), view(cpu="3")), False),
        ("NodeResourcesFit", view(), pod_event(with_actual("3"), with_actual("1")), True),
        ("NodeResourcesFit", view(), pod_event(with_actual("1"), with_actual("3")), False),
        ("NodeAffinity", view(**SSD), node_event(node(), node(labels={"disk": "ssd"})), True),
        ("NodeAffinity", view(**SSD), node_event(node(), node(labels={"disk": "hdd"})), False),
        ("TaintToleration", view(), node_event(node(taints=[TAINT]), node()), True),
        ("TaintToleration", view(), node_event(None, node(taints=[TAINT])), False),
        ("NodeUnschedulable", view(), node_event(node(unschedulable=True), node()), True),
        ("NodeUnschedulable", view(), node_event(node(), node(unschedulable=True)), False),
        ("NodePorts", view(port=80), pod_event(view(port=80), None), True),
        ("NodePorts", view(port=80), pod_event(view(port=81), None), False),
        ("InterPodAffinity", view(affinity={"podAffinity": term(app="web")}), pod_event(None, WEB), True),
        ("InterPodAffinity", view(affinity={"podAffinity": term(app="db")}), pod_event(None, WEB), False),
        ("InterPodAffinity", view(affinity={"podAntiAffinity": term(app="web")}), pod_event(WEB, None), True),
        ("InterPodAffinity", view(affinity={"podAntiAffinity": term(app="db")}), pod_event(WEB, None), False),
        ("PodTopologySpread", view(topologySpreadConstraints=spread(app="web")), pod_event(None, WEB), True),
        ("PodTopologySpread", view(topologySpreadConstraints=spread(app="db")), pod_event(None, WEB), False),
        ("PodTopologySpread", view(topologySpreadConstraints=spread()), node_event(None, node()), False),
        ("NodeDeclaredFeatures", view(), node_event(node(), node(features=["A"])), True),
        ("NodeDeclaredFeatures", view(), node_event(node(), node(labels={"a": "b"})), False),
        ("VolumeBinding", view(), ClusterEvent("CSIStorageCapacity", Action.ADD), True),
        ("NodeResourcesFit", view(), ClusterEvent("CSIStorageCapacity", Action.ADD), False),
        ("NodeResourcesFit", view(), ANYTHING, True),
    ],
)
def test_pod_is_tried_again_by_events_that_may_help(plugin, pod, event, is_worth):
    assert is_worth_requeuing(pod, {plugin}, event, FeatureGates()) is is_worth


def resizing(**actual):
    """Return a pod of which one container grows from 1 to 4 CPUs while the other one shrinks from 3 to 1."""
    containers = [
        {"name": name, "resources": {"requests": {"cpu": cpu}}} for name, cpu in (("a", "1"), ("b", "4"))
    ]
    statuses = [
        {"name": name, "resources": {"requests": {"cpu": cpu}}, "allocatedResources": {"cpu": cpu}}
        for name, cpu in actual.items()
    ]
    resized = {**WEB.object, "spec": {"containers": containers}, "status": {"containerStatuses": statuses}}
    return PodView.of(resized)


@pytest.mark.parametrize(("minor", "is_worth"), [("1.37", False), ("1.36", True)])
def test_resize_frees_requests_that_minor_counts(minor, is_worth):
    event = pod_event(resizing(a="3", b="1"), resizing(a="1", b="4"))
    assert is_worth_requeuing(view(), {"NodeResourcesFit"}, event, FeatureGates(minor)) is is_worth


def test_requests_are_not_computed_for_plugin_that_any_event_may_help():
    without_spec = PodView.of({"metadata": view().object["metadata"]})
    plugins = {"NodeAffinity", "VolumeBinding"}
    assert is_worth_requeuing(without_spec, plugins, node_event(None, node()), FeatureGates())


def test_heartbeat_of_node_is_no_event():
    beat = node()
    beat["status"]["conditions"] = [{"type": "Ready", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}]
    assert not node_actions(node(), beat)
