"""Pods' volumes have the certificates that a signer issues for them, and trust anchors of ClusterTrustBundles."""

import base64
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from kubernetes import client as official

from mockube import Cluster
from mockube.apimachinery.timestamps import format_time
from mockube.component_base.clock import RealClock
from tests.support.process_pods import IMAGES, python
from tests.support.processes.acknowledged_writes import until
from tests.support.server.pod_certificates import SIGNER, authority, certificate

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
GROUP = ("certificates.k8s.io", "v1")
REQUESTS = (*GROUP, "default", "podcertificaterequests")
VOLUME = {
    "name": "certificates",
    "projected": {
        "sources": [
            {"clusterTrustBundle": {"signerName": SIGNER, "labelSelector": {}, "path": "ca.pem"}},
            {"podCertificate": {"signerName": SIGNER, "keyType": "ECDSAP256", "credentialBundlePath": "all"}},
        ]
    },
}
MOUNT = {"name": "certificates", "mountPath": "/certificates"}


FILES = ("ca.pem", "all")


def container(is_process):
    """Return a container that prints the files of its volume."""
    if is_process:
        script = f"""
import os, time
for name in {FILES}:
    print(open(os.environ["MOCKUBE_ROOT"] + "/certificates/" + name).read(), end="", flush=True)
time.sleep(1000)
"""
        return python(script, volumeMounts=[MOUNT])
    command = ["sh", "-c", "cat /certificates/ca.pem /certificates/all; sleep inf"]
    return {"name": "c", "image": "busybox", "command": command, "volumeMounts": [MOUNT]}


def issue(kinds, request):
    """Sign the request as a signer does."""
    stub = x509.load_der_x509_csr(base64.b64decode(request["spec"]["stubPKCS10Request"]))
    begin = RealClock().now().replace(microsecond=0)
    end = begin + timedelta(hours=24)
    condition = {
        "type": "Issued",
        "status": "True",
        "reason": "R",
        "message": "M",
        "lastTransitionTime": format_time(begin),
    }
    status = {
        "conditions": [condition],
        "certificateChain": certificate(begin, end, of=stub.public_key()),
        "notBefore": format_time(begin),
        "beginRefreshAt": format_time(begin + timedelta(hours=12)),
        "notAfter": format_time(end),
    }
    kinds.patch_namespaced_custom_object_status(*REQUESTS, request["metadata"]["name"], {"status": status})
    return status["certificateChain"]


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=1, images=IMAGES) as started:
        yield started


@pytest.mark.parametrize("is_process", [False, True])
def test_volume_has_certificate_and_trust_anchors(cluster, is_process):
    kinds = official.CustomObjectsApi(cluster.kubernetes())
    pods = official.CoreV1Api(cluster.kubernetes())
    name = f"secured-{is_process}".lower()
    spec = {"containers": [container(is_process)], "volumes": [VOLUME]}
    pods.create_namespaced_pod("default", {"metadata": {"name": name}, "spec": spec})
    anchors = authority(RealClock().now())
    bundle = {
        "apiVersion": "/".join(GROUP),
        "kind": "ClusterTrustBundle",
        "metadata": {"name": "example.com:signer:a"},
        "spec": {"signerName": SIGNER, "trustBundle": anchors},
    }
    kinds.create_cluster_custom_object(*GROUP, "clustertrustbundles", bundle)

    def requests():
        return kinds.list_namespaced_custom_object(*REQUESTS)["items"]

    until(requests, "the request of a certificate")
    (request,) = requests()
    assert request["spec"]["podName"] == name

    def waits():
        statuses = pods.read_namespaced_pod(name, "default").status.container_statuses
        return statuses and statuses[0].state.waiting.reason == "ContainerCreating"

    until(waits, "the status of a container that waits for its volume")
    chain = issue(kinds, request)
    cluster.wait("Pod", name, "Ready")
    until(lambda: chain in pods.read_namespaced_pod_log(name, "default"), "the certificate in the log")
    log = pods.read_namespaced_pod_log(name, "default")
    assert log.startswith(anchors)
    key = load_pem_private_key(log.removeprefix(anchors).removesuffix(chain).encode(), None)
    assert key.public_key() == x509.load_pem_x509_certificate(chain.encode()).public_key()
    pods.delete_namespaced_pod(name, "default", grace_period_seconds=0)
    until(lambda: not requests(), "the deletion of the request with its pod")
    kinds.delete_cluster_custom_object(*GROUP, "clustertrustbundles", bundle["metadata"]["name"])
