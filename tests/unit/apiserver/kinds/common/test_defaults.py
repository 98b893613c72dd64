import pytest

from mockube.apiserver.kinds.common.defaults import round_up


@pytest.mark.parametrize(
    ("amount", "rounded"),
    [
        ("1", "1"), ("100m", "100m"), ("1536Mi", "1536Mi"), ("0", "0"), ("1500u", "2m"), ("1n", "1m"), ("-1u", "-1m"),
        ("1000u", "1m"), ("2.0005", "2001m"), ("1e-6", "1e-3"), ("1.000500", "1001m"), ("5" * 30, "5" * 30),
    ],
)  # fmt: skip
def test_quantities_are_rounded_up_to_milli(amount, rounded):
    resources = {"cpu": amount, "memory": "1Gi"}
    round_up(resources)
    assert resources == {"cpu": rounded, "memory": "1Gi"}


@pytest.mark.parametrize(
    ("api_version", "kind", "path"),
    [
        pytest.param("v1", "Pod", ("spec", "overhead"), id="a pod's overhead"),
        pytest.param("v1", "Pod", ("status", "allocatedResources"), id="a pod's status"),
        pytest.param("v1", "ResourceQuota", ("spec", "hard"), id="a quota"),
        pytest.param("v1", "Node", ("status", "capacity"), id="a node"),
        pytest.param("v1", "PersistentVolume", ("spec", "capacity"), id="a volume"),
        pytest.param("v1", "PersistentVolumeClaim", ("spec", "resources", "requests"), id="a claim"),
        pytest.param("apps/v1", "DaemonSet", ("spec", "template", "spec", "overhead"), id="a template"),
    ],
)
def test_quantities_of_every_kind_are_rounded(with_defaults, api_version, kind, path):
    tree = {"cpu": "1500u"}
    for step in reversed(path):
        tree = {step: tree}
    found = with_defaults(api_version, kind, tree)
    for step in path:
        found = found[step]
    assert found == {"cpu": "2m"}
