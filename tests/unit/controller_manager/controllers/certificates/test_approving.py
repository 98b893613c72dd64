"""CertificateSigningRequests: automatic approval and cleanup."""

import base64
from datetime import timedelta
from pathlib import Path

import orjson
import pytest
from msgspec.structs import replace

from mockube.apimachinery.randomness import SystemRandom
from mockube.apimachinery.timestamps import format_time
from mockube.apiserver.pki.issue import make_authority
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.certificates import requests
from mockube.controller_manager.controllers.certificates.approving import (
    access_review,
    approved_request,
    recognized_subresources,
)
from mockube.controller_manager.controllers.certificates.cleaner import is_obsolete
from mockube.controller_manager.controllers.certificates.requests import parse

NOW = SteppedClock().now()
RECORDED = {
    case["name"]: case["spec"]
    for case in map(orjson.loads, Path(__file__).with_name("signed.jsonl").read_text().splitlines())
}
KUBELET = {**RECORDED["a kubelet's client"], "groups": ["system:bootstrappers"]}


@pytest.mark.parametrize(
    ("spec", "tried"),
    [
        ({**KUBELET, "username": "system:node:n1"}, ["selfnodeclient", "nodeclient"]),
        ({**KUBELET, "username": "system:bootstrap:abcdef"}, ["nodeclient"]),
        ({**RECORDED["a kubelet's client with a URI"], "username": "x"}, []),
        ({**RECORDED["a kubelet's server"], "username": "system:node:n1"}, []),
        ({**RECORDED["a client"], "username": "jane"}, []),
    ],
    ids=["its own", "another's", "not as it should be", "a server's", "a client's"],
)
def test_csr_permissions_to_check(spec, tried):
    assert [*recognized_subresources({"spec": spec}, parse(spec["request"]))] == tried


def test_only_kubelets_of_their_own_signer_are_recognized():
    spec = {**KUBELET, "username": "system:node:n1", "signerName": "kubernetes.io/kube-apiserver-client"}
    assert [*recognized_subresources({"spec": spec}, parse(spec["request"]))] == []


def client_request(**changes):
    return replace(parse(KUBELET["request"]), **changes)


def serving_request(**changes):
    return replace(parse(RECORDED["a kubelet's server"]["request"]), **changes)


CLIENT_USAGES = ("digital signature", "client auth")
SERVER_USAGES = ("digital signature", "server auth")


@pytest.mark.parametrize(
    ("request_", "usages", "problem"),
    [
        (client_request(), CLIENT_USAGES, ""),
        (client_request(), (*CLIENT_USAGES, "key encipherment"), ""),
        (
            client_request(),
            ("client auth",),
            "usages did not match [client auth digital signature key encipherment]",
        ),
        (
            client_request(),
            SERVER_USAGES,
            "usages did not match [client auth digital signature key encipherment]",
        ),
        (client_request(organizations=()), CLIENT_USAGES, "subject organization is not system:nodes"),
        (
            client_request(organizations=("system:nodes", "x")),
            CLIENT_USAGES,
            "subject organization is not system:nodes",
        ),
        (client_request(dns_names=("x",)), CLIENT_USAGES, "DNS subjectAltNames are not allowed"),
        (client_request(emails=("x",)), CLIENT_USAGES, "Email subjectAltNames are not allowed"),
        (client_request(addresses=("x",)), CLIENT_USAGES, "IP subjectAltNames are not allowed"),
        (client_request(uris=("x",)), CLIENT_USAGES, "URI subjectAltNames are not allowed"),
        (
            client_request(common_name="n1"),
            CLIENT_USAGES,
            "subject common name does not begin with system:node:",
        ),
    ],
)
def test_request_for_the_client_of_a_kubelet_is_checked(request_, usages, problem):
    assert requests.kubelet_client_problem(request_, usages) == problem


