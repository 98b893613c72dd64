"""What each controller does in random situations is what it did before: a change of its code shows the decisions that it changes.

`tests/support/controllers/random_walks.py` describes the situations, and how to record those of a change that is meant.
"""

import orjson
import pytest

from tests.support.controllers.random_walks import RECORD, WALKED, digests, walks

RECORDED = orjson.loads(RECORD.read_bytes())


@pytest.mark.parametrize("controller", WALKED, ids=lambda controller: controller.name)
def test_controller_decides_as_recorded(controller):
    for number, (lines, recorded) in enumerate(
        zip(walks(controller), RECORDED[controller.name], strict=True)
    ):
        steps = zip(lines, digests(lines), recorded.split(), strict=True)
        differing = [line for line, digest, expected in steps if digest != expected]
        assert not differing, f"walk {number}: {differing[0]}"
