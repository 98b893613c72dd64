"""Each scenario of OpenKruise's workloads ends in the same state when the manager's requests and watches are disturbed.

The end is that of the undisturbed scenario, nothing was created or deleted more often, and then nothing is written any more.
"""

import pytest

from tests.packs.kruise.support.kruise_scenarios import KRUISE_SCENARIOS
from tests.packs.kruise.support.united_scenarios import KRUISE
from tests.support.controllers.cluster_disturbances import cases, check_end
from tests.support.controllers.disturbances import DelayEvents

LATE = {"late clonesets": lambda clock, _: DelayEvents("clonesets", 0.7, clock)}


@pytest.mark.parametrize(("scenario", "disturbance_of"), [*cases(KRUISE_SCENARIOS, every=12, more=LATE)])
async def test_disturbed_cluster_reaches_same_state(scenario, disturbance_of):
    await check_end(scenario, disturbance_of, KRUISE)
