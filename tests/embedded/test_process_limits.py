"""What containers that are processes may not do or have: rights that they could gain, and memory beyond their limit."""

import os
import sys

import pytest
from kubernetes import client as official

from mockube import Cluster
from mockube.container_runtime.process.memory_groups import MemoryGroups
from tests.support.process_pods import IMAGES, create, events, is_over, python, status_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
STATUS = {
    "name": "c",
    "image": "example.org/shell",
    "args": ["-c", "grep -E '^(CapBnd|NoNewPrivs)' /proc/self/status"],
}
FILL = "bytearray(1 << 28); print('filled')"
LIMITED = {"resources": {"limits": {"memory": "64Mi"}}}


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=1, images=IMAGES) as started:
        yield started


@pytest.fixture
def pods(cluster):
    return official.CoreV1Api(cluster.kubernetes())


def ended(cluster, pods, container):
    """Return the name of a pod with a container that has ended, and its state."""
    name = create(pods, container, policy="Never")
    pod = cluster.wait("Pod", name, is_over)
    return name, status_of(pod)["state"]["terminated"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has capabilities to give up")
def test_container_gains_no_rights_if_it_says_so(cluster, pods):
    context = {"runAsUser": 1234, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    name, _ = ended(cluster, pods, STATUS | {"securityContext": context})
    assert pods.read_namespaced_pod_log(name, "default") == "CapBnd:\t0000000000000000\nNoNewPrivs:\t1\n"
    name, _ = ended(cluster, pods, STATUS)
    assert pods.read_namespaced_pod_log(name, "default") == "CapBnd:\t00000000a80425fb\nNoNewPrivs:\t0\n"


def test_container_beyond_its_memory_limit_is_killed(cluster, pods):
    if MemoryGroups().limit(1 << 26) is None:
        pytest.skip("this machine allows no cgroups with limits of memory")
    _, state = ended(cluster, pods, python(FILL, **LIMITED))
    assert (state["reason"], state["exitCode"]) == ("OOMKilled", 137)


def test_container_of_which_one_process_is_beyond_the_limit_ends(cluster, pods):
    if MemoryGroups().limit(1 << 26) is None:
        pytest.skip("this machine allows no cgroups with limits of memory")
    command = f"{sys.executable} -c 'bytearray(1 << 28)'; sleep 10; echo goes on; sleep 600"  # the others are killed after it
    name, state = ended(
        cluster, pods, {"name": "c", "image": "example.org/shell", "args": ["-c", command], **LIMITED}
    )
    assert (state["reason"], state["exitCode"]) == ("OOMKilled", 137)
    assert "goes on" not in pods.read_namespaced_pod_log(name, "default")


def test_memory_limit_that_is_not_enforced_is_an_event(cluster, pods, monkeypatch):
    monkeypatch.setattr(MemoryGroups, "limit", lambda *_: None)
    name, state = ended(cluster, pods, python(FILL, **LIMITED))
    assert state["reason"] == "Completed"
    message = (
        "the memory limit of 67108864 bytes is not enforced: this machine allows mockube no cgroup with one"
    )
    assert ("MemoryLimitNotEnforced", message) in events(cluster, name)
    name, _ = ended(cluster, pods, python("print()"))
    assert not [reason for reason, _ in events(cluster, name) if reason == "MemoryLimitNotEnforced"]
