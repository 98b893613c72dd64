"""`mockube up --detach`: the cluster keeps running in the background and stops with its main process."""

import os
import signal
import sys

import pytest

from tests.support.processes.commands import Mockube, ask, wait_gone

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}}
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DETACHED = ("up", "--detach", "--name=side", "--simulate-nodes=1")


@pytest.fixture
def mockube(tmp_path):
    commands = Mockube(tmp_path)
    yield commands
    commands.close()


def test_detached_kept_cluster_survives_restarts_until_deleted(mockube):
    up = mockube.run(*DETACHED, "--keep", "--write-kubeconfig=copy")
    assert up.returncode == 0, up.stderr
    assert "`mockube down --name=side` stops it." in up.stdout
    assert up.stderr.splitlines() == [
        "mockube: starting the API server and the controller manager",
        "mockube: waiting for the nodes",
    ]
    folder, first_url = mockube.folder("side"), mockube.record("side").url
    copy = (mockube.home / "copy").read_text()
    assert copy == folder.kubeconfig.read_text()
    assert "current-context: mockube-side" in copy
    assert os.getsid(mockube.record("side").pid) == mockube.record("side").pid
    assert ask(folder.kubeconfig, "POST", CONFIG_MAPS, CONFIG_MAP)[0] == 201

    assert mockube.run("nodes", "2", "--name=side").returncode == 0

    first = mockube.processes("side")
    assert mockube.run("down", "--name=side").returncode == 0
    wait_gone(first)

    again = mockube.run("up", "--detach", "--name=side")
    assert again.returncode == 0, "a kept cluster needs no flag to start again"
    assert "with 2 simulated nodes" in again.stdout, "the last number of nodes applies, not the default"
    assert ask(folder.kubeconfig, "GET", f"{CONFIG_MAPS}/mine")[0] == 200
    assert mockube.record("side").url == first_url

    second = mockube.processes("side")
    os.kill(second[0], signal.SIGKILL)
    wait_gone(second)
    assert mockube.run("status", "--name=side").returncode == 5
    assert mockube.run("doctor").returncode == 5
    assert mockube.run("down", "--name=side", "--delete").returncode == 0
    assert not folder.path.exists()


def test_detached_cluster_not_ready_in_time_is_stopped(mockube):
    answer = mockube.run(*DETACHED, "--wait=1ms")
    assert (answer.returncode, answer.stdout) == (4, "")
    assert "mockube: the cluster was not ready within 0.001 s and was stopped" in answer.stderr
    assert mockube.record("side") is None


def test_detached_start_failure_is_reported_to_caller(mockube):
    answer = mockube.run(*DETACHED, "--packs=nothing-known")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert 'unknown pack "nothing-known"' in answer.stderr


@pytest.mark.slow
def test_nodes_of_kept_cluster_are_those_of_the_last_start_that_sets_them(mockube):
    assert started_nodes(mockube, "--nodes=zone=a,cpu=4:2, name=gpu,gpu=8:1") == {
        "gpu-1": ("32", "8"),
        "node-1": ("4", None),
        "node-2": ("4", None),
    }
    assert started_nodes(mockube) == {"gpu-1": ("32", "8"), "node-1": ("4", None), "node-2": ("4", None)}
    assert started_nodes(mockube, "--nodes=name=gpu,gpu=4:2") == {"gpu-1": ("32", "4"), "gpu-2": ("32", "4")}


def started_nodes(mockube, *flags):
    """Return the CPUs and GPUs of the workers of the kept cluster, which is started and stopped."""
    up = mockube.run("up", "--detach", "--name=side", "--keep", *flags)
    assert up.returncode == 0, up.stderr
    _, nodes = ask(mockube.folder("side").kubeconfig, "GET", "/api/v1/nodes")
    assert mockube.run("down", "--name=side").returncode == 0
    capacities = {node["metadata"]["name"]: node["status"]["capacity"] for node in nodes["items"]}
    del capacities["control-plane-1"]
    return {name: (capacity["cpu"], capacity.get("nvidia.com/gpu")) for name, capacity in capacities.items()}


