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


OWN_NAME = f"csi-{64 * '0'}"


@pytest.mark.parametrize(
    ("name", "source", "volume"),
    [
        ("by-hand", {"persistentVolumeName": "nothing"}, {}),
        ("by-hand", {"persistentVolumeName": "pv"}, {}),
        (OWN_NAME, {"inlineVolumeSpec": {}}, {}),
        (OWN_NAME, {"persistentVolumeName": "pv"}, {"hostPath": {"path": "/x"}}),
        (OWN_NAME, {"persistentVolumeName": "pv"}, {}),
    ],
    ids=["absent volume", "name", "inline volume", "volume of another kind", "name for another node"],
)
def test_foreign_attachments_stay(name, source, volume):
    volumes = cluster_with_claim(**volume)
    spec = {"attacher": "a", "nodeName": "na", "source": source}
    volumes.add(VOLUME_ATTACHMENTS, {"metadata": {"name": name}, "spec": spec})
    reconcile_nodes(volumes)
    assert volumes.names(VOLUME_ATTACHMENTS) == [name]


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
    pod(volumes, "pb", "nb")
    pod(volumes, "waiting", "")
    of_node, of_pod, of_attachment, of_volume, of_claim, of_driver = (
        watch.keys for watch in ATTACH_DETACH.watches
    )
    caches, na, nb = volumes.caches(), Key("", "na"), Key("", "nb")
    node, view = volumes.get(NODES, "na", ""), PodView.of(volumes.get(PODS, "pa"))
    found, volume = volumes.get(VOLUME_ATTACHMENTS, NA, ""), volumes.get(PERSISTENT_VOLUMES, "pv", "")
    claim = volumes.get(PERSISTENT_VOLUME_CLAIMS, "c")
    beating = meta.with_value(node, ("status", "conditions"), [{"type": "Ready"}])
    plain = PodView.of({**view.object, "spec": {"nodeName": "na"}})
    unbound, ended = (
        PodView.of(volumes.get(PODS, "waiting")),
        with_pod_value(view, "status", "phase", "Failed"),
    )
    replaced = with_pod_value(view, "metadata", "uid", "another")
    of_other_volume = meta.with_value(found, ("spec", "source"), {"persistentVolumeName": "other"})
    inline = meta.with_value(found, ("spec", "source"), {"inlineVolumeSpec": {}})
    unclaimed = {**volume, "spec": {}}
    for keys, change, concerned in (
        (of_node, Change(None, node), {na}),
        (of_node, Change(node, None), {na}),
        (of_node, Change(node, beating), set()),
        (of_node, Change(node, meta.with_value(node, ("status", "volumesInUse"), ["x"])), {na}),
        (of_node, Change(node, meta.with_value(node, ("status", "volumesAttached"), [])), {na}),
        (of_node, Change(node, meta.with_annotations(node, {MANAGED: "false"})), {na}),
        (of_pod, Change(None, view), {na}),
        (of_pod, Change(view, view), set()),
        (of_pod, Change(view, None), {na}),
        (of_pod, Change(None, plain), set()),
        (of_pod, Change(None, unbound), set()),
        (of_pod, Change(unbound, view), {na}),
        (of_pod, Change(view, ended), {na}),
        (of_pod, Change(view, replaced), {na}),
        (of_pod, Change(view, with_pod_value(view, "spec", "nodeName", "nb")), {na, nb}),
        (of_attachment, Change(None, found), {na}),
        (of_attachment, Change(found, found), {na}),
        (of_attachment, Change(found, None), {na, nb}),
        (of_attachment, Change(of_other_volume, None), {na}),
        (of_attachment, Change(inline, None), {na}),
        (of_volume, Change(None, volume), {na, nb}),
        (of_volume, Change(None, unclaimed), set()),
        (of_volume, Change(volume, volume), set()),
        (of_volume, Change(volume, None), set()),
        (of_claim, Change(None, claim), {na, nb}),
        (of_claim, Change({**claim, "spec": {}}, claim), {na, nb}),
        (of_claim, Change(claim, claim), set()),
        (of_claim, Change(claim, None), set()),
    ):
        assert {*keys(caches, change)} == concerned
    assert of_driver is None


def with_pod_value(view, section, field, value):
    return PodView.of(meta.with_value(view.object, (section, field), value))


def test_attachment_that_is_not_attached_yet_is_neither_reported_nor_an_event():
    volumes = cluster_with_claim()
    pod(volumes, "pa", "na")
    reconcile_nodes(volumes)
    reconcile_nodes(volumes)
    assert (attached_volumes(volumes, "na"), volumes.events) == ([], [])


def test_volume_in_use_without_pod_is_reported_without_event():
    volumes = cluster_with_claim()
    pod(volumes, "pa", "na")
    reconcile_nodes(volumes)
    attach(volumes, NA)
    volumes.remove(PODS, "pa")
    volumes.change(NODES, "na", ("status", "volumesInUse"), [PLACE["name"]], "")
    reconcile_nodes(volumes)
    assert (attached_volumes(volumes, "na"), volumes.events) == ([PLACE], [])


def test_attachment_that_is_being_detached_is_deleted_once():
    volumes = cluster_with_attached_volume()
    volumes.remove(PODS, "pa")
    ending = {"deletionTimestamp": "2030-01-01T00:00:00Z", "finalizers": ["external-attacher/x"]}
    volumes.put(VOLUME_ATTACHMENTS, meta.with_metadata(volumes.get(VOLUME_ATTACHMENTS, NA, ""), **ending))
    before = len(volumes.done)
    reconcile_nodes(volumes, "na")
    assert [verb for verb, _, _ in volumes.done[before:]] == ["patch"]


@pytest.mark.parametrize(
    ("phase", "node"), [("Running", ""), ("Succeeded", "na")], ids=["not bound", "ended"]
)
def test_pod_without_need_attaches_nothing(phase, node):
    volumes = cluster_with_claim()
    pod(volumes, "pa", node, phase)
    reconcile_nodes(volumes)
    assert volumes.done == []


@pytest.mark.parametrize(
    "change",
    [
        (PERSISTENT_VOLUME_CLAIMS, "c", ("spec", "volumeName"), "", "default"),
        (PERSISTENT_VOLUME_CLAIMS, "c", ("spec", "volumeName"), "absent", "default"),
        (PERSISTENT_VOLUMES, "pv", ("spec", "claimRef", "uid"), "other", ""),
    ],
    ids=["unbound claim", "absent volume", "volume of another claim"],
)
def test_claim_without_bound_volume_attaches_nothing(change):
    volumes = cluster_with_claim()
    volumes.change(*change)
    pod(volumes, "pa", "na")
    reconcile_nodes(volumes)
    assert volumes.done == []


def test_ended_pod_does_not_use_a_volume_on_another_node():
    volumes = cluster_with_attached_volume(("pa", "na"), ("ended", "na"), ("waiting", ""))
    volumes.change(PODS, "ended", ("status", "phase"), "Succeeded")
    pod(volumes, "pb", "nb")
    reconcile_nodes(volumes, "nb")
    assert [message.rpartition(" ")[2] for _, _, message in volumes.events] == ["pa"]
