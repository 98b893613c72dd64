"""The pods of an object that a user names for `logs`, `exec` and `port_forward`."""

import pytest

from mockube.objects.errors import InvalidValue
from mockube.objects.pods import pod_selector

EXPRESSIONS = [
    {"key": "b", "operator": "In", "values": ["x", "y"]},
    {"key": "c", "operator": "NotIn", "values": ["z"]},
    {"key": "d", "operator": "Exists"},
    {"key": "e", "operator": "DoesNotExist"},
]


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        pytest.param({"app": "web", "tier": "front"}, "app=web,tier=front", id="of a Service"),
        pytest.param({"matchLabels": {"app": "web"}}, "app=web", id="labels"),
        pytest.param({"matchExpressions": EXPRESSIONS}, "b in (x,y),c notin (z),d,!e", id="expressions"),
    ],
)
def test_pods_are_selected_as_by_their_object(selector, text):
    assert pod_selector({"kind": "Job", "spec": {"selector": selector}}) == text


@pytest.mark.parametrize("spec", [None, {}, {"selector": {}}, {"selector": "app=web"}])
def test_object_without_selector_has_no_pods(spec):
    with pytest.raises(InvalidValue, match="a ConfigMap has no pods"):
        pod_selector({"kind": "ConfigMap", "spec": spec})
