"""The scheduler's cache: which pods are on which node, and how many match a selector."""

import pytest

from mockube.apimachinery.labels import from_label_selector
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.scheduler.cluster import SchedulerCache
from tests.support.controllers.scheduler_objects import HOST, apart, info, node, pod, term
from tests.support.controllers.scheduler_volumes import uses

DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def cache_of(*names):
    cache = SchedulerCache()
    for name in names:
        cache.set_node(node(name))
    return cache


def update(cache, at, **fields):
    cache.update_pod(PodView.of(pod("web", **fields)), at)


def pods_of(cache):
    return {one.name: [*one.pods] for one in cache.nodes()}


def test_pod_moves_to_the_node_of_its_last_version():
    cache = cache_of("a", "b")
    update(cache, "a")
    update(cache, "b")
    assert pods_of(cache) == {"a": [], "b": ["web"]}
    assert cache.has_pod("web")
    cache.remove_pod("web")
    cache.remove_pod("web")
    assert pods_of(cache) == {"a": [], "b": []}
    assert not cache.has_pod("web")


def test_assumed_pod_counts_as_one_that_runs_until_its_node_is_confirmed():
    cache = cache_of("a", "b")
    cache.assume_pod(info(pod("web", requests={"cpu": "1"})), "a")
    assert (cache.has_pod("web"), cache.node("a").requested["cpu"]) == (True, 1000)
    assert (cache.is_assumed("web"), cache.sizes()["assumed_pods"]) == (True, 1)
    update(cache, "a", requests={"cpu": "2"})
    assert cache.node("a").requested["cpu"] == 2000
    assert (cache.is_assumed("web"), cache.sizes()["assumed_pods"]) == (False, 0)


def test_assumption_ends_with_the_pod():
    cache = cache_of("a")
    cache.assume_pod(info(pod("web")), "a")
    cache.remove_pod("web")
    assert (cache.is_assumed("web"), cache.has_pod("web")) == (False, False)


def test_update_without_effect_on_sums_keeps_them_and_the_new_version():
    cache = cache_of("a")
    update(cache, "a", requests={"cpu": "1"})
    update(cache, "a", requests={"cpu": "1"}, status={"phase": "Running"})
    assert cache.node("a").requested["cpu"] == 1000
    assert cache.node("a").pods["web"].view.phase == "Running"


def test_pods_wait_for_their_node_to_be_known():
    cache = SchedulerCache()
    update(cache, "a", requests={"cpu": "1"})
    assert (cache.nodes(), cache.node("a").requested["cpu"]) == ([], 1000)
    cache.set_node(node("a"))
    assert pods_of(cache) == {"a": ["web"]}


def test_node_is_forgotten_with_its_last_pod():
    cache = cache_of("a")
    update(cache, "a")
    cache.remove_node("a")
    assert (cache.nodes(), cache.node("a") is None) == ([], False)
    cache.remove_pod("web")
    assert cache.node("a") is None
    cache.set_node(node("b"))
    cache.remove_node("b")
    assert cache.node("b") is None


def test_hostname_of_two_nodes_is_ambiguous_until_one_changes_or_goes():
    cache = cache_of("a", "b")
    found = []
    for change in (
        lambda: None,
        lambda: cache.set_node(node("b", labels={HOST: "a"})),
        lambda: cache.set_node(node("b", labels={HOST: "a"}, cpu="8")),
        lambda: cache.set_node(node("b")),
        lambda: cache.set_node(node("c", labels={HOST: "a"})),
        lambda: cache.remove_node("c"),
        lambda: cache.set_node(node("b", labels={HOST: ""})),
        lambda: cache.set_node({"metadata": {"name": "b"}}),
        lambda: cache.remove_node("b"),
    ):
        change()
        found.append(cache.has_ambiguous_hostnames)
    assert found == [False, True, True, False, True, False, True, False, False]


WEB = {"app": "web"}


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        pytest.param({"labels": WEB}, 1, id="that match"),
        pytest.param({"labels": WEB | {"tier": "front"}}, 1, id="with more labels"),
        pytest.param({"labels": {"app": "db"}}, 0, id="with other labels"),
        pytest.param({"labels": WEB, "namespace": "other"}, 0, id="in another namespace"),
        pytest.param({"labels": WEB, "metadata": DELETED}, 0, id="that are terminating"),
    ],
)
def test_pods_of_node_are_counted(fields, count):
    cache = cache_of("a")
    update(cache, "a", **fields)
    counts = cache.matching_counts("default", from_label_selector({"matchLabels": WEB}))
    assert dict(counts) == ({"a": count} if count else {})


