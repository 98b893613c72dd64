"""Event recorder: it never blocks its caller, retries while the server is away, and has a bounded queue."""

import asyncio
import itertools

import pytest

from mockube.apimachinery import meta
from mockube.apimachinery.randomness import SeededRandom
from mockube.apimachinery.schema import minors
from mockube.apimachinery.status import Forbidden, NotFound
from mockube.client.events.recorder import (
    BURST,
    BUSY_RATE,
    MAX_ATTEMPTS,
    QUEUE_LENGTH,
    QUIET_SECONDS,
    EventWriter,
    Recorders,
)
from mockube.client.wire import OutcomeUnknown, Unreachable
from tests.support.event_loop import until, yield_to_loop
from tests.support.metric_samples import sample_value
from tests.support.recorded.recorded_client import RecordedClient

WEB = {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "default", "name": "web", "uid": "u"}}


@pytest.fixture
def client():
    return RecordedClient()


@pytest.fixture
def writer(clock, metrics):
    return EventWriter(clock, SeededRandom(), metrics.registry)


@pytest.fixture
async def running_writer(writer):
    task = asyncio.create_task(writer.run())
    yield writer
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def recorder(writer, client):
    return Recorders(writer=writer, client=client, minor=minors.NEWEST).of("kubelet")


def dropped_count(metrics):
    return sample_value(metrics.registry, "mockube_events_dropped_total")


def verbs(client):
    return [verb for verb, *_ in client.calls]


async def test_recorded_event_is_created_then_patched(running_writer, recorder, client):
    recorder.record(WEB, "Normal", "Started", "Started container")
    recorder.record(WEB, "Normal", "Started", "Started container")
    await until(lambda: running_writer.is_idle)
    assert verbs(client) == ["create", "patch"]
    name, (kind, _, body) = client.calls[1][2:]
    assert (kind, body["count"]) == ("strategic", 2)
    assert name == client.calls[0][2]


@pytest.mark.parametrize(("minor", "creations"), [("1.31", 1), ("1.32", 2)])
async def test_rate_limit_of_minor_applies(running_writer, writer, client, minor, creations):
    recorder = Recorders(writer=writer, client=client, minor=minor).of("kubelet")
    for _ in range(30):
        recorder.record(WEB, "Warning", "Unhealthy", "a")
    recorder.record(WEB, "Normal", "Started", "b")
    await until(lambda: running_writer.is_idle)
    assert verbs(client).count("create") == creations


async def test_simultaneous_events_have_different_names(running_writer, recorder, client):
    recorder.record(WEB, "Normal", "Pulled", "a")
    recorder.record(WEB, "Normal", "Started", "b")
    await until(lambda: running_writer.is_idle)
    assert len({name for _, _, name, _ in client.calls}) == 2


async def test_expired_event_is_created_again(running_writer, recorder, client):
    client.refusals["patch", "*"] = NotFound("expired")
    for _ in range(2):
        recorder.record(WEB, "Normal", "Started", "a")
    await until(lambda: running_writer.is_idle)
    assert verbs(client) == ["create", "patch", "create"]
    assert client.calls[2][-1]["count"] == 2


async def test_refused_event_is_dropped_without_affecting_next(running_writer, recorder, client, metrics):
    client.refusals["create", "*"] = Forbidden("the namespace ends")
    recorder.record(WEB, "Normal", "Started", "a")
    recorder.record(WEB, "Normal", "Killing", "b")
    await until(lambda: running_writer.is_idle)
    assert verbs(client) == ["create", "create"]
    assert dropped_count(metrics) == 0


@pytest.mark.parametrize("error", [Unreachable("away"), OutcomeUnknown("cut")], ids=["away", "cut"])
async def test_event_is_retried_while_server_is_unavailable(running_writer, recorder, client, clock, error):
    client.refusals["create", "*"] = error
    recorder.record(WEB, "Normal", "Started", "a")
    await until(lambda: len(client.calls) == 1)
    await yield_to_loop(3)
    assert clock.next_due() < 10
    clock.advance(clock.next_due())
    await until(lambda: len(client.calls) == 2)
    client.refusals.clear()
    await yield_to_loop(3)
    clock.advance(10)
    await until(lambda: running_writer.is_idle)
    assert len(client.calls) == 3


async def test_event_retries_are_limited(running_writer, recorder, client, clock, metrics):
    client.refusals["create", "*"] = Unreachable("away")
    recorder.record(WEB, "Normal", "Started", "a")
    for tries in range(1, MAX_ATTEMPTS + 1):
        await until(lambda tries=tries: len(client.calls) == tries)
        await yield_to_loop(3)
        clock.advance(10)
    await until(lambda: running_writer.is_idle)
    assert (len(client.calls), dropped_count(metrics)) == (MAX_ATTEMPTS, 1)


async def test_low_priority_events_are_rate_limited(running_writer, writer, client, clock):
    recorder = Recorders(writer=writer, client=client, minor=minors.NEWEST).of("kubelet", can_wait=True)
    numbers = itertools.count()

    def record():
        name = f"web-{next(numbers)}"
        recorder.record({**WEB, "metadata": {**WEB["metadata"], "name": name}}, "Normal", "Started", "a")

    async def record_for(seconds):
        for _ in range(int(seconds / 0.1)):
            record()
            for _ in range(20):
                await yield_to_loop(5)
                clock.advance(0.005)

    for _ in range(2 * BURST):
        record()
    await until(lambda: len(client.calls) == BURST)
    await yield_to_loop(20)
    assert len(client.calls) == BURST
    await record_for(1)
    assert BURST + 0.7 * BUSY_RATE <= len(client.calls) <= BURST + BUSY_RATE + 1
    clock.advance(QUIET_SECONDS)
    everything = next(numbers)
    await until(lambda: len(client.calls) == everything)


async def test_events_beyond_queue_are_dropped_and_counted(writer, recorder, metrics):
    for _ in range(QUEUE_LENGTH + 3):
        recorder.record(WEB, "Normal", "Started", "a")
    assert dropped_count(metrics) == 3


async def test_scheduler_writes_events_v1(running_writer, writer, client, clock):
    recorder = Recorders(writer=writer, client=client, minor=minors.NEWEST).series_of(
        "default-scheduler", "host"
    )
    for _ in range(3):
        recorder.record(WEB, "Warning", "FailedScheduling", "no", action="Scheduling")
    await until(lambda: running_writer.is_idle)
    assert [(verb, plural) for verb, plural, *_ in client.calls] == [
        ("create", "events"),
        ("patch", "events"),
    ]
    assert meta.api_version(client.calls[0][-1]) == "events.k8s.io/v1"
    clock.advance(360)
    await yield_to_loop(5)
    clock.advance(360)
    await until(lambda: len(client.calls) == 3)
    assert client.calls[2][-1][-1]["series"]["count"] == 3


async def test_event_of_a_kubelet_about_a_mirror_pod_has_the_uid_of_the_static_pod(
    running_writer, recorder, client
):
    mirror = {"annotations": {"kubernetes.io/config.mirror": "hash"}}
    recorder.record_on("node-1", {**WEB, "metadata": {**WEB["metadata"], **mirror}}, "Normal", "Started", "a")
    await until(lambda: client.calls)
    assert client.calls[0][-1]["involvedObject"]["uid"] == "hash"
