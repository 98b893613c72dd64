"""Requests that need a second permission, besides the one for the method and path of the request."""

import pytest

from tests.support.server import apiserver, definitions
from tests.support.server.apiserver import Client

RBAC = "/apis/rbac.authorization.k8s.io/v1"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/new"
REFUSED = (
    'leases.coordination.k8s.io "new" is forbidden: User "alice" cannot create resource "leases" '
    'in API group "coordination.k8s.io" in the namespace "default"'
)


@pytest.fixture
async def admin():
    async with apiserver.running_with_roles() as client:
        yield client


@pytest.fixture
def alice(admin):
    return Client(admin.session, admin.url, authorization="Bearer alice")


async def grant(admin, verbs, *resources, groups="*", **rule):
    """Add a rule for resources in all namespaces to alice."""
    rules = [{"apiGroups": [groups], "resources": [*resources], "verbs": verbs, **rule}]
    name = "-".join(["granted", *verbs])
    role = {"metadata": {"name": name}, "rules": rules}
    assert (await admin.post(f"{RBAC}/clusterroles", role)).status == 201
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    binding = {"metadata": {"name": name}, "subjects": [subject], "roleRef": reference}
    assert (await admin.post(f"{RBAC}/clusterrolebindings", binding)).status == 201
    await admin.server.registry.watch_cache.fresh()


def lease(**spec):
    return {
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "new"},
        "spec": spec or {"holderIdentity": "a"},
    }  # fmt: skip


async def apply(client, path, body, options=""):
    return await client.patch(f"{path}?fieldManager=a{options}", body, kind="apply-patch+yaml")


async def replace(client, path, body, options=""):
    return await client.put(f"{path}?fieldManager=a{options}", body)


WRITES = pytest.mark.parametrize(("write", "verb"), [(apply, "patch"), (replace, "update")])


@WRITES
@pytest.mark.parametrize("options", ["", "&dryRun=All"])
async def test_write_of_missing_object_needs_create(admin, alice, write, verb, options):
    await grant(admin, [verb], "leases")
    answer = await write(alice, LEASE, lease(), options)
    assert (answer.status, answer.body["message"]) == (403, REFUSED)
    assert (await admin.get(LEASE)).status == 404
    await grant(admin, ["create"], "leases")
    assert (await write(alice, LEASE, lease(), options)).status == 201


@WRITES
async def test_write_of_existing_object_needs_no_create(admin, alice, write, verb):
    await grant(admin, [verb], "leases")
    stored = (await admin.put(LEASE, lease(holderIdentity="b"))).body
    del stored["metadata"]["managedFields"]
    assert (await write(alice, LEASE, stored)).status == 200


@WRITES
async def test_permission_to_create_one_name_is_sufficient(admin, alice, write, verb):
    await grant(admin, [verb, "create"], "leases", resourceNames=["new"])
    assert (await write(alice, LEASE, lease())).status == 201


@WRITES
async def test_invalid_missing_object_is_invalid_before_create_is_refused(admin, alice, write, verb):
    await grant(admin, [verb], "leases")
    assert (await write(alice, LEASE, lease(leaseDurationSeconds=-1))).status == 422


async def test_apply_of_missing_custom_object_needs_create(admin, alice):
    await definitions.define(admin, definitions.definition())
    await grant(admin, ["patch"], "widgets")
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "new"}}
    answer = await apply(alice, f"{definitions.WIDGETS}/new", body)
    assert (answer.status, answer.body["details"]["group"]) == (403, "example.com")
    await grant(admin, ["create"], "widgets")
    assert (await apply(alice, f"{definitions.WIDGETS}/new", body)).status == 201
