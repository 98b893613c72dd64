"""What is said of a NetworkPolicy: what it isolates, and which of its selectors match nothing."""

import pytest

from mockube.explanations.catalog import explain
from tests.support.explained import facts_of, pod_of, resource_of, thing

WEB = pod_of("web", metadata={"labels": {"app": "web"}}, status={"phase": "Running"})
ENDED = pod_of("old", metadata={"labels": {"app": "old"}}, status={"phase": "Succeeded"})
SHOP = thing("Namespace", "shop", namespace="", metadata={"labels": {"team": "shop"}})
DEFAULT = thing("Namespace", "default", namespace="")


def labels(**match):
    return {"matchLabels": match}


def policy(selector, **spec):
    spec = {"podSelector": selector, "policyTypes": ["Ingress"], **spec}
    return thing("NetworkPolicy", "p", api_version="networking.k8s.io/v1", spec=spec)


def explained(subject, **more):
    return explain(resource_of(subject), subject, facts_of(subject, WEB, ENDED, SHOP, DEFAULT, **more))


@pytest.mark.parametrize(
    ("subject", "state", "cause"),
    [
        (
            policy(labels(app="web")),
            "NoProblem",
            "it isolates 1 pod: Ingress of nothing",
        ),
        (
            policy({}, ingress=[{}], policyTypes=["Ingress", "Egress"]),
            "NoProblem",
            "it isolates 1 pod: Ingress of what 1 rule allows; Egress of nothing",
        ),
        (
            policy(labels(app="nobody")),
            "Explained",
            "it isolates nothing: no pod in default has the labels app=nobody",
        ),
        (
            policy({"matchExpressions": [{"key": "app", "operator": "In", "values": ["old"]}]}),
            "Explained",
            "it isolates nothing: no pod in default has the labels app In ['old']",
        ),
        (
            policy({}, ingress=[{}, {"from": [{"podSelector": labels(app="x")}]}]),
            "Explained",
            "rule 2 of ingress allows nothing: no pod in default has the labels app=x",
        ),
        (
            policy({}, policyTypes=["Egress"], egress=[{"to": [{"namespaceSelector": labels(team="x")}]}]),
            "Explained",
            "rule 1 of egress allows nothing: no namespace has the labels team=x",
        ),
        (
            policy({}, ingress=[{"from": [{"namespaceSelector": labels(team="shop"), "podSelector": {}}]}]),
            "Explained",
            "rule 1 of ingress allows nothing: there is no pod in shop",
        ),
        (
            policy(
                {},
                ingress=[{"from": [{"podSelector": labels(app="x")}, {"ipBlock": {"cidr": "10.0.0.0/8"}}]}],
            ),
            "NoProblem",
            "it isolates 1 pod: Ingress of what 1 rule allows",
        ),
        (
            policy({}, ingress=[{"from": [{"namespaceSelector": {}, "podSelector": labels(app="web")}]}]),
            "NoProblem",
            "it isolates 1 pod: Ingress of what 1 rule allows",
        ),
    ],
)
def test_policy_with_selectors_is_explained_by_what_they_match(subject, state, cause):
    found = explained(subject)
    assert (found.state, found.cause) == (state, cause)


def test_selector_that_matches_nothing_has_remedies_and_an_origin():
    found = explained(policy(labels(app="nobody")))
    assert [each.command for each in found.remedies] == ["kubectl -n default get pods --show-labels", ""]
    assert found.remedies[1].text == "Change the selector in spec.podSelector, or the labels of the pods."
    assert [each.path for each in found.origins] == [("spec", "podSelector")]
    assert [(each.text, each.source) for each in found.evidence] == [("app=nobody", "spec.podSelector")]
    rule = explained(policy({}, ingress=[{"from": [{"podSelector": labels(app="x")}]}]))
    assert [each.path for each in rule.origins] == [("spec", "ingress")]


def test_policy_is_not_judged_without_the_rights_to_its_peers():
    assert explained(policy({}), refused=("pods",)).state == "Unknown"
    peer = {"namespaceSelector": labels(team="x")}
    assert explained(policy({}, ingress=[{"from": [peer]}]), refused=("namespaces",)).state == "NoProblem"


def test_invalid_selector_is_named():
    selector = {"matchExpressions": [{"key": "a", "operator": "Near"}]}
    assert explained(policy(selector)).cause.startswith("a selector of it is invalid: ")
