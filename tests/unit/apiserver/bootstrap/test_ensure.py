"""System objects are created once, changes by users are kept, and fields that describe the server are restored."""

import asyncio
from datetime import timedelta

import pytest
from msgspec.structs import replace

from mockube.apimachinery.timestamps import format_micro_time
from mockube.apiserver.app import ApiServer
from mockube.apiserver.authn.chain import Trust
from mockube.apiserver.bootstrap.apiservices import API_SERVICES, GROUP_PRIORITY
from mockube.apiserver.bootstrap.cluster import (
    CONFIG_MAPS,
    SERVICE_CIDRS,
    SERVICES,
    ServerProperties,
    cluster_objects,
)
from mockube.apiserver.bootstrap.ensure import ensure
from mockube.apiserver.bootstrap.flowcontrol import FLOW_SCHEMAS, LIMITED, SCHEMAS
from mockube.apiserver.bootstrap.identity import LABEL_IDENTITY, LEASES, keep_alive, server_name
from mockube.apiserver.bootstrap.required_object import RequiredObject
from mockube.apiserver.kinds.built_in_kinds import GROUPS
from mockube.apiserver.kinds.metrics.resource_metrics import GROUPS as METRICS
from mockube.apiserver.parts.environment import ServerEnvironment
from mockube.component_base.clock import SteppedClock
from mockube.etcd.embedded.store import MemoryStore
from tests.support.event_loop import WAIT_TIMEOUT, yield_to_loop

APISERVICES_GROUP = API_SERVICES[0]
"""The group of APIServices has no APIService itself."""


def server_properties(port=6443, service_ranges=("10.0.0.0/16",)):
    return ServerProperties(
        port=port,
        service_ranges=service_ranges,
        client_ca=b"ca",
        now="2030-01-01T00:00:00Z",
    )


@pytest.fixture
async def store():
    store = MemoryStore(clock=SteppedClock())
    yield store
    await store.close()


def api_server_with(store):
    return ApiServer(store, ServerEnvironment(trust=Trust(tokens={}), clock=SteppedClock()))


@pytest.fixture
async def server(store):
    async with api_server_with(store) as server:
        yield server


async def ensure_objects(server, **changes):
    return await ensure(
        server.registry,
        server.catalog.rows.__getitem__,
        cluster_objects(server_properties(**changes), GROUPS),
    )


async def read(server, resource, name, namespace=""):
    return (await server.registry.get(server.catalog.rows[resource], namespace, name)).tree()


async def revisions(server):
    """Return the revisions of the created objects, without flow schemas: another task writes their status."""
    registry, resources = server.registry, server.catalog.rows
    objects = [each for each in cluster_objects(server_properties(), GROUPS) if each.resource != FLOW_SCHEMAS]
    keys = [(resources[each.resource], each.namespace, each.name) for each in objects]
    return [(await registry.get(*key)).revision for key in keys]


async def test_system_objects_are_created_once(server):
    assert await ensure_objects(server) > 40
    created = await revisions(server)
    assert await ensure_objects(server) == 0
    assert await revisions(server) == created


async def test_each_revision_has_the_server_as_its_author(server, store):
    first = (await store.status()).revision
    await ensure_objects(server)
    last, noted = (await store.status()).revision, server.registry.journal.entries()
    revisions = [entry.revision for entry in noted if entry.revision > first]
    assert revisions == [*range(first + 1, last + 1)]
    assert {entry.author.user for entry in noted} == {"system:apiserver"}


@pytest.mark.thorough
async def test_concurrently_starting_servers_do_not_conflict(store):
    async with api_server_with(store) as one, api_server_with(store) as two, api_server_with(store) as three:
        made = await asyncio.gather(*map(ensure_objects, (one, two, three)))
        assert sum(made) == len(cluster_objects(server_properties(), GROUPS))
        assert await ensure_objects(one) == 0


async def test_fixed_objects_are_stored_as_create_would_store_them(server):
    await ensure_objects(server)
    wanted = cluster_objects(server_properties(), GROUPS)
    async with api_server_with(MemoryStore(clock=SteppedClock())) as other:
        each = [replace(one, skips_admission=False) for one in wanted]
        await ensure(other.registry, other.catalog.rows.__getitem__, each)
        for one in wanted:
            if one.skips_admission:
                together, alone = (
                    await read(server, one.resource, one.name),
                    await read(other, one.resource, one.name),
                )
                assert together["metadata"].pop("uid") != alone["metadata"].pop("uid")
                for tree in (together, alone):
                    del tree["metadata"]["resourceVersion"]
                    # The status of flow schemas is written concurrently.
                    managers = tree["metadata"]["managedFields"]
                    tree["metadata"]["managedFields"] = [
                        each for each in managers if "subresource" not in each
                    ]
                    if one.resource == FLOW_SCHEMAS:
                        tree.pop("status", None)
                assert together == alone


