"""CSR signing matches the results of kube-controller-manager recorded in `signed.jsonl`."""

import base64
from datetime import timedelta
from pathlib import Path

import orjson
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from msgspec.structs import replace

from mockube.apimachinery.randomness import SeededRandom, SystemRandom
from mockube.apiserver.pki.issue import make_authority
from mockube.client.cache.store import Change
from mockube.client.kinds import CERTIFICATE_SIGNING_REQUESTS
from mockube.client.queue.reconcile_loop import RequeueWithBackoff
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.certificates.authority import (
    CertificateAuthorityFiles,
    CertificateTemplate,
    SigningError,
    issue,
    load_authority,
)
from mockube.controller_manager.controllers.certificates.requests import parse
from mockube.controller_manager.controllers.certificates.signing import (
    CertificateSigner,
    csr_signing_controller,
)
from tests.support.controllers.fake_api_server import FakeApiServer

KEY = Key("", "c")
RECORDED = [orjson.loads(line) for line in Path(__file__).with_name("signed.jsonl").read_text().splitlines()]
KEY_ID = "2.5.29.35"
"""Of the authority, which is another one here."""
APPROVED = {"type": "Approved", "status": "True"}


def authority(**lifetime):
    clock = SteppedClock()
    pair = make_authority("kubernetes", now=clock.now() - timedelta(**lifetime), random=SystemRandom())
    return load_authority(pair.certificate, pair.key)


OWN = authority()


def cluster_with_request(spec, *conditions, own=OWN, **status):
    signers = dict.fromkeys(
        ("kube-apiserver-client", "kube-apiserver-client-kubelet", "kubelet-serving", "legacy-unknown"), own
    )
    signer = CertificateSigner(
        authorities={f"kubernetes.io/{name}": lambda found=found: found for name, found in signers.items()},
        max_lifetime=timedelta(days=365),
        random=SystemRandom(),
    )
    found = FakeApiServer(csr_signing_controller(signer), SteppedClock())
    status |= {"conditions": list(conditions)} if conditions else {}
    found.add(CERTIFICATE_SIGNING_REQUESTS, {"metadata": {"name": "c"}, "spec": spec, "status": status})
    return found


def status_of(requests):
    return requests.get(CERTIFICATE_SIGNING_REQUESTS, "c", "")["status"]


def certificate(status):
    return x509.load_pem_x509_certificate(base64.b64decode(status["certificate"]))


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["name"])
def test_csr_is_signed_as_recorded(case):
    requests = cluster_with_request(case["spec"], APPROVED)
    requests.reconcile(KEY)
    status = status_of(requests)
    if "failed" in case:
        assert "certificate" not in status
        assert status["conditions"][-1].items() >= {"type": "Failed", **case["failed"]}.items()
        assert requests.reconcile(KEY) == ([], None)
        return
    found = certificate(status)
    assert found.subject.public_bytes().hex() == case["subject"]
    assert (found.not_valid_after_utc - found.not_valid_before_utc).total_seconds() == case["lifetime"]
    shown = [
        [one.oid.dotted_string, one.critical, one.value.public_bytes().hex()] for one in found.extensions
    ]
    assert [one if one[0] != KEY_ID else [*one[:2], ""] for one in shown] == case["extensions"]
    found.verify_directly_issued_by(OWN.certificate)
    assert len(requests.done) == 1
    assert requests.reconcile(KEY) == ([], None)


@pytest.mark.parametrize(
    ("conditions", "signer"),
    [
        ([], "kubernetes.io/kube-apiserver-client"),
        ([APPROVED, {"type": "Denied", "status": "True"}], "kubernetes.io/kube-apiserver-client"),
        ([APPROVED, {"type": "Failed"}], "kubernetes.io/kube-apiserver-client"),
        ([APPROVED], "example.com/own"),
    ],
    ids=["not approved", "denied as well", "failed", "of another signer"],
)
def test_other_csrs_are_ignored(conditions, signer):
    requests = cluster_with_request({**RECORDED[0]["spec"], "signerName": signer}, *conditions)
    assert requests.reconcile(KEY) == ([], None)


@pytest.mark.parametrize(
    "condition",
    [{"type": "Failed", "status": "False"}, {"type": "Other"}, {"type": "Other", "status": "True"}],
)
def test_other_conditions_do_not_prevent_the_signature(condition):
    requests = cluster_with_request(RECORDED[0]["spec"], APPROVED, condition)
    requests.reconcile(KEY)
    assert "certificate" in status_of(requests)


def test_legacy_signer_checks_nothing():
    spec = {**RECORDED[0]["spec"], "signerName": "kubernetes.io/legacy-unknown", "usages": ["any"]}
    requests = cluster_with_request(spec, APPROVED)
    requests.reconcile(KEY)
    assert "certificate" in status_of(requests)


def test_absent_csr_is_ignored():
    requests = cluster_with_request(RECORDED[0]["spec"], APPROVED)
    assert requests.reconcile(Key("", "absent")) == ([], None)


