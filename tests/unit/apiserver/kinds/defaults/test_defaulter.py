"""The walk that applies defaults: where they are applied, and what stays unchanged.

The defaults themselves are tested in the other modules of this directory.
"""

import orjson
import pytest

from mockube.apimachinery.schema.model import Shape
from mockube.apiserver.kinds.built_in_kinds import NEWEST
from mockube.apiserver.kinds.kind_rules import Defaulter
from mockube.component_base.clock import SteppedClock

DEPLOYMENT = {
    "metadata": {"name": "web"},
    "spec": {
        "template": {
            "spec": {
                "schedulerName": "own",
                "volumes": [{"name": "v", "secret": {"secretName": "s", "items": []}}, {"name": "w"}],
                "containers": [
                    {
                        "name": "c",
                        "tty": True,
                        "image": "nginx:1",
                        "securityContext": {"privileged": True},
                        "env": [
                            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                            {"name": "B", "value": "b"},
                        ],
                        "livenessProbe": {"periodSeconds": 3, "httpGet": {"port": 80}},
                    }
                ],
            }
        },
        "strategy": {"rollingUpdate": {"maxSurge": 1}},
    },
}
"""A Deployment that gets defaults before, between and after its fields, at every depth."""

SERVICE = {"spec": {"ports": [{"port": 80}], "selector": {"a": "b"}, "trafficDistribution": "PreferClose"}}
CRD = {
    "spec": {"names": {"plural": "foos", "kind": "Foo", "categories": ["all"]}, "preserveUnknownFields": True}
}
POD = {
    "spec": {
        "containers": [
            {"name": "c", "resources": {"limits": {"cpu": "1"}, "claims": [{"name": "x"}]}, "ports": [{}]}
        ],
    }
}
AUTOSCALER = {"spec": {"maxReplicas": 3, "behavior": {"scaleDown": {"stabilizationWindowSeconds": 5}}}}

objects = pytest.mark.parametrize(
    ("api_version", "kind", "tree"),
    [
        pytest.param("apps/v1", "Deployment", DEPLOYMENT, id="a deployment"),
        pytest.param("v1", "Service", SERVICE, id="a service"),
        pytest.param("v1", "Pod", POD, id="container fields from the pod"),
        pytest.param("autoscaling/v2", "HorizontalPodAutoscaler", AUTOSCALER, id="scaling rules"),
        pytest.param("apiextensions.k8s.io/v1", "CustomResourceDefinition", CRD, id="names"),
    ],
)


@objects
def test_defaulted_tree_is_in_normal_form(decode, with_defaults, api_version, kind, tree):
    defaulted = with_defaults(api_version, kind, tree)
    assert defaulted != decode(api_version, kind, tree)
    assert orjson.dumps(decode(api_version, kind, defaulted)) == orjson.dumps(defaulted)


@objects
def test_second_defaulting_changes_nothing(with_defaults, api_version, kind, tree):
    once = with_defaults(api_version, kind, tree)
    assert with_defaults(api_version, kind, once) == once


@pytest.mark.parametrize(
    ("given", "field"),
    [
        pytest.param({"replicas": 0}, "replicas", id="zero behind a pointer"),
        pytest.param({"progressDeadlineSeconds": 5}, "progressDeadlineSeconds", id="a number"),
        pytest.param({"strategy": {"type": "Recreate"}}, "strategy", id="a struct"),
    ],
)
def test_specified_value_is_not_defaulted(with_defaults, given, field):
    assert with_defaults("apps/v1", "Deployment", {"spec": given})["spec"][field] == given[field]


def test_null_is_defaulted(with_defaults):
    assert with_defaults("apps/v1", "Deployment", {"spec": {"replicas": None}})["spec"]["replicas"] == 1


def test_defaults_are_not_shared_between_objects(with_defaults):
    webhooks = {"webhooks": [{"name": "a"}]}
    first, second = (
        with_defaults("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", webhooks)
        for _ in "12"
    )
    first["webhooks"][0]["namespaceSelector"]["matchLabels"] = {"a": "b"}
    assert second["webhooks"][0]["namespaceSelector"] == {}


def test_unknown_kind_is_not_defaulted(defaulter):
    tree = {"spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}}
    before = orjson.dumps(tree)
    defaulter.default_object("example.com/v1", "Deployment", tree)
    assert orjson.dumps(tree) == before


@pytest.mark.parametrize(
    "kind", ["Lease", "ClusterRole", "ServiceAccount", "PodDisruptionBudget", "RuntimeClass"]
)
def test_kind_without_defaults_is_unchanged(schemas, decode, with_defaults, kind):
    api_version = next(
        version for version, name in schemas.kinds() if name == kind and version.endswith("v1")
    )
    amounts = {"overhead": {"podFixed": {"cpu": "1n"}}} if kind == "RuntimeClass" else {}
    assert with_defaults(api_version, kind, amounts) == decode(api_version, kind, amounts)


def all_structs(schemas):
    """Return all structs by name, with the names of the structs in their fields."""
    found = {}
    waiting = [schemas.kind(*kind) for kind in schemas.kinds()]
    while waiting:
        struct = waiting.pop()
        if struct.name not in found:
            inner = [innermost(field.type) for field in struct.fields.values()]
            found[struct.name] = {of.name for of in inner if of.shape is Shape.STRUCT}
            waiting += [of for of in inner if of.shape is Shape.STRUCT]
    return found


def innermost(of):
    return innermost(of.element) if of.element else of


def reachable(structs, start):
    found, waiting = set(), [start]
    while waiting:
        inner = structs[waiting.pop()] - found
        found |= inner
        waiting += inner
    return found


def test_walk_finds_every_default(schemas):
    defaulter = Defaulter(schemas, clock=SteppedClock())
    for api_version, kind in schemas.kinds():
        defaulter._struct(schemas.kind(api_version, kind))
    assert NEWEST.defaults(SteppedClock()).keys() <= defaulter._structs.keys()


def test_recursive_struct_has_no_defaults(schemas):
    """Otherwise the walk would need to handle recursion."""
    structs = all_structs(schemas)
    within_themselves = {name for name in structs if name in reachable(structs, name)}
    assert within_themselves
    assert not within_themselves & NEWEST.defaults(SteppedClock()).keys()
