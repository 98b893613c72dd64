from itertools import combinations

import pytest
from msgspec.structs import replace

from mockube.apimachinery.randomness import SeededRandom
from mockube.exploration import plans
from mockube.exploration.plans import (
    Disturbance,
    Learned,
    OperatorEvent,
    OperatorWrite,
    Plan,
    count_writes,
    pair_plans,
    rank_writes,
    single_plans,
    smallest,
)

CREATE, UPDATE = ("create", "configmaps", "default"), ("update", "deployments.apps", "default")


def learned(**fields):
    writes = count_writes([CREATE, UPDATE])
    known = {
        "writes": writes,
        "conditional": frozenset(writes[1:]),
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


def test_write_without_a_version_meets_no_conflict():
    create = OperatorWrite(verb="create", resource="configmaps", namespace="default", number=0)
    found = actions(single_plans(learned(), SeededRandom()), write=create)
    assert "server error" in found
    assert "conflict" not in found


@pytest.mark.parametrize(
    ("fields", "action"),
    [
        pytest.param({"has_lease": True}, "lose the lease", id="lease"),
        pytest.param({"has_nodes": True}, "delete a node", id="node"),
        pytest.param({"cached": ["configmaps"]}, "crash and stale lists", id="stale lists"),
        pytest.param(
            {"cached": ["configmaps"]}, "create anew and stale lists", id="stale lists of a deletion"
        ),
    ],
)
def test_missing_lease_is_not_disturbed(fields, action):
    (name,) = fields
    assert action in actions(single_plans(learned(**fields), SeededRandom()))
    assert action not in actions(single_plans(learned(**{name: ()}), SeededRandom()))


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
    first = [plan.disturbances[0].action for plan in found[:14]]
    assert len({*first}) >= 10


EVENT = OperatorEvent(type="ADDED", resource="pods", namespace="default", name="web-*", number=0)


def test_each_event_is_disturbed_and_reordered_with_each_resource_that_follows():
    found = single_plans(learned(events={EVENT: ["configmaps", "jobs"]}), SeededRandom())
    assert actions(found, event=EVENT) == {"hold an event", "lose an event", "reorder events"}
    after = [
        plan.disturbances[0].resource for plan in found if plan.disturbances[0].action == "reorder events"
    ]
    assert sorted(after) == ["configmaps", "jobs"]


def stale_starts(**fields):
    found = single_plans(learned(cached=["jobs", "pods"], watched=["jobs", "pods"], **fields), SeededRandom())
    each = [plan.disturbances[0] for plan in found]
    return [one for one in each if one.action == "crash and stale lists"]


def test_lists_after_a_crash_at_a_write_are_old_by_some_writes_and_for_each_resource():
    stale = {(one.resource, one.revisions) for one in stale_starts() if one.write}
    assert stale == {("*", 1), ("*", 3), ("jobs", 1), ("pods", 1)}


def test_lists_after_a_crash_after_a_step_are_from_before_steps_or_many_writes():
    many = count_writes([CREATE] * 7)
    stale = [one for one in stale_starts(steps=2, writes=many) if one.step == 1]
    assert {one.resource for one in stale} == {"*", "jobs", "pods"}
    assert {(one.steps, one.revisions) for one in stale} == {(1, 1), (2, 1), (0, 4), (0, 7)}
    assert not [one for one in stale if one.is_deleting]


def test_lists_are_from_the_deletion_of_a_resource_that_a_step_has_recreated():
    deleting = [one for one in stale_starts(steps=3, recreated=[2]) if one.is_deleting]
    assert {(one.step, one.resource) for one in deleting} == {(2, "*"), (2, "jobs"), (2, "pods")}


def test_lists_that_are_far_from_now_or_of_what_users_do_not_write_come_later():
    known = {"subject": "Job/a", "resources": {"Job": "jobs"}, "steps": 3}
    after_steps = [one for one in stale_starts(**known) if not one.write]
    first, last = after_steps[0], after_steps[-1]
    assert (first.steps, first.resource in ("*", "jobs")) == (1, True)
    assert (last.resource, last.steps == 1) == ("pods", False)


def test_first_old_lists_are_of_the_resource_itself_and_from_its_deletion():
    known = {"subject": "Job/a", "resources": {"Job": "jobs"}, "steps": 3, "recreated": [2]}
    first, second, *_ = [one for one in stale_starts(**known) if not one.write]
    assert (first.resource, first.is_deleting) == ("jobs", True)
    assert (second.resource, second.is_deleting, second.steps) == ("jobs", False, 1)


def test_late_events_are_of_each_resource_and_of_all():
    found = single_plans(learned(watched=["jobs", "pods"]), SeededRandom())
    each = [plan.disturbances[0] for plan in found]
    assert {one.resource for one in each if one.action == "late events"} == {"jobs", "pods", "*"}


def test_events_are_held_back_over_two_steps_if_as_many_follow():
    found = single_plans(learned(steps=3), SeededRandom())
    held = [plan.disturbances[0] for plan in found if plan.disturbances[0].steps == 2]
    assert {(one.action, one.step) for one in held} == {("hold events", plans.NO_STEP), ("hold events", 0)}
    assert str(held[0]).startswith("the events of configmaps are held back over 2 steps, ")


def test_operator_is_down_before_a_step_that_follows():
    found = single_plans(learned(steps=2, has_webhooks=True), SeededRandom())
    for action in ("down during a step", "webhooks down during a step", "token expires"):
        of_steps = [
            each for plan in found for each in plan.disturbances if each.action == action and not each.write
        ]
        assert sorted(each.step for each in of_steps) == [plans.NO_STEP, 0]


OBJECTS = [("ConfigMap", "default", "a"), ("ConfigMap", "default", "b"), ("Deployment.apps", "default", "a")]
DELETE = ("delete", "statefulsets.apps", "default")


def test_deletions_and_the_first_change_of_each_object_come_before_writes_that_repeat_others():
    writes = count_writes([CREATE, CREATE, UPDATE, UPDATE, UPDATE, DELETE])
    objects = [*OBJECTS, OBJECTS[2], None, ("StatefulSet.apps", "default", "a")]
    assert [*rank_writes(writes, objects).values()] == [1, 1, 1, 2, 3, 0]
    known = learned(writes=writes, ranks=rank_writes(writes, objects), watched=[], subject="")
    crashes = [
        plan.disturbances[0].write
        for plan in single_plans(known, SeededRandom())
        if plan.disturbances[0].action == "crash after"
    ]
    assert crashes[0] == writes[5]
    assert {*crashes[:4]} == {*writes[:3], writes[5]}
    assert crashes[4:] == [writes[3], writes[4]]


def test_every_second_plan_is_a_promising_one():
    writes = count_writes([CREATE, CREATE, UPDATE])
    known = learned(
        writes=writes,
        ranks=rank_writes(writes, OBJECTS),
        watched=["sites.example.com", "services"],
        cached=["sites.example.com", "services"],
        resources={"Site": "sites.example.com"},
        steps=2,
    )
    first = [plan.disturbances[0] for plan in single_plans(known, SeededRandom())][:12:2]
    assert {each.action for each in first} >= {
        "crash after",
        "crash and stale lists",
        "down during a step",
        "hold events",
    }
    assert {each.resource for each in first if not each.write} <= {"", "*", "sites.example.com"}
    assert not {each.action for each in first} & {"lose the answer", "timeout", "restart"}


def test_events_of_the_resource_itself_are_held_back_after_steps_before_those_of_others():
    known = learned(
        watched=["secrets", "sites.example.com", "services"], resources={"Site": "sites.example.com"}
    )
    found = single_plans(known, SeededRandom())
    held = [plan.disturbances[0] for plan in found if plan.disturbances[0].action == "hold events"]
    resources = [each.resource for each in held if each.write is None]
    assert {*resources[: resources.count("sites.example.com")]} == {"sites.example.com"}


def test_moments_that_nothing_covers_come_first():
    writes = count_writes([CREATE, CREATE, CREATE, UPDATE])
    found = single_plans(learned(writes=writes, watched=[], subject=""), SeededRandom())
    at_writes = [plan.disturbances[0].write for plan in found if plan.disturbances[0].write]
    assert {*at_writes[:4]} == {*writes}


def test_written_resources_come_before_those_that_are_only_read():
    read = OperatorEvent(type="ADDED", resource="nodes", namespace="", name="n", number=0)
    written = OperatorEvent(type="ADDED", resource="configmaps", namespace="default", name="a", number=0)
    found = single_plans(learned(events={read: [], written: []}), SeededRandom())
    order = [plan.disturbances[0].event for plan in found if plan.disturbances[0].action == "hold an event"]
    assert order == [written, read]


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        pytest.param(EVENT, EVENT.resource, 0, id="events and all events of a resource"),
        pytest.param(EVENT, "*", 0, id="events and all events"),
        pytest.param(EVENT, "jobs", 1, id="other resources"),
    ],
)
def test_watches_are_not_harmed_twice_from_the_start(first, second, count):
    singles = [
        plans.plan_of([Disturbance(action="hold an event", event=first)]),
        plans.plan_of([Disturbance(action="late events", resource=second)]),
    ]
    assert len([*pair_plans(singles, SeededRandom())]) == count


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


