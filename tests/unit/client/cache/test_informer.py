"""Informer: its cache and event handlers, with scripted reflector calls."""

import asyncio

import pytest

from mockube.client.cache.informer import CacheMutated, HandlerScope, Informer, MutationDetector
from mockube.client.kinds import CONFIG_MAPS, PODS
from mockube.client.metrics.informers import InformerStats
from mockube.component_base.loop import yield_to_loop
from tests.support.controllers.informers import RecordedChanges


@pytest.fixture
def informer(clock):
    return Informer(CONFIG_MAPS, clock=clock)


def tree(name, version, *, uid="", **data):
    metadata = {
        "namespace": "default",
        "name": name,
        "uid": uid or f"uid-of-{name}",
        "resourceVersion": str(version),
    }
    return {"metadata": metadata, "data": data}


def names(informer):
    return sorted(view["metadata"]["name"] for view in informer.lister.all())


async def test_informer_is_synced_after_first_list(informer):
    assert not informer.is_synced
    await informer.replace([tree("a", 1)], 5)
    await informer.wait_synced()
    assert informer.is_synced
    assert (names(informer), informer.revision) == (["a"], 5)


async def test_changes_are_delivered_in_order(informer):
    recorded = RecordedChanges(informer)
    await informer.replace([], 1)
    informer.put(tree("a", 2))
    informer.put(tree("a", 3))
    informer.remove(tree("a", 4))
    assert recorded.words == ["+a", "~a", "-a"]
    assert informer.revision == 4


async def test_handler_sees_changed_object_in_cache(informer):
    seen = []
    informer.add_handler(lambda _: seen.append(names(informer)))
    informer.put(tree("a", 1))
    informer.remove(tree("a", 2))
    assert seen == [["a"], []]


async def test_deletion_is_delivered_with_cached_object(informer):
    changes = []
    informer.put(tree("a", 1, x="1"))
    informer.add_handler(changes.append)
    informer.remove(tree("a", 2, x="2"))
    assert changes[-1].new is None
    assert changes[-1].old["data"] == {"x": "1"}


async def test_deletion_of_unknown_object_is_not_delivered(informer):
    recorded = RecordedChanges(informer)
    informer.remove(tree("a", 2))
    assert recorded.words == []
    assert informer.revision == 2


async def test_late_handler_receives_existing_objects(informer):
    await informer.replace([tree("a", 1), tree("b", 2)], 2)
    assert RecordedChanges(informer).words == ["+a", "+b"]


async def test_relist_delivers_differences(informer):
    await informer.replace([tree("same", 1), tree("changes", 2), tree("goes", 3)], 3)
    recorded = RecordedChanges(informer)
    recorded.words.clear()
    same = informer.lister.get("default", "same")
    await informer.replace([tree("same", 1), tree("changes", 5), tree("comes", 6)], 7)
    assert sorted(recorded.words) == ["+comes", "-goes", "~changes"]
    assert informer.lister.get("default", "same") is same
    assert informer.revision == 7


async def test_object_of_other_history_is_replaced(informer):
    await informer.replace([tree("a", 1, uid="first")], 1)
    recorded = RecordedChanges(informer)
    await informer.replace([tree("a", 1, uid="second")], 1)
    assert recorded.words == ["+a", "~a"]


async def test_resync_delivers_every_object_unchanged(informer):
    await informer.replace([tree("a", 1)], 1)
    changes = []
    informer.add_handler(changes.append)
    informer.resync()
    assert changes[-1].old is changes[-1].new


async def test_managed_fields_are_not_cached(informer):
    managed = tree("a", 1)
    managed["metadata"]["managedFields"] = [{"manager": "me"}]
    informer.put(informer.transform(managed))
    assert "managedFields" not in informer.lister.get("default", "a")["metadata"]


async def test_only_view_of_object_is_cached(clock):
    informer = Informer(PODS, clock=clock)
    informer.put({**tree("a", 1), "spec": {"nodeName": "n"}})
    view = informer.lister.get("default", "a")
    assert (view.node, view.object["spec"]) == ("n", {"nodeName": "n"})


async def test_when_reached_resolves_at_its_revision(informer):
    await informer.replace([], 5)
    reached, later = informer.wait_for_revision(7), informer.wait_for_revision(9)
    assert informer.wait_for_revision(5).done()
    informer.put(tree("a", 7))
    assert (reached.done(), later.done()) == (True, False)
    informer.reach(12)
    assert later.done()


async def test_cancelled_waiter_does_not_block_others(informer):
    gave_up, waits = informer.wait_for_revision(7), informer.wait_for_revision(7)
    gave_up.cancel()
    informer.reach(7)
    assert waits.done()


async def test_waiters_are_released_when_history_restarts(informer):
    await informer.replace([], 100)
    waits = informer.wait_for_revision(200)
    await informer.replace([], 3)
    assert waits.done()
    assert informer.revision == 3


