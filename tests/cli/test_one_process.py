"""`mockube up --one-process`: forks are copies of the process, and named clusters."""

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from tests.support.processes.commands import Mockube, ask, wait_for, wait_gone

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="clusters can be forked on Linux only")

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
CONTROLLERS = "/apis/control.mockube.dev/v1alpha1/controllers"
SERVICES = "/api/v1/namespaces/default/services"
FORKS = "/apis/control.mockube.dev/v1alpha1/forks"
PUBLISHED = "/api/v1/namespaces/kube-system/configmaps/mockube-published-ports"
UP = ("up", "--detach", "--one-process", "--name=side", "--simulate-nodes=1", "--secure-port=0")


@pytest.fixture
def mockube(tmp_path):
    commands = Mockube(tmp_path)
    yield commands
    commands.close()


def fork(kubeconfig, name, **spec):
    tree = {"apiVersion": "control.mockube.dev/v1alpha1", "kind": "Fork", "spec": {"name": name, **spec}}
    return ask(kubeconfig, "POST", FORKS, tree)


def ready_replicas(kubeconfig):
    return ask(kubeconfig, "GET", f"{DEPLOYMENTS}/web")[1].get("status", {}).get("readyReplicas", 0)


def scale(kubeconfig, replicas):
    path = f"{DEPLOYMENTS}/web/scale"
    status, body = ask(kubeconfig, "GET", path)
    assert status == 200
    assert ask(kubeconfig, "PUT", path, {**body, "spec": {"replicas": replicas}})[0] == 200


def children(pid):
    """The processes that any thread of a process has forked."""
    texts = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    return {int(child) for text in texts for child in text.split()}


def deploy(kubeconfig):
    labels = {"app": "web"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod}
    assert ask(kubeconfig, "POST", DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})[0] == 201
    wait_for(lambda: ready_replicas(kubeconfig) == 1)


def test_fork_of_one_process_is_a_named_cluster_that_goes_on_by_itself(mockube):
    up = mockube.run(*UP)
    assert up.returncode == 0, up.stderr
    side, copied, deeper = (mockube.folder(name) for name in ("side", "copied", "deeper"))
    components = mockube.record("side").components
    assert len({each.pid for each in components.values()}) == 1
    deploy(side.kubeconfig)
    assert ask(side.kubeconfig, "GET", f"{CONTROLLERS}/deployment")[1]["status"]["reconciliations"]
    assert mockube.run("fork", "copied", "--name=side").returncode == 0
    assert ask(copied.kubeconfig, "GET", f"{CONTROLLERS}/deployment")[0] == 200
    assert fork(copied.kubeconfig, "deeper")[0] == 201
    assert fork(side.kubeconfig, "copied")[0] == 409

    scale(copied.kubeconfig, 2)
    wait_for(lambda: ready_replicas(copied.kubeconfig) == 2)
    assert [ready_replicas(each.kubeconfig) for each in (side, deeper)] == [1, 1]
    assert "running" in mockube.run("status", "--name=deeper").stdout
    assert "memory, fork of copied" in mockube.run("list").stdout
    assert "Fork of side" in mockube.run("logs", "--name=copied").stdout
    assert "Traceback" not in mockube.run("logs", "--name=copied").stdout
    refused = mockube.run("reset", "--name=copied")
    assert (refused.returncode, "cannot start anew" in refused.stderr) == (1, True)

    processes = [mockube.record("copied").pid, mockube.record("deeper").pid]
    assert mockube.run("down", "--name=copied").returncode == 0
    wait_gone(processes)
    for folder in (copied, deeper):
        assert not any(path.exists() for path in (folder.kubeconfig, folder.pki, folder.record))
    assert ready_replicas(side.kubeconfig) == 1


