"""Containers as local processes have namespaces of processes of their own, or that of their pod."""

import os
import shutil
from pathlib import Path

import pytest
from kubernetes import client as official
from kubernetes.stream import stream

from mockube import Cluster
from mockube.container_runtime.process.namespace_support import NamespaceSupport, Support
from tests.support.process_pods import IMAGES, create, is_over, processes_of, python, status_of
from tests.support.processes.acknowledged_writes import until

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
OF_MACHINE = str(Path("/proc/self/ns/pid").readlink())
KILL_ALL = f'[ "$(readlink /proc/self/ns/pid)" = "{OF_MACHINE}" ] || kill -9 -1; wait'
"""The command that ends all processes of this machine, but only in another namespace."""


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=1, images={**IMAGES, "example.org/plain": {}}) as started:
        yield started


@pytest.fixture
def pods(cluster):
    return official.CoreV1Api(cluster.kubernetes())


def executed(pods, name, script, container="c"):
    command = ["sh", "-c", script]
    return stream(
        pods.connect_get_namespaced_pod_exec,
        name,
        "default",
        container=container,
        command=command,
        stdout=True,
    )


@pytest.fixture(autouse=True)
def namespaces(cluster, pods):
    """Skip the test where the kernel or a sandbox allows no namespaces of processes."""
    name = create(pods, python("import os; print(os.getpid())"), policy="Never")
    cluster.wait("Pod", name, is_over)
    if pods.read_namespaced_pod_log(name, "default") != "1\n":
        pytest.skip("this machine allows no namespaces of processes")


def shell(script, name="c", **fields):
    return {"name": name, "image": "example.org/plain", "command": ["sh", "-c", script], **fields}


def running(cluster, pods, *containers, **spec):
    name = create(pods, *containers, **spec)
    cluster.wait("Pod", name, "Ready")
    return name


def test_signal_to_all_processes_reaches_those_of_the_container_only(cluster, pods):
    other = running(cluster, pods, shell("sleep 1000"))
    # The end of process 1 kills the command, too: it waits until that has written its output.
    name = running(cluster, pods, shell("sleep 1000 & wait; until [ -e /tmp/written ]; do :; done"))
    until(lambda: executed(pods, name, "cat /proc/[0-9]*/comm").count("sleep") == 1, "the other process")
    assert executed(pods, name, f"{KILL_ALL}; echo killed; : >/tmp/written") == "killed\n"
    pod = cluster.wait("Pod", name, lambda pod: status_of(pod).get("restartCount") == 1)
    assert status_of(pod)["lastState"]["terminated"]["exitCode"] == 0
    assert executed(pods, other, "echo alive") == "alive\n"


def test_container_sees_its_own_processes_only(cluster, pods):
    name = running(cluster, pods, shell("sleep 1000 & wait"))
    script = "cd /proc; echo [0-9]* $$; tr '\\0' ' ' <1/cmdline"
    assert executed(pods, name, script) == f"1 2 3 3\n{shutil.which('sh')} -c sleep 1000 & wait "


def test_first_process_without_a_handler_is_killed_after_the_grace_period(cluster, pods):
    # The clock goes on while the command starts, which takes a second on a busy machine.
    name = running(cluster, pods, shell("exec sleep 1000"), terminationGracePeriodSeconds=900)
    executed(pods, name, "kill -TERM 1; kill -INT 1; kill -KILL 1")
    pods.delete_namespaced_pod(name, "default")
    cluster.wait("Pod", name, lambda pod: pod["metadata"].get("deletionTimestamp"))
    cluster.advance(870)
    assert executed(pods, name, "echo alive") == "alive\n"
    cluster.advance(31)
    cluster.wait_gone("Pod", name)


def test_process_that_a_command_leaves_ends_with_the_container(cluster, pods):
    name = running(cluster, pods, shell("exec sleep 1000"))
    executed(pods, name, "setsid sleep 2000 >/dev/null 2>&1 &")
    uid = pods.read_namespaced_pod(name, "default").metadata.uid
    assert len(processes_of(uid)) == 2
    pods.delete_namespaced_pod(name, "default", grace_period_seconds=0)
    until(lambda: not processes_of(uid), "the end of the processes")


