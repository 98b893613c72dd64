"""Faults: rules that harm requests, as objects whose status shows what they have done."""

import asyncio

import aiohttp
import orjson
import pytest

from mockube.apiserver.control.matching import Match
from mockube.apiserver.registry.read import PAGE_AT_REVISION
from mockube.component_base.clock import RealClock, SteppedClock
from mockube.etcd.embedded.store import MemoryStore
from tests.support.event_loop import next_item, until
from tests.support.server.apiserver import Client, running
from tests.support.server.control import PATH, causes, control_object
from tests.support.stores.watch_caches import put
from tests.support.stores.wrapped import WrappedStore

FAULTS = f"{PATH}/faults"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.fixture
async def client():
    async with running() as client:
        yield client


async def inject(client, name="f", **spec):
    created = await client.post(FAULTS, control_object("Fault", name, spec=spec))
    assert created.status == 201, created.body
    return created.body


def config_map(name, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


ON_CONFIG_MAPS = {"resource": "configmaps"}


async def test_fault_applies_until_it_is_deleted(client):
    await inject(client, match=ON_CONFIG_MAPS, refuse={"status": 503})
    assert (await client.get(CONFIG_MAPS)).status == 503
    assert (await client.get("/api/v1/pods")).status == 200
    assert (await client.delete(f"{FAULTS}/f")).status == 200
    assert (await client.get(CONFIG_MAPS)).status == 200


async def test_status_shows_hits_and_last_requests(client):
    await inject(client, match=ON_CONFIG_MAPS, refuse={"status": 503}, skip=1, times=2)
    answers = [await client.get(f"{CONFIG_MAPS}/{name}") for name in "abcd"]
    assert [answer.status for answer in answers] == [404, 503, 503, 404]
    status = (await client.get(f"{FAULTS}/f")).body["status"]
    assert (status["hits"], status["isExhausted"]) == (2, True)
    hit = [answer.headers["Audit-Id"] for answer in answers[1:3]]
    assert [request["auditID"] for request in status["lastRequests"]] == hit
    (request,) = (await client.get(f"{PATH}/requests?fieldSelector=fault=f,name=c")).body["items"]
    assert request["status"]["code"] == 503
    table = (await client.get(FAULTS, Accept=TABLE)).body
    assert table["rows"][0]["cells"][1:-1] == ["refuse 503", "resource=configmaps", None, 1, "0/2", 2]


async def test_status_shows_the_beginning_of_long_texts(client):
    await inject(client, match=ON_CONFIG_MAPS, refuse={"status": 503})
    long = "x" * 2000
    assert (await client.get(CONFIG_MAPS, User_Agent=long)).status == 503
    (request,) = (await client.get(f"{FAULTS}/f")).body["status"]["lastRequests"]
    assert request["agent"] == long[:1024]


@pytest.mark.parametrize(("when", "is_written"), [("before", False), ("after", True)])
async def test_request_whose_connection_is_cut_has_no_code(client, when, is_written):
    await inject(client, match=ON_CONFIG_MAPS, cut={"when": when})
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await client.post(CONFIG_MAPS, config_map("a"))
    path = f"{PATH}/requests?fieldSelector=fault=f"
    (request,) = (await client.get(path)).body["items"]
    status = request["status"]
    assert (status["isCut"], status["answeredByFault"], status["fault"]) == (True, True, "f")
    assert {"code", "message", "bytes"}.isdisjoint(status)
    assert ("revision" in status) is is_written
    assert (await client.get(path, Accept=TABLE)).body["rows"][0]["cells"][6] == "cut"


async def test_watch_in_progress_whose_connection_is_cut_has_its_code(client):
    async with client.watch(f"{CONFIG_MAPS}?watch=1") as events:
        await inject(client, match=ON_CONFIG_MAPS, cut={"when": "before"})
        with pytest.raises(aiohttp.ClientPayloadError):
            await anext(events)
    path = f"{PATH}/requests?fieldSelector=fault=f"
    (request,) = (await client.get(path)).body["items"]
    assert (request["status"]["code"], request["status"]["isCut"]) == (200, True)


async def test_watch_that_is_cut_at_its_end_has_its_code(client):
    await inject(client, match={**ON_CONFIG_MAPS, "verbs": ["watch"]}, cut={"when": "after"})
    async with client.watch(f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1") as events:
        with pytest.raises((aiohttp.ClientPayloadError, StopAsyncIteration)):
            await anext(events)
    async with client.watch(f"{PATH}/requests?fieldSelector=verb=watch,resource=configmaps&watch=1") as seen:
        while "status" not in (request := (await next_item(seen))["object"]):
            pass
    assert (request["status"]["code"], request["status"]["isCut"]) == (200, True)


async def test_watch_of_faults_shows_hits(client):
    await inject(client, match=ON_CONFIG_MAPS, refuse={"status": 503})
    async with client.watch(f"{FAULTS}?watch=1") as events:
        assert (await anext(events))["type"] == "ADDED"
        await client.get(CONFIG_MAPS)
        event = await anext(events)
        assert (event["type"], event["object"]["status"]["hits"]) == ("MODIFIED", 1)


async def test_change_of_spec_begins_anew_and_change_of_labels_does_not(client):
    await inject(client, match=ON_CONFIG_MAPS, refuse={"status": 503}, times=1)
    assert [(await client.get(CONFIG_MAPS)).status for _ in range(2)] == [503, 200]
    assert (await client.patch(f"{FAULTS}/f", {"metadata": {"labels": {"a": "b"}}})).status == 200
    assert (await client.get(CONFIG_MAPS)).status == 200
    assert (await client.patch(f"{FAULTS}/f", {"spec": {"refuse": {"status": 500}}})).status == 200
    assert (await client.get(f"{FAULTS}/f")).body["status"] == {"hits": 0, "lastRequests": []}
    assert (await client.get(CONFIG_MAPS)).status == 500
    assert (await client.get(f"{FAULTS}/f")).body["status"]["hits"] == 1


async def test_status_that_client_sends_is_dropped(client):
    spec = {"match": ON_CONFIG_MAPS, "refuse": {"status": 503}}
    created = await client.post(FAULTS, control_object("Fault", "f", spec=spec, status={"hits": 7}))
    assert "status" not in created.body


async def test_dry_run_injects_nothing(client):
    spec = {"match": ON_CONFIG_MAPS, "refuse": {"status": 503}}
    assert (await client.post(f"{FAULTS}?dryRun=All", control_object("Fault", "f", spec=spec))).status == 201
    assert (await client.get(CONFIG_MAPS)).status == 200


async def test_no_fault_prevents_its_own_removal(client):
    await inject(client, match={"user": "*"}, refuse={"status": 503})
    assert (await client.get(CONFIG_MAPS)).status == 503
    assert (await client.get(FAULTS)).status == 200
    assert (await client.get("/apis/control.mockube.dev/v1alpha1/marks")).status == 200
    assert (await client.delete(f"{FAULTS}/f")).status == 200


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"match": {"user": "*a" * 5_001}, "refuse": {"status": 503}}, "at most 512 characters"),
        ({"match": {"resource": "*a" * 5_001}, "refuse": {"status": 503}}, "at most 512 characters"),
        ({"match": {"name": "*a" * 250}, "refuse": {"status": 503}}, "up to 1751 microseconds"),
        ({"match": {"labels": ",".join(f"k{n}" for n in range(1_000))}, "refuse": {"status": 503}}, "1001"),
        ({"match": {"verbs": ["get"] * 9}, "refuse": {"status": 503}}, "at most 8 items"),
        ({"match": {"path": "/readyz/ping"}, "refuse": {"status": 503}}, "health checks get no fault"),
        (
            {"match": {"verbs": ["watch"]}, "drop": {"fromEvent": {"name": "*a" * 5_001}}},
            "at most 512 characters",
        ),
        ({"match": ON_CONFIG_MAPS, "respond": {"status": 204, "body": {}}}, "has no body"),
    ],
)
async def test_fault_that_would_fail_or_delay_every_request_is_refused_when_it_is_written(
    client, spec, problem
):
    refused = await client.post(FAULTS, control_object("Fault", "f", spec=spec))
    assert refused.status == 422
    assert problem in refused.body["message"]
    assert (await client.get("/livez")).status == (await client.get(CONFIG_MAPS)).status == 200


