"""MutatingAdmissionPolicies, compared with kube-apiserver 1.36 for the same requests."""

import pytest

from tests.support.server import apiserver
from tests.support.server.definitions import GROUP as DEFINED
from tests.support.server.definitions import WIDGETS, define, definition, version
from tests.support.server.webhook_server import MUTATING, webhook_server

GROUP = "/apis/admissionregistration.k8s.io/v1"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
RULE = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["configmaps"],
}
REFUSED = "policy 'p' with binding 'b' denied request: "
WRONG_NAME = 'unexpected type name "{}", expected "{}", which matches field name path from root Object type'
UNTYPED = "error applying patch: failed to convert patch object to typed object: "
STRICT = "Internal error occurred: strict decoding error: "


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


def patch(expression):
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def add(path, value):
    return patch(f"[JSONPatch{{op: 'add', path: '{path}', value: {value}}}]")


def apply(expression):
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


async def policy(client, *mutations, name="p", binding_name="b", binding=None, **spec):
    body = {
        "metadata": {"name": name},
        "spec": {
            "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [RULE]},
            "mutations": mutations,
            **spec,
        },
    }
    answer = await client.post(f"{GROUP}/mutatingadmissionpolicies", body)
    assert answer.status == 201, answer.body
    bound = {"policyName": name, **(binding or {})}
    bindings = f"{GROUP}/mutatingadmissionpolicybindings"
    answer = await client.post(bindings, {"metadata": {"name": binding_name}, "spec": bound})
    assert answer.status == 201, answer.body


async def write(client, **data):
    return await client.post(CONFIG_MAPS, {"metadata": {"name": "a"}, "data": data or {"k": "v"}})


MADE = {
    "a value": (add("/data/n", "'x'"), {"k": "v", "n": "x"}),
    "a merge": (apply("Object{data: {'a': 'b'}}"), {"k": "v", "a": "b"}),
    "nothing": (apply("Object{}"), {"k": "v"}),
    "null": (add("/data", "null"), None),
    "no value": (patch("[JSONPatch{op: 'add', path: '/data/n'}]"), {"k": "v", "n": ""}),
    "a test that fails": (
        patch(
            "[JSONPatch{op: 'test', path: '/data/k', value: 'x'}, JSONPatch{op: 'remove', path: '/data/k'}]"
        ),
        {"k": "v"},
    ),
    "a time": (add("/data/n", "timestamp('2020-01-01T00:00:00Z')"), {"k": "v", "n": "2020-01-01T00:00:00Z"}),
    "a duration": (add("/data/n", "duration('90s')"), {"k": "v", "n": "90s"}),
    "bytes": (add("/data/n", "b'abc'"), {"k": "v", "n": "YWJj"}),
    "an absent uid": (add("/data/n", "has(object.metadata.uid) ? 'yes' : 'no'"), {"k": "v", "n": "no"}),
    "a variable": (add("/data/n", "variables.size"), {"k": "v", "n": "1"}),
}


@pytest.mark.parametrize(("mutation", "data"), MADE.values(), ids=MADE)
async def test_mutating_policy_changes_object(client, mutation, data):
    await policy(client, mutation, variables=[{"name": "size", "expression": "string(size(object.data))"}])
    made = await write(client)
    assert (made.status, made.body.get("data")) == (201, data)
    stored = await client.get(f"{CONFIG_MAPS}/a")
    assert stored.body == made.body


FAILED = {
    "no such key": (
        apply("Object{data: {'k': object.data.n}}"),
        "expression 'Object{data: {'k': object.data.n}}' resulted in error: no such key: n",
    ),
    "an operation": (
        patch("[JSONPatch{op: 'twist', path: '/data'}]"),
        "JSON Patch: Unexpected kind: twist",
    ),
    "no path": (
        patch("[JSONPatch{op: 'remove'}]"),
        'JSON Patch: remove operation does not apply: doc is missing path: "": missing value',
    ),
    "an unknown field": (apply("Object{other: 'x'}"), f"{UNTYPED}.other: field not declared in schema"),
    "a wrong type": (apply("Object{data: 'x'}"), f"{UNTYPED}.data: expected map, got &{{x}}"),
    "wrong names": (
        apply("Object{metadata: Object.spec{labels: Object.spec.labels{a: 'b'}}}"),
        "type mismatch: "
        + WRONG_NAME.format("Object.spec", "Object.metadata")
        + "\n"
        + WRONG_NAME.format("Object.spec.labels", "Object.metadata.labels"),
    ),
    "wrong names in a patch": (
        add("/data", "Object.data{a: Object.b{}}"),
        "type mismatch: " + WRONG_NAME.format("Object.b", "Object.data.a"),
    ),
}


