"""Admission webhooks over TLS: the reviews sent, the responses accepted, and when no webhook is called.

The answers and messages are those of kube-apiserver 1.36, which was sent the same.
"""

import pytest

from tests.support.server import apiserver
from tests.support.server.webhook_server import (
    CONFIG_MAPS,
    MAP,
    MUTATING,
    PATH,
    VALIDATING,
    labels,
    register,
    warnings,
    webhook_server,
)


@pytest.fixture
async def hooks(tmp_path):
    async with webhook_server(tmp_path, "hooks.default.svc") as server:
        yield server


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        await client.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        yield client


# --- review requests


async def test_admission_review_describes_whole_write(client, hooks):
    await register(client, VALIDATING, hooks.hook("ok"))
    await client.post(f"{PATH}?fieldManager=m&fieldValidation=Strict", MAP)
    await client.put(f"{PATH}/a", {"metadata": {"name": "a"}, "data": {"x": "z"}})
    await client.delete(f"{PATH}/a", {"gracePeriodSeconds": 0})
    (url, created), (_, updated), (_, deleted) = hooks.requests
    assert url == "/ok?timeout=1s"
    kind, resource = (
        {"group": "", "version": "v1", name: value}
        for name, value in (("kind", "ConfigMap"), ("resource", "configmaps"))
    )
    assert (created["kind"], created["requestKind"]) == (kind, kind)
    assert (created["resource"], created["requestResource"]) == (resource, resource)
    assert (created["name"], created["namespace"], created["operation"]) == ("a", "default", "CREATE")
    assert created["userInfo"]["username"] == "admin"
    assert created["oldObject"] is None
    assert created["options"] == {
        "kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "m", "fieldValidation": "Strict",
    }  # fmt: skip
    assert (updated["object"]["data"], updated["oldObject"]["data"]) == ({"x": "z"}, {"x": "y"})
    assert updated["object"]["metadata"]["resourceVersion"]
    assert (deleted["object"], deleted["oldObject"]["data"]) == (None, {"x": "z"})
    assert deleted["options"]["gracePeriodSeconds"] == 0


async def test_new_object_has_no_uid_before_validation(client, hooks):
    await register(client, MUTATING, hooks.hook("label"))
    await register(client, VALIDATING, hooks.hook("ok"))
    created = await client.post(PATH, MAP)
    (_, mutated), (_, validated) = hooks.requests
    assert not {"uid", "creationTimestamp"} & mutated["object"]["metadata"].keys()
    assert validated["object"]["metadata"]["uid"] == created.body["metadata"]["uid"]
    assert validated["object"]["metadata"]["labels"] == {"hooked": "yes"} == labels(created)


async def test_namespace_that_webhook_changes_is_refused(client, hooks):
    await register(client, MUTATING, hooks.hook("other-namespace"))
    response = await client.post(PATH, MAP)
    problem = "the namespace of the provided object does not match the namespace sent on the request"
    assert (response.status, response.body["message"]) == (400, problem)


@pytest.mark.parametrize(
    ("spec", "is_asked"),
    [
        ({"rules": [CONFIG_MAPS | {"operations": ["UPDATE"]}]}, False),
        ({"rules": [CONFIG_MAPS | {"resources": ["configmaps/*"]}]}, True),
        ({"rules": [CONFIG_MAPS | {"resources": ["*/status"]}]}, False),
        ({"rules": [CONFIG_MAPS | {"apiGroups": ["apps"]}]}, False),
        ({"rules": [CONFIG_MAPS | {"scope": "Cluster"}]}, False),
        ({"rules": [CONFIG_MAPS | {"scope": "Namespaced"}]}, True),
        ({"objectSelector": {"matchLabels": {"a": "b"}}}, False),
        ({"objectSelector": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}}, True),
        ({"namespaceSelector": {"matchLabels": {"a": "b"}}}, False),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, True),
    ],
)
async def test_rules_and_selectors_select_webhooks(client, hooks, spec, is_asked):
    await register(client, VALIDATING, hooks.hook("ok", **spec))
    await client.post(PATH, MAP)
    assert len(hooks.requests) == is_asked


@pytest.mark.parametrize(("policy", "versions"), [("Equivalent", ["v2"]), ("Exact", [])])
async def test_equivalent_request_is_converted(client, hooks, policy, versions):
    rule = {
        "operations": ["*"],
        "apiGroups": ["autoscaling"],
        "apiVersions": ["v2"],
        "resources": ["horizontalpodautoscalers"],
    }
    await register(client, MUTATING, hooks.hook("label", rules=[rule], matchPolicy=policy))
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}
    spec = {"maxReplicas": 3, "scaleTargetRef": target, "targetCPUUtilizationPercentage": 50}
    path = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
    created = await client.post(path, {"metadata": {"name": "a"}, "spec": spec})
    assert created.body["spec"]["targetCPUUtilizationPercentage"] == 50
    assert [asked["kind"]["version"] for _, asked in hooks.requests] == versions
    assert [asked["requestKind"]["version"] for _, asked in hooks.requests] == ["v1"] * len(versions)
    assert labels(created) == ({"hooked": "yes"} if versions else {})


