"""Which pods are nominated for a node, and which pods must leave room for them."""

from mockube.scheduler.nominator import Nominator
from tests.support.controllers.scheduler_objects import info, pod


def names(pods):
    return [one.view.key.name for one in pods]


def test_pod_leaves_room_for_others_of_its_priority_or_higher_but_not_for_itself():
    nominator, low, high = Nominator(), info(pod("low", priority=1)), info(pod("high", priority=2))
    nominator.nominate(low, "a")
    assert [nominator.must_leave_room(one) for one in (low, high)] == [False, False]
    assert nominator.must_leave_room(info(pod("other", priority=1)))
    nominator.nominate(high, "b")
    assert [nominator.must_leave_room(one) for one in (low, high)] == [True, False]


def test_nomination_ends_those_of_lower_priority_for_the_same_node():
    nominator = Nominator()
    for name, priority, node in (("low", 1, "a"), ("equal", 5, "a"), ("elsewhere", 1, "b")):
        nominator.nominate(info(pod(name, priority=priority)), node)
    displaced = nominator.nominate_in_place_of_lower(info(pod("new", priority=5)), "a")
    assert names(displaced) == ["low"]
    assert [names(nominator.pods_on(node)) for node in "ab"] == [["equal", "new"], ["elsewhere"]]


def test_pod_has_one_nomination_which_ends_once():
    nominator, one = Nominator(), info(pod("one"))
    nominator.nominate(one, "a")
    nominator.nominate(one, "b")
    assert [names(nominator.pods_on(node)) for node in "ab"] == [[], ["one"]]
    assert [nominator.delete("one"), nominator.delete("one")] == [True, False]
