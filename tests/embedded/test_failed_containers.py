"""A task of one container or pod that fails is logged once, ends that container alone, and leaves no process behind."""

import asyncio

import pytest
from kubernetes import client as official

from mockube import Cluster
from tests.support.process_pods import IMAGES, create, processes_of, python, status_of
from tests.support.processes.acknowledged_writes import until
from tests.support.processes.failing_program import fail

FAULT = "RuntimeError: a fault in the program"
SCRIPT = "import time\nprint('started')\ntime.sleep(1000)"
PROBE = {"readinessProbe": {"exec": {"command": ["sleep", "1000"]}, "timeoutSeconds": 1000}}


@pytest.fixture
def cluster():
    """Start one for each test, because the tasks of all containers have the same names."""
    with Cluster(nodes=1, images=IMAGES) as started:
        yield started


@pytest.fixture
def pods(cluster):
    return official.CoreV1Api(cluster.kubernetes())


def fail_task(cluster, name):
    loop = cluster._context._loop
    loop.call_soon_threadsafe(fail, loop, name)


def logged_failures(caplog, text):
    entries = map(caplog.handler.format, caplog.records)
    return [entry for entry in entries if text in entry and FAULT in entry and "Traceback" in entry]


def running(cluster, pods, **fields):
    name = create(pods, python(SCRIPT, **fields), policy="Never")
    cluster.wait("Pod", name, lambda pod: (pod.get("status") or {}).get("phase") == "Running")
    until(lambda: pods.read_namespaced_pod_log(name, "default"), "the start of the process")
    return name, pods.read_namespaced_pod(name, "default").metadata.uid


@pytest.mark.parametrize(
    ("task", "fields"),
    [
        ("container c of {}", {}),
        ("output of a container", {}),
        ("the end of a container", {}),
        ("checks of a container", PROBE),
        ("a Readiness probe", PROBE),
        ("output of a command", PROBE),
    ],
)
def test_failed_task_of_container_ends_it_with_its_error(cluster, pods, caplog, task, fields):
    name, uid = running(cluster, pods, **fields)
    fail_task(cluster, task.format(f"default/{name}"))
    cluster.wait("Pod", name, lambda pod: (pod.get("status") or {}).get("phase") == "Failed", timeout=10)
    ended = status_of(cluster.get("Pod", name))["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"], ended["message"]) == (128, "ContainerCannotRun", FAULT)
    until(lambda: not processes_of(uid), "the end of the process")
    assert logged_failures(caplog, "failed") or logged_failures(caplog, "container c of pod")


def test_failed_update_of_volumes_is_tried_again(cluster, pods, caplog):
    name, _ = running(cluster, pods)
    fail_task(cluster, f"volumes of default/{name}")
    until(lambda: logged_failures(caplog, f"volumes of pod default/{name}"), "the failure")
    loop = cluster._context._loop
    names = [task.get_name() for task in cluster._context.call(lambda: asyncio.all_tasks(loop))]
    assert f"volumes of default/{name}" in names


def test_failed_end_of_pod_is_logged_and_leaves_no_process(cluster, pods, caplog):
    name, uid = running(cluster, pods)
    fail_task(cluster, "the end of a pod")
    pods.delete_namespaced_pod(name, "default", grace_period_seconds=0)
    until(lambda: logged_failures(caplog, "the end of a pod failed"), "the failure")
    until(lambda: not processes_of(uid), "the end of the process")


def simulated(**fields):
    return {"name": "c", "image": "example/app", "command": ["sleep", "infinity"], **fields}


def shell(script):
    return {"exec": {"command": ["sh", "-c", script]}}


def test_failed_task_of_simulated_handler_counts_as_its_failure(cluster, pods, caplog):
    first_attempt = "[ -f /tmp/seen ] || { touch /tmp/seen; nc -z missing 80; sleep 1000; }"
    # The files of an image that is known: others may have /tmp/seen.
    probe = {**shell(first_attempt), "timeoutSeconds": 1000}
    probed = create(pods, simulated(image="busybox", readinessProbe=probe))
    hooked = create(pods, simulated(lifecycle={"postStart": shell("nc -z missing 80; sleep 1000")}))
    cluster.wait("Pod", probed, lambda pod: status_of(pod).get("started"))
    cluster.wait("Pod", hooked, lambda pod: status_of(pod).get("state"))
    cluster.advance(5)
    for field, name in (("readinessProbe", probed), ("postStart", hooked)):
        fail_task(cluster, f"{field} of container c of pod default/{name}")
        until(lambda name=name: logged_failures(caplog, f"container c of pod default/{name}"), "the failure")
    cluster.advance(20)
    assert status_of(cluster.get("Pod", probed))["ready"]
    state = status_of(cluster.get("Pod", hooked))
    assert (state["state"].get("terminated") or state["lastState"]["terminated"])["exitCode"] == 137


def test_failed_simulated_container_ends_with_its_error(cluster, pods, caplog):
    container = {"name": "c", "image": "busybox", "command": ["sh"], "stdin": True}
    name = create(pods, container, policy="Never")
    cluster.wait("Pod", name, "Ready")
    fail_task(cluster, f"container c of default/{name}")
    cluster.wait("Pod", name, lambda pod: (pod.get("status") or {}).get("phase") == "Failed", timeout=10)
    assert status_of(cluster.get("Pod", name))["state"]["terminated"]["message"] == FAULT
    assert len(logged_failures(caplog, "container c of pod")) == 1
