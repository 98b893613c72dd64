import pytest

from mockube.exploration.edits import edit_of


@pytest.mark.parametrize(
    ("tree", "forward", "back"),
    [
        pytest.param({"spec": {"a": 1, "replicas": 3}}, {"spec": {"replicas": 4}}, {"spec": {"replicas": 3}}, id="replicas"),
        pytest.param({"spec": {"a": "x", "b": {"c": 1}}}, {"spec": {"b": {"c": 2}}}, {"spec": {"b": {"c": 1}}}, id="number"),
        pytest.param({"spec": {"a": "x", "b": True}}, {"spec": {"b": False}}, {"spec": {"b": True}}, id="bool"),
        pytest.param({"data": {"a": "x"}}, {"data": {"a": "x-edited"}}, {"data": {"a": "x"}}, id="text"),
    ],
)  # fmt: skip
def test_edit_changes_a_field_and_back(tree, forward, back):
    edit = edit_of(tree)
    assert (edit.forward, edit.back) == (forward, back)


def test_object_without_a_field():
    assert edit_of({"metadata": {"name": "a"}, "spec": {"list": [1]}, "status": {"x": 1}}) is None
