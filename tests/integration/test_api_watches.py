"""Watches deliver every change once, in order, from any version."""

import asyncio
import contextlib

import aiohttp
import orjson
import pytest

from tests.support.event_loop import until
from tests.support.server import apiserver

MAPS = "/api/v1/namespaces/default/configmaps"
INITIAL = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


async def create(client, name, **labels):
    return (await client.post(MAPS, {"metadata": {"name": name, "labels": labels}})).body["metadata"]


async def take(events, count):
    return [await anext(events) for _ in range(count)]


def types_and_names(events):
    return [(event["type"], event["object"]["metadata"].get("name")) for event in events]


async def test_watch_resumes_from_resource_version(client):
    first = await create(client, "a")
    await create(client, "b")
    async with client.watch(f"{MAPS}?watch=1&resourceVersion={first['resourceVersion']}") as events:
        assert types_and_names(await take(events, 1)) == [("ADDED", "b")]
        await client.patch(f"{MAPS}/a", {"data": {"k": "v"}})
        await client.delete(f"{MAPS}/a")
        later = await take(events, 2)
    assert types_and_names(later) == [("MODIFIED", "a"), ("DELETED", "a")]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in later]
    assert versions == sorted(set(versions))


@pytest.mark.parametrize(
    ("version", "is_chunked"), [pytest.param("1.1", True, id="1.1"), pytest.param("1.0", False, id="1.0")]
)
async def test_body_of_watch_ends_as_http_version_allows(client, version, is_chunked):
    await create(client, "a")
    await create(client, "b")
    host, port = client.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = [f"GET {MAPS}?watch=1&timeoutSeconds=1 HTTP/{version}", "Host: localhost", "Connection: close"]
    credentials = [f"{name}: {value}" for name, value in client.credentials.items()]
    writer.write("\r\n".join([*head, *credentials, "", ""]).encode())
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
    body = await reader.read()
    writer.close()
    assert ("transfer-encoding: chunked" in lines) is is_chunked
    assert types_and_names(map(orjson.loads, (decode_chunks(body) if is_chunked else body).splitlines())) == [
        ("ADDED", "a"),
        ("ADDED", "b"),
    ]


def decode_chunks(body):
    data = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size, 16)
        data, end, body = data + rest[:length], rest[length : length + 2], rest[length + 2 :]
        assert end == b"\r\n"
        if not length:
            assert not body
            return data
    raise AssertionError("the last chunk is missing")


async def test_mark_of_immediate_deletion_is_sent_before_object_is_deleted(client):
    """Controllers whose cache shows the mark react to it: leader-worker sets recreate a group."""
    pods, spec = "/api/v1/namespaces/default/pods", {"containers": [{"name": "a", "image": "a"}]}
    await client.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    async with client.session.get(f"{client.url}{pods}?watch=1", headers=client.credentials) as watch:
        await client.post(pods, {"metadata": {"name": "a"}, "spec": spec})
        await client.delete(f"{pods}/a")
        writes = []
        async for data, _ in watch.content.iter_chunks():
            writes.append([orjson.loads(line)["type"] for line in data.splitlines()])
            if "DELETED" in writes[-1]:
                break
        watch.connection.transport.abort()
    assert writes == [["ADDED"], ["MODIFIED"], ["DELETED"]]


async def test_watch_without_resource_version_starts_with_existing_objects(client):
    await create(client, "a")
    async with client.watch(f"{MAPS}?watch=1") as events:
        await create(client, "b")
        assert types_and_names(await take(events, 2)) == [("ADDED", "a"), ("ADDED", "b")]


async def test_initial_events_end_with_annotated_bookmark(client):
    created = await create(client, "a")
    async with client.watch(f"{MAPS}?{INITIAL}") as events:
        added, bookmark = await take(events, 2)
        await create(client, "b")
        assert types_and_names(await take(events, 1)) == [("ADDED", "b")]
    assert added["type"] == "ADDED"
    assert bookmark["type"] == "BOOKMARK"
    metadata = bookmark["object"]["metadata"]
    assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(metadata["resourceVersion"]) >= int(created["resourceVersion"])