async def test_kubernetes_service_has_first_address(server):
    await ensure_objects(server)
    service = await read(server, SERVICES, "kubernetes", "default")
    assert (service["spec"]["clusterIP"], service["spec"]["ports"][0]["targetPort"]) == ("10.0.0.1", 6443)


@pytest.mark.parametrize(
    ("before", "flag", "expected"),
    [
        pytest.param(
            ["10.0.0.0/16"], ["10.0.0.0/16", "fd00::/112"], ["10.0.0.0/16", "fd00::/112"], id="added"
        ),
        pytest.param(["10.0.0.0/16"], ["fd00::/112", "10.0.0.0/16"], ["10.0.0.0/16"], id="another first one"),
        pytest.param(
            ["10.0.0.0/16", "fd00::/112"], ["10.0.0.0/16"], ["10.0.0.0/16", "fd00::/112"], id="left out"
        ),
    ],
)
async def test_cluster_can_become_dual_stack(server, before, flag, expected):
    await ensure_objects(server, service_ranges=before)
    await ensure_objects(server, service_ranges=flag)
    ranges = await read(server, SERVICE_CIDRS, "kubernetes")
    assert ranges["spec"]["cidrs"] == expected
    assert ranges["status"]["conditions"][0]["type"] == "Ready"


async def test_existing_object_is_not_changed(server):
    levels = ("flowcontrol.apiserver.k8s.io", "v1", "prioritylevelconfigurations")
    spec = {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 7}}
    own = RequiredObject(resource=levels, name="exempt", content={"spec": spec})
    await ensure(server.registry, server.catalog.rows.__getitem__, [own])
    await ensure_objects(server)
    assert (await read(server, levels, "exempt"))["spec"]["exempt"]["nominalConcurrencyShares"] == 7


async def test_legacy_token_tracking_config_map_has_start_date(server):
    await ensure_objects(server)
    name = "kube-apiserver-legacy-service-account-token-tracking"
    assert (await read(server, CONFIG_MAPS, name, "kube-system"))["data"] == {"since": "2030-01-01"}


async def test_every_served_group_has_an_available_local_api_service(server):
    await ensure_objects(server)
    served = {(group.name, version) for group in GROUPS for version in group.versions}
    for group, version in served:
        if group != APISERVICES_GROUP:
            tree = await read(server, API_SERVICES, f"{version}.{group}")
            (condition,) = tree["status"]["conditions"]
            assert (condition["reason"], condition["status"]) == ("Local", "True")
            assert "service" not in tree["spec"]


def test_every_group_has_its_priority():
    assert set(GROUP_PRIORITY) == {group.name for group in (*GROUPS, *METRICS)} - {APISERVICES_GROUP}


async def test_no_flow_schema_is_dangling(server):
    await ensure_objects(server)
    for schema in SCHEMAS:
        assert schema.level in {"exempt", *LIMITED}

        async with asyncio.timeout(WAIT_TIMEOUT):  # the status is written concurrently
            while "conditions" not in (tree := await read(server, FLOW_SCHEMAS, schema.name)).get(
                "status", {}
            ):
                await yield_to_loop()
        (condition,) = tree["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("Dangling", "False")


async def test_leases_of_absent_servers_are_removed(server):
    clock, backend, row = server.registry.clock, server.registry, server.catalog.rows[LEASES]
    identity, namespace = {LABEL_IDENTITY: "kube-apiserver"}, "kube-system"
    await ensure_objects(server)

    async def lease(name, labels, namespace=namespace, **spec):
        content = {"metadata": {"labels": labels}, "spec": spec}
        one = RequiredObject(resource=LEASES, name=name, namespace=namespace, content=content)
        await ensure(backend, server.catalog.rows.__getitem__, [one])

    past, now = (format_micro_time(clock.now() - timedelta(seconds=ago)) for ago in (61, 59))
    await lease("expired", identity, renewTime=past, leaseDurationSeconds=60)
    await lease("fresh", identity, renewTime=now, leaseDurationSeconds=60)
    await lease("never-renewed", identity)
    await lease("of-another-component", {LABEL_IDENTITY: "other"}, renewTime=past, leaseDurationSeconds=60)
    await lease("elsewhere", identity, namespace="default", renewTime=past, leaseDurationSeconds=60)
    renewing = keep_alive(
        backend, server.catalog.rows.__getitem__, host="a", name="own", holder="own_1", clock=clock
    )
    async with asyncio.timeout(WAIT_TIMEOUT), asyncio.TaskGroup() as tasks:
        task = tasks.create_task(renewing)
        while await backend.find(row, namespace, "never-renewed") is not None:
            await yield_to_loop()
        task.cancel()
    left = {stored.tree()["metadata"]["name"] for stored in backend.list_cached(row.group_resource)}
    assert left == {"fresh", "of-another-component", "elsewhere", "own"}


def test_server_identity_is_stable_and_unique():
    names = {server_name(host, port) for host in ("a", "b") for port in (1, 2)}
    assert len(names) == 4
    assert server_name("a", 1) in names
    assert all(name.startswith("apiserver-") and name == name.lower() for name in names)
