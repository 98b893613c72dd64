"""Containers of a pod share one network: the second server on a port ends."""

import pytest
from msgspec.structs import replace

from mockube.container_runtime.simulated.servers.port_conflicts import (
    end_without_port,
    failed_bind,
    occupied_ports,
    process_without_port,
)
from tests.support.controllers.pods import SimulatedPod, container, node_context, pod
from tests.support.images import IMAGES
from tests.support.shell_network import ShellNetwork, run_script

FIRST = container("first", image="nginx:1.25")
SECOND = container("second", image="nginx:1.27")
RUNNING = {"name": "first", "state": {"running": {"startedAt": "2030-01-01T00:00:00Z"}}}
WAITING = {"name": "first", "state": {"waiting": {"reason": "ErrImagePull"}}}
CONFIGURED = [{"name": "v", "mountPath": "/etc/nginx/conf.d"}]


@pytest.mark.parametrize(
    ("first", "second", "status", "code"),
    [
        pytest.param(FIRST, SECOND, RUNNING, 1, id="two servers"),
        pytest.param(
            container("first", image="mongo"), container("second", image="mongo"), RUNNING, 48, id="mongo"
        ),
        pytest.param(container("first", "nc", "-lkp", "80"), SECOND, RUNNING, 1, id="nc"),
        pytest.param(FIRST, SECOND, WAITING, None, id="a server that does not run"),
        pytest.param(FIRST, container("second", image="redis"), RUNNING, None, id="another port"),
        pytest.param(FIRST | {"volumeMounts": CONFIGURED}, SECOND, RUNNING, None, id="a configuration"),
        pytest.param(container("first", "sleep", "9"), SECOND, RUNNING, None, id="no server"),
        pytest.param(FIRST, container("second", "sleep", "9"), RUNNING, None, id="another command"),
    ],
)
def test_second_server_on_a_port_ends(first, second, status, code):
    tree = pod(first, second)
    tree["status"]["containerStatuses"] = [status]
    assert end_without_port(IMAGES, tree, first) is None
    end = end_without_port(IMAGES, tree, second)
    assert (None if end is None else end.exit_code) == code


def test_second_server_logs_why_it_ends():
    tree = pod(FIRST, SECOND)
    tree["status"]["containerStatuses"] = [RUNNING]
    bind = failed_bind(IMAGES, tree, SECOND)
    assert (
        b"bind() to 0.0.0.0:80 failed (98: Address already in use)" in next(process_without_port(bind)).data
    )


def test_pod_with_two_servers_on_a_port_is_not_ready():
    subject = SimulatedPod(pod(FIRST, SECOND), context=node_context(details=True)).pass_time(60)
    assert subject.containers() == {"first": "running", "second": "CrashLoopBackOff"}


def test_sidecar_is_before_the_containers():
    sidecar = FIRST | {"restartPolicy": "Always"}
    tree = pod(SECOND, init=[sidecar])
    assert occupied_ports(IMAGES, tree, SECOND) == {80}
    tree["status"]["initContainerStatuses"] = [WAITING]
    assert occupied_ports(IMAGES, tree, SECOND) == set()


def test_nc_on_a_port_in_use_fails():
    network = ShellNetwork()
    network.occupied_ports = frozenset({80})
    result = run_script("nc -lkp 80", network)
    assert (result.code, result.err) == (1, "nc: bind: Address already in use\n")


# --- pods in the network of their node


def host_pod(uid, since, *containers):
    tree = pod(*containers)
    tree["metadata"]["uid"] = f"uid-{uid}"
    tree["spec"]["hostNetwork"] = True
    if since:
        running = {"state": {"running": {"startedAt": since}}}
        tree["status"]["containerStatuses"] = [running | {"name": each["name"]} for each in containers]
    return tree


EARLY, LATE = "2030-01-01T00:00:00Z", "2030-01-01T00:00:09Z"


@pytest.mark.parametrize(
    ("own", "other", "ends"),
    [
        pytest.param("", EARLY, True, id="it starts later"),
        pytest.param("", "", False, id="the other one does not run"),
        pytest.param(EARLY, LATE, False, id="it was there first"),
        pytest.param(LATE, EARLY, True, id="the other one was there first"),
        pytest.param(EARLY, EARLY, True, id="at the same time, the uid decides"),
    ],
)
def test_server_in_the_network_of_the_node_ends_if_another_pod_has_its_port(own, other, ends):
    tree, others = host_pod("2", own, FIRST), [host_pod("1", other, FIRST)]
    assert (end_without_port(IMAGES, tree, FIRST, others) is not None) == ends
    assert occupied_ports(IMAGES, tree, FIRST, others) == (frozenset({80}) if ends else frozenset())


def test_server_on_another_port_of_the_node_runs():
    others = [host_pod("1", EARLY, container("c", image="redis"))]
    assert end_without_port(IMAGES, host_pod("2", "", FIRST), FIRST, others) is None


def test_pod_on_the_node_whose_port_is_in_use_is_in_back_off():
    others = [host_pod("0", EARLY, FIRST)]
    context = replace(node_context(details=True), host_pods=lambda: others)
    subject = SimulatedPod(host_pod("1", "", SECOND), context=context).pass_time(60)
    assert subject.containers() == {"second": "CrashLoopBackOff"}
    own_network = SimulatedPod(pod(SECOND), context=context).pass_time(60)
    assert own_network.containers() == {"second": "running"}
