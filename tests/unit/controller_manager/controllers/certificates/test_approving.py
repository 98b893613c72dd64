"""CertificateSigningRequests: automatic approval and cleanup."""

import base64
from datetime import timedelta
from pathlib import Path

import orjson
import pytest

from mockube.apimachinery.randomness import SystemRandom
from mockube.apimachinery.timestamps import format_time
from mockube.apiserver.pki.issue import make_authority
from mockube.component_base.clock import SteppedClock
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
    assert approved_request({"spec": KUBELET}, "nodeclient")["status"]["conditions"] == [
        {
            "type": "Approved",
            "status": "True",
            "reason": "AutoApproved",
            "message": "Auto approving kubelet client certificate after SubjectAccessReview.",
        }
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
