"""What happens to random pods is what happened before: a change of the code shows the steps that it changes.

`tests/support/controllers/random_pods.py` describes them, and how to record the effect of a change that is meant.
"""

import orjson
import pytest

from tests.support.controllers.random_inputs import digests
from tests.support.controllers.random_pods import PODS, RECORD, life

RECORDED = orjson.loads(RECORD.read_bytes())
PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_random_pod_lives_as_recorded(part):
    assert len(RECORDED) == PODS
    for number in range(part, PODS, PARTS):
        lines = life(number)
        steps = zip(lines, digests(lines), RECORDED[number].split(), strict=True)
        assert [line for line, digest, recorded in steps if digest != recorded] == [], f"pod {number}"
