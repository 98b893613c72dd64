"""The API of a moment of the past: its objects, definitions and columns, read-only, with the rights of now."""

import asyncio

import orjson
import pytest

from mockube.component_base.clock import SteppedClock
from mockube.etcd.kv import Compare, Put, Target, Txn
from tests.support.server.apiserver import Client, running, running_with_roles
from tests.support.server.control import PATH as CONTROL
from tests.support.server.control import control_object
from tests.support.server.definitions import DEFINITIONS, WIDGETS, define, definition, until, version

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def client():
    async with running() as client:
        yield client


async def moment(client, text="now"):
    answer = await client.get(f"/mockube/at/{text}")
    assert answer.status == 200, answer.body
    return answer.body["revision"]


def names(answer):
    assert answer.status == 200, answer.body
    return [item["metadata"]["name"] for item in answer.body["items"]]


async def put(client, name, value):
    body = {"metadata": {"name": name}, "data": {"k": value}}
    if (await client.put(f"{CONFIG_MAPS}/{name}", body)).status == 404:
        assert (await client.post(CONFIG_MAPS, body)).status == 201


async def test_objects_are_those_of_the_moment(client):
    await put(client, "a", "1")
    first = await moment(client)
    await put(client, "a", "2")
    await put(client, "b", "1")
    second = await moment(client)
    await client.delete(f"{CONFIG_MAPS}/a")
    for revision, expected in ((first, {"a": "1"}), (second, {"a": "2", "b": "1"})):
        listed = await client.get(f"/mockube/at/{revision}{CONFIG_MAPS}")
        assert {each["metadata"]["name"]: each["data"]["k"] for each in listed.body["items"]} == expected
        assert listed.body["metadata"]["resourceVersion"] == str(revision)
        read = await client.get(f"/mockube/at/{revision}{CONFIG_MAPS}/a")
        assert read.body["data"] == {"k": expected["a"]}
    assert (await client.get(f"/mockube/at/{first}{CONFIG_MAPS}/b")).status == 404
    assert names(await client.get(CONFIG_MAPS)) == ["b"]


async def test_marks_name_moments(client):
    await put(client, "a", "1")
    await client.post(f"{CONTROL}/marks", control_object("Mark", "before"))
    await client.delete(f"{CONFIG_MAPS}/a")
    assert names(await client.get(f"/mockube/at/before{CONFIG_MAPS}")) == ["a"]


async def test_times_name_moments_and_ages_are_those_of_then():
    clock = SteppedClock()
    async with running(clock=clock) as client:
        await put(client, "a", "1")
        clock.advance(60)
        await put(client, "b", "1")
        before = clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        clock.advance(3600)
        await client.delete(f"{CONFIG_MAPS}/a")
        table = (await client.get(f"/mockube/at/{before}{CONFIG_MAPS}", Accept=TABLE)).body
        assert [row["cells"] for row in table["rows"]] == [["a", 1, "60s"], ["b", 1, "0s"]]
        spans = [await moment(client, text) for text in ("-1h", "-1h0m30s")]
        listed = [names(await client.get(f"/mockube/at/{each}{CONFIG_MAPS}")) for each in spans]
        assert listed == [["a", "b"], ["a"]]
        answer = await client.get(f"/mockube/at/-1h{CONFIG_MAPS}")
        assert (answer.status, f"use /mockube/at/{spans[0]}" in answer.body["message"]) == (400, True)


async def test_definitions_are_those_of_the_moment(client):
    size = {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
    without = await moment(client)
    await define(client, definition(version(additionalPrinterColumns=[size])))
    widget = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "spec": {"size": 7},
    }
    assert (await client.post(WIDGETS, widget)).status == 201
    revision = await moment(client)
    await client.delete(f"{DEFINITIONS}/widgets.example.com")
    await until(client, "widgets.example.com", lambda seen: seen is None)
    table = (await client.get(f"/mockube/at/{revision}{WIDGETS}", Accept=TABLE)).body
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Size"]
    assert table["rows"][0]["cells"] == ["w", 7]
    groups = [
        [group["name"] for group in (await client.get(f"/mockube/at/{each}/apis")).body["groups"]]
        for each in (revision, without)
    ]
    assert ["example.com" in each for each in groups] == [True, False]
    documents = (await client.get(f"/mockube/at/{revision}/openapi/v3")).body["paths"]
    assert "apis/example.com/v1" in documents
    assert (await client.get(f"/mockube/at/{without}{WIDGETS}")).status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_past_cannot_be_changed(client, method):
    await put(client, "a", "1")
    revision = await moment(client)
    path = CONFIG_MAPS if method == "POST" else f"{CONFIG_MAPS}/a"
    for query in ("", "?dryRun=All"):
        answer = await client.send(
            method, f"/mockube/at/{revision}{path}{query}", {"metadata": {"name": "a"}}
        )
        assert (answer.status, answer.body["reason"]) == (405, "MethodNotAllowed")
        assert answer.body["message"].startswith(f"this is the past, at revision {revision}, ")
    for path in ("/mockube/snapshot", "/mockube/clock"):
        assert (await client.send(method, f"/mockube/at/{revision}{path}", {})).status == 405
    assert await moment(client) == revision


