"""Reflector against a scripted server: after any error the cache matches the server's objects."""

import asyncio
import contextlib
import logging
from types import SimpleNamespace

import orjson
import pytest

from mockube.client.cache.informer import Informer
from mockube.client.cache.reflector import TIMEOUT_GRACE, Reflector
from mockube.client.kinds import CONFIG_MAPS
from mockube.client.metrics.informers import InformerStats
from mockube.client.metrics.requests import ClientMetrics
from mockube.client.sender import FixedToken, Sender
from mockube.client.service_accounts import SharedIdentity
from mockube.client.verbs import Client
from mockube.client.wire import ConnectTimeout, Unreachable
from mockube.component_base.clock import SteppedClock
from mockube.component_base.metrics import MetricsRegistry
from tests.support.controllers.informers import RecordedChanges
from tests.support.event_loop import until
from tests.support.stores.scripted_transport import ScriptedStream, ScriptedTransport, answer, problem

PATH = "GET /api/v1/configmaps"
FIRST = f"{PATH}?watch=true&allowWatchBookmarks=true&timeoutSeconds=300"
INITIAL = f"{FIRST}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
INVALID = {"kind": "Status", "code": 422, "reason": "Invalid", "message": "sendInitialEvents is forbidden"}
FAILED = {
    "kind": "Status",
    "code": 500,
    "reason": "InternalError",
    "message": "RequestWatchProgress is disabled",
}
EXPIRED = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
GONE = {**EXPIRED, "reason": "Gone"}
BUSY = {"kind": "Status", "code": 429, "reason": "TooManyRequests", "message": "busy"}


class ZeroRandom:
    """A random source that returns zero bytes, so that no jitter is added."""

    def bytes(self, count):
        return bytes(count)


def watch_path(revision):
    return f"{FIRST}&resourceVersion={revision}"


def tree(name, version):
    metadata = {"namespace": "default", "name": name, "uid": name, "resourceVersion": str(version)}
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}


def bookmark(version, *, end=False):
    annotations = {"k8s.io/initial-events-end": "true"} if end else {}
    metadata = {"resourceVersion": str(version), "annotations": annotations}
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}


def page(*trees, revision, token=""):
    metadata = {"resourceVersion": str(revision), "continue": token}
    return answer(body={"metadata": metadata, "items": trees})


def initial_list(*trees, revision):
    """Return a stream that begins with the existing objects and the bookmark after them."""
    stream = ScriptedStream()
    for one in trees:
        stream.send_event("ADDED", one)
    return stream.send_event("BOOKMARK", bookmark(revision, end=True))


@contextlib.asynccontextmanager
async def running_reflector(transport):
    """Run a reflector with its informer and the received changes, on a stepped clock."""
    clock, counts = SteppedClock(), InformerStats()
    sender = Sender(
        transport=transport,
        credential=FixedToken(),
        agent="manager",
        limit=None,
        clock=clock,
        metrics=ClientMetrics(MetricsRegistry()),
    )
    client = Client(sender, SharedIdentity(sender=sender, rate=None))
    informer = Informer(CONFIG_MAPS, clock=clock, counts=counts)
    reflector = Reflector(client, CONFIG_MAPS, informer, counts, clock=clock, random=ZeroRandom())
    running = asyncio.create_task(reflector.run())
    try:
        yield SimpleNamespace(
            informer=informer, changes=RecordedChanges(informer), clock=clock, counts=counts, running=running
        )
    finally:
        running.cancel()
        await asyncio.wait([running])


@pytest.fixture
def transport():
    return ScriptedTransport()


async def sleep_until_retry(scene, seconds):
    """Wait until the reflector sleeps for this many seconds, and advance the clock by them."""
    await until(lambda: scene.running.done() or scene.clock.next_due() is not None)
    assert not scene.running.done(), "the reflector failed"
    assert scene.clock.next_due() == pytest.approx(seconds)
    scene.clock.advance(seconds)


async def test_watch_list_delivers_existing_objects(transport):
    stream = transport.will_stream(initial_list(tree("a", 3), tree("b", 4), revision=7))
    async with running_reflector(transport) as scene:
        await scene.informer.wait_synced()
        assert scene.changes.words == ["+a", "+b"]
        assert scene.informer.revision == 7
        stream.send_event("MODIFIED", tree("a", 8)).send_event("DELETED", tree("b", 9))
        await scene.informer.wait_for_revision(9)
    assert scene.changes.words[2:] == ["~a", "-b"]
    assert transport.targets == [INITIAL]


