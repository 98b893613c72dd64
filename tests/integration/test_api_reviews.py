"""TokenReviews, SubjectAccessReviews and tokens of service accounts, as kubectl and controllers send them."""

import base64

import orjson
import pytest

from mockube.apiserver.authn.authenticators import TOKEN_CACHE_SECONDS
from mockube.apiserver.authn.serviceaccount import jwt
from mockube.apiserver.authn.serviceaccount.keys import load
from mockube.apiserver.authn.serviceaccount.tokens import TokenLifetime
from mockube.component_base.clock import SteppedClock
from tests.support.server import apiserver
from tests.support.server.service_accounts import EC, pem

AUTHENTICATION, AUTHORIZATION = "/apis/authentication.k8s.io/v1", "/apis/authorization.k8s.io/v1"
SECRETS = "/api/v1/namespaces/default/secrets"
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


async def test_self_subject_review_returns_user(client):
    answer = await client.post(f"{AUTHENTICATION}/selfsubjectreviews", {})
    assert answer.status == 201
    assert answer.body["status"]["userInfo"] == {
        "username": "admin",
        "uid": "admin-uid",
        "groups": ["system:masters", "system:authenticated"],
    }


async def test_service_account_token_authenticates(client):
    bearer = f"Bearer {await token(client)}"
    answer = await client.post(f"{AUTHENTICATION}/selfsubjectreviews", {}, Authorization=bearer)
    assert answer.body["status"]["userInfo"]["username"] == "system:serviceaccount:default:robot"
    assert (await client.get("/api/v1/namespaces", Authorization=bearer)).status == 200


async def test_token_request_returns_requested_token(client):
    answer = await client.post(
        f"{ACCOUNTS}/robot/token", {"spec": {"audiences": ["x"], "expirationSeconds": 600}}
    )
    expected = {"name", "namespace", "uid", "creationTimestamp", "managedFields"}
    assert answer.body["metadata"].keys() == expected
    assert answer.body["spec"] == {"audiences": ["x"], "expirationSeconds": 600, "boundObjectRef": None}


PODS = "/api/v1/namespaces/default/pods"
POD = {
    "metadata": {"name": "p"},
    "spec": {"serviceAccountName": "robot", "containers": [{"name": "c", "image": "i"}]},
}
OF_POD = {"apiVersion": "v1", "kind": "Pod", "name": "p"}
YEAR = 365 * 24 * 60 * 60


def lifetime(token):
    """Return the token's lifetime, and the time until it is stale."""
    payload = token.split(".")[1]
    claims = orjson.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    warns = claims["kubernetes.io"].get("warnafter")
    return claims["exp"] - claims["iat"], warns and warns - claims["iat"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"expirationSeconds": 3607, "boundObjectRef": OF_POD}, (YEAR, 3607), id="a pod's own"),
        pytest.param({"expirationSeconds": 3607}, (3607, None), id="of no pod"),
        pytest.param({"expirationSeconds": 3600, "boundObjectRef": OF_POD}, (3600, None), id="for an hour"),
        pytest.param(
            {"expirationSeconds": 3607, "boundObjectRef": OF_POD, "audiences": ["x"]},
            (3607, None),
            id="for another user",
        ),
    ],
)
async def test_pod_token_is_extended_to_a_year(client, spec, expected):
    assert (await client.post(PODS, POD)).status == 201
    assert lifetime(await token(client, **spec)) == expected


async def test_token_lifetime_follows_flags():
    async with apiserver.running(
        token_lifetime=TokenLifetime(max_expiration_seconds=3600, extends_expiration=False)
    ) as client:
        await client.post(ACCOUNTS, {"metadata": {"name": "robot"}})
        await client.post(PODS, POD)
        answer = await client.post(
            f"{ACCOUNTS}/robot/token", {"spec": {"expirationSeconds": 3607, "boundObjectRef": OF_POD}}
        )
    assert (
        answer.headers["Warning"] == '299 - "requested expiration of 3607 seconds shortened to 3600 seconds"'
    )
    assert answer.body["spec"]["expirationSeconds"] == 3600
    assert lifetime(answer.body["status"]["token"]) == (3600, None)


