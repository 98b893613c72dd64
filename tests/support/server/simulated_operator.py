"""The objects of a simulated operator of Hooks: its account, its rights, and its running pod on a simulated node."""

from tests.support.server.conversion_server import GROUP

RBAC = "/apis/rbac.authorization.k8s.io/v1"
OPERATOR_PODS = "/api/v1/namespaces/operators/pods"
HOOKS_RULE = {
    "apiGroups": [GROUP],
    "resources": ["hooks", "hooks/status"],
    "verbs": ["get", "list", "watch", "update"],
}
ANY_RULE = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
OPERATOR = "Deployment operators/hooks"


def role_and_binding(rule, namespace=""):
    """Return the role of the operator's account and its binding, each with its path: for a namespace, or for the cluster."""
    prefix = f"{RBAC}/namespaces/{namespace}/" if namespace else f"{RBAC}/cluster"
    kind = "Role" if namespace else "ClusterRole"
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "hooks"}
    subjects = [{"kind": "ServiceAccount", "name": "hooks", "namespace": "operators"}]
    return (
        (f"{prefix}roles", {"metadata": {"name": "hooks"}, "rules": [rule]}),
        (
            f"{prefix}rolebindings",
            {"metadata": {"name": "hooks"}, "roleRef": reference, "subjects": subjects},
        ),
    )


async def run_operator(api, rule=None, *, namespace="", simulated=True, account="hooks", phase="Running"):
    """Create the objects of the operator."""
    annotations = {"kwok.x-k8s.io/node": "fake"} if simulated else {}
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "hooks-5d4f",
        "uid": "1",
        "controller": True,
    }
    metadata = {"name": "hooks-5d4f-x", "labels": {"pod-template-hash": "5d4f"}, "ownerReferences": [owner]}
    container = {"name": "operator", "image": "example.com/operator:1"}
    await api.create_all(
        ("/api/v1/nodes", {"metadata": {"name": "n1", "annotations": annotations}}),
        ("/api/v1/namespaces", {"metadata": {"name": "operators"}}),
        ("/api/v1/namespaces/operators/serviceaccounts", {"metadata": {"name": account}}),
        *role_and_binding(rule or HOOKS_RULE, namespace),
        (
            OPERATOR_PODS,
            {
                "metadata": metadata,
                "spec": {"nodeName": "n1", "serviceAccountName": account, "containers": [container]},
            },
        ),
    )
    answer = await api.patch(f"{OPERATOR_PODS}/hooks-5d4f-x/status", {"status": {"phase": phase}})
    assert answer.code == 200, answer.message
    await api.settle()