async def test_watch_list_is_delivered_only_when_complete(transport):
    stream = transport.will_stream(ScriptedStream().send_event("ADDED", tree("a", 3)))
    async with running_reflector(transport) as scene:
        await until(lambda: scene.counts.events == 1)
        assert scene.changes.words == []
        stream.send_event("BOOKMARK", bookmark(2)).send_event("BOOKMARK", bookmark(7, end=True))
        await scene.informer.wait_synced()
        assert scene.changes.words == ["+a"]


async def test_server_without_watch_list_is_listed(transport):
    transport.will_stream(ScriptedStream(422, INVALID), ScriptedStream().send_event("ADDED", tree("b", 8)))
    transport.will(page(tree("a", 3), revision=7))
    async with running_reflector(transport) as scene:
        await scene.informer.wait_for_revision(8)
    assert scene.changes.words == ["+a", "+b"]
    assert transport.targets == [INITIAL, f"{PATH}?limit=500", watch_path(7)]


async def test_watch_list_is_not_requested_again_after_refusal(transport):
    forgotten = ScriptedStream().send_event("ERROR", EXPIRED)
    transport.will_stream(ScriptedStream(422, INVALID), forgotten, ScriptedStream())
    transport.will(page(revision=7), page(tree("a", 8), revision=9))
    async with running_reflector(transport) as scene:
        await sleep_until_retry(scene, 0.8)
        await until(lambda: not transport.streams)
        assert scene.informer.revision == 9
    assert transport.targets[2:] == [watch_path(7), f"{PATH}?limit=500", watch_path(9)]


async def test_server_error_on_watch_list_falls_back_to_list_once(transport):
    forgotten = ScriptedStream().send_event("ERROR", EXPIRED)
    transport.will_stream(ScriptedStream(500, FAILED), forgotten, initial_list(tree("a", 8), revision=9))
    transport.will(page(tree("a", 3), revision=7))
    async with running_reflector(transport) as scene:
        await sleep_until_retry(scene, 0.8)
        await scene.informer.wait_for_revision(9)
    assert scene.changes.words == ["+a", "~a"]
    assert transport.targets == [INITIAL, f"{PATH}?limit=500", watch_path(7), INITIAL]


async def test_list_is_read_in_pages(transport):
    transport.will_stream(ScriptedStream(422, INVALID), ScriptedStream())
    transport.will(page(tree("a", 3), revision=7, token="more"), page(tree("b", 4), revision=7))
    async with running_reflector(transport) as scene:
        await scene.informer.wait_synced()
    assert scene.changes.words == ["+a", "+b"]
    assert transport.targets[2] == f"{PATH}?limit=500&continue=more"


async def test_expired_page_restarts_as_full_list(transport):
    transport.will_stream(ScriptedStream(422, INVALID), ScriptedStream())
    transport.will(
        page(tree("a", 3), tree("gone", 2), revision=7, token="more"),
        problem(410, "Expired"),
        page(tree("a", 3), tree("b", 8), revision=9),
    )
    async with running_reflector(transport) as scene:
        await scene.informer.wait_synced()
    assert scene.changes.words == ["+a", "+b"]
    assert transport.targets[3] == PATH


async def test_ended_watch_resumes_at_its_revision(transport):
    first = transport.will_stream(initial_list(revision=7))
    async with running_reflector(transport) as scene:
        await scene.informer.wait_synced()
        second = transport.will_stream(ScriptedStream())
        first.send_event("ADDED", tree("a", 8)).cut()
        second.send_event("ADDED", tree("b", 9))
        await scene.informer.wait_for_revision(9)
    assert scene.changes.words == ["+a", "+b"]
    assert transport.targets == [INITIAL, watch_path(8)]


async def test_ended_watch_resumes_at_bookmark(transport):
    first = transport.will_stream(initial_list(revision=7))
    async with running_reflector(transport) as scene:
        await scene.informer.wait_synced()
        second = transport.will_stream(ScriptedStream())
        first.send_event("BOOKMARK", bookmark(20)).cut()
        second.send_event("ADDED", tree("b", 21))
        await scene.informer.wait_for_revision(21)
    assert transport.targets == [INITIAL, watch_path(20)]


