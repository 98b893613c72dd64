"""Validation of HorizontalPodAutoscalers."""

import pytest

from tests.support.field_rules import ABSENT, changed, create_errors, update_errors

TARGET = {"type": "AverageValue", "averageValue": "1"}
UTILIZATION = {"type": "Utilization", "averageUtilization": 50}
AUTOSCALER = {
    "metadata": {"name": "h", "namespace": "ns"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        "minReplicas": 1,
        "maxReplicas": 3,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": UTILIZATION}}],
    },
}
OBJECT = {"apiVersion": "v1", "kind": "Service", "name": "s"}
POLICY = {"type": "Pods", "value": 1, "periodSeconds": 1}


def autoscaler(fields):
    return changed(AUTOSCALER, {f"spec.{path}": value for path, value in fields.items()})


def errors_of(change):
    return create_errors("autoscaling/v2", "HorizontalPodAutoscaler", autoscaler(change))


def metric_errors(*metrics):
    """Return the errors of an autoscaler with metrics, without the path of the metrics."""
    return [text.removeprefix("spec.metrics") for text in errors_of({"metrics": [*metrics]})]


def rule_errors(fields):
    """Return the errors of an autoscaler with a rule for scaling up, without the path of the rule."""
    rules = {"policies": [POLICY], **fields}
    return [
        text.removeprefix("spec.behavior.scaleUp.") for text in errors_of({"behavior": {"scaleUp": rules}})
    ]


def resource(name="cpu", **target):
    return {"type": "Resource", "resource": {"name": name, "target": target or UTILIZATION}}


def of_container(**fields):
    return {
        "type": "ContainerResource",
        "containerResource": {"name": "cpu", "container": "c", "target": UTILIZATION, **fields},
    }


def pods(name="m", **target):
    return {"type": "Pods", "pods": {"metric": {"name": name}, "target": target or TARGET}}


def external(name="m", **target):
    return {"type": "External", "external": {"metric": {"name": name}, "target": target or TARGET}}


def of_object(described=OBJECT, **target):
    return {
        "type": "Object",
        "object": {"describedObject": described, "metric": {"name": "m"}, "target": target or TARGET},
    }