def test_counts_follow_changes_of_pod():
    selector = from_label_selector({"matchLabels": WEB})
    cache = cache_of("a", "b")
    cache.update_pod(PodView.of(pod("other", labels=WEB)), "a")
    for at, fields, counts in (
        ("a", {"labels": WEB}, {"a": 2}),
        ("b", {"labels": WEB}, {"a": 1, "b": 1}),
        ("b", {"labels": {"app": "db"}}, {"a": 1}),
        ("b", {"labels": WEB}, {"a": 1, "b": 1}),
        ("b", {"labels": WEB, "metadata": DELETED}, {"a": 1}),
    ):
        update(cache, at, **fields)
        assert dict(cache.matching_counts("default", selector)) == counts
    cache.remove_pod("web")
    cache.remove_pod("other")
    assert cache.matching_counts("default", selector) == {}


def test_empty_selector_counts_no_pods():
    cache = cache_of("a")
    update(cache, "a", labels=WEB)
    assert cache.matching_counts("default", from_label_selector({})) == {}


def test_mark_of_a_node_makes_it_the_last_change_if_it_is_known():
    cache = cache_of("a", "b")
    before = cache.generation
    cache.mark_changed("missing")
    assert (cache.generation, [*cache._generations]) == (before, ["a", "b"])
    cache.mark_changed("a")
    assert (cache.generation, [*cache._generations]) == (before + 1, ["b", "a"])


def with_images(name, **sizes):
    images = [{"names": [image], "sizeBytes": size} for image, size in sizes.items()]
    return node(name, status={"images": images})


def test_images_are_known_with_their_nodes():
    cache = SchedulerCache()
    cache.set_node(with_images("a", app=1, db=2))
    cache.set_node(with_images("b", app=3))
    assert cache.image_sizes("app") == {"a": 1, "b": 3}
    cache.set_node(with_images("a", db=2))
    assert (cache.image_sizes("app"), cache.image_sizes("db")) == ({"b": 3}, {"a": 2})
    cache.remove_node("b")
    assert cache.image_sizes("app") == {}
    assert [*cache._images] == ["db"]


def test_users_of_a_claim_are_the_nodes_of_its_pods():
    cache, claim = cache_of("a", "b"), Key("default", "data")
    for name, at in (("one", "a"), ("two", "a"), ("three", "b")):
        cache.update_pod(PodView.of(pod(name, **uses("data"))), at)
    assert {*cache.users_of_claim(claim)} == {"a", "b"}
    cache.remove_pod("three")
    cache.remove_pod("one")
    assert {*cache.users_of_claim(claim)} == {"a"}
    cache.remove_pod("two")
    assert (cache.users_of_claim(claim), cache._claim_users) == ({}, {})
    assert cache.users_of_claim(Key("other", "data")) == {}


def test_topology_keys_are_those_of_the_terms_of_pods():
    cache = cache_of("a")
    terms = apart(term("zone", WEB), term("rack", WEB))
    update(cache, "a", affinity=terms)
    cache.update_pod(PodView.of(pod("other", affinity=apart(term("zone", WEB)))), "a")
    assert cache.topology_keys == {"zone", "rack"}
    cache.remove_pod("web")
    assert cache.topology_keys == {"zone"}
    cache.remove_pod("other")
    assert cache.topology_keys == frozenset()


def test_changes_of_nodes_are_listed_since_a_generation():
    cache = cache_of("a", "b", "c")

    def changed(change):
        before = cache.generation
        change()
        return {*cache.changed_since(before)}

    assert changed(lambda: cache.set_node(node("a"))) == set(), "nothing that a decision reads"
    assert changed(lambda: cache.set_node(node("a", cpu="9"))) == {"a"}
    assert changed(lambda: cache.set_node(node("a", cpu="9", labels={HOST: "x"}))) == {"a"}
    assert changed(lambda: update(cache, "b")) == {"b"}
    assert changed(lambda: update(cache, "c")) == {"b", "c"}
    assert changed(lambda: cache.remove_pod("web")) == {"c"}
    assert changed(lambda: cache.remove_node("b")) == {"b"}
    assert changed(lambda: cache.set_node(node("d"))) == {"d"}


def test_nodes_of_a_hostname_are_found():
    cache = cache_of("a", "b")
    cache.set_node(node("c", labels={HOST: "a"}))
    assert sorted(cache.nodes_of_hosts(["a", "none"])) == ["a", "c"]
    cache.remove_node("a")
    assert [*cache.nodes_of_hosts(["a", "b"])] == ["c", "b"]


def test_nodes_that_are_known_are_listed_in_turn():
    cache = SchedulerCache()
    for name, zone in (("a", "x"), ("b", "x"), ("c", "y")):
        cache.set_node(node(name, zone=zone))
    assert [one.name for one in cache.nodes_in_turn()] == ["a", "c", "b"]
    update(cache, "unknown")
    assert [one.name for one in cache.nodes_in_turn()] == ["a", "c", "b"]
    cache.set_node(node("d", zone="y"))
    assert [one.name for one in cache.nodes_in_turn()] == ["a", "c", "b", "d"]


def test_sizes_are_the_numbers_of_nodes_and_pods():
    cache = cache_of("a", "b")
    update(cache, "a")
    cache.assume_pod(info(pod("other")), "b")
    assert cache.sizes() == {"nodes": 2, "pods": 2, "assumed_pods": 1}
