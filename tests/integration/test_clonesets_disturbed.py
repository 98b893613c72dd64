"""A CloneSet whose manager loses answers, meets others' writes, or is killed: the same comes of it, and no pod too many."""

from itertools import count

import pytest

from apimachinery.clock import SteppedClock
from apimachinery.status import Conflict
from apiserver.settings import Settings
from controller_manager.controllers.cloneset.controller import CLONE_SET
from controller_manager.controllers.serviceaccount.controller import SERVICE_ACCOUNT
from tests.support.apiserver import running
from tests.support.clonesets import claim_template, cloneset, template
from tests.support.disturbed import Killed, Lost, play
from tests.support.running_manager import running_manager

NAMESPACE = "/api/v1/namespaces/default"
SETS = "/apis/apps.kruise.io/v1alpha1/namespaces/default/clonesets"
REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"
CONTROLLERS = [SERVICE_ACCOUNT, CLONE_SET]
KRUISE = Settings(packs=("kruise",))
WRITES = 92
"""As many as the story has."""

ON_A_NODE = template(nodeName="n1")


def rolled(image, **spec):
    return {"template": template(image, nodeName="n1", **spec)}


class Story:
    """Three pods with storage are updated in place, then made anew, and two are taken away; the machine is the test's."""

    def __init__(self, server):
        self.server = server
        self.pods = set()
        """The uids of all pods that there ever were."""
        self.in_place = set()
        """Of those that lived after the update in place."""
        self.steps = iter((self._create, self._roll, self._replace, self._shrink))

    async def go_on(self):
        if await self._run_pods() or not await self._is_rolled_out():
            return True
        step = next(self.steps, None)
        if step is not None:
            await step()
        return step is not None

    async def _create(self):
        spec = {"template": ON_A_NODE, "volumeClaimTemplates": [claim_template()]}
        strategy = {"type": "InPlaceIfPossible", "maxUnavailable": 1}
        answer = await self.server.post(SETS, cloneset(replicas=3, updateStrategy=strategy, **spec))
        assert answer.status == 201, answer.body

    async def _roll(self):
        await self._patch(rolled("a:2"))

    async def _replace(self):
        self.in_place = {*self.pods}
        await self._patch(rolled("a:2", terminationGracePeriodSeconds=3))

    async def _shrink(self):
        await self._patch({"replicas": 1})

    async def _patch(self, spec):
        assert (await self.server.patch(f"{SETS}/web", {"spec": spec})).status == 200

    async def _run_pods(self):
        pods = (await self.server.get(f"{NAMESPACE}/pods")).body["items"]
        living = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        assert len(living) <= 3, "a pod too many"
        acted = False
        for pod in pods:
            self.pods.add(pod["metadata"]["uid"])
            acted |= await self._run(pod)
        return acted

    async def _run(self, pod):
        path = f"{NAMESPACE}/pods/{pod['metadata']['name']}"
        if "deletionTimestamp" in pod["metadata"]:
            await self.server.delete(path, {"gracePeriodSeconds": 0})
            return True
        wanted = _running(pod)
        if wanted == _told(pod):
            return False
        phase, image, ready = wanted
        container = {"name": "c", "image": image, "imageID": image, "ready": True, "restartCount": 0}
        status = {
            "phase": phase,
            "containerStatuses": [container],
            "conditions": [{"type": "Ready", "status": ready}],
        }
        answer = await self.server.patch(
            f"{path}/status", {"status": status}, kind="strategic-merge-patch+json"
        )
        assert answer.status == 200, answer.body
        return True

    async def _is_rolled_out(self):
        answer = await self.server.get(f"{SETS}/web")
        if answer.status == 404:
            return True
        status = answer.body.get("status") or {}
        counts = {
            status.get(field) for field in ("replicas", "availableReplicas", "updatedAvailableReplicas")
        }
        seen = status.get("observedGeneration") == answer.body["metadata"]["generation"]
        return seen and counts == {answer.body["spec"]["replicas"]}

    async def check_end(self):
        (pod,) = (await self.server.get(f"{NAMESPACE}/pods")).body["items"]
        assert pod["metadata"]["labels"]["lifecycle.apps.kruise.io/state"] == "Normal"
        claims = (await self.server.get(f"{NAMESPACE}/persistentvolumeclaims")).body["items"]
        names = [
            claim["metadata"]["name"] for claim in claims if "deletionTimestamp" not in claim["metadata"]
        ]
        assert f"data-{pod['metadata']['name']}" in names
        assert len((await self.server.get(REVISIONS)).body["items"]) == 3
        assert len(self.in_place) == 3, "three pods were made, and changed in place"
        assert len(self.pods) == 6, "and made anew once"


def _conditions(pod):
    return {it["type"]: it["status"] for it in pod["status"].get("conditions") or ()}


def _running(pod):
    """How the machine runs it: what it names, and ready once its gate is open."""
    ready = _conditions(pod).get("InPlaceUpdateReady") == "True"
    return "Running", pod["spec"]["containers"][0]["image"], str(ready)


def _told(pod):
    statuses = pod["status"].get("containerStatuses") or [{}]
    return pod["status"].get("phase"), statuses[0].get("image"), _conditions(pod).get("Ready")


class Preceded:
    """Before every so-manyth change somebody else has changed what it is about."""

    def __init__(self, every):
        self._every = every
        self._count = count(1)

    async def __call__(self, request):
        if request.method in ("PUT", "PATCH") and next(self._count) % self._every == 0:
            raise Conflict("the object has been modified; please apply your changes to the latest version")


def manager_of(server, clock):
    return running_manager(server, clock, controllers=CONTROLLERS)


@pytest.mark.parametrize("way", ["on_way_there", "on_way_back"])
@pytest.mark.parametrize("every", [3, 5, 7])
async def test_what_is_lost_changes_nothing(way, every):
    clock = SteppedClock()
    async with running(clock=clock, settings=KRUISE) as server, manager_of(server, clock) as manager:
        setattr(manager.transport, way, Lost(every))
        story = Story(server)
        await play(story, manager, clock)
        await story.check_end()


@pytest.mark.parametrize("every", [3, 5, 7])
async def test_who_comes_second_looks_again(every):
    clock = SteppedClock()
    async with running(clock=clock, settings=KRUISE) as server, manager_of(server, clock) as manager:
        manager.transport.on_way_there = Preceded(every)
        story = Story(server)
        await play(story, manager, clock)
        await story.check_end()


@pytest.mark.parametrize("after", range(1, WRITES, 6))
async def test_a_manager_that_is_killed_is_followed_by_one_that_goes_on(after):
    clock = SteppedClock()
    async with running(clock=clock, settings=KRUISE) as server:
        story = Story(server)
        async with manager_of(server, clock) as first:
            first.transport.on_way_back = death = Killed(after)
            await play(story, first, clock, until=death.killed.is_set)
        async with manager_of(server, clock) as second:
            await play(story, second, clock)
            await story.check_end()
