"""A server that is ready only when a controller manager has created what pods in namespace default need."""

import pytest

from tests.support.server import apiserver

NAMESPACE = "/api/v1/namespaces/default"


@pytest.fixture
async def client():
    async with apiserver.running("--ready-after-controllers=true") as client:
        yield client


async def statuses(client):
    return [(await client.get(path)).status for path in ("/readyz", "/healthz", "/livez")]


async def create_config_map(client):
    await client.post(f"{NAMESPACE}/configmaps", {"metadata": {"name": "kube-root-ca.crt"}})


async def create_account(client):
    await client.post(f"{NAMESPACE}/serviceaccounts", {"metadata": {"name": "default"}})


@pytest.mark.parametrize("first", [create_account, create_config_map])
async def test_server_is_ready_when_both_objects_exist(client, first):
    assert await statuses(client) == [500, 500, 200]
    await first(client)
    assert await statuses(client) == [500, 500, 200]
    await create_account(client)
    await create_config_map(client)
    assert await statuses(client) == [200, 200, 200]


async def test_deletion_of_objects_makes_no_server_unready(client):
    await create_account(client)
    await create_config_map(client)
    assert await statuses(client) == [200, 200, 200]
    await client.delete(f"{NAMESPACE}/serviceaccounts/default")
    assert await statuses(client) == [200, 200, 200]


async def test_check_names_missing_object(client):
    await create_account(client)
    answer = await client.get("/readyz/namespace-objects")
    assert answer.data.decode() == (
        "internal server error: configmaps 'kube-root-ca.crt' in namespace 'default' does not exist yet\n"
    )


async def test_server_without_flag_has_no_such_check():
    async with apiserver.running() as client:
        assert (await client.get("/readyz/namespace-objects")).status == 404
        assert await statuses(client) == [200, 200, 200]
