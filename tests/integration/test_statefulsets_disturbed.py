"""A StatefulSet whose manager loses answers, or is killed: what comes of it is the same, and nothing is made twice."""

import pytest

from apimachinery.clock import SteppedClock
from controller_manager.controllers.serviceaccount.controller import SERVICE_ACCOUNT
from controller_manager.controllers.statefulset.controller import STATEFUL_SET
from tests.support.apiserver import running
from tests.support.disturbed import Killed, Lost, play
from tests.support.disturbed_sets import NAMESPACE, REVISIONS, Story
from tests.support.running_manager import running_manager
from tests.support.statefulsets import claim_template, statefulset

SETS = "/apis/apps/v1/namespaces/default/statefulsets"
CONTROLLERS = [SERVICE_ACCOUNT, STATEFUL_SET]
WRITES = 30
"""More than the story has."""


async def create(story):
    await story.create(statefulset(replicas=2, volumeClaimTemplates=[claim_template()]))


async def roll(story):
    await story.patch({"template": {"spec": {"containers": [{"name": "c", "image": "a:2"}]}}})


async def shrink(story):
    await story.patch({"replicas": 1})


STEPS = (create, roll, shrink)


async def check_end(story):
    assert await story.count(f"{NAMESPACE}/pods") == 1
    assert await story.count(f"{NAMESPACE}/persistentvolumeclaims") == 2
    assert await story.count(REVISIONS) == 2
    assert len(story.pods) == 4, "two pods were made, and made again"


@pytest.mark.parametrize("way", ["on_way_there", "on_way_back"])
@pytest.mark.parametrize("every", [2, 3, 7])
async def test_what_is_lost_changes_nothing(way, every):
    clock = SteppedClock()
    async with (
        running(clock=clock) as server,
        running_manager(server, clock, controllers=CONTROLLERS) as manager,
    ):
        setattr(manager.transport, way, Lost(every))
        story = Story(server, SETS, STEPS)
        await play(story, manager, clock)
        await check_end(story)


@pytest.mark.parametrize("after", range(1, WRITES, 2))
async def test_a_manager_that_is_killed_is_followed_by_one_that_goes_on(after):
    clock = SteppedClock()
    async with running(clock=clock) as server:
        story = Story(server, SETS, STEPS)
        async with running_manager(server, clock, controllers=CONTROLLERS) as first:
            first.transport.on_way_back = death = Killed(after)
            await play(story, first, clock, until=death.killed.is_set)
        async with running_manager(server, clock, controllers=CONTROLLERS) as second:
            await play(story, second, clock)
            await check_end(story)
