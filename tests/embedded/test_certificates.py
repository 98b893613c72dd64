"""Client certificates authenticate after approval and signing; kubelet CSRs are approved automatically."""

import base64
import ssl
from urllib.request import Request, urlopen

import orjson
import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from kubernetes import client as official

WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def request(*groups, name):
    """Return a key and the encoded CSR for `spec.request`."""
    key = ec.generate_private_key(ec.SECP256R1())
    parts = [*((NameOID.ORGANIZATION_NAME, group) for group in groups), (NameOID.COMMON_NAME, name)]
    subject = x509.Name([x509.NameAttribute(oid, value) for oid, value in parts])
    signed = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return key, base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode()


def create(cluster, name, encoded, signer, usages):
    spec = {"request": encoded, "signerName": f"kubernetes.io/{signer}", "usages": usages}
    tree = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": spec,
    }
    cluster.apply(orjson.dumps(tree).decode())


def approve(cluster, name):
    requests = official.CertificatesV1Api(cluster.kubernetes())
    response = requests.read_certificate_signing_request(name)
    condition = official.V1CertificateSigningRequestCondition(
        type="Approved", status="True", reason="ByHand", message="wanted"
    )
    response.status.conditions = [condition]
    requests.replace_certificate_signing_request_approval(name, response)


def wait_for_certificate(cluster, name):
    signing_request = cluster.wait(
        "CertificateSigningRequest", name, lambda tree: tree["status"].get("certificate")
    )
    return base64.b64decode(signing_request["status"]["certificate"]), signing_request["status"]["conditions"]


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_approved_csr_is_signed_and_authenticates_user(cluster, tmp_path):
    key, encoded = request("dev", "ops", name="jane")
    create(cluster, "jane", encoded, "kube-apiserver-client", ["client auth"])
    approve(cluster, "jane")
    pem, _ = wait_for_certificate(cluster, "jane")
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / "jane.pem").write_bytes(pem + private)
    server = yaml.safe_load(cluster.kubeconfig.read_text())["clusters"][0]["cluster"]
    trust = ssl.create_default_context(cadata=base64.b64decode(server["certificate-authority-data"]).decode())
    trust.load_cert_chain(tmp_path / "jane.pem")
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    asked = Request(server["server"] + WHO, orjson.dumps(body), {"Content-Type": "application/json"})
    with urlopen(asked, context=trust) as answer:
        user = orjson.loads(answer.read())["status"]["userInfo"]
    assert user["username"] == "jane"
    assert set(user["groups"]) == {"dev", "ops", "system:authenticated"}


def test_kubelet_csr_is_approved_automatically(cluster):
    _, encoded = request("system:nodes", name="system:node:n1")
    usages = ["client auth", "digital signature"]
    create(cluster, "n1", encoded, "kube-apiserver-client-kubelet", usages)
    pem, conditions = wait_for_certificate(cluster, "n1")
    assert conditions[0]["reason"] == "AutoApproved"
    assert x509.load_pem_x509_certificate(pem).subject.rfc4514_string() == "CN=system:node:n1,O=system:nodes"
