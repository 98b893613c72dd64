"""Plugins of the user's own: what they decide, and what happens if they fail."""

import pytest

from mockube.scheduler.choice import best_nodes, find_feasible
from mockube.scheduler.cluster import SchedulerCache
from mockube.scheduler.plugin import SchedulerPlugin
from mockube.scheduler.plugin_failure import PluginFailure
from mockube.scheduler.pod_class import PodClasses
from tests.support.controllers.scheduler_objects import failure_on, info, node, pod, snapshot, snapshot_of
from tests.support.controllers.scheduler_profiles import profile_of


class Plugin(SchedulerPlugin):
    name = "Own"
    weight = 1000
    judges_alike = True

    def __init__(self, reason=None, score=0, normalized=None):
        self.reason, self.value, self.normalized = reason, score, normalized

    def filter(self, _, node):
        return self.reason(node) if callable(self.reason) else self.reason

    def score(self, _, node):
        return self.value(node) if callable(self.value) else self.value

    def normalize(self, scores):
        return scores if self.normalized is None else self.normalized(scores)


def fail(_):
    raise RuntimeError("no answer")


def test_reason_of_own_filter_is_in_the_message():
    profile = profile_of(
        {}, [Plugin(lambda one: "node(s) are too expensive" if one.labels["cost"] == "9" else None)]
    )
    state = snapshot([node("a", labels={"cost": "9"}), node("b", labels={"cost": "9"}, cpu="0")])
    tried = info(pod(requests={"cpu": "1"}))
    message = failure_on(tried, state, find_feasible(tried, state, profile), (), profile).message
    assert message.startswith("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) are too expensive. ")


def test_reason_that_cannot_be_encoded_is_replaced():
    """The name of a file may be such a text. Its Event could not be written, which ended the process."""
    tried, state = info(pod()), snapshot([node()])
    profile = profile_of({}, [Plugin("no prices-\udcff")])
    (rejection,) = find_feasible(tried, state, profile).rejections.values()
    assert rejection.reasons == ("no prices-?",)


def test_own_score_counts_with_its_weight():
    profile = profile_of({}, [Plugin(score=lambda one: int(one.labels["rank"]))])
    state = snapshot([node("a", labels={"rank": "1"}), node("b", labels={"rank": "2"})])
    assert [one.name for one in best_nodes(info(pod()), state, state.nodes, profile)] == ["b"]


def test_own_scores_are_normalized():
    profile = profile_of(
        {},
        [
            Plugin(
                score=lambda one: -int(one.labels["cost"]),
                normalized=lambda scores: [100 + one for one in scores],
            )
        ],
    )
    state = snapshot([node("a", labels={"cost": "7"}), node("b", labels={"cost": "3"})])
    assert [one.name for one in best_nodes(info(pod()), state, state.nodes, profile)] == ["b"]


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        (fail, 'running "Own" filter plugin: RuntimeError: no answer'),
        (lambda _: 5, 'running "Own" filter plugin: TypeError: filter returned 5, not a reason or None'),
        (
            lambda _: "",
            """running "Own" filter plugin: TypeError: filter returned '', not a reason or None""",
        ),
        (lambda one: one.nothing, 'running "Own" filter plugin: AttributeError: '),
    ],
    ids=["raises", "returns a number", "returns an empty text", "raises what a malformed object raises"],
)
def test_failure_of_own_filter_is_an_error_of_the_pod(reason, message):
    profile, tried, state = profile_of({}, [Plugin(reason)]), info(pod()), snapshot([node()])
    found = find_feasible(tried, state, profile)
    assert (found.feasible, found.is_error) == ((), True)
    assert failure_on(tried, state, found, (), profile).message.startswith(message)


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (Plugin(score=fail), 'running Score plugins: plugin "Own" failed with: RuntimeError: no answer'),
        (
            Plugin(score=1.5),
            'running Score plugins: plugin "Own" failed with: TypeError: score returned 1.5, not an int',
        ),
        (
            Plugin(score=101),
            (
                'running Normalize on Score plugins: plugin "Own" returns an invalid score 101, '
                "it should in the range of [0, 100] after normalizing"
            ),
        ),
        (
            Plugin(normalized=lambda _: []),
            'running Score plugins: plugin "Own" failed with: normalize returned 0 scores for 2',
        ),
    ],
    ids=["raises", "returns a float", "is out of range", "loses scores"],
)
def test_failure_of_own_score_is_an_error_of_the_pod(plugin, message):
    profile, state = profile_of({}, [plugin]), snapshot([node("a"), node("b")])
    with pytest.raises(PluginFailure) as caught:
        best_nodes(info(pod()), state, state.nodes, profile)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("plugin", "has_class"),
    [(Plugin(), True), (Plugin(fail), False), (Plugin(score=fail), False)],
    ids=["that works", "with a failing filter", "with a failing score"],
)
def test_class_has_plugin(plugin, has_class):
    cluster = SchedulerCache()
    cluster.set_node(node())
    found = PodClasses(cluster).find(info(pod()), snapshot_of(cluster), profile_of({}, [plugin]))
    assert (found is not None) == has_class


def test_plugin_that_may_read_anything_needs_the_reference():
    cluster = SchedulerCache()
    cluster.set_node(node())
    plugin = Plugin(normalized=lambda scores: [max(scores)] * len(scores))
    plugin.judges_alike = False
    assert PodClasses(cluster).find(info(pod()), snapshot_of(cluster), profile_of({}, [plugin])) is None
