"""Volume expansion: writes, conditions and Events match those of an external resizer and a kubelet."""

import pytest

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.quantity import parse
from mockube.client.cache.store import Change
from mockube.client.component_helpers.volumes import PRE_RESIZE_CAPACITY, SIMULATED_PROVISIONER, capacity
from mockube.client.kinds import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.controller_manager.controllers.csi.resizer import NODE_RESIZER, RESIZER
from tests.support.controllers.storage import Storage

KEY = Key("default", "data")
PENDING = "Waiting for user to (re-)start a pod to finish file system resize of volume on node."


def bound_claim(*, size="2Gi", driver=SIMULATED_PROVISIONER, controllers=(RESIZER,)):
    storage = Storage(controllers)
    claim = storage.claim(size=size, volumeName="vol")
    storage.put_claim({**claim, "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}})
    reference = {"namespace": "default", "name": "data", "uid": meta.uid(claim)}
    spec = {"capacity": {"storage": "1Gi"}, "claimRef": reference, "csi": {"driver": driver}}
    storage.add(PERSISTENT_VOLUMES, {"metadata": {"name": "vol"}, "spec": spec})
    return storage


def run(storage, *, phase="Running", node="node-1", fake="fake"):
    metadata = {"name": node, "annotations": {"kwok.x-k8s.io/node": fake}}
    storage.add(NODES, {"metadata": metadata})
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    pod = {"metadata": {"name": "p", "namespace": "default"}, "spec": {"nodeName": node, "volumes": volumes}}
    return storage.add(PODS, {**pod, "status": {"phase": phase}})


def status(storage):
    return storage.get_claim("data")["status"]


def kinds_of(storage):
    return [one["type"] for one in conditions.of(storage.get_claim("data"))]


def test_volume_is_expanded_and_file_system_waits_for_node():
    storage = bound_claim()
    storage.reconcile(KEY)
    assert status(storage)["allocatedResources"] == {"storage": "2Gi"}
    assert status(storage)["allocatedResourceStatuses"] == {"storage": "NodeResizePending"}
    assert status(storage)["capacity"] == {"storage": "1Gi"}
    resizing, pending = conditions.of(storage.get_claim("data"))
    assert (resizing["type"], resizing["status"]) == ("Resizing", "True")
    assert (pending["type"], pending["message"]) == ("FileSystemResizePending", PENDING)
    volume = storage.get_volume()
    assert capacity(volume) == parse("2Gi")
    assert meta.annotations(volume) == {PRE_RESIZE_CAPACITY: "1Gi"}
    assert storage.events == [
        ("Normal", "Resizing", "External resizer is resizing volume vol"),
        ("Normal", "FileSystemResizeRequired", "Require file system resize of volume on node"),
    ]
    assert [resource for _, resource, _ in storage.done] == [
        PERSISTENT_VOLUME_CLAIMS,
        PERSISTENT_VOLUMES,
        PERSISTENT_VOLUME_CLAIMS,
    ]
    assert storage.reconcile(KEY) == ([], None)


def storage_after_expansion(**of_pod):
    """Return a storage whose volume is expanded and used by a pod."""
    storage = bound_claim()
    storage.reconcile(KEY)
    run(storage, **of_pod)
    storage.controller = NODE_RESIZER
    storage.events.clear()
    storage.done.clear()
    return storage


def test_node_of_running_pod_finishes_expansion():
    storage = storage_after_expansion()
    storage.reconcile(KEY)
    assert status(storage)["capacity"] == {"storage": "2Gi"}
    assert "allocatedResourceStatuses" not in status(storage)
    assert kinds_of(storage) == []
    message = 'MountVolume.NodeExpandVolume succeeded for volume "vol" node-1'
    assert storage.events == [("Normal", "FileSystemResizeSuccessful", message)] * 2
    assert len(storage.done) == 2
    assert storage.reconcile(KEY) == ([], None)
    storage.controller = RESIZER
    storage.reconcile(KEY)
    assert meta.annotations(storage.get_volume()) == {}
    assert storage.reconcile(KEY) == ([], None)


@pytest.mark.parametrize(
    "of_pod",
    [{"phase": "Pending"}, {"phase": "Succeeded"}, {"fake": "no"}],
    ids=["waiting", "ended", "elsewhere"],
)
def test_expansion_waits_without_running_pod_on_simulated_node(of_pod):
    assert storage_after_expansion(**of_pod).reconcile(KEY) == ([], None)


@pytest.mark.parametrize(
    "of", [{"size": "1Gi"}, {"driver": "somebody.example.com"}], ids=["it has enough", "of another driver"]
)
def test_other_claims_are_ignored(of):
    assert bound_claim(**of).reconcile(KEY) == ([], None)


def test_second_expansion_is_applied():
    storage = bound_claim()
    storage.reconcile(KEY)
    storage.change(PERSISTENT_VOLUME_CLAIMS, "data", ("spec", "resources", "requests", "storage"), "3Gi")
    storage.reconcile(KEY)
    assert capacity(storage.get_volume()) == parse("3Gi")
    assert meta.annotations(storage.get_volume()) == {PRE_RESIZE_CAPACITY: "1Gi"}


def test_other_conditions_are_kept():
    storage = bound_claim()
    other = {"type": "Other", "status": "True"}
    storage.change(PERSISTENT_VOLUME_CLAIMS, "data", ("status", "conditions"), [other])
    storage.reconcile(KEY)
    run(storage)
    storage.controller = NODE_RESIZER
    storage.reconcile(KEY)
    assert kinds_of(storage) == ["Other"]


@pytest.mark.parametrize("writes", [0, 1, 2, 3])
def test_restart_after_each_write_leads_to_same_end(writes):
    storage = bound_claim()
    run(storage)
    plan, left = storage.plan(KEY), writes
    while plan is not None and left > 0:
        storage._execute(plan.actions[:left])
        left -= len(plan.actions)
        plan = None if left <= 0 else storage.execute_one(storage.plan(KEY))
    for _ in range(3):
        for controller in (RESIZER, NODE_RESIZER):
            storage.controller = controller
            storage.reconcile(KEY)
    assert status(storage)["capacity"] == {"storage": "2Gi"}
    assert kinds_of(storage) == []
    assert capacity(storage.get_volume()) == parse("2Gi")
    assert meta.annotations(storage.get_volume()) == {}


def test_changes_map_to_growing_claims():
    storage = bound_claim()
    pod = PodView.of(run(storage))
    before = PodView.of({**pod.object, "status": {"phase": "Pending"}})
    claim = storage.get_claim("data")
    enough = meta.with_value(claim, ("spec", "resources", "requests", "storage"), "1Gi")
    more = meta.with_value(claim, ("status", "capacity", "storage"), "2Gi")

    def keys(controller, number, *change):
        return [*controller.watches[number].keys(storage.caches(), Change(*change))]

    assert keys(NODE_RESIZER, 2, before, pod) == [KEY]
    assert keys(NODE_RESIZER, 2, pod, pod) == []
    assert keys(NODE_RESIZER, 0, None, claim) == [KEY]
    assert keys(NODE_RESIZER, 0, None, enough) == []
    assert keys(RESIZER, 0, enough, claim) == [KEY]
    assert keys(RESIZER, 0, claim, more) == [KEY]
    assert keys(RESIZER, 0, enough, enough) == []
    assert keys(RESIZER, 0, claim, None) == []
    assert RESIZER.watches[1].keys is None
