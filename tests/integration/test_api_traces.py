"""Traces of a server: which requests are traced, what other servers receive, and what is exported at the end."""

import contextlib
import subprocess
import sys

import aiohttp
import pytest

from tests.integration import test_api_aggregation as aggregation
from tests.support.processes.process import ApiServerProcess, tls
from tests.support.server import apiserver
from tests.support.server.aggregated_server import THINGS, aggregated_server
from tests.support.server.webhook_server import MAP, PATH, VALIDATING, register, webhook_server
from tests.support.tracing.collector import Collector, write_configuration
from tools.packages import ROOT

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SAMPLED, NOT_SAMPLED = f"00-{TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}-00"


@pytest.fixture
def collector():
    with Collector() as collector:
        yield collector


@pytest.fixture
def traced(tmp_path, collector, monkeypatch):
    """Return a function that runs a server whose spans are exported at once."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")

    @contextlib.asynccontextmanager
    async def run(*flags, per_million=1_000_000):
        path = write_configuration(tmp_path, collector, samples_per_million=per_million)
        async with apiserver.running(f"--tracing-config-file={path}", *flags) as client:
            yield client

    return run


def requests_of(collector):
    return [(span.name, span.attributes["http.target"]) for span in collector.spans if span.kind == "SERVER"]


async def test_only_requests_of_sampled_traces_are_exported_without_rate(traced, collector):
    async with traced(per_million=0) as client:
        await client.get("/version")
        await client.get("/version?not", traceparent=NOT_SAMPLED)
        await client.get("/version?sampled", traceparent=SAMPLED)
    assert requests_of(collector) == [("GET", "/version?sampled")]


async def test_trace_of_privileged_user_is_continued(traced, collector):
    async with traced() as client:
        await client.get("/version", traceparent=SAMPLED)
        span = collector.wait_until(lambda span: span.kind == "SERVER" and span.trace_id == TRACE)
    assert (span.parent_id, span.linked) == (SPAN, [])


async def test_trace_of_other_user_is_linked(traced, collector):
    async with traced() as client:
        client.credentials = {"Authorization": "Bearer alice"}
        await client.get("/version?alice", traceparent=SAMPLED)
        span = collector.wait_until(lambda span: span.attributes.get("http.target") == "/version?alice")
    assert (span.parent_id, span.linked) == ("", [TRACE])
    assert span.trace_id != TRACE


async def test_request_of_privileged_user_without_trace_follows_authentication(traced, collector):
    async with traced() as client:
        await client.get("/version?new")
        span = collector.wait_until(lambda span: span.attributes.get("http.target") == "/version?new")
        authentication = collector.wait_until(lambda other: other.span_id == span.parent_id)
    assert (authentication.name, authentication.parent_id) == ("authentication", "")
    assert span.start == authentication.start


async def test_watch_with_initial_events_has_spans_until_these_are_sent(traced, collector):
    query = "watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
    async with traced() as client, client.watch(f"{PATH}?{query}", traceparent=SAMPLED) as events:
        await anext(events)
        spans = [
            collector.wait_until(lambda span, name=name: span.trace_id == TRACE and span.name == name)
            for name in ("cacher.Watch", "WatchServer.HandleHTTP", "WatchList")
        ]
        assert not [span for span in collector.spans if span.kind == "SERVER" and span.trace_id == TRACE]
    whole = spans[-1]
    assert [span.parent_id for span in spans[:2]] == [whole.span_id] * 2
    assert whole.attributes["verb"] == "WATCH"


async def test_webhook_receives_trace(traced, collector, tmp_path):
    async with webhook_server(tmp_path) as hooks, traced() as client:
        await register(client, VALIDATING, hooks.hook("ok"))
        await client.post(PATH, MAP, traceparent=SAMPLED, tracestate="a=b", baggage="k=v")
        span = collector.wait_until(lambda span: span.kind == "CLIENT")
    assert span.trace_id == TRACE
    assert hooks.headers[-1]["traceparent"] == f"00-{TRACE}-{span.span_id}-01"
    assert (hooks.headers[-1]["tracestate"], hooks.headers[-1]["baggage"]) == ("a=b", "k=v")


async def test_aggregated_server_receives_trace(traced, collector, tmp_path):
    async with aggregated_server(tmp_path) as other, traced(aggregation.service_flag(other)) as client:
        await aggregation.register(client, other)
        await aggregation.condition(client, "Passed")
        answer = await client.get(f"{THINGS}?x=1", traceparent=SAMPLED)
        span = collector.wait_until(lambda span: span.kind == "CLIENT" and span.trace_id == TRACE)
    received = dict(answer.body["headers"])["traceparent"]
    assert (span.name, received) == ("HTTP GET", f"00-{TRACE}-{span.span_id}-01")
    assert span.attributes["url.full"].endswith(f"{THINGS}?x=1")
    assert span.attributes["http.response.status_code"] == 200


async def test_failed_call_of_webhook_is_error(traced, collector, tmp_path):
    async with webhook_server(tmp_path) as hooks, traced() as client:
        await register(client, VALIDATING, hooks.hook("500"))
        assert (await client.post(PATH, MAP, traceparent=SAMPLED)).status == 500
        span = collector.wait_until(lambda span: span.kind == "CLIENT")
        request = collector.wait_until(lambda span: span.kind == "SERVER" and span.trace_id == TRACE)
    assert (span.status, span.attributes["http.response.status_code"]) == ("ERROR", 500)
    assert (request.status, request.attributes["http.response.status_code"]) == ("ERROR", 500)


async def test_long_texts_of_client_are_cut_off(traced, collector):
    long = "x" * 5000
    async with traced() as client:
        await client.get(f"{PATH}/{long}", traceparent=SAMPLED, User_Agent=long)
        collector.wait_until(lambda span: span.kind == "SERVER" and span.trace_id == TRACE)
    texts = [
        text
        for span in collector.spans
        if span.trace_id == TRACE
        for text in (span.name, *span.attributes.values())
        if isinstance(text, str)
    ]
    assert max(map(len, texts)) == 2048


async def test_page_of_list_at_revision_is_read_from_store(traced, collector):
    async with traced() as client:
        for name in "ab":
            await client.post(PATH, MAP | {"metadata": {"name": name}})
        page = (await client.get(f"{PATH}?limit=1")).body
        await client.get(f"{PATH}?limit=1&continue={page['metadata']['continue']}", traceparent=SAMPLED)
        collector.wait_until(lambda span: span.name == "List" and span.trace_id == TRACE)
    names = {span.name for span in collector.spans if span.trace_id == TRACE}
    assert "List(recursive=true) etcd3" in names
    assert "cacher.GetList" not in names


async def test_process_exports_its_last_spans_before_it_ends(tmp_path, collector):
    """A process with TLS, whose spans wait for five seconds unless it ends."""
    server = ApiServerProcess(tmp_path, f"--tracing-config-file={write_configuration(tmp_path, collector)}")
    with server:
        context = tls(server.kubeconfig)
        async with aiohttp.ClientSession() as session:
            url = f"{server.url}/api/v1/namespaces/default?pretty"
            async with session.get(url, ssl=context, headers={"traceparent": SAMPLED}) as response:
                assert response.status == 200
        assert server.stop() == 0
    (span,) = [span for span in collector.spans if span.kind == "SERVER" and span.trace_id == TRACE]
    assert span.name == "GET /api/v1/namespaces/{:namespace}/namespaces/{:name}"
    assert span.attributes["url.scheme"] == "https"
    assert span.attributes["server.port"] == int(server.url.rpartition(":")[2])
    assert span.attributes["network.peer.port"] > 0
    assert span.resource["service.name"] == "apiserver"
    assert span.resource["service.instance.id"].startswith("apiserver-")


async def test_requests_are_served_without_collector(tmp_path):
    with Collector() as ended:
        path = write_configuration(tmp_path, ended)
    async with apiserver.running(f"--tracing-config-file={path}") as client:
        for _ in range(20):
            assert (await client.get("/version")).status == 200


_WITHOUT_FLAG = """
import asyncio, sys
from tests.support.server import apiserver

async def main():
    async with apiserver.running() as client:
        await client.get("/version")

asyncio.run(main())
print(*sorted(name for name in sys.modules if "grpc" in name or "tracing" in name and name.startswith("mockube.")))
"""


def test_server_without_flag_imports_only_spans():
    output = subprocess.run(
        [sys.executable, "-c", _WITHOUT_FLAG], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert output.split() == [
        "mockube.apiserver.config.tracing_configuration",
        "mockube.apiserver.parts.tracing",
        "mockube.apiserver.tracing",
        "mockube.apiserver.tracing.spans",
    ]