ONLY = "must not be specified when patchType is"
MISFITS = {
    "no JSON patch": (
        {"patchType": "JSONPatch"},
        "jsonPatch: Required value: must be specified when patchType is JSONPatch",
    ),
    "no configuration": (
        {"patchType": "ApplyConfiguration"},
        "applyConfiguration: Required value: must be specified when patchType is ApplyConfiguration",
    ),
    "a configuration too": (
        patch("[JSONPatch{}]") | {"applyConfiguration": {"expression": "1"}},
        f'applyConfiguration: Invalid value: "{{applyConfiguration}}": {ONLY} JSONPatch',
    ),
    "a JSON patch too": (
        apply("Object{}") | {"jsonPatch": {"expression": "1"}},
        f'jsonPatch: Invalid value: "{{jsonPatch}}": {ONLY} ApplyConfiguration',
    ),
}


@pytest.mark.parametrize(("mutation", "problem"), MISFITS.values(), ids=MISFITS)
async def test_mutation_uses_patch_of_its_type(client, mutation, problem):
    spec = {
        "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [RULE]},
        "mutations": [mutation],
    }
    path = f"{GROUP}/mutatingadmissionpolicies"
    answer = await client.post(path, {"metadata": {"name": "p"}, "spec": spec})
    assert (answer.status, answer.body["message"]) == (
        422,
        f'MutatingAdmissionPolicy.admissionregistration.k8s.io "p" is invalid: spec.mutations[0].{problem}',
    )


@pytest.mark.parametrize("failure_policy", ["Fail", "Ignore"])
@pytest.mark.parametrize(("mutation", "problem"), FAILED.values(), ids=FAILED)
async def test_failed_mutation_follows_failure_policy(client, mutation, problem, failure_policy):
    await policy(client, mutation, failurePolicy=failure_policy)
    answer = await write(client)
    if failure_policy == "Ignore":
        assert (answer.status, answer.body["data"]) == (201, {"k": "v"})
        return
    message = REFUSED + problem
    assert (answer.status, answer.body["reason"], answer.body["message"]) == (403, "Invalid", message)
    details = {"name": "a", "kind": "configmaps", "causes": [{"message": message}]}
    assert answer.body["details"] == details
    assert (await client.get(f"{CONFIG_MAPS}/a")).status == 404


@pytest.mark.parametrize("failure_policy", ["Fail", "Ignore"])
@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("[JSONPatch{op: 'add', path: '/other', value: 'x'}]", f'{STRICT}unknown field "other"'),
        (
            "[JSONPatch{op: 'add', path: '/other', value: 'x'}, JSONPatch{op: 'add', path: '/metadata/z', value: 'x'}]",
            f'{STRICT}unknown field "metadata.z", unknown field "other"',
        ),
        ("[JSONPatch{op: 'replace', path: '', value: {'a': 'b'}}]", f'{STRICT}unknown field "a"'),
        (
            "[JSONPatch{op: 'add', path: '/data/n', value: 3}]",
            "Internal error occurred: json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
    ],
)
async def test_non_object_mutation_is_an_error_despite_failure_policy(
    client, expression, message, failure_policy
):
    await policy(client, patch(expression), failurePolicy=failure_policy)
    answer = await write(client)
    assert (answer.status, answer.body["reason"], answer.body["message"]) == (500, "InternalError", message)


async def test_every_failed_mutation_is_a_cause(client):
    await policy(
        client, patch("[JSONPatch{op: 'twist', path: '/data'}]"), apply("Object{data: {'k': object.data.n}}")
    )
    causes = (await write(client)).body["details"]["causes"]
    assert [one["message"].removeprefix(REFUSED)[:10] for one in causes] == ["JSON Patch", "expression"]


