"""The few lines of code beside the rows."""

from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.kinds.registry import STRATEGIES
from mockube.apiserver.kinds.strategy import MAIN
from tests.support.server.requests import request


def strategy(group, resource):
    return STRATEGIES[GroupResource(group, resource)]


def test_a_limit_range_without_a_name_is_called_by_its_uid():
    tree = {"metadata": {"uid": "u"}}
    strategy("", "limitranges").prepare_create(tree, request())
    assert tree["metadata"]["name"] == "u"


def test_accounts_refer_to_secrets_by_name_alone():
    tree = {"secrets": [{"name": "s", "kind": "Secret"}]}
    strategy("", "serviceaccounts").prepare_update[MAIN](tree, {}, request())
    assert tree["secrets"] == [{"name": "s"}]


def test_nodes_are_no_longer_configured_through_their_object():
    nodes, node = (
        strategy("", "nodes"),
        {"spec": {"configSource": {}, "podCIDR": "x"}, "status": {"config": {}}},
    )
    nodes.prepare_create(node, request())
    assert node == {"spec": {"podCIDR": "x"}, "status": {}}
    used = {"spec": {"configSource": {"a": 1}}}
    nodes.prepare_update[MAIN](used, {"spec": {"configSource": {}}}, request())
    assert used["spec"] == {"configSource": {"a": 1}}
