"""Pods of one class with claims of their own: the nodes that a class chooses for them, and when only the reference can."""

import pytest
from msgspec.structs import replace

from mockube.client import kinds
from mockube.client.cache.store import Change
from mockube.client.component_helpers.volumes import SELECTED_NODE
from mockube.client.resources import Key
from mockube.scheduler.choice import best_nodes, find_feasible
from mockube.scheduler.cluster import SchedulerCache
from mockube.scheduler.pod_class import ClassOfPod, PodClasses
from mockube.scheduler.volumes import ClaimBinding, Storage
from mockube.scheduler.watched import nodes_of_change
from tests.support.controllers.scheduler_objects import (
    HOST,
    ZONE,
    best_of,
    info,
    node,
    pod,
    snapshot_of,
    store_of,
)
from tests.support.controllers.scheduler_volumes import DRIVER, claim, csi, storage_class, volume

ZONES = dict(zip("abcd", "xxyz", strict=True))
"""The zones of nodes."""
IN_X = [{"matchLabelExpressions": [{"key": ZONE, "values": ["x"]}]}]
DISK = storage_class("disk", provisioner="disk")
STATIC = storage_class("static")


def reachable(key, *values, operator="In"):
    expression = {"key": key, "operator": operator, "values": [*values]}
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}


def waiting(storage_class="disk", **more):
    return claim(storage_class=storage_class, **more)


def bound(**fields):
    return {"claims": [claim(volume="disk")], "volumes": [volume(**fields)]}


def csi_node(name, count):
    drivers = [{"name": DRIVER, "allocatable": {"count": count}}]
    return {"metadata": {"name": name}, "spec": {"drivers": drivers}}


def attachment(name, at):
    spec = {"attacher": DRIVER, "nodeName": at, "source": {"persistentVolumeName": name}}
    return {"metadata": {"name": f"{name}-{at}"}, "spec": spec}


CASES = [
    pytest.param({"claims": [waiting()], "classes": [DISK]}, "abcd", id="waits for a volume"),
    pytest.param(
        {"claims": [waiting()], "classes": [DISK | {"allowedTopologies": IN_X}]},
        "ab",
        id="topology of a class",
    ),
    pytest.param(
        {
            "claims": [waiting()],
            "classes": [DISK],
            "drivers": [{"metadata": {"name": "disk"}, "spec": {"storageCapacity": True}}],
            "capacities": [
                {
                    "metadata": {"name": "y", "namespace": "default"},
                    "storageClassName": "disk",
                    "nodeTopology": {"matchLabels": {ZONE: "y"}},
                    "capacity": "5Gi",
                }
            ],
        },
        "c",
        id="capacity of a zone",
    ),
    pytest.param(
        {
            "claims": [waiting("static")],
            "classes": [STATIC],
            "volumes": [volume(storage_class="static", **reachable(ZONE, "z"))],
        },
        "d",
        id="static volume of a zone",
    ),
    pytest.param(
        {"claims": [waiting(annotations={SELECTED_NODE: "b"})], "classes": [DISK]}, "b", id="selected node"
    ),
    pytest.param(bound(**reachable(ZONE, "x")), "ab", id="bound in a zone"),
    pytest.param(bound(**reachable(ZONE, "x", operator="NotIn")), "cd", id="bound in other zones"),
    pytest.param(bound(labels={ZONE: "y__z"}), "cd", id="labels of zones"),
    pytest.param(bound(on="c"), "c", id="bound to a host"),
    pytest.param(bound(), "abcd", id="bound anywhere"),
    pytest.param(
        {**bound(**csi("handle")), "csi_nodes": [csi_node("a", 3), csi_node("b", 0)]},
        "acd",
        id="limit of a driver",
    ),
]


