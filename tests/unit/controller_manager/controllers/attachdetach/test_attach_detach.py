"""Attach and detach of volumes as pods use them, compared with kube-controller-manager."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockube.apimachinery import meta
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.client.cache.store import Change
from mockube.client.kinds import (
    CSI_DRIVERS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    VOLUME_ATTACHMENTS,
)
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.attachdetach.controller import ATTACH_DETACH, MANAGED
from tests.support.controllers.fake_api_server import FakeApiServer

NA = "csi-534b86cd295e5df6fffcf7a2b664e864c7e07ec998802e2fc028d669c8047c61"
"""What a real kube-controller-manager called the attachment of h1 of csi.example.com to na."""
NB = "csi-fced8c6e1fd91db6f55f1015c5b0e68aeaf9c74221b3ef2e422442a78ddd6a24"
PLACE = {"devicePath": "", "name": "kubernetes.io/csi/csi.example.com^h1"}


def cluster_with_claim(*, modes=("ReadWriteOnce",), driver="csi.example.com", managed="true", **source):
    server = FakeApiServer(ATTACH_DETACH, SteppedClock())
    for name in ("na", "nb"):
        server.add(NODES, {"metadata": {"name": name, "annotations": {MANAGED: managed}}, "status": {}})
    claim = {"metadata": {"name": "c", "namespace": "default"}, "spec": {"volumeName": "pv"}}
    uid = meta.uid(server.add(PERSISTENT_VOLUME_CLAIMS, claim))
    reference = {"namespace": "default", "name": "c", "uid": uid}
    csi = source or {"csi": {"driver": driver, "volumeHandle": "h1"}}
    spec = {"accessModes": list(modes), "claimRef": reference, **csi}
    server.add(PERSISTENT_VOLUMES, {"metadata": {"name": "pv"}, "spec": spec})
    return server


def pod(volumes, name, node, phase="Running"):
    uses = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    tree = {"metadata": {"name": name, "namespace": "default"}, "spec": {"nodeName": node, "volumes": uses}}
    return volumes.add(PODS, {**tree, "status": {"phase": phase}})


def attach(volumes, name):
    volumes.change(VOLUME_ATTACHMENTS, name, ("status",), {"attached": True}, "")


def attached_volumes(volumes, node):
    return volumes.get(NODES, node, "")["status"].get("volumesAttached") or []


def reconcile_nodes(volumes, *nodes):
    for node in nodes or ("na", "nb"):
        volumes.reconcile(Key("", node))


def test_volume_is_attached_to_node_of_pod():
    volumes = cluster_with_claim()
    pod(volumes, "pa", "na")
    reconcile_nodes(volumes)
    (found,) = volumes.all(VOLUME_ATTACHMENTS)
    assert meta.name(found) == NA
    source = {"persistentVolumeName": "pv"}
    assert found["spec"] == {"attacher": "csi.example.com", "nodeName": "na", "source": source}
    assert attached_volumes(volumes, "na") == []
    attach(volumes, NA)
    reconcile_nodes(volumes)
    assert attached_volumes(volumes, "na") == [PLACE]
    message = 'AttachVolume.Attach succeeded for volume "pv" '
    assert volumes.events == [("Normal", "SuccessfulAttachVolume", message)]
    writes = len(volumes.done)
    reconcile_nodes(volumes)
    assert len(volumes.done) == writes == 2


def cluster_with_attached_volume(*pods, **of):
    volumes = cluster_with_claim(**of)
    for name, node in pods or (("pa", "na"),):
        pod(volumes, name, node)
    reconcile_nodes(volumes, "na")
    attach(volumes, NA)
    reconcile_nodes(volumes, "na")
    volumes.events.clear()
    return volumes


@pytest.mark.parametrize("ends", [True, False], ids=["ended", "gone"])
def test_volume_is_detached_after_last_pod(ends):
    volumes = cluster_with_attached_volume()
    if ends:
        volumes.change(PODS, "pa", ("status", "phase"), "Succeeded")
    else:
        volumes.remove(PODS, "pa")
    reconcile_nodes(volumes)
    assert attached_volumes(volumes, "na") == []
    assert volumes.all(VOLUME_ATTACHMENTS) == []


def test_volume_in_use_by_node_stays_attached():
    volumes = cluster_with_attached_volume()
    volumes.change(NODES, "na", ("status", "volumesInUse"), [PLACE["name"]], "")
    volumes.remove(PODS, "pa")
    reconcile_nodes(volumes)
    assert attached_volumes(volumes, "na") == [PLACE]
    volumes.change(NODES, "na", ("status", "volumesInUse"), [], "")
    reconcile_nodes(volumes)
    assert volumes.all(VOLUME_ATTACHMENTS) == []


@pytest.mark.parametrize(
    ("minor", "prefix"), [("1.37", "Waiting for detach"), ("1.36", "Multi-Attach error")]
)
def test_single_node_volume_waits_for_other_node(minor, prefix):
    volumes = cluster_with_attached_volume()
    volumes.gates = FeatureGates(minor)
    pod(volumes, "pb", "nb")
    reconcile_nodes(volumes)
    reconcile_nodes(volumes)
    message = f'{prefix} for volume "pv" Volume is already used by pod(s) pa'
    assert volumes.events == [("Warning", "FailedAttachVolume", message)]
    assert volumes.names(VOLUME_ATTACHMENTS) == [NA]
    volumes.remove(PODS, "pa")
    reconcile_nodes(volumes)
    assert volumes.names(VOLUME_ATTACHMENTS) == [NB]


NO_POD = {
    "1.37": 'Waiting for detach for volume "pv" Volume is already exclusively attached to one node, waiting on '
    "detach before it can be attached to another node",
    "1.36": 'Multi-Attach error for volume "pv" Volume is already exclusively attached to one node and can\'t be '
    "attached to another",
}


@pytest.mark.parametrize(("minor", "message"), NO_POD.items(), ids=NO_POD)
def test_attach_conflict_without_pod_has_other_event(minor, message):
    volumes = cluster_with_attached_volume()
    volumes.gates = FeatureGates(minor)
    volumes.change(NODES, "na", ("status", "volumesInUse"), [PLACE["name"]], "")
    volumes.remove(PODS, "pa")
    pod(volumes, "pb", "nb")
    reconcile_nodes(volumes)
    assert volumes.events[0][2] == message


@pytest.mark.parametrize("modes", [("ReadWriteMany",), ("ReadOnlyMany", "ReadWriteOnce"), ()])
def test_multi_node_volume_is_attached_to_both(modes):
    volumes = cluster_with_attached_volume(modes=modes)
    pod(volumes, "pb", "nb")
    reconcile_nodes(volumes)
    assert volumes.names(VOLUME_ATTACHMENTS) == [NA, NB]


@pytest.mark.parametrize(
    "of", [{"managed": "false"}, {"hostPath": {"path": "/x"}}], ids=["by the kubelet", "a directory"]
)
def test_other_volumes_are_ignored(of):
    volumes = cluster_with_claim(**of)
    pod(volumes, "pa", "na")
    reconcile_nodes(volumes)
    assert volumes.done == []


@pytest.mark.parametrize(("required", "count"), [(False, 0), (True, 1)])
def test_csi_driver_without_attach_needs_no_attachment(required, count):
    volumes = cluster_with_claim()
    pod(volumes, "pa", "na")
    driver = {"metadata": {"name": "csi.example.com"}, "spec": {"attachRequired": required}}
    volumes.add(CSI_DRIVERS, driver)
    reconcile_nodes(volumes)
    assert len(volumes.all(VOLUME_ATTACHMENTS)) == count


def test_foreign_attachments_stay():
    volumes = cluster_with_claim()
    source = {"persistentVolumeName": "nothing"}
    spec = {"attacher": "a", "nodeName": "na", "source": source}
    volumes.add(VOLUME_ATTACHMENTS, {"metadata": {"name": "by-hand"}, "spec": spec})
    reconcile_nodes(volumes)
    assert volumes.names(VOLUME_ATTACHMENTS) == ["by-hand"]


@pytest.mark.parametrize("gone", [NODES, PERSISTENT_VOLUMES], ids=["the node", "the volume"])
def test_attachment_of_deleted_object_is_removed(gone):
    volumes = cluster_with_attached_volume()
    if gone is PERSISTENT_VOLUMES:
        volumes.remove(PODS, "pa")
    volumes.remove(gone, "na" if gone is NODES else "pv", "")
    reconcile_nodes(volumes, "na")
    assert volumes.all(VOLUME_ATTACHMENTS) == []


@settings(max_examples=60)
@given(st.lists(st.sampled_from(["+na", "-na", "+nb", "-nb", "attach", "look na", "look nb"]), max_size=25))
def test_single_node_volume_is_never_attached_twice(steps):
    volumes, numbers = cluster_with_claim(), itertools.count()
    for step in steps:
        node = step[-2:]
        if step.startswith("+"):
            pod(volumes, f"{node}-{next(numbers)}", node)
        elif step.startswith("-"):
            for name in volumes.names(PODS):
                if name.startswith(node):
                    volumes.remove(PODS, name)
        elif step == "attach":
            for name in volumes.names(VOLUME_ATTACHMENTS):
                attach(volumes, name)
        else:
            reconcile_nodes(volumes, node)
        assert len(volumes.all(VOLUME_ATTACHMENTS)) <= 1
    for _ in range(3):
        reconcile_nodes(volumes)
    nodes = {one["spec"]["nodeName"] for one in volumes.all(VOLUME_ATTACHMENTS)}
    users = {one["spec"]["nodeName"] for one in volumes.all(PODS)}
    assert nodes <= users
    assert bool(nodes) == bool(users)


def test_changes_map_to_node_keys():
    volumes = cluster_with_attached_volume()
    of_node, of_pod, of_attachment, of_volume, of_claim, of_driver = (
        watch.keys for watch in ATTACH_DETACH.watches
    )
    caches, key = volumes.caches(), Key("", "na")
    node, view = volumes.get(NODES, "na", ""), PodView.of(volumes.get(PODS, "pa"))
    found, volume = volumes.get(VOLUME_ATTACHMENTS, NA, ""), volumes.get(PERSISTENT_VOLUMES, "pv", "")
    claim = volumes.get(PERSISTENT_VOLUME_CLAIMS, "c")
    beating = meta.with_value(node, ("status", "conditions"), [{"type": "Ready"}])
    plain = PodView.of({**view.object, "spec": {"nodeName": "na"}})
    for keys, change, concerned in (
        (of_node, Change(None, node), {key}),
        (of_node, Change(node, beating), set()),
        (of_node, Change(node, meta.with_value(node, ("status", "volumesInUse"), ["x"])), {key}),
        (of_pod, Change(None, view), {key}),
        (of_pod, Change(view, view), set()),
        (of_pod, Change(view, None), {key}),
        (of_pod, Change(None, plain), set()),
        (of_attachment, Change(None, found), {key}),
        (of_attachment, Change(found, None), {key}),
        (of_volume, Change(None, volume), {key}),
        (of_volume, Change(volume, volume), set()),
        (of_claim, Change(None, claim), {key}),
        (of_claim, Change(claim, claim), set()),
    ):
        assert {*keys(caches, change)} == concerned
    assert of_driver is None
