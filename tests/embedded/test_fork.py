"""Forks of a cluster: what they have, what is separate, how they end, and what cannot be forked."""

import asyncio
import gc
import http.client
import os
import signal
import ssl
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest

from mockube import Cluster
from mockube.apimachinery.status import NotFound, ServiceUnavailable
from mockube.embedded.handle import NotStarted
from mockube.failure import Failure
from mockube.objects.errors import WaitFailed
from tests.support.event_loop import WAIT_TIMEOUT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are supported on Linux only")

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "box"},
    "spec": {"containers": [{"name": "box", "image": "busybox", "command": ["sleep", "inf"]}]},
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "nginx"}]},
        },
    },
}


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.fixture(scope="module")
def arranged():
    with Cluster(nodes=2) as cluster:
        cluster.apply([POD, config_map("arranged")])
        cluster.wait("Pod", "box", "Ready", WAIT_TIMEOUT)
        cluster.exec("box", ["sh", "-c", "echo arranged > /tmp/file"])
        yield cluster


def test_fork_goes_on_without_a_reference_to_its_cluster():
    fork = Cluster(nodes=1, profile="minimal").start().fork()
    gc.collect()
    with fork.fork() as other:
        gc.collect()
        assert len(other.list("Node")) == 1
    fork.stop()


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(condition):
    for _ in range(int(WAIT_TIMEOUT * 100)):
        if condition():
            return
        threading.Event().wait(0.01)
    pytest.fail("the condition was not met")


def wait_until_gone(pid):
    wait_until(lambda: not is_running(pid))


def test_fork_has_the_objects_and_changes_of_one_are_not_in_the_other(arranged):
    with arranged.fork() as other:
        assert (
            other.get("ConfigMap", "arranged")["metadata"]
            == arranged.get("ConfigMap", "arranged")["metadata"]
        )
        other.apply(config_map("in-fork"))
        arranged.apply(config_map("in-parent"))
        with pytest.raises(NotFound):
            arranged.get("ConfigMap", "in-fork")
        with pytest.raises(NotFound):
            other.get("ConfigMap", "in-parent")
    arranged.delete("ConfigMap", "in-parent")


def test_controllers_scheduler_and_kubelets_run_in_the_fork_alone(arranged):
    with arranged.fork() as other:
        other.apply(DEPLOYMENT)
        other.wait("Deployment", "web", "Available", WAIT_TIMEOUT)
        assert len(other.list("Pod", labels="app=web")) == 2
        other.delete("Pod", "box")
        other.wait_gone("Pod", "box", WAIT_TIMEOUT)
    assert arranged.list("Deployment") == []
    assert arranged.get("Pod", "box")["status"]["phase"] == "Running"


def test_files_of_containers_are_copied(arranged):
    with arranged.fork() as other, other.fork() as inner:
        for each in (other, inner):
            assert each.exec("box", "cat /tmp/file").stdout == "arranged\n"
        inner.exec("box", ["sh", "-c", "echo inner > /tmp/file"])
        other.exec("box", ["sh", "-c", "echo other > /tmp/file"])
        contents = [each.exec("box", "cat /tmp/file").stdout for each in (inner, other, arranged)]
    assert contents == ["inner\n", "other\n", "arranged\n"]


def test_address_of_kubelets_is_published(arranged):
    def address(cluster):
        config_map = cluster.get("ConfigMap", "mockube-kubelets", namespace="kube-system")
        return config_map["data"]["address"]

    with arranged.fork() as other, other.fork() as inner:
        for each in (other, inner):
            each.wait(
                "ConfigMap",
                "mockube-kubelets",
                lambda found: found["data"]["address"] != address(arranged),
                WAIT_TIMEOUT,
                namespace="kube-system",
            )
        assert len({address(each) for each in (arranged, other, inner)}) == 3
        assert inner.exec("box", "cat /tmp/file").stdout == "arranged\n"


def test_fork_has_its_own_address_and_files(arranged):
    with arranged.fork() as other:
        kubeconfig = other.kubeconfig
        assert other.url != arranged.url
        assert other.url in kubeconfig.read_text()
        assert arranged.url not in kubeconfig.read_text()
        assert kubeconfig.stat().st_mode & 0o777 == 0o600
        configuration = get(other, "/.well-known/openid-configuration")
        assert other.url.removeprefix("https://") in configuration
        assert other.url.removeprefix("https://") in get(other, "/api")
        assert repr(other) == f"<fork of a mockube cluster {other.url}>"
    assert not kubeconfig.exists()
    assert repr(other) == "<fork of a mockube cluster stopped>"
    assert arranged.url.removeprefix("https://") in get(arranged, "/api")


