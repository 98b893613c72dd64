"""The default roles and bindings of every cluster, and their reconciliation with existing ones.

As upstream, additions of users to an object are kept; rules, subjects, labels and annotations that were removed are
restored at the next start, unless the object's annotation disables updates.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

import orjson

from mockube.apimachinery.schema import minors
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.authz.rbac.escalation import missing_rules
from mockube.apiserver.authz.rbac.policy import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    GROUP,
    ROLE_BINDINGS,
    ROLES,
)

from .required_object import GroupVersionResource, RequiredObject

AUTOUPDATE: Final = "rbac.authorization.kubernetes.io/autoupdate"
_LABELS: Final = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_ANNOTATIONS: Final = {AUTOUPDATE: "true"}
_DATA: Final = "data/rbac.json"
"""The objects that kube-apiserver creates, in its order. Common labels and annotations are omitted, and references are short."""


@cache
def policy(minor: str = minors.NEWEST) -> Sequence[RequiredObject]:
    """Return the roles and bindings that upstream has in a minor release."""
    rows = _rows(minor)
    roles = [
        _required_object(resource, row, _role(row))
        for resource in (CLUSTER_ROLES, ROLES)
        for row in rows[resource]
    ]
    bindings = [
        _required_object(resource, row, _binding(row))
        for resource in (CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS)
        for row in rows[resource]
    ]
    return [*roles, *bindings]


@cache
def rules_of_nodes(minor: str = minors.NEWEST) -> Sequence[Tree]:
    """Return the rules that the Node authorizer has for all nodes: those of the role for them."""
    (role,) = (row for row in _rows(minor)[CLUSTER_ROLES] if row["name"] == "system:node")
    rules: Sequence[Tree] = role["rules"]
    return rules


@cache
def _rows(minor: str) -> Mapping[str, Any]:
    rows: Mapping[str, Any] = orjson.loads(files(__package__).joinpath(_DATA).read_bytes())
    if minor == minors.NEWEST:
        return rows
    return {resource: _rows_of_minor(minor, resource, newest) for resource, newest in rows.items()}


def _rows_of_minor(
    minor: str, resource: str, newest: Sequence[Mapping[str, Any]]
) -> Sequence[Mapping[str, Any]]:
    rows = {f"{row.get('namespace', '')}/{row['name']}": row for row in newest}
    for name, changed in minors.changes(minor, resource).items():
        if changed is None:
            rows.pop(name, None)
        else:
            rows[name] = orjson.loads(bytes(changed))
    return list(rows.values())


def resource_name(resource: str) -> GroupVersionResource:
    return GROUP, "v1", resource


def _required_object(resource: str, row: Mapping[str, Any], content: Tree) -> RequiredObject:
    metadata = {"labels": _LABELS | row.get("labels", {}), "annotations": _ANNOTATIONS}
    return RequiredObject(
        resource=resource_name(resource),
        name=row["name"],
        namespace=row.get("namespace", ""),
        content={"metadata": metadata, **content},
        skips_admission=True,
    )


def _role(row: Mapping[str, Any]) -> Tree:
    if "aggregates" not in row:
        return {"rules": row["rules"]}
    selectors = [{"matchLabels": {label: "true"}} for label in row["aggregates"]]
    return {"rules": None, "aggregationRule": {"clusterRoleSelectors": selectors}}


def _binding(row: Mapping[str, Any]) -> Tree:
    kind, _, name = row["role"].partition("/")
    subjects = [_subject(text) for text in row["subjects"]]
    role = {"apiGroup": GROUP, "kind": kind, "name": name}
    return ({"subjects": subjects} if subjects else {}) | {"roleRef": role}


def _subject(text: str) -> Tree:
    kind, *place, name = text.split("/")
    return {"kind": kind, "name": name, **({"namespace": place[0]} if place else {"apiGroup": GROUP})}


# --- reconciling


def is_of_other_role(expected: ReadOnlyTree, present: ReadOnlyTree) -> bool:
    """Return whether a binding refers to another role than expected: then it is replaced."""
    return bool(expected.get("roleRef") != present.get("roleRef"))


def is_protected(present: ReadOnlyTree) -> bool:
    return bool((present["metadata"].get("annotations") or {}).get(AUTOUPDATE) == "false")


def reconcile(expected: ReadOnlyTree, present: ReadOnlyTree) -> Tree:
    """Return the object with the missing parts of the expected one; an equal object if nothing is missing."""
    metadata = dict(present["metadata"])
    for name in ("labels", "annotations"):
        metadata[name] = expected["metadata"][name] | (metadata.get(name) or {})
    tree: Tree = {**present, "metadata": metadata}
    if "roleRef" in expected:
        missing = _missing_items(expected.get("subjects"), present.get("subjects"))
        return {**tree, "subjects": [*(present.get("subjects") or ()), *missing]} if missing else tree
    missing_role_rules = missing_rules(present.get("rules") or (), expected.get("rules") or ())
    if missing_role_rules:
        tree["rules"] = [*(present.get("rules") or ()), *missing_role_rules]
    return _with_selectors(tree, expected)


def _with_selectors(tree: Tree, expected: ReadOnlyTree) -> Tree:
    if not expected.get("aggregationRule"):
        tree.pop("aggregationRule", None)
        return tree
    present = (tree.get("aggregationRule") or {}).get("clusterRoleSelectors")
    missing = _missing_items(expected["aggregationRule"]["clusterRoleSelectors"], present)
    if missing:
        tree["aggregationRule"] = {"clusterRoleSelectors": [*(present or ()), *missing]}
    return tree


def _missing_items(expected: Sequence[Any] | None, present: Sequence[Any] | None) -> Sequence[Any]:
    return [item for item in expected or () if item not in (present or ())]
