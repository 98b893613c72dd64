"""Volume expansion: writes, conditions and Events match those of an external resizer and a kubelet."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.quantity import parse
from mockube.client.cache.store import Change
from mockube.client.component_helpers.indexes import BY_CLAIM, claims_of_pod
from mockube.client.component_helpers.volumes import PRE_RESIZE_CAPACITY, SIMULATED_PROVISIONER, capacity
from mockube.client.kinds import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import EMPTY_PLAN
from mockube.controller_manager.controllers.csi import resizer
from mockube.controller_manager.controllers.csi.resizer import NODE_RESIZER, RESIZER
from tests.support.controllers.fake_caches import FakeCaches
from tests.support.controllers.storage import Storage

KEY = Key("default", "data")
NOW = datetime(2030, 1, 1, tzinfo=UTC)
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


def claim(
    size="2Gi",
    present="1Gi",
    *,
    state="",
    allocated="",
    conditions=(),
    phase="Bound",
    uid="u",
    deleted=False,
    volume="vol",
):
    status = {
        "phase": phase,
        "capacity": {"storage": present},
        "conditions": [{"type": each} for each in conditions],
    }
    if state:
        status["allocatedResourceStatuses"] = {"storage": state}
    if allocated:
        status["allocatedResources"] = {"storage": allocated}
    metadata = {
        "name": "data",
        "namespace": "default",
        "uid": uid,
        **({"deletionTimestamp": "x"} if deleted else {}),
    }
    spec = {"volumeName": volume, "resources": {"requests": {"storage": size}}}
    return {"metadata": metadata, "spec": spec, "status": status}


def volume(size="1Gi", *, driver=SIMULATED_PROVISIONER, provisioned_by="", before="", uid="u"):
    annotations = {"pv.kubernetes.io/provisioned-by": provisioned_by, PRE_RESIZE_CAPACITY: before}
    source = {"csi": {"driver": driver}} if driver else {"hostPath": {}}
    reference = {"namespace": "default", "name": "data", "uid": uid}
    return {
        "metadata": {"name": "vol", "annotations": {key: text for key, text in annotations.items() if text}},
        "spec": {"capacity": {"storage": size}, "claimRef": reference, **source},
    }


def pod(name="p", *, phase="Running", node="node-1", deleted=False, claim="data"):
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
    metadata = {
        "name": name,
        "namespace": "default",
        **({"deletionTimestamp": "2030-01-01T00:00:00Z"} if deleted else {}),
    }
    return {"metadata": metadata, "spec": {"nodeName": node, "volumes": volumes}, "status": {"phase": phase}}


NODE_TREES = [
    {"metadata": {"name": "node-1", "annotations": {"kwok.x-k8s.io/node": "fake"}}},
    {"metadata": {"name": "real"}},
]


def caches(*objects, pods=()):
    claims = [each for each in objects if "volumeName" in each["spec"]]
    trees = {
        PERSISTENT_VOLUME_CLAIMS: claims,
        PERSISTENT_VOLUMES: [each for each in objects if each not in claims],
        PODS: pods,
        NODES: NODE_TREES,
    }
    return FakeCaches(trees, {PODS: {BY_CLAIM: claims_of_pod}})


def verbs(plan):
    return [(type(action).__name__, getattr(action, "reason", "")) for action in plan.actions]


START = [("Patch", ""), ("RecordEvent", "Resizing")]
PENDING_ON_NODE = [("Patch", ""), ("RecordEvent", "FileSystemResizeRequired")]
NODE = "NodeResizePending"


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([claim(), volume()], START),
        ([claim(deleted=True), volume()], []),
        ([claim(phase="Lost"), volume()], []),
        ([claim(uid="v"), volume()], []),
        ([claim(volume="none"), volume()], []),
        ([volume()], []),
        ([claim(), volume(driver="x.example.com")], []),
        ([claim(), volume(driver="x.example.com", provisioned_by=SIMULATED_PROVISIONER)], START),
        ([claim(), volume(driver="", provisioned_by=SIMULATED_PROVISIONER)], START),
        ([claim(), volume(driver="")], []),
        ([claim("1Gi"), volume()], []),
        ([claim("1Gi"), volume(before="1Gi")], [("Patch", "")]),
        ([claim("1Gi"), volume("2Gi", before="1Gi")], []),
        ([claim(state=NODE, allocated="2Gi"), volume()], []),
        ([claim(state=NODE, allocated="1Gi"), volume()], START),
        ([claim(state="NodeResizeInProgress", allocated="2Gi"), volume()], []),
        ([claim(state="ControllerResizeInProgress", allocated="2Gi"), volume()], [("Patch", ""), *PENDING_ON_NODE]),
        ([claim(state="ControllerResizeInProgress", allocated="2Gi"), volume("2Gi")], PENDING_ON_NODE),
    ],
)  # fmt: skip
def test_steps_of_an_external_resizer(objects, expected):
    assert verbs(resizer.reconcile(caches(*objects), KEY, NOW)) == expected


@pytest.mark.parametrize(("before", "kept"), [("", "1Gi"), ("500Mi", "500Mi")])
def test_first_capacity_before_a_resize_is_kept(before, kept):
    tree = claim(state="ControllerResizeInProgress", allocated="2Gi")
    patch, *_ = resizer.reconcile(caches(tree, volume(before=before)), KEY, NOW).actions
    assert patch.body["metadata"]["annotations"] == {PRE_RESIZE_CAPACITY: kept}
    assert patch.body["spec"]["capacity"] == {"storage": "2Gi"}


RESIZES = ("FileSystemResizePending", "Resizing", "ControllerResizeError", "NodeResizeError")


@pytest.mark.parametrize("kept", [True, False])
def test_conditions_of_a_resize_replace_others(kept):
    tree = claim(conditions=("Other", *RESIZES))
    found = [
        each["type"]
        for each in resizer._with_condition(tree, {"type": "Resizing", "new": True}, keeps_others=kept)
    ]
    assert found == (
        ["Other", *(each for each in RESIZES if each != "Resizing"), "Resizing"]
        if kept
        else ["Other", "Resizing"]
    )


@pytest.mark.parametrize(
    ("objects", "pods", "expected"),
    [
        ([claim(state=NODE), volume()], [pod()], [("Patch", "")]),
        ([claim(state=NODE), volume()], [pod(phase="Pending"), pod("q")], [("Patch", "")]),
        ([claim(state=NODE), volume()], [pod(phase="Pending")], []),
        ([claim(state=NODE), volume()], [pod(deleted=True)], []),
        ([claim(state=NODE), volume()], [pod(node="real")], []),
        ([claim(state=NODE), volume()], [pod(node="none")], []),
        ([claim(state=NODE), volume()], [pod(claim="other")], []),
        ([claim(), volume()], [pod()], []),
        ([claim(state="ControllerResizeInProgress"), volume()], [pod()], []),
        ([claim(state=NODE)], [pod()], []),
        ([volume()], [pod()], []),
        (
            [claim(state="NodeResizeInProgress"), volume()],
            [pod()],
            [("RecordEvent", "FileSystemResizeSuccessful")] * 2 + [("Patch", "")],
        ),
    ],
)
def test_steps_of_a_kubelet(objects, pods, expected):
    assert verbs(resizer.reconcile_node(caches(*objects, pods=pods), KEY, NOW)) == expected


@pytest.mark.parametrize(
    ("conditions", "left"), [(("Other", *RESIZES), [{"type": "Other"}]), (RESIZES, None)]
)
def test_resize_that_is_done_leaves_no_conditions(conditions, left):
    tree = claim(state="NodeResizeInProgress", conditions=conditions)
    *_, patch = resizer.reconcile_node(caches(tree, volume("2Gi"), pods=[pod()]), KEY, NOW).actions
    assert patch.body["status"] == {
        "capacity": {"storage": "2Gi"},
        "conditions": left,
        "allocatedResourceStatuses": None,
    }


@pytest.mark.parametrize(
    ("answers", "error", "goes_on"),
    [([claim()], None, True), ([claim()], ValueError(), False), ([], None, False)],
)
def test_resize_goes_on_after_its_first_write(answers, error, goes_on):
    outcome = SimpleNamespace(of=lambda _: [SimpleNamespace(response=each) for each in answers], error=error)
    for plan in (
        resizer._plan_after_start(volume(), NOW, outcome),
        resizer._plan_after_node_start(lambda _: EMPTY_PLAN, outcome),
    ):
        assert (plan is not None) is goes_on


GROWN = claim("1Gi")


@pytest.mark.parametrize(
    ("old", "new", "unfinished", "changed"),
    [
        (None, claim(), True, True),
        (None, GROWN, False, True),
        (GROWN, GROWN, False, False),
        (claim("2Gi", "2Gi"), GROWN, False, True),
        (GROWN, claim("1Gi", state=NODE), True, True),
        (claim(), claim(), True, True),
        (claim(), None, False, False),
    ],
)
def test_changes_of_claims_that_matter(old, new, unfinished, changed):
    change = Change(old, new)
    assert bool([*resizer._unfinished_claim(None, change)]) is unfinished
    assert bool([*resizer._unfinished_or_grown_claim(None, change)]) is changed


@pytest.mark.parametrize(
    ("old", "new", "keys"),
    [
        (None, "Running", [KEY]),
        ("Pending", "Running", [KEY]),
        ("Running", "Running", []),
        ("Pending", "Pending", []),
        ("Running", None, []),
    ],
)
def test_pod_that_starts_is_a_change_of_its_claims(old, new, keys):
    views = [None if phase is None else PodView.of(pod(phase=phase)) for phase in (old, new)]
    assert [*resizer._claims_of_started_pod(None, Change(*views))] == keys
