import asyncio
from datetime import UTC, datetime, timedelta

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.pod_sizes import SizeRules
from mockube.apimachinery.quota import amounts
from mockube.apimachinery.quota.pods import PodEvaluator
from mockube.apimachinery.schema import minors
from mockube.apimachinery.timestamps import format_time
from mockube.component_base.loop import yield_to_loop
from mockube.controller_manager.controllers.resourcequota.usage import UsageCounter

NOW = datetime(2030, 1, 1, tzinfo=UTC)


class CountingEvaluator(PodEvaluator):
    def __init__(self):
        super().__init__(SizeRules.of(FeatureGates(minors.NEWEST)))
        self.names = []

    def usage(self, tree, now):
        self.names.append(tree["metadata"]["name"])
        return super().usage(tree, now)


def pod(name, version="1", cpu="100m", **metadata):
    return {
        "metadata": {"name": name, "uid": name, "resourceVersion": version, **metadata},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]},
    }


async def counted(counter, objects, now=NOW):
    usage = await counter.count((), objects, now)
    return amounts.to_tree(amounts.mask(usage, ("pods", "requests.cpu")))


async def test_usage_is_computed_once_for_each_version_of_an_object():
    evaluator = CountingEvaluator()
    counter = UsageCounter(evaluator)
    assert await counted(counter, [pod("a"), pod("b"), pod("c", cpu="1")]) == {
        "pods": "3",
        "requests.cpu": "1200m",
    }
    assert evaluator.names == ["a", "b", "c"]
    objects = [pod("a"), pod("b", version="2", cpu="2"), pod("d")]
    assert await counted(counter, objects) == {"pods": "3", "requests.cpu": "2200m"}
    assert evaluator.names == ["a", "b", "c", "b", "d"]


async def test_pod_counts_until_its_grace_period_is_over():
    counter = UsageCounter(CountingEvaluator())
    ending = pod("a", deletionTimestamp=format_time(NOW), deletionGracePeriodSeconds=30)
    assert await counted(counter, [ending]) == {"pods": "1", "requests.cpu": "100m"}
    assert await counted(counter, [ending], NOW + timedelta(seconds=61)) == {}


async def test_only_objects_in_the_scopes_of_the_quota_are_counted():
    counter = UsageCounter(CountingEvaluator())
    best_effort = {"scopeName": "BestEffort", "operator": "Exists"}
    plain = {"metadata": {"name": "b", "uid": "b"}, "spec": {"containers": [{"name": "c"}]}}
    usage = await counter.count((best_effort,), [pod("a"), plain], NOW)
    assert amounts.to_tree(amounts.mask(usage, ("pods",))) == {"pods": "1"}


async def test_other_tasks_run_while_many_objects_are_counted():
    evaluator = CountingEvaluator()
    numbers = []

    async def watch_progress():
        while len(evaluator.names) < 1000:
            numbers.append(len(evaluator.names))
            await yield_to_loop()

    watching = asyncio.create_task(watch_progress())
    pods = [pod(f"p{number}") for number in range(1000)]
    assert await counted(UsageCounter(evaluator), pods) == {"pods": "1k", "requests.cpu": "100"}
    await watching
    assert len({*numbers}) >= 10