async def test_costs_of_all_faults_are_limited_together(client):
    spec = {"match": {"name": "*" + "a" * 200}, "refuse": {"status": 503}}
    answers = await asyncio.gather(
        *(client.post(FAULTS, control_object("Fault", f"f-{n}", spec=spec)) for n in range(8))
    )
    assert sorted(answer.status for answer in answers) == [201] * 4 + [422] * 4
    (created, *_) = (await client.get(FAULTS)).body["items"]
    name = created["metadata"]["name"]
    longer = {"spec": {"match": {"name": "*" + "a" * 400}}}
    assert "the other faults 621" in (await client.patch(f"{FAULTS}/{name}", longer)).body["message"]
    assert (await client.patch(f"{FAULTS}/{name}", {"spec": {"times": 1}})).status == 200
    assert (await client.delete(f"{FAULTS}/{name}")).status == 200
    assert (await client.post(FAULTS, control_object("Fault", "another", spec=spec))).status == 201


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/healthz", "/livez/ping"])
async def test_health_check_gets_no_fault(client, path):
    await inject(client, match={"user": "*", "path": "*"}, refuse={"status": 503})
    assert (await client.get("/metrics")).status == 503
    assert (await client.get(path)).status == 200


@pytest.mark.parametrize("match", [{}, {"user": "*"}, {"agent": "*"}, {"path": "*"}])
async def test_client_that_does_discovery_first_removes_fault(client, match):
    await inject(client, match=match, refuse={"status": 503})
    aggregated = "application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList"
    for accept in ("application/json", aggregated):
        for path in ("/api", "/apis", "/apis/", "/apis/control.mockube.dev", PATH):
            assert (await client.get(path, Accept=accept)).status != 503, path
    for path in ("/version", "/openapi/v3", "/openapi/v3/apis/control.mockube.dev/v1alpha1"):
        assert (await client.get(path)).status != 503, path
    assert (await client.get("/apis/apps/v1")).status == 503
    assert (await client.delete(f"{FAULTS}/f")).status == 200


