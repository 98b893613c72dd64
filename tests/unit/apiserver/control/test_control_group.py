"""The group of control: the rows of its kinds, its store, and the limits that all kinds share."""

import pytest
from msgspec.structs import replace

from mockube.apimachinery.schema import builtin
from mockube.apimachinery.status import Forbidden
from mockube.apiserver.config.command_line import parse
from mockube.apiserver.control import strategy
from mockube.apiserver.control.group import KINDS
from mockube.apiserver.control.kind import API_VERSION, compile_kinds
from mockube.apiserver.control.marks import MARK, Marks
from mockube.apiserver.control.posted import answer_posted
from mockube.apiserver.control.store import HISTORY, ControlStore
from mockube.apiserver.discovery.aggregated import version_document
from mockube.apiserver.kinds.kind import Group
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation, RequestContext
from mockube.component_base.clock import SteppedClock
from mockube.etcd.errors import Compacted
from mockube.etcd.kv import Put, Range
from tests.support.server.apiserver import ADMIN, running
from tests.support.server.control import PATH, causes, control_object

MARKS = f"{PATH}/marks"


def rows():
    return [compiled.row for compiled in compile_kinds(KINDS, builtin.load())]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.name)
def test_program_that_handles_all_resources_leaves_kind_alone(row):
    document = version_document(Group(name=row.group, resources=(row,)), row.version)
    (listed,) = document["resources"]
    assert not row.namespaced
    assert not row.categories
    assert row.virtual
    assert {"delete", "deletecollection"}.isdisjoint(listed["verbs"])
    assert "deletecollection" not in row.verbs


@pytest.mark.parametrize(
    ("flags", "mode"),
    [
        ((), "unlisted"),
        (("--bind-address=::1",), "unlisted"),
        (("--bind-address=0.0.0.0",), "off"),
        (("--bind-address=192.0.2.1", "--control=on"), "on"),
        (("--control=unlisted",), "unlisted"),
    ],
)
def test_server_that_other_machines_reach_has_no_control_by_default(flags, mode):
    assert parse(flags, {}).control_mode == mode


async def test_store_compacts_its_history():
    store = ControlStore(SteppedClock(), 7)
    for _ in range(2 * HISTORY + 1):
        await store.put(Put(key=b"k", value=b"v"))
    newest = (await store.status()).revision
    assert newest == 7 + 2 * HISTORY + 1
    assert (await store.range(Range(key=b"k", revision=newest - HISTORY))).kvs
    with pytest.raises(Compacted):
        await store.range(Range(key=b"k", revision=newest - HISTORY - 1))


class FewMarks(Marks):
    kind = replace(MARK, max_objects=1)


async def test_number_of_objects_is_limited():
    async with running() as client:
        group = client.server.control.group
        admission = strategy.ControlAdmission([FewMarks(client.server.registry)])
        row = client.server.catalog.rows["control.mockube.dev", "v1alpha1", "marks"]
        attributes = AdmissionAttributes(
            operation=Operation.CREATE,
            context=RequestContext(verb="create", resource=row, user=ADMIN),
            name="b",
            object=control_object("Mark", "b"),
        )
        await admission.mutate(group.registry, attributes)
        assert (await client.post(MARKS, control_object("Mark", "a"))).status == 201
        with pytest.raises(Forbidden, match='"b" is forbidden: there are 1 marks, the maximum: delete one'):
            await admission.mutate(group.registry, attributes)


async def test_large_object_is_refused():
    async with running() as client:
        large = control_object("Mark", "a")
        large["metadata"]["annotations"] = {"a": "x" * strategy.MAX_OBJECT_BYTES}
        refused = await client.post(MARKS, large)
    assert refused.status == 422
    assert causes(refused) == [("<nil>", "Too long: may not be more than 65536 bytes")]


@pytest.mark.parametrize(
    ("metadata", "name"),
    [({}, "default"), ({"generateName": "a-"}, "default"), ({"name": "mine"}, "mine")],
)
def test_posted_object_has_a_name_which_kubectl_prints(metadata, name):
    posted = {"kind": "Rewind", "apiVersion": API_VERSION, "metadata": metadata, "spec": {}}
    answer = answer_posted(posted, {"revision": 7}, "default")
    assert (answer.tree["metadata"]["name"], answer.tree["status"]) == (name, {"revision": 7})