def test_csrs_without_certificate_are_reconciled():
    requests = cluster_with_request(RECORDED[0]["spec"])
    (watch,) = requests.controller.watches
    csr = requests.get(CERTIFICATE_SIGNING_REQUESTS, "c", "")
    issued = {**csr, "status": {"certificate": "x"}}
    for change, keys in ((Change(None, csr), [KEY]), (Change(csr, issued), []), (Change(csr, None), [])):
        assert [*watch.keys(requests.caches(), change)] == keys


def test_certificate_does_not_outlive_ca():
    old = authority(days=3650 - 1)
    requests = cluster_with_request(RECORDED[0]["spec"], APPROVED, own=old)
    requests.reconcile(KEY)
    assert certificate(status_of(requests)).not_valid_after_utc == old.certificate.not_valid_after_utc


def test_expired_ca_signs_nothing():
    requests = cluster_with_request(RECORDED[0]["spec"], APPROVED, own=authority(days=3650, minutes=10))
    with pytest.raises(RequeueWithBackoff, match="the signer has expired"):
        requests.reconcile(KEY)


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        ("bm8=", "PEM block type must be CERTIFICATE REQUEST"),
        ("LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K", ""),
        ("%", ""),
    ],
    ids=["no PEM", "an end is missing", "no base64"],
)
def test_unparsable_csr_is_retried(request_, problem):
    requests = cluster_with_request({**RECORDED[0]["spec"], "request": request_}, APPROVED)
    with pytest.raises(RequeueWithBackoff, match=f'unable to parse csr "c": {problem}'):
        requests.reconcile(KEY)


def test_csr_with_invalid_signature_is_not_signed():
    pem = base64.b64decode(RECORDED[0]["spec"]["request"])
    der = bytearray(x509.load_pem_x509_csr(pem).public_bytes(serialization.Encoding.DER))
    der[der.index(b"jane")] ^= 1
    changed = x509.load_der_x509_csr(bytes(der))
    template = CertificateTemplate(
        usages=["client auth"], lifetime=timedelta(hours=1), now=SteppedClock().now()
    )
    with pytest.raises(SigningError, match="signature"):
        issue(OWN, changed, template, SeededRandom())


@pytest.mark.parametrize(
    ("usages", "bits"),
    [
        (["digital signature"], "03020780"),
        (["signing", "cert sign"], "03020284"),
        (["decipher only"], "0303070080"),
    ],
    ids=["one", "two", "of the second byte"],
)
def test_usages_are_encoded_as_bits(usages, bits):
    template = CertificateTemplate(usages=usages, lifetime=timedelta(hours=1), now=SteppedClock().now())
    made = x509.load_pem_x509_certificate(
        issue(OWN, parse(RECORDED[0]["spec"]["request"]).parsed, template, SeededRandom())
    )
    der = made.public_bytes(serialization.Encoding.DER)
    assert bytes.fromhex("0603551d0f0101ff04" + f"{len(bits) // 2:02x}" + bits) in der


def test_changed_ca_files_are_re_read(tmp_path):
    paths = tmp_path / "ca.crt", tmp_path / "ca.key"
    made = [
        make_authority(name, now=SteppedClock().now(), random=SystemRandom()) for name in ("one", "other")
    ]
    for path, data in zip(paths, (made[0].certificate, made[0].key), strict=True):
        path.write_bytes(data)
    files = CertificateAuthorityFiles(*paths)
    assert files.current() is files.current()
    paths[0].write_bytes(b"half a certificate")
    assert files.current().certificate.subject.rfc4514_string() == "CN=one"
    for path, data in zip(paths, (made[1].certificate, made[1].key), strict=True):
        path.write_bytes(data)
    assert files.current().certificate.subject.rfc4514_string() == "CN=other"


def test_file_with_two_certificates_is_refused():
    pair = make_authority("one", now=SteppedClock().now(), random=SystemRandom())
    with pytest.raises(SigningError, match="expected 1 certificate, found 2"):
        load_authority(pair.certificate * 2, pair.key)


def test_conflicting_csr_is_retried():
    requests = cluster_with_request(RECORDED[0]["spec"], APPROVED)
    plan = requests.plan(KEY)
    requests.change(CERTIFICATE_SIGNING_REQUESTS, "c", ("status", "conditions"), [APPROVED], "")
    requests.execute_one(plan)
    assert "certificate" not in status_of(requests)
    requests.reconcile(KEY)
    assert "certificate" in status_of(requests)


def test_serial_numbers_are_random():
    requests = [cluster_with_request(RECORDED[0]["spec"], APPROVED) for _ in range(2)]
    signer = requests[1].controller.reconcile.args[0]
    requests[1].controller = csr_signing_controller(replace(signer, random=SeededRandom(7)))
    for one in requests:
        one.reconcile(KEY)
    first, second = (certificate(status_of(one)).serial_number for one in requests)
    assert first != second
