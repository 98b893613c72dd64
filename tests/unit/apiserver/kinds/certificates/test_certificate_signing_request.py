"""The user of a CertificateSigningRequest, and what each of its subresources may change."""

from mockube.apiserver.kinds.certificates import certificate_signing_request
from mockube.apiserver.user import User
from tests.support.server.requests import NOW_TEXT, request

REQUESTS = certificate_signing_request.KIND.strategy
EARLIER = "2029-01-01T00:00:00Z"


def test_a_request_is_its_makers_whatever_it_says():
    csr = {"spec": {"request": "x", "username": "root", "groups": ["system:masters"], "extra": {"a": []}}}
    REQUESTS.prepare_create(csr, request(User(name="ada", uid="1", groups=("g",))))
    assert csr["spec"] == {"request": "x", "username": "ada", "uid": "1", "groups": ["g"]}


def condition(kind, **rest):
    return {"type": kind, "status": "True"} | rest


def updated(subresource, new, old):
    tree = {"status": new}
    REQUESTS.prepare_update[subresource](tree, {"status": old}, request())
    return tree["status"]


def test_an_approval_changes_conditions_alone():
    made = updated("approval", {"conditions": [condition("Approved")], "certificate": "mine"}, {})
    assert made == {
        "conditions": [condition("Approved", lastUpdateTime=NOW_TEXT, lastTransitionTime=NOW_TEXT)]
    }


def test_a_status_keeps_decisions_as_they_were():
    decided = condition("Approved", message="yes", lastUpdateTime=EARLIER, lastTransitionTime=EARLIER)
    new = {"certificate": "c", "conditions": [condition("Approved", message="forged")]}
    assert updated("status", new, {"conditions": [decided]}) == {"certificate": "c", "conditions": [decided]}


def test_a_decision_that_a_status_takes_away_is_for_validation_to_refuse():
    decided = condition("Denied", lastUpdateTime=EARLIER, lastTransitionTime=EARLIER)
    assert updated("status", {"certificate": "c"}, {"conditions": [decided]}) == {"certificate": "c"}


def test_a_condition_that_does_not_change_keeps_its_time():
    failed = condition("Failed", lastUpdateTime=EARLIER, lastTransitionTime=EARLIER)
    made = updated("status", {"conditions": [condition("Failed", message="again")]}, {"conditions": [failed]})
    assert made["conditions"] == [
        condition("Failed", message="again", lastUpdateTime=NOW_TEXT, lastTransitionTime=EARLIER)
    ]
