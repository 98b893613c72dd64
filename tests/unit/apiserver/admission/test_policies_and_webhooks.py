"""Admission by policies and webhooks: what they change and refuse."""

import base64

import orjson
import pytest

from mockube.apiserver.admission.webhooks.review import WebhookCallFailed
from tests.support.server.memory_api import CORE

POLICIES = "/apis/admissionregistration.k8s.io/v1"
CONFIG_MAPS = f"{CORE}/configmaps"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
ONE = {"metadata": {"name": "a"}, "data": {"k": "v"}}


async def bind(api, kind, **spec):
    """Create a policy for config maps, and its binding."""
    binding = {"policyName": "p"}
    if kind == "validating":
        binding["validationActions"] = ["Deny"]
    policy = {"matchConstraints": {"resourceRules": [RULE]}, **spec}
    await api.create_all(
        (f"{POLICIES}/{kind}admissionpolicies", {"metadata": {"name": "p"}, "spec": policy}),
        (f"{POLICIES}/{kind}admissionpolicybindings", {"metadata": {"name": "b"}, "spec": binding}),
    )


async def call_webhook(api, kind, admit, *, operation="CREATE"):
    """Register a webhook for config maps, which answers by a function."""
    api.servers.admit = admit
    webhook = {
        "name": "w.example.com",
        "rules": [RULE | {"operations": [operation]}],
        "clientConfig": {"url": "https://hooks.test/admit"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    await api.create_all(
        (f"{POLICIES}/{kind}webhookconfigurations", {"metadata": {"name": "h"}, "webhooks": [webhook]})
    )


@pytest.mark.kills("admission without ValidatingAdmissionPolicy")
async def test_object_that_policy_refuses_is_not_stored(api):
    validation = {"expression": "object.data.k != 'v'", "message": "k must not be v"}
    await bind(api, "validating", validations=[validation])
    answer = await api.create(CONFIG_MAPS, ONE)
    assert answer.code == 422
    assert answer.message == (
        "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: k must not be v"
    )
    assert await api.stored(f"{CONFIG_MAPS}/a") is None
    assert (await api.create(CONFIG_MAPS, {**ONE, "data": {"k": "w"}})).code == 201


@pytest.mark.kills("admission without MutatingAdmissionPolicy")
async def test_object_is_stored_as_policy_changed_it(api):
    expression = 'Object{metadata: Object.metadata{labels: {"by": "policy"}}}'
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
    await bind(api, "mutating", mutations=[mutation], reinvocationPolicy="Never")
    answer = await api.create(CONFIG_MAPS, ONE)
    assert answer.code == 201, answer.message
    assert (await api.stored(f"{CONFIG_MAPS}/a"))["metadata"]["labels"] == {"by": "policy"}


@pytest.mark.kills("admission without ValidatingAdmissionWebhook")
async def test_object_that_webhook_refuses_is_not_stored(api):
    await call_webhook(
        api,
        "validating",
        lambda request: {
            "allowed": request["object"]["data"]["k"] != "v",
            "status": {"message": "no v", "code": 403},
        },
    )
    answer = await api.create(CONFIG_MAPS, ONE)
    assert answer.refusal == (403, 'admission webhook "w.example.com" denied the request: no v')
    assert await api.stored(f"{CONFIG_MAPS}/a") is None
    assert (await api.create(CONFIG_MAPS, {**ONE, "data": {"k": "w"}})).code == 201


@pytest.mark.kills("admission without MutatingAdmissionWebhook")
async def test_object_is_stored_as_webhook_patched_it(api):
    patch = [{"op": "add", "path": "/data/k", "value": "w"}]
    text = base64.b64encode(orjson.dumps(patch)).decode()
    await call_webhook(api, "mutating", lambda _request: {"patchType": "JSONPatch", "patch": text})
    answer = await api.create(CONFIG_MAPS, ONE)
    assert answer.code == 201, answer.message
    assert (await api.stored(f"{CONFIG_MAPS}/a"))["data"] == {"k": "w"}


async def test_validating_webhook_sees_what_mutating_policy_changed(api):
    expression = 'Object{metadata: Object.metadata{labels: {"by": "policy"}}}'
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
    await bind(api, "mutating", mutations=[mutation], reinvocationPolicy="Never")
    await call_webhook(
        api,
        "validating",
        lambda request: {"allowed": request["object"]["metadata"].get("labels") == {"by": "policy"}},
    )
    assert (await api.create(CONFIG_MAPS, ONE)).code == 201


async def test_webhook_that_fails_refuses_object(api):
    def fail(_request):
        raise WebhookCallFailed("failed to call webhook: no route to host")

    await call_webhook(api, "validating", fail)
    answer = await api.create(CONFIG_MAPS, ONE)
    assert answer.code == 500
    assert answer.message == (
        'Internal error occurred: failed calling webhook "w.example.com": failed to call webhook: no route to host'
    )
    assert await api.stored(f"{CONFIG_MAPS}/a") is None


@pytest.mark.kills("admission of a deletion is not told of a dry run")
async def test_webhook_learns_which_deletion_is_dry_run(api):
    dry_runs = []

    def admit(request):
        dry_runs.append(request["dryRun"])
        return {}

    await api.create(CONFIG_MAPS, ONE)
    await call_webhook(api, "validating", admit, operation="DELETE")
    await api.delete(f"{CONFIG_MAPS}/a", dryRun="All")
    await api.delete(f"{CONFIG_MAPS}/a")
    assert dry_runs == [True, False]
