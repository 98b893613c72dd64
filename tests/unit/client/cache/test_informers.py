"""The informers of one process: sharing, resync, failures and metrics."""

import asyncio
import contextlib

import pytest
from msgspec.structs import replace

from mockube.apimachinery.randomness import SeededRandom
from mockube.client.cache.informer import Informers, InformerSettings
from mockube.client.cache.reflector import Reflector
from mockube.client.kinds import CONFIG_MAPS
from mockube.client.metrics.informers import InformerMetrics
from mockube.client.metrics.requests import ClientMetrics
from mockube.client.resources import Resource, row, whole_tree
from mockube.client.sender import FixedToken, Sender
from mockube.client.service_accounts import SharedIdentity
from mockube.client.verbs import Client
from mockube.component_base.metrics import MetricsRegistry
from mockube.component_base.supervision import first_cause
from tests.support.controllers.informers import RecordedChanges
from tests.support.event_loop import until, yield_to_loop
from tests.support.metric_samples import sample_value
from tests.support.stores.scripted_transport import ScriptedStream, ScriptedTransport

WEBSITES = row("example.com/v1", "websites", "Website")


def tree(name, version):
    return {"metadata": {"namespace": "default", "name": name, "resourceVersion": str(version)}}


def initial_events_end(version):
    annotations = {"k8s.io/initial-events-end": "true"}
    return {"metadata": {"resourceVersion": str(version), "annotations": annotations}}


@pytest.fixture
def metrics():
    return InformerMetrics(MetricsRegistry())


@pytest.fixture
def transport():
    return ScriptedTransport()


@pytest.fixture
def informers(transport, clock, metrics):
    sender = Sender(
        transport=transport,
        credential=FixedToken(),
        agent="manager",
        limit=None,
        clock=clock,
        metrics=ClientMetrics(MetricsRegistry()),
    )
    client = Client(sender, SharedIdentity(sender=sender, rate=None))
    settings = InformerSettings(
        clock=clock,
        random=SeededRandom(),
        metrics=metrics,
        min_resync_period=100.0,
    )
    return Informers(client, settings, [WEBSITES])


@contextlib.asynccontextmanager
async def running_informers(informers):
    running = asyncio.create_task(informers.run())
    try:
        await informers.wait_synced()
        yield
    finally:
        running.cancel()
        await asyncio.wait([running])


def value(metrics, name, **labels):
    return sample_value(metrics.registry, name, {"name": "configmaps", **labels})


async def test_informer_of_resource_is_shared(informers):
    assert informers.of(CONFIG_MAPS) is informers.of(CONFIG_MAPS)
    assert informers.caches.of(CONFIG_MAPS) is informers.of(CONFIG_MAPS).lister


async def test_informers_resync_periodically(informers, transport, clock):
    transport.will_stream(
        ScriptedStream().send_event("ADDED", tree("a", 1)).send_event("BOOKMARK", initial_events_end(2))
    )
    informer = informers.of(CONFIG_MAPS)
    async with running_informers(informers):
        changes = RecordedChanges(informer)
        assert 100.0 <= clock.next_due() < 200.0
        for expected in (["+a", "~a"], ["+a", "~a", "~a"]):
            clock.advance(clock.next_due())
            await until(lambda expected=expected: changes.words == expected)
            await yield_to_loop(3)


async def test_failed_task_ends_all_informers(informers, transport):
    """An error of a task ends all informers, unlike an error of one object, and names the task."""
    stream = transport.will_stream(ScriptedStream().send_event("BOOKMARK", initial_events_end(2)))
    informers.of(CONFIG_MAPS)
    running = asyncio.create_task(informers.run())
    await informers.wait_synced()
    stream.feed("not bytes")
    with pytest.raises(ExceptionGroup) as caught:
        await running
    assert caught.group_contains(TypeError)
    assert "in the task reflector of configmaps" in first_cause(caught.value).__notes__


async def test_reflector_that_returns_ends_all_informers(informers, monkeypatch):
    """Its cache would receive no more events, and the resyncs would continue."""

    async def return_at_once(_reflector):
        return

    monkeypatch.setattr(Reflector, "run", return_at_once)
    informers.of(CONFIG_MAPS)
    running = asyncio.create_task(informers.run())
    await yield_to_loop(10)
    assert running.done()
    with pytest.raises(ExceptionGroup) as caught:
        await running
    assert "it returned" in str(first_cause(caught.value))


async def test_failed_handler_does_not_end_informers(informers, transport):
    stream = transport.will_stream(ScriptedStream().send_event("BOOKMARK", initial_events_end(2)))
    informer = informers.of(CONFIG_MAPS)
    informer.add_handler(lambda _: 1 / 0)
    changes = RecordedChanges(informer)
    async with running_informers(informers):
        stream.send_event("ADDED", tree("a", 3)).send_event("ADDED", tree("b", 4))
        await until(lambda: changes.words == ["+a", "+b"])


