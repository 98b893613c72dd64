"""Which dependents of an owner that was found to be absent are known to have none."""

from mockube.client.kinds import CONFIG_MAPS
from mockube.controller_manager.controllers.garbagecollector.graph import Graph
from mockube.controller_manager.controllers.garbagecollector.references import AbsentOwnerCache


def observe(graph, uid):
    graph.observe(CONFIG_MAPS, {"metadata": {"name": uid, "namespace": "default", "uid": uid}})
    return graph.node(uid).number


def test_owner_is_absent_for_dependents_that_were_there_then():
    graph, absent = Graph(), AbsentOwnerCache()
    before = observe(graph, "before")
    absent.add("owner", graph.newest)
    after = observe(graph, "after")
    assert absent.is_absent("owner", before)
    assert not absent.is_absent("owner", after)
    absent.add("owner", graph.newest)
    assert absent.is_absent("owner", after)


def test_owner_that_is_seen_again_is_not_absent():
    absent = AbsentOwnerCache()
    absent.add("owner", 1)
    absent.discard("owner")
    assert not absent.is_absent("owner", 1)
    absent.discard("another")


def test_owner_that_was_asked_for_least_recently_is_forgotten():
    absent = AbsentOwnerCache()
    for number in range(500):
        absent.add(str(number), 1)
    assert absent.is_absent("0", 1)
    absent.add("1", 1)
    absent.add("new", 1)
    assert not absent.is_absent("2", 1)
    assert all(absent.is_absent(uid, 1) for uid in ("0", "1", "3", "499", "new"))