async def test_mutation_of_cached_object_is_detected(clock):
    detector = MutationDetector()
    informer = Informer(CONFIG_MAPS, clock=clock, detector=detector)
    informer.put(tree("a", 1, x="1"))
    detector.check()
    informer.lister.get("default", "a")["data"]["x"] = "2"
    with pytest.raises(CacheMutated, match="default/a"):
        detector.check()


POISONED = ([], "x", 7, {"nodeName": [7]}, {"containers": [7]}, {"containers": [{"name": []}]})


def pod(name, version, spec):
    return {"metadata": tree(name, version)["metadata"], "spec": spec, "status": {}}


@pytest.mark.parametrize("spec", POISONED)
async def test_object_of_wrong_type_does_not_affect_others(clock, spec):
    """The invalid object may fail in the view, the index or a handler."""
    informer = Informer(PODS, clock=clock)
    informer.add_index("first", lambda view: [view.object["spec"]["containers"][0]["name"]])
    seen = []
    informer.add_handler(lambda change: seen.append((change.last_known.key.name, change.new is not None)))
    informer.add_handler(lambda change: change.last_known.object["spec"]["containers"][0]["name"])
    good = {"containers": [{"name": "c"}]}
    await informer.replace([pod("bad", 1, spec), pod("good", 2, good)], 3)
    assert ("good", True) in seen
    assert [view.key.name for view in informer.lister.by_index("first", "c")] == ["good"]
    informer.put(pod("bad", 4, good))
    assert len(informer.lister.by_index("first", "c")) == 2
    informer.put(pod("bad", 5, spec))
    informer.remove(pod("bad", 6, spec))
    assert [view.key.name for view in informer.lister.all()] == ["good"]
    assert informer.revision == 6


async def test_unusable_version_is_logged_and_counted_once(clock, caplog):
    counts = InformerStats()
    informer = Informer(PODS, clock=clock, counts=counts)
    informer.add_handler(lambda _: 1 / 0)
    for version in (1, 1, 2):
        informer.put(pod("bad", version, []))
    informer.resync()
    assert counts.unusable.value == 2
    assert ["default/bad" in record.getMessage() for record in caplog.records] == [True, True]


async def test_failed_handler_sees_object_deleted_and_added(clock):
    informer, seen = Informer(CONFIG_MAPS, clock=clock), []

    def handle(change):
        if change.new is not None and change.new["data"].get("x") == "bad":
            raise TypeError
        seen.append((change.old is not None, change.new is not None))

    informer.add_handler(handle)
    for version, x in enumerate(("good", "bad", "bad", "good"), start=1):
        informer.put(tree("a", version, x=x))
    informer.put(tree("a", 5, x="bad"))
    informer.remove(tree("a", 6))
    assert seen == [(False, True), (True, False), (False, True), (True, False)]


async def test_listed_items_without_metadata_are_skipped(informer):
    await informer.replace([{"what": "no object"}, {"metadata": []}, [], tree("a", 1)], 2)
    assert (names(informer), informer.revision) == (["a"], 2)


async def test_object_whose_view_fails_is_absent_until_repaired(clock):
    informer = Informer(PODS, clock=clock)
    informer.put(pod("a", 1, {}))
    recorded = RecordedChanges(informer)
    informer.put(pod("a", 2, []) | {"metadata": tree("a", 2)["metadata"] | {"ownerReferences": 7}})
    assert informer.lister.all() == []
    informer.put(pod("a", 3, {}))
    assert recorded.words == ["+a", "-a", "+a"]


async def test_unusable_object_is_logged_again_after_its_deletion(clock):
    """Another history of the server may have another object at the same version."""
    counts = InformerStats()
    informer = Informer(PODS, clock=clock, counts=counts)
    bad = pod("bad", 1, [])
    informer.add_handler(lambda _: 1 / 0)
    informer.put(bad)
    informer.remove(pod("bad", 2, []))
    informer.put(bad)
    assert counts.unusable.value == 2
    await informer.replace([], 3)
    await informer.replace([bad], 4)
    assert counts.unusable.value == 3


async def test_other_tasks_run_while_a_long_list_enters_the_cache(informer):
    counts = []

    async def watch_size():
        while not informer.is_synced:
            counts.append(len(informer.lister))
            await yield_to_loop()

    watching = asyncio.create_task(watch_size())
    await informer.replace([tree(f"t{number}", number + 1) for number in range(1000)], 1001)
    await watching
    assert len(counts) >= 10
    assert len(informer.lister) == 1000


def test_handlers_of_a_scope_are_removed_together(informer):
    scope, inside, outside = HandlerScope(), [], []
    with scope.active():
        informer.add_handler(inside.append)
    informer.add_handler(outside.append)
    scope.remove_handlers()
    informer.put(tree("a", 1))
    assert (len(inside), len(outside)) == (0, 1)
