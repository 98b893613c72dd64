"""The disturbances of scenarios for workloads: for each kind some of them, or all, and the deaths of its manager."""

import os
from functools import partial

import pytest

from tests.support.controllers.disturbances import (
    ConflictingWrites,
    CutWatches,
    DelayEvents,
    KillProcess,
    LoseRequests,
    LoseResponses,
    RefuseWrites,
)
from tests.support.controllers.disturbed_scenarios import run_scenario

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


def cases(kinds):
    for row, kind in enumerate(kinds):
        late = {f"late {plural}": partial(_make_late, plural) for plural in kind.watched}
        for column, (name, disturbance_of) in enumerate((DISTURBANCES | late).items()):
            if EVERYTHING or (row + column) % 2 == 0:
                yield pytest.param(kind, disturbance_of, id=f"{kind.__name__}-{name}")


def _make_late(plural, _, clock):
    return DelayEvents(plural, 0.2, clock)


async def kill_at_writes(kind):
    """Run a scenario for each number of writes after which its manager is killed."""
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
