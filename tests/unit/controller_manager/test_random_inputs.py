"""The results of pure functions for random inputs are what they were before: a change of the code shows the decisions that it changes.

`python -m tests.support.controllers.random_inputs` records those of a change that is meant.
"""

import orjson
import pytest

from tests.support.controllers.random_inputs import FUNCTIONS, RECORD, digests, results

RECORDED = orjson.loads(RECORD.read_bytes())


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_function_decides_as_recorded(function):
    lines = [*results(function)]
    calls = zip(lines, digests(lines), RECORDED[function.__name__].split(), strict=True)
    assert [line for line, digest, recorded in calls if digest != recorded] == []
