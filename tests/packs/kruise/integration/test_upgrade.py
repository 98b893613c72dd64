"""Definitions of packs that an earlier server wrote are updated at the start; those that a client changed are kept."""

import contextlib

import pytest

from mockube.apimachinery.yaml_decode import load
from mockube.apiserver.bootstrap.cluster import DEFINITIONS, packed_definitions
from mockube.apiserver.bootstrap.ensure import ensure
from mockube.apiserver.bootstrap.required_object import RequiredObject
from mockube.apiserver.store import open_durable
from mockube.component_base.clock import RealClock
from mockube.etcd.embedded.disk import Disk
from mockube.packs.kruise.pack import PACK
from tests.packs.kruise.support.kruise import BETA_CLONES, CLONES, clone_set
from tests.support.server import apiserver
from tests.support.server.definitions import conditions, established, until

CLONE_SETS = "clonesets.apps.kruise.io"
PATH = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{CLONE_SETS}"


def earlier_definitions():
    """Return the definitions of a server that had only v1alpha1 of CloneSets."""
    for text in PACK.definitions():
        tree = load(text).tree
        yield RequiredObject(
            resource=DEFINITIONS,
            name=tree["metadata"]["name"],
            content={"spec": tree["spec"]},
            is_upgraded=True,
        )


@pytest.fixture
def running(tmp_path):
    """Return a function that runs a server with the pack, on the durable store of the servers before it."""
    data_dir = tmp_path / "data"
    data_dir.mkdir(mode=0o700)

    @contextlib.asynccontextmanager
    async def run():
        kv = await open_durable(data_dir, RealClock(), disk=Disk(fsync=False))
        async with apiserver.running("--packs=kruise", kv=kv) as client:
            yield client

    return run


async def start(client, required_objects):
    return await ensure(client.server.registry, client.server.registry.row, required_objects)


async def test_definition_of_earlier_server_is_updated_and_established(running):
    async with running() as client:
        await start(client, [*earlier_definitions()])
        await established(client, CLONE_SETS)
        assert (await client.post(CLONES, clone_set(updateStrategy={"partition": 1}))).status == 201
    async with running() as client:
        await start(client, packed_definitions(["kruise"]))
        tree = await until(client, CLONE_SETS, lambda seen: seen["metadata"]["generation"] == 2)
        assert tree["status"]["storedVersions"] == ["v1alpha1", "v1beta1"]
        assert conditions(tree)["Established"] == "True"
        beta = (await client.get(f"{BETA_CLONES}/foo")).body["spec"]
        assert beta["updateStrategy"]["rollingUpdate"]["partition"] == 1


async def test_current_definition_is_not_written_again(running):
    async with running() as client:
        await start(client, packed_definitions(["kruise"]))
        before = await established(client, CLONE_SETS)
        assert await start(client, packed_definitions(["kruise"])) == 0
        assert (await client.get(PATH)).body == before


async def test_definition_that_a_client_changed_is_kept_and_logged(running, caplog):
    async with running() as client:
        await start(client, [*earlier_definitions()])
        await client.patch(PATH, {"metadata": {"labels": {"mine": "yes"}}})
        before = await established(client, CLONE_SETS)
        await start(client, packed_definitions(["kruise"]))
        assert (await client.get(PATH)).body == before
    assert [record.args[1] for record in caplog.records if "changed by a client" in record.message] == [
        CLONE_SETS
    ]
