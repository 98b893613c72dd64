"""Defaults of networking.k8s.io: NetworkPolicies and IngressClasses."""

from typing import Final

from apiserver.defaults.table import Tree, of


def _policy_types(spec: Tree) -> None:
    """A policy that says nothing is about what comes in, and also about what goes out if it has rules for that."""
    spec.setdefault("policyTypes", ["Ingress", "Egress"] if "egress" in spec else ["Ingress"])


DEFAULTS: Final = of(
    "io.k8s.api.networking.v1",
    {
        "NetworkPolicySpec": _policy_types,
        "NetworkPolicyPort": {"protocol": "TCP"},
        "IngressClassParametersReference": {"scope": "Cluster"},
    },
)
