"""Fields that a write must not change keep their values, and neither input is modified."""

import orjson
import pytest

from mockube.apiserver.kinds.strategy import apply_fields, is_changed, preserve_fields

OLD = {"spec": {"a": 1, "b": {"c": 2}}, "status": {"ready": True}}
NEW = {"spec": {"a": 9, "d": 3}, "status": {"ready": False}, "data": 5}


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        pytest.param((), NEW, id="empty"),
        pytest.param((("status",),), NEW | {"status": OLD["status"]}, id="a field"),
        pytest.param((("spec", "a"),), NEW | {"spec": {"a": 1, "d": 3}}, id="below a field"),
        pytest.param(
            (("spec", "b", "c"),), NEW | {"spec": {"a": 9, "d": 3, "b": {"c": 2}}}, id="dropped field"
        ),
        pytest.param((("spec", "d"),), NEW | {"spec": {"a": 9}}, id="absent in the old object"),
        pytest.param((("data",),), {k: v for k, v in NEW.items() if k != "data"}, id="a new field"),
    ],
)
def test_preserved_paths_keep_old_values(paths, expected):
    before = orjson.dumps([OLD, NEW])
    assert preserve_fields(NEW, OLD, paths) == expected
    assert orjson.dumps([OLD, NEW]) == before


def test_empty_parents_are_omitted():
    assert preserve_fields({"spec": {"a": 1}}, {}, [("spec", "a")]) == {}


POD = {
    "metadata": {"name": "p", "labels": {"a": "1"}, "managedFields": [1]},
    "spec": {"containers": [{"name": "a", "image": "x", "resources": {}}, {"name": "b", "image": "y"}]},
}


def pod_with_changes(*containers):
    metadata = {"name": "p", "labels": {"b": "2"}, "managedFields": [2]}
    return {"metadata": metadata, "spec": {"containers": [*containers], "nodeName": "n"}}


@pytest.mark.parametrize(
    ("containers", "path", "expected"),
    [
        pytest.param(
            [{"name": "a", "image": "z", "resources": {"limits": {}}}, {"name": "b", "resources": {}}],
            ("spec", "containers", "*", "resources"),
            [
                {"name": "a", "image": "x", "resources": {"limits": {}}},
                {"name": "b", "image": "y", "resources": {}},
            ],
            id="a field of each element",
        ),
        pytest.param(
            [{"name": "b", "image": "z"}, {"name": "a"}],
            ("spec", "containers", "*", "resources"),
            [{"name": "b", "image": "z"}, {"name": "a"}],
            id="other elements are for validation to refuse",
        ),
        pytest.param([{"name": "c"}], ("spec", "containers"), [{"name": "c"}], id="a whole list"),
        pytest.param([{"name": "c"}], ("spec", "none"), POD["spec"]["containers"], id="empty"),
    ],
)
def test_apply_fields_changes_selected_paths_only(containers, path, expected):
    before = orjson.dumps([POD, new := pod_with_changes(*containers)])
    assert apply_fields(new, POD, [path]) == {
        "metadata": POD["metadata"] | {"managedFields": [2]},
        "spec": {"containers": expected},
    }
    assert orjson.dumps([POD, new]) == before


def test_change_is_detected_at_its_path_only():
    assert is_changed(NEW, OLD, [("spec",)])
    assert not is_changed(NEW, OLD, [("other",), ("spec", "none")])
