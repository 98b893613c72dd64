"""A changed pool changes its nodes: what it sets is set, what it no longer sets is removed, the rest stays."""

from datetime import UTC, datetime

import pytest

from mockube.apimachinery.patch.json_merge import apply
from mockube.kubelet.node_objects import node
from mockube.kubelet.node_pools.reading import read_value
from mockube.kubelet.node_shapes import SHAPE, patch, recorded_shape, shaped_nodes, status_patch


def node_of(value):
    first = next(shaped_nodes(read_value(value)))
    return node(first, "", version="v1.37.2", now=datetime(2030, 1, 1, tzinfo=UTC))


def change(present, desired):
    """Return the node after both patches."""
    present = {**present, "metadata": {"resourceVersion": "1", **present["metadata"]}}
    present = apply(present, status_patch(present, desired))
    return apply(present, patch(present, desired))


def stated(tree):
    """Return what a pool may set; empty parts count as absent."""
    metadata, spec, status = tree["metadata"], tree.get("spec") or {}, tree["status"]
    return {
        "labels": metadata["labels"],
        "annotations": metadata["annotations"],
        "taints": spec.get("taints") or [],
        "unschedulable": spec.get("unschedulable"),
        "images": status.get("images"),
        **{name: status[name] for name in ("capacity", "allocatable", "nodeInfo")},
    }


FULL = [
    {
        "count": 1,
        "name": "node",
        "instanceType": "big",
        "zones": ["a"],
        "architecture": "arm64",
        "osImage": "Ubuntu",
        "labels": {"disk": "ssd"},
        "annotations": {"rack": "7"},
        "taints": [{"key": "team", "value": "ml", "effect": "NoSchedule"}],
        "capacity": {"gpu": 8, "cpu": 96},
        "images": [{"names": ["nginx:1"], "sizeBytes": 1}],
        "unschedulable": True,
    }
]
VALUES = [1, "cpu=4:1", "cpu=8,label=disk=hdd,label=tier=front:1", "zone=b,taint=team:NoExecute:1", FULL]


@pytest.mark.parametrize("old", VALUES)
@pytest.mark.parametrize("new", VALUES)
def test_changed_node_is_as_a_new_one(old, new):
    assert stated(change(node_of(old), node_of(new))) == stated(node_of(new))


def test_changes_of_others_stay():
    present = node_of("label=disk=ssd,taint=team:NoSchedule:1")
    present["metadata"]["labels"]["mine"] = "1"
    present["spec"]["taints"].append({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"})
    present["spec"]["unschedulable"] = True
    changed = change(present, node_of("cpu=4:1"))
    assert changed["metadata"]["labels"]["mine"] == "1"
    assert "disk" not in changed["metadata"]["labels"]
    assert changed["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    assert changed["spec"]["unschedulable"]


def test_broken_record_removes_nothing():
    present = node_of("label=disk=ssd:1")
    present["metadata"]["annotations"][SHAPE] = "{"
    assert change(present, node_of("cpu=4:1"))["metadata"]["labels"]["disk"] == "ssd"


def test_shape_depends_on_zone_and_not_on_number_of_nodes():
    shapes = [shaped.shape for shaped in shaped_nodes(read_value("zone=a,zone=b:4"))]
    assert shapes[:2] == shapes[2:]
    assert shapes[0] != shapes[1]
    assert next(shaped_nodes(read_value("zone=a:1"))).shape == shapes[0]


def test_node_of_plain_number_has_no_record():
    assert recorded_shape(node_of(1)) == ""