async def test_other_mutations_apply_despite_ignored_failure(client):
    await policy(
        client,
        patch("[JSONPatch{op: 'twist', path: '/data'}]"),
        apply("Object{data: {'z': '1'}}"),
        add("/data/y", "object.data.z + '2'"),
        failurePolicy="Ignore",
    )
    assert (await write(client)).body["data"] == {"k": "v", "z": "1", "y": "12"}


async def test_atomic_lists_cannot_be_applied(client):
    expression = "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'main', args: ['x']}]}}"
    await client.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    await policy(
        client, apply(expression), matchConstraints={"resourceRules": [RULE | {"resources": ["pods"]}]}
    )
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
    answer = await client.post("/api/v1/namespaces/default/pods", pod)
    problem = (
        "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs"
    )
    assert answer.body["message"] == f"{REFUSED}{problem}: .spec.containers[0].args"


@pytest.mark.parametrize(("condition", "data"), [("true", {"k": "v", "n": "x"}), ("false", {"k": "v"})])
async def test_match_conditions_select_policies(client, condition, data):
    await policy(client, add("/data/n", "'x'"), matchConditions=[{"name": "c", "expression": condition}])
    assert (await write(client)).body["data"] == data


async def test_parameters_are_those_of_binding(client):
    await client.post(CONFIG_MAPS, {"metadata": {"name": "limits"}, "data": {"max": "3"}})
    reference = {"name": "limits", "parameterNotFoundAction": "Deny"}
    await policy(
        client,
        add("/data/n", "params.data.max"),
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        binding={"paramRef": reference},
    )
    assert (await write(client)).body["data"] == {"k": "v", "n": "3"}
    await client.delete(f"{CONFIG_MAPS}/limits")
    answer = await client.post(CONFIG_MAPS, {"metadata": {"name": "b"}})
    problem = "no params found for policy binding with `Deny` parameterNotFoundAction"
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
    assert answer.body["message"] == f"{REFUSED}failed to configure binding: {problem}"


async def test_update_is_mutated_and_delete_is_not(client):
    await policy(client, add("/data/n", "'x'"))
    assert (await write(client)).body["data"] == {"k": "v", "n": "x"}
    updated = await client.put(f"{CONFIG_MAPS}/a", {"metadata": {"name": "a"}, "data": {"j": "1"}})
    assert updated.body["data"] == {"j": "1", "n": "x"}
    assert (await client.delete(f"{CONFIG_MAPS}/a")).status == 200


@pytest.mark.parametrize(("again", "seen"), [("IfNeeded", "yes"), ("Never", "no")])
async def test_policy_is_reinvoked_after_other_changes(client, again, seen):
    await policy(client, add("/data/seen", "'q' in object.data ? 'yes' : 'no'"), reinvocationPolicy=again)
    await policy(client, add("/data/q", "'x'"), name="q", binding_name="c")
    assert (await write(client)).body["data"] == {"k": "v", "q": "x", "seen": seen}


async def test_webhooks_run_after_mutating_policies(client, tmp_path):
    await policy(client, add("/data/n", "'x'"))
    async with webhook_server(tmp_path, "hooks.default.svc") as hooks:
        await client.post(MUTATING, {"metadata": {"name": "c"}, "webhooks": [hooks.hook("ok")]})
        await write(client)
    assert [asked["object"]["data"] for _, asked in hooks.requests] == [{"k": "v", "n": "x"}]


async def test_equivalent_resource_is_mutated_in_version_of_rule(client):
    rule = {
        "apiGroups": ["events.k8s.io"],
        "apiVersions": ["v1"],
        "operations": ["*"],
        "resources": ["events"],
    }
    note = patch("[JSONPatch{op: 'add', path: '/note', value: object.regarding.kind}]")
    await policy(client, note, matchConstraints={"resourceRules": [rule]})
    about = {"kind": "Pod", "name": "p", "namespace": "default"}
    body = {"metadata": {"name": "e"}, "involvedObject": about, "type": "Normal"}
    answer = await client.post("/api/v1/namespaces/default/events", body)
    assert answer.status == 201, answer.body
    assert answer.body["message"] == "Pod"


