"""Objects as values by the paths of their fields, and their differences."""

import pytest

from mockube.history.field_values import (
    ABSENT,
    changes_of,
    is_below,
    only_fields,
    show,
    unified_diff,
    values_of,
)

OBJECT = {
    "spec": {
        "replicas": 3,
        "containers": [{"name": "web", "image": "a"}, {"name": "x.y", "args": ["1", "2"]}],
        "empty": {},
        "none": [],
    },
    "metadata": {"annotations": {"a.b/c": "v"}},
}


def test_paths_are_those_of_kubectl_and_members_have_names():
    assert values_of(OBJECT) == {
        "spec.replicas": 3,
        "spec.containers[web].name": "web",
        "spec.containers[web].image": "a",
        'spec.containers["x.y"].name': "x.y",
        'spec.containers["x.y"].args[0]': "1",
        'spec.containers["x.y"].args[1]': "2",
        "spec.empty": {},
        "spec.none": [],
        'metadata.annotations["a.b/c"]': "v",
    }
    assert values_of(None) == {}


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2, "b": 3}, ["a: 1 -> 2", "b: 3"]),
        ({"a": 1, "c": {"d": True}}, {"a": True}, ["a: 1 -> true", "c.d: true -> (not set)"]),
        (None, {"a": "x"}, ['a: "x"']),
        ({"l": ["a"]}, {"l": ["a", "b"]}, ['l[1]: "b"']),
    ],
)
def test_changes_name_each_field_that_differs(before, after, changes):
    assert [str(change) for change in changes_of(before, after)] == changes


def test_reordered_members_with_names_do_not_differ():
    members = [{"type": "Ready", "status": "True"}, {"type": "Done", "status": "False"}]
    assert changes_of({"c": members}, {"c": members[::-1]}) == []


@pytest.mark.parametrize(
    ("path", "field", "is_part"),
    [
        ("spec.replicas", "spec.replicas", True),
        ("spec.replicas", "spec", True),
        ("spec.containers[web].image", "spec.containers", True),
        ("spec.replicasX", "spec.replicas", False),
        ("spec", "spec.replicas", False),
    ],
)
def test_field_has_its_parts(path, field, is_part):
    assert is_below(path, field) is is_part


def test_long_values_are_cut():
    assert show("x" * 100) == '"' + "x" * 56 + "..."
    assert show(ABSENT) == "(not set)"


def test_difference_is_that_of_two_files():
    lines = [*unified_diff({"a": 1, "b": 2}, {"a": 1, "b": 3}, old="then", new="now")]
    assert lines == ["--- then", "+++ now", "@@ -1,2 +1,2 @@", " a: 1", "-b: 2", "+b: 3"]
    assert [*unified_diff(None, {"a": 1}, old="then", new="now")][:2] == ["--- /dev/null", "+++ now"]


def test_only_some_fields_are_left():
    tree = {
        "metadata": {"name": "a", "labels": {"app": "web", "tier": "x"}},
        "spec": {
            "containers": [{"name": "a", "image": "nginx"}, {"name": "b", "image": "redis"}],
            "replicas": 1,
        },
    }
    fields = {"metadata.labels.app", "spec.containers[b].image", "spec.other"}
    assert only_fields(tree, fields) == {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"image": "redis"}]},
    }
    assert only_fields(tree, {"metadata.labels"}) == {"metadata": {"labels": tree["metadata"]["labels"]}}
    assert only_fields(tree, set()) == {}