def connect(cluster):
    context = ssl.create_default_context(cafile=cluster._endpoint.authority)
    host, _, port = cluster.url.removeprefix("https://").rpartition(":")
    return http.client.HTTPSConnection(host, int(port), context=context, timeout=WAIT_TIMEOUT)


def get(cluster, path, connection=None):
    opened = connection or connect(cluster)
    opened.request("GET", path, headers={"Authorization": f"Bearer {cluster._endpoint.token}"})
    text = opened.getresponse().read().decode()
    if connection is None:
        opened.close()
    return text


def test_connection_to_the_parent_stays_open(arranged):
    connection = connect(arranged)
    before = get(arranged, "/version", connection)
    local_address = connection.sock.getsockname()
    with arranged.fork():
        assert get(arranged, "/version", connection) == before
        assert connection.sock.getsockname() == local_address
    connection.close()


def test_watch_of_the_parent_sees_its_changes_only(arranged):
    connection = connect(arranged)
    connection.request(
        "GET",
        "/api/v1/namespaces/default/configmaps?watch=1&fieldSelector=metadata.name%3Dwatched",
        headers={"Authorization": f"Bearer {arranged._endpoint.token}"},
    )
    with connection.getresponse() as response, arranged.fork() as other:
        other.apply(config_map("watched", by="fork"))
        arranged.apply(config_map("watched", by="parent"))
        assert b'"by":"parent"' in response.readline()
    connection.close()
    arranged.delete("ConfigMap", "watched")


def test_recorded_calls_and_faults_are_copied(arranged):
    arranged.clear_calls()
    arranged.list("Secret")
    with arranged.inject(status=503, resource="secrets", verb="list"), arranged.fork() as other:
        assert [call.resource for call in other.calls(resource="secrets")] == ["secrets"]
        with pytest.raises(ServiceUnavailable):
            other.list("Secret")
        other.stop_faults()
        other.list("Secret")
        assert [call.code for call in other.calls(resource="secrets")] == [200, 503, 200]
        with pytest.raises(ServiceUnavailable):
            arranged.list("Secret")
    assert len(arranged.calls(resource="secrets")) == 2


def test_faults_and_calls_of_a_fork_are_its_own(arranged):
    arranged.clear_calls()
    with arranged.fork() as other:
        with other.inject(status=503, resource="secrets", times=1) as fault:
            with pytest.raises(ServiceUnavailable):
                other.list("Secret")
            arranged.list("Secret")
            assert fault.hits == 1
        other.clear_calls()
        assert other.calls() == []
        assert repr(other.calls(verb="list")) == "no calls"
        with pytest.raises(ValueError, match="secretz"):
            other.calls(resource="secretz")
        with pytest.raises(ValueError, match="a fault needs"):
            other.inject()
        assert other.complaints == arranged.complaints
    assert len(arranged.calls(resource="secrets")) == 1
    fault.stop()


def test_fault_for_all_users_does_not_hit_the_fork_itself(arranged):
    with arranged.inject(status=500, user="*"), arranged.fork() as other:
        other.stop_faults()
        assert other.exec("box", "cat /tmp/file").stdout == "arranged\n"


def test_clock_of_a_fork_is_its_own(arranged):
    job = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "hourly"},
        "spec": {"schedule": "0 * * * *", "jobTemplate": {"spec": {"template": {"spec": POD["spec"]}}}},
    }
    job["spec"]["jobTemplate"]["spec"]["template"]["spec"] = {**POD["spec"], "restartPolicy": "Never"}
    with arranged.fork() as other:
        other.apply(job)
        other.advance(3600)
        assert len(other.list("Job")) == 1
        with other.fork() as inner:
            inner.advance(3600)
            assert inner.list("Job") != other.list("Job")
    assert arranged.list("Job") == []


def test_work_that_another_thread_waits_for_goes_on_in_the_parent_only(arranged):
    found = []
    waiting = threading.Thread(
        target=lambda: found.append(arranged.wait("ConfigMap", "later", lambda _: True, WAIT_TIMEOUT))
    )
    waiting.start()
    with arranged.fork() as other:
        other.apply(config_map("later"))
        assert found == []
        arranged.apply(config_map("later", by="parent"))
        waiting.join(WAIT_TIMEOUT)
        assert found[0]["data"] == {"by": "parent"}
    arranged.delete("ConfigMap", "later")


