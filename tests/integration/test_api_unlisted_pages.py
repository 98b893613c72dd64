"""Pages and formats that few clients request: OpenAPI 3 in protobuf, and the pages below /debug/."""

import pytest

from tests.support.server import apiserver

DOCUMENT = "/openapi/v3/apis/authentication.k8s.io/v1"
PROTOBUF = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
DEPRECATED = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
DUMPS = "/debug/api_priority_and_fairness"


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        (PROTOBUF, PROTOBUF),
        (DEPRECATED, PROTOBUF),
        (f"application/json;q=0.5,{DEPRECATED}", PROTOBUF),
        ("*/*", "application/json"),
        ("application/*", "application/json"),
    ],
)
async def test_openapi_v3_has_requested_format(client, accept, content_type):
    as_json, answer = await client.get(DOCUMENT), await client.get(DOCUMENT, Accept=accept)
    assert (answer.status, answer.headers["Content-Type"]) == (200, content_type)
    assert answer.headers["Etag"] == as_json.headers["Etag"]
    assert answer.headers["Vary"] == "Accept"
    assert (answer.data[:1] == b"{") == (content_type == "application/json")


async def test_openapi_v3_in_protobuf_redirects_to_its_hash(client):
    digest = (await client.get(DOCUMENT)).headers["Etag"].strip('"')
    redirected = await client.session.get(
        f"{client.url}{DOCUMENT}?hash=A",
        headers=client.credentials | {"Accept": PROTOBUF},
        allow_redirects=False,
    )
    assert (redirected.status, redirected.headers["Content-Type"]) == (301, PROTOBUF)
    assert redirected.headers["Location"] == f"{DOCUMENT}?hash={digest}"
    answer = await client.get(f"{DOCUMENT}?hash={digest}", Accept=PROTOBUF)
    assert answer.headers["Cache-Control"] == "public, immutable"


async def test_openapi_v3_in_other_format_is_not_acceptable(client):
    for accept in ("application/yaml", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"):
        assert (await client.get(DOCUMENT, Accept=accept)).status == 406


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/debug/pprof/", "it is specific to Go"),
        ("/debug/pprof/heap", "it is specific to Go"),
        ("/debug/flags/v", "it is specific to Go"),
        (f"{DUMPS}/dump_priority_levels", "requests are not limited by priority and fairness"),
        (f"{DUMPS}/dump_queues", "requests are not limited by priority and fairness"),
        (f"{DUMPS}/dump_requests", "requests are not limited by priority and fairness"),
    ],
)
async def test_page_for_debugging_that_is_not_implemented_says_so(client, path, reason):
    answer = await client.get(path)
    text = f"{path} is not implemented by mockube: {reason}\n"
    assert (answer.status, answer.data.decode()) == (501, text)


async def test_pages_for_debugging_need_the_right_to_read_them_and_are_not_listed(client):
    assert not [path for path in (await client.get("/")).body["paths"] if "debug" in path]
    assert "debug" not in (await client.get("/statusz")).data.decode().partition("Paths")[2]
    async with apiserver.running_with_roles() as limited:
        answer = await limited.get("/debug/pprof/", Impersonate_User="alice")
        assert answer.status == 403


async def test_queues_are_unknown_without_priority_and_fairness():
    async with apiserver.running("--enable-priority-and-fairness=false") as client:
        assert (await client.get(f"{DUMPS}/dump_queues")).status == 404
