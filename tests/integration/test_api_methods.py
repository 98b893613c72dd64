"""Allowed HTTP methods of each path, as a real kube-apiserver 1.36 answered."""

import pytest
from yarl import URL

from tests.support.server import apiserver, raw_http
from tests.support.server.definitions import WIDGETS, define, definition, version

MAPS = "/api/v1/namespaces/default/configmaps"
ADMIN_HEADER = {"Authorization": "Bearer admin"}
METHODS = ("HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
GET_ONLY = (
    "/version",
    "/version/",
    "/api",
    "/api/v1",
    "/apis/apps/v1",
    "/openid/v1/jwks",
    "/.well-known/openid-configuration",
)
ANY = ("/", "/healthz", "/healthz/ping", "/livez", "/readyz", "/metrics", "/apis", "/apis/apps")
ANY_DOCUMENT = ("/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1")


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


async def codes(client, path):
    return {method: (await client.send(method, path)).status for method in METHODS}


@pytest.mark.parametrize("path", GET_ONLY)
async def test_discovery_accepts_get_only(client, path):
    assert (await client.get(path)).status == 200
    assert await codes(client, path) == dict.fromkeys(METHODS, 405)
    refused = await client.post(path, {})
    assert refused.body["message"] == "the server does not allow this method on the requested resource"
    assert refused.body["reason"] == "MethodNotAllowed"


@pytest.mark.parametrize("path", [*ANY, *ANY_DOCUMENT])
async def test_read_only_pages_accept_any_method(client, path):
    assert await codes(client, path) == dict.fromkeys(METHODS, 200)


async def test_unknown_paths_are_404_for_any_method(client):
    for path in ("/nosuch", "/apis/nosuch.io/v1", "/api/v1/nosuch"):
        assert await codes(client, path) == dict.fromkeys(METHODS, 404)


async def test_resources_accept_methods_of_their_verbs(client):
    of_all = await codes(client, MAPS)
    assert of_all == {**dict.fromkeys(METHODS, 405), "POST": 400, "DELETE": 200} | {"POST": of_all["POST"]}
    of_one = await codes(client, f"{MAPS}/none")
    assert {method for method, code in of_one.items() if code == 405} == {"HEAD", "POST", "OPTIONS", "TRACE"}


REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
LOCAL = "/apis/authorization.k8s.io/v1"
OBJECT = {"metadata": {"name": "x"}}


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("POST", "/api/v1/configmaps", 405),
        ("DELETE", "/api/v1/configmaps", 405),
        ("PUT", "/api/v1/configmaps", 405),
        ("PUT", "/api/v1/configmaps/x", 404),
        ("GET", "/api/v1/configmaps/x", 404),
        ("POST", f"{MAPS}/x", 405),
        ("PUT", MAPS, 405),
        ("DELETE", "/api/v1/namespaces", 405),
        ("GET", "/api/v1/namespaces/default/namespaces", 404),
        ("GET", "/api/v1/namespaces/default/nodes", 404),
        ("POST", "/api/v1/componentstatuses", 405),
        ("DELETE", "/api/v1/componentstatuses/x", 405),
        ("GET", REVIEWS, 405),
        ("GET", f"{REVIEWS}/x", 404),
        ("DELETE", f"{REVIEWS}/x", 404),
        ("PUT", f"{REVIEWS}/x", 404),
        ("GET", "/api/v1/bindings", 404),
        ("GET", "/api/v1/namespaces/default/bindings", 405),
        ("GET", "/api/v1/namespaces/default/bindings/x", 404),
        ("GET", f"{LOCAL}/localsubjectaccessreviews", 404),
        ("GET", f"{LOCAL}/namespaces/default/localsubjectaccessreviews", 405),
        ("GET", "/api/v1/namespaces/default/pods/x/binding", 405),
        ("PUT", "/api/v1/nodes/x/nope", 404),
    ],
)
async def test_path_exists_if_any_method_exists(client, method, path, code):
    answer = await client.send(method, path, OBJECT if method in ("POST", "PUT") else None)
    assert (answer.status, answer.body["code"]) == (code, code)


STATUS_OF_POD = "/api/v1/namespaces/default/pods/x/status"


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", f"{STATUS_OF_POD}/y", 404),
        ("GET", "/api/v1/pods/x/status", 404),
        ("PUT", "/api/v1/pods/x/status", 404),
        ("PATCH", "/apis/apps/v1/deployments/x/scale", 404),
        ("DELETE", "/api/v1/pods/x/status", 404),
        ("POST", f"{STATUS_OF_POD}/y", 404),
        ("PUT", "/api/v1/namespaces/default/finalize/y", 404),
        ("GET", "/api/v1/watch/nodes/x/status", 404),
        ("GET", "/api/v1/watch/componentstatuses", 404),
        ("GET", "/api/v1/watch/bindings", 404),
        ("GET", "/api/v1/watch/nodes/x/y/z", 404),
        ("POST", "/api/v1/watch/pods", 405),
        ("PATCH", "/api/v1/watch/namespaces/default", 405),
        ("HEAD", "/api/v1/watch/pods", 405),
        ("HEAD", "/api/v1/namespaces/default/pods/x/log", 405),
        ("HEAD", "/api/v1/namespaces/default/pods/x/exec", 405),
        ("HEAD", "/api/v1/namespaces/default/pods/x/proxy", 404),
        ("GET", "/api/v1/proxy/nodes/x", 404),
        ("GET", "/metrics/", 404),
        ("GET", "/flagz/", 404),
        ("GET", "/statusz/", 404),
        ("GET", "/openapi/v3/apis/nope", 404),
    ],
)
async def test_path_behind_a_subresource_or_a_verb_has_the_code(client, method, path, code):
    answer = await client.send(method, path)
    assert (answer.status, "Warning" in answer.headers) == (code, False)