async def test_mutations_are_counted(client):
    await policy(client, add("/data/n", "'x'"))
    await write(client)
    page = (await client.get("/metrics")).data.decode()
    labels = 'error_type="no_error",policy="p",policy_binding="b"'
    assert f"apiserver_mutating_admission_policy_check_total{{{labels}}} 1" in page


SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": {"a": {"type": "string"}, "n": {"type": "integer"}}},
        "status": {"type": "object", "properties": {"s": {"type": "string"}}},
    },
}
CUSTOM_RULE = RULE | {"apiGroups": [DEFINED], "resources": ["widgets"]}


async def write_custom(client, mutation, **options):
    await define(client, definition(version(schema=SCHEMA)))
    await policy(client, mutation, matchConstraints={"resourceRules": [CUSTOM_RULE]})
    body = {"apiVersion": f"{DEFINED}/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {}}
    return await client.post(f"{WIDGETS}?{options.get('query', '')}", body)


@pytest.mark.parametrize("path", ["/spec/unknown", "/unknown", "/metadata/unknown", "/metadata/labels"])
@pytest.mark.parametrize("query", ["", "fieldValidation=Strict", "dryRun=All"])
async def test_field_that_a_patch_adds_to_a_custom_object_is_dropped_if_it_is_unknown(client, path, query):
    written = await write_custom(client, add(path, "5"), query=query)
    assert written.status == 201, written.body
    assert written.body["spec"] == {}
    assert not {"unknown", "labels"} & {*written.body, *written.body["metadata"]}
    if query != "dryRun=All":
        read = await client.get(f"{WIDGETS}/w")
        assert read.body == written.body


async def test_unknown_field_of_custom_object_is_seen_by_validating_policies(client):
    body = {
        "metadata": {"name": "v"},
        "spec": {
            "matchConstraints": {"resourceRules": [CUSTOM_RULE]},
            "validations": [{"expression": "!has(object.unknown)"}],
        },
    }
    await client.post(f"{GROUP}/validatingadmissionpolicies", body)
    bound = {"policyName": "v", "validationActions": ["Deny"]}
    await client.post(
        f"{GROUP}/validatingadmissionpolicybindings", {"metadata": {"name": "v"}, "spec": bound}
    )
    refused = await write_custom(client, add("/unknown", "5"))
    assert refused.status == 422
    assert "failed expression: !has(object.unknown)" in refused.body["message"]


@pytest.mark.parametrize(
    ("operation", "code", "message"),
    [
        ("op: 'add', path: '/spec/a', value: null", 422, 'spec.a: Invalid value: "null"'),
        ("op: 'replace', path: '/kind', value: 'Other'", 422, 'kind: Invalid value: "Other": must be Widget'),
        ("op: 'remove', path: '/kind'", 500, "Object 'Kind' is missing in '{"),
        (
            "op: 'replace', path: '/apiVersion', value: 'v1'",
            500,
            f'/v1, Kind=Widget is unstructured and is not suitable for converting to "{DEFINED}/v1"',
        ),
    ],
)
async def test_custom_object_is_refused_after_a_patch_with_upstreams_error(client, operation, code, message):
    refused = await write_custom(client, patch(f"[JSONPatch{{{operation}}}]"))
    assert refused.status == code
    assert message in refused.body["message"]


async def test_patch_that_changes_the_kind_of_a_built_in_object_is_refused(client):
    await policy(client, patch("[JSONPatch{op: 'replace', path: '/kind', value: 'Other'}]"))
    refused = await write(client)
    problem = 'no kind "Other" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"'
    assert (refused.status, refused.body["message"]) == (500, f"Internal error occurred: {problem}")


async def test_unknown_field_of_a_json_patch_has_no_type(client):
    expression = "[JSONPatch{op: 'add', path: '/data/a', valu: 'x'}]"
    body = {"metadata": {"name": "p"}, "spec": {"mutations": [patch(expression)]}}
    refused = await client.post(f"{GROUP}/mutatingadmissionpolicies", body)
    assert "expected type of field 'valu' is '' but provided type is 'string'" in refused.body["message"]
