"""The contents of volumes in memory: whose they are, and how long they exist."""

import pytest

from mockube.container_runtime.config.environment import References
from mockube.container_runtime.records import Records
from mockube.container_runtime.simulated.files.mounts import (
    file_system_of,
    files_of,
    shared_mounts,
    storage_of,
)
from mockube.container_runtime.simulated.files.writable import MAX_CONTAINERS, ContainerFiles, RunKey
from tests.support.images import IMAGES

CLAIM = {"spec": {"volumeName": "pv"}, "status": {"capacity": {"storage": "1Mi"}}}
VOLUMES = {
    "emptyDir": {},
    "hostPath": {"path": "/srv/x"},
    "persistentVolumeClaim": {"claimName": "data"},
}


def pod(kind, uid="1", node="node-1", **mount):
    volume = {"name": "v", kind: VOLUMES[kind]}
    container = {"name": "c", "volumeMounts": [{"name": "v", "mountPath": "/data", **mount}]}
    return {
        "metadata": {"name": f"p{uid}", "namespace": "n", "uid": uid},
        "spec": {"containers": [container], "volumes": [volume], "nodeName": node},
    }


def references(claim=CLAIM, **spec):
    persistent = {"metadata": {"name": "pv", "uid": "pv-1"}, "spec": spec}
    return References(
        storage={("persistentvolumeclaims", "data"): claim, ("persistentvolumes", "pv"): persistent}
    )


def files_in(store, tree, restarts=0, objects=None):
    container, objects = tree["spec"]["containers"][0], objects or references()
    key = RunKey(tree["metadata"]["uid"], "c", restarts)
    mounts = shared_mounts(tree, container, objects)
    entries = files_of(IMAGES, tree, container, objects)
    return store.file_system(
        key, entries, mounts, lambda shared: file_system_of(IMAGES, tree, container, objects, shared)
    )


def test_mount_of_a_clone_names_its_origin():
    clone = {"spec": {"volumeName": "copy", "dataSource": {"kind": "PersistentVolumeClaim", "name": "data"}}}
    copy = {"metadata": {"name": "copy", "uid": "pv-2"}, "spec": {}}
    objects = references()
    tree = pod("persistentVolumeClaim")
    tree["spec"]["volumes"][0]["persistentVolumeClaim"] = {"claimName": "clone"}
    storage = {
        **objects.storage,
        ("persistentvolumeclaims", "clone"): clone,
        ("persistentvolumes", "copy"): copy,
    }
    mount, _ = shared_mounts(tree, tree["spec"]["containers"][0], References(storage=storage))
    assert (mount.volume, mount.origin) == (("volume", "pv-2", "copy"), ("volume", "pv-1", "pv"))


@pytest.mark.parametrize(
    ("kind", "other", "is_shared"),
    [
        ("emptyDir", {"uid": "2"}, False),
        ("hostPath", {"uid": "2"}, True),
        ("hostPath", {"uid": "2", "node": "node-2"}, False),
        ("persistentVolumeClaim", {"uid": "2", "node": "node-2"}, True),
    ],
)
def test_contents_belong_to_the_volume(kind, other, is_shared):
    records = Records()
    store = ContainerFiles(records)
    files_in(store, pod(kind)).write("/data/x", b"x")
    records.remove("1")
    assert files_in(store, pod(kind, **other)).has("/data/x") == is_shared


def test_restart_keeps_volumes_and_loses_the_container_layer():
    store, tree = ContainerFiles(Records()), pod("emptyDir")
    first = files_in(store, tree)
    first.write("/data/x", b"x")
    first.write("/tmp/x", b"x")
    second = files_in(store, tree, restarts=1)
    assert (second.has("/data/x"), second.has("/tmp/x")) == (True, False)


@pytest.mark.parametrize("source", ["local", "hostPath"])
def test_volume_on_the_node_has_the_files_of_the_node(source):
    store, objects = ContainerFiles(Records()), references(**{source: {"path": "/srv/x"}})
    files_in(store, pod("persistentVolumeClaim"), objects=objects).write("/data/x", b"x")
    assert files_in(store, pod("hostPath", uid="2")).read("/data/x") == b"x"


def test_sub_path_is_a_folder_of_the_volume():
    store = ContainerFiles(Records())
    files_in(store, pod("persistentVolumeClaim", subPath="a/b")).write("/data/x", b"x")
    assert files_in(store, pod("persistentVolumeClaim", uid="2")).read("/data/a/b/x") == b"x"


def test_expansion_of_a_claim_gives_room():
    store, tree = ContainerFiles(Records()), pod("persistentVolumeClaim")
    files = files_in(store, tree)
    assert files.place("/data/x").files.inodes.free() == 1 << 20
    larger = {**CLAIM, "status": {"capacity": {"storage": "2Mi"}}}
    files_in(store, tree, objects=references(larger))
    assert files.place("/data/x").files.inodes.free() == 2 << 20