@pytest.mark.parametrize(
    ("flag", "query", "encoding", "expected"),
    [
        ("--kubernetes-version=1.37", INITIAL, "gzip", "gzip"),
        ("--kubernetes-version=1.37", INITIAL, "deflate, gzip", "gzip"),
        ("--kubernetes-version=1.37", INITIAL, "deflate", None),
        ("--kubernetes-version=1.37", "watch=1", "gzip", None),
        ("--kubernetes-version=1.37", INITIAL.replace("allowWatchBookmarks", "x"), "gzip", None),
        ("--kubernetes-version=1.36", INITIAL, "gzip", None),
    ],
)
async def test_initial_events_are_compressed_for_clients_that_accept_it(flag, query, encoding, expected):
    async with apiserver.running(flag) as client:
        await create(client, "a")
        headers = client.credentials | {"Accept-Encoding": encoding}
        async with client.session.get(f"{client.url}{MAPS}?{query}", headers=headers) as answer:
            event = orjson.loads(await answer.content.readline())
            answer.connection.transport.abort()
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")
    assert answer.headers.get("Content-Encoding") == expected
    assert answer.headers.get("Vary") == ("Accept-Encoding" if expected else None)


@pytest.mark.parametrize("include", ["", "None", "Metadata", "Object"])
async def test_bookmark_in_a_table_is_a_row_of_an_empty_object(client, include):
    """As upstream, whose bookmarks are objects that are printed like others; the first event has the columns."""
    query = INITIAL
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    async with client.watch(f"{MAPS}?{query}&includeObject={include}", Accept=accept) as events:
        (bookmark,) = await take(events, 1)
    assert bookmark["type"] == "BOOKMARK"
    table = bookmark["object"]
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    (row,) = table["rows"]
    version = table["metadata"]["resourceVersion"]
    kind = ("ConfigMap", "v1") if include == "Object" else ("PartialObjectMetadata", "meta.k8s.io/v1")
    metadata = {"resourceVersion": version, "annotations": {"k8s.io/initial-events-end": "true"}}
    assert row["cells"] == ["", 0, "<unknown>"]
    assert row["object"] == {"kind": kind[0], "apiVersion": kind[1], "metadata": metadata}


async def test_watch_as_table_with_unknown_include_object_is_refused(client):
    answer = await client.get(
        f"{MAPS}?watch=1&includeObject=x", Accept="application/json;as=Table;v=v1;g=meta.k8s.io"
    )
    problem = "includeObject: Invalid value: \"x\": must be 'Metadata', 'Object', 'None', or empty"
    message = f"Unable to convert to Table as requested: {problem}"
    assert (answer.status, answer.body["message"]) == (400, message)


async def test_bookmark_of_metadata_has_the_annotation(client):
    query = INITIAL
    accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    async with client.watch(f"{MAPS}?{query}", Accept=accept) as events:
        (bookmark,) = await take(events, 1)
    assert bookmark["object"].pop("metadata").keys() == {"resourceVersion", "annotations"}
    assert bookmark["object"] == {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}


async def test_selector_transitions_are_added_and_deleted_events(client):
    first = await create(client, "a", colour="red")
    query = f"watch=1&labelSelector=colour%3Dred&resourceVersion={first['resourceVersion']}"
    async with client.watch(f"{MAPS}?{query}") as events:
        await client.patch(f"{MAPS}/a", {"metadata": {"labels": {"colour": "blue"}}})
        await client.patch(f"{MAPS}/a", {"data": {"unseen": "1"}})
        await client.patch(f"{MAPS}/a", {"metadata": {"labels": {"colour": "red"}}})
        await client.patch(f"{MAPS}/a", {"data": {"seen": "1"}})
        await client.delete(f"{MAPS}/a")
        seen = await take(events, 4)
    assert [event["type"] for event in seen] == ["DELETED", "ADDED", "MODIFIED", "DELETED"]
    assert seen[0]["object"]["metadata"]["labels"] == {"colour": "red"}


async def test_watch_of_one_name_receives_no_other(client):
    async with client.watch(f"{MAPS}?watch=1&fieldSelector=metadata.name%3Da") as events:
        await create(client, "aa")
        await create(client, "a")
        assert types_and_names(await take(events, 1)) == [("ADDED", "a")]


async def test_watch_of_namespace_receives_no_other(client):
    await client.post("/api/v1/namespaces", {"metadata": {"name": "default2"}})
    async with client.watch(f"{MAPS}?watch=1") as events:
        await client.post("/api/v1/namespaces/default2/configmaps", {"metadata": {"name": "x"}})
        await create(client, "a")
        assert types_and_names(await take(events, 1)) == [("ADDED", "a")]


async def test_watch_ends_at_its_timeout(client):
    async with client.watch(f"{MAPS}?watch=1&timeoutSeconds=1") as events:
        assert [event async for event in events] == []


