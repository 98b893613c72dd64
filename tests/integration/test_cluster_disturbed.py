"""Each scenario ends in the same state when the manager's requests and watches are disturbed.

The end is that of the undisturbed scenario, nothing was created or deleted more often, and then nothing is written any more.
"""

import os
from dataclasses import dataclass

import pytest

from tests.support.controllers.cluster_scenarios import SCENARIOS
from tests.support.controllers.disturbances import Cut, Disturbance, Dumb, Killed, Late, Lost, Refused, Robbed
from tests.support.controllers.kruise_scenarios import KRUISE_SCENARIOS
from tests.support.controllers.united_scenarios import KRUISE
from tests.support.controllers.whole_cluster import cluster_of

EVERYTHING = bool(os.environ.get("MOCKUBE_EVERY_DISTURBANCE"))
"""Otherwise every eighth or every twelfth disturbance of each scenario runs, and only some kills."""
DEATHS = range(1, 261) if EVERYTHING else (2, 9, 23, 41, 64, 97)
"""Numbers of writes after which a manager is killed."""
DISTURBANCES = {
    "409": lambda *_: Refused(3, 409, "Conflict"),
    "500": lambda *_: Refused(4, 500, "InternalError"),
    "503": lambda *_: Refused(5, 503, "ServiceUnavailable"),
    "429": lambda *_: Refused(2, 429, "TooManyRequests", retry_after=1),
    "dumb": lambda *_: Dumb(3, maximum=60),
    "lost": lambda *_: Lost(3),
    "lost seldom": lambda *_: Lost(7),
    "cut": lambda *_: Cut(4),
    "forgotten": lambda *_: Cut(7, forgets=True),
    "late pods": lambda clock, _: Late("pods", 0.7, clock),
    "late replicasets": lambda clock, _: Late("replicasets", 0.7, clock),
    "late deployments": lambda clock, _: Late("deployments", 0.7, clock),
    "late statefulsets": lambda clock, _: Late("statefulsets", 0.7, clock),
    "late clonesets": lambda clock, _: Late("clonesets", 0.7, clock),
    "late claims": lambda clock, _: Late("persistentvolumeclaims", 0.7, clock),
    "robbed": lambda _, server: Robbed(40, server, maximum=3),
    "late nodes": lambda clock, _: Late("nodes", 0.7, clock),
} | {f"killed after {after}": lambda *_, after=after: Killed(after) for after in DEATHS}


@dataclass
class End:
    state: dict
    came: dict
    went: dict


_ends = {}
"""Results of the undisturbed scenarios, computed once each."""


async def run_scenario(scenario, disturbance_of):
    settings = KRUISE if scenario in KRUISE_SCENARIOS else None
    async with cluster_of(disturbance_of, settings=settings) as cluster:
        await scenario(cluster)
        written = await cluster.finish_and_wait()
        assert not written, "did not become idle"
        census = cluster.census
        return End(census.state(), dict(census.came), dict(census.went))


async def undisturbed_result(scenario):
    if scenario not in _ends:
        _ends[scenario] = await run_scenario(scenario, lambda *_: Disturbance())
    return _ends[scenario]


def cases():
    for row, scenario in enumerate((*SCENARIOS, *KRUISE_SCENARIOS)):
        every = 1 if EVERYTHING else 12 if scenario in KRUISE_SCENARIOS else 8
        for column, disturbance in enumerate(DISTURBANCES):
            if (row + column) % every == 0:
                yield pytest.param(scenario, disturbance, id=f"{scenario.__name__}-{disturbance}")


@pytest.mark.parametrize(("scenario", "disturbance"), [*cases()])
async def test_disturbed_cluster_reaches_same_state(scenario, disturbance):
    expected = await undisturbed_result(scenario)
    end = await run_scenario(scenario, DISTURBANCES[disturbance])
    assert end.came == expected.came
    assert end.went == expected.went
    assert end.state == expected.state
