"""Admission webhooks that cannot be called, or do not return a review: the errors of kube-apiserver 1.36."""

import re

import pytest

from tests.support.server import apiserver
from tests.support.server.definitions import DEFINITIONS, GROUP, WIDGETS, define, definition, until
from tests.support.server.webhook_server import (
    FAILED,
    MAP,
    MUTATING,
    PATH,
    VALIDATING,
    register,
    webhook_server,
)


@pytest.fixture
async def hooks(tmp_path):
    async with webhook_server(tmp_path, "hooks.default.svc") as server:
        yield server


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


CALL = 'failed to call webhook: Post "https://127.0.0.1:PORT/{}?timeout=1s": '
INVALID = "received invalid webhook response: "
BROKEN = {
    "500": 'failed to call webhook: an error on the server ("broken") has prevented the request from succeeding',
    "404": "failed to call webhook: the server could not find the requested resource",
    "redirect": "failed to call webhook: the server responded with the status code 307 but did not return more information",
    "slow": f"{CALL.format('slow')}context deadline exceeded",
    "huge": f"{CALL.format('huge')}the response is longer than 16777216 bytes",
    "garbage": "failed to call webhook: couldn't get version/kind; json parse error: unexpected end of JSON input",
    "bracket": "failed to call webhook: yaml: line 1: did not find expected node content",
    "mistyped": (
        "failed to call webhook: json: cannot unmarshal string into Go struct field "
        "AdmissionResponse.response.allowed of type bool"
    ),
    "status": "failed to call webhook: no way",
    "empty": "failed to call webhook: 0-length response with status code: 200 and content type: application/json",
    "no-response": f"{INVALID}webhook response was absent",
    "wrong-version": "failed to call webhook: converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
    "wrong-kind": (
        'failed to call webhook: no kind "Other" is registered for version "admission.k8s.io/v1" '
        'in scheme "pkg/runtime/scheme.go:111"'
    ),
}


@pytest.mark.parametrize("kind", [MUTATING, VALIDATING], ids=["mutating", "validating"])
@pytest.mark.parametrize("path", BROKEN)
async def test_failed_webhook_follows_failure_policy(client, hooks, kind, path):
    await register(client, kind, hooks.hook(path))
    answer = await client.post(PATH, MAP)
    error_message = answer.body["message"].replace(str(hooks.port), "PORT")
    assert (answer.status, error_message) == (500, FAILED + BROKEN[path])
    await client.patch(
        f"{kind}/c",
        [{"op": "add", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}],
        kind="json-patch+json",
    )
    assert (await client.post(PATH, MAP)).status == 201


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (
            "short",
            r"unexpected error when reading response body\. Please retry\. Original error: unexpected EOF",
        ),
        (
            "lost",
            (
                r'Post "https://127\.0\.0\.1:PORT/lost\?timeout=1s": '
                r"read tcp 127\.0\.0\.1:\d+->127\.0\.0\.1:PORT: read: connection reset by peer"
            ),
        ),
    ],
)
async def test_lost_connection_to_webhook_has_error_of_go(client, hooks, path, message):
    await register(client, VALIDATING, hooks.hook(path))
    answer = await client.post(PATH, MAP)
    found = answer.body["message"].replace(str(hooks.port), "PORT")
    assert re.fullmatch(re.escape(f"{FAILED}failed to call webhook: ") + message, found), found


@pytest.mark.parametrize(
    ("path", "mutating", "message"),
    [
        ("patch-without-type", True, "webhook returned response.patch but not response.patchType"),
        ("type-without-patch", True, "webhook returned response.patchType but not response.patch"),
        ("label", False, "validating webhook may not return response.patch"),
        ("type-without-patch", False, "validating webhook may not return response.patchType"),
    ],
)
async def test_invalid_webhook_response_is_a_failure(client, hooks, path, mutating, message):
    await register(client, MUTATING if mutating else VALIDATING, hooks.hook(path))
    assert (await client.post(PATH, MAP)).body["message"] == f"{FAILED}{INVALID}{message}"


@pytest.mark.parametrize("kind", [MUTATING, VALIDATING], ids=["mutating", "validating"])
async def test_object_whose_definition_is_deleted_while_webhook_is_asked_is_not_stored(client, hooks, kind):
    name = f"widgets.{GROUP}"
    await define(client, definition())
    rule = {"operations": ["*"], "apiGroups": [GROUP], "apiVersions": ["v1"], "resources": ["widgets"]}
    await register(client, kind, hooks.hook("ok", rules=[rule]))

    async def delete_definition():
        await client.delete(f"{DEFINITIONS}/{name}")
        await until(client, name, lambda tree: tree is None)

    hooks.before_answer = delete_definition
    widget = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "a"}}
    answer = await client.post(WIDGETS, widget)
    assert (answer.status, answer.body["message"]) == (404, f'widgets.{GROUP} "a" not found')
    hooks.before_answer = None
    await define(client, definition())
    assert (await client.get(WIDGETS)).body["items"] == []
