"""An advanced StatefulSet whose manager loses answers, meets conflicts, or is killed: no pod is made or changed twice."""

import pytest

from apimachinery.clock import SteppedClock
from apimachinery.status import Conflict
from apiserver.settings import Settings
from controller_manager.controllers.advancedstatefulset.controller import ADVANCED_STATEFUL_SET
from controller_manager.controllers.serviceaccount.controller import SERVICE_ACCOUNT
from tests.support.advancedsets import in_place, template
from tests.support.apiserver import running
from tests.support.disturbed import Killed, Lost, play
from tests.support.disturbed_sets import NAMESPACE, REVISIONS, Story
from tests.support.running_manager import running_manager
from tests.support.statefulsets import claim_template, statefulset

SETS = "/apis/apps.kruise.io/v1beta1/namespaces/default/statefulsets"
CONTROLLERS = [SERVICE_ACCOUNT, ADVANCED_STATEFUL_SET]
KRUISE = Settings(packs=("kruise",))
WRITES = 46
"""More than the story has."""


async def create(story):
    body = statefulset(
        replicas=3,
        podManagementPolicy="Parallel",
        template=template(),
        updateStrategy=in_place(maxUnavailable=2),
        volumeClaimTemplates=[claim_template()],
    )
    await story.create(body)


async def change(story):
    await story.patch({"template": template("a:2")})


async def move(story):
    await story.patch({"reserveOrdinals": ["1-2"], "replicas": 2})


async def shrink(story):
    await story.patch({"replicas": 1})


STEPS = (create, change, move, shrink)


async def check_end(story):
    (pod,) = (await story.server.get(f"{NAMESPACE}/pods")).body["items"]
    assert (pod["metadata"]["name"], pod["spec"]["containers"][0]["image"]) == ("web-0", "a:2")
    assert await story.count(f"{NAMESPACE}/persistentvolumeclaims") == 4
    assert await story.count(REVISIONS) == 2
    assert len(story.pods) == 4, "three were made and changed where they ran; one came for those that went"


class Conflicting:
    """Somebody else was faster with every so-manyth write."""

    def __init__(self, every):
        self._left = self._every = every

    async def __call__(self, _):
        self._left -= 1
        if self._left == 0:
            self._left = self._every
            raise Conflict("the object has been modified")


@pytest.mark.parametrize(
    ("way", "disturbance"),
    [
        pytest.param("on_way_there", Lost, id="lost-on-the-way-there"),
        pytest.param("on_way_back", Lost, id="lost-on-the-way-back"),
        pytest.param("on_way_there", Conflicting, id="conflict"),
    ],
)
@pytest.mark.parametrize("every", [2, 3, 7])
async def test_what_is_disturbed_comes_to_the_same(way, disturbance, every):
    clock = SteppedClock()
    async with (
        running(clock=clock, settings=KRUISE) as server,
        running_manager(server, clock, controllers=CONTROLLERS) as manager,
    ):
        setattr(manager.transport, way, disturbance(every))
        story = Story(server, SETS, STEPS)
        await play(story, manager, clock)
        await check_end(story)


@pytest.mark.parametrize("after", range(1, WRITES, 3))
async def test_a_manager_that_is_killed_is_followed_by_one_that_goes_on(after):
    clock = SteppedClock()
    async with running(clock=clock, settings=KRUISE) as server:
        story = Story(server, SETS, STEPS)
        async with running_manager(server, clock, controllers=CONTROLLERS) as first:
            first.transport.on_way_back = death = Killed(after)
            await play(story, first, clock, until=death.killed.is_set)
        async with running_manager(server, clock, controllers=CONTROLLERS) as second:
            await play(story, second, clock)
            await check_end(story)
