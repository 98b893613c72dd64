"""What a change of an object does to the state of the cluster, and to the queue."""

import pytest

from mockube.client import kinds
from mockube.client.resources import Key
from tests.support.controllers.scheduler_objects import near, node, pod, term
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


WITH_GATE = {"schedulingGates": [{"name": "g"}]}
AT_A = {"nominatedNodeName": "a"}


async def test_nomination_of_a_pod_that_does_not_wait_frees_no_room(parts):
    parts.put(pod("web"))
    await reject(parts, "NodeResourcesFit")
    parts.put(pod("gated", status=AT_A, **WITH_GATE))
    assert (nominees(parts), parts.pending) == ([], {"unschedulable": 1, "gated": 1})


async def test_nomination_counts_from_the_end_of_the_gates(parts):
    parts.put(pod("gated", status=AT_A, **WITH_GATE))
    parts.put(pod("gated", metadata=NEW, status=AT_A))
    assert nominees(parts) == ["gated"]


async def test_nomination_that_stays_is_not_made_again(parts):
    """The scheduler may have ended it, and has not written that yet."""
    parts.put(pod("nominee", status=AT_A))
    parts.state.nominator.delete("nominee")
    parts.put(pod("nominee", metadata=NEW, status=AT_A, labels={"app": "web"}))
    assert nominees(parts) == []


NEAR_DATABASE = {"affinity": near(term("zone", {"app": "db"}))}
DATABASE = {"labels": {"app": "db"}}


async def wait_for_database(parts):
    parts.put(pod("web", **NEAR_DATABASE))
    await reject(parts, "InterPodAffinity")
    assert parts.active == 0


async def test_assumed_pod_that_is_bound_is_new_for_those_that_wait(parts):
    parts.put_nodes(node("a"))
    parts.put(pod("db", **DATABASE))
    await parts.queue.pop()
    parts.assume(pod("db", **DATABASE))
    parts.queue.done()
    await wait_for_database(parts)
    parts.put(pod("db", metadata=NEW, nodeName="a", **DATABASE))
    assert parts.pending == {"active": 1}, "the waiting pod"


async def test_pod_that_another_scheduler_binds_is_new_for_those_that_wait(parts):
    await wait_for_database(parts)
    parts.put(pod("db", **DATABASE))
    parts.put(pod("db", metadata=NEW, nodeName="a", **DATABASE))
    assert parts.pending == {"active": 1}


async def test_status_of_a_bound_pod_moves_no_other(parts):
    parts.put(pod("db", nodeName="a", **DATABASE))
    await wait_for_database(parts)
    parts.put(pod("db", metadata=NEW, nodeName="a", status={"phase": "Running"}, **DATABASE))
    assert parts.pending == {"unschedulable": 1}
    parts.put(pod("db", metadata=NEW, nodeName="a", status={"phase": "Succeeded"}, **DATABASE))
    assert not parts.state.cache.has_pod("db")


async def test_pod_whose_claim_is_deleted_waits_for_another_one(parts):
    def claim(**fields):
        metadata = {"name": "gpu", "namespace": "default", "uid": "gpu", "resourceVersion": "1", **fields}
        return {"metadata": metadata, "spec": {}, "status": {}}

    with_claim = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}
    parts.put(claim(), resource=kinds.RESOURCE_CLAIMS)
    parts.put(pod("trainer", **with_claim))
    assert parts.pending == {"active": 1}
    parts.put(claim(**NEW, **DELETING), resource=kinds.RESOURCE_CLAIMS)
    parts.put(pod("trainer", metadata=NEW, labels={"app": "trainer"}, **with_claim))
    assert parts.pending == {}


async def test_heartbeat_of_a_node_moves_no_pod(parts):
    parts.put_nodes(node("a"))
    parts.put(pod("web"))
    await reject(parts, "NodePorts")
    parts.put_nodes(node("a", status={"conditions": [{"type": "Ready"}]}))
    assert parts.pending == {"unschedulable": 1}


async def test_change_of_devices_moves_the_pods_that_wait_for_them(parts):
    claim = {"metadata": {"name": "gpu", "namespace": "default", "uid": "gpu", "resourceVersion": "1"}}
    parts.put({**claim, "spec": {}, "status": {}}, resource=kinds.RESOURCE_CLAIMS)
    parts.put(pod("trainer", resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}]))
    await reject(parts, "DynamicResources")
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    slice_of_devices = {
        "metadata": {"name": "s", "resourceVersion": "1"},
        "spec": {"driver": "d", "pool": pool},
    }
    parts.put(slice_of_devices, resource=kinds.RESOURCE_SLICES)
    assert parts.pending == {"active": 1}
