"""What a write may not touch stays, and neither tree is changed."""

import orjson
import pytest

from apiserver.rest.take import keep_paths, without_paths

OLD = {"spec": {"a": 1, "b": {"c": 2}}, "status": {"ready": True}}
NEW = {"spec": {"a": 9, "d": 3}, "status": {"ready": False}, "data": 5}


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        pytest.param((), NEW, id="nothing"),
        pytest.param((("status",),), NEW | {"status": OLD["status"]}, id="a field"),
        pytest.param((("spec", "a"),), NEW | {"spec": {"a": 1, "d": 3}}, id="below a field"),
        pytest.param(
            (("spec", "b", "c"),), NEW | {"spec": {"a": 9, "d": 3, "b": {"c": 2}}}, id="what was dropped"
        ),
        pytest.param((("spec", "d"),), NEW | {"spec": {"a": 9}}, id="what was not there"),
        pytest.param((("data",),), {k: v for k, v in NEW.items() if k != "data"}, id="a new field"),
    ],
)
def test_paths_stay_as_they_were(paths, expected):
    before = orjson.dumps([OLD, NEW])
    assert keep_paths(NEW, OLD, paths) == expected
    assert orjson.dumps([OLD, NEW]) == before


def test_what_is_left_empty_is_left_out():
    assert without_paths({"spec": {"a": 1}}, [("spec", "a")]) == {}
