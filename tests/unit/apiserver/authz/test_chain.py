"""The first authorizer with an opinion decides, and a refusal has upstream's message."""

import pytest

from mockube.apimachinery.status import Forbidden
from mockube.apiserver.authz.chain import (
    AlwaysAllow,
    AlwaysDeny,
    Attributes,
    Authorization,
    Decision,
    UserRules,
    forbidden,
)
from mockube.apiserver.user import User

BOB = User(name="bob")
ALLOW, DENY, PASS = Decision.ALLOW, Decision.DENY, Decision.NO_OPINION


class StubAuthorizer:
    def __init__(self, decision, reason=""):
        self.verdict = decision, reason

    def decide(self, _attributes, /):
        return self.verdict

    def rules(self, _user, _namespace, /):
        return UserRules(resources=[{"verbs": [self.verdict[1]]}])


@pytest.mark.parametrize(
    ("authorizers", "verdict"),
    [
        pytest.param([], (PASS, ""), id="no authorizers"),
        pytest.param(
            [StubAuthorizer(PASS), StubAuthorizer(ALLOW, "yes")],
            (ALLOW, "yes"),
            id="second authorizer decides",
        ),
        pytest.param(
            [StubAuthorizer(DENY, "no"), StubAuthorizer(ALLOW)], (DENY, "no"), id="first authorizer decides"
        ),
        pytest.param(
            [StubAuthorizer(PASS, "a"), StubAuthorizer(PASS, "b")], (PASS, "a\nb"), id="reasons are joined"
        ),
        pytest.param([AlwaysAllow(), StubAuthorizer(DENY)], (ALLOW, ""), id="always"),
    ],
)
def test_first_decisive_authorizer_decides(authorizers, verdict):
    assert Authorization(authorizers).decide(Attributes(user=BOB, verb="get")) == verdict


@pytest.mark.parametrize("decision", [DENY, PASS])
async def test_only_allow_passes_require(decision):
    with pytest.raises(Forbidden):
        await Authorization([StubAuthorizer(decision)]).require(Attributes(user=BOB, verb="get"))


def test_rules_of_all_authorizers_are_listed():
    rules = Authorization([StubAuthorizer(PASS, "a"), StubAuthorizer(PASS, "b")]).rules(BOB, "ns")
    assert (rules.resources, rules.paths) == ([{"verbs": ["a"]}, {"verbs": ["b"]}], [])


def test_system_masters_are_allowed_before_authorizers():
    admin = User(name="admin", groups=("dev", "system:masters"))
    assert Authorization([StubAuthorizer(DENY)]).decide(Attributes(user=admin, verb="get")) == (ALLOW, "")


def test_always_deny_reports_reason():
    verdict = Authorization([AlwaysDeny()]).decide(Attributes(user=BOB, verb="get"))
    assert verdict == (PASS, "Everything is forbidden.")


@pytest.mark.parametrize(
    ("attributes", "reason", "message"),
    [
        pytest.param(
            {"verb": "list", "resource": "pods", "namespace": "ns"},
            "",
            'pods is forbidden: User "bob" cannot list resource "pods" in API group "" in the namespace "ns"',
            id="in a namespace",
        ),
        pytest.param(
            {
                "verb": "update",
                "group": "apps",
                "resource": "deployments",
                "subresource": "scale",
                "name": "web",
            },
            "RBAC: why",
            'deployments.apps "web" is forbidden: User "bob" cannot update resource "deployments/scale" '
            'in API group "apps" at the cluster scope: RBAC: why',
            id="a subresource, with a reason",
        ),
        pytest.param(
            {"verb": "get", "path": "/metrics<x>"},
            "",
            'forbidden: User "bob" cannot get path "/metrics&lt;x&gt;"',
            id="a path, escaped",
        ),
    ],
)
def test_forbidden_message_is_upstreams(attributes, reason, message):
    assert str(forbidden(Attributes(user=BOB, **attributes), reason)) == message
