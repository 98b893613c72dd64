"""Where a kubelet has the volumes of a pod on its node."""

import pytest

from mockube.container_runtime.volume_paths import mount_source, volume_folders

FOLDER = "/var/lib/kubelet/pods/u1"
CONTAINER = {"name": "c", "volumeMounts": [{"name": "v", "mountPath": "/mnt"}]}


def pod(source):
    return {"spec": {"volumes": [{"name": "other", "emptyDir": {}}, {"name": "v", **source}]}}


@pytest.mark.parametrize(
    ("source", "folder"),
    [
        ({"configMap": {"name": "x"}}, "kubernetes.io~configmap/v"),
        ({"secret": {"secretName": "x"}}, "kubernetes.io~secret/v"),
        ({"projected": {"sources": []}}, "kubernetes.io~projected/v"),
        ({"downwardAPI": {"items": []}}, "kubernetes.io~downward-api/v"),
        ({"emptyDir": {}}, "kubernetes.io~empty-dir/v"),
        ({"csi": {"driver": "x"}}, "kubernetes.io~csi/v/mount"),
        ({"nfs": {"server": "x", "path": "/"}}, "kubernetes.io~nfs/v"),
    ],
)
def test_volume_is_in_the_folder_of_its_plugin(source, folder):
    path = f"{FOLDER}/volumes/{folder}"
    assert mount_source(pod(source), "u1", CONTAINER, 0) == path
    assert [*volume_folders(pod(source), "u1")] == [f"{FOLDER}/volumes/kubernetes.io~empty-dir/other", path]


def test_host_path_is_that_of_the_node():
    source = {"hostPath": {"path": "/run/xtables.lock"}}
    assert mount_source(pod(source), "u1", CONTAINER, 0) == "/run/xtables.lock"
    assert len([*volume_folders(pod(source), "u1")]) == 1


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ({"hostPath": {"path": "/data"}}, "/data"),
        ({"local": {"path": "/disk"}}, f"{FOLDER}/volumes/kubernetes.io~local-volume/pv-1"),
        ({"csi": {"driver": "x"}}, f"{FOLDER}/volumes/kubernetes.io~csi/pv-1/mount"),
        ({"unknown": {}}, f"{FOLDER}/volumes/pv-1"),
    ],
)
def test_claimed_volume_is_where_its_persistent_volume_is(source, path):
    claimed = pod({"persistentVolumeClaim": {"claimName": "x"}})
    bound = {"v": {"metadata": {"name": "pv-1"}, "spec": source}}
    assert mount_source(claimed, "u1", CONTAINER, 0, bound) == path


@pytest.mark.parametrize("field", ["subPath", "subPathExpr"])
def test_part_of_a_volume_has_a_folder_of_its_own(field):
    part = {"name": "v", "mountPath": "/part", field: "x"}
    container = {"name": "c", "volumeMounts": [*CONTAINER["volumeMounts"], part]}
    assert mount_source(pod({"emptyDir": {}}), "u1", container, 1) == f"{FOLDER}/volume-subpaths/v/c/1"
