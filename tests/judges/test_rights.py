"""Requests of users with random roles, which `make differential ARGS=--rights` sends; the tests need no server."""

import contextlib

import orjson
import pytest

from judges.differential import rights
from judges.differential.__main__ import Resource
from judges.differential.report import Report

RESOURCES = {
    "/api/v1/namespaces/${ns}/configmaps": Resource("", "v1", "ConfigMap", ()),
    "/apis/apps/v1/namespaces/${ns}/deployments": Resource("apps", "v1", "Deployment", ("status", "scale")),
}
REFUSAL = 'x is invalid: spec.paramKind: Forbidden: user &{a} must have "get" permission'


def requests_of(case):
    """Return the requests of a conversation, when the response to each is its body."""
    requests, answer = [], None
    with contextlib.suppress(StopIteration):
        while True:
            requests.append(request := case.send(answer))
            if "roles" not in request:
                answer = {"status": 200, "body": request.get("body") or {}}
    return requests


def sent(seed, number):
    return [
        request
        for _, case in zip(range(number), rights.cases(seed, RESOURCES), strict=False)
        for request in requests_of(case)
    ]


def test_requests_of_rights_are_reproducible_from_seed():
    assert sent(3, 4) == sent(3, 4) != sent(4, 4)


def test_each_user_of_conversation_has_role_before_requests():
    requests = sent(3, 1)
    wait = next(index for index, request in enumerate(requests) if "roles" in request)
    users = {user for user, _ in requests[wait]["roles"]}
    tokens = {line.partition(",")[0] for line in rights.tokens().splitlines()}
    assert users == {f"rights-0-{index}" for index in range(rights.USERS)} <= tokens
    senders = {request["headers"]["Authorization"] for request in requests[wait:] if "headers" in request}
    assert senders <= {f"Bearer {token}" for token in tokens}
    assert not any("headers" in request for request in requests[:wait])


def test_roles_have_few_verbs_subresources_names_and_both_scopes():
    bodies = [request.get("body") or {} for request in sent(3, 60)]
    rules = [rule for body in bodies if "rules" in body for rule in body["rules"] or ()]
    assert {len(rule["verbs"]) for rule in rules} >= {1, 2, 3}
    text = orjson.dumps(rules).decode()
    assert all(
        part in text for part in ('"*/scale"', "deployments/status", "resourceNames", "nonResourceURLs")
    )


def test_requests_of_rights_need_every_nested_permission():
    text = orjson.dumps(sent(3, 150)).decode()
    nested = (
        *("apply-patch", "json-patch", "strategic-merge", "dryRun=All", "watch=1", "/approval", "/scale"),
        *("Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-", "blockOwnerDeletion", "/token"),
        *("aggregationRule", "paramRef", "reservedFor", "Bearer node-", "/exec", "impersonate-on:"),
        *('"sign"', '"approve"', '"escalate"', '"bind"', "/finalizers", "resourceclaims/driver"),
    )
    assert [part for part in nested if part not in text] == []


@pytest.mark.parametrize(
    ("status", "message", "refused"),
    [(403, "", True), (401, "", True), (422, REFUSAL, True), (422, "x is invalid", False), (200, "", False)],
)
def test_refusal_is_response_about_missing_permission(status, message, refused):
    assert rights.is_refused({"status": status, "body": {"message": message}}) is refused


def test_report_counts_decisions_apart_from_other_differences_and_lists_them_first():
    report, request = Report(), {"method": "GET", "path": "/x"}
    for _ in range(3):
        report.add_different("pods", request, [("status", 403, 404)], {}, refused=(True, True))
    report.add_different("pods", request, [("status", 403, 200)], {}, refused=(True, False))
    report.add_same(refused=True)
    assert (report.decisions, report.refused) == (1, 4)
    assert report.sorted()[0].signature == "GET DECISION status 403 against 200: "
    assert report.summary().endswith("4 refused by both, 1 let in or refused by one server only")