async def test_discovery_gets_fault_that_names_its_path(client):
    await inject(client, match={"path": "/apis*"}, refuse={"status": 503})
    assert (await client.get("/apis")).status == 503
    assert (await client.get("/version")).status == 200


@pytest.mark.parametrize(
    ("spec", "field", "problem"),
    [
        ({}, "spec", "a fault needs one of delay, cut, refuse"),
        ({"refuse": {"status": 200}}, "spec.refuse.status", "greater than or equal to 400"),
        ({"refuse": {}}, "spec.refuse.status", "Required value"),
        ({"cut": {"when": "now"}}, "spec.cut.when", 'supported values: "before", "after"'),
        ({"match": {"verbs": ["put"]}, "hold": {}}, "spec.match.verbs[0]", "Unsupported value"),
        ({"match": {"resource": "pod"}, "hold": {}}, "spec.match.resource", 'did you mean "pods"?'),
        ({"match": {"resource": "marks"}, "hold": {}}, "spec.match.resource", "is not a resource"),
        ({"match": {"labels": "=="}, "hold": {}}, "spec.match", "labels: found '=='"),
        ({"hold": {}, "share": 0}, "spec", "share must be more than 0 and at most 1, not 0"),
        ({"stale": {"revision": 1}}, "spec.stale", "match.verbs must be among get, list and watch"),
        ({"steal": {}}, "spec.steal", "match.resource must be leases"),
        ({"steal": {"seconds": 0}, "match": {"resource": "leases"}}, "spec.steal.seconds", "equal to 1"),
        ({"steal": {"holder": ""}, "match": {"resource": "leases"}}, "spec.steal", "must not be empty"),
        (
            {"match": {"verbs": ["get"]}, "stale": {"revision": 1, "seconds": 1}},
            "spec.stale",
            "give either revision or seconds",
        ),
        (
            {"match": {"verbs": ["create", "get"]}, "repeat": {}},
            "spec.repeat",
            "match.verbs must be among create, delete",
        ),
        ({"hold": {"fromEvent": {"types": ["GONE"]}}}, "spec.hold.fromEvent.types[0]", "Unsupported value"),
        ({"drop": {"fromEvent": {"skip": 10001}}}, "spec.drop.fromEvent.skip", "less than or equal to 10000"),
        ({"hold": {"untilWrite": 1}}, "spec.hold.untilWrite", "must be of type boolean"),
        ({"partition": {}}, "spec.match.node", "a partition needs the name of a node"),
        ({"partition": {}, "match": {"node": "a"}}, "spec.match.node", "there is no such node"),
        ({"partition": {}, "match": {"verbs": ["get"]}}, "spec.match.verbs", "concerns a whole node"),
        ({"partition": {}, "times": 1}, "spec.times", "cannot be given with a partition"),
        ({"change": {"mergePatch": {}}}, "spec.change", "mergePatch must not be empty"),
    ],
)
async def test_invalid_fault_is_refused(client, spec, field, problem):
    refused = await client.post(FAULTS, control_object("Fault", "f", spec=spec))
    assert refused.status == 422
    found = dict(causes(refused))
    assert problem in found[field]
    assert (await client.get(FAULTS)).body["items"] == []


