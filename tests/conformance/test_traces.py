"""The spans of requests are those of a real kube-apiserver, apart from those and the events that `ABSENT` lists with reasons."""

import asyncio
from collections.abc import Mapping

import orjson
import pytest

from mockube.apiserver.authz.rights import DEFAULT_MODES
from tests.support.server import apiserver
from tests.support.server.webhook_server import webhook_server
from tests.support.tracing import scenario
from tests.support.tracing.collector import Collector, write_configuration

NO_ENCRYPTION = "the store encrypts nothing"
ENCODED_BEFORE = "an object is encoded before its write begins"
NOT_DECODED = "the response is made of the stored bytes"
WRITTEN_LATER = "the connection writes the response after the request has ended"
NO_LOCK = "the watch cache has no lock"
ABSENT_EVENTS: Mapping[str, str] = {
    "About to Encode": ENCODED_BEFORE,
    "Decode succeeded": NOT_DECODED,
    "GetLatestSnapshotOrBuildLocked success": NO_LOCK,
    "Listed items from cache": "objects are selected while they are listed",
    "Patch applied": "a patch of a webhook is applied after the span of its call",
    "Ready": "the server serves no request before the watch cache is ready",
    "TransformFromStorage succeeded": NO_ENCRYPTION,
    "TransformToStorage succeeded": NO_ENCRYPTION,
    "Write call succeeded": WRITTEN_LATER,
    "Writing http response done": WRITTEN_LATER,
    "watchCache fresh enough": NO_LOCK,
    "watchCache locked acquired": NO_LOCK,
}
ABSENT_SPANS: Mapping[str, str] = {
    "etcdserverpb.KV/Range": "the span of the storage around it has the same time",
    "etcdserverpb.KV/Txn": "the span of the storage around it has the same time",
}
ABSENT_ATTRIBUTES: Mapping[str, str] = {
    "encoder": "it describes the objects of Go's encoders",
    "url.scheme": "the server of the test has no certificate",
}
ABSENT_OF_STREAMS: Mapping[str, str] = {"http.response.body.size": "the bytes of a stream are not counted"}
NO_ENCODING_OF_REFUSALS = "a filter refuses the request, and its few bytes have no span"
RECORDED = {
    line["name"]: line["spans"] for line in map(orjson.loads, scenario.RECORDED.read_bytes().splitlines())
}


def expected(node, *, is_refused=False):
    """Return a recorded tree without what is absent here."""
    children = [
        expected(child, is_refused=is_refused)
        for child in node["children"]
        if child["name"] not in ABSENT_SPANS and not (is_refused and child["name"] == "SerializeObject")
    ]
    absent = ABSENT_ATTRIBUTES if "watch=1" not in str(node) else {**ABSENT_ATTRIBUTES, **ABSENT_OF_STREAMS}
    return node | {
        "attributes": {name: value for name, value in node["attributes"].items() if name not in absent},
        "events": [name for name in node["events"] if name not in ABSENT_EVENTS],
        "children": children,
    }


async def run(folder):
    with Collector() as collector, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
        flag = f"--tracing-config-file={write_configuration(folder, collector)}"
        async with webhook_server(folder) as hooks, apiserver.running(flag, modes=DEFAULT_MODES) as client:

            def client_of(user):
                return apiserver.Client(client.session, client.url, authorization=f"Bearer {user}")

            async def settle():
                pass

            return await scenario.run(client_of, hooks, collector, settle=settle)


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    """Return the spans of the requests that were recorded, sent to our server."""
    return asyncio.run(run(tmp_path_factory.mktemp("traces")))


@pytest.mark.parametrize("step", [step.name for step in scenario.STEPS])
def test_spans_of_request_are_upstreams(ours, step):
    is_refused = ours[step]["attributes"]["http.response.status_code"] == 403
    assert expected(ours[step]) == expected(RECORDED[step], is_refused=is_refused)


def test_every_absence_is_used():
    nodes = [node for root in RECORDED.values() for node in scenario.walk(root)]
    assert ABSENT_EVENTS.keys() <= {event for node in nodes for event in node["events"]}
    assert ABSENT_SPANS.keys() <= {node["name"] for node in nodes}
    assert ABSENT_ATTRIBUTES.keys() <= {name for node in nodes for name in node["attributes"]}