def test_kept_cluster_does_not_get_back_what_a_user_has_deleted_of_kubeadm(mockube):
    system = "/api/v1/namespaces/kube-system"
    deleted = (
        f"{system}/configmaps/kubeadm-config",
        f"{system}/services/kube-dns",
        "/apis/apps/v1/namespaces/kube-system/deployments/coredns",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:coredns",
        "/apis/storage.k8s.io/v1/storageclasses/standard",
    )
    changed = f"{system}/configmaps/kube-proxy"
    kubeconfig = mockube.folder("side").kubeconfig

    def start():
        up = mockube.run("up", "--detach", "--name=side", "--keep", "--nodes=1", "--profile=kubeadm")
        assert up.returncode == 0, up.stderr

    start()
    assert [ask(kubeconfig, "DELETE", path)[0] for path in deleted] == [200] * len(deleted)
    present = ask(kubeconfig, "GET", changed)[1]
    assert ask(kubeconfig, "PUT", changed, {**present, "data": {"config.conf": "mine"}})[0] == 200
    assert mockube.run("down", "--name=side").returncode == 0
    start()
    assert [ask(kubeconfig, "GET", path)[0] for path in deleted] == [404] * len(deleted)
    assert ask(kubeconfig, "GET", changed)[1]["data"] == {"config.conf": "mine"}


def test_kept_cluster_keeps_its_profile_also_when_it_is_emptied(mockube):
    def start(*flags):
        up = mockube.run("up", "--detach", "--name=side", *flags)
        nodes = ask(mockube.folder("side").kubeconfig, "GET", "/api/v1/nodes")[1] if not up.returncode else {}
        return up, [node["metadata"]["name"] for node in nodes.get("items", ())]

    def stop():
        assert mockube.run("down", "--name=side").returncode == 0

    assert start("--keep", "--nodes=1", "--profile=minimal")[1] == ["node-1"]
    stop()
    assert mockube.run("reset", "--name=side").returncode == 0
    assert start("--nodes=1")[1] == ["node-1"]
    stop()
    assert start("--nodes=1", "--profile=kubeadm")[1] == ["control-plane-1", "node-1"]
    assert mockube.run("reset", "--name=side").returncode == 0
    kubeconfig = mockube.folder("side").kubeconfig
    assert ask(kubeconfig, "GET", "/api/v1/namespaces/kube-system/configmaps/kubeadm-config")[0] == 200
    stop()
    refused, _ = start("--nodes=1", "--profile=minimal")
    assert (refused.returncode, "the store has a cluster with --profile=kubeadm" in refused.stderr) == (
        2,
        True,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="clusters can be forked on Linux only")
def test_fork_has_the_objects_of_a_moment_and_ends_with_its_parent(mockube):
    assert mockube.run(*DETACHED).returncode == 0
    folder, fork = mockube.folder("side"), mockube.folder("fork")
    assert mockube.run("mark", "empty", "--name=side").returncode == 0
    assert ask(folder.kubeconfig, "POST", CONFIG_MAPS, CONFIG_MAP)[0] == 201
    assert mockube.run("fork", "fork", "--name=side", "--at=empty").returncode == 0
    assert ask(fork.kubeconfig, "GET", f"{CONFIG_MAPS}/mine")[0] == 404
    assert ask(fork.kubeconfig, "POST", CONFIG_MAPS, CONFIG_MAP)[0] == 201
    assert mockube.run("down", "--name=fork").returncode == 0

    again = mockube.run("fork", "fork", "--name=side")
    assert (again.returncode, f"KUBECONFIG={fork.kubeconfig}" in again.stdout) == (0, True)
    assert ask(fork.kubeconfig, "DELETE", f"{CONFIG_MAPS}/mine")[0] == 200
    assert ask(folder.kubeconfig, "GET", f"{CONFIG_MAPS}/mine")[0] == 200
    refused = mockube.run("fork", "fork", "--name=side")
    assert (refused.returncode, '"fork" is already running' in refused.stderr) == (1, True)
    assert "memory, fork of side" in mockube.run("list").stdout

    processes = [*mockube.processes("side"), *mockube.processes("fork")]
    assert mockube.run("down", "--name=side").returncode == 0
    wait_gone(processes)