# --- effects


async def test_reads_are_stale(client):
    created = (await client.post(CONFIG_MAPS, config_map("a"))).body
    await inject(client, match={**ON_CONFIG_MAPS, "verbs": ["get", "list"]}, stale={})
    await client.patch(f"{CONFIG_MAPS}/a", {"data": {"x": "y"}})
    await client.post(CONFIG_MAPS, config_map("b"))
    assert (await client.get(f"{CONFIG_MAPS}/a")).body == created
    assert [item["metadata"]["name"] for item in (await client.get(CONFIG_MAPS)).body["items"]] == ["a"]
    await client.delete(f"{FAULTS}/f")
    assert (await client.get(f"{CONFIG_MAPS}/a")).body["data"] == {"x": "y"}


async def test_response_is_given(client):
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "never"}}
    await inject(client, match={**ON_CONFIG_MAPS, "verbs": ["get"]}, respond={"body": body})
    given = await client.get(f"{CONFIG_MAPS}/x")
    assert (given.status, given.body) == (200, body)


async def test_response_is_changed(client):
    await client.post(CONFIG_MAPS, config_map("a") | {"data": {"x": "y"}})
    await inject(client, match=ON_CONFIG_MAPS, change={"mergePatch": {"data": {"x": "z"}}})
    changed = await client.get(f"{CONFIG_MAPS}/a", Accept="application/vnd.kubernetes.protobuf")
    assert changed.body["data"] == {"x": "z"}
    await client.delete(f"{FAULTS}/f")
    assert (await client.get(f"{CONFIG_MAPS}/a")).body["data"] == {"x": "y"}


async def test_labels_of_object_select_requests(client):
    await client.post(CONFIG_MAPS, config_map("a", labels={"app": "web"}))
    await client.post(CONFIG_MAPS, config_map("b"))
    await inject(client, match={**ON_CONFIG_MAPS, "labels": "app=web"}, refuse={"status": 503})
    codes = [(await client.get(f"{CONFIG_MAPS}/{name}")).status for name in "abc"]
    assert codes == [503, 200, 404]


async def test_share_chooses_some_requests(client):
    await inject(client, match=ON_CONFIG_MAPS, refuse={"status": 503}, share=0.5)
    codes = {(await client.get(CONFIG_MAPS)).status for _ in range(60)}
    assert codes == {200, 503}


async def test_write_is_executed_twice(client):
    await inject(client, match={**ON_CONFIG_MAPS, "verbs": ["create", "delete"]}, repeat={})
    made = {"metadata": {"generateName": "a-"}, "data": {"text": "x" * 100_000}}
    assert (await client.post(CONFIG_MAPS, made)).status == 201
    first, second = (await client.get(CONFIG_MAPS)).body["items"]
    assert first["data"] == second["data"] == made["data"]
    assert (await client.post(CONFIG_MAPS, config_map("b"))).status == 409
    assert (await client.delete(f"{CONFIG_MAPS}/b")).status == 404
    assert (await client.get(f"{CONFIG_MAPS}/b")).status == 404


async def test_running_watch_ends_with_410(client):
    async with client.watch(f"{CONFIG_MAPS}?watch=1") as events:
        await inject(client, match={**ON_CONFIG_MAPS, "verbs": ["watch"]}, refuse={"status": 410})
        event = await anext(events)
        assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


