"""Partitions: Faults that cut nodes off, whose annotations are in the store."""

import pytest

from mockube.apimachinery import meta
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.wellknown import STOP_HEARTBEATS, STOPPED_BY_FAULT
from mockube.component_base.clock import RealClock
from mockube.etcd.embedded.durable import DurableStore
from tests.support.event_loop import until
from tests.support.server.apiserver import running
from tests.support.server.control import PATH, causes, control_object

FAULTS = f"{PATH}/faults"
NODES = "/api/v1/nodes"
NODE = f"{NODES}/node-1"


@pytest.fixture
async def client():
    async with running() as client:
        await create_node(client)
        yield client


async def create_node(client, annotations=None):
    body = {"metadata": {"name": "node-1", "annotations": annotations or {}}}
    assert (await client.post(NODES, body)).status == 201


async def cut_off(client, name="f"):
    spec = {"match": {"node": "node-1"}, "partition": {}}
    assert (await client.post(FAULTS, control_object("Fault", name, spec=spec))).status == 201


async def connect(client, name="f"):
    assert (await client.delete(f"{FAULTS}/{name}")).status == 200


async def until_annotated(client, value):
    def is_annotated():
        stored = client.server.registry.find_cached(GroupResource("", "nodes"), "", "node-1")
        return stored is not None and meta.annotations(stored.tree()).get(STOP_HEARTBEATS) == value

    await until(is_annotated)


async def annotate(client, value):
    body = {"metadata": {"annotations": {STOP_HEARTBEATS: value}}}
    assert (await client.patch(NODE, body)).status == 200


async def rewind(client, to):
    answer = await client.post(f"{PATH}/rewinds", control_object("Rewind", spec={"to": str(to)}))
    assert answer.status == 201, answer.body


async def now(client):
    return (await client.get("/mockube/at/now")).body["revision"]


async def test_node_is_cut_off_until_its_last_fault_is_deleted(client):
    await cut_off(client)
    await until_annotated(client, STOPPED_BY_FAULT)
    await cut_off(client, "g")
    await connect(client)
    await until_annotated(client, STOPPED_BY_FAULT)
    await connect(client, "g")
    await until_annotated(client, None)


async def test_node_that_its_user_has_disconnected_stays_so(client):
    await annotate(client, "true")
    await cut_off(client)
    await annotate(client, None)
    await until_annotated(client, STOPPED_BY_FAULT)
    await annotate(client, "true")
    await connect(client)
    moment = await now(client)
    await client.server.control.objects.faults.partitions.compare_all()
    await until_annotated(client, "true")
    assert await now(client) == moment


async def test_node_that_is_created_again_is_cut_off(client):
    await cut_off(client)
    await until_annotated(client, STOPPED_BY_FAULT)
    assert (await client.delete(NODE)).status == 200
    await create_node(client)
    await until_annotated(client, STOPPED_BY_FAULT)


async def test_node_is_cut_off_after_a_rewind_to_a_moment_before_its_fault(client):
    before = await now(client)
    await cut_off(client)
    await until_annotated(client, STOPPED_BY_FAULT)
    await rewind(client, before)
    await until_annotated(client, STOPPED_BY_FAULT)
    await connect(client)
    await until_annotated(client, None)


async def test_node_is_connected_after_a_rewind_to_a_moment_with_a_fault_that_is_gone(client):
    await cut_off(client)
    await until_annotated(client, STOPPED_BY_FAULT)
    during = await now(client)
    await connect(client)
    await until_annotated(client, None)
    await rewind(client, during)
    await until_annotated(client, None)


@pytest.mark.parametrize(
    ("value", "after"),
    [pytest.param(STOPPED_BY_FAULT, None, id="fault"), pytest.param("true", "true", id="user")],
)
async def test_server_connects_at_its_start_what_faults_of_an_earlier_one_cut_off(tmp_path, value, after):
    async with running(kv=await DurableStore.open(tmp_path, clock=RealClock())) as client:
        await create_node(client, {STOP_HEARTBEATS: "true"} if value == "true" else None)
        await cut_off(client)
        await until_annotated(client, value)
    async with running(kv=await DurableStore.open(tmp_path, clock=RealClock())) as client:
        await until_annotated(client, after)


async def test_fault_of_a_deleted_node_can_be_labelled(client):
    await cut_off(client)
    assert (await client.delete(NODE)).status == 200
    assert (await client.patch(f"{FAULTS}/f", {"metadata": {"labels": {"a": "b"}}})).status == 200
    changed = await client.patch(f"{FAULTS}/f", {"spec": {"match": {"node": "node-2"}}})
    assert [field for field, _ in causes(changed)] == ["spec.match.node"]