def test_threads_fork_two_clusters_at_once(arranged):
    contents = []

    def fork_and_write(cluster, number):
        with cluster.fork() as other:
            other.apply(config_map(f"thread-{number}"))
            contents.append([each["metadata"]["name"] for each in other.list("ConfigMap")])

    with Cluster(nodes=0) as second:
        threads = [
            threading.Thread(target=fork_and_write, args=[cluster, number])
            for number in range(4)
            for cluster in (arranged, second)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_TIMEOUT)
        in_second = ["kube-root-ca.crt"]
        in_arranged = ["arranged", *in_second]
        assert sorted(contents) == sorted(
            [*names, f"thread-{number}"] for number in range(4) for names in (in_arranged, in_second)
        )
        for cluster, names in ((arranged, in_arranged), (second, in_second)):
            assert [each["metadata"]["name"] for each in cluster.list("ConfigMap")] == names


async def test_fork_is_awaited(arranged):
    async with arranged.awaited.fork() as other, other.fork() as inner:
        await inner.apply(config_map("awaited"))
        await inner.advance(1)
        assert (await inner.get("ConfigMap", "awaited"))["kind"] == "ConfigMap"
        with pytest.raises(NotFound):
            await other.get("ConfigMap", "awaited")


def test_client_libraries_use_a_fork(arranged):
    core = pytest.importorskip("kubernetes.client").CoreV1Api
    with arranged.fork() as other, other.as_default():
        other.apply(config_map("for-clients"))
        names = {
            item.metadata.name
            for item in core(other.kubernetes()).list_namespaced_config_map("default").items
        }
        assert "for-clients" in names


def test_fork_ends_with_its_handle_and_stays_stopped(arranged):
    other = arranged.fork()
    inner = other.fork()
    pids = [other._running.process.pid, inner._running.process.pid]
    other.stop()
    for pid in pids:
        wait_until_gone(pid)
    for use in (lambda: other.list("Pod"), other.calls, lambda: other.url, lambda: inner.list("Pod")):
        with pytest.raises(NotStarted, match="the fork was stopped"):
            use()
    other.stop()


def test_fork_ends_with_the_cluster():
    with Cluster(nodes=0) as cluster:
        other = cluster.fork()
        inner = other.fork()
        pids = [other._running.process.pid, inner._running.process.pid]
    for pid in pids:
        wait_until_gone(pid)
    with pytest.raises(NotStarted):
        other.list("Pod")


def test_fork_that_is_not_used_any_more_is_ended(arranged):
    pid = arranged.fork()._running.process.pid
    arranged._forks._running.clear()
    gc.collect()
    assert not is_running(pid)


def test_fork_that_has_died_is_reported(arranged):
    other = arranged.fork()
    os.kill(other._running.process.pid, signal.SIGKILL)
    with pytest.raises(Failure, match="the fork has ended"):
        other.clear_calls()
    other.stop()


