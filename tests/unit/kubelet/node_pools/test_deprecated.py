"""Deprecated flags of nodes become a pool, which is the same as the pool that is to be written instead."""

from argparse import ArgumentTypeError

import pytest

from mockube.kubelet.node_pools.deprecated import (
    CommonSettings,
    pool_of_settings,
    read_amounts,
    read_labels,
    read_zones,
    report,
    set_flags,
)
from mockube.kubelet.node_pools.pool import PoolError, plain_nodes
from mockube.kubelet.node_pools.reading import read_pools


def settings_of(*, capacity="", zones="", labels=""):
    return CommonSettings(
        simulate_node_capacity=read_amounts(capacity),
        simulate_node_zones=read_zones(zones),
        node_labels=read_labels(labels),
    )


@pytest.mark.parametrize(
    ("texts", "pool"),
    [
        pytest.param(
            {"capacity": "cpu=4", "zones": "a,b", "labels": "disk=ssd"},
            "cpu=4,zone=a,zone=b,label=disk=ssd:3",
            id="all",
        ),
        pytest.param(
            {"capacity": "cpu=4000m, nvidia.com/gpu=2"}, "cpu=4,nvidia.com/gpu=2:3", id="amounts with a blank"
        ),
        pytest.param(
            {"labels": "example.com/tier=1,empty="}, "label=example.com/tier=1,label=empty=:3", id="labels"
        ),
        pytest.param({"labels": "disk=hdd,disk=ssd"}, "label=disk=ssd:3", id="last of equal labels"),
        pytest.param({"labels": "topology.kubernetes.io/zone=a"}, "zone=a:3", id="label of the zone"),
        pytest.param(
            {"labels": "topology.kubernetes.io/zone=a", "zones": "b"}, "zone=b:3", id="zone before its label"
        ),
    ],
)
def test_flags_are_the_pool_that_is_to_be_written_instead(texts, pool):
    pools = pool_of_settings(plain_nodes(3), settings_of(**texts))
    assert pools.text == pool
    assert pools == read_pools(pool)


def test_nodes_without_deprecated_flags_are_unchanged():
    pools = read_pools("cpu=4:2, gpu=8,name=gpu:1")
    assert pool_of_settings(pools, CommonSettings()) is pools


@pytest.mark.parametrize(
    ("nodes", "texts", "message"),
    [
        pytest.param("cpu=4:3", {"labels": "disk=ssd"}, "--node-labels: pools have capacity", id="a pool"),
        pytest.param(
            "name=a:1, name=b:1",
            {"capacity": "cpu=1", "zones": "a"},
            "--simulate-node-capacity, --simulate-node-zones: pools have capacity",
            id="two pools",
        ),
        pytest.param("3", {"capacity": "cpus=1"}, 'unknown resource "cpus"', id="unknown resource"),
        pytest.param(
            "3", {"labels": "kubernetes.io/hostname=a"}, "kubernetes.io/hostname is set by name", id="label"
        ),
    ],
)
def test_flags_without_valid_pool_are_refused_by_name(nodes, texts, message):
    with pytest.raises(PoolError) as refused:
        pool_of_settings(read_pools(nodes), settings_of(**texts))
    assert message in str(refused.value)
    assert str(refused.value).startswith("--")
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_labels, "disk", '"disk" is not a label: it must be KEY=VALUE'),
        (read_labels, "=ssd", '"=ssd" is not a label: '),
        (read_labels, "disk=s s", '"disk=s s" is not a label: a valid label must be'),
        (read_zones, "a,b:3", '"b:3": a valid label must be'),
        (read_amounts, "cpu", '"cpu" is not a name and an amount such as cpu=32'),
        (read_amounts, "=1", '"=1" is not a name and an amount'),
        (read_amounts, "cpu=many", '"cpu=many": '),
    ],
)
def test_invalid_text_is_refused(read, text, message):
    with pytest.raises(ArgumentTypeError) as refused:
        read(text)
    assert str(refused.value).startswith(message)


def test_report_has_the_words_of_upstream(capsys):
    report(set_flags(settings_of(zones="a", labels="disk=ssd")), "--nodes=zone=a,label=disk=ssd:3")
    assert capsys.readouterr().err == (
        "Flag --simulate-node-zones has been deprecated, use --nodes=zone=a,label=disk=ssd:3 instead\n"
        "Flag --node-labels has been deprecated, use --nodes=zone=a,label=disk=ssd:3 instead\n"
    )