async def test_truncated_event_is_received_again(transport):
    first = transport.will_stream(initial_list(revision=7))
    async with running_reflector(transport) as scene:
        await scene.informer.wait_synced()
        second = transport.will_stream(ScriptedStream())
        line = orjson.dumps({"type": "ADDED", "object": tree("a", 8)}) + b"\n"
        first.send_event("ADDED", tree("b", 8)).feed(line[:20]).cut()
        second.feed(line[:20]).feed(line[20:])
        await until(lambda: len(scene.changes.words) == 2)
    assert scene.changes.words == ["+b", "+a"]


async def test_interrupted_watch_list_is_restarted(transport):
    cut = ScriptedStream().send_event("ADDED", tree("a", 3)).cut()
    transport.will_stream(cut, initial_list(tree("b", 4), revision=7))
    async with running_reflector(transport) as scene:
        await sleep_until_retry(scene, 0.8)
        await scene.informer.wait_synced()
    assert scene.changes.words == ["+b"]
    assert transport.targets == [INITIAL, INITIAL]


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda: ScriptedStream(410, EXPIRED), id="as the answer"),
        pytest.param(lambda: ScriptedStream().send_event("ERROR", EXPIRED), id="in the stream"),
        pytest.param(lambda: ScriptedStream().send_event("ERROR", GONE), id="gone, in the stream"),
    ],
)
async def test_expired_watch_leads_to_relist(transport, end):
    first = transport.will_stream(initial_list(tree("a", 3), tree("b", 4), revision=7))
    async with running_reflector(transport) as scene:
        await scene.informer.wait_synced()
        transport.will_stream(end(), initial_list(tree("b", 4), tree("c", 80), revision=90))
        first.send_event("BOOKMARK", bookmark(8)).cut()
        await sleep_until_retry(scene, 0.8)
        await scene.informer.wait_for_revision(90)
    assert scene.changes.words[2:] == ["-a", "+c"]
    assert transport.targets == [INITIAL, watch_path(8), INITIAL]


async def test_restarted_server_may_have_other_history(transport):
    first = transport.will_stream(initial_list(tree("a", 3), revision=70))
    async with running_reflector(transport) as scene:
        await scene.informer.wait_synced()
        waits = scene.informer.wait_for_revision(100)
        transport.will_stream(Unreachable("refused"), Unreachable("refused"), initial_list(revision=5))
        first.send_event("BOOKMARK", bookmark(71)).cut()
        await sleep_until_retry(scene, 0.8)
        await sleep_until_retry(scene, 1.6)
        await waits
        assert scene.informer.revision == 5
    assert scene.changes.words == ["+a", "-a"]


async def test_server_that_is_too_busy_for_connection_causes_no_list(transport):
    """A list of every kind would keep it busy."""
    first = transport.will_stream(initial_list(tree("a", 3), revision=7))
    async with running_reflector(transport) as scene:
        await scene.informer.wait_synced()
        resumed = transport.will_stream(ConnectTimeout("busy"), ScriptedStream())[1]
        first.send_event("BOOKMARK", bookmark(8)).cut()
        await sleep_until_retry(scene, 0.8)
        resumed.send_event("BOOKMARK", bookmark(9))
        await scene.informer.wait_for_revision(9)
    assert transport.targets == [INITIAL, watch_path(8), watch_path(8)]


async def test_server_whose_revisions_are_smaller_has_other_history(transport):
    message = "Too large resource version: 8, current: 3"
    details = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}
    too_large = {"kind": "Status", "code": 504, "reason": "Timeout", "message": message, "details": details}
    first = transport.will_stream(initial_list(tree("a", 7), revision=7))
    async with running_reflector(transport) as scene:
        await scene.informer.wait_synced()
        waits = scene.informer.wait_for_revision(100)
        transport.will_stream(ScriptedStream(504, too_large), initial_list(revision=3))
        first.send_event("BOOKMARK", bookmark(8)).cut()
        await sleep_until_retry(scene, 0.8)
        await waits
    assert scene.changes.words == ["+a", "-a"]


async def test_other_errors_back_off_and_keep_cache(transport):
    busy = ScriptedStream(500, {"kind": "Status", "code": 500, "reason": "InternalError", "message": "oh"})
    first = transport.will_stream(initial_list(tree("a", 3), revision=7))
    async with running_reflector(transport) as scene:
        await scene.informer.wait_synced()
        second = transport.will_stream(busy, ScriptedStream())[1]
        first.send_event("BOOKMARK", bookmark(8)).cut()
        await sleep_until_retry(scene, 0.8)
        second.send_event("BOOKMARK", bookmark(9))
        await scene.informer.wait_for_revision(9)
    assert transport.targets == [INITIAL, watch_path(8), watch_path(8)]


