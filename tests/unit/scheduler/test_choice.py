"""Node filtering with fields whose types do not match the schema."""

import pytest

from mockube.scheduler.choice import MALFORMED, find_feasible
from mockube.scheduler.cluster import SchedulerCache
from mockube.scheduler.preemption import find_candidates
from tests.support.controllers.scheduler_objects import info, node, pod, snapshot

WEB = {"app": "web"}


@pytest.mark.parametrize("spec", [7, [7], {"taints": 7}, {"taints": [7]}])
def test_node_that_cannot_be_evaluated_is_filtered_out(spec):
    feasible = find_feasible(info(pod()), snapshot([{**node("bad"), "spec": spec}, node("good")]))
    assert [one.name for one in feasible.feasible] == ["good"]
    assert feasible.rejections == {"bad": MALFORMED}


def test_unreadable_node_is_ignored():
    cluster = SchedulerCache()
    with pytest.raises(AttributeError):
        cluster.set_node({**node("bad"), "status": 7})
    assert cluster.nodes() == []


def test_unreadable_disruption_budget_protects_nothing():
    bad = [
        budget(spec=7),
        budget(spec={"selector": {"matchExpressions": [{"key": "app", "operator": "Like"}]}}),
        budget(status={"disruptionsAllowed": "many"}),
        budget(status={"disruptedPods": 7}),
        budget(status=[7]),
        {"metadata": {"name": "pdb"}},
    ]
    greater = info(pod("greater", priority=10))
    state = snapshot([node("a", pods="1")], [pod("lesser", labels=WEB, nodeName="a", priority=1)])
    lesser = state.nodes[0].pods["lesser"]
    for budgets, violations in ((bad, 0), ([*bad, budget()], 1)):
        outcome = find_candidates(greater, state, find_feasible(greater, state), budgets).best
        assert (outcome.node, outcome.victims, outcome.pdb_violations) == ("a", [lesser], violations)


def budget(**fields):
    metadata = {"name": "pdb", "namespace": "default", "uid": "b"}
    return {"metadata": metadata, "spec": {"selector": {"matchLabels": WEB}}} | fields
