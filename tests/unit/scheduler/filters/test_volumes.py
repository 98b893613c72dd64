"""Nodes where the disks, claims and zones of a pod's volumes exclude it."""

import pytest

from mockube.scheduler.filters.filter import Rejection
from mockube.scheduler.filters.volumes import volume_binding, volume_restrictions, volume_zone
from tests.support.controllers.scheduler_objects import ZONE, info, node, pod, rejections, snapshot
from tests.support.controllers.scheduler_volumes import claim, storage, storage_class, uses, volume


def unresolvable(*reasons):
    return Rejection(reasons, is_unresolvable=True)


NODES = (node("a"), node("b"))

# --- VolumeRestrictions

NO_DISK = Rejection(("node(s) had no available disk",))
IN_USE = Rejection(
    (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
    )
)
RBD = {"monitors": ["m1", "m2"], "pool": "p", "image": "i"}


@pytest.mark.parametrize(
    ("source", "one", "other", "is_conflict"),
    [
        pytest.param("gcePersistentDisk", {"pdName": "d"}, {"pdName": "d"}, True, id="disk"),
        pytest.param("gcePersistentDisk", {"pdName": "d"}, {"pdName": "e"}, False, id="other disk"),
        pytest.param(
            "gcePersistentDisk", {"pdName": "d", "readOnly": True}, {"pdName": "d"}, True, id="read-only once"
        ),
        pytest.param(
            "gcePersistentDisk",
            {"pdName": "d", "readOnly": True},
            {"pdName": "d", "readOnly": True},
            False,
            id="read-only",
        ),
        pytest.param("awsElasticBlockStore", {"volumeID": "v"}, {"volumeID": "v"}, True, id="block store"),
        pytest.param(
            "awsElasticBlockStore", {"volumeID": "v"}, {"volumeID": "w"}, False, id="other block store"
        ),
        pytest.param(
            "awsElasticBlockStore",
            {"volumeID": "v", "readOnly": True},
            {"volumeID": "v", "readOnly": True},
            True,
            id="block store, even read-only",
        ),
        pytest.param("iscsi", {"iqn": "q", "lun": 1}, {"iqn": "q", "lun": 2}, True, id="target"),
        pytest.param("iscsi", {"iqn": "q"}, {"iqn": "r"}, False, id="other target"),
        pytest.param(
            "iscsi",
            {"iqn": "q", "readOnly": True},
            {"iqn": "q", "readOnly": True},
            False,
            id="read-only target",
        ),
        pytest.param("rbd", RBD, RBD | {"monitors": ["m2", "m3"]}, True, id="image of a monitor in common"),
        pytest.param("rbd", RBD, RBD | {"monitors": ["m3"]}, False, id="image of other monitors"),
        pytest.param("rbd", RBD, RBD | {"pool": "q"}, False, id="image of another pool"),
        pytest.param("rbd", RBD, RBD | {"image": "j"}, False, id="other image"),
        pytest.param("rbd", RBD | {"readOnly": True}, RBD | {"readOnly": True}, False, id="read-only image"),
        pytest.param("rbd", RBD | {"readOnly": True}, RBD, True, id="image that is read-only once"),
    ],
)
def test_node_with_disk_in_use_is_rejected(source, one, other, is_conflict):
    for used, wanted in ((one, other), (other, one)):
        running = [pod("old", nodeName="a", **uses(**{source: used})), pod("plain", nodeName="a")]
        found = rejections(volume_restrictions, pod(**uses(**{source: wanted})), snapshot(NODES, running))
        assert found == ({"a": NO_DISK} if is_conflict else {})


def test_disks_of_other_sources_do_not_conflict():
    running = [pod("old", nodeName="a", **uses(gcePersistentDisk={"pdName": "d"}))]
    tried = pod(**uses(awsElasticBlockStore={"volumeID": "d"}, emptyDir={}))
    assert rejections(volume_restrictions, tried, snapshot(NODES, running)) == {}


