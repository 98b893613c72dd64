"""Containers with seccomp and AppArmor profiles that their node may lack."""

import pytest
from msgspec.structs import replace

from mockube.kubelet.security_profiles import NodeProfiles
from mockube.kubelet.volumes.host_paths import path_type
from tests.support.controllers.pods import SimulatedPod, container, node_context, pod
from tests.support.images import PREDICTIONS

SECCOMP = {"seccompProfile": {"type": "Localhost", "localhostProfile": "profiles/audit.json"}}
APPARMOR = {"appArmorProfile": {"type": "Localhost", "localhostProfile": "deny-write"}}
PATH = "/var/lib/kubelet/seccomp/profiles/audit.json"
NO_SECCOMP = f'failed to create containerd container: cannot load seccomp profile "{PATH}": open {PATH}: no such file or directory'
NO_APPARMOR = "failed to get container spec opts: failed to generate apparmor spec opts: apparmor profile not found deny-write"


def writer(image="busybox", *, read_only=False, path="/var/lib/kubelet"):
    mount = {"name": "v", "mountPath": "/host", "readOnly": read_only}
    spec = container("w", image=image, volumeMounts=[mount])
    if image == "busybox":
        spec["command"] = ["sleep", "1d"]
    return pod(spec, volumes=[{"name": "v", "hostPath": {"path": path}}])


def profiles(annotations=None, others=()):
    node = {"metadata": {"name": "node-1", "annotations": annotations or {}}}
    return NodeProfiles(
        node=node,
        path_type=lambda path: path_type(path, node, ()),
        pods=lambda: others,
        predictions=PREDICTIONS,
    )


def simulated_pod(context, of_container=None, node=None):
    tree = pod(container(**({"securityContext": of_container} if of_container else {})))
    tree["spec"]["securityContext"] = context
    return SimulatedPod(tree, context=replace(node_context(details=True), profiles=node or profiles()))


@pytest.mark.parametrize(
    ("context", "of_container", "message"),
    [
        (SECCOMP, None, NO_SECCOMP),
        ({}, SECCOMP, NO_SECCOMP),
        (APPARMOR, None, NO_APPARMOR),
        ({**SECCOMP, **APPARMOR}, {"privileged": True}, NO_APPARMOR),
    ],
)
def test_container_without_its_profile_is_not_created(context, of_container, message):
    simulated = simulated_pod(context, of_container)
    assert simulated.containers() == {"c": "CreateContainerError"}
    assert simulated.status["containerStatuses"][0]["state"]["waiting"]["message"] == message
    assert [event.message for event in simulated.events if event.reason == "Failed"] == [f"Error: {message}"]
    simulated.pass_time(15)
    assert [event.reason for event in simulated.events].count("Failed") == 2, "it is tried again"


@pytest.mark.parametrize(
    ("context", "of_container"),
    [
        (SECCOMP, {"seccompProfile": {"type": "RuntimeDefault"}}),
        (SECCOMP, {"privileged": True}),
        ({"appArmorProfile": {"type": "Unconfined"}}, None),
    ],
)
def test_other_profiles_are_on_every_node(context, of_container):
    assert simulated_pod(context, of_container).containers() == {"c": "running"}


@pytest.mark.parametrize(
    ("node", "is_running"),
    [
        (profiles({"mockube.dev/host-paths": f"{PATH}=File"}), True),
        (profiles({"mockube.dev/host-paths": PATH}), False),
        (profiles(others=[writer()]), False),
        (profiles(others=[writer(image="example.com/loader")]), True),
        (profiles(others=[writer(image="example.com/loader", read_only=True)]), False),
        (profiles(others=[writer(image="example.com/loader", path="/var/log")]), False),
    ],
)
def test_seccomp_profile_is_a_file_of_the_node(node, is_running):
    assert (simulated_pod(SECCOMP, node=node).containers() == {"c": "running"}) is is_running


@pytest.mark.parametrize(
    ("node", "is_running"),
    [
        (profiles({"mockube.dev/apparmor-profiles": "other, deny-write"}), True),
        (profiles(others=[writer(image="example.com/loader", path="/etc/apparmor.d")]), True),
        (profiles(others=[writer(path="/etc/apparmor.d")]), False),
    ],
)
def test_apparmor_profile_is_named_by_an_annotation(node, is_running):
    assert (simulated_pod(APPARMOR, node=node).containers() == {"c": "running"}) is is_running
