"""The clock of a cluster as an object: it stands still, runs faster, and is advanced."""

import asyncio

import pytest

from mockube.apimachinery.timestamps import parse_time
from mockube.apiserver.control.matching import Match
from mockube.component_base.clock import ClusterClock
from tests.support.event_loop import until
from tests.support.server.apiserver import running
from tests.support.server.control import API_VERSION, PATH, causes, control_object

CLOCKS = f"{PATH}/clocks"
CLOCK = f"{CLOCKS}/cluster"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.fixture
async def clock():
    return ClusterClock()


@pytest.fixture
async def client(clock):
    async with running(clock=clock) as client:
        yield client


def advance_of(**spec):
    return {"apiVersion": API_VERSION, "kind": "ClockAdvance", "spec": spec}


async def shown_time(client):
    return parse_time((await client.get(CLOCK)).body["status"]["time"])


async def test_clock_pauses_and_resumes(client, clock):
    assert (await client.patch(CLOCK, {"spec": {"paused": True}})).status == 200
    assert clock.is_paused
    assert await shown_time(client) == await shown_time(client)
    assert (await client.patch(CLOCK, {"spec": {"paused": False}})).status == 200
    assert not clock.is_paused


async def test_clock_runs_faster(client, clock):
    assert (await client.patch(CLOCK, {"spec": {"rate": 60}})).status == 200
    assert clock.speed == 60
    table = (await client.get(CLOCKS, Accept=TABLE)).body
    assert table["rows"][0]["cells"][0] == "cluster"
    assert table["rows"][0]["cells"][2:4] == [False, 60]


async def test_clock_is_advanced_while_it_stands_still(client, clock):
    await client.patch(CLOCK, {"spec": {"paused": True}})
    before, rung = await shown_time(client), asyncio.Event()
    clock.call_later(11, rung.set)
    advanced = await client.post(f"{CLOCK}/advance", advance_of(seconds=12))
    assert advanced.status == 201
    assert rung.is_set()
    assert (await shown_time(client) - before).total_seconds() == 12
    assert parse_time(advanced.body["status"]["time"]) == await shown_time(client)


async def test_advance_waits_for_requests_of_followers(client, clock):
    """Each step is over when no request has arrived for a moment."""
    await client.patch(CLOCK, {"spec": {"paused": True}})
    requests = []

    async def follow():
        requests.append((await client.get("/api/v1/namespaces/default")).status)

    tasks = []
    clock.call_later(4, lambda: tasks.append(asyncio.get_running_loop().create_task(follow())))
    await client.post(f"{CLOCK}/advance", advance_of(seconds=5))
    assert requests == [200]
    await asyncio.gather(*tasks)


async def test_watch_shows_changes(client):
    async with client.watch(f"{CLOCKS}?watch=1") as events:
        assert (await anext(events))["type"] == "ADDED"
        await client.patch(CLOCK, {"spec": {"paused": True}})
        event = await anext(events)
        assert (event["type"], event["object"]["spec"]["paused"]) == ("MODIFIED", True)


@pytest.mark.parametrize(
    ("spec", "field", "problem"),
    [
        ({}, "spec.seconds", "Required value"),
        ({"seconds": 0}, "spec.seconds", "must be more than 0"),
        ({"seconds": -1}, "spec.seconds", "must be more than 0"),
        ({"seconds": 1e12}, "spec.seconds", "at most 315360000"),
        ({"seconds": "1h"}, "spec.seconds", "must be a number"),
        ({"seconds": True}, "spec.seconds", "must be a number"),
        ({"seconds": 1, "until": "idle"}, "spec.until", "it is not implemented by mockube"),
    ],
)
async def test_invalid_advance_is_refused(client, spec, field, problem):
    before = await shown_time(client)
    refused = await client.post(f"{CLOCK}/advance", advance_of(**spec))
    assert refused.status == 422
    assert problem in dict(causes(refused))[field]
    assert (await shown_time(client) - before).total_seconds() < 60


async def test_bad_requests_are_refused(client):
    assert (await client.post(f"{CLOCK}/advance", b"{")).status == 400
    assert (await client.post(f"{CLOCK}/advance", b"[]")).status == 400
    assert (await client.post(f"{CLOCK}/advance", {"kind": "Pod"})).status == 400
    assert (await client.post(f"{CLOCKS}/other/advance", advance_of(seconds=1))).status == 404
    assert (await client.post(f"{CLOCK}/advance?dryRun=All", advance_of(seconds=9e6))).status == 201
    for rate in (0, -1, 101, "x"):
        assert (await client.patch(CLOCK, {"spec": {"rate": rate}})).status == 422
    assert (await client.post(CLOCKS, control_object("Clock", "other", spec={}))).status == 405
    assert (await client.delete(CLOCK)).status == 405


async def test_clock_of_shared_etcd_cannot_be_changed(client, clock):
    client.server.controls.clocks._refusal = "it is shared"
    refused = await client.patch(CLOCK, {"spec": {"paused": True}})
    assert causes(refused) == [("spec", "Forbidden: it is shared")]
    assert (await client.post(f"{CLOCK}/advance", advance_of(seconds=1))).status == 422
    assert not clock.is_paused


async def test_clock_that_only_shows_machines_time_is_no_object():
    async with running() as client:
        assert (await client.get(CLOCKS)).body["items"] == []
        assert (await client.get(CLOCK)).status == 404


async def test_request_waits_by_clock_of_cluster(client):
    """A delay of a fault passes with the clock, and the recorded seconds are those of the machine."""
    await client.patch(CLOCK, {"spec": {"paused": True}})
    match = {"resource": "configmaps"}
    spec = {"match": match, "delay": {"seconds": 100}}
    await client.post(f"{PATH}/faults", control_object("Fault", "f", spec=spec))
    getting = asyncio.create_task(client.get("/api/v1/configmaps"))
    faults = f"{PATH}/faults/f"
    await until(lambda: client.server.controls.recorder.calls(Match(resource="configmaps")))
    await client.post(f"{CLOCK}/advance", advance_of(seconds=101))
    assert (await getting).status == 200
    assert (await client.get(faults)).body["status"]["hits"] == 1
    (item,) = (await client.get(f"{PATH}/requests?fieldSelector=resource=configmaps")).body["items"]
    assert item["status"]["seconds"] < 100


async def test_advance_ends_when_its_client_disconnects(client, clock):
    advancing = asyncio.create_task(client.post(f"{CLOCK}/advance", advance_of(seconds=3e8)))
    began = clock.now()
    await until(lambda: (clock.now() - began).total_seconds() >= 10)
    advancing.cancel()
    await asyncio.gather(advancing, return_exceptions=True)
    recorder = client.server.controls.recorder
    advances = Match(resource="clocks/advance")
    await until(lambda: recorder.calls(advances, 504))
    assert (clock.now() - began).total_seconds() < 3e8
    assert clock.rate == 1.0
    assert (await client.post(f"{CLOCK}/advance", advance_of(seconds=1))).status == 201
