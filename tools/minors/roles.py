"""The roles and bindings that a release makes, in the form of `apiserver/bootstrap/data/rbac.json`."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import yaml

from tools.minors.gomodules import Release

Row: TypeAlias = dict[str, Any]

FOLDER = "plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata"
FILES = {
    "clusterroles": ("cluster-roles", "controller-roles"),
    "clusterrolebindings": ("cluster-role-bindings", "controller-role-bindings"),
    "roles": ("namespace-roles",),
    "rolebindings": ("namespace-role-bindings",),
}
USUAL = "kubernetes.io/bootstrapping"


def read_roles(release: Release) -> Mapping[str, Mapping[str, Row]]:
    """By resource and by namespace/name."""
    return {
        resource: {
            f"{item['metadata'].get('namespace', '')}/{item['metadata']['name']}": row(item)
            for name in names
            for item in yaml.safe_load((release.source / FOLDER / f"{name}.yaml").read_text())["items"]
        }
        for resource, names in FILES.items()
    }


def row(item: Mapping[str, Any]) -> Row:
    metadata = item["metadata"]
    role_row: Row = {"name": metadata["name"]}
    labels = {key: value for key, value in metadata["labels"].items() if key != USUAL}
    if labels:
        role_row["labels"] = labels
    if "namespace" in metadata:
        role_row["namespace"] = metadata["namespace"]
    if "roleRef" in item:
        role = item["roleRef"]
        role_row["role"] = f"{role['kind']}/{role['name']}"
        role_row["subjects"] = [subject(one) for one in item.get("subjects", ())]
    elif "aggregationRule" in item:
        selectors = item["aggregationRule"]["clusterRoleSelectors"]
        role_row["aggregates"] = [label for one in selectors for label in one["matchLabels"]]
    else:
        role_row["rules"] = [rule(one) for one in item["rules"]]
    return role_row


def rule(policy_rule: Mapping[str, Any]) -> Row:
    """In the order of Go's struct."""
    order = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
    return {name: policy_rule[name] for name in order if name in policy_rule}


def subject(reference: Mapping[str, Any]) -> str:
    return "/".join(reference[name] for name in ("kind", "namespace", "name") if name in reference)