async def test_token_for_other_audience_is_unauthorized(client):
    other = await token(client, audiences=["x"])
    refused = await client.get("/api/v1/namespaces", Authorization=f"Bearer {other}")
    assert (refused.status, refused.body["message"]) == (401, "Unauthorized")
    assert (await review(client, other))["error"].startswith("[invalid bearer token, token audiences")
    assert (await review(client, other, audiences=["x"]))["audiences"] == ["x"]


async def test_token_is_invalid_after_account_is_deleted(client):
    ended = await token(client)
    await client.delete(f"{ACCOUNTS}/robot")
    assert await review(client, ended) == {
        "user": {},
        "error": '[invalid bearer token, serviceaccounts "robot" not found]',
    }


async def test_bound_token_is_invalid_after_pod_is_deleted(client):
    secret = {"metadata": {"name": "s"}}
    path = "/api/v1/namespaces/default/secrets"
    uid = (await client.post(path, secret)).body["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "Secret", "name": "s", "uid": uid}
    bound = await token(client, boundObjectRef=reference)
    await client.delete(f"{path}/s")
    assert "has been invalidated" in (await review(client, bound))["error"]


WEBHOOK = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "name": "w",
}


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
            id="an unsupported kind",
        ),
        pytest.param(
            "robot",
            {"attestations": {"admissionReviewAPIGroups": ["*"]}},
            422,
            'spec.attestations: Invalid value: {"admissionReviewAPIGroups":["*"]}: '
            "attestations may only be specified with a webhook bound object reference",
            id="attestations",
        ),
        pytest.param(
            "robot",
            {
                "boundObjectRef": WEBHOOK,
                "audiences": ["a"],
                "attestations": {"admissionReviewAPIGroups": ["*"]},
            },
            400,
            "cannot bind token to object of type admissionregistration.k8s.io/v1, Kind=ValidatingWebhookConfiguration "
            "(feature gate APIServerWebhookAuthenticationToken is disabled)",
            id="a webhook",
        ),
        pytest.param(
            "robot",
            {"boundObjectRef": WEBHOOK, "audiences": ["a", "b"]},
            422,
            '[spec.audiences: Invalid value: ["a","b"]: must be length 1 when bound to a webhook config, '
            "spec.attestations: Invalid value: null: webhook bound requests require exactly one "
            "admissionReviewAPIGroups attestation]",
            id="audiences of a webhook",
        ),
        *(
            pytest.param(
                "robot",
                {"boundObjectRef": WEBHOOK, "audiences": ["a"], "attestations": attestations},
                422,
                says,
                id=f"attestations of a webhook: {says}",
            )
            for attestations, says in (
                (
                    {"a": ["b"]},
                    'spec.attestations[a]: Unsupported value: "a": supported values: "admissionReviewAPIGroups"',
                ),
                ({"admissionReviewAPIGroups": []}, "Invalid value: []: must specify a single value"),
                ({"admissionReviewAPIGroups": [""]}, '[0]: Invalid value: "": may not be an empty string'),
                (
                    {"admissionReviewAPIGroups": ["A"]},
                    'Invalid value: "A": must specify a valid API Group: a lowercase RFC',
                ),
            )
        ),
    ],
)
async def test_invalid_token_request_is_refused(client, name, spec, code, says):
    answer = await client.post(f"{ACCOUNTS}/{name}/token", {"spec": spec})
    assert answer.status == code
    assert says in answer.body["message"]


async def test_token_review_needs_token(client):
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
async def test_always_allow_allows_reviews(client, resource, spec):
    answer = await client.post(f"{AUTHORIZATION}/{resource}", {"spec": spec})
    assert (answer.status, answer.body["status"]) == (201, {"allowed": True})
    assert answer.body["spec"] == spec


