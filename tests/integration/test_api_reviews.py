"""Who somebody is, what he may do, and tokens of service accounts, asked over HTTP as kubectl and controllers ask."""

import pytest

from tests.support import apiserver

AUTHENTICATION, AUTHORIZATION = "/apis/authentication.k8s.io/v1", "/apis/authorization.k8s.io/v1"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        await client.post(ACCOUNTS, {"metadata": {"name": "robot"}})
        yield client


async def token(client, **spec):
    answer = await client.post(f"{ACCOUNTS}/robot/token", {"spec": spec})
    assert answer.status == 201, answer.body
    return answer.body["status"]["token"]


async def review(client, token, **spec):
    answer = await client.post(f"{AUTHENTICATION}/tokenreviews", {"spec": {"token": token, **spec}})
    assert answer.status == 201
    return answer.body["status"]


async def test_everybody_can_ask_who_he_is(client):
    answer = await client.post(f"{AUTHENTICATION}/selfsubjectreviews", {})
    assert answer.status == 201
    assert answer.body["status"]["userInfo"] == {
        "username": "admin",
        "uid": "admin-uid",
        "groups": ["system:masters", "system:authenticated"],
    }


async def test_a_token_of_a_service_account_is_as_good_as_any(client):
    bearer = f"Bearer {await token(client)}"
    answer = await client.post(f"{AUTHENTICATION}/selfsubjectreviews", {}, Authorization=bearer)
    assert answer.body["status"]["userInfo"]["username"] == "system:serviceaccount:default:robot"
    assert (await client.get("/api/v1/namespaces", Authorization=bearer)).status == 200


async def test_a_token_request_is_answered_with_what_was_asked(client):
    answer = await client.post(
        f"{ACCOUNTS}/robot/token", {"spec": {"audiences": ["x"], "expirationSeconds": 600}}
    )
    assert answer.body["metadata"].keys() == {"name", "namespace", "uid", "creationTimestamp"}
    assert answer.body["spec"] == {"audiences": ["x"], "expirationSeconds": 600, "boundObjectRef": None}


async def test_a_token_for_others_is_of_no_use_here(client):
    other = await token(client, audiences=["x"])
    refused = await client.get("/api/v1/namespaces", Authorization=f"Bearer {other}")
    assert (refused.status, refused.body["message"]) == (401, "Unauthorized")
    assert (await review(client, other))["error"].startswith("[invalid bearer token, token audiences")
    assert (await review(client, other, audiences=["x"]))["audiences"] == ["x"]


async def test_a_token_ends_with_its_account(client):
    ended = await token(client)
    await client.delete(f"{ACCOUNTS}/robot")
    assert await review(client, ended) == {
        "user": {},
        "error": '[invalid bearer token, serviceaccounts "robot" not found]',
    }


async def test_a_token_ends_with_the_pod_that_it_is_bound_to(client):
    secret = {"metadata": {"name": "s"}}
    path = "/api/v1/namespaces/default/secrets"
    uid = (await client.post(path, secret)).body["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "Secret", "name": "s", "uid": uid}
    bound = await token(client, boundObjectRef=reference)
    await client.delete(f"{path}/s")
    assert "has been invalidated" in (await review(client, bound))["error"]


@pytest.mark.parametrize(
    ("name", "spec", "code", "says"),
    [
        pytest.param("none", {}, 404, 'serviceaccounts "none" not found', id="no account"),
        pytest.param("robot", {"expirationSeconds": 10}, 422, "less than 10 minutes", id="too short"),
        pytest.param("robot", {"expirationSeconds": 2**33}, 422, "larger than 2^32 seconds", id="too long"),
        pytest.param(
            "robot",
            {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p"}},
            404,
            'pods "p" not found',
            id="no pod",
        ),
        pytest.param(
            "robot",
            {"boundObjectRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}},
            400,
            "cannot bind token to object of type apps/v1, Kind=Deployment",
            id="what nothing is bound to",
        ),
    ],
)
async def test_tokens_that_nobody_gets(client, name, spec, code, says):
    answer = await client.post(f"{ACCOUNTS}/{name}/token", {"spec": spec})
    assert answer.status == code
    assert says in answer.body["message"]


async def test_a_review_needs_a_token(client):
    answer = await client.post(f"{AUTHENTICATION}/tokenreviews", {"spec": {"token": ""}})
    assert (answer.status, answer.body["message"]) == (
        400,
        "token is required for TokenReview in authentication",
    )


@pytest.mark.parametrize(
    ("resource", "spec"),
    [
        pytest.param("selfsubjectaccessreviews", {"resourceAttributes": {"verb": "get"}}, id="self"),
        pytest.param("selfsubjectaccessreviews", {"nonResourceAttributes": {"path": "/x"}}, id="a path"),
        pytest.param(
            "subjectaccessreviews", {"user": "u", "resourceAttributes": {"verb": "get"}}, id="another"
        ),
        pytest.param(
            "namespaces/default/localsubjectaccessreviews",
            {"groups": ["g"], "resourceAttributes": {"namespace": "default"}},
            id="in a namespace",
        ),
    ],
)
async def test_everything_is_allowed(client, resource, spec):
    answer = await client.post(f"{AUTHORIZATION}/{resource}", {"spec": spec})
    assert (answer.status, answer.body["status"]) == (201, {"allowed": True})
    assert answer.body["spec"] == spec


@pytest.mark.parametrize(
    ("resource", "body", "says"),
    [
        pytest.param("selfsubjectaccessreviews", {"spec": {}}, "exactly one of", id="nothing asked"),
        pytest.param(
            "subjectaccessreviews",
            {"spec": {"resourceAttributes": {}}},
            "at least one of user or group",
            id="nobody",
        ),
        pytest.param(
            "selfsubjectaccessreviews",
            {"metadata": {"name": "x"}, "spec": {"resourceAttributes": {}}},
            "must be empty",
            id="a name",
        ),
        pytest.param(
            "namespaces/default/localsubjectaccessreviews",
            {"spec": {"user": "u", "resourceAttributes": {"namespace": "other"}}},
            "must match metadata.namespace",
            id="another namespace",
        ),
    ],
)
async def test_questions_that_make_no_sense(client, resource, body, says):
    answer = await client.post(f"{AUTHORIZATION}/{resource}", body)
    assert answer.status == 422, answer.body
    assert says in answer.body["message"]


async def test_the_rules_of_somebody_who_may_do_everything(client):
    answer = await client.post(f"{AUTHORIZATION}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}})
    assert answer.body["status"] == {
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        "incomplete": False,
    }


async def test_who_acts_as_another_is_that_other(client):
    headers = {"Impersonate_User": "bob", "Impersonate_Group": "dev", "Impersonate_Extra_Scope": "view"}
    answer = await client.post(f"{AUTHENTICATION}/selfsubjectreviews", {}, **headers)
    assert answer.body["status"]["userInfo"] == {
        "username": "bob",
        "groups": ["dev", "system:authenticated"],
        "extra": {"scope": ["view"]},
    }


async def test_keys_are_published_for_those_who_check_tokens_themselves(client):
    configuration = await client.get("/.well-known/openid-configuration")
    assert configuration.body["id_token_signing_alg_values_supported"] == ["ES256"]
    keys = await client.get("/openid/v1/jwks")
    assert keys.headers["Content-Type"] == "application/jwk-set+json"
    assert [key["alg"] for key in keys.body["keys"]] == ["ES256"]


async def test_a_request_says_how_long_it_may_take(client):
    answer = await client.get("/api/v1/namespaces?timeout=soon")
    assert answer.status == 400
    assert "invalid timeout specified in the request URL" in answer.body["message"]