class Cluster:
    def __init__(self, storage):
        self.cache = SchedulerCache()
        for name, zone in ZONES.items():
            self.cache.set_node(node(name, zone=zone))
        self.classes = PodClasses(self.cache)
        stores = {"claims": (), "volumes": (), "classes": (), "attachments": (), **storage}
        self.stores = {name: store_of(*objects) for name, objects in stores.items()}
        self.storage = Storage(**self.stores)

    def put(self, store, resource, obj):
        self._mark_changed(resource, Change(self.stores[store].put(Key.of(obj), obj), obj))

    def delete(self, store, resource, obj):
        self._mark_changed(resource, Change(self.stores[store].remove(Key.of(obj)), None))

    def _mark_changed(self, resource, change):
        for name in nodes_of_change(change, resource, self.storage, self.cache.users_of_claim):
            self.cache.mark_changed(name)

    def find(self, tree):
        """Return what judges a pod, and the snapshot."""
        state = replace(snapshot_of(self.cache), storage=self.storage)
        return self.classes.find(info(tree), state), state


def with_claim(name="web", claim_name="data"):
    return pod(name, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": claim_name}}])


@pytest.mark.parametrize(("storage", "nodes"), CASES)
def test_class_chooses_nodes_for_claims_as_the_reference_does(storage, nodes):
    cluster, tree = Cluster(storage), with_claim()
    found, state = cluster.find(tree)
    assert isinstance(found, ClassOfPod)
    assert sorted(one.name for one in best_of(found, state)) == [*nodes]
    reference = find_feasible(info(tree), state)
    best = best_nodes(info(tree), state, reference.feasible)
    assert sorted(one.name for one in best) == [*nodes]
    assert found.feasible_nodes(state) == reference


def test_pods_with_other_claims_share_a_class():
    zones = {"first": "x", "second": "y"}
    volumes = [volume(name, **reachable(ZONE, zone)) for name, zone in zones.items()]
    cluster = Cluster({"claims": [claim(name, volume=name) for name in zones], "volumes": volumes})
    assert info(with_claim("p", "first")).signature == info(with_claim("q", "second")).signature
    for name, nodes in (("first", "ab"), ("second", "c"), ("first", "ab")):
        found, state = cluster.find(with_claim(claim_name=name))
        assert sorted(one.name for one in best_of(found, state)) == [*nodes]


def test_claim_of_one_pod_at_a_time_is_not_used_twice():
    storage = {"claims": [waiting(accessModes=["ReadWriteOncePod"])], "classes": [DISK]}
    cluster = Cluster(storage)
    found, state = cluster.find(with_claim())
    assert len(best_of(found, state)) == len(ZONES)
    cluster.cache.assign_pod(info(with_claim("user")), "a")
    found, state = cluster.find(with_claim())
    assert best_of(found, state) == []
    cluster.cache.remove_pod("user")
    found, state = cluster.find(with_claim())
    assert len(best_of(found, state)) == len(ZONES)


@pytest.mark.parametrize(
    "storage",
    [
        pytest.param(
            {
                "claims": [waiting("static")],
                "classes": [STATIC],
                "volumes": [volume(storage_class="static", on="a")],
            },
            id="volume of a host",
        ),
        pytest.param(
            {
                "claims": [claim(volume="disk")],
                "volumes": [volume(**csi("handle"))],
                "csi_nodes": [csi_node("a", 3)],
                "attachments": [attachment("disk", "b")],
            },
            id="attached volume of a driver with a limit",
        ),
        pytest.param(bound(**reachable(HOST, "a", operator="NotIn")), id="other hosts"),
        pytest.param(
            {
                "claims": [waiting("static")],
                "classes": [STATIC],
                "volumes": [volume(f"disk-{number}", storage_class="static") for number in range(101)],
            },
            id="very many volumes",
        ),
    ],
)
def test_claims_that_tell_single_nodes_apart_are_left_to_the_reference(storage):
    found, _ = Cluster(storage).find(with_claim())
    assert found is None


def test_volumes_of_pods_and_attached_ones_count_for_the_limit_of_a_node():
    volumes = [volume(name, **csi(name)) for name in ("data", "other", "left")]
    cluster = Cluster(
        {
            "claims": [claim(name, volume=name) for name in ("data", "other")],
            "volumes": volumes,
            "csi_nodes": [csi_node(name, 1) for name in ZONES],
            "attachments": [attachment("left", "d")],
        }
    )
    found, state = cluster.find(with_claim())
    assert sorted(one.name for one in best_of(found, state)) == [*"abc"]
    cluster.cache.assign_pod(info(with_claim("other", "other")), "a")
    found, state = cluster.find(with_claim())
    assert sorted(one.name for one in best_of(found, state)) == [*"bc"]


def full_nodes():
    """A cluster in which a node has a pod with the claim `data`, and another one with the claim `other`; none can attach more."""
    names = ("data", "other", "third")
    cluster = Cluster(
        {
            "claims": [claim(name, volume=name) for name in names],
            "volumes": [volume(name, **csi(name)) for name in names],
            "csi_nodes": [csi_node(name, 1) for name in "ab"] + [csi_node(name, 0) for name in "cd"],
        }
    )
    for at, name in (("a", "data"), ("b", "other")):
        cluster.cache.assign_pod(info(with_claim(f"on-{at}", name)), at)
    return cluster


def test_volume_of_another_pod_with_the_claim_does_not_count_again():
    cluster = full_nodes()
    found, state = cluster.find(with_claim())
    assert found is None
    assert [one.name for one in find_feasible(info(with_claim()), state).feasible] == ["a"]


CHANGES = {
    "claim": ("claims", kinds.PERSISTENT_VOLUME_CLAIMS, claim("other", volume="another")),
    "volume": (
        "volumes",
        kinds.PERSISTENT_VOLUMES,
        volume("other", claimRef={"namespace": "default", "name": "other"}),
    ),
    "CSINode": ("csi_nodes", kinds.CSI_NODES, csi_node("b", 2)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_node_is_judged_again_after_a_change_of_what_it_can_attach(change):
    cluster, tree = full_nodes(), with_claim("web", "third")
    cluster.put("volumes", kinds.PERSISTENT_VOLUMES, volume("another"))
    found, state = cluster.find(tree)
    assert best_of(found, state) == []
    cluster.put(*CHANGES[change])
    found, state = cluster.find(tree)
    assert [one.name for one in best_of(found, state)] == ["b"]


def test_node_is_judged_again_after_changes_of_attachments_and_their_volumes():
    cluster, tree = full_nodes(), with_claim("web", "third")
    for name in "cd":
        cluster.put("csi_nodes", kinds.CSI_NODES, csi_node(name, 1))

    def best():
        found, state = cluster.find(tree)
        return [one.name for one in best_of(found, state)]

    assert best() == ["c", "d"]
    cluster.put("attachments", kinds.VOLUME_ATTACHMENTS, attachment("left", "d"))
    assert best() == ["c", "d"]
    cluster.put("volumes", kinds.PERSISTENT_VOLUMES, volume("left", **csi("left")))
    assert best() == ["c"]
    cluster.delete("attachments", kinds.VOLUME_ATTACHMENTS, attachment("left", "d"))
    assert best() == ["c", "d"]


def test_second_pod_of_a_claim_gets_any_node_of_its_static_volume():
    disk = volume(storage_class="static", **reachable(ZONE, "x"))
    shared = waiting("static")
    cluster = Cluster({"claims": [shared], "classes": [STATIC], "volumes": [disk]})
    cluster.storage.assumed.assume("first", "a", [ClaimBinding(shared, disk)])
    found, state = cluster.find(with_claim("second"))
    assert isinstance(found, ClassOfPod)
    assert [one.name for one in find_feasible(info(with_claim("second")), state).feasible] == ["a", "b"]
    assert [one.name for one in best_of(found, state)] == ["a", "b"]


def test_node_that_claims_name_may_be_rejected_for_another_reason():
    cluster = Cluster({"claims": [claim(volume="disk")], "volumes": [volume(on="c")]})
    found, state = cluster.find(with_claim())
    assert [one.name for one in best_of(found, state)] == ["c"]
    cluster.cache.set_node(node("c", zone="y", unschedulable=True))
    found, state = cluster.find(with_claim())
    assert best_of(found, state) == []
    cluster.cache.remove_node("c")
    found, state = cluster.find(with_claim())
    assert best_of(found, state) == []
