from itertools import combinations

import pytest

from mockube.apimachinery.randomness import SeededRandom
from mockube.exploration import plans
from mockube.exploration.plans import (
    Disturbance,
    Learned,
    OperatorWrite,
    Plan,
    count_writes,
    pair_plans,
    single_plans,
    smallest,
)

CREATE, UPDATE = ("create", "configmaps", "default"), ("update", "deployments.apps", "default")


def learned(**fields):
    known = {
        "writes": count_writes([CREATE, UPDATE]),
        "watched": ["configmaps"],
        "owned": [("ConfigMap/a", "default")],
    }
    return Learned(**{**known, "subject": "Site/blog", "subject_namespace": "shop", **fields})


def actions(found, **place):
    return {
        each.action
        for plan in found
        for each in plan.disturbances
        if all(getattr(each, name) == value for name, value in place.items())
    }


def test_writes_are_numbered_by_what_they_are_for():
    assert [write.number for write in count_writes([CREATE, UPDATE, CREATE])] == [0, 0, 1]
    assert str(count_writes([CREATE, CREATE])[1]) == "create of configmaps in default, number 2"


def test_each_write_is_disturbed():
    found = single_plans(learned(), SeededRandom())
    update = OperatorWrite(verb="update", resource="deployments.apps", namespace="default", number=0)
    assert {"crash before", "crash after", "lose the answer", "conflict", "timeout"} <= actions(
        found, write=update
    )


def test_create_meets_no_conflict():
    create = OperatorWrite(verb="create", resource="configmaps", namespace="default", number=0)
    found = actions(single_plans(learned(), SeededRandom()), write=create)
    assert "server error" in found
    assert "conflict" not in found


@pytest.mark.parametrize(
    ("fields", "action"),
    [
        pytest.param({"has_lease": True}, "lose the lease", id="lease"),
        pytest.param({"has_nodes": True}, "delete a node", id="node"),
        pytest.param({"lists_from_cache": True}, "crash and stale lists", id="stale lists"),
    ],
)
def test_missing_lease_is_not_disturbed(fields, action):
    (name,) = fields
    assert action in actions(single_plans(learned(**fields), SeededRandom()))
    assert action not in actions(single_plans(learned(**{name: False}), SeededRandom()))


def test_default_namespace_is_not_deleted():
    assert plans.TERMINATE_NAMESPACE in actions(single_plans(learned(), SeededRandom()))
    assert plans.TERMINATE_NAMESPACE not in actions(
        single_plans(learned(subject_namespace="default"), SeededRandom())
    )


def test_actions_can_be_left_out():
    found = actions(single_plans(learned(without=frozenset({"restart"})), SeededRandom()))
    assert "restart" not in found
    assert "second operator" in found


def test_first_plans_have_different_actions():
    found = single_plans(learned(), SeededRandom())
    first = [plan.disturbances[0].action for plan in found[:10]]
    assert len({*first}) == 10


def test_order_depends_on_the_seed_alone():
    def order(seed):
        random = SeededRandom(seed)
        singles = single_plans(learned(), random)
        return [*map(str, singles), *map(str, pair_plans(singles, random))]

    assert order(1) == order(1)
    assert order(1) != order(2)
    assert {*order(1)} == {*order(2)} or len(order(1)) == len(order(2))


def test_pairs_of_the_same_resource_come_first():
    singles = [
        plans.plan_of([Disturbance(action="restart", step=0)]),
        plans.plan_of([Disturbance(action="hold events", step=0, resource="pods")]),
        plans.plan_of([Disturbance(action="drop events", step=0, resource="pods")]),
    ]
    first = next(pair_plans(singles, SeededRandom()))
    assert {each.action for each in first.disturbances} == {"hold events", "drop events"}


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_each_pair_is_drawn_once(count):
    singles = [
        plans.plan_of([Disturbance(action="hold events", step=step, resource="pods" if step % 2 else "jobs")])
        for step in range(count)
    ]
    pairs = [tuple(each.step for each in plan.disturbances) for plan in pair_plans(singles, SeededRandom())]
    assert sorted(pairs) == [*combinations(range(count), 2)]
    is_near = [first % 2 == second % 2 for first, second in pairs]
    assert is_near == sorted(is_near, reverse=True)


def test_pairs_are_drawn_when_they_are_asked_for():
    random = CountingRandom()
    singles = [plans.plan_of([Disturbance(action="restart", step=step)]) for step in range(100)]
    next(pair_plans(singles, random))
    assert random.draws == 1


class CountingRandom(SeededRandom):
    draws = 0

    def bytes(self, count):
        self.draws += 1
        return super().bytes(count)


def test_one_write_is_not_disturbed_twice():
    write = OperatorWrite(verb="create", resource="configmaps", namespace="default", number=0)
    singles = [
        plans.plan_of([Disturbance(action=action, write=write)]) for action in ("timeout", "crash before")
    ]
    assert [*pair_plans(singles, SeededRandom())] == []


@pytest.mark.parametrize(
    ("chosen", "ending"),
    [
        pytest.param(["restart"], "", id="none"),
        pytest.param(["restart", "delete the resource"], "delete", id="deletion"),
        pytest.param(["delete the resource", "delete the namespace"], "terminate", id="namespace"),
    ],
)
def test_deletions_have_an_end_of_their_own(chosen, ending):
    assert plans.plan_of([Disturbance(action=action, step=0) for action in chosen]).ending == ending


def steps(*numbers):
    return [Disturbance(action="restart", step=number) for number in numbers]


@pytest.mark.parametrize(
    ("size", "needed"),
    [
        pytest.param(1, {0}, id="the only one"),
        pytest.param(2, {1}, id="one of two"),
        pytest.param(2, {0, 1}, id="both"),
        pytest.param(8, {3}, id="one of eight"),
        pytest.param(8, {2, 5}, id="two of eight, of different halves"),
        pytest.param(7, {0, 3, 6}, id="three of seven"),
    ],
)
async def test_smallest_plan_has_what_is_needed(size, needed):
    tried = []

    async def shows(plan):
        tried.append(plan)
        return needed <= {each.step for each in plan.disturbances}

    found = await smallest(Plan(disturbances=steps(*range(size))), shows)
    assert {each.step for each in found.disturbances} == needed
    assert len(tried) <= size * size
    if size == 1:
        assert not tried


def test_plan_is_described():
    write = OperatorWrite(verb="create", resource="configmaps", namespace="default", number=0)
    plan = plans.plan_of(
        [
            Disturbance(action="crash before", write=write),
            Disturbance(action="hold events", step=0, resource="pods"),
        ]
    )
    assert str(plan) == (
        "the operator crashes before the write is executed, at create of configmaps in default; "
        "the events are held back of pods, after step 1"
    )
    assert str(plans.UNDISTURBED) == "nothing is disturbed"
