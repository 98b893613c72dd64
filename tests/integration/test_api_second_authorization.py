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


async def test_deletion_of_unreadable_object_needs_a_verb_of_its_own(admin, alice):
    option = {"ignoreStoreReadErrorWithClusterBreakingPotential": True}
    await admin.put(LEASE, lease())
    await grant(admin, ["delete"], "leases")
    refused = await alice.send("DELETE", LEASE, option)
    assert refused.status == 403
    assert 'not permitted to do "unsafe-delete-ignore-read-errors", reason: ' in refused.body["message"]
    await grant(admin, ["unsafe-delete-ignore-read-errors"], "leases")
    assert (await alice.send("DELETE", LEASE, option)).status == 409  # it can be read


@pytest.mark.parametrize(("minor", "groups"), [("1.36", ["system:nodes"]), ("1.35", [])])
async def test_impersonated_node_has_group_in_constrained_mode_only(minor, groups):
    async with apiserver.running_with_roles(f"--kubernetes-version={minor}") as admin:
        review = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        answer = await admin.post(review, {}, Impersonate_User="system:node:n1")
        assert answer.body["status"]["userInfo"]["groups"] == [*groups, "system:authenticated"]


@pytest.mark.parametrize(("minor", "status"), [("1.35", 403), ("1.34", 400)])
async def test_websocket_of_exec_needs_create_since_its_minor(minor, status):
    async with apiserver.running_with_roles(f"--kubernetes-version={minor}") as admin:
        await grant(admin, ["get"], "pods/exec")
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        account = {"metadata": {"name": "default"}}
        await admin.post("/api/v1/namespaces/default/serviceaccounts", account)
        assert (await admin.post("/api/v1/namespaces/default/pods", pod)).status == 201
        alice = Client(admin.session, admin.url, authorization="Bearer alice")
        answer = await alice.get("/api/v1/namespaces/default/pods/p/exec?command=ls&stdout=1")
        assert answer.status == status, answer.body


CLAIMS = "/apis/resource.k8s.io/{}/namespaces/default/resourceclaims"


@pytest.mark.parametrize(("minor", "version", "status"), [("1.36", "v1", 422), ("1.35", "v1", 200)])
async def test_allocation_of_claim_needs_binding_since_its_minor(minor, version, status):
    async with apiserver.running_with_roles(f"--kubernetes-version={minor}") as admin:
        await grant(admin, ["patch"], "resourceclaims/status")
        path = CLAIMS.format(version)
        request = {"name": "r", "exactly": {"deviceClassName": "k"}}
        claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}
        assert (await admin.post(path, claim)).status == 201
        alice = Client(admin.session, admin.url, authorization="Bearer alice")
        result = {"request": "r", "driver": "d.example", "pool": "p", "device": "x"}
        allocation = {"status": {"allocation": {"devices": {"results": [result]}}}}
        assert (await alice.patch(f"{path}/c/status", allocation)).status == status


async def test_cluster_role_binding_to_role_is_bad_request_before_rights_are_compared(admin, alice):
    await grant(admin, ["create"], "clusterrolebindings")
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "nope"}
    answer = await alice.post(
        f"{RBAC}/clusterrolebindings", {"metadata": {"name": "b"}, "roleRef": reference}
    )
    assert (answer.status, answer.body["message"]) == (400, "Namespace parameter required.")


@pytest.mark.parametrize(
    ("reference", "status", "message"),
    [
        ({"kind": "ClusterRole", "name": ""}, 400, "Name parameter required."),
        (
            {"kind": "ClusterRole", "name": "a/b"},
            400,
            "Name parameter invalid: \"a/b\": may not contain '/'",
        ),
        ({"kind": "clusterrole", "name": "view"}, 500, 'unsupported role reference kind: "clusterrole"'),
    ],
)
async def test_binding_to_malformed_role_is_refused_as_by_the_storage_of_roles(
    admin, alice, reference, status, message
):
    await grant(admin, ["create"], "clusterrolebindings")
    reference |= {"apiGroup": "rbac.authorization.k8s.io"}
    answer = await alice.post(
        f"{RBAC}/clusterrolebindings", {"metadata": {"name": "b"}, "roleRef": reference}
    )
    assert (answer.status, answer.body["message"]) == (status, message)


SECRETS = "/api/v1/namespaces/default/secrets"
OLD_PATH = "/api/v1/watch/namespaces/default/secrets"
NAMED = "fieldSelector=metadata.name%3Da"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{SECRETS}?{NAMED}", 200),
        pytest.param(
            f"{SECRETS}?watch=1&resourceVersion=x&{NAMED}", 500, id="an authorized watch from no version"
        ),
        pytest.param(f"{OLD_PATH}/a?resourceVersion=x", 500, id="the name of an old path"),
        pytest.param(
            f"{OLD_PATH}?resourceVersion=x&{NAMED}", 403, id="the old path of a watch has no selectors"
        ),
        pytest.param(
            f"{SECRETS}?limit=x&{NAMED}", 403, id="none of the options is read if a number is invalid"
        ),
        pytest.param(f"{SECRETS}?labelSelector=a,,b&{NAMED}", 403, id="or if a selector is invalid"),
    ],
)
async def test_selected_name_is_authorized_like_the_name_of_a_path(admin, alice, path, status):
    await grant(admin, ["list", "watch"], "secrets", resourceNames=["a"])
    assert (await alice.get(path)).status == status