async def test_events_are_held_back_until_fault_is_deleted(client):
    watching = {**ON_CONFIG_MAPS, "verbs": ["watch"]}
    async with client.watch(f"{CONFIG_MAPS}?watch=1") as events:
        await inject(client, match=watching, hold={})
        await client.post(CONFIG_MAPS, config_map("a"))

        async def next_event():
            return await anext(events)

        waiting = asyncio.create_task(next_event())
        await client.post(CONFIG_MAPS, config_map("b"))
        assert not waiting.done()
        await client.delete(f"{FAULTS}/f")
        assert (await waiting)["object"]["metadata"]["name"] == "a"
        assert (await anext(events))["object"]["metadata"]["name"] == "b"


async def test_new_watch_is_held_back_for_a_time(client):
    await client.post(CONFIG_MAPS, config_map("a"))
    await inject(client, match={**ON_CONFIG_MAPS, "verbs": ["watch"]}, hold={"seconds": 0.2})
    async with client.watch(f"{CONFIG_MAPS}?watch=1") as events:
        assert (await anext(events))["object"]["metadata"]["name"] == "a"


async def test_held_watch_that_ends_sends_nothing(client):
    await client.post(CONFIG_MAPS, config_map("a"))
    await inject(client, match={**ON_CONFIG_MAPS, "verbs": ["watch"]}, hold={})
    assert (await client.get(f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1")).data == b""


async def test_dropped_changes_are_lost(client):
    async with client.watch(f"{CONFIG_MAPS}?watch=1") as events:
        await inject(client, match={**ON_CONFIG_MAPS, "verbs": ["watch"]}, drop={})
        await client.post(CONFIG_MAPS, config_map("lost"))
        await client.delete(f"{FAULTS}/f")
        await client.post(CONFIG_MAPS, config_map("seen"))
        assert (await anext(events))["object"]["metadata"]["name"] == "seen"


WATCHING = {**ON_CONFIG_MAPS, "verbs": ["watch"]}


async def test_events_are_held_back_from_one_event_on(client):
    selected = {"types": ["ADDED"], "namespace": "default", "name": "b*", "skip": 1}
    async with client.watch(f"{CONFIG_MAPS}?watch=1") as events:
        await inject(client, match=WATCHING, hold={"fromEvent": selected})
        for name in ("b1", "a", "b2", "c"):
            await client.post(CONFIG_MAPS, config_map(name))
        seen = [(await next_item(events))["object"]["metadata"]["name"] for _ in range(2)]
        assert seen == ["b1", "a"]
        waiting = asyncio.create_task(next_item(events))
        status = (await client.get(f"{FAULTS}/f")).body["status"]
        (held,) = (await client.get(f"{PATH}/changes?fieldSelector=kind=ConfigMap,name=b2")).body["items"]
        assert status["event"] == {"type": "ADDED", "revision": held["spec"]["revision"]}
        assert not waiting.done()
        await client.delete(f"{FAULTS}/f")
        later = [await waiting, await next_item(events)]
        assert [event["object"]["metadata"]["name"] for event in later] == ["b2", "c"]


async def test_watch_that_resumes_counts_no_event_twice_and_is_held_back_from_the_same_one_on(client):
    begin = (await client.get(CONFIG_MAPS)).body["metadata"]["resourceVersion"]
    await inject(client, match=WATCHING, hold={"fromEvent": {"skip": 1}})
    for name in ("a", "b", "c"):
        await client.post(CONFIG_MAPS, config_map(name))
    last = (await client.get(f"{CONFIG_MAPS}/b")).body["metadata"]["resourceVersion"]
    for version, expected in ((begin, ["a"]), (begin, ["a"]), (last, [])):
        watched = await client.get(f"{CONFIG_MAPS}?watch=1&resourceVersion={version}&timeoutSeconds=1")
        assert names_in(watched.data) == expected


async def test_changes_from_one_event_on_are_lost_until_the_fault_is_deleted(client):
    begin = (await client.get(CONFIG_MAPS)).body["metadata"]["resourceVersion"]
    await inject(client, match=WATCHING, drop={"fromEvent": {"types": ["DELETED"]}})
    async with client.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion={begin}") as events:
        await client.post(CONFIG_MAPS, config_map("a"))
        await client.delete(f"{CONFIG_MAPS}/a")
        await client.post(CONFIG_MAPS, config_map("lost"))
        assert (await next_item(events))["type"] == "ADDED"
        waiting = asyncio.create_task(next_item(events))
        assert (await client.get(f"{FAULTS}/f")).body["status"]["event"]["type"] == "DELETED"
        await client.delete(f"{FAULTS}/f")
        await client.post(CONFIG_MAPS, config_map("seen"))
        assert (await waiting)["object"]["metadata"]["name"] == "seen"


async def test_delayed_request_continues_when_fault_is_deleted(client):
    await inject(client, match=ON_CONFIG_MAPS, delay={"seconds": 600})
    getting = asyncio.create_task(client.get(CONFIG_MAPS))
    recorder = client.server.observation.recorder
    await until(lambda: recorder.calls(Match(resource="configmaps")))
    await client.delete(f"{FAULTS}/f")
    assert orjson.loads((await getting).data)["kind"] == "ConfigMapList"


class RecordingStore(WrappedStore):
    """Records how many objects the reads at a revision return."""

    def __init__(self, store):
        super().__init__(store)
        self.counts = []

    async def range(self, request):
        page = await self.store.range(request)
        if request.revision:
            self.counts.append(len(page.kvs))
        return page


async def test_stale_reads_of_many_objects_are_in_pages():
    store = RecordingStore(MemoryStore(clock=RealClock()))
    names = [f"{number:06d}" for number in range(2 * PAGE_AT_REVISION + 1)]
    for number in range(len(names)):
        await store.put(put(number))
    async with running(kv=store) as client:
        await inject(client, match=WATCHES, stale={})
        path = "/api/v1/namespaces/ns/configmaps"
        store.counts.clear()
        listed = (await client.get(path)).body["items"]
        assert len(listed) == len(names)
        async with client.watch(f"{path}?watch=1") as events:
            watched = [(await next_item(events))["object"]["metadata"]["name"] for _ in names]
        assert len(set(watched)) == len(names)
        assert store.counts == 2 * [PAGE_AT_REVISION, PAGE_AT_REVISION, 1]


# --- watches that lag behind


WATCHES = {**ON_CONFIG_MAPS, "verbs": ["get", "list", "watch"]}


def names_in(lines):
    events = [orjson.loads(line) for line in lines.splitlines()]
    return [event["object"]["metadata"].get("name") for event in events]


async def test_watch_in_progress_stands_still_until_stale_fault_is_deleted(client):
    async with client.watch(f"{CONFIG_MAPS}?watch=1") as events:
        await inject(client, match=WATCHES, stale={})
        await client.post(CONFIG_MAPS, config_map("late"))
        waiting = asyncio.create_task(next_item(events))
        assert (await client.get(CONFIG_MAPS)).body["items"] == []
        assert not waiting.done()
        await client.delete(f"{FAULTS}/f")
        assert (await waiting)["object"]["metadata"]["name"] == "late"


async def test_stale_watch_begins_with_objects_of_its_revision_and_follows_later(client):
    await client.post(CONFIG_MAPS, config_map("old"))
    await inject(client, match=WATCHES, stale={})
    await client.post(CONFIG_MAPS, config_map("late"))
    await client.delete(f"{CONFIG_MAPS}/old")
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with client.watch(f"{CONFIG_MAPS}?{query}") as events:
        assert (await next_item(events))["object"]["metadata"]["name"] == "old"
        bookmark = (await next_item(events))["object"]["metadata"]
        revision = (await client.get(f"{FAULTS}/f")).body["spec"]["stale"]["revision"]
        assert bookmark["resourceVersion"] == str(revision)
        waiting = asyncio.create_task(next_item(events))
        await client.post(CONFIG_MAPS, config_map("latest"))
        assert not waiting.done()
        await client.delete(f"{FAULTS}/f")
        later = [await waiting, await next_item(events), await next_item(events)]
        seen = [(event["type"], event["object"]["metadata"]["name"]) for event in later]
        assert seen == [("ADDED", "late"), ("DELETED", "old"), ("ADDED", "latest")]


async def test_lists_and_watches_lag_by_a_time():
    clock = SteppedClock()
    async with running(clock=clock) as client:
        await client.post(CONFIG_MAPS, config_map("old"))
        clock.advance(20)
        await inject(client, match=WATCHES, stale={"seconds": 10})
        async with client.watch(f"{CONFIG_MAPS}?watch=1") as events:
            assert (await next_item(events))["object"]["metadata"]["name"] == "old"
            await client.post(CONFIG_MAPS, config_map("late"))
            waiting = asyncio.create_task(next_item(events))
            clock.advance(9)
            assert len((await client.get(CONFIG_MAPS)).body["items"]) == 1
            assert not waiting.done()
            clock.advance(1.5)
            assert (await waiting)["object"]["metadata"]["name"] == "late"
            assert len((await client.get(CONFIG_MAPS)).body["items"]) == 2
            await client.post(CONFIG_MAPS, config_map("latest"))
            waiting = asyncio.create_task(next_item(events))
            await client.delete(f"{FAULTS}/f")
            assert (await waiting)["object"]["metadata"]["name"] == "latest"


async def test_stale_watch_that_resumes_sends_nothing(client):
    listed = (await client.get(CONFIG_MAPS)).body["metadata"]["resourceVersion"]
    await inject(client, match=WATCHES, stale={})
    await client.post(CONFIG_MAPS, config_map("late"))
    watched = await client.get(f"{CONFIG_MAPS}?watch=1&resourceVersion={listed}&timeoutSeconds=1")
    assert watched.data == b""


@pytest.mark.parametrize("effect", ["hold", "drop"])
async def test_watch_continues_when_its_user_has_written(client, effect):
    other = Client(client.session, client.url, authorization="Bearer alice")
    await inject(client, match={**ON_CONFIG_MAPS, "verbs": ["watch"]}, **{effect: {"untilWrite": True}})
    async with client.watch(f"{CONFIG_MAPS}?watch=1") as events:
        waiting = asyncio.create_task(next_item(events))
        await other.post(CONFIG_MAPS, config_map("of-another-user"))
        await client.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "other-resource"}})
        await client.post(CONFIG_MAPS, config_map("BAD NAME"))
        assert not waiting.done()
        await client.post(CONFIG_MAPS, config_map("own"))
        await client.post(CONFIG_MAPS, config_map("following"))
        first = (await waiting)["object"]["metadata"]["name"]
        assert first == ("of-another-user" if effect == "hold" else "following")


