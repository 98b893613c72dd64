import pytest

from mockube.exploration.edits import edits_of


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
    edit = edits_of(tree)[0]
    assert (edit.forward, edit.back) == (forward, back)


def test_object_without_a_field():
    assert edits_of({"metadata": {"name": "a"}, "spec": {"list": [1]}, "status": {"x": 1}}) == []


def test_all_fields_are_edited_in_turn():
    edits = edits_of({"spec": {"name": "x", "size": 1, "replicas": 2}})
    assert [each.text for each in edits] == [
        "spec.replicas is set to 3",
        "spec.size is set to 2",
        "spec.name is set to 'x-edited'",
    ]
