"""Advanced StatefulSets through a real server, with pods that a simulated kubelet runs."""

import pytest

from apiserver.settings import Settings
from controller_manager.controllers.advancedstatefulset.controller import ADVANCED_STATEFUL_SET
from tests.support.advancedsets import in_place, template
from tests.support.set_stories import NAMESPACE, REVISIONS, telling
from tests.support.statefulsets import statefulset

SETS = "/apis/apps.kruise.io/v1beta1/namespaces/default/statefulsets"
KRUISE = Settings(packs=("kruise",))


@pytest.fixture
async def story():
    async with telling(ADVANCED_STATEFUL_SET, SETS, statefulset, settings=KRUISE) as story:
        yield story


def images(pods):
    return {name: pod["spec"]["containers"][0]["image"] for name, pod in pods.items()}


async def test_a_life(story):
    await story.create(replicas=3)
    await story.until(story.rolled_out)
    assert sorted(await story.pods()) == ["web-0", "web-1", "web-2"]
    assert story.writes(f"{SETS}/web/status") <= 7
    await story.patch({"replicas": 2, "reserveOrdinals": [0]})
    await story.until(story.rolled_out)
    assert sorted(await story.pods()) == ["web-1", "web-2"]
    await story.server.delete(f"{SETS}/web", {"propagationPolicy": "Background"})

    async def is_gone():
        return not await story.names(f"{NAMESPACE}/pods") + await story.names(REVISIONS)

    await story.until(is_gone)


async def test_pods_are_updated_where_they_run(story):
    strategy = in_place(maxUnavailable="50%")
    await story.create(
        replicas=4, podManagementPolicy="Parallel", template=template(), updateStrategy=strategy
    )
    await story.until(story.rolled_out)
    before = await story.pods()
    await story.patch({"template": template("a:2")})
    await story.until(story.rolled_out)
    after = await story.pods()
    assert images(after) == dict.fromkeys(before, "a:2")
    for name, pod in after.items():
        assert pod["metadata"]["uid"] == before[name]["metadata"]["uid"]
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 1
    revision = (await story.status())["updateRevision"]
    assert f"successfully update pod web-3 in-place(revision {revision})" in await story.messages()
