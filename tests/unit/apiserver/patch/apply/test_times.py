import pytest

from mockube.apiserver.patch.apply.managers import with_old_times


def obj(*moments, **more):
    entries = [{"manager": f"m{number}", "time": time} for number, time in enumerate(moments)]
    return {"metadata": {"name": "x", "managedFields": entries}, **more}


OLD = obj("1", "2")


@pytest.mark.parametrize(
    ("new", "is_kept"),
    [
        pytest.param(obj("1", "3"), True, id="another time"),
        pytest.param(obj("3", None), True, id="changed and missing time"),
        pytest.param(obj("1", "2"), False, id="the same times"),
        pytest.param(obj("1", "3", spec={}), False, id="another object"),
        pytest.param(obj("1"), False, id="a manager less"),
        pytest.param({"metadata": {"name": "x"}}, False, id="no managers"),
    ],
)
def test_time_of_unchanged_entry_is_kept(new, is_kept):
    assert with_old_times(OLD, new) == (OLD if is_kept else new)


def test_changed_managers_get_new_times():
    new = {
        "metadata": {
            "name": "x",
            "managedFields": [{"manager": "x", "time": "3"}, {"manager": "m1", "time": "2"}],
        }
    }
    assert with_old_times(OLD, new) is new


def test_objects_without_managers_keep_no_times():
    old, new = {"metadata": {}}, {"metadata": {}, "spec": 1}
    assert with_old_times(old, new) is new