def test_containers_of_a_pod_share_processes_if_it_says_so(cluster, pods):
    name = running(
        cluster,
        pods,
        shell("exec sleep 1001", name="c"),
        shell("exec sleep 1002", name="d"),
        shareProcessNamespace=True,
    )
    seen = executed(
        pods, name, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; echo; echo $$; ls /proc/1/root/etc/hosts"
    )
    assert "sleep 1001" in seen
    assert "sleep 1002" in seen
    assert "container_launcher.py hold" in seen
    executed(pods, name, "pkill -f 'sleep 1002'", container="c")
    pod = cluster.wait(
        "Pod", name, lambda pod: sum(c["restartCount"] for c in pod["status"]["containerStatuses"]) == 1
    )
    codes = {c["name"]: c.get("lastState", {}) for c in pod["status"]["containerStatuses"]}
    assert (codes["c"], codes["d"]["terminated"]["exitCode"]) == ({}, 143)
    pods.delete_namespaced_pod(name, "default", grace_period_seconds=0)
    uid = pod["metadata"]["uid"]
    until(lambda: not processes_of(uid), "the end of the processes")


def test_pod_that_asks_for_the_processes_of_its_node_sees_none_of_the_machine(cluster, pods):
    name = running(cluster, pods, shell("exec sleep 1000"), hostPID=True)
    assert str(os.getpid()) not in executed(pods, name, "echo /proc/[0-9]*").replace("/proc/", "").split()
    assert executed(pods, name, "readlink /proc/self/ns/pid") != f"{OF_MACHINE}\n"


def test_debugging_container_joins_the_processes_of_its_target(cluster, pods):
    name = running(cluster, pods, shell("exec sleep 1000"))
    debugger = {**shell("exec sleep 1003", name="debugger"), "targetContainerName": "c"}
    pods.patch_namespaced_pod_ephemeralcontainers(
        name, "default", {"spec": {"ephemeralContainers": [debugger]}}
    )
    until(
        lambda: "sleep1003" in executed(pods, name, "cat /proc/[0-9]*/cmdline | tr -d '\\0'"), "the debugger"
    )


def test_container_has_an_empty_folder_for_temporary_files(cluster, pods):
    script = "ls -A /tmp; stat -c %a /tmp; echo x >/tmp/file; cat /tmp/file"
    name = create(pods, shell(script), policy="Never")
    cluster.wait("Pod", name, is_over)
    assert pods.read_namespaced_pod_log(name, "default") == "1777\nx\n"


def test_machine_without_namespaces_of_processes_is_named(monkeypatch, caplog):
    async def refuse(self, *, has_own_processes):
        return "unshare: Operation not permitted" if has_own_processes else ""

    monkeypatch.setattr(NamespaceSupport, "_try", refuse)
    with Cluster(nodes=1, images=IMAGES) as own:
        own_pods = official.CoreV1Api(own.kubernetes())
        name = create(own_pods, python("import os; print(os.readlink('/proc/self/ns/pid'))"), policy="Never")
        own.wait("Pod", name, is_over)
        assert own_pods.read_namespaced_pod_log(name, "default") == f"{OF_MACHINE}\n"
    assert "the machine allows no namespaces of processes: unshare: Operation not permitted" in caplog.text


async def test_support_is_what_the_machine_allows(monkeypatch, tmp_path):
    async def refuse(self, *, has_own_processes):
        return "no" if has_own_processes else ""

    monkeypatch.setattr(NamespaceSupport, "_try", refuse)
    assert await NamespaceSupport(tmp_path).check() == Support(mounts=True)


def test_commands_begin_in_the_folder_of_the_container(cluster, pods):
    volumes = [{"name": "v", "emptyDir": {}}]
    container = shell("pwd >/tmp/folder; exec sleep 1000", volumeMounts=[{"name": "v", "mountPath": "/tmp"}])
    name = running(cluster, pods, container, volumes=volumes)
    own = executed(pods, name, "until [ -s /tmp/folder ]; do sleep 0.01; done; cat /tmp/folder")
    assert executed(pods, name, "pwd") == own
