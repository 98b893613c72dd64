"""OpenKruise's workloads end in the same state if the manager loses responses and watches, has conflicts, or is killed.

No pod and no workload is made that the undisturbed scenario would not have made.
"""

import pytest

from tests.packs.kruise.support.disturbed_workloads import KINDS
from tests.support.controllers.disturbances import Disturbance
from tests.support.controllers.disturbed_scenarios import run_scenario
from tests.support.controllers.workload_disturbances import cases, kill_at_writes


@pytest.mark.parametrize("kind", KINDS)
async def test_undisturbed_workload_reaches_expected_state(kind):
    await run_scenario(kind, lambda *_: Disturbance())


@pytest.mark.parametrize(("kind", "disturbance_of"), [*cases(KINDS)])
async def test_disturbed_workload_reaches_same_state(kind, disturbance_of):
    await run_scenario(kind, disturbance_of)


@pytest.mark.parametrize("kind", KINDS)
async def test_restarted_manager_continues(kind):
    await kill_at_writes(kind)
