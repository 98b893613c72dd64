"""The selector of the pods with which a pod is spread: that of its Services and its controller."""

import pytest

from mockube.scheduler.spreading import spread_selector
from mockube.scheduler.workload_selector import SpreadControllers, Workloads, selector_of_workloads
from tests.support.controllers.scheduler_objects import info, pod, store_of

LABELS = {"app": "web", "tier": "front", "hash": "1"}


def row(name, selector, namespace="default"):
    spec = {} if selector is None else {"selector": selector}
    return {"metadata": {"name": name, "namespace": namespace, "resourceVersion": "1"}, "spec": spec}


def selected(*services, owner=None, sets=(), controllers=(), labels=LABELS):
    """Return the labels of some that the selector matches; None if it is empty."""
    metadata = {"ownerReferences": [owner]} if owner else {}
    workloads = Workloads(
        services=store_of(*services),
        controllers={
            ("apps/v1", "ReplicaSet"): SpreadControllers(store_of(*sets)),
            ("v1", "ReplicationController"): SpreadControllers(
                store_of(*controllers), has_plain_selector=True
            ),
        },
    )
    selector = selector_of_workloads(info(pod(labels=labels, metadata=metadata)), workloads)
    some = {
        "app": {"app": "web"},
        "both": {"app": "web", "tier": "front"},
        "all": LABELS,
        "others": {"app": "db"},
    }
    return None if selector.empty else [name for name, one in some.items() if selector.matches(one)]


def owner(kind, name="web", api_version="apps/v1"):
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": "u", "controller": True}


@pytest.mark.parametrize(
    ("services", "names"),
    [
        pytest.param([], None, id="none"),
        pytest.param([row("web", {"app": "web"})], ["app", "both", "all"], id="one"),
        pytest.param(
            [row("web", {"app": "web"}), row("front", {"tier": "front"})], ["both", "all"], id="two"
        ),
        pytest.param([row("db", {"app": "db"})], None, id="of other pods"),
        pytest.param([row("web", {"app": "web", "more": "1"})], None, id="with more labels than the pod"),
        pytest.param([row("web", {"app": "web"}, "other")], None, id="in another namespace"),
        pytest.param([row("web", None)], None, id="without selector"),
        pytest.param([row("web", {})], None, id="with an empty selector"),
    ],
)
def test_pod_is_spread_with_the_pods_of_its_services(services, names):
    assert selected(*services) == names


BY_HASH = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "hash", "operator": "Exists"}]}


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        pytest.param({"owner": owner("ReplicaSet"), "sets": [row("web", BY_HASH)]}, ["all"], id="set"),
        pytest.param(
            {"owner": owner("ReplicaSet"), "sets": [row("web", {"matchLabels": {"tier": "front"}})]},
            ["both", "all"],
            id="set by labels",
        ),
        pytest.param({"owner": owner("ReplicaSet"), "sets": [row("other", BY_HASH)]}, None, id="missing set"),
        pytest.param(
            {"owner": owner("ReplicaSet"), "sets": [row("web", None)]}, None, id="set without selector"
        ),
        pytest.param(
            {
                "owner": owner("ReplicationController", api_version="v1"),
                "controllers": [row("web", {"app": "web"})],
            },
            ["app", "both", "all"],
            id="controller whose selector is a map",
        ),
        pytest.param(
            {"owner": owner("Job"), "sets": [row("web", BY_HASH)]}, None, id="controller of another kind"
        ),
        pytest.param({"sets": [row("web", BY_HASH)]}, None, id="no controller"),
    ],
)
def test_pod_is_spread_with_the_pods_of_its_controller(fields, names):
    assert selected(**fields) == names


@pytest.mark.parametrize(
    "fields",
    [
        {"owner": owner("ReplicaSet"), "sets": [row("web", {"matchLabels": {"app": "web"}})]},
        {
            "owner": owner("ReplicationController", api_version="v1"),
            "controllers": [row("web", {"app": "web"})],
        },
        {"owner": owner("Job")},
    ],
)
def test_selectors_of_service_and_controller_are_combined(fields):
    service = row("front", {"tier": "front"})
    assert selected(service, **fields) == ["both", "all"]


def test_pod_with_constraints_of_its_own_is_not_spread_by_its_workload():
    constrained = info(pod(topologySpreadConstraints=[{"topologyKey": "zone"}]))
    assert spread_selector(constrained, object()) is None
    assert spread_selector(info(pod()), None) is None