async def test_pages_of_the_server_are_not_in_the_past(client):
    revision = await moment(client)
    for path in (
        "/mockube/snapshot",
        "/mockube/clock",
        f"/mockube/at/{revision}/api",
        "/metrics",
        "/healthz",
    ):
        assert (await client.get(f"/mockube/at/{revision}{path}")).status == 404
    assert (await client.get(f"/mockube/at/{revision}/version")).body["major"] == "1"


async def test_containers_of_the_past_have_no_streams(client):
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await client.post("/api/v1/namespaces/default/pods", pod)
    revision = await moment(client)
    for subresource in ("log", "exec", "attach", "portforward", "proxy"):
        answer = await client.get(f"/mockube/at/{revision}/api/v1/namespaces/default/pods/p/{subresource}")
        assert (answer.status, subresource in answer.body["message"]) == (405, True)


async def test_watch_of_the_past_sends_its_objects_and_then_nothing(client):
    await put(client, "a", "1")
    revision = await moment(client)
    async with client.watch(f"/mockube/at/{revision}{CONFIG_MAPS}?watch=1&timeoutSeconds=30") as events:
        first = await anext(events)
        assert (first["type"], first["object"]["metadata"]["name"]) == ("ADDED", "a")
        waiting = asyncio.create_task(anext(events))
        await put(client, "b", "1")
        await moment(client)
        assert not waiting.done()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


