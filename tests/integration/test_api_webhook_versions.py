"""AdmissionReviews of v1 and v1beta1: the version sent, and what each version requires of a response."""

import pytest

from mockube.apimachinery.gotext import quote
from tests.support.server import apiserver
from tests.support.server.webhook_server import (
    FAILED,
    MAP,
    MUTATING,
    PATH,
    VALIDATING,
    webhook_server,
)

UNDECODABLE = "failed to call webhook: illegal base64 data at input byte 0"
ABSENT = "received invalid webhook response: webhook response was absent"
NOT_V1 = "received invalid webhook response: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got "
KINDS = pytest.mark.parametrize("kind", [MUTATING, VALIDATING], ids=["mutating", "validating"])


def not_registered(kind, version):
    return (
        f"failed to call webhook: no kind {quote(kind)} is registered for version {quote(version)} "
        'in scheme "pkg/runtime/scheme.go:111"'
    )


@pytest.fixture
async def hooks(tmp_path):
    async with webhook_server(tmp_path) as server:
        yield server


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


async def post_map(client, hooks, kind, path, *versions):
    """Return the response to the creation of a ConfigMap, for which the webhook is called."""
    hook = hooks.hook(path, admissionReviewVersions=versions)
    registered = await client.post(kind, {"metadata": {"name": "c"}, "webhooks": [hook]})
    assert registered.status == 201, registered.body
    return await client.post(PATH, MAP)


@pytest.mark.parametrize(
    ("accepted", "sent"),
    [
        (("v1",), "v1"),
        (("v1beta1",), "v1beta1"),
        (("v1beta1", "v1"), "v1beta1"),
        (("v2", "v1", "v1beta1"), "v1"),
    ],
)
async def test_first_supported_version_of_webhook_is_sent(client, hooks, accepted, sent):
    assert (await post_map(client, hooks, VALIDATING, "ok", *accepted)).status == 201
    assert hooks.versions == [f"admission.k8s.io/{sent}"]


@KINDS
@pytest.mark.parametrize(
    "path", ["wrong-uid", "no-kind", "no-version", "no-type", "type-without-patch", "warn", "ok"]
)
async def test_v1beta1_response_needs_no_uid_and_no_type(client, hooks, kind, path):
    assert (await post_map(client, hooks, kind, path, "v1beta1")).status == 201


@pytest.mark.parametrize("path", ["label", "label-without-type", "label-of-other-type"])
async def test_every_v1beta1_patch_is_a_json_patch(client, hooks, path):
    answer = await post_map(client, hooks, MUTATING, path, "v1beta1")
    assert (answer.status, answer.body["metadata"]["labels"]) == (201, {"hooked": "yes"})


async def test_v1beta1_patch_of_validating_webhook_has_no_effect(client, hooks):
    answer = await post_map(client, hooks, VALIDATING, "label", "v1beta1")
    assert (answer.status, answer.body["metadata"].get("labels")) == (201, None)


@KINDS
@pytest.mark.parametrize(
    ("path", "problem"),
    [
        (
            "newer-version",
            "failed to call webhook: converting (v1.AdmissionReview) to (v1beta1.AdmissionReview): unknown conversion",
        ),
        ("wrong-kind", not_registered("Other", "admission.k8s.io/v1beta1")),
        ("other-group", not_registered("AdmissionReview", "example.com/v1")),
        ("no-response", ABSENT),
        ("bad-base64", UNDECODABLE),
    ],
)
async def test_invalid_v1beta1_response_is_a_failure(client, hooks, kind, path, problem):
    answer = await post_map(client, hooks, kind, path, "v1beta1")
    assert (answer.status, answer.body["message"]) == (500, FAILED + problem)


async def test_v1beta1_refusal_has_message_and_code(client, hooks):
    answer = await post_map(client, hooks, VALIDATING, "deny-message", "v1beta1")
    message = 'admission webhook "h.example.com" denied the request: no way'
    assert (answer.status, answer.body["message"]) == (403, message)


@KINDS
@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("no-kind", f"{NOT_V1}admission.k8s.io/v1, Kind="),
        ("no-version", f"{NOT_V1}/, Kind=AdmissionReview"),
        ("no-type", f"{NOT_V1}/, Kind="),
        ("bad-base64", UNDECODABLE),
    ],
)
async def test_v1_response_must_have_type_and_decodable_patch(client, hooks, kind, path, problem):
    answer = await post_map(client, hooks, kind, path, "v1")
    assert (answer.status, answer.body["message"]) == (500, FAILED + problem)