async def test_unexpected_error_of_sending_is_logged_and_ends_that_watch_alone(client, monkeypatch, caplog):
    def fail(*_, **__):
        raise RuntimeError("a fault in the program")

    handler = client.server.handler.watch_handler
    async with client.watch(f"{MAPS}?watch=1") as one, client.watch(f"{MAPS}?watch=1") as another:
        with monkeypatch.context() as patched:
            patched.setattr(handler, "_bookmark", fail)
            next(iter(handler._streams)).bookmark(client.server.registry.watch_cache.revision)
            await until(lambda: len(handler._streams) == 1)
        await create(client, "a")
        received = [await next_or_end(one), await next_or_end(another)]
    assert sorted(map(bool, received)) == [False, True]
    (record,) = [record for record in caplog.records if record.exc_info]
    assert "a fault in the program" in caplog.handler.format(record)


async def next_or_end(events):
    """Return the next event, or None at the end of the watch."""
    try:
        return await anext(events)
    except (StopAsyncIteration, aiohttp.ClientError):
        return None


async def test_default_watch_timeout_follows_flag():
    flag = "--min-request-timeout=0"
    async with apiserver.running(flag) as client, client.watch(f"{MAPS}?watch=1") as events:
        assert [event async for event in events] == []


async def test_watches_of_all_kinds_receive_same_events(client):
    partial = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    async with (
        client.watch(f"{MAPS}?watch=1") as whole,
        client.watch("/api/v1/configmaps?watch=1") as everywhere,
        client.watch(f"{MAPS}?watch=1", Accept=partial) as some,
    ):
        await create(client, "a")
        assert (
            types_and_names(await take(whole, 1))
            == types_and_names(await take(everywhere, 1))
            == [("ADDED", "a")]
        )
        (event,) = await take(some, 1)
    assert event["object"]["kind"] == "PartialObjectMetadata"


@contextlib.asynccontextmanager
async def socket(client, path):
    async with client.session.ws_connect(client.url + path, headers=client.credentials) as connection:
        yield connection


async def test_watch_works_over_websocket(client):
    await create(client, "a")
    async with socket(client, f"{MAPS}?watch=1") as connection:
        await create(client, "b")
        events = [await connection.receive_json() for _ in range(2)]
    assert types_and_names(events) == [("ADDED", "a"), ("ADDED", "b")]


async def test_websocket_is_closed_at_end_of_watch(client):
    async with socket(client, f"{MAPS}?watch=1&timeoutSeconds=1") as connection:
        assert (await connection.receive()).type is aiohttp.WSMsgType.CLOSE


async def test_invalid_websocket_watch_is_refused_with_status(client):
    created = await create(client, "a")
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        async with socket(client, f"{MAPS}?watch=1&resourceVersion={int(created['resourceVersion'])}x"):
            pytest.fail("a version that is no number was taken")
    assert refused.value.status == 500


async def test_yaml_watch_is_not_acceptable(client):
    refused = await client.get("/api/v1/configmaps?watch=1", Accept="application/yaml, application/json")
    assert (refused.status, refused.headers["Content-Type"]) == (406, "application/yaml")
    assert b"application/json;stream=watch" in refused.data


MAPS_OF_DEFAULT = "/api/v1/namespaces/default/configmaps"
LIST_OPTIONS = 'ListOptions.meta.k8s.io "" is invalid: '
OLD_PATH = "/api/v1/watch/namespaces/default/configmaps"


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        (
            f"{MAPS_OF_DEFAULT}?watch=1&resourceVersion=1.5",
            500,
            'resourceVersion: Invalid value: "1.5": strconv.ParseUint: parsing "1.5": invalid syntax',
        ),
        (
            f"{OLD_PATH}/a?fieldSelector=metadata.name%3Db",
            400,
            "fieldSelector metadata.name doesn't match requested name",
        ),
        (
            f"{MAPS_OF_DEFAULT}?watch=1&continue=abc&resourceVersion=0",
            422,
            f"{LIST_OPTIONS}resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided",
        ),
        (
            f"{OLD_PATH}?sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=1",
            422,
            f"{LIST_OPTIONS}sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
        ),
        (
            "/api/v1/componentstatuses?watch=1",
            405,
            'watch is not supported on resources of kind "componentstatuses"',
        ),
    ],
)
async def test_invalid_watch_has_upstreams_message(client, path, status, message):
    refused = await client.get(path)
    assert (refused.status, refused.body["message"]) == (status, message)


async def test_watch_of_deprecated_kind_warns(client):
    answer = await client.get("/api/v1/watch/endpoints?timeoutSeconds=1&resourceVersion=0")
    expected = '299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"'
    assert answer.headers["Warning"] == expected