def test_forks_of_one_process_end_with_it_and_leave_no_keys(mockube):
    assert mockube.run(*UP).returncode == 0
    side, copied = mockube.folder("side"), mockube.folder("copied")
    assert fork(side.kubeconfig, "copied")[0] == 201
    processes = [*mockube.processes("side"), mockube.record("copied").pid]
    os.kill(processes[1], signal.SIGKILL)
    wait_gone(processes)
    assert not any(path.exists() for path in (copied.kubeconfig, copied.pki, copied.record))


def test_forks_made_at_the_same_time_are_one_process_each(mockube):
    assert mockube.run(*UP).returncode == 0
    side, names = mockube.folder("side"), ("first", "second", "third")
    with ThreadPoolExecutor() as threads:
        assert [status for status, _ in threads.map(partial(fork, side.kubeconfig), names)] == [201] * 3
    pids = {mockube.record(name).pid for name in names}
    parent = mockube.processes("side")[1]
    assert children(parent) == pids
    assert not any(children(pid) for pid in pids)


def test_fork_of_one_process_that_was_killed_leaves_no_keys(mockube):
    assert mockube.run(*UP).returncode == 0
    side, copied = mockube.folder("side"), mockube.folder("copied")
    assert fork(side.kubeconfig, "copied")[0] == 201
    newest = ask(copied.kubeconfig, "GET", "/api/v1/namespaces")[1]["metadata"]["resourceVersion"]
    status, body = fork(copied.kubeconfig, "deeper", at=newest)
    assert (status, "is a copy of the process of another one" in body["message"]) == (400, True)
    os.kill(mockube.record("copied").pid, signal.SIGKILL)
    wait_for(lambda: not copied.pki.exists())
    assert fork(side.kubeconfig, "copied")[0] == 201
    assert mockube.run("down", "--now", "--name=copied").returncode == 0
    assert not any(path.exists() for path in (copied.kubeconfig, copied.pki, copied.record))
    assert "Traceback" not in mockube.run("logs", "--name=copied").stdout


def test_fork_of_one_process_publishes_nothing(mockube):
    assert mockube.run(*UP).returncode == 0
    side, copied = mockube.folder("side"), mockube.folder("copied")
    service = {"spec": {"type": "NodePort", "selector": {"app": "web"}, "ports": [{"port": 80}]}}
    assert fork(side.kubeconfig, "copied")[0] == 201
    wait_for(lambda: ask(copied.kubeconfig, "GET", PUBLISHED)[0] == 404)
    assert ask(copied.kubeconfig, "POST", SERVICES, {"metadata": {"name": "web"}, **service})[0] == 201
    events = "/api/v1/namespaces/default/events?fieldSelector=reason=PublishingFailed"
    wait_for(lambda: ask(copied.kubeconfig, "GET", events)[1]["items"])
    assert ask(side.kubeconfig, "GET", PUBLISHED)[0] == 200


def test_cluster_of_one_process_starts_anew_and_advances(mockube):
    assert mockube.run(*UP, "--keep").returncode == 0
    side = mockube.folder("side")
    assert ask(side.kubeconfig, "POST", CONFIG_MAPS, {"metadata": {"name": "mine"}})[0] == 201
    status, body = fork(side.kubeconfig, "snapshot")
    assert (status, "The store: " in str(body["status"]["notForked"])) == (201, True), "it cannot be copied"
    assert mockube.run("clock", "advance", "1h", "--name=side").returncode == 0
    first = mockube.processes("side")
    os.kill(first[0], signal.SIGTERM)
    wait_gone(first)
    assert mockube.run("up", "--detach", "--one-process", "--name=side").returncode == 0
    assert ask(side.kubeconfig, "GET", f"{CONFIG_MAPS}/mine")[0] == 200
    assert mockube.run("up", "--detach", "--one-process", "--exist-ok", "--name=side").returncode == 0
    assert mockube.run("reset", "--name=side").returncode == 0
    assert ask(side.kubeconfig, "GET", f"{CONFIG_MAPS}/mine")[0] == 404
