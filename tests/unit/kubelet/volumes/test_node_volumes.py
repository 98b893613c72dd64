"""A pod waits for a volume that its node lacks: a host path of another type, a local volume, a CSI driver."""

from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from mockube.client.component_helpers.volumes import SIMULATED_PROVISIONERS
from mockube.container_runtime.config.environment import References
from mockube.kubelet.volumes.host_paths import HOST_PATHS, path_type
from mockube.kubelet.volumes.node_volumes import lacking_volumes
from tests.support.controllers.pods import SimulatedPod, container, node_context, pod

SETUP = 'MountVolume.SetUp failed for volume "v" : '
TYPE_CHECK = f"{SETUP}hostPath type check failed: "
CSI = f"{SETUP}kubernetes.io/csi: mounter."
CSI_VOLUME = {"csi": {"driver": "d.example.com"}}


def user(source, **metadata):
    return pod(
        container(volumeMounts=[{"name": "v", "mountPath": "/v"}]),
        volumes=[{"name": "v", **source}],
        **metadata,
    )


def host_path(path, kind):
    return {"hostPath": {"path": path, "type": kind}}


def context(storage=None, *, node=None, pods=()):
    objects = References(storage={("nodes", ""): {}, **(storage or {})})
    return replace(
        node_context(details=True), objects=objects, path_type=lambda path: path_type(path, node or {}, pods)
    )


def events(simulated):
    return [event.message for event in simulated.events if event.reason == "FailedMount"]


@pytest.mark.parametrize(
    ("path", "kind", "reason"),
    [
        ("/nosuch", "Directory", "/nosuch is not a directory"),
        ("/etc/hosts", "Directory", "/etc/hosts is not a directory"),
        ("/etc/hosts", "DirectoryOrCreate", "/etc/hosts is not a directory"),
        ("/etc", "File", "/etc is not a file"),
        ("/etc", "FileOrCreate", "/etc is not a file"),
        ("/var/run/docker.sock", "Socket", "/var/run/docker.sock is not a socket file"),
        ("/dev/nosuch", "CharDevice", "/dev/nosuch is not a character device"),
        ("/dev/null", "BlockDevice", "/dev/null is not a block device"),
    ],
)
def test_pod_waits_for_host_path_of_another_type(path, kind, reason):
    simulated = SimulatedPod(user(host_path(path, kind)), context=context())
    assert (simulated.phase, simulated.containers()) == ("Pending", {"c": "ContainerCreating"})
    assert events(simulated) == [TYPE_CHECK + reason]
    simulated.context = context(node={"metadata": {"annotations": {HOST_PATHS: f"/x, {path}={kind}"}}})
    expected = "Pending" if path in ("/etc/hosts", "/etc", "/dev/null") else "Running"
    assert simulated.pass_time(60).phase == expected


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/nosuch", ""),
        ("/nosuch", "DirectoryOrCreate"),
        ("/etc/nosuch", "FileOrCreate"),
        ("/var/lib/kubelet/", "Directory"),
        ("/", "Directory"),
        ("/etc/hosts", "File"),
        ("/run/containerd/containerd.sock", "Socket"),
        ("/dev/null", "CharDevice"),
    ],
)
def test_pod_starts_with_host_path_that_node_has_or_creates(path, kind):
    assert SimulatedPod(user(host_path(path, kind)), context=context()).phase == "Running"


def test_file_is_not_created_in_missing_folder():
    simulated = SimulatedPod(user(host_path("/a/b", "FileOrCreate")), context=context())
    assert events(simulated) == [f"{SETUP}open /a/b: no such file or directory"]


def test_pod_starts_with_folder_that_other_pod_of_node_creates():
    creator = user(host_path("/a/b/c", "DirectoryOrCreate"))
    simulated = SimulatedPod(user(host_path("/a/b", "Directory")), context=context(pods=[creator]))
    assert simulated.phase == "Running"
    simulated = SimulatedPod(user(host_path("/a/b/x", "FileOrCreate")), context=context(pods=[creator]))
    assert simulated.phase == "Running"


def test_annotation_of_pod_starts_it_without_host_path():
    lacking = user(host_path("/nosuch", "File"), annotations={"mockube.dev/ignore-missing": "true"})
    assert SimulatedPod(lacking, context=context()).phase == "Running"


