"""ValidatingAdmissionPolicies validate writes as their bindings configure."""

import orjson
import pytest

from tests.support.server import apiserver

GROUP = "/apis/admissionregistration.k8s.io/v1"
POLICIES, BINDINGS = f"{GROUP}/validatingadmissionpolicies", f"{GROUP}/validatingadmissionpolicybindings"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
RULE = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["configmaps"],
}
NAMED = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request"


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


async def policy(client, *validations, actions=("Deny",), binding=None, **spec):
    constraints = {"resourceRules": [RULE]}
    body = {
        "metadata": {"name": "p"},
        "spec": {"matchConstraints": constraints, "validations": validations, **spec},
    }
    answer = await client.post(POLICIES, body)
    assert answer.status == 201, answer.body
    bound = {"policyName": "p", "validationActions": [*actions], **(binding or {})}
    answer = await client.post(BINDINGS, {"metadata": {"name": "b"}, "spec": bound})
    assert answer.status == 201, answer.body


async def write(client, name="x", **data):
    return await client.post(CONFIG_MAPS, {"metadata": {"name": name}, "data": data})


async def test_failed_policy_validation_refuses_write(client):
    validation = {"expression": "object.data.k == 'ok'", "reason": "Forbidden", "message": "not ok"}
    await policy(client, validation)
    assert (await write(client, "good", k="ok")).status == 201
    answer = await write(client, "bad", k="no")
    assert answer.status == 403
    assert answer.body["message"] == f'configmaps "bad" is forbidden: {NAMED}: not ok'


async def test_message_expression_uses_variables(client):
    await policy(
        client,
        {
            "expression": "variables.count < 2",
            "messageExpression": "string(variables.count) + ' keys'",
        },
        variables=[{"name": "count", "expression": "size(object.data)"}],
    )
    assert (await write(client, "one", a="")).status == 201
    answer = await write(client, "two", a="", b="")
    assert (answer.status, answer.body["message"]) == (422, f'configmaps "two" is forbidden: {NAMED}: 2 keys')


@pytest.mark.parametrize(("failure_policy", "status"), [("Fail", 422), ("Ignore", 201)])
async def test_evaluation_error_follows_failure_policy(client, failure_policy, status):
    await policy(client, {"expression": "object.data.k == 'ok'"}, failurePolicy=failure_policy)
    answer = await write(client, other="")
    assert answer.status == status
    if status == 422:
        assert answer.body["message"].endswith("resulted in error: no such key: k")


async def test_match_conditions_exclude_writes(client):
    condition = {"name": "some", "expression": "object.metadata.name.startsWith('checked')"}
    await policy(client, {"expression": "false"}, matchConditions=[condition])
    assert (await write(client, "free")).status == 201
    assert (await write(client, "checked")).status == 422


async def test_warn_action_allows_write_with_warning(client):
    await policy(client, {"expression": "false", "message": "better not"}, actions=["Warn"])
    answer = await write(client)
    assert answer.status == 201
    assert "better not" in answer.headers["Warning"]


async def test_parameters_are_those_of_binding(client):
    await write(client, "limits", maximum="1")
    reference = {"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"}
    await policy(
        client,
        {"expression": "size(object.data) <= int(params.data.maximum)"},
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        binding={"paramRef": reference},
    )
    assert (await write(client, "small", a="")).status == 201
    assert (await write(client, "large", a="", b="")).status == 422
    await client.delete(f"{BINDINGS}/b")
    await client.delete(f"{CONFIG_MAPS}/limits")
    reference["name"] = "gone"
    spec = {"policyName": "p", "validationActions": ["Deny"], "paramRef": reference}
    await client.post(BINDINGS, {"metadata": {"name": "b"}, "spec": spec})
    assert "no params found" in (await write(client, "none")).body["message"]


async def test_too_expensive_expression_is_refused(client):
    numbers = "[1,2,3,4,5,6,7,8,9,10]"
    loops = f"{numbers}.all(v%d, %s)"
    expression = "true"
    for depth in range(7):
        expression = loops % (depth, expression)
    await policy(client, {"expression": expression})
    answer = await write(client)
    assert answer.status == 422
    assert "cost limit exceeded" in answer.body["message"]


async def test_expression_can_check_authorization(client):
    check = "authorizer.group('').resource('secrets').namespace('default').check('get').allowed()"
    await policy(client, {"expression": check})
    assert (await write(client)).status == 201


OLD_EVENTS = {
    "apiGroups": ["events.k8s.io"],
    "apiVersions": ["v1"],
    "operations": ["*"],
    "resources": ["events"],
}
SEES_ITS_VERSION = {"expression": "request.kind.group == 'events.k8s.io' && has(object.regarding) && false"}


def event(name):
    about = {"kind": "Pod", "name": "p", "namespace": "default"}
    return {"metadata": {"name": name}, "involvedObject": about, "type": "Normal"}


