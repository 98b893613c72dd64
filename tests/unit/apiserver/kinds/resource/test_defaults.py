import pytest

GROUP = "resource.k8s.io/v1"
NOW = "2030-01-01T00:00:00Z"
EXACT = {"deviceClassName": "", "allocationMode": "ExactCount", "count": 1}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"exactly": {}}, {"exactly": EXACT}, id="one"),
        pytest.param({"exactly": {"count": 3}}, {"exactly": EXACT | {"count": 3}}, id="more"),
        pytest.param(
            {"exactly": {"allocationMode": "All"}},
            {"exactly": {"deviceClassName": "", "allocationMode": "All"}},
            id="all",
        ),
        pytest.param(
            {"exactly": {"tolerations": [{"key": "k"}]}},
            {"exactly": EXACT | {"tolerations": [{"key": "k", "operator": "Equal"}]}},
            id="a toleration",
        ),
        pytest.param(
            {"firstAvailable": [{}]}, {"firstAvailable": [{"name": ""} | EXACT]}, id="one of several"
        ),
    ],
)
@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
def test_device_request_defaults(with_defaults, kind, given, expected):
    spec = {"devices": {"requests": [{"name": "r"} | given]}}
    made = with_defaults(GROUP, kind, {"spec": {"spec": spec} if kind == "ResourceClaimTemplate" else spec})[
        "spec"
    ]
    claim = made["spec"] if kind == "ResourceClaimTemplate" else made
    assert claim["devices"]["requests"] == [{"name": "r"} | expected]


@pytest.mark.parametrize(
    ("given", "added"),
    [
        pytest.param({}, NOW, id="from now on"),
        pytest.param({"timeAdded": "2020-01-02T03:04:05Z"}, "2020-01-02T03:04:05Z", id="from before"),
    ],
)
def test_device_taint_defaults(with_defaults, given, added):
    device = {"name": "d", "taints": [{"key": "k", "effect": "NoSchedule"} | given]}
    defaulted = with_defaults(GROUP, "ResourceSlice", {"spec": {"devices": [device]}})["spec"]["devices"][0]
    assert defaulted["taints"][0]["timeAdded"] == added