# --- leases and nodes


LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


async def test_lease_is_stolen_before_its_renewal(client):
    spec = {"holderIdentity": "operator", "leaseDurationSeconds": 15, "leaseTransitions": 2}
    lease = (await client.post(LEASE, {"metadata": {"name": "l"}, "spec": spec})).body
    await inject(
        client,
        match={"resource": "leases", "verbs": ["update"]},
        steal={"holder": "thief", "seconds": 7},
        times=1,
    )
    assert (await client.put(f"{LEASE}/l", lease)).status == 409
    stolen = (await client.get(f"{LEASE}/l")).body
    assert stolen["spec"]["holderIdentity"] == "thief"
    assert (stolen["spec"]["leaseDurationSeconds"], stolen["spec"]["leaseTransitions"]) == (7, 3)
    assert stolen["spec"]["renewTime"]
    assert (await client.put(f"{LEASE}/l", {**stolen, "spec": spec})).status == 200
    assert (await client.get(f"{FAULTS}/f")).body["status"]["hits"] == 1


async def test_lease_that_does_not_exist_is_not_stolen(client):
    await inject(client, match={"resource": "leases"}, steal={})
    assert (await client.get(f"{LEASE}/none")).status == 404
    assert (await client.post(LEASE, {"metadata": {"name": "l"}})).status == 201


async def test_node_selects_what_belongs_to_it():
    async with running("--disable-admission-plugins=ServiceAccount") as client:
        await _select_by_node(client)


async def _select_by_node(client):
    for node in ("node-1", "node-2"):
        await client.post("/api/v1/nodes", {"metadata": {"name": node}})
        pod = {
            "metadata": {"name": f"on-{node}"},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
        }
        assert (await client.post("/api/v1/namespaces/default/pods", pod)).status == 201
    await inject(client, match={"node": "node-1"}, refuse={"status": 503})
    pods = "/api/v1/namespaces/default/pods"
    paths = ("/api/v1/nodes/node-1", "/api/v1/nodes/node-2", f"{pods}/on-node-1", f"{pods}/on-node-2", pods)
    assert [(await client.get(path)).status for path in paths] == [503, 200, 503, 200, 200]
    renewal = await client.get("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1")
    assert renewal.status == 503
