"""The requester of a CertificateSigningRequest, and the fields that each subresource can change."""

from mockube.apiserver.kinds.certificates import certificate_signing_request
from mockube.apiserver.user import User
from tests.support.server.requests import NOW_TEXT, request

REQUESTS = certificate_signing_request.KIND.strategy
EARLIER = "2029-01-01T00:00:00Z"


def test_csr_spec_names_its_requester():
    csr = {"spec": {"request": "x", "username": "root", "groups": ["system:masters"], "extra": {"a": []}}}
    REQUESTS.prepare_create(csr, request(User(name="ada", uid="1", groups=("g",))))
    assert csr["spec"] == {"request": "x", "username": "ada", "uid": "1", "groups": ["g"]}


def condition(kind, **rest):
    return {"type": kind, "status": "True"} | rest


def updated_status(subresource, new, old):
    tree = {"status": new}
    REQUESTS.prepare_update[subresource](tree, {"status": old}, request())
    return tree["status"]


def test_approval_changes_conditions_only():
    updated = updated_status("approval", {"conditions": [condition("Approved")], "certificate": "mine"}, {})
    assert updated == {
        "conditions": [condition("Approved", lastUpdateTime=NOW_TEXT, lastTransitionTime=NOW_TEXT)]
    }


def test_status_update_keeps_decisions():
    decided = condition("Approved", message="yes", lastUpdateTime=EARLIER, lastTransitionTime=EARLIER)
    new = {"certificate": "c", "conditions": [condition("Approved", message="forged")]}
    assert updated_status("status", new, {"conditions": [decided]}) == {
        "certificate": "c",
        "conditions": [decided],
    }


def test_status_update_that_removes_decision_reaches_validation():
    decided = condition("Denied", lastUpdateTime=EARLIER, lastTransitionTime=EARLIER)
    assert updated_status("status", {"certificate": "c"}, {"conditions": [decided]}) == {"certificate": "c"}


def test_unchanged_condition_keeps_its_time():
    failed = condition("Failed", lastUpdateTime=EARLIER, lastTransitionTime=EARLIER)
    updated = updated_status(
        "status", {"conditions": [condition("Failed", message="again")]}, {"conditions": [failed]}
    )
    assert updated["conditions"] == [
        condition("Failed", message="again", lastUpdateTime=NOW_TEXT, lastTransitionTime=EARLIER)
    ]
