"""Which nodes run a DaemonSet's pods, the node of a pod, and whether a pod has the newest template."""

import pytest

from mockube.client.podview import PodView
from mockube.controller_manager.controllers.daemonset.placement import (
    FITS,
    NO_FIT,
    Fit,
    fit_of,
    is_updated,
    new_pod,
    target_node,
    with_tolerations,
)
from tests.support.controllers.daemonsets import daemonset, template

STAYS = Fit(should_run=False, should_continue_running=True)
NEW = {"name": "n", "namespace": "default"}


def node(name="a", *taints, **labels):
    return {"metadata": {"name": name, "labels": labels}, "spec": {"taints": [*taints]}}


def taint(key, effect="NoSchedule"):
    return {"key": key, "effect": effect}


def network_taint():
    return taint("node.kubernetes.io/network-unavailable")


@pytest.mark.parametrize(
    ("spec", "subject", "expected"),
    [
        ({}, node(), FITS),
        ({}, {"metadata": {"name": "a"}}, FITS),
        ({"nodeName": "a"}, node(), FITS),
        ({"nodeName": "b"}, node(), NO_FIT),
        ({"nodeSelector": {"disk": "ssd"}}, node(disk="ssd"), FITS),
        ({"nodeSelector": {"disk": "ssd"}}, node(disk="hdd"), NO_FIT),
        ({"nodeName": "a", "nodeSelector": {"disk": "ssd"}}, node(disk="hdd"), NO_FIT),
        ({}, node("a", taint("k")), STAYS),
        ({}, node("a", taint("k", "NoExecute")), NO_FIT),
        ({}, node("a", taint("k", "PreferNoSchedule")), FITS),
        ({"tolerations": [{"operator": "Exists"}]}, node("a", taint("k", "NoExecute")), FITS),
        ({}, node("a", taint("node.kubernetes.io/not-ready", "NoExecute")), FITS),
        ({}, node("a", taint("node.kubernetes.io/unreachable", "NoExecute")), FITS),
        ({}, node("a", taint("node.kubernetes.io/disk-pressure")), FITS),
        ({}, node("a", taint("node.kubernetes.io/memory-pressure")), FITS),
        ({}, node("a", taint("node.kubernetes.io/pid-pressure")), FITS),
        ({}, node("a", taint("node.kubernetes.io/unschedulable")), FITS),
        ({}, node("a", taint("node.kubernetes.io/disk-pressure", "NoExecute")), NO_FIT),
        ({}, node("a", network_taint()), STAYS),
        ({"hostNetwork": True}, node("a", network_taint()), FITS),
    ],
)
def test_node_fits(spec, subject, expected):
    assert fit_of(daemonset(template=template(**spec)))(subject) == expected


def with_affinity(*terms):
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*terms]}}
    return {"affinity": {"nodeAffinity": required}}


def field(values, key="metadata.name", operator="In"):
    return {"matchFields": [{"key": key, "operator": operator, "values": values}]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"nodeName": "a", **with_affinity(field(["b"]))}, "a"),
        (with_affinity(field(["b"])), "b"),
        (with_affinity({"matchExpressions": []}, field(["b"])), "b"),
        (with_affinity(field(["b", "c"])), ""),
        (with_affinity(field([])), ""),
        (with_affinity(field(None)), ""),
        (with_affinity(field(["b"], key="metadata.uid")), ""),
        (with_affinity(field(["b"], operator="NotIn")), ""),
        (with_affinity(field(["x"], operator="NotIn"), field(["b"])), "b"),
        (with_affinity(), ""),
        ({"affinity": {"podAffinity": {}}}, ""),
        ({}, ""),
    ],
)
def test_node_of_a_pod_is_its_own_or_that_of_its_affinity(spec, expected):
    assert target_node(PodView.of({"metadata": NEW, "spec": spec})) == expected


@pytest.mark.parametrize(
    ("labels", "generation", "revision_hash", "expected"),
    [
        ({"pod-template-generation": "2"}, "2", "", True),
        ({"pod-template-generation": "1"}, "2", "", False),
        ({"pod-template-generation": "1", "controller-revision-hash": "h"}, "2", "h", True),
        ({"controller-revision-hash": "h"}, "", "h", True),
        ({"controller-revision-hash": "h"}, "", "i", False),
        ({"controller-revision-hash": ""}, "", "", False),
        ({"pod-template-generation": "None"}, "x", "h", False),
        ({}, "2", "h", False),
    ],
)
def test_pod_is_updated_by_generation_or_hash(labels, generation, revision_hash, expected):
    subject = daemonset()
    subject["metadata"]["annotations"] = {"deprecated.daemonset.template.generation": generation}
    pod = PodView.of({"metadata": {**NEW, "labels": labels}, "spec": {}})
    assert is_updated(subject, pod, revision_hash) is expected


def test_tolerations_of_the_template_are_neither_repeated_nor_lost():
    own = {
        "key": "node.kubernetes.io/not-ready",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 3,
    }
    near = [
        {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/unreachable", "operator": "Equal", "effect": "NoExecute"},
        {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "value": "v"},
    ]
    found = with_tolerations({"tolerations": [own, *near]})["tolerations"]
    assert found[0] == {"key": own["key"], "operator": "Exists", "effect": "NoExecute"}
    assert found[1:4] == near
    assert len(found) == 4 + 5


def test_new_pod_requires_its_node_and_keeps_other_affinity():
    affinity = {
        "podAffinity": {"a": "b"},
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}],
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": []}]
            },
        },
    }
    subject = daemonset(template=template(affinity=affinity))
    pod = new_pod(subject, "a", "h")
    found = pod["spec"]["affinity"]
    assert found["podAffinity"] == {"a": "b"}
    assert found["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] == [{"weight": 1}]
    assert target_node(PodView.of(pod | {"metadata": {**pod["metadata"], **NEW}})) == "a"
    assert pod["metadata"]["labels"] == {
        "app": "d",
        "pod-template-generation": "1",
        "controller-revision-hash": "h",
    }
    del subject["metadata"]["annotations"]
    assert new_pod(subject, "a", "h")["metadata"]["labels"] == {"app": "d", "controller-revision-hash": "h"}
