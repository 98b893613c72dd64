"""The decision on one pod: by its class, by the reference, or with extenders, and what is measured of it."""

import pytest
from msgspec.structs import replace

from mockube.component_base.clock import SteppedClock
from mockube.component_base.metrics import MetricsRegistry
from mockube.scheduler.algorithm import SchedulingAlgorithm
from mockube.scheduler.choice import FeasibleNodes
from mockube.scheduler.cluster import SchedulerCache
from mockube.scheduler.filters.filter import Rejection
from mockube.scheduler.monitor import SchedulerMonitor
from mockube.scheduler.plugin_failure import PluginFailure
from mockube.scheduler.profiles import DEFAULT_PROFILE
from tests.support.controllers.scheduler_objects import info, node, pod, snapshot, snapshot_of
from tests.support.metric_samples import sample_value

POD = info(pod())
REJECTED = Rejection(("no",), plugin="Extender")


class FakeExtenders:
    """Extenders that accept some nodes, in this order, and prefer one of them."""

    def __init__(self, *accepted, favourite="", error=None, concerns=True):
        self._accepted, self._favourite, self._error, self._concerns = accepted, favourite, error, concerns
        self.asked = []
        self.scored = []

    def concerns(self, _):
        return self._concerns

    async def filter(self, _, found, __):
        self.asked.append([one.name for one in found.feasible])
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        nodes = [one for one in found.feasible if one.name in self._accepted]
        return FeasibleNodes(
            [_returned(one) for one in nodes], {**found.rejections, **({} if nodes else {"a": REJECTED})}
        )

    async def scores(self, _, nodes):
        self.scored.append([*nodes])
        return {self._favourite: 1000}


def _returned(one):
    """Return a node as an extender sends it back: without its pods."""
    copy = one.copy()
    copy.pods = {}
    return copy


class Decisions:
    def __init__(self, extenders=None, minor="1.37", nodes="abc"):
        self.registry = MetricsRegistry()
        self.state = snapshot([node(name, zone=name) for name in nodes], minor=minor)
        monitor = SchedulerMonitor(SteppedClock().monotonic, self.registry)
        self.algorithm = SchedulingAlgorithm(SchedulerCache(), monitor, extenders)

    async def decide(self, tried=POD, **options):
        options = {"leaves_room": True, **options}
        profile = options.pop("profile", DEFAULT_PROFILE)
        best, found = await self.algorithm.decide(tried, self.state, profile, **options)
        return [one.name for one in best], found

    def points(self):
        """Return how often extension points were measured, by their name and status."""
        counts = {}
        for point in ("Filter", "Score"):
            for status in ("Success", "Unschedulable"):
                labels = {"extension_point": point, "status": status, "profile": "default-scheduler"}
                name = "scheduler_framework_extension_point_duration_seconds_count"
                if count := sample_value(self.registry, name, labels):
                    counts[point, status] = count
        return counts


FOUND, SCORED, REFUSED = ("Filter", "Success"), ("Score", "Success"), ("Filter", "Unschedulable")


async def test_reference_judges_pods_that_leave_room_to_others():
    decisions = Decisions()
    assert (await decisions.decide())[0] == ["a", "b", "c"]
    assert decisions.points() == {FOUND: 1, SCORED: 1}
    best, found = await decisions.decide(info(pod(requests={"cpu": "9"})))
    assert (best, {*found.rejections}) == ([], {*"abc"})
    assert decisions.points() == {FOUND: 1, SCORED: 1, REFUSED: 1}


async def test_class_of_the_pod_judges_it_otherwise():
    cluster = SchedulerCache()
    for name in "ab":
        cluster.set_node(node(name))
    decisions = Decisions()
    decisions.state = snapshot_of(cluster)
    decisions.algorithm._classes._cluster = cluster
    assert (await decisions.decide(leaves_room=False))[0] == ["a", "b"]
    assert decisions.points() == {FOUND: 1, SCORED: 1}
    _, found = await decisions.decide(info(pod(requests={"cpu": "9"})), leaves_room=False)
    assert {*found.rejections} == {*"ab"}
    assert decisions.points() == {FOUND: 1, SCORED: 1, REFUSED: 1}
    first = decisions.algorithm._classes.find(POD, decisions.state)
    decisions.algorithm.forget_classes()
    assert decisions.algorithm._classes.find(POD, decisions.state) is not first


