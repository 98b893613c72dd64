"""A server listens from the time at which its container's script calls it, and not before."""

import pytest

from tests.support.controllers.pods import SimulatedPod, container, node_context, pod

CONTEXT = node_context(details=True)
HTTPD = "httpd -f -p 8080"


def subject_of(script, *, probe="readinessProbe", action="tcpSocket", image="busybox", port=8080):
    described = {
        **container("c", "sh", "-c", script, image=image),
        probe: {action: {"port": port}, "periodSeconds": 1},
    }
    return SimulatedPod(pod(described, terminationGracePeriodSeconds=1), context=CONTEXT)


def failures(subject):
    return {event.message for event in subject.events if event.reason == "Unhealthy"}


@pytest.mark.parametrize(
    ("image", "server", "port"),
    [
        ("busybox", HTTPD, 8080),
        ("busybox", f"exec {HTTPD}", 8080),
        ("busybox", "httpd -p 8080; sleep inf", 8080),
        ("redis:8", "redis-server", 6379),
        ("python:3.12", "exec python -m http.server", 8000),
    ],
)
def test_port_is_closed_until_the_script_calls_its_server(image, server, port):
    assert subject_of(server, image=image, port=port).pass_time(5).ready
    subject = subject_of(f"sleep 20; {server}", image=image, port=port).pass_time(10)
    assert not subject.ready
    assert failures(subject) == {
        f"Readiness probe failed: dial tcp 10.244.0.7:{port}: connect: connection refused"
    }
    assert subject.pass_time(20).ready


@pytest.mark.parametrize(
    "script",
    [
        f"if false; then {HTTPD}; fi; sleep inf",
        f"sleep inf; {HTTPD}",
        f"test -f /ready && {HTTPD}; sleep inf",
        f"serve() {{ {HTTPD}; }}; sleep inf",
        f"command -v httpd && false && {HTTPD}; sleep inf",
    ],
)
def test_server_that_is_never_called_never_listens(script):
    assert not subject_of(script).pass_time(3600).ready


def test_request_before_the_server_is_called_is_refused():
    subject = subject_of(f"sleep 600; {HTTPD}", action="httpGet").pass_time(60)
    (message,) = failures(subject)
    assert message.endswith("dial tcp 10.244.0.7:8080: connect: connection refused")


def test_liveness_probe_restarts_a_server_that_is_called_too_late():
    subject = subject_of(
        "sleep 20; exec python -m http.server", probe="livenessProbe", image="python:3.12", port=8000
    )
    subject.pass_time(120)
    assert subject.status["containerStatuses"][0]["restartCount"] > 1


def test_server_after_a_program_that_is_not_simulated_may_listen():
    assert subject_of(f"prepare; {HTTPD}", image="example.com/app:1").pass_time(5).ready
