"""What a change of an object does to the state of the cluster, and to the queue."""

import pytest

from mockube.client import kinds
from mockube.client.resources import Key
from tests.support.controllers.scheduler_objects import node, pod
from tests.support.controllers.scheduler_parts import SchedulerParts

WEB = Key("default", "web")
DELETING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
NEW = {"resourceVersion": "2"}


@pytest.fixture
def parts():
    return SchedulerParts()


def nominees(parts):
    return [one.view.key.name for one in parts.state.nominator.pods_on("a")]


async def reject(parts, *plugins):
    """Take the next pod from the queue, which plugins reject."""
    key = await parts.queue.pop()
    parts.queue.add_unschedulable(key, plugins)
    parts.queue.done()
    parts.clock.advance(2)  # after the backoff, and before it is tried without a reason


async def test_pod_waits_in_the_queue_until_it_has_a_node_or_is_deleted(parts):
    parts.put(pod("web"), pod("other"))
    assert parts.active == 2
    parts.put(pod("web", metadata=NEW, nodeName="a"))
    parts.remove(pod("other"))
    assert parts.pending == {}
    assert (parts.state.cache.has_pod("web"), parts.state.cache.has_pod("other")) == (True, False)


async def test_pod_with_gates_is_gated_until_they_are_removed_or_it_is_deleted(parts):
    gates = {"schedulingGates": [{"name": "g"}]}
    parts.put(pod("web", **gates), pod("other", **gates))
    assert parts.pending == {"gated": 2}
    parts.put(pod("web", metadata=NEW))
    assert parts.pending == {"active": 1, "gated": 1}
    parts.remove(pod("other", **gates))
    assert parts.pending == {"active": 1}


async def test_pod_of_another_scheduler_does_not_wait(parts):
    parts.put(pod("web", schedulerName="other"))
    assert parts.pending == {}


async def test_condition_of_a_waiting_pod_does_not_move_it(parts):
    parts.put(pod("web"))
    await reject(parts, "NodeResourcesFit")
    parts.put(pod("web", metadata=NEW, status={"conditions": [{"type": "PodScheduled"}]}))
    assert parts.pending == {"unschedulable": 1}
    parts.put(pod("web", metadata=NEW, labels={"app": "web"}))
    assert parts.pending == {"active": 1}


async def test_new_node_moves_the_pods_that_it_may_help(parts):
    parts.put(pod("web", requests={"cpu": "2"}))
    await reject(parts, "NodeResourcesFit")
    parts.put_nodes(node("small", cpu="1"))
    assert parts.pending == {"unschedulable": 1}
    parts.put_nodes(node("large", cpu="2"))
    assert parts.pending == {"active": 1}
    assert [one.name for one in parts.state.cache.nodes()] == ["small", "large"]
    parts.informers.of(kinds.NODES).remove(node("small") | {"metadata": {"name": "small", **NEW}})
    assert [one.name for one in parts.state.cache.nodes()] == ["large"]


async def test_end_of_a_pod_moves_those_that_wait_for_its_room(parts):
    parts.put(pod("running", nodeName="a"), pod("web"))
    await reject(parts, "NodeResourcesFit")
    parts.remove(pod("running"))
    assert parts.pending == {"active": 1}


async def test_server_confirms_an_assumed_pod_which_is_not_scheduled_again(parts):
    parts.put_nodes(node("a"))
    parts.put(pod("web"))
    assert await parts.queue.pop() == WEB
    parts.assume(pod("web"))
    parts.queue.done()
    parts.put(pod("web", metadata=NEW, labels={"app": "web"}))
    assert (parts.active, parts.state.cache.is_assumed("web")) == (0, True)
    parts.put(pod("web", metadata=NEW, nodeName="a"))
    assert (parts.pending, parts.state.cache.is_assumed("web")) == ({}, False)
    assert parts.state.cache.has_pod("web")


async def test_nomination_by_another_program_is_followed_until_it_ends(parts):
    parts.put(pod("web"), pod("nominee", status={"nominatedNodeName": "a"}))
    assert nominees(parts) == ["nominee"]
    parts.queue.delete(Key("default", "nominee"))
    await reject(parts, "NodeResourcesFit")
    parts.put(pod("nominee", metadata=NEW))
    assert nominees(parts) == []
    assert parts.pending == {"active": 1}, "the room of the nominee is free"


