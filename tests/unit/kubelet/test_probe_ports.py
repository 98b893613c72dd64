"""Probes of simulated containers fail where their port cannot be the port of a server."""

import pytest

from mockube.apimachinery import conditions
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.simulated import predictions
from mockube.kubelet.pod_lifecycle.container_context import ContainerContext
from mockube.kubelet.pod_lifecycle.probe_results import probe_results
from mockube.kubelet.pod_lifecycle.probe_totals import simulated_totals
from tests.support.controllers.pods import IP, SimulatedPod, container, node_context, pod

WEB = [{"name": "http", "containerPort": 8080}]
UNRESOLVED = 'strconv.Atoi: parsing "htpp": invalid syntax'
SLEEP = ("sleep", "infinity")


def probe(handler="httpGet", port=8081, **fields):
    return {handler: {"port": port, **fields}, "periodSeconds": 10, "failureThreshold": 3}


def simulated(*containers, annotations=None, **spec):
    return SimulatedPod(
        pod(*containers, annotations=annotations, **spec), context=node_context(details=True)
    ).pass_time(300)


def state_of(simulated_pod):
    status = simulated_pod.status["containerStatuses"][0]
    return status["started"], status["ready"], status["restartCount"]


def warnings(simulated_pod):
    return [event.message for event in simulated_pod.events if event.type == "Warning"]


@pytest.mark.parametrize("handler", ["httpGet", "tcpSocket"])
def test_readiness_probe_of_undeclared_port_name_is_never_ready(handler):
    subject = simulated(container(ports=WEB, readinessProbe=probe(handler, "htpp")))
    assert state_of(subject) == (True, False, 0)
    assert warnings(subject) == [f"Readiness probe errored and resulted in unknown state: {UNRESOLVED}"]
    assert conditions.get(subject.pod, "Ready")["reason"] == "ContainersNotReady"


def test_liveness_probe_of_undeclared_port_name_does_not_restart():
    subject = simulated(container(ports=WEB, livenessProbe=probe(port="htpp")))
    assert state_of(subject) == (True, True, 0)
    assert warnings(subject) == [f"Liveness probe errored and resulted in unknown state: {UNRESOLVED}"]


def test_startup_probe_of_undeclared_port_name_never_starts_nor_restarts():
    fields = {"startupProbe": probe(port="htpp"), "readinessProbe": probe(port="http")}
    subject = simulated(container(ports=WEB, **fields))
    assert state_of(subject) == (False, False, 0)
    assert warnings(subject) == [f"Startup probe errored and resulted in unknown state: {UNRESOLVED}"]


def test_probe_of_declared_port_name_succeeds():
    assert state_of(simulated(container(ports=WEB, readinessProbe=probe(port="http")))) == (True, True, 0)


def test_annotation_replaces_result_of_undeclared_port_name():
    annotations = {"mockube.dev/fail-readiness-after": "1h"}
    subject = simulated(container(readinessProbe=probe(port="htpp")), annotations=annotations)
    assert state_of(subject) == (True, True, 0)


@pytest.mark.parametrize(
    ("handler", "fields", "output"),
    [
        (
            "httpGet",
            {"path": "/healthz"},
            f'Get "http://{IP}:8081/healthz": dial tcp {IP}:8081: connect: connection refused',
        ),
        (
            "httpGet",
            {"scheme": "HTTPS"},
            f'Get "https://{IP}:8081/": dial tcp {IP}:8081: connect: connection refused',
        ),
        ("tcpSocket", {}, f"dial tcp {IP}:8081: connect: connection refused"),
        (
            "grpc",
            {},
            f'timeout: failed to connect service "{IP}:8081" within 1s: context deadline exceeded',
        ),
    ],
)
def test_probe_of_program_without_server_is_refused(handler, fields, output):
    subject = simulated(container("c", *SLEEP, readinessProbe=probe(handler, **fields)))
    assert state_of(subject) == (True, False, 0)
    assert warnings(subject) == [f"Readiness probe failed: {output}"]


def test_refused_liveness_probe_restarts_container():
    subject = simulated(container("c", *SLEEP, livenessProbe=probe("tcpSocket")))
    assert state_of(subject)[2] > 1
    assert f"Liveness probe failed: dial tcp {IP}:8081: connect: connection refused" in warnings(subject)


@pytest.mark.parametrize(
    "containers",
    [
        pytest.param([container(readinessProbe=probe(), ports=WEB)], id="program that is not simulated"),
        pytest.param([container("c", *SLEEP, readinessProbe=probe(port=8080), ports=WEB)], id="declared"),
        pytest.param(
            [container("c", *SLEEP, readinessProbe=probe(port=8080)), container("d", *SLEEP, ports=WEB)],
            id="declared by another container",
        ),
        pytest.param(
            [container("c", *SLEEP, readinessProbe=probe()), container("d")],
            id="another container is not simulated",
        ),
        pytest.param([container("c", *SLEEP, readinessProbe=probe(host="example.com"))], id="another host"),
        pytest.param(
            [container(image="agnhost:2.47", args=["netexec"], readinessProbe=probe())], id="server image"
        ),
    ],
)
def test_probe_of_port_that_may_be_open_succeeds(containers):
    assert state_of(simulated(*containers)) == (True, True, 0)


@pytest.mark.parametrize(
    "annotations", [{"mockube.dev/answer.8081": "ok"}, {"mockube.dev/run": "sleep infinity"}]
)
def test_annotation_opens_undeclared_port(annotations):
    subject = simulated(container("c", *SLEEP, readinessProbe=probe()), annotations=annotations)
    assert state_of(subject) == (True, True, 0)


def test_port_of_host_network_may_be_open():
    subject = simulated(container("c", *SLEEP, readinessProbe=probe()), hostNetwork=True)
    assert state_of(subject) == (True, True, 0)


@pytest.mark.parametrize(("port", "expected"), [("htpp", (0, 0)), (8081, (0, 3))])
def test_probe_metrics_omit_unknown_results(port, expected):
    probed = container("c", *SLEEP, readinessProbe=probe(port=port))
    results = probe_results(
        pod(probed), probed, script_of({}), ContainerContext(pod_ip=IP, predictions=predictions)
    )
    (totals,) = simulated_totals(probed, results, 0, 25).values()
    assert (totals.successful, totals.failed) == expected