@pytest.mark.parametrize(
    ("request_", "usages", "problem"),
    [
        (serving_request(), SERVER_USAGES, ""),
        (serving_request(dns_names=("x",), addresses=()), SERVER_USAGES, ""),
        (serving_request(dns_names=(), addresses=("x",)), SERVER_USAGES, ""),
        (serving_request(dns_names=(), addresses=()), SERVER_USAGES, "DNS or IP subjectAltName is required"),
        (serving_request(emails=("x",)), SERVER_USAGES, "Email subjectAltNames are not allowed"),
        (serving_request(uris=("x",)), SERVER_USAGES, "URI subjectAltNames are not allowed"),
        (serving_request(organizations=("x",)), SERVER_USAGES, "subject organization is not system:nodes"),
        (
            serving_request(common_name="x"),
            SERVER_USAGES,
            "subject common name does not begin with system:node:",
        ),
        (
            serving_request(),
            CLIENT_USAGES,
            "usages did not match [digital signature key encipherment server auth]",
        ),
    ],
)
def test_request_for_the_server_of_a_kubelet_is_checked(request_, usages, problem):
    assert requests.kubelet_serving_problem(request_, usages) == problem


@pytest.mark.parametrize(
    ("usages", "problem"),
    [
        (CLIENT_USAGES, ""),
        (("client auth", "key encipherment"), ""),
        (("client auth", "server auth"), "invalid usage for client certificate: server auth"),
        (("digital signature",), "missing required usage for client certificate: client auth"),
    ],
)
def test_usages_of_a_client_are_checked(usages, problem):
    assert requests.client_usages_problem(client_request(), usages) == problem


def test_access_review_is_about_requester():
    spec = {**KUBELET, "username": "u", "uid": "7", "extra": {"a": ["b"]}}
    asked = access_review({"spec": spec}, "nodeclient")["spec"]
    assert asked.pop("resourceAttributes") == {
        "group": "certificates.k8s.io",
        "resource": "certificatesigningrequests",
        "verb": "create",
        "subresource": "nodeclient",
        "version": "*",
    }
    assert asked == {"user": "u", "uid": "7", "groups": ["system:bootstrappers"], "extra": {"a": ["b"]}}


def test_approval_has_upstreams_condition():
    other = {"type": "Other"}
    csr = {"spec": KUBELET, "status": {"conditions": [other]}}
    for subresource, kind in (("nodeclient", "kubelet client"), ("selfnodeclient", "self kubelet client")):
        assert approved_request(csr, subresource)["status"]["conditions"] == [
            other,
            {
                "type": "Approved",
                "status": "True",
                "reason": "AutoApproved",
                "message": f"Auto approving {kind} certificate after SubjectAccessReview.",
            },
        ]


def csr(kind, hours, *, created=0.0, issued=False, ended=False):
    text = format_time(NOW - timedelta(hours=created))
    listed = [{"type": kind, "lastUpdateTime": format_time(NOW - timedelta(hours=hours))}] if kind else []
    status = {"conditions": listed}
    if issued:
        then = NOW - timedelta(days=3651 if ended else 0)
        pair = make_authority("one", now=then, random=SystemRandom())
        status["certificate"] = base64.b64encode(pair.certificate).decode()
    return {"metadata": {"name": "c", "creationTimestamp": text}, "status": status}


@pytest.mark.parametrize(
    ("found", "goes"),
    [
        (csr(None, 0, created=25), True),
        (csr(None, 0, created=23), False),
        (csr("Denied", 2), True),
        (csr("Denied", 0.5, created=100), False),
        (csr("Failed", 2), True),
        (csr("Approved", 2, issued=True), True),
        (csr("Approved", 0.5, issued=True), False),
        (csr("Approved", 2), False),
        (csr("Approved", 25), True),
        (csr("Approved", 0.1, issued=True, ended=True), True),
        (csr("Other", 100, created=100), False),
    ],
    ids=[
        "waiting for long",
        "waiting",
        "denied long ago",
        "denied",
        "failed",
        "issued long ago",
        "issued",
        "approved",
        "approved long ago",
        "ended",
        "something else",
    ],
)
def test_unneeded_csr_is_deleted(found, goes):
    assert is_obsolete(found, NOW) is goes


def test_unparsable_certificate_is_not_expired():
    found = csr("Approved", 0.1)
    found["status"]["certificate"] = "bm8="
    assert not is_obsolete(found, NOW)
