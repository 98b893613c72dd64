"""Probes of simulated containers at ports are answered by the server that listens there, in a kubelet's words."""

import pytest

from mockube.apimachinery import conditions
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.port_probe import PortAnswer
from mockube.kubelet.pod_lifecycle.container_context import ContainerContext
from mockube.kubelet.pod_lifecycle.port_probes import port_result
from mockube.kubelet.pod_lifecycle.probe_results import probe_results
from mockube.kubelet.pod_lifecycle.probe_totals import simulated_totals
from mockube.kubelet.pod_lifecycle.probing import Probe
from tests.support.controllers.pods import IP, SimulatedPod, container, node_context, pod
from tests.support.images import PREDICTIONS

WEB = [{"name": "http", "containerPort": 8080}]
UNRESOLVED = 'port "htpp" not found'
OWN = "example.org/own:1"
HTTP = [{"name": "http", "containerPort": 80}]
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
    subject = simulated(container(ports=HTTP, livenessProbe=probe(port="htpp")))
    assert state_of(subject) == (True, True, 0)
    assert warnings(subject) == [f"Liveness probe errored and resulted in unknown state: {UNRESOLVED}"]


def test_startup_probe_of_undeclared_port_name_never_starts_nor_restarts():
    fields = {"startupProbe": probe(port="htpp"), "readinessProbe": probe(port="http")}
    subject = simulated(container(ports=HTTP, **fields))
    assert state_of(subject) == (False, False, 0)
    assert warnings(subject) == [f"Startup probe errored and resulted in unknown state: {UNRESOLVED}"]


def test_probe_of_declared_port_name_succeeds():
    assert state_of(simulated(container(ports=HTTP, readinessProbe=probe(port="http")))) == (True, True, 0)


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
    ("containers", "unknown"),
    [
        pytest.param(
            [container(image=OWN, readinessProbe=probe(), ports=WEB)], f"the image {OWN}", id="unknown image"
        ),
        pytest.param(
            [container("c", "/server", image=OWN, readinessProbe=probe())],
            f"server of the image {OWN}",
            id="unknown program",
        ),
        pytest.param(
            [container("c", *SLEEP, readinessProbe=probe()), container("d", image=OWN)],
            f"the image {OWN}",
            id="another container is not simulated",
        ),
        pytest.param(
            [container(readinessProbe=probe(port=80, host="example.com"))],
            "the host example.com",
            id="another host",
        ),
        pytest.param(
            [
                container(
                    readinessProbe=probe(port=80), volumeMounts=[{"name": "v", "mountPath": "/etc/nginx"}]
                )
            ],
            "the configuration in /etc/nginx of the image nginx:1.25",
            id="configuration in a volume",
        ),
    ],
)
def test_probe_of_server_that_is_not_simulated_succeeds_with_event(containers, unknown):
    volumes = [{"name": "v", "emptyDir": {}}]
    subject = simulated(*containers, volumes=volumes)
    statuses = subject.status["containerStatuses"]
    assert [status["ready"] for status in statuses] == [True] * len(containers)
    messages = [message for message in warnings(subject) if "its readinessProbe" in message]
    assert messages == [f"{unknown} is not simulated: its readinessProbe succeeds without it"]


def test_event_names_all_probes_of_a_container_once():
    probes = {"readinessProbe": probe(), "livenessProbe": probe("tcpSocket"), "startupProbe": probe("grpc")}
    subject = simulated(container(image=OWN, **probes))
    assert warnings(subject) == [
        f"the image {OWN} is not simulated: its startupProbe, readinessProbe and livenessProbe succeed without it"
    ]


