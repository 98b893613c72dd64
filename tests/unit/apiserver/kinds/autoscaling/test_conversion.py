"""Conversion of HorizontalPodAutoscalers between v1 (one metric) and v2 (several)."""

import orjson
import pytest

from mockube.apiserver.kinds.autoscaling.horizontal_pod_autoscaler.conversion import (
    BEHAVIOR,
    CONDITIONS,
    CURRENT,
    METRICS,
    to_v1,
    to_v2,
)

CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
}
MEMORY = {
    "type": "Resource",
    "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}},
}
CONTAINER = {
    "type": "ContainerResource",
    "containerResource": {
        "name": "cpu",
        "container": "c",
        "target": {"type": "Utilization", "averageUtilization": 60},
    },
}
PODS = {
    "type": "Pods",
    "pods": {
        "metric": {"name": "m", "selector": {"matchLabels": {"a": "b"}}},
        "target": {"type": "AverageValue", "averageValue": "5"},
    },
}
OBJECT = {
    "type": "Object",
    "object": {
        "describedObject": {"kind": "Ingress", "name": "i"},
        "metric": {"name": "m"},
        "target": {"type": "Value", "value": "5"},
    },
}
EXTERNAL = {
    "type": "External",
    "external": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "5"}},
}


def autoscaler(version, spec=None, status=None, annotations=None):
    metadata = {"name": "h"} | ({"annotations": annotations} if annotations else {})
    target = {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 3}
    return {
        "kind": "HorizontalPodAutoscaler",
        "apiVersion": f"autoscaling/{version}",
        "metadata": metadata,
        "spec": target | (spec or {}),
        "status": status or {},
    }


def test_cpu_utilization_target_is_a_field_in_v1():
    v1 = to_v1(autoscaler("v2", {"metrics": [CPU]}, {"desiredReplicas": 2, "currentMetrics": None}))
    assert v1 == autoscaler(
        "v1", {"targetCPUUtilizationPercentage": 50}, {"currentReplicas": 0, "desiredReplicas": 2}
    )
    assert to_v2(v1) == autoscaler("v2", {"metrics": [CPU]}, {"desiredReplicas": 2, "currentMetrics": None})


def test_current_cpu_utilization_is_a_field_in_v1():
    current = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 40}}}
    v2 = autoscaler(
        "v2", {"metrics": [CPU]}, {"desiredReplicas": 1, "currentReplicas": 1, "currentMetrics": [current]}
    )
    assert to_v1(v2)["status"]["currentCPUUtilizationPercentage"] == 40
    assert to_v2(to_v1(v2)) == v2


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        pytest.param(MEMORY, {"name": "memory", "targetAverageValue": "1Gi"}, id="resource"),
        pytest.param(
            CONTAINER, {"name": "cpu", "targetAverageUtilization": 60, "container": "c"}, id="of a container"
        ),
        pytest.param(
            PODS,
            {"metricName": "m", "selector": {"matchLabels": {"a": "b"}}, "targetAverageValue": "5"},
            id="of pods",
        ),
        pytest.param(
            OBJECT,
            {"target": {"kind": "Ingress", "name": "i"}, "metricName": "m", "targetValue": "5"},
            id="of an object",
        ),
        pytest.param(EXTERNAL, {"metricName": "m", "targetAverageValue": "5"}, id="external metric"),
    ],
)
def test_other_metrics_are_an_annotation_in_v1(metric, expected):
    v2 = autoscaler("v2", {"metrics": [metric, CPU]}, {"desiredReplicas": 0, "currentMetrics": None})
    v1 = to_v1(v2)
    ((_, source),) = [item for item in metric.items() if item[0] != "type"]
    (kept,) = orjson.loads(v1["metadata"]["annotations"][METRICS])
    assert source is not None
    assert [value for name, value in kept.items() if name != "type"] == [expected]
    assert v1["spec"]["targetCPUUtilizationPercentage"] == 50
    assert to_v2(v1) == v2


def test_behavior_and_conditions_are_annotations_in_v1():
    spec = {"behavior": {"scaleDown": {"selectPolicy": "Max"}}, "metrics": [CPU]}
    status = {"desiredReplicas": 0, "currentMetrics": None, "conditions": [{"type": "AbleToScale"}]}
    v2 = autoscaler("v2", spec, status, {"mine": "1"})
    v1 = to_v1(v2)
    assert v1["metadata"]["annotations"].keys() == {"mine", BEHAVIOR, CONDITIONS}
    assert v1["metadata"]["annotations"][BEHAVIOR] == (
        '{"ScaleUp":null,"ScaleDown":{"StabilizationWindowSeconds":null,"SelectPolicy":"Max","Policies":null,'
        '"Tolerance":null}}'
    )
    assert to_v2(v1) == v2


@pytest.mark.parametrize(
    "text", ["rubbish", "{}", "[1]", '[{"type":1}]', '[{"resource":{"targetAverageValue":"x"}}]']
)
def test_annotation_of_wrong_type_is_ignored(text):
    target = {"type": "Utilization", "averageUtilization": 80}
    expected = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    assert to_v2(autoscaler("v1", annotations={METRICS: text}))["spec"]["metrics"] == expected


@pytest.mark.parametrize("name", [BEHAVIOR, CONDITIONS, CURRENT])
@pytest.mark.parametrize("text", ["{", "[[]]", '"x"', "7", '{"ScaleUp":{"Policies":{}}}', '[{"status":[]}]'])
def test_malformed_annotations_are_dropped(name, text):
    v2 = to_v2(autoscaler("v1", annotations={name: text, "mine": "1"}))
    assert v2["metadata"]["annotations"] == {"mine": "1"}
    assert "behavior" not in v2["spec"]


def test_behavior_annotation_is_read_case_insensitively():
    text = '{"scaleup":{"STABILIZATIONWINDOWSECONDS":5,"Policies":[{"type":"Pods","Value":4,"periodseconds":15}]}}'
    v2 = to_v2(autoscaler("v1", annotations={BEHAVIOR: text}))
    policy = {"type": "Pods", "value": 4, "periodSeconds": 15}
    assert v2["spec"]["behavior"] == {"scaleUp": {"stabilizationWindowSeconds": 5, "policies": [policy]}}
