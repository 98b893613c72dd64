"""The interpreter's garbage collector is paused while clusters start, and frees what clusters leave."""

import gc
import weakref

import pytest

from mockube.embedded.garbage_collection import GARBAGE_OF_A_CLUSTER, PythonGarbageCollector

OLDEST = 2
CLUSTERS_AT_MOST = 1000


class Circle:
    """An object that only the garbage collector frees."""

    def __init__(self):
        self.itself = self


@pytest.fixture(autouse=True)
def restored_collection():
    was_enabled = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if was_enabled else gc.disable)()


@pytest.fixture
def nothing_frozen():
    """Thaw what the test run has frozen, for one test."""
    gc.unfreeze()
    yield
    gc.freeze()


def is_in_oldest_generation(wanted):
    return any(one is wanted for one in gc.get_objects(generation=OLDEST))


@pytest.mark.thorough
@pytest.mark.parametrize("is_enabled", [True, False])
def test_collector_is_paused_until_all_blocks_have_ended(is_enabled):
    (gc.enable if is_enabled else gc.disable)()
    collector = PythonGarbageCollector()
    with collector.pause():
        with collector.pause():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled() is is_enabled


@pytest.mark.thorough
@pytest.mark.usefixtures("nothing_frozen")
def test_objects_of_the_block_are_not_examined_as_young_ones():
    with PythonGarbageCollector().pause():
        created = Circle()
        assert not is_in_oldest_generation(created)
    assert is_in_oldest_generation(created)


@pytest.mark.thorough
def test_frozen_objects_of_the_process_stay_frozen():
    gc.freeze()
    frozen = gc.get_freeze_count()
    with PythonGarbageCollector().pause():
        pass
    assert gc.get_freeze_count() == frozen


@pytest.mark.thorough
def test_enough_ended_clusters_are_collected():
    collector = PythonGarbageCollector()
    with collector.pause():
        garbage = weakref.ref(Circle())
    ended = 0
    while garbage() is not None and ended < CLUSTERS_AT_MOST:
        collector.count_ended_cluster()
        ended += 1
    assert garbage() is None
    assert ended > 1


@pytest.mark.thorough
def test_process_with_many_objects_collects_less_often():
    collector = PythonGarbageCollector()
    objects = [[] for _ in range(40 * GARBAGE_OF_A_CLUSTER)]
    for _ in range(10):  # the first collection counts the objects
        collector.count_ended_cluster()
    with collector.pause():
        garbage = weakref.ref(Circle())
    for _ in range(20):
        collector.count_ended_cluster()
    assert garbage() is not None
    assert objects


@pytest.mark.thorough
def test_disabled_collector_stays_unused():
    gc.disable()
    collector = PythonGarbageCollector()
    garbage = weakref.ref(Circle())
    for _ in range(CLUSTERS_AT_MOST):
        collector.count_ended_cluster()
    assert garbage() is not None


@pytest.mark.thorough
def test_finalizer_that_ends_a_cluster_does_not_wait_for_the_collection():
    collector = PythonGarbageCollector()
    ended = []

    class Closing(Circle):
        def __del__(self):
            collector.count_ended_cluster()
            ended.append(self)

    Closing()
    for _ in range(CLUSTERS_AT_MOST):
        collector.count_ended_cluster()
        if ended:
            break
    assert ended
