"""Who may request and sign pods' certificates, and say which certificates are the authorities of a signer."""

from datetime import timedelta

import pytest

from mockube.apiserver.authz.rights import DEFAULT_MODES
from mockube.component_base.clock import RealClock
from tests.support.server import apiserver
from tests.support.server.pod_certificates import SIGNER, authority, certificate, spec

CERTIFICATES = "/apis/certificates.k8s.io/v1"
BUNDLES = f"{CERTIFICATES}/clustertrustbundles"
REQUESTS = f"{CERTIFICATES}/namespaces/default/podcertificaterequests"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
NODE = {"Impersonate_User": "system:node:n", "Impersonate_Group": "system:nodes"}
ALICE = {"Impersonate_User": "alice"}
VOLUME = {"name": "v", "projected": {"sources": [{"podCertificate": {
    "signerName": SIGNER, "keyType": "ED25519", "credentialBundlePath": "c"}}]}}  # fmt: skip


@pytest.fixture
async def client():
    flag = "--enable-admission-plugins=NodeRestriction"
    async with apiserver.running(flag, modes=DEFAULT_MODES) as client:
        yield client


async def grant(client, name, *rules):
    await client.post(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules})
    subject = {"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "ClusterRole", "name": name, "apiGroup": "rbac.authorization.k8s.io"}
    await client.post(
        f"{RBAC}/clusterrolebindings", {"metadata": {"name": name}, "subjects": [subject], "roleRef": role}
    )


def rule(resource, *verbs, **more):
    return {"apiGroups": ["certificates.k8s.io"], "resources": [resource], "verbs": verbs, **more}


def text(time):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def issued():
    begin = RealClock().now().replace(microsecond=0)
    end = begin + timedelta(hours=24)
    condition = {
        "type": "Issued",
        "status": "True",
        "reason": "R",
        "message": "",
        "lastTransitionTime": text(begin),
    }
    times = {
        "notBefore": text(begin),
        "notAfter": text(end),
        "beginRefreshAt": text(begin + timedelta(hours=9)),
    }
    return {"status": {"conditions": [condition], "certificateChain": certificate(begin, end), **times}}


async def test_bundle_of_signer_needs_permission_to_attest(client):
    await grant(client, "bundles", rule("clustertrustbundles", "*"))
    anchors = authority(RealClock().now())
    of_nobody = {"metadata": {"name": "a"}, "spec": {"trustBundle": anchors}}
    of_signer = {
        "metadata": {"name": "example.com:signer:a"},
        "spec": {"trustBundle": anchors, "signerName": SIGNER},
    }
    assert (await client.post(BUNDLES, of_nobody, **ALICE)).status == 201
    refused = await client.post(BUNDLES, of_signer, **ALICE)
    assert refused.status == 403
    assert refused.body["message"].endswith(
        'user not permitted to attest for signerName "example.com/signer"'
    )
    assert (await client.post(BUNDLES, of_signer)).status == 201
    path, owners = f"{BUNDLES}/example.com:signer:a", {"metadata": {"finalizers": ["a.b/c"]}}
    assert (await client.patch(path, owners, **ALICE)).status == 200  # as the garbage collector
    assert (await client.patch(path, {"metadata": {"labels": {"a": "b"}}}, **ALICE)).status == 403
    await grant(client, "attest", rule("signers", "attest", resourceNames=["example.com/*"]))
    assert (await client.patch(path, {"metadata": {"labels": {"a": "b"}}}, **ALICE)).status == 200
    found = await client.get(
        f"{BUNDLES}?fieldSelector=spec.signerName={SIGNER}".replace("/signer", "%2Fsigner", 1)
    )
    assert [item["metadata"]["name"] for item in found.body["items"]] == ["example.com:signer:a"]


async def test_status_needs_permission_to_sign(client):
    created = await client.post(
        REQUESTS, {"metadata": {"name": "a"}, "spec": spec(maxExpirationSeconds=None)}
    )
    assert created.status == 201, created.body
    assert created.body["spec"]["maxExpirationSeconds"] == 86400
    await grant(client, "status", rule("podcertificaterequests/status", "*"))
    refused = await client.patch(f"{REQUESTS}/a/status", issued(), **ALICE)
    assert refused.status == 422
    assert refused.body["message"].endswith(
        'spec.signerName: Forbidden: User "alice" is not permitted to "sign" for signer "example.com/signer"'
    )
    await grant(client, "sign", rule("signers", "sign", resourceNames=[SIGNER]))
    answer = await client.patch(f"{REQUESTS}/a/status", issued(), **ALICE)
    assert answer.status == 200, answer.body
    again = await client.patch(f"{REQUESTS}/a/status", issued(), **ALICE)
    assert "immutable after PodCertificateRequest is issued" in again.body["message"]


async def make_pod(client):
    node = (await client.post("/api/v1/nodes", {"metadata": {"name": "n"}})).body["metadata"]["uid"]
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    account = (await client.post(accounts, {"metadata": {"name": "default"}})).body["metadata"]["uid"]
    pod_spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}], "volumes": [VOLUME]}
    pod = await client.post("/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": pod_spec})
    assert pod.status == 201, pod.body
    uid = pod.body["metadata"]["uid"]
    return {"podUID": uid, "nodeUID": node, "serviceAccountName": "default", "serviceAccountUID": account}


async def test_node_requests_certificates_of_its_pods_only(client):
    uids = await make_pod(client)

    async def send(**changes):
        metadata = {"generateName": "a-"}
        return await client.post(
            REQUESTS, {"metadata": metadata, "spec": spec(**{**uids, **changes})}, **NODE
        )

    assert (await send()).status == 201
    other_node = await send(nodeName="m")
    assert other_node.status == 403
    assert (
        'PodCertificateRequest.Spec.NodeName="m", which is not the requesting node "n"'
        in other_node.body["message"]
    )
    other_pod = await send(podUID="1")
    assert other_pod.status == 500
    assert "which differs from running pod" in other_pod.body["message"]
    other_signer = await send(signerName="example.com/other")
    assert other_signer.status == 403
    assert other_signer.body["message"].endswith(
        'pod "default/p" does not mount a podCertificate projected volume for signer "example.com/other"'
    )


async def test_node_reads_requests_of_its_pods_only(client):
    uids = await make_pod(client)
    await client.post(REQUESTS, {"metadata": {"name": "own"}, "spec": spec(**uids)})
    await client.post(REQUESTS, {"metadata": {"name": "other"}, "spec": spec(nodeName="m")})
    assert (await client.get(f"{REQUESTS}/own", **NODE)).status == 200
    assert (await client.get(f"{REQUESTS}/other", **NODE)).status == 403
    assert (await client.get(REQUESTS, **NODE)).status == 403
    listed = await client.get(f"{REQUESTS}?fieldSelector=spec.nodeName=n", **NODE)
    assert [item["metadata"]["name"] for item in listed.body["items"]] == ["own"]
    refused = await client.patch(f"{REQUESTS}/own/status", {"status": {}}, **NODE)
    assert "nodes may not access the status subresource of PodCertificateRequests" in refused.body["message"]


async def test_older_minor_has_no_requests_of_pods():
    async with apiserver.running("--kubernetes-version=1.36") as client:
        assert (await client.get(REQUESTS)).status == 404
        pod_spec = {"containers": [{"name": "c", "image": "i"}], "volumes": [VOLUME]}
        await client.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        pod = await client.post(
            "/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": pod_spec}
        )
        assert pod.body["spec"]["volumes"][0]["projected"]["sources"] == [{}]
