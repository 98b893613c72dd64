import orjson
import pytest


def test_secret_defaults(with_defaults):
    assert with_defaults("v1", "Secret", {})["type"] == "Opaque"


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        pytest.param(
            {"name": "a", "annotations": {"x": "y"}},
            {"name": "a", "labels": {"kubernetes.io/metadata.name": "a"}, "annotations": {"x": "y"}},
            id="its name",
        ),
        pytest.param(
            {"name": "a", "labels": {"z": "1", "kubernetes.io/metadata.name": "b"}},
            {"name": "a", "labels": {"kubernetes.io/metadata.name": "a", "z": "1"}},
            id="own name only",
        ),
        pytest.param({"generateName": "a-"}, {"generateName": "a-"}, id="no name yet"),
    ],
)
def test_namespace_defaults(with_defaults, metadata, expected):
    defaulted = with_defaults("v1", "Namespace", {"metadata": metadata})
    assert orjson.dumps(defaulted["metadata"]) == orjson.dumps(expected)
    assert defaulted["status"] == {"phase": "Active"}


@pytest.mark.parametrize(
    ("status", "allocatable"),
    [
        pytest.param(
            {"capacity": {"cpu": "1", "memory": "1n"}}, {"cpu": "1", "memory": "1m"}, id="all of it"
        ),
        pytest.param({"capacity": {"cpu": "2"}, "allocatable": {"cpu": "1"}}, {"cpu": "1"}, id="a part"),
        pytest.param({}, None, id="without capacity"),
    ],
)
def test_allocatable_defaults_to_capacity(with_defaults, status, allocatable):
    assert with_defaults("v1", "Node", {"status": status})["status"].get("allocatable") == allocatable


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            {"max": {"cpu": "2"}}, {"default": {"cpu": "2"}, "defaultRequest": {"cpu": "2"}}, id="most"
        ),
        pytest.param({"min": {"cpu": "1"}}, {"defaultRequest": {"cpu": "1"}}, id="least"),
        pytest.param(
            {"min": {"cpu": "1"}, "max": {"cpu": "3"}, "default": {"cpu": "2", "memory": "1Gi"}},
            {"default": {"cpu": "2", "memory": "1Gi"}, "defaultRequest": {"cpu": "2", "memory": "1Gi"}},
            id="explicit limit",
        ),
        pytest.param(
            {"max": {"cpu": "3"}, "defaultRequest": {"cpu": "1"}},
            {"default": {"cpu": "3"}, "defaultRequest": {"cpu": "1"}},
            id="explicit request",
        ),
        pytest.param({}, {}, id="empty"),
    ],
)
def test_limit_range_defaults(with_defaults, given, expected):
    item = {"type": "Container"} | given
    defaulted = with_defaults(
        "v1", "LimitRange", {"spec": {"limits": [item, {"type": "Pod", "max": {"cpu": "9"}}]}}
    )
    assert defaulted["spec"]["limits"] == [item | expected, {"type": "Pod", "max": {"cpu": "9"}}]


LABELS = {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    ("metadata", "spec", "labels", "selector"),
    [
        pytest.param({}, {}, LABELS, LABELS, id="those of its pods"),
        pytest.param({"labels": {"c": "3"}}, {}, {"c": "3"}, LABELS, id="explicit labels"),
        pytest.param({}, {"selector": {"a": "1"}}, LABELS, {"a": "1"}, id="explicit selector"),
    ],
)
def test_replication_controller_labels_default_to_template_labels(
    with_defaults, metadata, spec, labels, selector
):
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": []}}
    tree = {"metadata": metadata, "spec": {"template": template} | spec}
    defaulted = with_defaults("v1", "ReplicationController", tree)
    assert (defaulted["metadata"]["labels"], defaulted["spec"]["selector"]) == (labels, selector)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="no template"),
        pytest.param({"template": {"spec": {"containers": []}}}, id="a template without labels"),
    ],
)
def test_replication_controller_without_template_has_no_labels(with_defaults, spec):
    defaulted = with_defaults("v1", "ReplicationController", {"spec": spec})
    assert defaulted["metadata"] == {}
    assert "selector" not in defaulted["spec"]
    assert defaulted["spec"]["replicas"] == 1