@pytest.mark.parametrize("bad", [{"what": "no object"}, {"metadata": []}, {"metadata": {"name": "x"}}, []])
async def test_event_without_metadata_does_not_end_informers(informers, transport, clock, bad):
    stream = transport.will_stream(ScriptedStream().send_event("BOOKMARK", initial_events_end(2)))
    changes = RecordedChanges(informers.of(CONFIG_MAPS))
    async with running_informers(informers):
        stream.send_event("ADDED", bad)
        transport.will_stream(
            ScriptedStream().send_event("ADDED", tree("a", 3)).send_event("BOOKMARK", initial_events_end(4))
        )
        await yield_to_loop(10)
        clock.advance(clock.next_due())
        clock.advance(10.0)
        await until(lambda: changes.words == ["+a"])


async def test_informer_metrics_are_counted(informers, transport, clock, metrics):
    stream = (
        ScriptedStream()
        .send_event("ADDED", tree("a", 1))
        .send_event("ADDED", tree("b", 2))
        .send_event("BOOKMARK", initial_events_end(2))
    )
    transport.will_stream(stream)
    informer = informers.of(CONFIG_MAPS)
    async with running_informers(informers):
        waits = informer.wait_for_revision(7)
        clock.advance(0.5)
        stream.send_event("DELETED", tree("a", 7))
        await waits
    assert value(metrics, "reflector_lists_total") == 1
    assert value(metrics, "reflector_watches_total") == 1
    assert value(metrics, "reflector_short_watches_total") == 0
    assert value(metrics, "reflector_last_resource_version") == 7
    assert value(metrics, "informer_objects") == 1
    assert value(metrics, "informer_events_total", type="ADDED") == 2
    assert value(metrics, "informer_events_total", type="DELETED") == 1
    assert value(metrics, "informer_lag_seconds_sum") == 0.5


async def test_removed_informer_has_no_metrics(informers, metrics):
    informers.of(CONFIG_MAPS)
    assert value(metrics, "informer_objects") == 0
    informers.forget(CONFIG_MAPS)
    assert value(metrics, "informer_objects") is None


async def test_removed_informer_ends_its_watch(informers, transport):
    transport.will_stream(ScriptedStream().send_event("BOOKMARK", initial_events_end(2)))
    informers.of(CONFIG_MAPS)
    async with running_informers(informers):
        informers.forget(CONFIG_MAPS)
        await yield_to_loop(5)
        assert not {task.get_name() for task in asyncio.all_tasks()} & {
            "informer of configmaps",
            "reflector of configmaps",
        }


def discovered(version="v1"):
    return Resource(
        group="example.com",
        version=version,
        plural="widgets",
        kind="Widget",
        namespaced=True,
        view=whole_tree,
        metadata_only=True,
    )


def test_discovered_row_is_replaced_when_its_version_changes(informers):
    row = informers.row(discovered())
    assert informers.row(discovered()) is row
    informers.of(row)
    newer = informers.row(discovered("v2"))
    assert (newer.version, informers.find(row)) == ("v2", None)


def test_stopped_row_has_no_informer(informers):
    row = informers.row(discovered())
    assert informers.find(row) is informers.of(row)
    informers.stop(row)
    informers.stop(row)
    assert informers.find(row) is None
    assert informers.row(discovered()) is not row


def test_known_row_is_not_stopped(informers):
    """Controllers that do not follow discovery may watch it."""
    informer = informers.of(CONFIG_MAPS)
    informers.stop(CONFIG_MAPS)
    assert informers.find(CONFIG_MAPS) is informer


def test_row_of_pack_is_known_and_not_stopped(informers):
    informer = informers.of(WEBSITES)
    assert informers.row(replace(WEBSITES, version="v1beta1", metadata_only=True)) is WEBSITES
    informers.stop(WEBSITES)
    assert informers.find(WEBSITES) is informer


async def test_parts_of_objects_are_shared(informers, transport):
    """Those of initial objects and of later ones."""
    stream = ScriptedStream().send_event("ADDED", tree("c1", 1) | {"data": {"a": "b"}})
    transport.will_stream(stream.send_event("BOOKMARK", initial_events_end(1)))
    lister = informers.of(CONFIG_MAPS).lister
    async with running_informers(informers):
        stream.send_event("ADDED", tree("c2", 2) | {"data": {"a": "b"}})
        await until(lambda: len(lister) == 2)
        first, second = lister.all()
        assert first["data"] is second["data"]
