"""The requests of pods' certificates, and what their signers may set as status."""

import base64
from datetime import UTC, datetime, timedelta

import pytest

from mockube.apiserver.kinds.certificates.pod_certificate_request import KIND as ROW
from mockube.apiserver.kinds.certificates.pod_certificate_request import status_errors
from tests.support import field_rules
from tests.support.server.pod_certificates import (
    OTHER_KEY,
    certificate,
    small_rsa_key,
    spec,
    stub_request,
)

KIND = "certificates.k8s.io/v1", "PodCertificateRequest"
NOW = datetime(2030, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
EITHER = "spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set"


def request(**changes):
    return {"metadata": {"name": "a", "namespace": "ns"}, "spec": spec(**changes)}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        pytest.param({}, [], id="valid"),
        pytest.param({"stubPKCS10Request": stub_request(OTHER_KEY)}, [], id="Ed25519"),
        pytest.param({"signerName": ""}, ["spec.signerName: Required value"], id="no signer"),
        pytest.param({"podUID": ""}, ['spec.podUID: Invalid value: "": must not be empty'], id="no uid"),
        pytest.param({"nodeUID": "x" * 129}, ["spec.nodeUID: Too long: may not be more than 128 bytes"], id="long uid"),
        pytest.param({"unverifiedUserAnnotations": {"a": ""}},
                     [('spec.unverifiedUserAnnotations: Invalid value: "a": must be a domain-prefixed key '
                      '(such as "acme.io/foo")')], id="plain annotation"),
        pytest.param({"maxExpirationSeconds": 60},
                     ["spec.maxExpirationSeconds: Invalid value: 60: must be in the range [3600, 7862400]"], id="short"),
        pytest.param({"signerName": "kubernetes.io/x", "maxExpirationSeconds": 86401},
                     ["spec.maxExpirationSeconds: Invalid value: 86401: must be in the range [3600, 86400]"],
                     id="long for a signer of Kubernetes"),
        pytest.param({"stubPKCS10Request": None}, [EITHER], id="no key"),
        pytest.param({"stubPKCS10Request": base64.b64encode(b"x").decode()},
                     ["spec.stubPKCS10Request: Invalid value: must be a valid PKCS#10 CSR"], id="no request"),
        pytest.param({"stubPKCS10Request": stub_request(small_rsa_key())},
                     [('spec.stubPKCS10Request: Invalid value: "2048-bit modulus": RSA keys must have modulus size 3072 or '
                      "4096")], id="small key"),
    ],
)  # fmt: skip
def test_new_request_is_validated(changes, found):
    assert field_rules.create_errors(*KIND, request(**changes)) == found


def test_spec_is_immutable():
    (error,) = field_rules.update_errors(*KIND, request(), request(podName="q"))
    assert error.startswith('spec: Invalid value: {"SignerName":"example.com/signer","PodName":"q"')
    assert error.endswith("field is immutable")


def condition(kind, status="True"):
    return {
        "type": kind,
        "status": status,
        "reason": "R",
        "lastTransitionTime": "2030-01-01T00:00:00Z",
        "message": "",
    }


def text(time):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def issued(begin=NOW, life=24 * HOUR, refresh=HOUR, chain="", **changes):
    status = {
        "conditions": [condition("Issued")],
        "certificateChain": chain or certificate(begin, begin + life),
        "notBefore": text(begin),
        "notAfter": text(begin + life),
        "beginRefreshAt": text(begin + refresh),
    }
    return {name: value for name, value in (status | changes).items() if value is not None}


def errors_of(status, old=None):
    return [
        str(error)
        for error in status_errors(request() | {"status": status}, request() | {"status": old or {}}, NOW)
    ]


def starts(found, *beginnings):
    return len(found) == len(beginnings) and all(map(str.startswith, found, beginnings))


def test_signer_may_issue_deny_and_fail():
    assert errors_of(issued()) == []
    assert errors_of({"conditions": [condition("Denied")]}) == []
    assert errors_of({"conditions": [condition("Failed")]}) == []


