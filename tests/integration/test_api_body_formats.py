"""Bodies of every media type that are empty or not objects: which error is returned, and which check comes first."""

import pytest

from tests.support.server.apiserver import running

MAPS = "/api/v1/namespaces/default/configmaps"
NO_OBJECT = "the object provided is unrecognized (must be of type ConfigMap): "
NO_JSON = "couldn't get version/kind; json parse error: unexpected end of JSON input"
NO_PATCH = "invalid JSON patch"
NO_MAP = "error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type map[string]interface {{}}"
ACCEPTED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
MERGE, STRATEGIC, APPLY = "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml"


@pytest.fixture
async def client():
    async with running() as client:
        await client.post(MAPS, {"metadata": {"name": "a"}})
        yield client


@pytest.mark.parametrize(
    ("method", "path", "kind", "data", "expected"),
    [
        ("POST", "", "json", "{", (400, f"{NO_OBJECT}{NO_JSON} ({{)")),
        ("POST", "", "yaml", "{", (400, f"{NO_OBJECT}yaml: line 1: did not find expected node content ({{)")),
        ("POST", "", "yaml", "", (422, None)),
        ("POST", "", "vnd.kubernetes.protobuf", "", (400, f"{NO_OBJECT}empty data (<empty>)")),
        (
            "POST",
            "",
            "cbor",
            "",
            (
                415,
                f"the body of the request was in an unknown format - accepted media types include: {ACCEPTED}",
            ),
        ),
        ("DELETE", "/a", "json", "{", (400, NO_JSON)),
        ("DELETE", "/a", "yaml", "{", (400, "yaml: line 1: did not find expected node content")),
        ("PATCH", "/a", MERGE, "", (400, NO_PATCH)),
        ("PATCH", "/a", STRATEGIC, "x", (400, NO_PATCH)),
        ("PATCH", "/b", MERGE, "x", (400, NO_PATCH)),
        ("PATCH", "/b", "json-patch+json", "{}", (404, 'configmaps "b" not found')),
        ("PATCH", "/a?fieldManager=m", APPLY, "", (400, "invalid object type: /, Kind=")),
        ("PATCH", "/a?fieldManager=m", APPLY, "[]", (400, NO_MAP.format("array"))),
        ("PATCH", "/a?fieldManager=m", APPLY, "x", (400, NO_MAP.format("string"))),
        ("PATCH", "/a?fieldManager=m", APPLY, "1", (400, NO_MAP.format("number"))),
    ],
)
async def test_bodies_that_are_no_objects_are_refused(client, method, path, kind, data, expected):
    answer = await client.send(method, MAPS + path, data.encode(), Content_Type=f"application/{kind}")
    message = answer.body["message"]
    assert (answer.status, message) == (expected[0], expected[1] or message)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"containers": [{"image": "i"}]}, "containers[0].name"),
        ({"containers": [], "volumes": [{"emptyDir": {}}]}, "volumes[0].name"),
    ],
)
async def test_list_element_without_key_is_validated_as_empty_key(client, spec, field):
    """Upstream's definitions declare the zero of each field that Go always writes as its default."""
    body = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "p"}, "template": {"spec": spec}}
    path = "/api/v1/namespaces/default/podtemplates/p?fieldManager=m"
    refused = await client.send("PATCH", path, body, Content_Type=f"application/{APPLY}")
    assert refused.status == 422
    assert f"template.spec.{field}" in [cause["field"] for cause in refused.body["details"]["causes"]]


STRICT = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            b'"data":{"k":"\xff","k":"x"},"foo":1,"foo":2',
            'duplicate field "data.k", unknown field "foo"',
        ),
        (b'"DATA":{"k":"\xff"}', 'unknown field "DATA"'),
        (b'"data":{"\xff":"x","\xff":"y"}', 'duplicate field "data.\ufffd"'),
        (b'"data":{"k":"\xff"},"Foo\xff":1', 'unknown field "Foo\ufffd"'),
        (b'"data":{"k":"\\ud800","k":"x"}', 'duplicate field "data.k"'),
    ],
)
async def test_invalid_characters_do_not_hide_wrong_fields(client, members, message):
    body = b'{"metadata":{"name":"b"},%b}' % members
    answer = await client.send(
        "POST", f"{MAPS}?fieldValidation=Strict", body, Content_Type="application/json"
    )
    assert (answer.status, answer.body["message"]) == (400, STRICT + message)


UNKNOWN = "the body of the request was in an unknown format - accepted media types include: "
PATCHES = (
    "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, "
    "application/apply-patch+yaml"
)


@pytest.mark.parametrize("kind", ["json; charset", "json; a=1; a=2", "json, application/json", "json;;", "/"])
@pytest.mark.parametrize(("method", "path"), [("POST", ""), ("PUT", "/a"), ("DELETE", "/a")])
async def test_body_of_a_malformed_content_type_is_refused(client, method, path, kind):
    answer = await client.send(method, MAPS + path, b"{}", Content_Type=f"application/{kind}")
    assert (answer.status, answer.body["message"]) == (415, UNKNOWN + ACCEPTED)


async def test_delete_without_a_body_may_have_any_content_type(client):
    assert (await client.send("DELETE", f"{MAPS}/a", Content_Type="x; y")).status == 200


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (f"{MERGE} ;a=b", UNKNOWN + PATCHES),
        (f"json, application/{MERGE}", UNKNOWN + PATCHES),
        (MERGE.capitalize(), "415: Unsupported Media Type"),
        ("json", "415: Unsupported Media Type"),
    ],
)
async def test_patch_type_is_compared_by_the_router_and_by_the_handler(client, kind, message):
    answer = await client.send("PATCH", f"{MAPS}/a", b"{}", Content_Type=f"application/{kind}")
    assert (answer.status, answer.body["message"]) == (415, message)


async def test_parameters_of_a_patch_type_are_not_read(client):
    answer = await client.send("PATCH", f"{MAPS}/a", b"{}", Content_Type=f"application/{MERGE}; a=1; a=2")
    assert answer.status == 200
