"""Bootstrap roles are created at start, reconciled later, and left unchanged if their annotation disables it."""

import pytest

from mockube.apiserver.bootstrap import rbac
from mockube.apiserver.bootstrap.ensure import ensure
from tests.support.server import apiserver

GROUP = "/apis/rbac.authorization.k8s.io/v1"
ROLE, BINDING = f"{GROUP}/clusterroles/system:discovery", f"{GROUP}/clusterrolebindings/system:discovery"


@pytest.fixture
async def client():
    async with apiserver.running_with_roles() as client:
        yield client


async def reconcile(client):
    assert await client.server.bootstrap_roles.reconcile()


async def replace_fields(client, path, **fields):
    """Replace fields of an object; return the object as it was before."""
    before = (await client.get(path)).body
    answer = await client.put(path, before | fields)
    assert answer.status == 200, answer.body
    return before


def content(tree):
    metadata = {name: tree["metadata"].get(name) for name in ("name", "labels", "annotations")}
    return {**tree, "metadata": metadata}


async def test_bootstrap_roles_match_real_cluster(client):
    counts = {
        resource: len((await client.get(f"{GROUP}/{resource}")).body["items"])
        for resource in ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
    }
    assert counts == {"clusterroles": 73, "clusterrolebindings": 54, "roles": 7, "rolebindings": 7}
    assert (await client.get(ROLE)).body["metadata"]["annotations"] == {rbac.AUTOUPDATE: "true"}


@pytest.mark.parametrize("path", [ROLE, BINDING, f"{GROUP}/clusterroles/view"])
async def test_roles_created_in_bulk_equal_roles_created_singly(client, path):
    together = (await client.get(path)).body
    (wanted,) = (
        one for one in rbac.policy() if path == f"{GROUP}/{one.resource[2]}/{one.name}" and not one.namespace
    )
    await client.delete(path)
    await client.server.registry.watch_cache.fresh()
    await ensure(client.server.registry, client.server.catalog.rows.__getitem__, [wanted])
    alone = (await client.get(path)).body
    for tree in (together, alone):
        for name in ("uid", "resourceVersion", "creationTimestamp"):
            del tree["metadata"][name]
        for entry in tree["metadata"]["managedFields"]:
            del entry["time"]
    assert list(alone) == list(together)
    assert alone == together


async def test_removed_rules_return_and_added_rules_stay(client):
    own = {"verbs": ["get"], "nonResourceURLs": ["/own"]}
    before = await replace_fields(client, ROLE, rules=[own])
    bound = await replace_fields(client, BINDING, subjects=None)
    await reconcile(client)
    rules = (await client.get(ROLE)).body["rules"]
    assert rules[0] == own
    urls = [url for rule in rules[1:] for url in rule["nonResourceURLs"]]
    assert urls == before["rules"][0]["nonResourceURLs"]
    assert (await client.get(BINDING)).body["subjects"] == bound["subjects"]


async def test_second_reconciliation_changes_nothing(client):
    before = (await client.get(f"{GROUP}/clusterroles")).body["metadata"]["resourceVersion"]
    await reconcile(client)
    assert (await client.get(f"{GROUP}/clusterroles")).body["metadata"]["resourceVersion"] == before


async def test_role_with_autoupdate_false_is_kept(client):
    metadata = (await client.get(ROLE)).body["metadata"] | {"annotations": {rbac.AUTOUPDATE: "false"}}
    await replace_fields(client, ROLE, rules=None, metadata=metadata)
    await reconcile(client)
    assert (await client.get(ROLE)).body["rules"] is None


async def test_binding_to_other_role_is_recreated(client):
    before = (await client.get(BINDING)).body
    await client.delete(BINDING)
    role = before["roleRef"] | {"name": "cluster-admin"}
    made = {"metadata": {"name": "system:discovery"}, "roleRef": role, "subjects": before["subjects"]}
    assert (await client.post(f"{GROUP}/clusterrolebindings", made)).status == 201
    await reconcile(client)
    assert content((await client.get(BINDING)).body) == content(before)


async def test_readiness_fails_by_name_until_roles_exist(client):
    client.server.bootstrap_roles.expect()
    assert (await client.get("/readyz/poststarthook/rbac/bootstrap-roles")).status == 500
    ready = []
    client.server.bootstrap_roles.when_ready(lambda: ready.append(True))
    assert ready == []