PAGES = ("/version", "/nosuch", "/healthz", "/apis")
ADMIN = (b"Authorization", b"Bearer admin")


async def answers(client, method, *headers):
    """Return the answers for a collection, an object and pages; aiohttp would change the method."""
    host, _, port = client.url.removeprefix("http://").partition(":")
    for path in (MAPS, f"{MAPS}/x", *PAGES):
        data = raw_http.request(method, path.encode(), headers)
        yield await raw_http.exchange((host, int(port)), [data])


@pytest.mark.parametrize(
    "method", [b"FOO", b"foo", b"get", b"Post", b"PROPFIND", b"CONNECT", b"PRI", b"A!#$%&'*+-.^_`|~9"]
)
async def test_any_token_is_a_method(client, method):
    assert [one.status async for one in answers(client, method, ADMIN)] == [405, 405, 405, 404, 200, 200]


@pytest.mark.parametrize(
    ("method", "codes"),
    [(b"FOO", [403] * 6), (b"CONNECT", [403] * 6), (b"Get", [403, 403, 405, 403, 200, 403])],
)
async def test_any_method_is_authorized(method, codes):
    """A page is authorized by the method in small letters, an object by a verb that has no name."""
    async with apiserver.running_with_roles() as client:
        refused = [one async for one in answers(client, method)]
    assert [one.status for one in refused] == codes
    verb = method.decode().lower()
    assert (
        b'"message":"configmaps is forbidden: User \\"system:anonymous\\" cannot  resource' in refused[0].body
    )
    assert f'User \\"system:anonymous\\" cannot {verb} path \\"/nosuch\\"'.encode() in refused[3].body


async def test_openapi_of_unknown_group_has_empty_body(client):
    answer = await client.get("/openapi/v3/apis/nope")
    assert (answer.status, answer.data) == (404, b"")


@pytest.mark.parametrize("path", ["/api/v1/watch", "/apis/apps/v1/proxy?a=<b>"])
async def test_path_ending_with_verb_is_routed(client, path):
    answer = await client.get(path, Authorization="")
    shown = path.replace("<", "&lt;").replace(">", "&gt;")
    problem = f"unable to determine kind and namespace from url, {shown}"
    text = f'Internal Server Error: "{shown}": failed to create RequestInfo: {problem}\n'
    assert (answer.status, answer.data.decode()) == (500, text)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_unknown_routes_send_no_warnings(client):
    refused = await client.patch("/api/v1/componentstatuses", {})
    assert (refused.status, "Warning" in refused.headers) == (405, False)
    by_code = await client.get("/api/v1/componentstatuses?watch=1")
    assert (by_code.status, "Warning" in by_code.headers) == (405, True)


async def test_custom_objects_accept_methods_of_their_verbs(client):
    await define(client, definition(version(subresources={"status": {}})))
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    assert (await client.post(f"{WIDGETS}/of-no-meaning", widget)).body["metadata"]["name"] == "w"
    for method in ("PUT", "PATCH"):
        refused = await client.send(method, WIDGETS, widget, Content_Type="application/merge-patch+json")
        assert (refused.status, refused.body["message"]) == (400, "name must be provided")
    for path, code in (
        (WIDGETS, 200),
        (f"{WIDGETS}/w", 200),
        (f"{WIDGETS}/w/status", 200),
        (f"{WIDGETS}/x", 404),
    ):
        answer = await client.send("HEAD", path)
        assert (answer.status, answer.data) == (code, b"")
    options = await client.send("OPTIONS", WIDGETS)
    assert options.body["message"] == ' is not supported on resources of kind "widgets.example.com"'
    everywhere = "/apis/example.com/v1/widgets"
    for method, path in (("POST", everywhere), ("DELETE", everywhere), ("GET", f"{everywhere}/w")):
        answer = await client.send(method, path, widget if method == "POST" else None)
        assert (answer.status, answer.data) == (404, b"404 page not found\n")


NO_NAMESPACE, NO_NAME = "Namespace parameter required.", "name must be provided"


@pytest.mark.parametrize(
    ("method", "path", "code", "message"),
    [
        ("GET", "/api/v1/namespaces//configmaps/x", 400, NO_NAMESPACE),
        ("DELETE", "/api/v1/namespaces//configmaps", 400, NO_NAMESPACE),
        ("GET", "/api/v1/namespaces//pods/x/log", 400, NO_NAMESPACE),
        ("GET", "/api/v1/namespaces/default/pods//status", 400, NO_NAME),
        ("GET", "/api/v1/namespaces/default/pods//log", 400, NO_NAME),
        ("DELETE", "/api/v1/namespaces/default/pods//status", 405, None),
        ("GET", "/api/v1/nodes/.", 400, "Name parameter invalid: \".\": may not be '.'"),
        ("GET", "/api/v1/nodes/..", 400, "Name parameter invalid: \"..\": may not be '..'"),
        ("GET", "/api/v1/namespaces//nodes", 404, None),
        ("GET", "/api/v1//pods", 404, None),
    ],
)
async def test_segment_of_a_path_may_be_empty_or_dots(client, method, path, code, message):
    path = client.url + path
    async with client.session.request(method, URL(path, encoded=True), headers=ADMIN_HEADER) as answer:
        body = await answer.json()
    assert (answer.status, body["message"]) == (code, message or body["message"])


async def test_empty_namespace_of_a_path_is_all_namespaces(client):
    await client.post(MAPS, {"metadata": {"name": "a"}})
    path = URL(f"{client.url}/api/v1/namespaces//configmaps", encoded=True)
    async with client.session.get(path, headers=ADMIN_HEADER) as answer:
        names = [item["metadata"]["name"] for item in (await answer.json())["items"]]
    assert "a" in names