PROGRAM = """
import os, signal, sys
from mockube import Cluster
cluster = Cluster(nodes=0).start()
other = cluster.fork()
inner = other.fork()
print(other._running.process.pid, inner._running.process.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("ends_by", ["signal", "itself"])
def test_forks_end_with_the_process(ends_by):
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        pids = [int(text) for text in process.stdout.readline().split()]
        assert len(pids) == 2
        if ends_by == "signal":
            process.kill()
        else:
            process.stdin.close()
        process.wait(WAIT_TIMEOUT)
        assert process.stdout.read() == ""  # no fork has the pipe
    for pid in pids:
        wait_until_gone(pid)


def test_loop_of_asyncio_is_forked(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvloop", None)
    with Cluster(nodes=1) as cluster:
        assert isinstance(cluster._context._loop, asyncio.SelectorEventLoop)
        cluster.apply(POD)
        cluster.wait("Pod", "box", "Ready", WAIT_TIMEOUT)
        with cluster.fork() as other, other.fork() as inner:
            inner.exec("box", ["sh", "-c", "echo inner > /tmp/file"])
            assert other.exec("box", "ls /tmp").stdout == ""
            other.apply(DEPLOYMENT)
            other.wait("Deployment", "web", "Available", WAIT_TIMEOUT)
            assert cluster.list("Deployment") == []


def descriptors(pid):
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def test_failed_command_of_a_fork_leaves_it_running(arranged):
    with arranged.fork() as other:
        with pytest.raises(Failure):
            other.inject(status=503, message="x" * 70_000)
        assert other.list("ConfigMap")


def child_processes():
    return {
        child for path in Path("/proc/self/task").glob("*/children") for child in path.read_text().split()
    }


PARTS_OF_A_FORK = ("mockube.embedded", "subprocess", "socket", "ssl", "http.client", "concurrent.futures")
"""The modules of the objects that a process keeps for each fork. The cluster in this process makes objects of others."""


def parts_of_forks():
    gc.collect()
    return sum(str(type(each).__module__).startswith(PARTS_OF_A_FORK) for each in gc.get_objects())


def test_forks_leave_nothing(arranged):
    def fork_once():
        with arranged.fork() as other:
            other.list("ConfigMap")
        return weakref.ref(other)

    for _ in range(3):
        fork_once()
    arranged.clear_calls()  # of the cluster itself, which go on
    before = descriptors(os.getpid()), threading.active_count(), child_processes(), parts_of_forks()
    forks = [fork_once() for _ in range(40)]
    arranged.clear_calls()
    after = descriptors(os.getpid()), threading.active_count(), child_processes(), parts_of_forks()
    assert after[:3] == before[:3]
    assert after[3] - before[3] < len(forks)
    assert [fork for fork in forks if fork() is not None] == []


def test_forks_of_a_fork_leave_nothing(arranged):
    with arranged.fork() as other:
        pid = other._running.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children")

        def fork_once():
            with other.fork():
                pass
            wait_until(lambda: not children.read_text())
            return descriptors(pid)

        before = fork_once()
        assert [fork_once() for _ in range(5)] == [before] * 5


def test_time_of_a_fork_with_a_seed_passes_only_in_its_calls():
    with Cluster(nodes=2, seed=7) as cluster:
        cluster.apply(DEPLOYMENT)
        started = cluster.wait("Deployment", "web", "Available")
        with cluster.fork() as other, other.fork() as inner:
            assert other.get("Deployment", "web") == started
            other.delete("Deployment", "web")
            other.advance(120)
            assert other.list("Pod") == []
            pods = inner.list("Pod")
            slept = inner.exec(pods[0]["metadata"]["name"], "sleep 3600", timeout=7200)
            assert slept.exit_code == 0
            inner.apply(POD)
            box = inner.wait("Pod", "box", "Ready")
            assert box["metadata"]["creationTimestamp"].startswith("2026-01-01T01:00:")
            with pytest.raises(WaitFailed):
                inner.wait("Pod", "box", lambda _: False, 3600)
        assert len(cluster.list("Pod")) == 2
        cluster.advance(60)
        assert cluster.get("Deployment", "web")["status"] == started["status"]


def test_forks_of_a_cluster_with_a_seed_go_on_in_the_same_way():
    def names_of_pods():
        with cluster.fork() as other:
            other.apply(DEPLOYMENT)
            other.advance(60)
            return [(pod["metadata"]["uid"], pod["spec"]["nodeName"]) for pod in other.list("Pod")]

    with Cluster(nodes=2, seed=7) as cluster:
        assert len(names := names_of_pods()) == 2
        assert names_of_pods() == names


def test_cluster_with_a_file_of_its_own_is_not_forked(tmp_path):
    with Cluster(nodes=0, flags=[f"--audit-log-path={tmp_path / 'audit'}"]) as cluster:
        with pytest.raises(
            Failure, match="cannot be forked: --audit-log-path: the fork would write to the same file"
        ):
            cluster.fork()
        assert cluster.list("ConfigMap")


def test_fork_waits_for_the_work_of_threads(arranged):
    release, begun = threading.Event(), threading.Event()

    async def work():
        await asyncio.to_thread(lambda: (begun.set(), release.wait()))

    future = arranged._context.submit(work())
    begun.wait()
    forked = []
    forking = threading.Thread(target=lambda: forked.append(arranged.fork()))
    forking.start()
    arranged.list("ConfigMap")
    assert forked == []
    release.set()
    forking.join(WAIT_TIMEOUT)
    future.result(WAIT_TIMEOUT)
    with forked[0] as other:
        assert other.get("ConfigMap", "arranged")
