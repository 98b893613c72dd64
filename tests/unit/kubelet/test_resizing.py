"""The desired nodes come from the flag and from the ConfigMap, which may change while the manager runs."""

import pytest

from mockube.kubelet.node_pools.pool import plain_nodes
from mockube.kubelet.node_pools.reading import read_value
from mockube.kubelet.resizing import DesiredNodes, desired_nodes, pool_member

FLAG = read_value("zone=a:3")
BY_FLAG = DesiredNodes(pools=FLAG)


def by_config_map(value):
    return DesiredNodes(pools=read_value(value), deletes_surplus=True)


@pytest.mark.parametrize(
    ("data", "desired"),
    [
        pytest.param(None, BY_FLAG, id="no ConfigMap"),
        pytest.param({"nodes": "5"}, by_config_map(5), id="number"),
        pytest.param({"nodes": "zone=b:1"}, by_config_map("zone=b:1"), id="pools"),
        pytest.param({"nodes": "- count: 1\n"}, by_config_map("- count: 1\n"), id="YAML"),
        pytest.param({"nodes": "many"}, BY_FLAG, id="invalid text"),
        pytest.param({"nodes": "/etc/passwd"}, BY_FLAG, id="path"),
        pytest.param({"nodes": "11"}, BY_FLAG, id="too many"),
        pytest.param({"zones": "a"}, BY_FLAG, id="no nodes"),
    ],
)
def test_desired_nodes_follow_config_map(data, desired):
    assert desired_nodes(None if data is None else {"data": data}, FLAG, max_nodes=10) == desired


def test_keys_of_an_earlier_release_are_deprecated(caplog):
    config_map = {"data": {"nodes": "2", "zones": "a,b", "labels": "disk=ssd"}}
    assert desired_nodes(config_map, FLAG).pools == read_value("zone=a,zone=b,label=disk=ssd:2")
    assert (
        "zones, labels has been deprecated, use nodes: zone=a,zone=b,label=disk=ssd:2 instead" in caplog.text
    )


def test_invalid_keys_of_an_earlier_release_are_logged(caplog):
    assert desired_nodes({"data": {"nodes": "cpu=4:2", "zones": "a"}}, FLAG) == BY_FLAG
    assert desired_nodes({"data": {"nodes": "2", "labels": "disk"}}, FLAG) == BY_FLAG
    assert "is ignored: nodes: zones: pools have capacity" in caplog.text
    assert 'is ignored: nodes: labels: "disk" is not a label' in caplog.text


def test_unknown_key_is_logged(caplog):
    assert desired_nodes({"data": {"nodes": "2", "node": "3"}}, FLAG) == by_config_map(2)
    assert "node is not read" in caplog.text


def registered(name, pool=None):
    labels = {} if pool is None else {"mockube.dev/node-pool": pool}
    return {"metadata": {"name": name, "labels": labels}}


@pytest.mark.parametrize(
    ("node", "is_surplus"),
    [
        pytest.param(registered("node-2"), False, id="node of the plain pool"),
        pytest.param(registered("node-3"), True, id="higher number"),
        pytest.param(registered("gpu-1", "gpu"), False, id="node of a pool"),
        pytest.param(registered("gpu-2", "gpu"), True, id="higher number in a pool"),
        pytest.param(registered("old-1", "old"), True, id="pool that is gone"),
        pytest.param(registered("old-1"), False, id="node of somebody else"),
        pytest.param(registered("mine", "gpu"), False, id="name that no pool gives"),
        pytest.param(registered("gpu-2", "other"), False, id="label of another pool"),
    ],
)
def test_surplus_nodes_are_those_that_pools_no_longer_have(node, is_surplus):
    pools = read_value("2, name=gpu,gpu=8:1")
    assert pools.pools[0].has_settings is False
    assert DesiredNodes(pools=pools, deletes_surplus=True).is_surplus(node) is is_surplus
    assert not DesiredNodes(pools=plain_nodes(0)).is_surplus(node)


def test_name_with_several_dashes_has_one_pool():
    assert pool_member(registered("a-1-2", "a-1")) == ("a-1", 2)
