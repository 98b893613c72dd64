from datetime import timedelta

from controller_manager.controllers.cloneset.decision import earliest, side_by_side
from controller_manager.kinds import PODS
from controller_manager.runtime.actions import Patch
from controller_manager.runtime.resource import Key


def patch(name, subresource=""):
    return Patch(resource=PODS, key=Key("default", name), body={}, subresource=subresource)


def test_gates_come_before_pods():
    found = side_by_side([patch("a", "status"), patch("a"), patch("b"), patch("c", "status")])
    assert [[it.key.name for it in group.effects] for group in found] == [["a", "c"], ["a", "b"]]
    assert [{it.subresource for it in group.effects} for group in found] == [{"status"}, {""}]


def test_nothing_is_nothing():
    assert side_by_side([]) == ()


def test_the_earliest_counts():
    assert earliest(None, timedelta(seconds=2), timedelta(seconds=1)) == timedelta(seconds=1)
    assert earliest(None) is None
