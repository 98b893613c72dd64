"""What `mockube up` publishes by default."""

import sys
from pathlib import Path

import pytest

from mockube.cli.publishing import flags, load_balancer_range, note
from mockube.clusters.named_cluster import ClusterFolder

VALUES = {
    "Controller manager.publish": [],
    "Controller manager.load-balancer-cidr": [],
    "Controller manager.publish-address": [],
}
RANGE = "--load-balancer-cidr=127.10.0.0/16"


def flags_of(address="127.0.0.1", nodes=3, **values):
    names = {f"Controller manager.{name.replace('_', '-')}": texts for name, texts in values.items()}
    folder = ClusterFolder(name="default", path=Path("/nowhere"))
    return [*flags({**VALUES, **names}, folder, address, nodes)]


def with_range(*chosen):
    return [*chosen, *([RANGE] if sys.platform == "linux" else [])]


def test_cluster_for_this_machine_alone_publishes():
    assert flags_of() == with_range("--publish=true")
    assert flags_of(publish=["true"]) == with_range()
    assert flags_of("0.0.0.0", publish=["true"]) == with_range()
    assert flags_of(load_balancer_cidr=["192.0.2.0/24"]) == ["--publish=true"]
    assert flags_of(publish_address=["192.0.2.1"]) == ["--publish=true"]


@pytest.mark.parametrize(
    "options",
    [{"address": "0.0.0.0"}, {"nodes": 0}, {"publish": ["false"]}],
)
def test_other_clusters_do_not(options):
    assert flags_of(**options) == []


def test_clusters_have_ranges_of_their_own():
    assert load_balancer_range("default") == "127.10.0.0/16"
    assert load_balancer_range("a") == load_balancer_range("a") != load_balancer_range("default")
    assert load_balancer_range("a") != load_balancer_range("b")


def test_note_says_whether_something_is_published():
    assert note(["--publish=true"], "mockube url") == (
        "Services and Ingresses are served on this machine: `mockube url` lists where."
    )
    assert "--publish does that" in note(["--publish=true", "--publish=false"], "mockube url")
    assert "--publish does that" in note([], "mockube url")