async def test_deleted_nominee_frees_its_room(parts):
    nominee = pod("nominee", status={"nominatedNodeName": "a"})
    parts.put(pod("web"))
    await reject(parts, "NodeResourcesFit")
    parts.put(nominee)
    parts.remove(nominee)
    assert parts.pending == {"active": 1}


@pytest.mark.parametrize("end", [{"nodeName": "a"}, {"metadata": {**NEW, **DELETING}}])
async def test_nomination_ends_with_the_wait(parts, end):
    parts.put(pod("nominee", status={"nominatedNodeName": "a"}))
    parts.put(pod("nominee", **{"metadata": NEW, "status": {"nominatedNodeName": "a"}, **end}))
    assert nominees(parts) == []


async def test_pod_that_replaces_one_of_its_name_is_another_pod(parts):
    parts.put(pod("web", nodeName="a"))
    parts.put(pod("web", metadata={"uid": "second", **NEW}))
    assert not parts.state.cache.has_pod("web")
    assert parts.active == 1


async def test_failed_binding_makes_a_pod_wait_again_with_backoff(parts):
    parts.put_nodes(node("a"))
    parts.put(pod("web"))
    assert await parts.queue.pop() == WEB
    pod_info = parts.assume(pod("web"))
    parts.queue.done()
    parts.put(pod("web", metadata=NEW, labels={"app": "web"}))
    latest = parts.handlers.forget_assumed_pod(pod_info.view)
    assert latest.labels == {"app": "web"}
    assert not parts.state.cache.has_pod("web")
    parts.clock.advance(1)
    assert parts.pending == {"active": 1}


@pytest.mark.parametrize("present", [None, {"metadata": {"uid": "second", **NEW}}])
async def test_failed_binding_of_a_pod_that_has_gone_needs_no_retry(parts, present):
    parts.put_nodes(node("a"))
    parts.put(pod("web"))
    pod_info = parts.assume(pod("web"))
    parts.remove(pod("web"))
    if present is not None:
        parts.put(pod("web", **present))
    assert parts.handlers.forget_assumed_pod(pod_info.view) is None
    assert not parts.state.cache.has_pod("web")
    assert parts.active == (present is not None)


async def test_only_labels_of_namespaces_concern_decisions(parts):
    def namespace(version, **fields):
        return {"metadata": {"name": "n", "resourceVersion": version, **fields}}

    parts.put(namespace("1"), namespace("2", labels={"a": "b"}), resource=kinds.NAMESPACES)
    assert parts.algorithm.forgets == 1
    parts.put(namespace("3", labels={"a": "b"}, annotations={"c": "d"}), resource=kinds.NAMESPACES)
    assert parts.algorithm.forgets == 1


async def test_change_of_storage_marks_its_node_and_moves_the_pods_that_wait_for_it(parts):
    parts.put_nodes(node("a"), node("b"))
    parts.put(pod("web"))
    await reject(parts, "NodeVolumeLimits")
    generation = parts.state.cache.generation
    csi_node = {"metadata": {"name": "a", "resourceVersion": "1"}, "spec": {"drivers": []}}
    parts.put(csi_node, resource=kinds.CSI_NODES)
    assert parts.state.cache.changed_since(generation) == ["a"]
    assert parts.active == 1


async def test_devices_are_tracked_from_the_first_pod_that_needs_them(parts):
    parts.put(pod("web"))
    assert parts.state.devices is None
    claims = [{"name": "gpu", "resourceClaimName": "gpu"}]
    parts.put(pod("trainer", resourceClaims=claims))
    assert parts.state.devices is not None
    assert parts.active == 1, "the claim does not exist"
    claim = {"metadata": {"name": "gpu", "namespace": "default", "uid": "gpu", "resourceVersion": "1"}}
    parts.put({**claim, "spec": {}, "status": {}}, resource=kinds.RESOURCE_CLAIMS)
    assert parts.active == 2


async def test_nomination_of_an_assumed_pod_is_not_followed(parts):
    parts.put_nodes(node("a"))
    parts.put(pod("web"))
    parts.assume(pod("web"))
    parts.put(pod("web", metadata=NEW, status={"nominatedNodeName": "a"}))
    assert nominees(parts) == []
