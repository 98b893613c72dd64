"""The scores of preferred taints."""

from mockube.scheduler.scores.taints import taint_toleration_score
from tests.support.controllers.scheduler_objects import node, pod, scores, snapshot


def taint(key, effect="PreferNoSchedule"):
    return {"key": key, "value": "", "effect": effect}


def test_node_scores_less_for_each_preferred_taint_that_is_not_tolerated():
    nodes = [
        node("none"),
        node("one", taints=[taint("k"), taint("k", "NoSchedule")]),
        node("two", taints=[taint("k"), taint("other")]),
        node("tolerated", taints=[taint("fine")]),
    ]
    tolerations = [
        {"key": "fine", "operator": "Exists"},
        {"key": "k", "operator": "Exists", "effect": "NoSchedule"},
    ]
    found = scores(taint_toleration_score, pod(tolerations=tolerations), snapshot(nodes))
    assert found == {"none": 100, "one": 50, "two": 0, "tolerated": 100}


def test_taints_without_preference_score_nothing():
    state = snapshot([node(), node("b", taints=[taint("k", "NoSchedule")])])
    assert scores(taint_toleration_score, pod(), state) is None