@pytest.mark.parametrize(
    ("resource", "body", "says"),
    [
        pytest.param("selfsubjectaccessreviews", {"spec": {}}, "exactly one of", id="no attributes"),
        pytest.param(
            "subjectaccessreviews",
            {"spec": {"resourceAttributes": {}}},
            "at least one of user or group",
            id="no user",
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
async def test_invalid_reviews_are_refused(client, resource, body, says):
    answer = await client.post(f"{AUTHORIZATION}/{resource}", body)
    assert answer.status == 422, answer.body
    assert says in answer.body["message"]


async def test_rules_review_of_unrestricted_user_has_wildcards(client):
    answer = await client.post(f"{AUTHORIZATION}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}})
    assert answer.body["status"] == {
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        "incomplete": False,
    }


async def test_impersonated_user_is_reviewed_user(client):
    headers = {"Impersonate_User": "bob", "Impersonate_Group": "dev", "Impersonate_Extra_Scope": "view"}
    answer = await client.post(f"{AUTHENTICATION}/selfsubjectreviews", {}, **headers)
    assert answer.body["status"]["userInfo"] == {
        "username": "bob",
        "groups": ["dev", "system:authenticated"],
        "extra": {"scope": ["view"]},
    }


async def test_service_account_keys_are_published(client):
    configuration = await client.get("/.well-known/openid-configuration")
    assert configuration.body["id_token_signing_alg_values_supported"] == ["ES256"]
    keys = await client.get("/openid/v1/jwks")
    assert keys.headers["Content-Type"] == "application/jwk-set+json"
    assert [key["alg"] for key in keys.body["keys"]] == ["ES256"]


async def test_invalid_timeout_parameter_is_refused(client):
    answer = await client.get("/api/v1/namespaces?timeout=soon")
    assert answer.status == 400
    assert "invalid timeout specified in the request URL" in answer.body["message"]


# --- what a real kube-apiserver 1.36 answered


def manager_and_fields(answer):
    (entry,) = answer.body["metadata"]["managedFields"]
    return entry["manager"], entry["fieldsV1"]


async def test_reviews_have_managed_fields(client):
    asked = {"metadata": {"name": "x", "uid": "u", "deletionGracePeriodSeconds": 3}, "spec": {"token": "x"}}
    answer = await client.post(f"{AUTHENTICATION}/tokenreviews?fieldManager=me", asked)
    assert manager_and_fields(answer) == ("me", {"f:spec": {"f:token": {}}})
    assert answer.body["metadata"].keys() == {"name", "managedFields"}


async def test_access_review_refuses_metadata_and_has_managed_fields(client):
    asked = {"spec": {"nonResourceAttributes": {"path": "/x"}}}
    path = f"{AUTHORIZATION}/selfsubjectaccessreviews?fieldManager=me"
    fields = {"f:spec": {"f:nonResourceAttributes": {".": {}, "f:path": {}}}}
    assert manager_and_fields(await client.post(path, asked)) == ("me", fields)
    refused = await client.post(path, asked | {"metadata": {"name": "x", "uid": "u"}})
    (cause,) = refused.body["details"]["causes"]
    assert cause["message"].startswith('Invalid value: {"name":"x","managedFields":[{"manager":"me",')
    assert cause["message"].endswith("]}: must be empty")


async def test_file_token_is_for_audience_of_server(client):
    unknown = await review(client, "admin", audiences=["a", "b"])
    assert unknown == {"user": {}, "error": "invalid bearer token"}
    known = await review(client, "admin")
    assert (await review(client, "admin", audiences=["a", *known["audiences"]])) == known


async def test_secret_token_authenticates_and_its_use_is_recorded():
    keys, clock = load(pem(EC)), SteppedClock()
    async with apiserver.running(keys=keys, clock=clock) as client:
        account = (await client.post(ACCOUNTS, {"metadata": {"name": "robot"}})).body
        claim = "kubernetes.io/serviceaccount/"
        claims = {
            "iss": "kubernetes/serviceaccount",
            "sub": "system:serviceaccount:default:robot",
            f"{claim}namespace": "default",
            f"{claim}secret.name": "kept",
            f"{claim}service-account.name": "robot",
            f"{claim}service-account.uid": account["metadata"]["uid"],
        }
        text = jwt.sign(keys, claims)
        annotations = {"kubernetes.io/service-account.name": "robot"}
        secret = {
            "metadata": {"name": "kept", "annotations": annotations},
            "type": "kubernetes.io/service-account-token",
            "stringData": {"token": text},
        }
        assert (await client.post(SECRETS, secret)).status == 201
        answer = await client.get(SECRETS, Authorization=f"Bearer {text}")
        assert answer.status == 200
        (kept,) = answer.body["items"]
        assert "kubernetes.io/legacy-token-last-used" in kept["metadata"]["labels"]
        await client.delete(f"{SECRETS}/kept")
        clock.advance(TOKEN_CACHE_SECONDS + 1)
        assert (await review(client, text))["error"] == "[invalid bearer token, Token has been invalidated]"
