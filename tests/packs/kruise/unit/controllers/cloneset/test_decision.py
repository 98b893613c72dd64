from datetime import timedelta

from mockube.client.kinds import PODS
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import Patch
from mockube.packs.kruise.controllers.cloneset.order import concurrent_patches, earliest


def patch(name, subresource=""):
    return Patch(resource=PODS, key=Key("default", name), body={}, subresource=subresource)


def test_gates_are_patched_before_pods():
    found = concurrent_patches([patch("a", "status"), patch("a"), patch("b"), patch("c", "status")])
    assert [[it.key.name for it in group.effects] for group in found] == [["a", "c"], ["a", "b"]]
    assert [{it.subresource for it in group.effects} for group in found] == [{"status"}, {""}]


def test_empty_decisions_combine_to_nothing():
    assert concurrent_patches([]) == ()


def test_earliest_requeue_time_is_used():
    assert earliest(None, timedelta(seconds=2), timedelta(seconds=1)) == timedelta(seconds=1)
    assert earliest(None) is None
