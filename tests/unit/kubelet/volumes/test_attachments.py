"""A pod waits until its volumes are attached to its node."""

from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from mockube.client.component_helpers.volumes import attachment_name
from mockube.container_runtime.config.environment import References
from mockube.kubelet.pod_lifecycle.pod import MOUNT_TIMEOUT
from mockube.kubelet.volumes.attachments import unattached_volumes
from tests.support.controllers.pods import SimulatedPod, container, node_context, pod

DISK = {"metadata": {"name": "pv"}, "spec": {"csi": {"driver": "d.example.com", "volumeHandle": "h"}}}
HOST_PATH = {"metadata": {"name": "pv"}, "spec": {"hostPath": {"path": "/x"}}}
CLAIM = {"spec": {"volumeName": "pv"}}
NAME = attachment_name(DISK, "node-1")
ATTACHED = {"status": {"attached": True}}


def context(*, claim=CLAIM, volume=DISK, attachment=None, driver=None):
    storage = {
        ("persistentvolumeclaims", "data"): claim,
        ("persistentvolumes", "pv"): volume,
        ("volumeattachments", NAME): attachment,
        ("csidrivers", "d.example.com"): driver,
    }
    objects = References(storage={key: tree for key, tree in storage.items() if tree is not None})
    return replace(node_context(details=True), objects=objects)


def user(**source):
    volumes = [{"name": "v", **(source or {"persistentVolumeClaim": {"claimName": "data"}})}]
    return pod(container(volumeMounts=[{"name": "v", "mountPath": "/v"}]), volumes=volumes)


@pytest.mark.parametrize(
    "fields", [{}, {"attachment": {"status": {"attached": False}}}, {"claim": {"spec": {}}}]
)
def test_pod_waits_for_attachment_of_its_volume(fields):
    simulated = SimulatedPod(user(), context=context(**fields))
    assert (simulated.phase, simulated.containers()) == ("Pending", {"c": "ContainerCreating"})
    assert simulated.events == []
    simulated.context = context(attachment=ATTACHED, driver={"spec": {}})
    assert simulated.pass_time(3).phase == "Running"


@pytest.mark.parametrize(
    "fields",
    [
        {"attachment": ATTACHED, "driver": {"spec": {}}},
        {"volume": HOST_PATH},
        {"driver": {"spec": {"attachRequired": False}}},
    ],
)
def test_pod_starts_with_volume_that_is_attached_or_need_not_be(fields):
    assert SimulatedPod(user(), context=context(**fields)).phase == "Running"


def test_pod_without_attaching_controller_starts():
    assert SimulatedPod(user(), context=node_context()).phase == "Running"


def test_volume_that_is_not_attached_in_time_is_reported():
    simulated = SimulatedPod(user(), context=context()).pass_time(2 * MOUNT_TIMEOUT.total_seconds())
    expected = (
        "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[v], "
        "failed to process volumes=[]: context deadline exceeded"
    )
    assert {event.message for event in simulated.events} == {expected}


EPHEMERAL = {"ephemeral": {"volumeClaimTemplate": {}}}
OTHER = {"attachment": {"status": {}}}


def storage_of(objects, *, attaches_volumes=True):
    return SimpleNamespace(cached_object=objects.cached_object, attaches_volumes=attaches_volumes)


@pytest.mark.parametrize(
    ("source", "storage", "unattached"),
    [
        ({}, {}, ["v"]),
        ({}, {"attachment": ATTACHED}, []),
        ({}, {"attachment": {}}, ["v"]),
        ({}, {"claim": None}, ["v"]),
        ({}, {"volume": None}, ["v"]),
        ({"emptyDir": {}}, {}, []),
        (EPHEMERAL, {}, ["v"]),
    ],
)
def test_volumes_that_are_not_attached_yet(source, storage, unattached):
    tree = user(**source)
    objects = storage_of(context(**storage).objects)
    assert unattached_volumes(tree, objects) == unattached
    assert unattached_volumes(tree, storage_of(objects, attaches_volumes=False)) == []
    mounts_nothing = pod(container(), volumes=tree["spec"]["volumes"])
    assert unattached_volumes(mounts_nothing, objects) == []
