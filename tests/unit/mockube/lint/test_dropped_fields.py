"""Fields that a server did not keep are found by comparing what was sent with what would be stored."""

import pytest

from mockube.lint.dropped_fields import dropped_fields


def fields_of(sent, kept, kind="Service"):
    head = {"apiVersion": "v1", "kind": kind}
    return [field.inner_path for field in dropped_fields({**head, **sent}, {**head, **kept})]


@pytest.mark.parametrize(
    ("sent", "kept", "fields"),
    [
        ({"spec": {"a": 1, "b": 2}}, {"spec": {"a": 1}}, ["spec.b"]),
        ({"spec": {"a": {"b": {"c": 1}}}}, {"spec": {}}, ["spec.a.b.c"]),
        ({"spec": {"a": {"b": 1, "c": 2}}}, {"spec": {}}, ["spec.a"]),
        ({"spec": {"a": False}}, {"spec": {}}, ["spec.a"]),
        ({"spec": {"l": [{"x": 1}, {"x": 1, "y": 2}]}}, {"spec": {"l": [{"x": 1}] * 2}}, ["spec.l[1].y"]),
        (
            {"spec": {"l": [{"name": "a"}, {"name": "b"}]}},
            {"spec": {"l": [{"name": "b"}]}},
            ["spec.l[0].name"],
        ),
        ({"spec": {"l": [1, 2]}}, {"spec": {"l": [1]}}, ["spec.l[1]"]),
    ],
)
def test_field_that_was_not_kept_is_found(sent, kept, fields):
    assert fields_of(sent, kept) == fields


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ({"spec": {"cpu": "1000m"}}, {"spec": {"cpu": "1"}}),
        ({"spec": {"c": None, "e": {}, "f": [], "g": {"h": {}}}}, {}),
        ({"spec": {"a": 0, "b": ""}}, {}),
        ({"spec": {"l": [{"name": "a"}]}}, {"spec": {"l": [{"name": "a"}, {"name": "added"}]}}),
        ({"status": {"replicas": 1}}, {}),
        ({"metadata": {"name": "a", "namespace": "b", "uid": "c"}}, {"metadata": {"name": "a"}}),
    ],
)
def test_changed_and_empty_values_and_fields_of_server_are_not_dropped(sent, kept):
    assert fields_of(sent, kept) == []


def test_text_of_secret_is_not_dropped():
    assert fields_of({"stringData": {"a": "b"}}, {"data": {"a": "Yg=="}}, "Secret") == []
