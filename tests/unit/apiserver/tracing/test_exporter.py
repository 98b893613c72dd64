"""The exporter with a collector in the same process, and with ports where nothing, or nothing that answers, listens."""

import logging
import socket
import threading

import pytest

from mockube.apimachinery.randomness import SeededRandom
from mockube.apiserver.tracing import exporter as exporting
from mockube.apiserver.tracing.exporter import Limits, SpanExporter, limits_of
from mockube.apiserver.tracing.tracer import Tracer
from mockube.component_base.clock import RealClock
from tests.support.stores.etcd_server import free_port
from tests.support.tracing.collector import Collector

NEVER = 3600.0
QUICK = Limits(seconds=0.01)


def make_span(exporter, name="x"):
    tracer = Tracer(exporter.add, clock=RealClock(), random=SeededRandom(), samples_per_million=1_000_000)
    return tracer.root(name, scope="s")


def add(exporter, count):
    for number in range(count):
        make_span(exporter, str(number)).end()


class Lines(logging.Handler):
    """The lines of the exporter's log, which its thread writes."""

    def __init__(self):
        super().__init__()
        self.lines = []
        self._changed = threading.Condition()

    def emit(self, record):
        with self._changed:
            self.lines.append(record.getMessage())
            self._changed.notify_all()

    def wait(self, count):
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.lines) >= count, 30), self.lines
        return self.lines


@pytest.fixture
def log():
    lines, logger = Lines(), logging.getLogger("mockube.apiserver.tracing.exporter")
    logger.addHandler(lines)
    yield lines
    logger.removeHandler(lines)


async def test_spans_that_wait_are_exported_at_the_end():
    with Collector() as collector:
        exporter = SpanExporter(collector.endpoint, {"service.name": "a"}, Limits(seconds=NEVER))
        exporter.start()
        add(exporter, 3)
        await exporter.close()
        assert [span.name for span in collector.spans] == ["0", "1", "2"]
        assert collector.spans[0].resource == {"service.name": "a"}


async def test_full_batch_is_exported_at_once(log):
    with Collector() as collector:
        exporter = SpanExporter(collector.endpoint, {}, Limits(batch=2, seconds=NEVER))
        exporter.start()
        add(exporter, 4)
        collector.wait_until(lambda span: span.name == "3")
        assert max(collector.batches) == 2
        await exporter.close()
    assert log.lines == []


async def test_spans_beyond_limit_are_dropped_and_logged_once(log):
    with Collector() as collector:
        exporter = SpanExporter(collector.endpoint, {}, Limits(queue=2, batch=2, seconds=NEVER))
        add(exporter, 5)
        exporter.start()
        await exporter.close()
        assert [span.name for span in collector.spans] == ["0", "1"]
    assert log.lines == [
        "Traces: spans are dropped, because 2 wait to be exported",
        f"Traces: 3 spans were not exported to {collector.endpoint}",
    ]


async def test_dead_collector_is_logged_once(log):
    endpoint = f"127.0.0.1:{free_port()}"
    exporter = SpanExporter(endpoint, {}, QUICK)
    exporter.start()
    add(exporter, 3)
    (line,) = log.wait(1)
    assert line.startswith(f"Traces: the collector {endpoint} does not receive spans: UNAVAILABLE: ")
    assert line.endswith(". Until it does, at most 2048 spans wait, others are dropped")
    await exporter.close()
    assert log.lines[1:] == [f"Traces: 3 spans were not exported to {endpoint}"]


async def test_collector_that_starts_later_receives_what_waited(log):
    port = free_port()
    exporter = SpanExporter(f"127.0.0.1:{port}", {}, Limits(seconds=0.01, retry_seconds=0.02))
    exporter.start()
    add(exporter, 3)
    log.wait(1)
    with Collector(port) as collector:
        log.wait(2)
        assert [span.name for span in collector.spans] == ["0", "1", "2"]
        await exporter.close()
    assert log.lines[1:] == [f"Traces: the collector 127.0.0.1:{port} receives spans again"]


@pytest.mark.timeout(15)
async def test_collector_that_never_answers_delays_end_by_limit(log, monkeypatch):
    monkeypatch.setattr(exporting, "CALL_SECONDS", NEVER)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        exporter = SpanExporter(
            f"127.0.0.1:{silent.getsockname()[1]}", {}, Limits(seconds=NEVER, flush_seconds=0.05)
        )
        exporter.start()
        add(exporter, 1)
        await exporter.close()
    assert log.lines[-1].startswith("Traces: 1 spans were not exported")


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, Limits()),
        ({"OTEL_BSP_SCHEDULE_DELAY": "100"}, Limits(seconds=0.1)),
        ({"OTEL_BSP_MAX_QUEUE_SIZE": "10"}, Limits(queue=10, batch=10)),
        ({"OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "10"}, Limits(batch=10)),
        ({"OTEL_BSP_SCHEDULE_DELAY": "soon", "OTEL_BSP_MAX_QUEUE_SIZE": "-1"}, Limits()),
        ({"OTEL_BSP_SCHEDULE_DELAY": "9" * 5000}, Limits()),
    ],
)
def test_environment_sets_limits(environment, expected):
    assert limits_of(environment) == expected
