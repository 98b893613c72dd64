import pytest

UP = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
DOWN = {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}
POLICY = {"type": "Pods", "value": 1, "periodSeconds": 60}


@pytest.fixture
def autoscaler(with_defaults):
    return lambda **spec: with_defaults("autoscaling/v2", "HorizontalPodAutoscaler", {"spec": spec})["spec"]


def test_min_replicas_defaults_to_1(autoscaler):
    assert autoscaler()["minReplicas"] == 1


def test_metrics_default_to_cpu(autoscaler):
    target = {"type": "Utilization", "averageUtilization": 80}
    assert autoscaler()["metrics"] == [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def test_specified_metrics_are_kept(autoscaler):
    metric = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "Value", "value": "1Gi"}}}
    assert autoscaler(metrics=[metric])["metrics"] == [metric]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, {"scaleUp": UP, "scaleDown": DOWN}, id="both ways"),
        pytest.param(
            {"scaleUp": {"selectPolicy": "Disabled"}},
            {"scaleUp": UP | {"selectPolicy": "Disabled"}, "scaleDown": DOWN},
            id="never up",
        ),
        pytest.param(
            {"scaleDown": {"stabilizationWindowSeconds": 0, "policies": [POLICY], "tolerance": "0.05"}},
            {
                "scaleUp": UP,
                "scaleDown": {
                    "selectPolicy": "Max",
                    "stabilizationWindowSeconds": 0,
                    "policies": [POLICY],
                    "tolerance": "50m",
                },
            },
            id="slowly down",
        ),
    ],
)
def test_behavior_defaults(autoscaler, given, expected):
    assert autoscaler(behavior=given)["behavior"] == expected


def test_absent_behavior_stays_absent(autoscaler):
    assert "behavior" not in autoscaler()


METRICS = {"annotations": {"autoscaling.alpha.kubernetes.io/metrics": "[{}]"}}


@pytest.mark.parametrize(
    ("metadata", "spec", "percentage"),
    [
        pytest.param({}, {}, 80, id="nothing else"),
        pytest.param({}, {"targetCPUUtilizationPercentage": 50}, 50, id="its own"),
        pytest.param(METRICS, {}, None, id="metrics that version 1 cannot show"),
    ],
)
def test_v1_target_cpu_default(with_defaults, metadata, spec, percentage):
    made = with_defaults("autoscaling/v1", "HorizontalPodAutoscaler", {"metadata": metadata, "spec": spec})[
        "spec"
    ]
    assert (made["minReplicas"], made.get("targetCPUUtilizationPercentage")) == (1, percentage)
