from datetime import UTC, datetime

from mockube.client.cache.store import Change
from mockube.client.kinds import CLUSTER_ROLES
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import EMPTY_PLAN
from mockube.controller_manager.controllers.clusterroleaggregation.controller import (
    CLUSTER_ROLE_AGGREGATION,
    reconcile,
)
from tests.support.controllers.fake_caches import FakeCaches

NOW = datetime(2030, 1, 1, tzinfo=UTC)
PODS = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
NODES = {"verbs": ["get"], "apiGroups": [""], "resources": ["nodes"]}
TO_VIEW, TO_EDIT = {"to-view": "true"}, {"to-edit": "true"}


def role(name, *rules, labels=None, selectors=None):
    tree = {"metadata": {"name": name, "uid": f"uid-{name}", "labels": labels or {}}, "rules": list(rules)}
    return tree | {"aggregationRule": {"clusterRoleSelectors": selectors}} if selectors else tree


def actions_for(*roles):
    return reconcile(
        FakeCaches({CLUSTER_ROLES: roles}, CLUSTER_ROLE_AGGREGATION.indexes), Key("", "sum"), NOW
    )


def rules(plan):
    (patch,) = plan.actions
    assert (patch.kind, patch.field_manager) == ("apply", "clusterrole-aggregation-controller")
    return patch.body.get("rules")


def test_rules_are_ordered_by_selector_and_name_without_duplicates():
    both = role("sum", selectors=[{"matchLabels": TO_EDIT}, {"matchLabels": TO_VIEW}])
    others = (
        role("b", PODS, labels=TO_VIEW),
        role("a", NODES, PODS, labels=TO_VIEW),
        role("z", PODS, labels=TO_EDIT),
    )
    assert rules(actions_for(both, *others)) == [PODS, NODES]


def test_role_does_not_select_itself():
    own = role("sum", PODS, labels=TO_VIEW, selectors=[{"matchLabels": TO_VIEW}])
    assert rules(actions_for(own)) is None


def test_up_to_date_role_is_not_written():
    assert (
        actions_for(role("sum", PODS, selectors=[{"matchLabels": TO_VIEW}]), role("a", PODS, labels=TO_VIEW))
        is EMPTY_PLAN
    )


def test_match_expressions_select_roles():
    exists = [{"matchExpressions": [{"key": "to-view", "operator": "Exists"}]}]
    assert rules(
        actions_for(role("sum", selectors=exists), role("a", PODS, labels=TO_VIEW), role("b", NODES))
    ) == [PODS]


def test_deleted_role_is_not_created_again():
    (patch,) = actions_for(
        role("sum", selectors=[{"matchLabels": TO_VIEW}]), role("a", PODS, labels=TO_VIEW)
    ).actions
    assert patch.body["metadata"] == {"name": "sum", "uid": "uid-sum"}


def test_role_without_aggregation_rule_is_ignored():
    assert actions_for(role("sum", PODS), role("a", NODES, labels=TO_VIEW)) is EMPTY_PLAN


def test_every_field_of_a_rule_is_copied_and_empty_ones_are_left_out():
    whole = {
        "verbs": ["get"],
        "apiGroups": ["apps"],
        "resources": ["deployments"],
        "resourceNames": ["web"],
        "nonResourceURLs": ["/healthz"],
    }
    selecting = role("sum", selectors=[{"matchLabels": TO_VIEW}])
    assert rules(actions_for(selecting, role("a", whole | {"unknown": ["x"]}, labels=TO_VIEW))) == [whole]
    assert rules(actions_for(selecting, role("a", PODS | {"resourceNames": []}, labels=TO_VIEW))) == [PODS]


def test_absent_role_is_ignored():
    assert actions_for(role("other")) is EMPTY_PLAN


def test_each_change_concerns_all_aggregating_roles():
    roles = (role("sum", selectors=[{"matchLabels": TO_VIEW}]), role("a", PODS, labels=TO_VIEW))
    caches = FakeCaches({CLUSTER_ROLES: roles}, CLUSTER_ROLE_AGGREGATION.indexes)
    (watch,) = CLUSTER_ROLE_AGGREGATION.watches
    assert [*watch.keys(caches, Change(None, roles[1]))] == [Key("", "sum")]
