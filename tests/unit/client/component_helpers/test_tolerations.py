"""Which tolerations match a taint."""

import pytest

from mockube.client.component_helpers.tolerations import find_untolerated_taint, tolerates

TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "is_tolerated"),
    [
        pytest.param({"key": "k", "value": "v", "effect": "NoSchedule"}, True, id="all fields"),
        pytest.param({"key": "k", "value": "v"}, True, id="any effect"),
        pytest.param({"key": "k", "value": "v", "effect": ""}, True, id="an empty effect"),
        pytest.param({"key": "k", "value": "v", "effect": "NoExecute"}, False, id="another effect"),
        pytest.param({"key": "x", "value": "v"}, False, id="another key"),
        pytest.param({"key": "k", "value": "x"}, False, id="another value"),
        pytest.param({"key": "k"}, False, id="no value"),
        pytest.param({"key": "k", "operator": "", "value": "v"}, True, id="an empty operator"),
        pytest.param({"key": "k", "operator": "Exists"}, True, id="any value"),
        pytest.param({"key": "x", "operator": "Exists"}, False, id="any value of another key"),
        pytest.param({"operator": "Exists"}, True, id="any key"),
        pytest.param({"operator": "Exists", "effect": "NoExecute"}, False, id="any key with another effect"),
        pytest.param({"operator": "Equal", "value": "v"}, False, id="a value of any key"),
        pytest.param({"key": "k", "operator": "Unknown", "value": "v"}, False, id="an unknown operator"),
    ],
)
def test_toleration_matches_taint_with_its_fields(toleration, is_tolerated):
    assert tolerates({"tolerations": [toleration]}, TAINT) is is_tolerated


def test_toleration_without_value_matches_taint_without_value():
    assert tolerates({"tolerations": [{"key": "k"}]}, {"key": "k", "effect": "NoSchedule"})


@pytest.mark.parametrize(
    ("value", "threshold", "is_above", "is_below"),
    [
        ("5", "4", True, False),
        ("4", "4", False, False),
        ("3", "4", False, True),
        ("-1", "0", False, True),
        ("many", "4", False, False),
        ("5", "few", False, False),
        ("", "4", False, False),
    ],
)
def test_toleration_compares_value_of_taint_as_number(value, threshold, is_above, is_below):
    """`Gt` tolerates taints above the value of the toleration, `Lt` those below."""
    for operator, expected in (("Gt", is_above), ("Lt", is_below)):
        toleration = {"key": "k", "operator": operator, "value": threshold}
        assert tolerates({"tolerations": [toleration]}, TAINT | {"value": value}) is expected


def test_first_taint_that_is_not_tolerated_is_found():
    taints = [
        TAINT | {"effect": "PreferNoSchedule"},
        TAINT,
        TAINT | {"key": "other"},
        TAINT | {"key": "last"},
    ]
    spec = {"tolerations": [{"key": "k", "operator": "Exists"}]}
    assert find_untolerated_taint(spec, taints, ("NoSchedule",)) == taints[2]
    assert find_untolerated_taint({}, taints, ("NoSchedule",)) == taints[1]
    assert find_untolerated_taint(spec, taints[:2], ("NoSchedule",)) is None
    assert find_untolerated_taint({}, taints, ("NoExecute",)) is None
