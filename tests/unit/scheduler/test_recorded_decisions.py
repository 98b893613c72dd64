"""Decisions of real kube-schedulers on random clusters, recorded by judges/differential/scheduling.py."""

from pathlib import Path

import orjson
import pytest

from tests.support.controllers.scheduling_decisions import differences, without_changes

CASES = [
    pytest.param(case, id=f"{path.stem} {number}")
    for path in sorted(Path(__file__).parent.glob("recorded_decisions_*.jsonl"))
    for number, case in enumerate(without_changes(map(orjson.loads, path.read_bytes().splitlines())))
]


@pytest.mark.parametrize("case", CASES)
def test_decision_is_that_of_real_scheduler(case):
    for what, ours, real in differences(case):
        assert ours == real, what