async def test_webhook_configurations_are_not_reviewed(client, hooks):
    rule = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}
    await register(client, VALIDATING, hooks.hook("deny", rules=[rule]))
    await register(client, MUTATING, name="other")
    assert (await client.delete(f"{VALIDATING}/c")).status == 200
    assert hooks.requests == []


async def test_changed_webhook_configuration_applies_at_once(client, hooks):
    await register(client, VALIDATING, hooks.hook("deny"))
    assert (await client.post(PATH, MAP)).status == 400
    await client.delete(f"{VALIDATING}/c")
    assert (await client.post(PATH, MAP)).status == 201


async def test_eviction_is_reviewed_once(client, hooks):
    rule = CONFIG_MAPS | {"resources": ["pods", "pods/*"]}
    pods = "/api/v1/namespaces/default/pods"
    await client.post(
        pods, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    )
    await register(client, VALIDATING, hooks.hook("ok", rules=[rule]))
    await client.post(
        f"{pods}/p/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    )
    assert [(asked["operation"], asked["subResource"]) for _, asked in hooks.requests] == [
        ("CREATE", "eviction")
    ]


async def test_scale_is_reviewed_as_scale(client, hooks):
    rule = CONFIG_MAPS | {"apiGroups": ["apps"], "resources": ["deployments/scale"]}
    await register(client, MUTATING, hooks.hook("ok", rules=[rule]))
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    deployment = {
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    path = "/apis/apps/v1/namespaces/default/deployments"
    await client.post(path, deployment)
    assert (await client.patch(f"{path}/d/scale", {"spec": {"replicas": 3}})).body["spec"]["replicas"] == 3
    ((_, asked),) = hooks.requests
    assert (asked["object"]["kind"], asked["object"]["spec"]) == ("Scale", {"replicas": 3})


# --- matchConditions

NO_KEY = "expression '{}' resulted in error: no such key: {}"
NONE = NO_KEY.format("object.data.n == '1'", "n")
NO_OLD = NO_KEY.format("oldObject.data.x == 'y'", "data")
CONDITIONS = {
    "true": (["object.data.x == 'y' && request.operation == 'CREATE'", "true"], True),
    "one false": (["object.data.x == 'y'", "request.name == 'other'"], False),
    "error": (["object.data.n == '1'"], NONE),
    "errors": (
        ["object.data.n == '1'", "true", "oldObject.data.x == 'y'"],
        f"[{NONE}, {NO_OLD}]",
    ),
    "error and false": (["object.data.n == '1'", "false"], False),
    "rights": (["authorizer.group('').resource('configmaps').check('get').allowed()"], True),
    "no rights": (["!authorizer.group('').resource('configmaps').check('get').allowed()"], False),
    "namespace": (["namespaceObject == null"], True),
    "expensive": (
        ["[0,1,2,3,4,5,6,7,8,9].all(a, object.data.big.split('').all(b, size(object.data.big + b) > 0))"] * 5,
        "validation failed due to running out of cost budget, no further validation rules will be run",
    ),
}


def conditions(*expressions):
    return [{"name": f"c{number}", "expression": text} for number, text in enumerate(expressions)]


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
@pytest.mark.parametrize("kind", [MUTATING, VALIDATING], ids=["mutating", "validating"])
@pytest.mark.parametrize(("expressions", "outcome"), CONDITIONS.values(), ids=CONDITIONS)
async def test_match_conditions_select_webhooks(client, hooks, kind, policy, expressions, outcome):
    hook = hooks.hook("ok", matchConditions=conditions(*expressions), failurePolicy=policy)
    await register(client, kind, hook)
    body = MAP | {"data": {"x": "y", "big": "z" * 5000}}
    answer = await client.post(PATH, body)
    assert len(hooks.requests) == (outcome is True)
    if policy == "Ignore" or not isinstance(outcome, str):
        assert answer.status == 201
        return
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
    assert answer.body["message"] == f'configmaps "a" is forbidden: {outcome}'
    assert (await client.get(f"{PATH}/a")).status == 404


@pytest.mark.parametrize(("kind", "is_asked"), [(MUTATING, False), (VALIDATING, True)])
async def test_match_conditions_see_object_of_webhook(client, hooks, kind, is_asked):
    hook = hooks.hook("ok", matchConditions=conditions("has(object.metadata.uid)"))
    await register(client, kind, hook)
    await client.post(PATH, MAP)
    assert len(hooks.requests) == is_asked


async def test_generated_name_is_absent_in_match_conditions(client, hooks):
    failing = conditions("object.data.n == '1'")
    await register(client, MUTATING, hooks.hook("ok", matchConditions=failing))
    answer = await client.post(PATH, {"metadata": {"generateName": "g"}, "data": {"x": "y"}})
    assert answer.body["message"] == f"configmaps is forbidden: {NONE}"
    assert answer.body["details"] == {"kind": "configmaps"}


async def test_changed_match_conditions_apply_at_once(client, hooks):
    await register(client, VALIDATING, hooks.hook("deny", matchConditions=conditions("false")))
    assert (await client.post(PATH, MAP)).status == 201
    operation = {"op": "replace", "path": "/webhooks/0/matchConditions/0/expression", "value": "true"}
    await client.patch(f"{VALIDATING}/c", [operation], kind="json-patch+json")
    assert (await client.post(PATH, {"metadata": {"name": "b"}})).status == 400


# --- review responses


@pytest.mark.parametrize(
    ("path", "refusal"),
    [
        ("deny", (400, "denied the request without explanation", None)),
        ("deny-message", (403, "denied the request: no way", "Forbidden")),
        ("deny-reason", (400, "denied the request: TooBad", "TooBad")),
        ("deny-success", (400, "denied the request: m", None)),
    ],
)
@pytest.mark.parametrize("kind", [MUTATING, VALIDATING], ids=["mutating", "validating"])
async def test_webhook_refusal_has_its_message(client, hooks, kind, path, refusal):
    code, message, reason = refusal
    await register(client, kind, hooks.hook(path, failurePolicy="Ignore"))
    answer = await client.post(PATH, MAP)
    assert (answer.status, answer.body.get("reason")) == (code, reason)
    assert answer.body["message"] == f'admission webhook "h.example.com" {message}'
    assert (await client.get(f"{PATH}/a")).status == 404


async def test_inapplicable_webhook_patch_is_an_error(client, hooks):
    await register(client, MUTATING, hooks.hook("bad-path"))
    answer = await client.post(PATH, MAP)
    assert (answer.status, answer.body["message"]) == (
        500,
        "Internal error occurred: error in remove for path: '/data/none': Unable to remove nonexistent key: none: missing value",
    )


async def test_webhook_mutates_update(client, hooks):
    await register(client, MUTATING, hooks.hook("label"))
    await client.post(PATH, MAP)
    updated = await client.put(f"{PATH}/a", {"metadata": {"name": "a"}, "data": {"x": "z"}})
    assert (updated.body["data"], labels(updated)) == ({"x": "z"}, {"hooked": "yes"})
    assert (await client.get(f"{PATH}/a")).body == updated.body


async def test_unknown_fields_added_by_webhook_are_dropped(client, hooks):
    await register(client, MUTATING, hooks.hook("unknown-field"))
    answer = await client.post(PATH, MAP)
    assert answer.status == 201
    assert "other" not in answer.body


async def test_fields_added_by_webhook_are_defaulted(client, hooks):
    await register(client, MUTATING, hooks.hook("container", rules=[CONFIG_MAPS | {"resources": ["pods"]}]))
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    created = await client.post("/api/v1/namespaces/default/pods", pod)
    assert [one["imagePullPolicy"] for one in created.body["spec"]["containers"]] == ["Always", "Always"]
    assert all("volumeMounts" in one for one in created.body["spec"]["containers"])


async def test_webhook_warnings_are_returned(client, hooks):
    await register(client, VALIDATING, hooks.hook("warn"))
    assert warnings(await client.post(PATH, MAP)) == ["careful"]


# --- several


async def test_mutating_webhooks_see_earlier_changes(client, hooks):
    await register(
        client, MUTATING, hooks.hook("label", "a.example.com"), hooks.hook("second", "b.example.com")
    )
    assert labels(await client.post(PATH, MAP)) == {"hooked": "yes", "second": "yes"}


@pytest.mark.parametrize(
    ("first", "second", "count", "calls"),
    [
        ({"reinvocationPolicy": "IfNeeded"}, ("second", {}), "2", 3),
        ({}, ("second", {}), "1", 2),
        ({"reinvocationPolicy": "IfNeeded"}, ("ok", {}), "1", 2),
        ({"reinvocationPolicy": "IfNeeded"}, ("count", {"reinvocationPolicy": "IfNeeded"}), "4", 4),
    ],
    ids=["changed after it", "never again", "not changed", "both again"],
)
async def test_webhook_is_reinvoked_after_later_changes(client, hooks, first, second, count, calls):
    path, spec = second
    await register(
        client,
        MUTATING,
        hooks.hook("count", "a.example.com", **first),
        hooks.hook(path, "b.example.com", **spec),
    )
    assert labels(await client.post(PATH, MAP))["count"] == count
    assert len(hooks.requests) == calls


async def test_all_validating_webhooks_are_called(client, hooks):
    await register(
        client,
        VALIDATING,
        hooks.hook("ok", "a.example.com"),
        hooks.hook("deny", "b.example.com"),
        hooks.hook("deny", "c.example.com"),
    )
    answer = await client.post(PATH, MAP)
    assert (
        answer.body["message"] == 'admission webhook "b.example.com" denied the request without explanation'
    )
    assert len(hooks.requests) == 3
