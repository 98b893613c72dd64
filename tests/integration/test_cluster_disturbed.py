"""Each scenario ends in the same state when the manager's requests and watches are disturbed.

The end is that of the undisturbed scenario, nothing was created or deleted more often, and then nothing is written any more.
"""

import pytest

from tests.support.controllers.cluster_disturbances import cases, check_end
from tests.support.controllers.cluster_scenarios import SCENARIOS


@pytest.mark.parametrize(("scenario", "disturbance_of"), [*cases(SCENARIOS, every=8)])
async def test_disturbed_cluster_reaches_same_state(scenario, disturbance_of):
    await check_end(scenario, disturbance_of)
