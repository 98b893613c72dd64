"""The disturbances of scenarios in a whole cluster, and the comparison with the undisturbed end."""

import os
from dataclasses import dataclass

import pytest

from tests.support.controllers.disturbances import (
    CutWatches,
    DelayEvents,
    Disturbance,
    FailReads,
    KillProcess,
    LoseResponses,
    RefuseWrites,
    StealLease,
)
from tests.support.controllers.whole_cluster import cluster_of

EVERYTHING = bool(os.environ.get("MOCKUBE_EVERY_DISTURBANCE"))
"""Otherwise every eighth or every twelfth disturbance of each scenario runs, and only some kills."""
DEATHS = range(1, 261) if EVERYTHING else (2, 9, 23, 41, 64, 97)
"""Numbers of writes after which a manager is killed."""
DISTURBANCES = {
    "409": lambda *_: RefuseWrites(3, 409, "Conflict"),
    "500": lambda *_: RefuseWrites(4, 500, "InternalError"),
    "503": lambda *_: RefuseWrites(5, 503, "ServiceUnavailable"),
    "429": lambda *_: RefuseWrites(2, 429, "TooManyRequests", retry_after=1),
    "failed reads": lambda *_: FailReads(3, maximum=60),
    "lost responses": lambda *_: LoseResponses(3),
    "rare lost responses": lambda *_: LoseResponses(7),
    "cut watches": lambda *_: CutWatches(4),
    "expired watches": lambda *_: CutWatches(7, forgets=True),
    "late pods": lambda clock, _: DelayEvents("pods", 0.7, clock),
    "late replicasets": lambda clock, _: DelayEvents("replicasets", 0.7, clock),
    "late deployments": lambda clock, _: DelayEvents("deployments", 0.7, clock),
    "late statefulsets": lambda clock, _: DelayEvents("statefulsets", 0.7, clock),
    "late claims": lambda clock, _: DelayEvents("persistentvolumeclaims", 0.7, clock),
    "stolen lease": lambda _, server: StealLease(40, server, maximum=3),
    "late nodes": lambda clock, _: DelayEvents("nodes", 0.7, clock),
} | {f"killed after {after}": lambda *_, after=after: KillProcess(after) for after in DEATHS}


@dataclass
class EndState:
    state: dict
    came: dict
    went: dict


_ends = {}
"""Results of the undisturbed scenarios, computed once each."""


async def _run_scenario(scenario, disturbance_of, flags):
    async with cluster_of(disturbance_of, flags=flags) as cluster:
        await scenario(cluster)
        written = await cluster.finish_and_wait()
        assert not written, "did not become idle"
        census = cluster.census
        return EndState(census.state(), dict(census.came), dict(census.went))


async def check_end(scenario, disturbance_of, flags=()):
    """Check that a scenario ends as without the disturbance."""
    if scenario not in _ends:
        _ends[scenario] = await _run_scenario(scenario, lambda *_: Disturbance(), flags)
    expected = _ends[scenario]
    end = await _run_scenario(scenario, disturbance_of, flags)
    assert end.came == expected.came
    assert end.went == expected.went
    assert end.state == expected.state


def cases(scenarios, *, every, more=()):
    """Yield one of so many disturbances of each scenario; `more` are those of the scenarios' own kinds."""
    step = 1 if EVERYTHING else every
    for row, scenario in enumerate(scenarios):
        for column, (name, disturbance_of) in enumerate({**dict(more), **DISTURBANCES}.items()):
            if (row + column) % step == 0:
                yield pytest.param(scenario, disturbance_of, id=f"{scenario.__name__}-{name}")