def test_writes_and_edits_of_an_object_are_of_the_same_resource():
    known = learned(
        resources={"ConfigMap": "configmaps", "Site": "sites"},
        watched=[],
        without=frozenset({"token expires"}),
    )
    of_object = [
        each
        for plan in single_plans(known, SeededRandom())
        for each in plan.disturbances
        if each.object and each.write is None
    ]
    assert {each.touched for each in of_object} == {"configmaps", "sites"}
    assert "somebody edits ConfigMap/a, after step 1" in {*map(str, of_object)}


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
        "the events of pods are held back, after step 1"
    )
    assert str(plans.UNDISTURBED) == "nothing is disturbed"
    stale = Disturbance(action="crash and stale lists", write=write, resource="*", revisions=3)
    assert str(stale) == (
        "the operator crashes, and then its lists and watches of all resources are old by 3 of its writes, "
        "at create of configmaps in default"
    )
    pods = Disturbance(action="crash and stale lists", step=1, resource="pods")
    how = {
        "old": pods,
        "from before the last step": replace(pods, steps=1),
        "from before the last 2 steps": replace(pods, steps=2),
    }
    how["from when its resource was being deleted"] = replace(pods, is_deleting=True)
    for text, each in how.items():
        assert (
            str(each)
            == f"the operator crashes, and then its lists and watches of pods are {text}, after step 2"
        )
    anew = Disturbance(action="create anew and stale lists", step=0, object="Site/blog", resource="sites")
    assert str(anew) == (
        "the operator crashes after somebody has deleted and created anew Site/blog, "
        "and its lists are from when it was being deleted, after step 1"
    )
    reordered = Disturbance(action="reorder events", event=EVENT, resource="jobs")
    assert str(reordered) == (
        "the event and those that follow are held back until there is one of jobs, at ADDED of pods web-* in default"
    )
