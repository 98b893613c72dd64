"""How scores are scaled and rounded."""

import pytest

from mockube.scheduler.scores.score import normalize_scores, round_half_up


@pytest.mark.parametrize(
    ("raw", "scaled", "reversed_"),
    [
        ([], [], []),
        ([0, 0], [0, 0], [100, 100]),
        ([1, 1], [100, 100], [0, 0]),
        ([0, 1, 3], [0, 33, 100], [100, 67, 0]),
        ([200, 50], [100, 25], [0, 75]),
    ],
)
def test_scores_are_scaled_so_that_the_highest_is_100(raw, scaled, reversed_):
    assert normalize_scores(raw) == scaled
    assert normalize_scores(raw, less_is_better=True) == reversed_


@pytest.mark.parametrize(("value", "rounded"), [(0.0, 0), (0.49, 0), (0.5, 1), (1.5, 2), (2.5, 3)])
def test_halves_are_rounded_up(value, rounded):
    assert round_half_up(value) == rounded
