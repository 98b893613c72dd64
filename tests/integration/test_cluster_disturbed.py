"""Everything that the manager runs, disturbed in each way that a cluster may be: what comes of a story is the same.

The end is that of the undisturbed story, nothing was created or deleted more often, and then nothing is written any more.
"""

import os
from dataclasses import dataclass

import pytest

from tests.support.controllers.cluster_stories import STORIES
from tests.support.controllers.disturbances import Cut, Disturbance, Dumb, Killed, Late, Lost, Refused, Robbed
from tests.support.controllers.kruise_stories import KRUISE_STORIES
from tests.support.controllers.united_stories import KRUISE
from tests.support.controllers.whole_cluster import cluster_of

EVERYTHING = bool(os.environ.get("MOCKUBE_EVERY_DISTURBANCE"))
"""Otherwise every eighth disturbance of each story, or every twelfth, and only some deaths."""
DEATHS = range(1, 261) if EVERYTHING else (2, 9, 23, 41, 64, 97)
"""After how many writes a manager is killed."""
DISTURBANCES = {
    "409": lambda *_: Refused(3, 409, "Conflict"),
    "500": lambda *_: Refused(4, 500, "InternalError"),
    "503": lambda *_: Refused(5, 503, "ServiceUnavailable"),
    "429": lambda *_: Refused(2, 429, "TooManyRequests", retry_after=1),
    "dumb": lambda *_: Dumb(3, most=60),
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
    "robbed": lambda _, server: Robbed(40, server, most=3),
    "late nodes": lambda clock, _: Late("nodes", 0.7, clock),
} | {f"killed after {after}": lambda *_, after=after: Killed(after) for after in DEATHS}


@dataclass
class End:
    state: dict
    came: dict
    went: dict


_ends = {}
"""Of the undisturbed stories, told once each."""


async def tell(story, disturbance_of):
    settings = KRUISE if story in KRUISE_STORIES else None
    async with cluster_of(disturbance_of, settings=settings) as cluster:
        await story(cluster)
        written = await cluster.rest()
        assert not written, "it does not rest"
        census = cluster.census
        return End(census.state(), dict(census.came), dict(census.went))


async def undisturbed(story):
    if story not in _ends:
        _ends[story] = await tell(story, lambda *_: Disturbance())
    return _ends[story]


def cases():
    for row, story in enumerate((*STORIES, *KRUISE_STORIES)):
        every = 1 if EVERYTHING else 12 if story in KRUISE_STORIES else 8
        for column, disturbance in enumerate(DISTURBANCES):
            if (row + column) % every == 0:
                yield pytest.param(story, disturbance, id=f"{story.__name__}-{disturbance}")


@pytest.mark.parametrize(("story", "disturbance"), [*cases()])
async def test_disturbed_cluster_reaches_same_state(story, disturbance):
    expected = await undisturbed(story)
    end = await tell(story, DISTURBANCES[disturbance])
    assert end.came == expected.came
    assert end.went == expected.went
    assert end.state == expected.state
