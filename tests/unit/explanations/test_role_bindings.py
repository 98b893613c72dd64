"""What is said of a binding: whether its role and its ServiceAccounts exist."""

import pytest

from mockube.explanations.catalog import explain
from tests.support.explained import facts_of, resource_of, thing

RBAC = "rbac.authorization.k8s.io"
ROLE = thing("Role", "reader", api_version=f"{RBAC}/v1")
CLUSTER_ROLE = thing("ClusterRole", "view", api_version=f"{RBAC}/v1", namespace="")
ACCOUNT = thing("ServiceAccount", "runner")
ANN = {"kind": "User", "name": "ann"}
RUNNER = {"kind": "ServiceAccount", "name": "runner"}


def binding(kind, role, *subjects, namespace="default"):
    reference = {"apiGroup": RBAC, "kind": kind, "name": role}
    own = "RoleBinding" if namespace else "ClusterRoleBinding"
    return thing(
        own, "b", api_version=f"{RBAC}/v1", namespace=namespace, roleRef=reference, subjects=[*subjects]
    )


def explained(subject):
    return explain(resource_of(subject), subject, facts_of(subject, ROLE, CLUSTER_ROLE, ACCOUNT))


@pytest.mark.parametrize(
    ("subject", "state", "cause"),
    [
        (binding("Role", "reader", ANN, RUNNER), "NoProblem", "it grants the Role reader to 2 subjects"),
        (binding("ClusterRole", "view", ANN), "NoProblem", "it grants the ClusterRole view to 1 subject"),
        (binding("Role", "none", ANN), "Explained", "it grants nothing: the Role none does not exist"),
        (
            binding("ClusterRole", "reader", ANN, namespace=""),
            "Explained",
            "it grants nothing: the ClusterRole reader does not exist",
        ),
        (binding("Role", "reader"), "Explained", "it grants nothing: it has no subjects"),
        (
            binding("Role", "reader", ANN, {**RUNNER, "namespace": "shop"}),
            "Explained",
            "it grants the Role reader to the ServiceAccount runner, which does not exist in shop",
        ),
        (
            binding("ClusterRole", "view", {**RUNNER, "namespace": "default"}, namespace=""),
            "NoProblem",
            "it grants the ClusterRole view to 1 subject",
        ),
    ],
)
def test_binding_is_explained_by_whether_its_role_and_accounts_exist(subject, state, cause):
    found = explained(subject)
    assert (found.state, found.cause) == (state, cause)


def test_missing_role_has_evidence_remedies_and_origins():
    found = explained(binding("Role", "none", ANN))
    assert [each.text for each in found.evidence] == ["roleRef is the Role none", "User ann"]
    assert found.remedies[0].command == "kubectl -n default get roles"
    assert found.remedies[1].text == "Create the Role none."
    assert [(each.object.name, each.path) for each in found.origins] == [("none", ()), ("b", ("roleRef",))]
    assert explained(binding("Role", "reader")).origins[0].path == ("subjects",)


def test_missing_account_can_be_created():
    found = explained(binding("Role", "reader", {**RUNNER, "name": "none"}))
    assert found.remedies[0].command == "kubectl -n default create serviceaccount none"
    assert [each.object.name for each in found.origins] == ["none", "b"]