@pytest.mark.parametrize(
    ("status", "found"),
    [
        pytest.param(issued(notBefore=None),
                     ["status.notBefore: Required value: must be present and consistent with the issued certificate"],
                     id="no beginning"),
        pytest.param(issued(begin=NOW - HOUR),
                     [('status.notBefore: Invalid value: "2029-12-31T23:00:00Z": must be set to within 5 minutes of '
                      "kube-apiserver's current time")], id="old"),
        pytest.param(issued(notAfter=text(NOW + HOUR)),
                     [('status.notAfter: Invalid value: "2030-01-01T01:00:00Z": must be set to the NotAfter time encoded in '
                      "the leaf certificate")], id="other end"),
        pytest.param(issued(life=HOUR / 2),
                     ["status.certificateChain: Invalid value: 1800000000000: leaf certificate lifetime must be >= 1 hour"],
                     id="short"),
        pytest.param(issued(life=25 * HOUR),
                     [("status.certificateChain: Invalid value: 90000000000000: leaf certificate lifetime must be <= "
                      "spec.maxExpirationSeconds (86400)")], id="long"),
        pytest.param(issued(refresh=timedelta()),
                     [('status.beginRefreshAt: Invalid value: "2030-01-01T00:00:00Z": must be at least 10 minutes after '
                      "status.notBefore")], id="early renewal"),
        pytest.param(issued(refresh=24 * HOUR),
                     [('status.beginRefreshAt: Invalid value: "2030-01-02T00:00:00Z": must be at least 10 minutes before '
                      "status.notAfter")], id="late renewal"),
        pytest.param({"certificateChain": "x"},
                     ['status: Invalid value: status is immutable unless transitioning to "Issued", "Denied", or "Failed"'],
                     id="no decision"),
        pytest.param(issued(conditions=[condition("Denied")]),
                     [("status: Invalid value: non-condition status fields must be empty when denying or failing the "
                      "PodCertificateRequest")], id="denied with certificate"),
        pytest.param({"conditions": [condition("Issued", "False")]},
                     ['status.conditions.[0].status: Unsupported value: "False": supported values: "True"'],
                     id="not issued"),
        pytest.param({"conditions": [condition("Other")]},
                     [('status.conditions.[0].type: Unsupported value: "Other": supported values: "Issued", "Denied", '
                      '"Failed"')], id="other condition"),
        pytest.param({"conditions": [condition("Issued"), condition("Failed")]},
                     [('status.conditions.[1].type: Invalid value: "Failed": There may be at most one condition with type '
                      '"Issued", "Denied", or "Failed"')], id="two decisions"),
    ],
)  # fmt: skip
def test_status_is_validated(status, found):
    assert errors_of(status) == found


def test_chain_begins_with_certificate_of_requested_key():
    other = certificate(NOW, NOW + 24 * HOUR, key=OTHER_KEY)
    (error,) = errors_of(issued(chain=other))
    assert error.endswith("leaf certificate was not issued to the requested public key")
    assert errors_of(issued(chain="x")) == [
        'status.certificateChain: Invalid value: "x": issued certificate chain must contain at least one certificate'
    ]
    leaf = certificate(NOW, NOW + 24 * HOUR)
    assert errors_of(issued(chain=leaf + other)) == []
    (error,) = errors_of(issued(chain=leaf + "-----BEGIN X-----\nYQ==\n-----END X-----\n"))
    assert error.endswith("must consist entirely of CERTFICATE PEM blocks")


def test_decision_is_final():
    decided = {"conditions": [condition("Denied")]}
    assert errors_of(decided, decided) == []
    assert errors_of(issued(), decided) == [
        "status: Invalid value: immutable after PodCertificateRequest is issued, denied, or failed"
    ]


def test_row_shows_state():
    cells = ROW.printer.cells(request(unverifiedUserAnnotations={"a.b/c": "d"}), NOW)
    assert cells == ["a", "p", "s", "n", "example.com/signer", "Pending", "a.b/c=d"]
    decided = request() | {"status": {"conditions": [condition("Issued")]}}
    assert ROW.printer.cells(decided, NOW)[5:] == ["Issued", "<none>"]


def test_errors_of_metadata_are_the_only_ones_of_status():
    status = {"conditions": [{"type": "Other", "status": "True"}]}
    old = request() | {"metadata": {"name": "a", "uid": "u"}}
    changed = old | {"metadata": {"name": "a", "uid": "other"}, "status": status}
    assert status_errors(old | {"status": status}, old, NOW)
    assert status_errors(changed, old, NOW) == []
