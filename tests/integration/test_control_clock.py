"""The clock of a cluster as an object: it stands still, runs faster, and is advanced."""

import asyncio
from datetime import timedelta

import pytest

from mockube.apimachinery.timestamps import format_micro_time, parse_time
from mockube.apiserver.bootstrap.manager_roles import roles_of_control
from mockube.apiserver.control.matching import Match
from mockube.component_base.clock import ClusterClock
from tests.support.event_loop import until
from tests.support.server.apiserver import DEFAULT_MODES, Client, running
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
        ({"seconds": 0}, "spec.seconds", "must be from 0.001 to 315360000"),
        ({"seconds": -1}, "spec.seconds", "must be from 0.001 to 315360000"),
        ({"seconds": 1e-300}, "spec.seconds", "must be from 0.001 to 315360000"),
        ({"seconds": 1e12}, "spec.seconds", "to 315360000"),
        ({"seconds": "1h"}, "spec.seconds", "must be a number"),
        ({"seconds": True}, "spec.seconds", "must be a number"),
        ({"seconds": 1, "times": 2}, "spec.times", "the fields are seconds, until"),
        ({"until": "idle"}, "spec.until", "must be an object"),
        ({"until": {}}, "spec.until", "exactly one of idle and condition"),
        ({"until": {"idle": True, "condition": {}}}, "spec.until", "exactly one of idle and condition"),
        ({"until": {"idle": False}}, "spec.until.idle", "must be true"),
        ({"until": {"busy": True}}, "spec.until.busy", "the fields are idle, condition"),
        ({"until": {"condition": []}}, "spec.until.condition", "must be an object"),
        ({"until": {"condition": {"resource": "pods"}}}, "spec.until.condition.name", "Required value"),
        (
            {"until": {"condition": {"resource": "deployments.apps", "name": "web", "type": "Available"}}},
            "spec.until.condition.namespace",
            "Deployment is namespaced",
        ),
        ({"until": {"condition": {"name": 7}}}, "spec.until.condition.name", "must be a text"),
        ({"until": {"condition": {"resource": "pod"}}}, "spec.until.condition.resource", "is not served"),
        ({"until": {"condition": {"resource": "marks"}}}, "spec.until.condition.resource", "is not served"),
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
    for rate in (0, -1, 1e-300, 0.001, 101, 1e308, 2**63, True, "x"):
        assert (await client.patch(CLOCK, {"spec": {"rate": rate}})).status == 422
    assert (await client.post(CLOCKS, control_object("Clock", "other", spec={}))).status == 405
    assert (await client.delete(CLOCK)).status == 405


async def test_clock_of_shared_etcd_cannot_be_changed(client, clock):
    client.server.control.objects.clock.clocks._refusal = "it is shared"
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
    await until(lambda: client.server.observation.recorder.calls(Match(resource="configmaps")))
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
    recorder = client.server.observation.recorder
    advances = Match(resource="clocks/advance")
    await until(lambda: recorder.calls(advances, 504))
    assert (clock.now() - began).total_seconds() < 3e8
    assert clock.rate == 1.0
    assert (await client.post(f"{CLOCK}/advance", advance_of(seconds=1))).status == 201


# --- until something


def condition(**fields):
    return {"resource": "nodes", "name": "n", "type": "Ready", **fields}


async def set_ready(client, status):
    node = "/api/v1/nodes/n/status"
    return await client.patch(node, {"status": {"conditions": [{"type": "Ready", "status": status}]}})


async def test_advance_ends_when_object_has_condition(client, clock):
    await client.patch(CLOCK, {"spec": {"paused": True}})
    await client.post("/api/v1/nodes", {"metadata": {"name": "n"}})
    tasks = []
    clock.call_later(
        41, lambda: tasks.append(asyncio.get_running_loop().create_task(set_ready(client, "True")))
    )
    advanced = await client.post(f"{CLOCK}/advance", advance_of(until={"condition": condition()}))
    assert (advanced.status, advanced.body["status"]["isReached"]) == (201, True)
    assert advanced.body["status"]["seconds"] == 45
    again = await client.post(f"{CLOCK}/advance", advance_of(until={"condition": condition()}))
    assert again.body["status"]["seconds"] == 0
    other = advance_of(seconds=7, until={"condition": condition(status="False")})
    missed = (await client.post(f"{CLOCK}/advance", other)).body["status"]
    assert (missed["isReached"], missed["seconds"]) == (False, 7)
    await asyncio.gather(*tasks)


