"""The TARGETS column of HorizontalPodAutoscalers."""

import pytest

from tests.support.server.printed_columns import printed_cells


def autoscaler(specs=(), statuses=(), **parts):
    return {"spec": {"metrics": specs}, "status": {"currentMetrics": statuses}} | parts


def targets(tree):
    return printed_cells("autoscaling", "HorizontalPodAutoscaler", tree)["Targets"]


def metric(kind, **source):
    return {"type": kind, kind[0].lower() + kind[1:]: source}


def resource(target, current=None, kind="Resource"):
    """Return an autoscaler with a CPU metric, with or without its current value."""
    spec = metric(kind, name="cpu", target=target)
    return autoscaler([spec], [] if current is None else [metric(kind, name="cpu", current=current)])


def autoscaler_with_target(kind, target, current=None):
    return autoscaler(
        [metric(kind, target=target)], [] if current is None else [metric(kind, current=current)]
    )


@pytest.mark.parametrize("kind", ["Resource", "ContainerResource"])
@pytest.mark.parametrize(
    ("target", "current", "expected"),
    [
        ({"averageUtilization": 80}, None, "cpu: <unknown>/80%"),
        ({"averageUtilization": 80}, {"averageUtilization": 0}, "cpu: 0%/80%"),
        ({"averageUtilization": 80}, {"averageValue": "1"}, "cpu: <unknown>/80%"),
        ({"averageValue": "0.5"}, None, "cpu: <unknown>/500m"),
        ({"averageValue": "0.5"}, {"averageValue": "250m"}, "cpu: 250m/500m"),
        ({}, None, "cpu: <unknown>/<auto>"),
    ],
)
def test_resource_metric_targets(kind, target, current, expected):
    assert targets(resource(target, current, kind)) == expected


@pytest.mark.parametrize("kind", ["External", "Object"])
@pytest.mark.parametrize(
    ("target", "current", "expected"),
    [
        ({"value": "50"}, None, "<unknown>/50"),
        ({"value": "50"}, {"value": "12"}, "12/50"),
        ({"averageValue": "50"}, None, "<unknown>/50 (avg)"),
        ({"averageValue": "50"}, {"value": "12"}, "<unknown>/50 (avg)"),
        ({"averageValue": "50"}, {"averageValue": "12"}, "12/50 (avg)"),
    ],
)
def test_value_metric_targets(kind, target, current, expected):
    assert targets(autoscaler_with_target(kind, target, current)) == expected


@pytest.mark.parametrize(
    ("current", "expected"), [(None, "<unknown>/1k"), ({"averageValue": "1500m"}, "1500m/1k")]
)
def test_pod_average_metric_targets(current, expected):
    assert targets(autoscaler_with_target("Pods", {"averageValue": "1000"}, current)) == expected


CPU = metric("Resource", name="cpu", target={"averageUtilization": 80})


@pytest.mark.parametrize(
    ("specs", "expected"),
    [
        ([], "<none>"),
        ([{"type": "Weather"}], "<unknown type>"),
        ([CPU, CPU], "cpu: <unknown>/80%, cpu: <unknown>/80%"),
        ([CPU, {"type": "Weather"}, CPU, CPU], "cpu: <unknown>/80%, <unknown type> + 2 more..."),
    ],
)
def test_at_most_two_metric_targets_are_shown(specs, expected):
    assert targets(autoscaler(specs)) == expected


def test_current_metric_belongs_to_spec_at_same_index():
    statuses = [
        metric("Pods", current={"averageValue": "1"}),
        metric("Resource", current={"averageUtilization": 7}),
    ]
    specs = [metric("Pods", target={"averageValue": "2"}), CPU]
    assert targets(autoscaler(specs, statuses)) == "1/2, cpu: 7%/80%"
    assert targets(autoscaler(specs[::-1], statuses)) == "cpu: <unknown>/80%, <unknown>/2"
    assert targets(autoscaler(specs[:1], statuses)) == "1/2"


SPECS = "autoscaling.alpha.kubernetes.io/metrics"
STATUSES = "autoscaling.alpha.kubernetes.io/current-metrics"


@pytest.mark.parametrize(
    ("annotations", "spec", "status", "expected"),
    [
        pytest.param({}, {}, {}, "<none>", id="empty"),
        pytest.param({}, {"targetCPUUtilizationPercentage": 80}, {}, "cpu: <unknown>/80%", id="the CPU"),
        pytest.param(
            {},
            {"targetCPUUtilizationPercentage": 80},
            {"currentCPUUtilizationPercentage": 40},
            "cpu: 40%/80%",
            id="the CPU with its status",
        ),
        pytest.param(
            {
                SPECS: '[{"type":"Pods","pods":{"metricName":"q","targetAverageValue":"10"}}]',
                STATUSES: '[{"type":"Pods","pods":{"metricName":"q","currentAverageValue":"3"}},'
                '{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":7}}]',
            },
            {"targetCPUUtilizationPercentage": 80},
            {"currentCPUUtilizationPercentage": 40},
            "3/10, cpu: 7%/80%",
            id="CPU after other metrics",
        ),
        pytest.param(
            {SPECS: '[{"type":"External","external":{"metricName":"q","targetValue":"10"}}]'},
            {},
            {},
            "<unknown>/10",
            id="a value",
        ),
        pytest.param(
            {SPECS: "{"}, {"targetCPUUtilizationPercentage": 80}, {}, "cpu: <unknown>/80%", id="no JSON"
        ),
        pytest.param(
            {SPECS: "[1]"}, {"targetCPUUtilizationPercentage": 80}, {}, "cpu: <unknown>/80%", id="no metric"
        ),
        pytest.param(
            {SPECS: '[{"type":"Pods","pods":{"targetAverageValue":"ten"}}]'},
            {},
            {},
            "<none>",
            id="no quantity",
        ),
    ],
)
def test_v1_metric_targets(annotations, spec, status, expected):
    assert targets({"metadata": {"annotations": annotations}, "spec": spec, "status": status}) == expected


def test_other_columns_of_autoscaler():
    tree = {
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "minReplicas": 2, "maxReplicas": 9},
        "status": {"currentReplicas": 3},
    }
    cells = printed_cells("autoscaling", "HorizontalPodAutoscaler", tree)
    assert list(cells.values()) == ["x", "Deployment/web", "<none>", "2", 9, 3, "5m"]
    assert printed_cells("autoscaling", "HorizontalPodAutoscaler", {})["MinPods"] == "<unset>"
