"""The ClusterRole aggregation controller: it copies the rules of selected roles into roles with an aggregationRule."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import labels, meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Caches, Change, Lister
from mockube.client.kinds import CLUSTER_ROLES
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import EMPTY_PLAN, Patch, Plan
from mockube.controller_manager.control.controller import Controller, Watch

_MANAGER: Final = "clusterrole-aggregation-controller"
_AGGREGATED, _LABEL = "aggregated", "label"
_RULE_FIELDS: Final = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")


def reconcile(caches: Caches, key: Key, _: datetime) -> Plan:
    roles = caches.of(CLUSTER_ROLES)
    role = roles.get("", key.name)
    if role is None or not role.get("aggregationRule"):
        return EMPTY_PLAN
    rules = aggregate(role, roles)
    if rules == list(map(_non_empty_fields, role.get("rules") or ())):
        return EMPTY_PLAN
    body = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        # Without the uid, the apply would create a role again that was just deleted.
        "metadata": {"name": key.name, "uid": meta.uid(role)},
        **({"rules": rules} if rules else {}),
    }
    patch = Patch(resource=CLUSTER_ROLES, key=key, body=body, kind="apply", field_manager=_MANAGER)
    return Plan(actions=(patch,))


def aggregate(role: ReadOnlyTree, roles: Lister[ReadOnlyTree]) -> Sequence[Mapping[str, Any]]:
    """Return the rules of the selected roles without duplicates, in the order of selectors and names."""
    rules: list[Mapping[str, Any]] = []
    for selector in role["aggregationRule"].get("clusterRoleSelectors") or ():
        for other in _select_roles(selector, roles):
            if meta.name(other) != meta.name(role):
                rules += (
                    rule for rule in map(_non_empty_fields, other.get("rules") or ()) if rule not in rules
                )
    return rules


def _select_roles(selector: Mapping[str, Any], roles: Lister[ReadOnlyTree]) -> Sequence[ReadOnlyTree]:
    matches = labels.from_label_selector(selector).matches
    match_labels = selector.get("matchLabels") or {}
    first = next(iter(match_labels.items()), None)
    # Most selectors have a label, which is indexed.
    candidates = roles.all() if first is None else roles.by_index(_LABEL, "=".join(first))
    return sorted((role for role in candidates if matches(meta.labels(role))), key=meta.name)


def _non_empty_fields(rule: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: rule[name] for name in _RULE_FIELDS if rule.get(name)}


def _by_aggregation(role: ReadOnlyTree) -> Iterator[str]:
    if role.get("aggregationRule"):
        yield ""


def _by_label(role: ReadOnlyTree) -> Iterator[str]:
    return (f"{name}={value}" for name, value in meta.labels(role).items())


def _all_aggregating_roles(caches: Caches, _: Change) -> Iterable[Key]:
    """Return the keys of all aggregating roles: each of them may select the changed role."""
    return [Key("", meta.name(role)) for role in caches.of(CLUSTER_ROLES).by_index(_AGGREGATED, "")]


CLUSTER_ROLE_AGGREGATION: Final = Controller(
    name="clusterrole-aggregation-controller",
    queue="ClusterRoleAggregator",
    service_account="clusterrole-aggregation-controller",
    watches=(Watch(resource=CLUSTER_ROLES, keys=_all_aggregating_roles),),
    indexes={CLUSTER_ROLES: {_AGGREGATED: _by_aggregation, _LABEL: _by_label}},
    reconcile=reconcile,
    workers=1,
)
