"""Which kinds the expressions of a policy are checked against, their schemas, and the warnings in its status."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from mockube.client.cache.store import Change
from mockube.client.resources import Key
from mockube.controller_manager.controllers.validatingadmissionpolicystatus.controller import (
    PolicyStatusController,
)
from mockube.controller_manager.controllers.validatingadmissionpolicystatus.schemas import (
    GroupVersionKind,
    SchemaResolver,
    find_schema,
    read_kinds,
)
from mockube.controller_manager.controllers.validatingadmissionpolicystatus.type_checking import (
    MAX_KINDS,
    TypeChecks,
    kinds_to_check,
    param_kind,
)

DEPLOYMENT, SCALE = (
    GroupVersionKind("apps", "v1", "Deployment"),
    GroupVersionKind("autoscaling", "v1", "Scale"),
)
POD, OLD = GroupVersionKind("", "v1", "Pod"), GroupVersionKind("extensions", "v1", "Deployment")


def discovered(group, version, **resources):
    listed = [
        {"resource": plural, "singularResource": kind.lower(), "responseKind": {"kind": kind}}
        for plural, kind in resources.items()
    ]
    return {
        "metadata": {"name": group} if group else {},
        "versions": [{"version": version, "resources": listed}],
    }


DISCOVERY = [
    {"items": [discovered("", "v1", pods="Pod")]},
    {
        "items": [
            discovered("apps", "v1", deployments="Deployment"),
            discovered("extensions", "v1", deployments="Deployment"),
        ]
    },
    {},
]
KINDS = read_kinds(DISCOVERY)


def test_kinds_have_plural_and_singular_names_in_all_groups():
    assert {**KINDS} == {
        ("v1", "pods"): [POD],
        ("v1", "pod"): [POD],
        ("v1", "deployments"): [DEPLOYMENT, OLD],
        ("v1", "deployment"): [DEPLOYMENT, OLD],
    }


def rule(groups=("apps",), versions=("v1",), resources=("deployments",)):
    return {"apiGroups": [*groups], "apiVersions": [*versions], "resources": [*resources]}


def policy(*rules, generation=1, observed=None, validations=(), **spec):
    metadata = {"name": "few", "generation": generation}
    status = {} if observed is None else {"observedGeneration": observed}
    constraints = {"matchConstraints": {"resourceRules": [*rules]}}
    return {
        "metadata": metadata,
        "spec": {**constraints, "validations": [*validations], **spec},
        "status": status,
    }


@pytest.mark.parametrize(
    ("rules", "kinds"),
    [
        ([rule()], [DEPLOYMENT]),
        ([rule(["extensions", "apps"])], [DEPLOYMENT, OLD]),
        ([rule([""])], [DEPLOYMENT, OLD]),
        ([rule([""], resources=["pods"]), rule()], [POD, DEPLOYMENT]),
        ([rule(["*"])], []),
        ([rule(versions=["v1", "*"])], []),
        ([rule(versions=["v2"])], []),
        ([rule(resources=["*", "deployments/scale", "deployments/*", "DEPLOYMENTS"])], [DEPLOYMENT]),
        ([rule(resources=["pods"])], []),
        ([{}], []),
    ],
)
def test_kinds_that_are_checked(rules, kinds):
    assert kinds_to_check(policy(*rules), KINDS) == kinds


def test_kinds_after_the_tenth_of_a_rule_are_not_checked():
    kinds = {("v1", f"r{number:02}"): [GroupVersionKind("g", "v1", f"K{number:02}")] for number in range(12)}
    many = rule(["g"], resources=[name for _, name in kinds])
    found = kinds_to_check(policy(many, rule(["g"], resources=["r11"])), kinds)
    assert found == [GroupVersionKind("g", "v1", f"K{number:02}") for number in range(MAX_KINDS)]
    few = rule(["g"], resources=["r00"])
    assert len(kinds_to_check(policy(few, rule(["g"], resources=["r11"])), kinds)) == 2


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ({}, None),
        ({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}, GroupVersionKind("", "v1", "ConfigMap")),
        ({"paramKind": {"apiVersion": "a.b/v1", "kind": "K"}}, GroupVersionKind("a.b", "v1", "K")),
        ({"paramKind": {}}, GroupVersionKind("", "", "")),
    ],
)
def test_kind_of_the_parameters(spec, kind):
    assert param_kind(policy(**spec)) == kind


# --- schemas


def of_kind(kind, **schema):
    entry = {"version": kind.version, "kind": kind.kind, **({"group": kind.group} if kind.group else {})}
    return {"x-kubernetes-group-version-kind": [entry], **schema}


def reference(name):
    return {"$ref": f"#/components/schemas/{name}"}


SCHEMAS = {
    "Meta": {"type": "object", "properties": {"name": {"type": "string"}}},
    "Port": {"type": "string", "format": "int-or-string"},
    "Tree": {"type": "object", "properties": {"child": reference("Tree")}},
    "Pod": of_kind(
        POD,
        type="object",
        properties={
            "metadata": {"allOf": [reference("Meta")], "description": "d"},
            "ports": {"type": "array", "items": reference("Port")},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "anything": {"type": "object", "additionalProperties": True},
            "tree": reference("Tree"),
            "unknown": reference("Nothing"),
        },
    ),
}


def test_schema_has_no_references():
    found = find_schema(SCHEMAS, POD)
    assert found["properties"] == {
        "metadata": SCHEMAS["Meta"],
        "ports": {"type": "array", "items": {**SCHEMAS["Port"], "x-kubernetes-int-or-string": True}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "anything": {"type": "object", "additionalProperties": True},
        "tree": {"type": "object", "properties": {"child": {"type": "object"}}},
        "unknown": {},
    }


@pytest.mark.parametrize(
    "kind", [POD._replace(group="x"), POD._replace(version="v2"), POD._replace(kind="x")]
)
def test_schema_of_another_kind_is_not_found(kind):
    assert find_schema(SCHEMAS, kind) is None


class Server:
    """A server with discovery and OpenAPI documents, and a record of its requests and of the statuses."""

    def __init__(self):
        self.paths, self.statuses = [], []

    async def raw(self, method, path, **_):
        assert method == "GET"
        self.paths.append(path)
        if path == "/openapi/v3":
            return {
                "paths": {
                    "api/v1": {"serverRelativeURL": "/core"},
                    "apis/x/v1": {"serverRelativeURL": "/empty"},
                }
            }
        if path in ("/core", "/empty"):
            return {"components": {"schemas": SCHEMAS}} if path == "/core" else {}
        return DISCOVERY[0] if path == "/api" else DISCOVERY[1]

    async def patch(self, _, key, body, **options):
        assert options["subresource"] == "status"
        assert (options["kind"], options["force"]) == ("apply", True)
        self.statuses.append((key.name, body["status"]))


async def test_documents_are_read_once():
    server = Server()
    resolver = SchemaResolver(server)
    assert (await resolver.of(POD))["type"] == "object"
    assert await resolver.of(POD._replace(kind="x")) is None
    assert await resolver.of(DEPLOYMENT) is None
    assert await resolver.of(GroupVersionKind("x", "v1", "K")) is None
    assert server.paths == ["/openapi/v3", "/core", "/empty"]


# --- warnings

NOW = datetime(2030, 1, 1, microsecond=7, tzinfo=UTC)
SCHEMA = {
    "type": "object",
    "properties": {"spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}}},
}


def warned(*validations, kinds=(DEPLOYMENT,), params=None, param_schema=None, variables=()):
    checks = TypeChecks(policy(validations=validations, variables=variables), NOW)
    if params is not None:
        checks.add_params(params, param_schema)
    for kind in kinds:
        checks.check(kind, SCHEMA)
    return {each["fieldRef"]: each["warning"] for each in checks.warnings()}


GOOD, BAD = "object.spec.replicas > 1", "object.spec.replica > 1"
FIRST, MESSAGE = "spec.validations[0].expression", "spec.validations[0].messageExpression"


def test_expression_that_fits_the_types_has_no_warning():
    assert warned({"expression": GOOD, "messageExpression": "'x'"}) == {}


def test_expression_of_an_unknown_field_has_a_warning_for_each_kind():
    found = warned({"expression": GOOD}, {"expression": BAD}, kinds=[DEPLOYMENT, SCALE])
    (warning,) = found.values()
    assert [*found] == ["spec.validations[1].expression"]
    assert warning.startswith("apps/v1, Kind=Deployment: ")
    assert "\nautoscaling/v1, Kind=Scale: " in warning
    assert warning.count("undefined field 'replica'") == 2


def test_expression_of_a_message_is_checked():
    assert [*warned({"expression": GOOD, "messageExpression": BAD})] == [MESSAGE]
    assert [*warned({"expression": BAD, "messageExpression": BAD})] == [FIRST, MESSAGE]


@pytest.mark.parametrize(
    ("expression", "params", "schema", "is_warned"),
    [
        ("params.spec.replicas > 1", SCALE, SCHEMA, False),
        ("params.spec.replica > 1", SCALE, SCHEMA, True),
        ("params.spec.replica > 1", SCALE, None, False),
        ("params.spec.replicas > 1", None, None, True),
    ],
    ids=["known field", "unknown field", "unknown kind", "no parameters"],
)
def test_parameters_have_the_types_of_their_kind(expression, params, schema, is_warned):
    found = warned({"expression": expression}, params=params, param_schema=schema)
    assert bool(found) is is_warned


def test_variables_have_the_types_of_their_expressions():
    variables = [{"name": "n", "expression": "object.spec.replicas"}, {"name": "bad", "expression": "x.y"}]
    assert warned({"expression": "variables.n > 1"}, variables=variables) == {}
    assert [*warned({"expression": "variables.n == 'x'"}, variables=variables)] == [FIRST]
    assert warned({"expression": "variables.bad == 'x'"}, variables=variables) == {}


# --- the controller


class Policies:
    def __init__(self, *policies):
        self.policies = {each["metadata"]["name"]: each for each in policies}
        self.lister = SimpleNamespace(get=lambda _, name: self.policies.get(name))

    def add_handler(self, handler):
        self.changed = handler


def controller_of(clock, metrics, *policies):
    server, informer, added = Server(), Policies(*policies), []
    context = SimpleNamespace(
        client=server,
        clock=clock,
        metrics=metrics,
        informers=SimpleNamespace(of=lambda _: informer),
        options=SimpleNamespace(
            controllers=SimpleNamespace(concurrent_validating_admission_policy_status_syncs=1)
        ),
    )
    controller = PolicyStatusController(context)
    controller._loop.add = added.append
    return controller, server, informer, added


CHECKED = {"observedGeneration": 1, "typeChecking": {}}
PODS = rule([""], resources=["pods"])


@pytest.mark.parametrize(
    ("tree", "status"),
    [
        (policy(PODS, validations=[{"expression": "object.tree.child != null"}]), CHECKED),
        (policy(), CHECKED),
        (policy(rule(["*"])), CHECKED),
        (policy(rule(), validations=[{"expression": BAD}]), CHECKED),
        (policy(PODS, paramKind={"apiVersion": "v1", "kind": "Pod"}), CHECKED),
        (policy(PODS, observed=1), None),
        (policy(PODS, generation=2, observed=1), {**CHECKED, "observedGeneration": 2}),
    ],
    ids=["good", "no rules", "no kinds", "no schema", "parameters", "observed", "changed"],
)
async def test_status_of_a_policy(clock, metrics, tree, status):
    controller, server, _, _ = controller_of(clock, metrics, tree)
    await controller._reconcile(Key("", "few"))
    assert server.statuses == ([] if status is None else [("few", status)])


async def test_status_of_a_policy_has_the_warnings(clock, metrics):
    tree = policy(PODS, validations=[{"expression": "object.metadata.nam == 'x'"}])
    controller, server, _, _ = controller_of(clock, metrics, tree)
    await controller._reconcile(Key("", "few"))
    ((_, status),) = server.statuses
    (warning,) = status["typeChecking"]["expressionWarnings"]
    assert warning["fieldRef"] == FIRST
    assert warning["warning"].startswith("/v1, Kind=Pod: ")


async def test_policy_that_is_gone_has_no_status(clock, metrics):
    controller, server, _, _ = controller_of(clock, metrics)
    await controller._reconcile(Key("", "few"))
    assert server.paths == server.statuses == []


@pytest.mark.parametrize(
    ("tree", "is_added"),
    [(policy(), True), (policy(observed=1), False), (policy(generation=2, observed=1), True), (None, False)],
    ids=["new", "observed", "changed", "deleted"],
)
def test_policy_is_checked_until_its_generation_is_observed(clock, metrics, tree, is_added):
    _, _, informer, added = controller_of(clock, metrics)
    informer.changed(Change(policy(), tree))
    assert added == ([Key("", "few")] if is_added else [])
