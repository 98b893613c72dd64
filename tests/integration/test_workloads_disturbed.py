"""Workloads end in the same state if the manager loses responses and watches, has conflicts, or is killed.

No pod and no workload is made that the undisturbed scenario would not have made.
"""

import os
from functools import partial

import pytest

from tests.support.controllers.disturbances import (
    ConflictingWrites,
    CutWatches,
    DelayEvents,
    Disturbance,
    KillProcess,
    LoseRequests,
    LoseResponses,
    RefuseWrites,
)
from tests.support.controllers.disturbed_scenarios import run_scenario
from tests.support.controllers.disturbed_workloads import KINDS

EVERYTHING = bool(os.environ.get("MOCKUBE_EVERY_DISTURBANCE"))
"""Otherwise every second disturbance of each kind runs, and only some kills."""
DISTURBANCES = {
    "409": lambda *_: RefuseWrites(3, 409, "Conflict"),
    "500": lambda *_: RefuseWrites(4, 500, "InternalError"),
    "conflicts": lambda server, *_: ConflictingWrites(2, server, maximum=15),
    "rare conflicts": lambda server, *_: ConflictingWrites(3, server, maximum=15),
    "lost requests": lambda *_: LoseRequests(2),
    "rare lost requests": lambda *_: LoseRequests(7),
    "lost responses": lambda *_: LoseResponses(2),
    "rare lost responses": lambda *_: LoseResponses(3),
    "cut watches": lambda *_: CutWatches(1),
    "rare cut watches": lambda *_: CutWatches(4),
    "expired watches": lambda *_: CutWatches(3, forgets=True),
}
EVERY = 1 if EVERYTHING else 13
"""Numbers of writes after which a manager is killed."""


def cases():
    for row, kind in enumerate(KINDS):
        late = {f"late {plural}": partial(make_late, plural) for plural in kind.watched}
        for column, (name, disturbance_of) in enumerate((DISTURBANCES | late).items()):
            if EVERYTHING or (row + column) % 2 == 0:
                yield pytest.param(kind, disturbance_of, id=f"{kind.__name__}-{name}")


def make_late(plural, _, clock):
    return DelayEvents(plural, 0.2, clock)


@pytest.mark.parametrize("kind", KINDS)
async def test_undisturbed_workload_reaches_expected_state(kind):
    await run_scenario(kind, lambda *_: Disturbance())


@pytest.mark.parametrize(("kind", "disturbance_of"), [*cases()])
async def test_disturbed_workload_reaches_same_state(kind, disturbance_of):
    await run_scenario(kind, disturbance_of)


@pytest.mark.parametrize("kind", KINDS)
async def test_restarted_manager_continues(kind):
    after = 1
    while await _is_killed(kind, after):
        after += EVERY
    assert after > EVERY


async def _is_killed(kind, after):
    """After this many writes, unless the scenario has fewer."""
    try:
        return await run_scenario(kind, lambda *_: KillProcess(after))
    except AssertionError as error:
        error.add_note(f"killed after {after} writes")
        raise
