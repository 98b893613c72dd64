"""Advanced StatefulSet: the ordinals of pods, with reserved ordinals."""

import pytest

from mockube.packs.kruise.controllers.advancedstatefulset.strategy import ordinals


@pytest.mark.parametrize(
    ("start", "replicas", "reserved", "expected"),
    [
        pytest.param(0, 3, [], [0, 1, 2], id="none-reserved"),
        pytest.param(0, 4, [1, 3], [0, 2, 4, 5], id="numbers"),
        pytest.param(2, 4, [1, 3], [2, 4, 5, 6], id="numbers-and-a-start"),
        pytest.param(4, 4, [1, 3], [4, 5, 6, 7], id="reserved-before-the-start"),
        pytest.param(0, 3, [1], [0, 2, 3], id="one-migrates"),
        pytest.param(0, 3, ["5-9", 1], [0, 2, 3], id="range-beyond"),
        pytest.param(0, 6, ["3-5", 1], [0, 2, 6, 7, 8, 9], id="range-within"),
        pytest.param(0, 2, ["0-3", "2-5", 4], [6, 7], id="overlapping"),
        pytest.param(0, 2, ["1-1"], [0, 2], id="range-of-one"),
        pytest.param(0, 1, ["0-2000000000"], [2000000001], id="huge"),
        pytest.param(0, 3, [f"0-{2**31 - 2}"], [2**31 - 1], id="no-ordinals-left"),
        pytest.param(0, 2, [-1], [0, 1], id="negative"),
        pytest.param(0, 0, [0], [], id="no-replicas"),
    ],
)
def test_reserved_ordinals_are_skipped(start, replicas, reserved, expected):
    assert [*ordinals(start, replicas, reserved)] == expected


@pytest.mark.parametrize("text", ["5", "5-", "-5", "9-5", "1-2-3", "a-b", ""])
def test_unparsable_reserved_ordinals_are_ignored(text):
    assert [*ordinals(0, 2, [0, text])] == [0, 1]


def test_ordinals_of_huge_set_are_not_listed():
    maximum = ordinals(1, 2**31 - 1, ["5-9", 11])
    assert len(maximum) == 2**31 - 1 - 6
    assert [ordinal in maximum for ordinal in (0, 1, 4, 5, 9, 10, 11, 12, 2**31 - 1, 2**31)] == [
        False, True, True, False, False, True, False, True, True, False,
    ]  # fmt: skip
    assert "1" not in maximum
