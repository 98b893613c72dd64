"""Many Leases of nodes are renewed by one request, and each as by a patch of its own."""

import orjson
import pytest

from mockube.apimachinery.lease_renewals import MAX_NAMES, PATH
from mockube.component_base.clock import SteppedClock
from tests.support.server.apiserver import running, running_with_roles

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
AGENT = {"User_Agent": "kube-controller-manager/v1"}
BEFORE, AFTER = "2030-01-01T00:00:00.000000Z", "2030-01-01T00:00:10.500000Z"


@pytest.fixture
async def client():
    async with running(clock=SteppedClock()) as client:
        await client.post("/api/v1/namespaces", {"metadata": {"name": "kube-node-lease"}})
        yield client


async def create(client, name, holder=None, agent=AGENT):
    spec = {"holderIdentity": holder or name, "leaseDurationSeconds": 40, "renewTime": BEFORE}
    answer = await client.post(LEASES, {"metadata": {"name": name}, "spec": spec}, **agent)
    assert answer.status == 201, answer.data


async def renew(client, *names):
    answer = await client.post(PATH, {"names": names, "renewTime": AFTER}, **AGENT)
    assert answer.status == 200, answer.data
    return answer.body["notRenewed"]


async def lease(client, name):
    return (await client.get(f"{LEASES}/{name}")).body


async def test_renewal_changes_what_a_patch_changes(client):
    for name in ("node-0", "node-1"):
        await create(client, name)
    client.server.registry.clock.advance(10)
    assert await renew(client, "node-0") == []
    await client.patch(f"{LEASES}/node-1", {"spec": {"holderIdentity": "node-1", "renewTime": AFTER}}, **AGENT)  # fmt: skip
    renewed, patched = [await lease(client, name) for name in ("node-0", "node-1")]
    assert renewed["spec"] == patched["spec"] | {"holderIdentity": "node-0"}
    assert renewed["metadata"]["managedFields"] == patched["metadata"]["managedFields"]
    assert renewed["metadata"]["managedFields"][0]["time"] == "2030-01-01T00:00:10Z"


async def test_each_renewal_is_an_event_with_a_version_of_its_own(client):
    names = [f"node-{number}" for number in range(120)]
    for name in names:
        await create(client, name)
    listed = (await client.get(LEASES)).body["metadata"]["resourceVersion"]
    async with client.watch(f"{LEASES}?watch=1&resourceVersion={listed}") as events:
        assert await renew(client, *names) == []
        seen = [await anext(events) for _ in names]
    assert {event["type"] for event in seen} == {"MODIFIED"}
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in seen]
    assert versions == sorted(set(versions))
    assert sorted(event["object"]["metadata"]["name"] for event in seen) == sorted(names)
    assert {event["object"]["spec"]["renewTime"] for event in seen} == {AFTER}


async def test_leases_that_need_more_than_a_renewal_are_returned_unchanged(client):
    await create(client, "node-0")
    await create(client, "other-holder", holder="node-9")
    await create(client, "other-manager", agent={"User_Agent": "kubelet/v1"})
    await create(client, "two-managers")
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"renewTime": BEFORE}}
    path = f"{LEASES}/two-managers?fieldManager=other"
    await client.patch(path, body, kind="apply-patch+yaml")
    await create(client, "no-manager")
    nobody = {"metadata": {"managedFields": [{}]}}
    await client.patch(f"{LEASES}/no-manager", nobody, **AGENT)
    names = ["other-holder", "other-manager", "two-managers", "no-manager"]
    before = [await lease(client, name) for name in names]
    assert await renew(client, "missing", "node-0", *names, "..") == ["missing", *names, ".."]
    assert [await lease(client, name) for name in names] == before
    assert (await lease(client, "node-0"))["spec"]["renewTime"] == AFTER


async def test_admission_may_refuse_a_renewal(client):
    await create(client, "node-0")
    group = "/apis/admissionregistration.k8s.io/v1"
    rule = {"apiGroups": ["coordination.k8s.io"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["leases"]}  # fmt: skip
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "object.spec.renewTime == oldObject.spec.renewTime"}],
    }
    await client.post(f"{group}/validatingadmissionpolicies", {"metadata": {"name": "p"}, "spec": spec})
    binding = {"policyName": "p", "validationActions": ["Deny"]}
    await client.post(
        f"{group}/validatingadmissionpolicybindings", {"metadata": {"name": "p"}, "spec": binding}
    )
    assert await renew(client, "node-0") == ["node-0"]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        pytest.param({}, "missing required field", id="no fields"),
        pytest.param({"names": "node-0", "renewTime": AFTER}, "Expected `array`", id="no list"),
        pytest.param({"names": [], "renewTime": "2030-01-01T00:00:10Z"}, "", id="no microseconds"),
        pytest.param({"names": [], "renewTime": AFTER, "x": 1}, "unknown field `x`", id="unknown field"),
        pytest.param(
            {"names": ["a"] * (MAX_NAMES + 1), "renewTime": AFTER},
            "a request renews at most 1000 Leases, not 1001",
            id="too many",
        ),
    ],
)
async def test_invalid_request_is_refused(client, body, error):
    answer = await client.post(PATH, body)
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")
    assert error in answer.body["message"]


async def test_only_post_is_supported(client):
    assert (await client.get(PATH)).status == 405


async def test_renewals_need_the_right_to_patch_leases():
    async with running_with_roles() as admin:
        roles = "/apis/rbac.authorization.k8s.io/v1"
        rules = [{"verbs": ["post"], "nonResourceURLs": [PATH]}]
        await admin.post(f"{roles}/clusterroles", {"metadata": {"name": "r"}, "rules": rules})
        subject = {"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}
        ref = {"kind": "ClusterRole", "name": "r", "apiGroup": "rbac.authorization.k8s.io"}
        await admin.post(
            f"{roles}/clusterrolebindings", {"metadata": {"name": "b"}, "subjects": [subject], "roleRef": ref}
        )
        await admin.server.registry.watch_cache.fresh()
        alice = type(admin)(admin.session, admin.url, authorization="Bearer alice")
        answer = await alice.post(PATH, {"names": ["node-0"], "renewTime": AFTER})
        assert answer.status == 403
        assert 'cannot patch resource "leases"' in answer.body["message"]
        assert 'in the namespace "kube-node-lease"' in answer.body["message"]


async def test_server_that_observes_single_requests_does_not_serve_renewals(tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_bytes(orjson.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}))  # fmt: skip
    flags = f"--audit-log-path={tmp_path / 'audit.log'}", f"--audit-policy-file={policy}"
    async with running(*flags) as client:
        assert (await client.post(PATH, {"names": [], "renewTime": AFTER})).status == 404