AUTOSCALERS = [
    pytest.param({}, [], id="no change"),
    pytest.param({"metrics": ABSENT}, [], id="no metrics"),
    pytest.param({"minReplicas": 0},
        [("spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to "
          "zero replicas")], id="minimum zero"),
    pytest.param({"minReplicas": 3}, [], id="minimum equal to the maximum"),
    pytest.param({"minReplicas": 4},
        ["spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`"],
        id="minimum above the maximum"),
    pytest.param({"maxReplicas": 0},
        ["spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
         "spec.maxReplicas: Required value"], id="maximum zero"),
    pytest.param({"maxReplicas": -1},
        ["spec.maxReplicas: Invalid value: -1: must be greater than or equal to `minReplicas`",
         "spec.maxReplicas: Invalid value: -1: must be greater than or equal to 1"], id="negative maximum"),
    pytest.param({"scaleTargetRef": ABSENT},
        ["spec.scaleTargetRef.kind: Required value",
         "spec.scaleTargetRef.name: Required value",
         'spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group'], id="no target"),
    pytest.param({"scaleTargetRef": {"apiVersion": "apps/v1"}},
        ["spec.scaleTargetRef.kind: Required value",
         "spec.scaleTargetRef.name: Required value"], id="target without names"),
    pytest.param({"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "..", "name": "a/b"}},
        ["spec.scaleTargetRef.kind: Invalid value: \"..\": may not be '..'",
         "spec.scaleTargetRef.name: Invalid value: \"a/b\": may not contain '/'"], id="target with invalid names"),
    pytest.param({"scaleTargetRef": {"apiVersion": "v1", "kind": "Deployment", "name": "d"}},
        ['spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group'],
        id="target without group"),
    pytest.param({"scaleTargetRef": {"kind": "Deployment", "name": "d"}},
        ['spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group'],
        id="target without version"),
    pytest.param({"scaleTargetRef": {"apiVersion": "v1", "kind": "ReplicationController", "name": "d"}},
        [], id="target in the core group"),
    pytest.param({"scaleTargetRef": {"apiVersion": "a/b/c", "kind": "D", "name": "d"}},
        ['spec.scaleTargetRef.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'],
        id="target with two slashes"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), AUTOSCALERS)
def test_autoscalers_are_validated(change, expected):
    assert errors_of(change) == expected


METRICS = [
    pytest.param([resource()], [], id="resource"),
    pytest.param([resource(type="AverageValue", averageValue="1")], [], id="resource by value"),
    pytest.param([resource(name="")],
        ["[0].resource.name: Required value: must specify a resource name"], id="resource without name"),
    pytest.param([{"type": "Resource", "resource": {"name": "cpu"}}],
        ["[0].resource.target.type: Required value: must specify a metric target type",
         '[0].resource.target.type: Invalid value: "": must be either Utilization, Value, or AverageValue',
         ("[0].resource.target.averageUtilization: Required value: must set either a target raw value or a "
          "target utilization")], id="resource without target"),
    pytest.param([resource(type="Utilization", averageUtilization=50, averageValue="1")],
        [("[0].resource.target.averageValue: Forbidden: may not set both a target raw value and a target "
          "utilization")], id="resource by both"),
    pytest.param([resource(type="Utilization", averageUtilization=0)],
        ["[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0"], id="utilization zero"),
    pytest.param([resource(type="AverageValue", averageValue="0")],
        ['[0].resource.target.averageValue: Invalid value: "0": must be positive'], id="value zero"),
    pytest.param([resource(type="Max", averageUtilization=50)],
        ['[0].resource.target.type: Invalid value: "Max": must be either Utilization, Value, or AverageValue'],
        id="unknown type of target"),
    pytest.param([of_container()], [], id="resource of a container"),
    pytest.param([of_container(container="")],
        ["[0].containerResource.container: Required value: must specify a container"], id="resource of no container"),
    pytest.param([of_container(container="C")],
        [('[0].containerResource.container: Invalid value: "C": a lowercase RFC 1123 label must consist of '
          "lower case alphanumeric characters or '-', and must start and end with an alphanumeric character "
          "(e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')")],
        id="resource of an invalid container"),
    pytest.param([of_container(name="gpu")],
        ['[0].containerResource.name: Invalid value: "gpu": must be a standard resource type or fully qualified',
         '[0].containerResource.name: Invalid value: "gpu": must be a standard resource for containers'],
        id="unknown resource of a container"),
    pytest.param([of_container(name="")],
        ["[0].containerResource.name: Required value: must specify a resource name"], id="no resource of a container"),
    pytest.param([pods()], [], id="pods"),
    pytest.param([pods(name="")],
        ["[0].pods.metric.name: Required value: must specify a metric name"], id="pods without name"),
    pytest.param([pods(name="a/b")],
        ["[0].pods.metric.name: Invalid value: \"a/b\": may not contain '/'"], id="pods with invalid name"),
    pytest.param([pods(type="Value", value="1")],
        ["[0].pods.target.averageValue: Required value: must specify a positive target averageValue"],
        id="pods by value"),
    pytest.param([external()], [], id="external"),
    pytest.param([external(type="Value", value="1")], [], id="external by value"),
    pytest.param([external(type="Value", value="1", averageValue="1")],
        ["[0].external.target.value: Forbidden: may not set both a target value for metric and a per-pod target"],
        id="external by both"),
    pytest.param([external(type="Value")],
        [("[0].external.target.averageValue: Required value: must set either a target value for metric or a "
          "per-pod target")], id="external by neither"),
    pytest.param([external(name="")],
        ["[0].external.metric.name: Required value: must specify a metric name"], id="external without name"),
    pytest.param([of_object()], [], id="object"),
    pytest.param([of_object(type="Value")],
        ["[0].object.target.averageValue: Required value: must set either a target value or averageValue"],
        id="object by neither"),
    pytest.param([of_object(type="Value", value="1", averageValue="1")], [], id="object by both"),
    pytest.param([of_object(described={})],
        ["[0].object.describedObject.kind: Required value",
         "[0].object.describedObject.name: Required value"], id="object without reference"),
    pytest.param([of_object(type="Value", value="-1")],
        ['[0].object.target.value: Invalid value: "-1": must be positive'], id="object by negative value"),
    pytest.param([{"resource": {"name": "cpu", "target": UTILIZATION}}],
        ["[0].type: Required value: must specify a metric source type",
         ('[0].type: Unsupported value: "": supported values: "ContainerResource", "External", "Object", '
          '"Pods", "Resource"')], id="no type"),
    pytest.param([{"type": "Disk", "resource": {"name": "cpu", "target": UTILIZATION}}],
        [('[0].type: Unsupported value: "Disk": supported values: "ContainerResource", "External", "Object", '
          '"Pods", "Resource"')], id="unknown type"),
    pytest.param([{"type": "Pods"}],
        ["[0].pods: Required value: must populate information for the given metric source"], id="nothing of its type"),
    pytest.param([{**pods(), **resource()}],
        ["[0].pods: Forbidden: must populate the given metric source only"], id="two types"),
    pytest.param([{"type": "External", "pods": pods()["pods"]}],
        ["[0].external: Required value: must populate information for the given metric source"], id="another type"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), METRICS)
def test_metrics_are_validated(change, expected):
    assert metric_errors(*change) == expected


RULES = [
    pytest.param({}, [], id="policy"),
    pytest.param({"policies": []}, ["policies: Required value: must specify at least one Policy"], id="no policies"),
    pytest.param({"stabilizationWindowSeconds": 3600}, [], id="longest window"),
    pytest.param({"stabilizationWindowSeconds": 3601},
        ["stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600"], id="window too long"),
    pytest.param({"stabilizationWindowSeconds": -1},
        ["stabilizationWindowSeconds: Invalid value: -1: must be greater than or equal to zero"], id="negative window"),
    pytest.param({"selectPolicy": "Disabled"}, [], id="selection"),
    pytest.param({"selectPolicy": "Mean"},
        ['selectPolicy: Unsupported value: "Mean": supported values: "Disabled", "Max", "Min"'], id="unknown selection"),
    pytest.param({"policies": [{}]},
        ['policies[0].type: Unsupported value: "": supported values: "Percent", "Pods"',
         "policies[0].value: Invalid value: 0: must be greater than zero",
         "policies[0].periodSeconds: Invalid value: 0: must be greater than zero"], id="empty policy"),
    pytest.param({"policies": [{**POLICY, "type": "Nodes"}]},
        ['policies[0].type: Unsupported value: "Nodes": supported values: "Percent", "Pods"'],
        id="unknown type of policy"),
    pytest.param({"policies": [{**POLICY, "periodSeconds": 1800}]}, [], id="longest period"),
    pytest.param({"policies": [{**POLICY, "periodSeconds": 1801}]},
        ["policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800"], id="period too long"),
    pytest.param({"policies": [{**POLICY, "value": -1, "periodSeconds": -1}]},
        ["policies[0].value: Invalid value: -1: must be greater than zero",
         "policies[0].periodSeconds: Invalid value: -1: must be greater than zero"], id="negative numbers"),
    pytest.param({"tolerance": "0"}, [], id="tolerance"),
    pytest.param({"tolerance": "-1m"},
        ['tolerance: Invalid value: "-1m": must be greater than or equal to 0'], id="negative tolerance"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), RULES)
def test_rules_of_behavior_are_validated(change, expected):
    assert rule_errors(change) == expected


CHANGES = [
    pytest.param({}, {"minReplicas": 0, "metrics": [external()]},
        [], id="minimum becomes zero"),
    pytest.param({"minReplicas": 0}, {"minReplicas": 0, "metrics": [external()]}, [], id="minimum stays zero"),
    pytest.param({"minReplicas": 0}, {"minReplicas": 0},
        [("spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to "
          "zero replicas")], id="minimum stays zero without metric of another object"),
    pytest.param({}, {"scaleTargetRef.name": "e"}, [], id="target"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), CHANGES)
def test_changes_of_autoscalers_are_validated(old, new, expected):
    assert (
        update_errors("autoscaling/v2", "HorizontalPodAutoscaler", autoscaler(old), autoscaler(new))
        == expected
    )


def test_status_of_autoscaler_is_validated():
    new = {**AUTOSCALER, "status": {"currentReplicas": -1, "desiredReplicas": -1}}
    assert update_errors("autoscaling/v2", "HorizontalPodAutoscaler", AUTOSCALER, new, "status") == [
        "status.currentReplicas: Invalid value: -1: must be greater than or equal to 0",
        "status.desiredReplicas: Invalid value: -1: must be greater than or equal to 0",
    ]