async def test_advance_until_idle_ends_a_minute_after_the_last_write(client, clock):
    await client.patch(CLOCK, {"spec": {"paused": True}})
    tasks = []

    def write():
        posting = client.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}})
        tasks.append(asyncio.get_running_loop().create_task(posting))

    clock.call_later(30, write)
    advanced = await client.post(f"{CLOCK}/advance", advance_of(until={"idle": True}))
    assert advanced.body["status"]["isReached"]
    assert advanced.body["status"]["seconds"] == 90
    again = await client.post(f"{CLOCK}/advance", advance_of(until={"idle": True}))
    assert again.body["status"]["seconds"] == 0
    await asyncio.gather(*tasks)


async def test_condition_of_object_that_user_may_not_read_is_refused(clock):
    async with running(clock=clock, modes=DEFAULT_MODES) as client:
        client.server.bootstrap_roles.add(roles_of_control())
        assert await client.server.bootstrap_roles.reconcile()
        alice = Client(client.session, client.url, authorization="Bearer alice")
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "mockube:control"}
        binding = {"metadata": {"name": "r"}, "roleRef": role, "subjects": [subject]}
        await client.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
        await client.server.registry.watch_cache.fresh()
        until_ready = advance_of(seconds=1, until={"condition": condition()})
        refused = await alice.post(f"{CLOCK}/advance", until_ready)
        assert (refused.status, refused.body["reason"]) == (403, "Forbidden")
        assert (await alice.post(f"{CLOCK}/advance", advance_of(seconds=1))).status == 201
        async with client.session.get(client.url + "/mockube/clock", headers=alice.credentials) as stream:
            assert stream.status == 200  # a participant follows it


# --- participants


PARTICIPANTS = f"{PATH}/clockparticipants"


async def report(client, name, **spec):
    return await client.patch(f"{PARTICIPANTS}/{name}", {"spec": spec})


async def test_advance_waits_for_participants(client, clock):
    await client.patch(CLOCK, {"spec": {"paused": True}})
    begin = clock.now()
    assert (await client.post(PARTICIPANTS, control_object("ClockParticipant", "p", spec={}))).status == 201
    advancing = asyncio.create_task(client.post(f"{CLOCK}/advance", advance_of(seconds=8)))
    times = []
    for seconds in (5, 8):
        time = begin + timedelta(seconds=seconds)
        await until(lambda time=time: clock.now() == time)
        times.append(clock.now())
        assert not advancing.done()
        await report(client, "p", idleAt=format_micro_time(time))
    assert (await advancing).status == 201
    assert clock.now() == times[-1]


async def test_advance_stops_at_next_timer_of_participant(client, clock):
    await client.patch(CLOCK, {"spec": {"paused": True}})
    begin = clock.now()
    timer, end = begin + timedelta(seconds=3), begin + timedelta(seconds=4)
    spec = {"idleAt": format_micro_time(begin), "nextTimer": format_micro_time(timer)}
    await client.post(PARTICIPANTS, control_object("ClockParticipant", "p", spec=spec))
    advancing = asyncio.create_task(client.post(f"{CLOCK}/advance", advance_of(seconds=4)))
    await until(lambda: clock.now() == timer)
    await report(client, "p", idleAt=format_micro_time(timer), nextTimer=None)
    await until(lambda: clock.now() == end)
    await report(client, "p", idleAt=format_micro_time(end))
    assert (await advancing).status == 201


async def test_participant_that_is_deleted_is_not_waited_for(client, clock):
    await client.patch(CLOCK, {"spec": {"paused": True}})
    begin = clock.now()
    await client.post(PARTICIPANTS, control_object("ClockParticipant", "p"))
    advancing = asyncio.create_task(client.post(f"{CLOCK}/advance", advance_of(seconds=2)))
    await until(lambda: clock.now() != begin)
    await client.delete(f"{PARTICIPANTS}/p")
    assert (await advancing).status == 201


@pytest.mark.parametrize(
    "spec",
    [
        {"idleAt": "soon"},
        {"nextTimer": 7},
        {"nextTimer": "9999-12-31T23:59:59-23:59"},
        {"idleAt": "0001-01-01T00:00:00+23:59"},
    ],
)
async def test_invalid_participant_is_refused(client, spec):
    refused = await client.post(PARTICIPANTS, control_object("ClockParticipant", "p", spec=spec))
    assert refused.status == 422