async def test_extenders_of_no_concern_are_not_asked():
    extenders = FakeExtenders(concerns=False)
    assert (await Decisions(extenders).decide())[0] == ["a", "b", "c"]
    assert extenders.asked == []


async def test_extenders_choose_among_the_nodes_that_plugins_accept():
    extenders = FakeExtenders("b", "c", favourite="c")
    decisions = Decisions(extenders)
    assert (await decisions.decide())[0] == ["c"]
    assert extenders.asked == [["a", "b", "c"]]
    assert decisions.points() == {FOUND: 1, SCORED: 1}


async def test_best_nodes_are_those_of_the_cache():
    decisions = Decisions(FakeExtenders("a"))
    best, _ = await decisions.algorithm.decide(POD, decisions.state, DEFAULT_PROFILE, leaves_room=False)
    assert best == [decisions.state.nodes[0]]


@pytest.mark.parametrize(("minor", "are_of_cache"), [("1.33", False), ("1.32", True)])
async def test_scores_are_those_of_the_returned_nodes_since_1_33(minor, are_of_cache):
    extenders = FakeExtenders("a", "b")
    decisions = Decisions(extenders, minor)
    await decisions.decide()
    assert (extenders.scored[0][0] is decisions.state.nodes[0]) is are_of_cache


async def test_only_node_is_not_scored():
    extenders = FakeExtenders("b")
    decisions = Decisions(extenders)
    assert (await decisions.decide())[0] == ["b"]
    assert (extenders.scored, decisions.points()) == ([], {FOUND: 1})


async def test_extenders_are_not_asked_without_feasible_node():
    extenders = FakeExtenders("a")
    decisions = Decisions(extenders)
    best, found = await decisions.decide(info(pod(requests={"cpu": "9"})))
    assert (best, len(found.rejections), extenders.asked) == ([], 3, [])
    assert decisions.points() == {REFUSED: 1}


async def test_rejections_of_extenders_are_those_of_the_decision():
    best, found = await Decisions(FakeExtenders()).decide()
    assert (best, found.rejections) == ([], {"a": REJECTED})


NOMINATED = info(pod(status={"nominatedNodeName": "b"}))


@pytest.mark.parametrize(
    ("accepted", "asked", "best"),
    [
        pytest.param("ab", [["b"]], ["b"], id="if it is accepted"),
        pytest.param("a", [["b"], ["a", "b", "c"]], ["a"], id="unless it is rejected"),
    ],
)
async def test_extenders_are_asked_about_the_nominated_node_first(accepted, asked, best):
    extenders = FakeExtenders(*accepted)
    assert (await Decisions(extenders).decide(NOMINATED))[0] == best
    assert extenders.asked == asked


async def test_nominated_node_that_is_not_feasible_is_not_sent():
    extenders = FakeExtenders("a")
    tried = info(pod(status={"nominatedNodeName": "gone"}))
    assert (await Decisions(extenders).decide(tried))[0] == ["a"]
    assert extenders.asked == [["a", "b", "c"]]


async def test_failure_about_the_nominated_node_is_logged(caplog):
    extenders = FakeExtenders("a", "b", "c", error=PluginFailure("down"))
    assert (await Decisions(extenders).decide(NOMINATED))[0] == ["a", "b", "c"]
    assert "default/web: evaluating the nominated node failed: down" in caplog.text
    assert extenders.asked == [["b"], ["a", "b", "c"]]


async def test_failure_of_an_extender_is_an_error_of_the_attempt():
    best, found = await Decisions(FakeExtenders(error=PluginFailure("down"))).decide()
    assert (best, found.is_error, found.prefilter_rejection.reasons) == ([], True, ("down",))


@pytest.mark.parametrize("leaves_room", [True, False])
async def test_next_search_of_a_sample_begins_where_the_last_one_ended(leaves_room):
    cluster = SchedulerCache()
    for number in range(150):
        cluster.set_node(node(f"n{number}"))
    decisions = Decisions()
    decisions.state = snapshot_of(cluster)
    decisions.algorithm._classes._cluster = cluster
    profile = replace(DEFAULT_PROFILE, percentage_of_nodes_to_score=1, scores=())
    first, second = [(await decisions.decide(profile=profile, leaves_room=leaves_room))[0] for _ in range(2)]
    names = [f"n{number}" for number in range(150)]
    assert sorted(first) == sorted(names[:100])
    assert sorted(second) == sorted([*names[100:], *names[:50]])
