"""The replicas of a UnitedDeployment's subset: a number, or a percentage of the total."""

import pytest

from mockube.packs.kruise.replicas import SubsetReplicasError, parse_subset_replicas


@pytest.mark.parametrize(
    ("total", "value", "expected"),
    [
        pytest.param(3, 2, 2, id="a number"),
        pytest.param(3, "25%", 1, id="25% of 3 is rounded up"),
        pytest.param(1, "25%", 0, id="25% of 1 is rounded down"),
        pytest.param(5, "50%", 3, id="half is rounded up"),
        pytest.param(-1, 4, 4, id="number without total replicas"),
    ],
)
def test_subset_replicas_are_number_or_percentage(total, value, expected):
    assert parse_subset_replicas(total, value) == expected


@pytest.mark.parametrize(
    ("total", "value", "problem"),
    [
        pytest.param(3, -1, "subset replicas (-1) should not be less than 0", id="negative"),
        pytest.param(
            -1, "10%",
            "subsetReplicas (10%) should not be string when unitedDeployment replicas is empty", id="percentage without total replicas",
        ),
        pytest.param(
            3, "10", "subset replicas (10) only support integer value or percentage value with a suffix '%'", id="a text",
        ),
        pytest.param(3, "101%", "subset replicas (101%) should be in range [0, 100]", id="more than all"),
        pytest.param(
            3, "x%",
            'subset replicas (x%) should be correct percentage integer: strconv.Atoi: parsing "x": invalid syntax', id="no number",
        ),
    ],
)  # fmt: skip
def test_invalid_subset_replicas_are_refused(total, value, problem):
    with pytest.raises(SubsetReplicasError) as raised:
        parse_subset_replicas(total, value)
    assert str(raised.value) == problem