@pytest.mark.parametrize(
    ("modes", "user", "names"),
    [
        (["ReadWriteOncePod"], {"nodeName": "a"}, ["a", "b"]),
        (["ReadWriteOncePod"], {"nodeName": "a", "namespace": "other"}, []),
        (["ReadWriteOnce"], {"nodeName": "a"}, []),
        (None, {"nodeName": "a"}, []),
    ],
)
def test_claim_for_one_pod_rejects_all_nodes_while_another_pod_uses_it(modes, user, names):
    running = [pod("old", **user, **uses("data"))]
    state = snapshot(NODES, running, storage=storage(claim(accessModes=modes)))
    assert rejections(volume_restrictions, pod(**uses("data")), state) == dict.fromkeys(names, IN_USE)


def test_claim_for_one_pod_is_free_on_a_copy_of_the_node_without_its_user():
    """As preemption removes pods: the snapshot still has the pod."""
    state = snapshot(
        NODES,
        [pod("old", nodeName="a", **uses("data"))],
        storage=storage(claim(accessModes=["ReadWriteOncePod"])),
    )
    check = volume_restrictions(info(pod(**uses("data"))), state)
    emptied = state.nodes[0].copy()
    emptied.remove("old")
    assert check(emptied) is None
    assert check(state.nodes[1]) == IN_USE


def test_disk_in_use_is_a_reason_before_claim_in_use():
    own = uses("data", gcePersistentDisk={"pdName": "d"})
    state = snapshot(
        NODES, [pod("old", nodeName="a", **own)], storage=storage(claim(accessModes=["ReadWriteOncePod"]))
    )
    assert rejections(volume_restrictions, pod(**own), state) == {"a": NO_DISK, "b": IN_USE}


def test_claim_that_does_not_exist_rejects_all_nodes():
    missing = {"*": unresolvable('persistentvolumeclaim "data" not found')}
    assert rejections(volume_restrictions, pod(**uses("data")), snapshot(NODES)) == missing
    assert rejections(volume_zone, pod(**uses("data")), snapshot(NODES)) == {}


# --- VolumeBinding

NO_VOLUME = unresolvable("node(s) didn't find available persistent volumes to bind")
LOST = {"phase": "Lost"}
DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
EPHEMERAL = {"volumes": [{"name": "scratch", "ephemeral": {}}]}


def owned(uid):
    owner = {"kind": "Pod", "name": "web", "uid": uid, "controller": True}
    return claim("web-scratch", metadata={"ownerReferences": [owner]})


@pytest.mark.parametrize(
    ("spec", "claims", "reason"),
    [
        pytest.param(uses("data"), [], 'persistentvolumeclaim "data" not found', id="missing"),
        pytest.param(
            uses("data"),
            [claim(volume="disk", status=LOST)],
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "disk"',
            id="lost",
        ),
        pytest.param(
            uses("data"),
            [claim(metadata=DELETED)],
            'persistentvolumeclaim "data" is being deleted',
            id="being deleted",
        ),
        pytest.param(
            uses("data"),
            [claim(storage_class="immediate")],
            "pod has unbound immediate PersistentVolumeClaims",
            id="bound without consumer",
        ),
        pytest.param(
            uses("data"),
            [claim(storage_class="unknown")],
            "pod has unbound immediate PersistentVolumeClaims",
            id="of unknown class",
        ),
        pytest.param(
            uses("data"),
            [claim(volumeName="disk")],
            "pod has unbound immediate PersistentVolumeClaims",
            id="with a volume that is not bound yet",
        ),
        pytest.param(
            EPHEMERAL,
            [],
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "web-scratch"',
            id="ephemeral and missing",
        ),
        pytest.param(
            EPHEMERAL,
            [owned("other")],
            "PVC default/web-scratch was not created for pod default/web (pod is not owner)",
            id="ephemeral of another pod",
        ),
    ],
)
def test_claim_that_cannot_be_used_rejects_all_nodes(spec, claims, reason):
    classes = [storage_class(), storage_class("immediate", volumeBindingMode="Immediate")]
    state = snapshot(NODES, storage=storage(*claims, classes=classes))
    assert rejections(volume_binding, pod(**spec), state) == {"*": unresolvable(reason)}


