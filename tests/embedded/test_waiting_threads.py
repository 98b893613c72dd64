"""Methods that wait in a thread: conditions that use the cluster, the end of the cluster, and forked processes."""

import asyncio
import os
import subprocess
import sys
import threading
import traceback

import pytest
from kubernetes import client

from mockube import Cluster, WaitFailed, connect
from mockube.cluster import NotStarted
from mockube.failure import Failure

NEVER = "jsonpath={.spec.unschedulable}=true"


def test_condition_runs_in_thread_of_caller_and_can_use_cluster(cluster):
    official, threads = client.CoreV1Api(cluster.kubernetes()), []

    def condition(node):
        threads.append(threading.current_thread())
        same = cluster.get("Node", node["metadata"]["name"])
        return same and len(official.list_node().items) == 2

    assert cluster.wait("node/node-1", condition)["metadata"]["name"] == "node-1"
    assert threads == [threading.current_thread()]


async def test_awaited_condition_runs_in_loop_of_caller_and_can_use_cluster(cluster):
    loops = []

    def condition(_):
        loops.append(asyncio.get_running_loop())
        return len(cluster.list("Node")) == 2

    await cluster.awaited.wait("node/node-1", condition)
    assert loops == [asyncio.get_running_loop()]


def test_condition_of_connection_can_use_connection(cluster):
    with connect(kubeconfig=cluster.kubeconfig) as connection:
        connection.wait("node/node-1", lambda _: connection.list("Node"))


def test_condition_that_does_not_return_in_time_is_reported(cluster):
    def condition(_):
        with pytest.raises(WaitFailed):
            cluster.wait("node/node-2", NEVER, timeout=1)

    with pytest.raises(WaitFailed, match="the condition, a function, was still running"):
        cluster.wait("node/node-1", condition, timeout=0.5)


def test_condition_about_other_objects_is_met_without_a_change_of_its_object(cluster):
    seen = []

    def condition(_):
        if not seen:
            cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}})
        seen.append(cluster.list("ConfigMap"))
        return len(seen) > 1

    cluster.wait("namespace/kube-public", condition)


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_error_of_condition_ends_wait_and_not_cluster(cluster, error):
    def condition(_):
        raise error

    with pytest.raises(error):
        cluster.wait("node/node-1", condition)
    assert cluster.list("Node")


def test_frames_of_error_begin_with_condition(cluster):
    def condition(_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as raised:
        cluster.wait("node/node-1", condition)
    names = [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)]
    assert names[-1] == "condition"
    assert len(names) <= 4


@pytest.mark.parametrize("condition", [NEVER, lambda _: False], ids=["path", "function"])
def test_wait_ends_when_cluster_stops(condition):
    cluster, errors, begun = Cluster(nodes=1).start(), [], threading.Event()

    def wait():
        begun.set()
        with pytest.raises(NotStarted, match="the cluster was stopped") as raised:
            cluster.wait("node/node-1", condition)
        errors.append(raised.value)

    thread = threading.Thread(target=wait)
    thread.start()
    begun.wait()
    cluster.stop()
    thread.join()
    assert errors


async def test_awaited_wait_ends_when_cluster_stops():
    async with Cluster(nodes=1) as cluster:
        wait = asyncio.create_task(cluster.wait("node/node-1", NEVER))
        await cluster.list("Node")
    with pytest.raises(NotStarted, match="the cluster was stopped"):
        await wait


async def test_awaited_wait_can_be_cancelled(cluster):
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(cluster.awaited.wait("node/node-1", lambda _: False), 0.1)


FORK = """
import os, sys
from mockube import Cluster

with Cluster(nodes=0) as cluster:
    child = os.fork()
    if child == 0:
        try:
            cluster.list("Namespace")
        except Exception as error:
            print(error, flush=True)
        cluster.stop()
        sys.exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), cluster.kubeconfig.exists(), len(cluster.list("Namespace")))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_forked_process_gets_an_error_and_leaves_the_cluster_alone():
    output = subprocess.run(
        [sys.executable, "-c", FORK], check=False, capture_output=True, text=True, timeout=60
    ).stdout
    message, result = output.splitlines()
    assert message.startswith("the cluster runs in the process that started it, not in a forked one")
    assert result == "7 True 4"


def test_call_in_loop_of_cluster_is_refused(cluster):
    async def call():
        cluster.list("Node")

    with pytest.raises(Failure, match="a plugin must not call methods of the cluster"):
        cluster._submit(call()).result()
