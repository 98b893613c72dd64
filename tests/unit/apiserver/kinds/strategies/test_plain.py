"""Strategies that need code besides their row in the table."""

from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.kinds.built_in_kinds import NEWEST
from mockube.apiserver.kinds.strategy import MAIN
from tests.support.server.requests import request


def strategy(group, resource):
    return NEWEST.strategies[GroupResource(group, resource)]


def test_limit_range_without_name_is_named_by_uid():
    tree = {"metadata": {"uid": "u"}}
    strategy("", "limitranges").prepare_create(tree, request())
    assert tree["metadata"]["name"] == "u"


def test_account_secret_references_keep_name_only():
    tree = {"secrets": [{"name": "s", "kind": "Secret"}]}
    strategy("", "serviceaccounts").prepare_update[MAIN](tree, {}, request())
    assert tree["secrets"] == [{"name": "s"}]


def test_node_config_source_is_dropped():
    nodes, node = (
        strategy("", "nodes"),
        {"spec": {"configSource": {}, "podCIDR": "x"}, "status": {"config": {}}},
    )
    nodes.prepare_create(node, request())
    assert node == {"spec": {"podCIDR": "x"}, "status": {}}
    used = {"spec": {"configSource": {"a": 1}}}
    nodes.prepare_update[MAIN](used, {"spec": {"configSource": {}}}, request())
    assert used["spec"] == {"configSource": {"a": 1}}
