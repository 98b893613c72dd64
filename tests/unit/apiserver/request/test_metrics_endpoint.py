"""The formats of /metrics, and metrics of health checks."""

import pytest

from mockube.apiserver.request.health import HealthChecks, ping
from mockube.apiserver.request.metrics_endpoint import metrics_page, negotiate
from mockube.component_base.clock import SteppedClock
from mockube.component_base.metrics import MetricsRegistry, counter, histogram
from tests.support.server.handler_requests import request_of

MESSAGES = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
TEXT = "text/plain; version=0.0.4; charset=utf-8; escaping="


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", f"{TEXT}underscores"),
        ("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.3", f"{TEXT}underscores"),
        ("text/plain;version=1.0.0;escaping=allow-utf-8", f"{TEXT}allow-utf-8"),
        ("text/plain;escaping=x", f"{TEXT}underscores"),
        (MESSAGES, f"{MESSAGES.replace(';', '; ')}; escaping=underscores"),
        (f"text/plain,{MESSAGES}", f"{TEXT}underscores"),
        (MESSAGES.replace("delimited", "text"), f"{TEXT}underscores"),
    ],
)
def test_metrics_format_is_negotiated(accept, expected):
    assert negotiate(accept) == expected


async def test_protobuf_samples_are_length_delimited():
    registry = MetricsRegistry()
    registry.numbers(counter("asked_total", "How often.", "code")).add(2, "200")
    registry.distributions(histogram("seconds", "How long.", [1.0])).observe(0.5)
    page = metrics_page(registry, SteppedClock())
    answer = await page(request_of("GET", "/metrics", Accept=MESSAGES))
    message = (
        b"\x0a\x0basked_total\x12\x0aHow often.\x18\x00"
        b"\x22\x18\x0a\x0b\x0a\x04code\x12\x03200\x1a\x09\x09\x00\x00\x00\x00\x00\x00\x00\x40"
    )
    assert answer.body.startswith(bytes([len(message)]) + message)
    assert b"seconds" in answer.body
    assert answer.headers["Process-Start-Time-Unix"].isdigit()


async def test_health_check_results_are_counted():
    async def failing_check():
        return "broken"

    health = HealthChecks({"ping": ping, "etcd": failing_check}, SteppedClock())
    await health.pages["/livez"](request_of("GET", "/livez"))
    await health.pages["/livez"](request_of("GET", "/livez"))
    page = metrics_page(health.metrics, SteppedClock())
    lines = (await page(request_of("GET", "/metrics/slis"))).body.decode().splitlines()
    assert 'kubernetes_healthcheck{name="ping",type="livez"} 1' in lines
    assert 'kubernetes_healthchecks_total{name="etcd",status="error",type="livez"} 2' in lines
