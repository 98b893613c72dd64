"""Simulated kubelets request the certificates of pods, and project them and trust anchors into volumes."""

from datetime import timedelta

import pytest

from mockube.apimachinery import pem
from mockube.apimachinery.status import Forbidden
from mockube.apimachinery.timestamps import format_time
from mockube.client.cache.informer import Informer
from mockube.client.kinds import POD_CERTIFICATE_REQUESTS
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.config.environment import References
from mockube.container_runtime.config.projections import NOT_ISSUED, PodCredential, trust_anchors
from mockube.container_runtime.config.volumes import volume_content
from mockube.container_runtime.records import Records
from mockube.kubelet.pod_certificates import PodCertificates
from mockube.kubelet.start_checks import volume_failure
from tests.support.controllers.informers import fill
from tests.support.server.pod_certificates import SIGNER, authority, certificate

CLOCK = SteppedClock()
ANCHOR, OTHER = authority(CLOCK.now()), authority(CLOCK.now())
SOURCE = {"signerName": SIGNER, "keyType": "ED25519", "credentialBundlePath": "all", "keyPath": "key"}
VOLUME = {"name": "v", "projected": {"sources": [{"podCertificate": SOURCE}]}}
POD = {
    "metadata": {"name": "p", "namespace": "ns", "uid": "1"},
    "spec": {"nodeName": "n", "serviceAccountName": "a", "containers": [], "volumes": [VOLUME]},
}


def bundle(name, anchors, signer="", **labels):
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"trustBundle": anchors, "signerName": signer},
    }


BUNDLES = [bundle("x", ANCHOR + ANCHOR), bundle("y", ANCHOR, SIGNER, a="b"), bundle("z", OTHER, SIGNER)]


@pytest.mark.parametrize(
    ("source", "count", "problem"),
    [
        ({"name": "x"}, 1, ""),
        ({"signerName": SIGNER, "labelSelector": {}}, 2, ""),
        ({"signerName": SIGNER, "labelSelector": {"matchLabels": {"a": "b"}}}, 1, ""),
        ({"signerName": SIGNER, "optional": True}, 0, ""),
        ({"name": "w", "optional": True}, 0, ""),
        (
            {"name": "w"},
            0,
            'while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io "w" not found',
        ),
        (
            {"signerName": SIGNER},
            0,
            "combination of signerName and labelSelector matched zero ClusterTrustBundles",
        ),
    ],
)
def test_bundles_are_projected_without_duplicates(source, count, problem):
    anchors, found_problem = trust_anchors(source, BUNDLES)
    assert (len(pem.blocks(anchors)), found_problem) == (count, problem)


def test_volume_has_files_of_bundle_and_certificate():
    projected = {"sources": [{"clusterTrustBundle": {"name": "x", "path": "ca"}}, {"podCertificate": SOURCE}]}
    volume = {"name": "v", "projected": projected}
    references = References(bundles=BUNDLES, credentials={("v", 1): PodCredential(b"KEY", b"CHAIN")})
    content = volume_content(volume, POD, {"name": "c"}, references)
    files = {name: file.data for name, file in content.items()}
    assert files == {"ca": ANCHOR.encode(), "all": b"KEYCHAIN", "key": b"KEY"}
    assert volume_failure(POD, volume, references) == ""
    assert volume_failure(POD, volume, References(bundles=BUNDLES)) == NOT_ISSUED


class Server:
    """Stores requests, and refuses them while `refuses` is set."""

    def __init__(self):
        self.requests = Informer(POD_CERTIFICATE_REQUESTS, clock=CLOCK)
        fill(self.requests, [], 1)
        self.created = []
        self.refuses = False

    def of(self, _resource):
        return self.requests

    async def get(self, _resource, key):
        return {"metadata": {"name": key.name, "uid": f"uid of {key.name}"}}

    async def create(self, _resource, body):
        if self.refuses:
            raise Forbidden("no")
        name = f"req-{len(self.created)}"
        body = {**body, "metadata": {**body["metadata"], "name": name, "resourceVersion": "2"}}
        self.created.append(body)
        fill(self.requests, self.created, 2)
        return body

    def decide(self, kind, **status):
        condition = {"type": kind, "status": "True", "reason": "R", "message": "M"}
        version = 3 + len(self.created)
        metadata = {**self.created[-1]["metadata"], "resourceVersion": str(version)}
        status = {"conditions": [condition], **status}
        self.created[-1] = {**self.created[-1], "metadata": metadata, "status": status}
        fill(self.requests, self.created, version)

    def issue(self, chain):
        refresh_at = CLOCK.now() + timedelta(hours=1)
        self.decide("Issued", certificateChain=chain, beginRefreshAt=format_time(refresh_at))


class Nodes:
    def get(self, _namespace, name):
        return {"metadata": {"name": name, "uid": f"uid of {name}"}}


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def records():
    return Records()


@pytest.fixture
def certificates(records, server):
    return PodCertificates(records, server, server, Nodes(), CLOCK)


def chain():
    return certificate(CLOCK.now(), CLOCK.now() + timedelta(hours=2))


async def test_request_has_pod_account_and_node(server, certificates):
    assert certificates.find("1", "v", 0) is None
    assert (await certificates.ensure(POD, "v", 0)).problem == NOT_ISSUED
    (request,) = server.created
    stub = request["spec"].pop("stubPKCS10Request")
    assert stub
    assert request["spec"] == {
        "signerName": SIGNER, "podName": "p", "podUID": "1", "serviceAccountName": "a",
        "serviceAccountUID": "uid of a", "nodeName": "n", "nodeUID": "uid of n",
    }  # fmt: skip
    assert request["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1"}
    ]


async def test_issued_certificate_is_used_until_next_one_is_issued(server, certificates):
    changed = []
    certificates.add_handler(changed.append)
    await certificates.ensure(POD, "v", 0)
    first, second = chain(), chain()
    server.issue(first)
    assert Key("ns", "p") in changed
    credential = certificates.find("1", "v", 0)
    assert credential.key.startswith(b"-----BEGIN PRIVATE KEY-----")
    assert credential.chain == first.encode()
    CLOCK.advance(3601)
    assert certificates.find("1", "v", 0) is None
    assert (await certificates.ensure(POD, "v", 0)).chain == first.encode()
    assert len(server.created) == 2
    server.issue(second)
    renewed = await certificates.ensure(POD, "v", 0)
    assert renewed.chain == second.encode()
    assert renewed.key != credential.key


async def test_denied_request_is_final(records, server, certificates):
    await certificates.ensure(POD, "v", 0)
    server.decide("Denied")
    problem = 'PodCertificateRequest was permanently denied: reason="R" message="M"'
    assert (await certificates.ensure(POD, "v", 0)).problem == problem
    assert len(server.created) == 1
    records.remove("1")
    assert certificates.find("1", "v", 0) is None


async def test_deleted_and_refused_requests_are_repeated(server, certificates):
    server.refuses = True
    assert (await certificates.ensure(POD, "v", 0)).problem == NOT_ISSUED
    server.refuses = False
    await certificates.ensure(POD, "v", 0)
    fill(server.requests, [], 9)
    await certificates.ensure(POD, "v", 0)
    assert len(server.created) == 1
    CLOCK.advance(601)
    await certificates.ensure(POD, "v", 0)
    assert len(server.created) == 2


async def test_failed_generation_of_key_is_raised(server):
    def fail():
        raise ValueError("no key")

    broken = PodCertificates(Records(), server, server, Nodes(), CLOCK, {"ED25519": fail})
    with pytest.raises(ValueError, match="no key"):
        await broken.ensure(POD, "v", 0)