async def test_rights_are_those_of_now():
    async with running_with_roles() as client:
        rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]}]
        roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
        await client.post(f"{roles}/roles", {"metadata": {"name": "r"}, "rules": rules})
        binding = {
            "metadata": {"name": "r"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
        }
        await client.post(f"{roles}/rolebindings", binding)
        alice = Client(client.session, client.url, authorization="Bearer alice")
        secrets = "/api/v1/namespaces/default/secrets"
        revision = await moment(alice)
        assert (await alice.get(f"/mockube/at/{revision}{secrets}")).status == 200
        await client.delete(f"{roles}/rolebindings/r")
        refused = await alice.get(f"/mockube/at/{revision}{secrets}")
        assert (refused.status, refused.body["reason"]) == (403, "Forbidden")
        review = {
            "kind": "SelfSubjectAccessReview",
            "apiVersion": "authorization.k8s.io/v1",
            "spec": {"resourceAttributes": {"namespace": "default", "verb": "list", "resource": "secrets"}},
        }
        path = f"/mockube/at/{revision}/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        assert (await alice.post(path, review)).body["status"]["allowed"] is False
        assert (await alice.get("/mockube/snapshot")).status == 403
        nobody = Client(client.session, client.url, authorization="")
        assert (await nobody.get(f"/mockube/at/{revision}{secrets}")).status == 403


@pytest.mark.parametrize(
    ("text", "status", "message"),
    [
        ("99999999999999999", 400, "99999999999999999 is in the future: the newest revision is "),
        ("2999-01-01T00:00:00Z", 400, "2999-01-01T00:00:00Z is in the future: it is "),
        ("-100000h", 410, "-100000h is before the history of this server, which begins at revision "),
        ("2001-01-01T00:00:00Z", 410, "2001-01-01T00:00:00Z is before the history of this server"),
        ("nothing", 404, "nothing is no moment: a revision, a time such as"),
        ("-5x", 400, "-5x is no span before now such as -5m: "),
        ("2026-13-01T00:00:00Z", 400, "2026-13-01T00:00:00Z is no time such as "),
        ("", 404, '"" is no moment: '),
    ],
)
async def test_other_moments_are_refused(client, text, status, message):
    for path in (f"/{CONFIG_MAPS}", ""):
        answer = await client.get(f"/mockube/at/{text}{path}")
        assert answer.status == status
        assert answer.body["message"].startswith(message)


async def test_compacted_moment_has_expired(client):
    await put(client, "a", "1")
    revision = await moment(client)
    assert names(await client.get(f"/mockube/at/{revision}{CONFIG_MAPS}")) == ["a"]
    await put(client, "a", "2")
    kept = await moment(client)
    await client.server.registry.kv.compact(kept)
    answer = await client.get(f"/mockube/at/{revision}{CONFIG_MAPS}")
    assert (answer.status, answer.body["reason"]) == (410, "Expired")
    assert f"begins at revision {kept}, " in answer.body["message"]
    assert names(await client.get(f"/mockube/at/{kept}{CONFIG_MAPS}")) == ["a"]
    assert (await client.get("/mockube/at/oldest")).body["revision"] == kept


async def test_oldest_moment_of_a_whole_history_is_its_beginning(client):
    await put(client, "a", "1")
    assert (await client.get("/mockube/at/oldest")).body["revision"] == 1


async def test_few_moments_are_kept_and_watches_of_others_end(client):
    await put(client, "a", "1")
    revision = await moment(client)
    watched = client.watch(f"/mockube/at/{revision}{CONFIG_MAPS}?watch=1")
    async with watched as events:
        await anext(events)
        for number in range(5):
            await put(client, "a", f"{number}x")
            assert names(await client.get(f"/mockube/at/{await moment(client)}{CONFIG_MAPS}")) == ["a"]
        assert [event async for event in events] == []
    assert len(client.server._past._servers) == 4
    answer = await client.get(f"/mockube/at/{revision}{CONFIG_MAPS}/a")
    assert answer.body["data"] == {"k": "1"}


async def test_hooks_of_the_present_do_not_see_the_past(client):
    seen = []

    async def middleware(request, proceed):
        seen.append(request.path)
        return await proceed(request)

    revision = await moment(client)
    for point in (
        client.server.context.hooks.before_authentication,
        client.server.context.hooks.before_endpoint,
    ):
        point.add(middleware)
    assert names(await client.get(f"/mockube/at/{revision}{CONFIG_MAPS}")) == []
    assert seen == []


async def test_concurrent_requests_make_one_server_of_a_moment(client):
    await put(client, "a", "1")
    revision = await moment(client)
    made = []
    make = client.server._past._make_server

    async def counted(moment):
        made.append(moment)
        return await make(moment)

    client.server._past._make_server = counted
    answers = await asyncio.gather(*(client.get(f"/mockube/at/{revision}{CONFIG_MAPS}") for _ in range(5)))
    assert [names(answer) for answer in answers] == [["a"]] * 5
    assert len(made) == 1


async def test_values_of_the_past_are_read_in_pages(client, monkeypatch):
    """More keys than a page: all of them are there, and those that came later are not."""
    monkeypatch.setattr("mockube.apiserver.parts.past.PAGE", 7)
    for number in range(20):
        await put(client, f"c{number:02}", "1")
    revision = await moment(client)
    for number in range(20):
        await put(client, f"c{number:02}", "2")
        await put(client, f"d{number:02}", "2")
    listed = await client.get(f"/mockube/at/{revision}{CONFIG_MAPS}")
    assert names(listed) == [f"c{number:02}" for number in range(20)]
    assert {item["data"]["k"] for item in listed.body["items"]} == {"1"}
    continued = await client.get(f"/mockube/at/{revision}{CONFIG_MAPS}?limit=15")
    token = continued.body["metadata"]["continue"]
    rest = await client.get(f"/mockube/at/{revision}{CONFIG_MAPS}?limit=15&continue={token}")
    assert names(continued) + names(rest) == names(listed)


async def test_revision_without_author_belongs_to_the_time_before(client):
    """A revision that another server of the same store made has no entry in the journal."""
    await put(client, "a", "1")
    known = (await client.get("/mockube/at/now")).body
    absent = Compare(key=b"/registry/x", target=Target.VERSION, operand=0)
    await client.server.registry.kv.txn(Txn(compare=(absent,), then=(Put(key=b"/registry/x", value=b"{}"),)))
    newest = (await client.get("/mockube/at/now")).body
    assert (newest["revision"], newest["time"]) == (known["revision"] + 1, known["time"])
    assert orjson.dumps(newest)