async def test_watch_that_ends_at_once_backs_off(transport):
    first = transport.will_stream(initial_list(revision=7))
    async with running_reflector(transport) as scene:
        await scene.informer.wait_synced()
        transport.will_stream(ScriptedStream().cut(), ScriptedStream())
        first.cut()
        await sleep_until_retry(scene, 0.8)
        await until(lambda: not transport.streams)
    assert transport.targets == [INITIAL, watch_path(7), watch_path(7)]
    assert scene.counts.short_watches.value == 1


async def test_reflector_waits_for_unreachable_server(transport):
    transport.will_stream(*[Unreachable("refused")] * 3, initial_list(tree("a", 3), revision=7))
    async with running_reflector(transport) as scene:
        for seconds in (0.8, 1.6, 3.2):
            await sleep_until_retry(scene, seconds)
        await scene.informer.wait_synced()
    assert scene.changes.words == ["+a"]


@pytest.mark.parametrize("line", [b"<html>\n", b"{}\n", b"[]\n", b'{"type":"ADDED","object":{}}\n'])
async def test_malformed_event_counts_as_broken_connection(transport, line):
    first = transport.will_stream(initial_list(revision=7))
    async with running_reflector(transport) as scene:
        await scene.informer.wait_synced()
        transport.will_stream(initial_list(tree("a", 8), revision=9))
        first.feed(line)
        await sleep_until_retry(scene, 0.8)
        await scene.informer.wait_for_revision(9)
    assert scene.changes.words == ["+a"]


async def test_every_failure_is_logged(transport, caplog):
    transport.will_stream(Unreachable("connection refused"), initial_list(revision=7))
    with caplog.at_level(logging.WARNING):
        async with running_reflector(transport) as scene:
            await sleep_until_retry(scene, 0.8)
            await scene.informer.wait_synced()
    assert caplog.messages == ["watching configmaps: Unreachable: connection refused"]


async def test_unserved_kind_is_logged_once(transport, caplog):
    message = "the server could not find the requested resource"
    status = {"kind": "Status", "code": 404, "reason": "NotFound", "message": message}
    # Each round is a watch, and then a list as its replacement.
    transport.will_stream(ScriptedStream(404, status), ScriptedStream(404, status), initial_list(revision=7))
    transport.will(*[problem(404, "NotFound", message)] * 2)
    with caplog.at_level(logging.INFO):
        async with running_reflector(transport) as scene:
            await sleep_until_retry(scene, 0.8)
            await sleep_until_retry(scene, 1.6)
            await scene.informer.wait_synced()
    assert caplog.messages == ["the server does not serve configmaps; retrying"]


async def test_failed_handler_does_not_end_reflector(transport):
    stream = transport.will_stream(initial_list(revision=7))
    async with running_reflector(transport) as scene:
        await scene.informer.wait_synced()
        scene.informer.add_handler(lambda _: 1 / 0)
        stream.send_event("ADDED", tree("a", 8)).send_event("ADDED", tree("b", 9))
        await scene.informer.wait_for_revision(9)
        assert not scene.running.done()
    assert scene.changes.words == ["+a", "+b"]


async def test_program_error_ends_reflector(transport):
    stream = transport.will_stream(initial_list(revision=7))
    async with running_reflector(transport) as scene:
        await scene.informer.wait_synced()
        stream.feed("not bytes")
        with pytest.raises(TypeError):
            await scene.running


async def test_watch_has_time_limit_beyond_that_of_server(transport):
    transport.will_stream(initial_list(revision=7))
    async with running_reflector(transport) as scene:
        await scene.informer.wait_synced()
    (request, _) = transport.sent[0]
    assert request.timeout == 300 + TIMEOUT_GRACE


@pytest.mark.parametrize("refusal", [BUSY, EXPIRED, GONE], ids=lambda refusal: refusal["reason"])
async def test_watch_list_is_requested_again_after_temporary_error(transport, refusal):
    """Such an error does not show that the server has no such watches."""
    transport.will_stream(ScriptedStream(refusal["code"], refusal), initial_list(tree("a", 3), revision=7))
    async with running_reflector(transport) as scene:
        await sleep_until_retry(scene, 0.8)
        await scene.informer.wait_synced()
    assert transport.targets == [INITIAL, INITIAL]
