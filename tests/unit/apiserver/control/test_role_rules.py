"""The rules that allow rights, and the rights of roles that were used, without a server."""

import pytest

from mockube.apiserver.authz.rbac.rules import RuleSet
from mockube.apiserver.control.access import Right
from mockube.apiserver.control.role_rules import UsedRights, allows, rules_of, single_rights

PODS = [Right("get", "", "pods", "a"), Right("get", "", "pods", "b"), Right("list", "", "pods")]


@pytest.mark.parametrize("max_names", [0, 1, 2, 100])
def test_rules_allow_what_they_were_made_of(max_names):
    rights = [*PODS, Right("get", "apps", "deployments/scale", "d"), Right("get", path="/metrics")]
    rules = RuleSet(rules_of(rights, max_names))
    assert all(allows(rules, right) for right in rights)
    assert not allows(rules, Right("delete", "", "pods", "a"))
    assert not allows(rules, Right("get", "apps", "deployments", "d"))
    assert allows(rules, Right("get", "", "pods", "c")) == (max_names < 2)


def test_resources_with_the_same_verbs_share_a_rule():
    rights = [Right(verb, "apps", name) for verb in ("watch", "get", "odd") for name in ("b", "a")]
    assert rules_of(rights, 1) == [
        {"apiGroups": ["apps"], "resources": ["a", "b"], "verbs": ["get", "watch", "odd"]}
    ]


def test_use_of_single_rights_is_found_by_name_and_by_wildcard():
    used = UsedRights([*PODS, Right("get", path="/logs/a")])

    def count(verb="get", group="", resource="pods", name=""):
        return len(used.covered_by(Right(verb, group, resource, name)))

    assert (count(), count(name="a"), count(name="c"), count("list"), count("watch")) == (2, 1, 0, 1, 0)
    assert (count("*"), count(group="*"), count(resource="*"), count("*", "apps")) == (3, 2, 2, 0)
    assert [len(used.covered_by(Right("get", path=path))) for path in ("/logs/*", "/logs", "/logs/a")] == [
        1,
        0,
        1,
    ]


def test_single_rights_of_a_rule_keep_its_names_and_wildcards():
    rule = {"verbs": ["get", "*"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}
    assert [*single_rights(rule)] == [Right("get", "", "pods", "a"), Right("*", "", "pods", "a")]