@pytest.mark.parametrize(("match_policy", "status"), [("Equivalent", 422), ("Exact", 201)])
async def test_policy_matches_equivalent_resources(client, match_policy, status):
    constraints = {"matchPolicy": match_policy, "resourceRules": [OLD_EVENTS]}
    await policy(client, SEES_ITS_VERSION, matchConstraints=constraints)
    answer = await client.post("/api/v1/namespaces/default/events", event("e"))
    assert answer.status == status, answer.body
    if status == 422:
        assert answer.body["message"].endswith(f"failed expression: {SEES_ITS_VERSION['expression']}")


async def test_namespace_selector_error_needs_matching_rule(client):
    selector = {"matchLabels": {"a": "b"}}
    for resources, status in (("secrets", 201), ("configmaps", 422)):
        rule = {**RULE, "resources": [resources], "operations": ["*"]}
        constraints = {"namespaceSelector": selector, "resourceRules": [rule]}
        await policy(client, {"expression": "false"}, matchConstraints=constraints)
        await client.patch("/api/v1/namespaces/default", {"metadata": {"labels": {"a": "b"}}})
        assert (await write(client, resources)).status == status
        await client.delete(f"{BINDINGS}/b")
        await client.delete(f"{POLICIES}/p")


async def metric_samples(client, name):
    """Return the samples of a metric, by their labels."""
    page = (await client.get("/metrics")).data.decode()
    lines = (line for line in page.splitlines() if line.startswith(name + "{"))
    return dict(line.removeprefix(name).rsplit(" ", 1) for line in lines)


async def test_policy_decisions_are_counted_under_upstreams_names(client):
    await policy(client, {"expression": "false"}, actions=["Deny", "Audit"])
    await write(client)
    name = "apiserver_validating_admission_policy_check_total"
    labels = '{{enforcement_action="{}",error_type="invalid_error",policy="p",policy_binding="b"}}'
    assert await metric_samples(client, name) == {labels.format("deny"): "1", labels.format("audit"): "1"}


async def test_ignored_policy_failure_is_counted_as_allow(client):
    await policy(client, {"expression": "object.data.k == 'ok'"}, failurePolicy="Ignore")
    await write(client)
    (labels,) = await metric_samples(client, "apiserver_validating_admission_policy_check_total")
    assert 'enforcement_action="allow",error_type="invalid_error"' in labels


async def test_duration_of_plugins_and_steps_is_observed(client):
    await policy(client, {"expression": "false"})
    await write(client)
    steps = await metric_samples(client, "apiserver_admission_step_admission_duration_seconds_count")
    assert steps['{operation="CREATE",rejected="true",type="validate"}'] == "1"
    name = "apiserver_admission_controller_admission_duration_seconds_count"
    rejected = [labels for labels in await metric_samples(client, name) if 'rejected="true"' in labels]
    (labels,) = rejected
    assert 'name="ValidatingAdmissionPolicy"' in labels


@pytest.mark.parametrize(
    ("field", "text", "problem"),
    [
        ("message", "a\nb", "must not contain line breaks"),
        ("message", " ", "must be non-empty if specified"),
        ("messageExpression", " ", "must be non-empty if specified"),
    ],
)
async def test_message_of_validation_is_one_line(client, field, text, problem):
    validation = {"expression": "true", field: text}
    body = {"metadata": {"name": "p"}, "spec": {"validations": [validation]}}
    refused = await client.post("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", body)
    causes = {cause["field"]: cause["message"] for cause in refused.body["details"]["causes"]}
    assert causes[f"spec.validations[0].{field}"].endswith(f": {problem}")


async def test_deletion_that_changes_nothing_is_not_validated(client):
    await client.post(CONFIG_MAPS, {"metadata": {"name": "x"}})
    path = "/api/v1/namespaces/default/pods"
    await client.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}], "nodeName": "n"}}
    assert (await client.post(path, pod)).status == 201
    assert (await client.delete(f"{path}/p")).body["metadata"]["deletionGracePeriodSeconds"] == 30
    rule = RULE | {"operations": ["DELETE"], "resources": ["pods"]}
    await policy(client, {"expression": "false"}, matchConstraints={"resourceRules": [rule]})
    assert (await client.delete(f"{path}/p")).status == 200
    assert (await client.delete(path)).status == 200
    assert (await client.delete(f"{path}/p?gracePeriodSeconds=1")).status == 422


async def test_audited_failures_are_json_of_go(tmp_path):
    log = tmp_path / "audit.log"
    async with apiserver.running(f"--audit-log-path={log}") as client:
        await policy(client, {"expression": "size(object.data) < 1 && true"}, actions=("Audit",))
        await write(client, k="v")
    (failures,) = (
        event["annotations"]["validation.policy.admission.k8s.io/validation_failure"]
        for event in map(orjson.loads, log.read_bytes().splitlines())
        if event["requestURI"] == CONFIG_MAPS and event["stage"] == "ResponseComplete"
    )
    assert "size(object.data) \\u003c 1 \\u0026\\u0026 true" in failures