@pytest.mark.parametrize(
    ("minor", "reason"),
    [
        ("1.33", "node(s) didn't match PersistentVolume's node affinity"),
        ("1.32", "node(s) had volume node affinity conflict"),
    ],
)
def test_node_that_cannot_reach_bound_volume_is_rejected(minor, reason):
    own = storage(claim(volume="disk"), volumes=[volume(on="a")])
    found = rejections(volume_binding, pod(**uses("data")), snapshot(NODES, minor=minor, storage=own))
    assert found == {"b": unresolvable(reason)}


def test_volume_that_does_not_exist_rejects_each_node():
    found = rejections(
        volume_binding, pod(**uses("data")), snapshot(NODES, storage=storage(claim(volume="disk")))
    )
    reason = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
    assert found == dict.fromkeys("ab", unresolvable(reason))


def test_volume_without_node_affinity_is_reachable_everywhere():
    own = storage(claim(volume="disk"), volumes=[volume()])
    assert rejections(volume_binding, pod(**uses("data")), snapshot(NODES, storage=own)) == {}


def test_reasons_of_bound_and_unbound_claims_are_both_given():
    taken = volume(on="a", claimRef={"namespace": "default", "name": "data", "uid": "claim-data"})
    own = storage(claim(volume="disk"), claim("new"), volumes=[taken])
    found = rejections(volume_binding, pod(**uses("data", "new")), snapshot(NODES, storage=own))
    affinity = "node(s) didn't match PersistentVolume's node affinity"
    assert found == {"a": NO_VOLUME, "b": unresolvable(affinity, *NO_VOLUME.reasons)}


def test_pod_without_claims_needs_no_check_of_bindings():
    assert volume_binding(info(pod(**uses(emptyDir={}))), snapshot(NODES)) is None


# --- VolumeZone

NO_ZONE = unresolvable("node(s) had no available volume zone")
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
ZONES = (node("a", zone="x"), node("b", zone="y"), node("c"), node("d", labels={REGION: "r"}))


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        pytest.param({}, [], id="none"),
        pytest.param({ZONE: "x"}, ["b", "d"], id="a zone"),
        pytest.param({ZONE: "x__y"}, ["d"], id="two zones"),
        pytest.param({ZONE: "x__ y "}, ["d"], id="with spaces"),
        pytest.param({ZONE: "z"}, ["a", "b", "d"], id="another zone"),
        pytest.param({OLD_ZONE: "x"}, ["b", "d"], id="a zone by the old label"),
        pytest.param({REGION: "r"}, ["a", "b"], id="a region"),
        pytest.param({ZONE: "x", REGION: "r"}, ["a", "b", "d"], id="both"),
        pytest.param({ZONE: "x__"}, [], id="an empty zone, for which the label is ignored"),
    ],
)
def test_node_in_other_zone_than_volume_is_rejected(labels, names):
    """A node without any label of a zone or region fits, as upstream."""
    own = storage(claim(volume="disk"), volumes=[volume(labels=labels)])
    found = rejections(volume_zone, pod(**uses("data")), snapshot(ZONES, storage=own))
    assert found == dict.fromkeys(names, NO_ZONE)


def test_old_label_of_volume_is_compared_with_that_of_node_first():
    nodes = [node("a", zone="x", labels={OLD_ZONE: "y"}), node("b", zone="y", labels={OLD_ZONE: "x"})]
    own = storage(claim(volume="disk"), volumes=[volume(labels={OLD_ZONE: "x"})])
    assert rejections(volume_zone, pod(**uses("data")), snapshot(nodes, storage=own)) == {"a": NO_ZONE}


def test_volume_of_zone_that_does_not_exist_rejects_all_nodes():
    found = rejections(
        volume_zone, pod(**uses("data")), snapshot(ZONES, storage=storage(claim(volume="disk")))
    )
    assert found == {"*": unresolvable('persistentvolume "disk" not found')}


def test_unbound_claim_has_no_zone():
    own = storage(claim())
    assert volume_zone(info(pod(**uses("data"))), snapshot(ZONES, storage=own)) is None
