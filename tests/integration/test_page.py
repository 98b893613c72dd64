"""The page of `mockube ui`: its files need no user, and a one-time token gives its rights to one session."""

import re

import pytest

from mockube.apimachinery.timestamps import parse_time
from mockube.apiserver.parts.ui import read_page_files
from tests.support.server.apiserver import Client, running, running_with_roles
from tests.support.server.control import PATH, control_object

TOKENS = f"{PATH}/pagetokens"
SESSION = "/mockube/ui/session"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
async def client():
    async with running_with_roles() as client:
        yield client


def anonymous(client):
    return Client(client.session, client.url, authorization="")


async def one_time_token(client, **headers):
    answer = await client.post(TOKENS, control_object("PageToken"), **headers)
    assert answer.status == 201, answer.body
    status = answer.body["status"]
    assert status["path"] == f"/mockube/ui/#token={status['token']}"
    return status["token"]


async def page_of(client, token):
    answer = await anonymous(client).post(SESSION, {"token": token})
    assert answer.status == 201, answer.body
    assert answer.headers["Cache-Control"] == "no-store"
    return Client(client.session, client.url, authorization=f"Bearer {answer.body['token']}")


async def test_session_acts_as_user_of_its_token(client):
    page = await page_of(client, await one_time_token(client))
    who = await page.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert who.body["status"]["userInfo"]["username"] == "admin"
    assert (await page.get(PODS)).status == 200
    refused = await anonymous(client).get(PODS)
    assert refused.status == 403


async def test_impersonated_user_has_session_of_that_user(client):
    page = await page_of(
        client, await one_time_token(client, Impersonate_User="bob", Impersonate_Group="system:masters")
    )
    who = await page.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert who.body["status"]["userInfo"]["username"] == "bob"


async def test_session_opens_no_other_one(client):
    page = await page_of(client, await one_time_token(client))
    for headers in ({}, {"Impersonate_User": "bob", "Impersonate_Group": "system:masters"}):
        refused = await page.post(TOKENS, control_object("PageToken"), **headers)
        assert refused.status == 403
        assert "run `mockube ui`" in refused.body["message"]


async def test_session_ends_with_token_and_service_account(client):
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    assert (await client.post(accounts, account)).status == 201
    binding = {
        "metadata": {"name": "robot"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}],
    }
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    assert (await client.post(f"{rbac}/clusterrolebindings", binding)).status == 201
    issued = await client.post(f"{accounts}/robot/token", {"spec": {"expirationSeconds": 600}})
    robot = Client(client.session, client.url, authorization=f"Bearer {issued.body['status']['token']}")
    answer = await anonymous(client).post(SESSION, {"token": await one_time_token(robot)})
    ends = parse_time(issued.body["status"]["expirationTimestamp"])
    assert abs((parse_time(answer.body["expirationTimestamp"]) - ends).total_seconds()) < 5
    page = Client(client.session, client.url, authorization=f"Bearer {answer.body['token']}")
    assert (await page.get(PODS)).status == 200
    assert (await client.delete(f"{accounts}/robot")).status == 200
    assert (await client.post(accounts, account)).status == 201
    assert (await page.get(PODS)).status == 401


async def test_token_is_valid_once(client):
    token = await one_time_token(client)
    page = await page_of(client, token)
    again = await anonymous(client).post(SESSION, {"token": token})
    assert again.status == 401
    assert "run `mockube ui` again" in again.body["message"]
    assert (await page.get(PODS)).status == 200
    as_bearer = Client(client.session, client.url, authorization=f"Bearer {token}")
    assert (await as_bearer.get(PODS)).status == 401


async def test_session_ends(client):
    page = await page_of(client, await one_time_token(client))
    assert (await page.delete(SESSION)).status == 204
    assert (await page.get(PODS)).status == 401


async def test_user_without_rights_gets_no_token(client):
    alice = Client(client.session, client.url, authorization="Bearer alice")
    assert (await alice.post(TOKENS, control_object("PageToken"))).status == 403
    assert (await anonymous(client).post(TOKENS, control_object("PageToken"))).status == 403


async def test_dry_run_issues_no_token(client):
    answer = await client.post(f"{TOKENS}?dryRun=All", control_object("PageToken"))
    assert (answer.status, answer.body["status"]) == (201, {})


async def test_files_need_no_user_and_are_cached_by_their_content(client):
    visitor = anonymous(client)
    index = await visitor.get("/mockube/ui/")
    assert index.status == 200
    assert index.headers["Content-Type"] == "text/html; charset=utf-8"
    assert index.headers["Cache-Control"] == "no-cache"
    paths = re.findall(r'(?:src|href)="([^"]*)"', index.data.decode())
    assert {path.rpartition("/")[2] for path in paths} == {"icon.svg", "style.css", "main.js"}
    for path in paths:
        file = await visitor.get(path)
        assert file.status == 200
        assert "immutable" in file.headers["Cache-Control"]
    unchanged = await visitor.get("/mockube/ui/", If_None_Match=index.headers["Etag"])
    assert (unchanged.status, unchanged.data) == (304, b"")
    assert (await visitor.get("/mockube/ui/0123456789abcdef/main.js")).status == 404
    moved = await visitor.session.get(f"{client.url}/mockube/ui", allow_redirects=False)
    assert (moved.status, moved.headers["Location"]) == (308, "/mockube/ui/")
    assert (await visitor.post("/mockube/ui/", {})).status == 405


async def test_page_allows_no_other_address_and_no_frame(client):
    headers = (await client.get("/mockube/ui/")).headers
    policy = dict(each.split(" ", 1) for each in headers["Content-Security-Policy"].split("; "))
    sources = {name: value for name, value in policy.items() if name.endswith("-src")}
    assert set(sources.values()) == {"'none'", "'self'"}
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Content-Type-Options"] == "nosniff"


async def test_other_sites_reach_neither_page_nor_session(client):
    visitor = anonymous(client)
    assert (await visitor.get("/mockube/ui/", Host="evil.example")).status == 421
    token = await one_time_token(client)
    from_site = await visitor.post(SESSION, {"token": token}, Origin="https://evil.example")
    as_form = await visitor.send(
        "POST", SESSION, b'{"token": "%s"}' % token.encode(), Content_Type="text/plain"
    )
    assert [from_site.status, as_form.status] == [403, 415]
    assert (await page_of(client, token)).credentials


@pytest.mark.parametrize("body", [b"", b"x", b"[]", b"{}", b'{"token": 1}', b'{"token": "a", "b": 1}'])
async def test_invalid_exchange_is_refused(client, body):
    answer = await anonymous(client).send("POST", SESSION, body)
    assert answer.status == 400


async def test_large_exchange_is_refused(client):
    answer = await anonymous(client).post(SESSION, {"token": "a" * 5000})
    assert answer.status == 413


async def test_server_without_control_has_no_page():
    async with running("--control=off") as client:
        assert (await client.get("/mockube/ui/")).status == 404
        assert (await client.post(TOKENS, control_object("PageToken"))).status == 404


def test_files_are_small():
    assert sum(map(len, read_page_files().values())) <= 400 * 1024


def test_files_name_no_other_address():
    for name, content in read_page_files().items():
        if not name.startswith("vendor/"):
            addresses = set(re.findall(rb"https?://[^\s\"'`<)]*", content))
            assert addresses <= {b"http://www.w3.org/2000/svg"}, name