@pytest.mark.parametrize(
    ("driver", "node_drivers", "message"),
    [
        (None, [], ("SetUpAt failed to get CSI client: driver name d.example.com not found in the list of registered "
                   "CSI drivers")),
        (None, ["d.example.com"], ('SetupAt failed to check volume lifecycle mode: volume mode "Ephemeral" not supported '
                                  "by driver d.example.com (no CSIDriver object)")),
        ({}, [], ('SetupAt failed to check volume lifecycle mode: volume mode "Ephemeral" not supported by driver '
                 'd.example.com (only supports ["Persistent"])')),
        ({"volumeLifecycleModes": ["Persistent", "Ephemeral"]}, [], ""),
    ],
)  # fmt: skip
def test_inline_volume_needs_driver_that_supports_it(driver, node_drivers, message):
    storage = {("csinodes", "node-1"): {"spec": {"drivers": [{"name": name} for name in node_drivers]}}}
    if driver is not None:
        storage["csidrivers", "d.example.com"] = {"spec": driver}
    simulated = SimulatedPod(user(CSI_VOLUME), context=context(storage))
    assert events(simulated) == ([CSI + message] if message else [])
    assert simulated.phase == ("Pending" if message else "Running")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"local": {"path": "/mnt/disk"}}, ('MountVolume.NewMounter initialization failed for volume "pv" : path '
                                           '"/mnt/disk" does not exist')),
        ({"local": {"path": "/etc/hosts"}}, ('MountVolume.NewMounter initialization failed for volume "pv" : only directory '
                                            "and block device are supported")),
        ({"local": {"path": "/mnt"}}, ""),
        ({"hostPath": {"path": "/x", "type": "Directory"}}, ('MountVolume.SetUp failed for volume "pv" : hostPath type check '
                                                            "failed: /x is not a directory")),
        ({"hostPath": {"path": "/x"}}, ""),
    ],
)  # fmt: skip
def test_persistent_volume_needs_its_path(source, message):
    storage = {
        ("persistentvolumeclaims", "data"): {"spec": {"volumeName": "pv"}},
        ("persistentvolumes", "pv"): {"metadata": {"name": "pv"}, "spec": source},
    }
    claimed = user({"persistentVolumeClaim": {"claimName": "data"}})
    simulated = SimulatedPod(claimed, context=context(storage))
    assert events(simulated) == ([message] if message else [])
    assert simulated.phase == ("Pending" if message else "Running")


def storage_of(objects, *, attaches_volumes=True):
    return SimpleNamespace(cached_object=objects.cached_object, attaches_volumes=attaches_volumes)


@pytest.mark.parametrize(
    ("driver", "drivers", "node_drivers", "lacks"),
    [
        ("d.example.com", [], None, True),
        ("d.example.com", [], [], True),
        ("d.example.com", [], ["other"], True),
        ("d.example.com", [], ["d.example.com"], False),
        ("d.example.com", ["d.example.com"], None, False),
        (next(iter(SIMULATED_PROVISIONERS)), [], None, False),
    ],
)
def test_persistent_volume_needs_its_driver(driver, drivers, node_drivers, lacks):
    storage = {
        ("persistentvolumeclaims", "data"): {"spec": {"volumeName": "pv"}},
        ("persistentvolumes", "pv"): {"metadata": {"name": "pv"}, "spec": {"csi": {"driver": driver}}},
        **{("csidrivers", name): {"spec": {}} for name in drivers},
    }
    if node_drivers is not None:
        storage["csinodes", "node-1"] = {"spec": {"drivers": [{"name": name} for name in node_drivers]}}
    tree = user({"persistentVolumeClaim": {"claimName": "data"}})
    objects = storage_of(context(storage).objects)
    message = (
        'MountVolume.MountDevice failed for volume "pv" : kubernetes.io/csi: attacher.MountDevice failed to create '
        f"newCsiDriverClient: driver name {driver} not found in the list of registered CSI drivers"
    )
    assert lacking_volumes(tree, objects, lambda _: "") == ({"v": message} if lacks else {})
    assert lacking_volumes(tree, objects, lambda _: "", ["v"]) == {}
    assert lacking_volumes(tree, storage_of(objects, attaches_volumes=False), lambda _: "") == {}
    mounts_nothing = pod(container(), volumes=tree["spec"]["volumes"])
    assert lacking_volumes(mounts_nothing, objects, lambda _: "") == {}


@pytest.mark.parametrize(
    "storage",
    [
        {},
        {("persistentvolumeclaims", "data"): {"spec": {}}},
        {("persistentvolumeclaims", "data"): {"spec": {"volumeName": "pv"}}},
        {
            ("persistentvolumeclaims", "data"): {"spec": {"volumeName": "pv"}},
            ("persistentvolumes", "pv"): {"spec": {"nfs": {}}},
        },
    ],
)
def test_claim_without_a_known_volume_lacks_nothing(storage):
    tree = user({"persistentVolumeClaim": {"claimName": "data"}})
    objects = storage_of(context(storage).objects)
    assert lacking_volumes(tree, objects, lambda _: "") == {}