def test_volumes_that_are_created_anew_are_other_ones():
    tree = pod("persistentVolumeClaim")
    volume = tree["spec"]["volumes"][0]
    [old, new] = [
        storage_of(tree, volume, References(storage={
            ("persistentvolumeclaims", "data"): CLAIM,
            ("persistentvolumes", "pv"): {"metadata": {"name": "pv", "uid": uid}, "spec": {}},
        }))[0]
        for uid in ("pv-1", "pv-2")
    ]  # fmt: skip
    assert old != new


def test_disk_usage_has_what_was_written():
    store, tree = ContainerFiles(Records()), pod("emptyDir")
    assert store.disk_usage("1") is None
    files = files_in(store, tree)
    assert store.disk_usage("1") == ({"c": 0}, {"v": 0})
    files.write("/data/x", b"12345")
    files.write("/tmp/x", b"", zeros=1 << 30)
    assert store.disk_usage("1") == ({"c": 1 << 30}, {"v": 5})


def claim_of_group(uid, claim_fields=None, **context):
    tree = pod("persistentVolumeClaim", uid)
    tree["spec"]["securityContext"] = context
    tree["spec"]["volumes"][0]["persistentVolumeClaim"] = {"claimName": "data", **(claim_fields or {})}
    return tree


def modes_after(second, **volume):
    """Write files as a pod, and return their groups and modes as the second pod has them."""
    store, objects = ContainerFiles(Records()), references(**volume)
    files = files_in(store, pod("persistentVolumeClaim"), objects=objects)
    files.make_directory("/data/d", mode=0o700)
    files.write("/data/d/x", b"x", mode=0o600)
    files.link("/data/l", "d/x")
    seen = files_in(store, second, objects=objects)
    entries = (seen.link_entry(path) for path in ("/data", "/data/d", "/data/d/x", "/data/l"))
    return [(entry.group, f"{entry.mode:o}") for entry in entries]


GIVEN = [(2000, "2777"), (2000, "2770"), (2000, "660"), (2000, "777")]
UNCHANGED = [(0, "777"), (0, "700"), (0, "600"), (0, "777")]


@pytest.mark.parametrize(
    ("context", "claim_fields", "volume", "modes"),
    [
        ({"fsGroup": 2000}, {}, {}, GIVEN),
        ({"fsGroup": 2000, "fsGroupChangePolicy": "Always"}, {}, {"csi": {}}, GIVEN),
        ({"fsGroup": 2000, "fsGroupChangePolicy": "OnRootMismatch"}, {}, {}, GIVEN),
        ({"fsGroup": 2000}, {"readOnly": True}, {}, UNCHANGED),
        ({"fsGroup": 2000}, {}, {"nfs": {}}, UNCHANGED),
        ({}, {}, {}, UNCHANGED),
    ],
)
def test_contents_of_a_claim_are_given_to_the_group_of_the_pod(context, claim_fields, volume, modes):
    assert modes_after(claim_of_group("2", claim_fields, **context), **volume) == modes


@pytest.mark.parametrize(("policy", "mode"), [("Always", 0o660), ("OnRootMismatch", 0o600)])
def test_policy_on_root_mismatch_leaves_a_volume_whose_folder_fits(policy, mode):
    store, context = ContainerFiles(Records()), {"fsGroup": 2000, "fsGroupChangePolicy": policy}
    files = files_in(store, claim_of_group("1", **context))
    files.write("/data/x", b"x", mode=0o600)
    assert files_in(store, claim_of_group("1", **context)).entry("/data/x").mode == 0o600
    assert files_in(store, claim_of_group("2", **context)).entry("/data/x").mode == mode


def test_contents_of_a_claim_on_a_node_belong_to_the_group_below_its_folder_alone():
    store, objects = ContainerFiles(Records()), references(local={"path": "/srv/x"})
    host = files_in(store, pod("hostPath"))
    host.write("/data/x", b"x", mode=0o600)
    files_in(store, claim_of_group("2", fsGroup=2000), objects=objects)
    assert (host.entry("/data/x").group, host.entry("/data/x").mode) == (2000, 0o660)


@pytest.mark.thorough
@pytest.mark.parametrize("is_in_use", [True, False])
def test_files_of_a_command_that_runs_stay_when_there_are_too_many(is_in_use):
    store, kept = ContainerFiles(Records()), pod("emptyDir", uid="kept")
    files = files_in(store, kept)
    files.write("/tmp/x", b"own")
    files.write("/data/x", b"of the volume")
    if not is_in_use:
        del files
    for number in range(MAX_CONTAINERS):
        files_in(store, pod("emptyDir", uid=f"other-{number}"))
    present = files_in(store, kept)
    assert (present.exists("/tmp/x"), present.exists("/data/x")) == (is_in_use, is_in_use)
