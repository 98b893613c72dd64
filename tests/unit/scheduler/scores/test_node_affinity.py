"""The scores of preferred node affinity."""

import pytest

from mockube.scheduler.plugin_failure import PluginFailure
from mockube.scheduler.scores.node_affinity import node_affinity_score
from tests.support.controllers.scheduler_objects import node, pod, scores, snapshot


def preferred(*weights):
    """Return the affinity to nodes with the labels 0, 1 … by weight."""
    terms = [
        {"weight": weight, "preference": {"matchExpressions": [{"key": str(key), "operator": "Exists"}]}}
        for key, weight in enumerate(weights)
    ]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ((1, 3), {"none": 0, "first": 25, "second": 75, "both": 100}),
        ((5,), {"none": 0, "first": 100, "second": 0, "both": 100}),
        ((), None),
    ],
)
def test_node_scores_the_weights_of_preferences_that_it_matches(weights, expected):
    labels = {"none": {}, "first": {"0": ""}, "second": {"1": ""}, "both": {"0": "", "1": ""}}
    state = snapshot([node(name, labels=has) for name, has in labels.items()])
    assert scores(node_affinity_score, pod(affinity=preferred(*weights)), state) == expected


def test_preference_with_a_bound_that_is_no_integer_fails():
    affinity = preferred(1)
    term = affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]
    term["preference"]["matchExpressions"] = [{"key": "k", "operator": "Gt", "values": ["x"]}]
    message = r"""running PreScore plugin "NodeAffinity": \[0\].matchExpressions\[0\].values\[0\]: Invalid value: "x": for 'Gt'"""
    with pytest.raises(PluginFailure, match=message):
        scores(node_affinity_score, pod(affinity=affinity), snapshot([node(), node("b")]))
