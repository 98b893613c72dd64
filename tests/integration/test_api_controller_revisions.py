"""The data of a ControllerRevision is immutable, byte for byte: writes that a real kube-apiserver 1.36 accepted."""

import orjson
import pytest

from tests.support.server import apiserver

PATH = "/apis/apps/v1/namespaces/default/controllerrevisions"
ONE = f"{PATH}/c"
LABEL = b'{"metadata":{"labels":{"a":"%d"}}}'
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
JSON_PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"


def revision(data, number=1):
    head = b'{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"c"},'
    return b'%b"revision":%d,"data":%b}' % (head, number, data)


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


async def patch(client, body, content):
    query = "?fieldManager=x&force=true" if content == APPLY else ""
    return (await client.send("PATCH", ONE + query, body, Content_Type=content)).status


@pytest.mark.parametrize(
    ("data", "merge", "strategic", "json", "applied"),
    [
        pytest.param(b'{"a":1}', 200, 200, 200, 200, id="without blanks"),
        pytest.param(b'{"b":1,"a":2.0}', 200, 422, 200, 422, id="not in order"),
        pytest.param(b'{ "a" : 1 }', 422, 422, 422, 422, id="with blanks"),
        pytest.param(b'{"a":"x<y"}', 422, 422, 422, 422, id="characters that Go escapes"),
        pytest.param(b'{"a":1e3}', 200, 422, 200, 422, id="a number with an exponent"),
        pytest.param(rb'{"a":"\u0061"}', 200, 422, 200, 422, id="a letter that is escaped"),
    ],
)
async def test_controller_revision_write_errors_have_their_messages(
    client, data, merge, strategic, json, applied
):
    assert (await client.post(PATH, revision(data))).status == 201
    assert await patch(client, LABEL % 1, MERGE) == merge
    assert await patch(client, LABEL % 2, STRATEGIC) == strategic
    add = b'[{"op":"add","path":"/metadata/labels","value":{"a":"3"}}]'
    assert await patch(client, add, JSON_PATCH) == json
    assert await patch(client, revision(data, 2), APPLY) == applied
    assert (await client.put(ONE, revision(data, 3))).status == 200
    assert (await client.get(ONE)).body["data"] == orjson.loads(data)


async def test_unchanged_apply_is_accepted(client):
    await client.post(PATH, revision(b'{ "a" : 1 }'))
    assert await patch(client, revision(b'{"a": 1}'), APPLY) == 200


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b'{"a":1}', '{"a":1}'),
        (b'{ "a" : 1, "b": 2.0 }', '{"a":1,"b":2.0}'),
        (b"null", "null"),
    ],
)
async def test_changed_data_is_refused_with_original_data(client, data, shown):
    await client.post(PATH, revision(b'{ "a" : 1 }'))
    refused = await client.put(ONE, revision(data, -1))
    assert refused.body["message"] == (
        'ControllerRevision.apps "c" is invalid: [revision: Invalid value: -1: must be greater than or equal to 0, '
        f"data: Invalid value: {shown}: field is immutable]"
    )