@pytest.mark.parametrize(
    ("subject", "handler", "fields", "output"),
    [
        ({}, "httpGet", {"port": 80}, ""),
        ({}, "httpGet", {"port": 80, "path": "/index.html"}, ""),
        (
            {},
            "httpGet",
            {"port": 81},
            f'Get "http://{IP}:81/": dial tcp {IP}:81: connect: connection refused',
        ),
        ({}, "httpGet", {"port": 80, "path": "/nope"}, "HTTP probe failed with statuscode: 404"),
        (
            {},
            "httpGet",
            {"port": 80, "scheme": "HTTPS"},
            f'Get "https://{IP}:80/": http: server gave HTTP response to HTTPS client',
        ),
        ({}, "tcpSocket", {"port": 80}, ""),
        ({}, "tcpSocket", {"port": 8080}, f"dial tcp {IP}:8080: connect: connection refused"),
        (
            {},
            "grpc",
            {"port": 80},
            f'timeout: failed to connect service "{IP}:80" within 1s: context deadline exceeded',
        ),
        (
            {},
            "httpGet",
            {"port": 80, "host": "127.0.0.1"},
            'Get "http://127.0.0.1:80/": dial tcp 127.0.0.1:80: connect: connection refused',
        ),
        (
            {},
            "httpGet",
            {"port": 80, "host": "localhost"},
            'Get "http://localhost:80/": dial tcp [::1]:80: connect: connection refused',
        ),
        (
            {"ports": [{"containerPort": 80, "hostPort": 8000}]},
            "httpGet",
            {"port": 8000, "host": "127.0.0.1"},
            "",
        ),
        (
            {},
            "httpGet",
            {"port": 80, "host": "web.ns.svc"},
            'Get "http://web.ns.svc:80/": dial tcp: lookup web.ns.svc: no such host',
        ),
        ({"args": ["nginx", "-g", "daemon off;"]}, "httpGet", {"port": 80}, ""),
        ({"ports": WEB}, "httpGet", {"port": "http"}, f'Get "http://{IP}:8080/": dial tcp {IP}:8080: connect: connection refused'),
        (
            {"image": "mysql:8.4"},
            "httpGet",
            {"port": 3306},
            f'Get "http://{IP}:3306/": net/http: HTTP/1.x transport connection broken: malformed HTTP response "J\\x00\\x00\\x00"',
        ),
        (
            {"image": "redis", "args": ["--port", "6380"]},
            "tcpSocket",
            {"port": 6379},
            f"dial tcp {IP}:6379: connect: connection refused",
        ),
        ({"image": "redis", "args": ["--port", "6380"]}, "tcpSocket", {"port": 6380}, ""),
        ({"image": "bitnami/redis", "env": [{"name": "REDIS_PORT_NUMBER", "value": "1"}]}, "tcpSocket", {"port": 1}, ""),
        ({"image": "agnhost:2.47", "args": ["netexec", "--http-port=83"]}, "httpGet", {"port": 83, "path": "/x"}, ""),
        ({"image": "agnhost:2.47", "args": ["grpc-health-checking"]}, "grpc", {"port": 5000}, ""),
        (
            {"image": "agnhost:2.47", "args": ["grpc-health-checking"]},
            "grpc",
            {"port": 5000, "service": "a"},
            "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service",
        ),
        (
            {"image": "agnhost:2.47", "args": ["porter"], "env": [{"name": "SERVE_TLS_PORT_90", "value": "a"}]},
            "httpGet",
            {"port": 90},
            "HTTP probe failed with statuscode: 400",
        ),
        ({"image": "hashicorp/http-echo", "args": ["-text=a", "-listen=:70"]}, "httpGet", {"port": 70}, ""),
        ({"image": "python:3", "command": ["python", "-m", "http.server", "70"]}, "tcpSocket", {"port": 70}, ""),
        ({"image": "busybox", "command": ["sleep", "1d"], "ports": WEB}, "tcpSocket", {"port": 8080}, f"dial tcp {IP}:8080: connect: connection refused"),
        ({"image": "busybox", "command": ["httpd", "-f", "-p", "70"]}, "tcpSocket", {"port": 70}, ""),
        (
            {"image": "busybox", "command": ["sh", "-c", "while true; do echo 'a; b' | nc -l -p 70; done"]},
            "tcpSocket",
            {"port": 70},
            "",
        ),
        (
            {"image": "busybox", "command": ["sh", "-c", "while true; do echo 'a; b' | nc -l -p 70; done"]},
            "tcpSocket",
            {"port": 71},
            f"dial tcp {IP}:71: connect: connection refused",
        ),
    ],
)  # fmt: skip
def test_probe_is_answered_by_what_listens(subject, handler, fields, output):
    described = {**container("c", image="nginx:1.25"), **subject}
    probed = {**described, "readinessProbe": {handler: fields}}
    results = probe_results(
        pod(probed), probed, script_of({}), ContainerContext(pod_ip=IP, predictions=PREDICTIONS)
    )
    messages = [result.message for timeline in results.values() for _, result in timeline]
    assert messages == ([f"Readiness probe failed: {output}"] if output else [])


REDIRECTING = {"image": "agnhost:2.40", "args": ["liveness"]}


@pytest.mark.parametrize(
    ("target", "output"),
    [
        ("/started", ""),
        ("started", ""),
        ("/nope", "failed: HTTP probe failed with statuscode: 404"),
        (
            "http://10.244.0.7:81/x",
            f'failed: Get "http://{IP}:8080/redirect?loc=http://10.244.0.7:81/x": dial tcp {IP}:81: connect: connection refused',
        ),
        ("http://0.0.0.0/", "warning: Probe terminated redirects, Response body: "),
        (
            "/redirect?loc=/redirect",
            "",
        ),
    ],
)
def test_redirect_is_followed_on_the_same_host(target, output):
    action = {"port": 8080, "path": f"/redirect?loc={target}"}
    described = container("c", **{"image": "x", **REDIRECTING}, readinessProbe={"httpGet": action})
    subject = simulated(described)
    messages = [f"Readiness probe {output}"] if output else []
    assert warnings(subject) == messages
    assert state_of(subject) == (True, not output.startswith("failed"), 0)
    reasons = [event.reason for event in subject.events if event.type == "Warning"]
    assert reasons == (["ProbeWarning" if "warning" in output else "Unhealthy"] if output else [])


def test_endless_redirect_ends():
    behavior = PortAnswer(status=302, location="/")
    probed = container(readinessProbe={"httpGet": {"port": 80}})
    result = port_result(pod(probed), probed, Probe.READINESS, IP, lambda _: behavior)
    assert result.message == f'Readiness probe failed: Get "http://{IP}:80/": stopped after 10 redirects'


def test_liveness_probe_restarts_container_when_its_server_fails():
    described = container(image="agnhost:2.40", args=["liveness"])
    described["livenessProbe"] = {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 3}
    subject = SimulatedPod(pod(described), context=node_context(details=True)).pass_time(17)
    assert state_of(subject) == (True, True, 0)
    subject.pass_time(2)
    assert state_of(subject)[2] == 1
    assert warnings(subject) == ["Liveness probe failed: HTTP probe failed with statuscode: 500"]
    assert "Container c failed liveness probe, will be restarted" in [
        event.message for event in subject.events
    ]


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
        pod(probed), probed, script_of({}), ContainerContext(pod_ip=IP, predictions=PREDICTIONS)
    )
    (totals,) = simulated_totals(probed, results, 0, 25).values()
    assert (totals.successful, totals.failed) == expected
