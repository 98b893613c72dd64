import pytest

from mockube.client import kinds
from mockube.client.resources import Key
from mockube.controller_manager.controllers.garbagecollector import graph as graphs
from mockube.controller_manager.controllers.garbagecollector.graph import Graph


def config_map(name, *owners, namespace="default", finalizers=(), deleting=False):
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{name}",
        "finalizers": list(finalizers),
        "ownerReferences": [*owners],
    }
    return {"metadata": metadata | ({"deletionTimestamp": "2030-01-01T00:00:00Z"} if deleting else {})}


def owner(name, *, kind="ConfigMap", blocks=False):
    return {
        "apiVersion": "v1",
        "kind": kind,
        "name": name,
        "uid": f"uid-{name}",
        "blockOwnerDeletion": blocks,
    }


def observe(graph, *things):
    looks = [graph.observe(kinds.CONFIG_MAPS, one) for one in things]
    return names(look.delete for look in looks), names(look.orphan for look in looks)


def names(lists):
    return [node.identity.key.name for nodes in lists for node in nodes]


def test_dependent_of_observed_owner_needs_no_check():
    assert observe(Graph(), config_map("a"), config_map("b", owner("a"))) == ([], [])


def test_unknown_owner_is_looked_up_once():
    graph = Graph()
    assert observe(graph, config_map("b", owner("a")), config_map("c", owner("a"))) == (["a"], [])
    virtual = graph.node("uid-a")
    assert virtual.is_virtual
    assert virtual.identity.key == Key("default", "a")


def test_absent_owner_leads_to_check_of_dependents():
    graph = Graph()
    observe(graph, config_map("b", owner("a")), config_map("c", owner("a")))
    look = graph.remove("uid-a")
    assert names([look.delete]) == ["b", "c"]
    assert graph.node("uid-a") is None


def test_virtual_owner_becomes_real_when_observed():
    graph = Graph()
    observe(graph, config_map("b", owner("a")))
    assert observe(graph, config_map("a")) == ([], [])
    assert not graph.node("uid-a").is_virtual
    assert [*graph.node("uid-a").dependents] == ["uid-b"]


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(owner("a", kind="Secret"), id="another kind"),
        pytest.param(owner("a") | {"name": "z"}, id="another name"),
        pytest.param(owner("a") | {"apiVersion": "apps/v1"}, id="another group"),
    ],
)
@pytest.mark.parametrize("owner_first", [True, False])
def test_owner_with_wrong_coordinates_is_dangling(wrong, owner_first):
    graph = Graph()
    pair = config_map("a"), config_map("b", wrong)
    looked_at, _ = observe(graph, *(pair if owner_first else pair[::-1]))
    assert looked_at[-1] == "b"


def test_owner_in_other_namespace_is_dangling():
    assert observe(Graph(), config_map("a", namespace="other"), config_map("b", owner("a"))) == (["b"], [])


def test_owner_in_other_version_is_the_same():
    assert observe(Graph(), config_map("a"), config_map("b", owner("a") | {"apiVersion": "v2"})) == ([], [])


def test_virtual_owner_is_removed_with_last_dependent():
    graph = Graph()
    observe(graph, config_map("b", owner("a")))
    graph.remove("uid-b")
    assert len(graph) == 0


def test_foreground_deletion_checks_dependents_and_owner():
    graph = Graph()
    observe(graph, config_map("a"), config_map("b", owner("a", blocks=True)), config_map("c", owner("a")))
    going = config_map("a", finalizers=["foregroundDeletion"], deleting=True)
    assert observe(graph, going) == (["b", "c", "a"], [])
    assert observe(graph, going) == ([], [])
    assert [node.uid for node in graph.node("uid-a").blocking_dependents] == ["uid-b"]
    assert names([graph.remove("uid-b").delete]) == ["a"]


def test_new_dependent_of_waiting_owner_is_checked():
    graph = Graph()
    observe(graph, config_map("a", finalizers=["foregroundDeletion"], deleting=True))
    assert observe(graph, config_map("b", owner("a"))) == (["b"], [])


def test_removed_block_releases_waiting_owner():
    graph = Graph()
    blocking = owner("a", blocks=True)
    observe(
        graph, config_map("a", finalizers=["foregroundDeletion"], deleting=True), config_map("b", blocking)
    )
    assert observe(graph, config_map("b", owner("a"))) == (["a"], [])
    assert graph.node("uid-a").blocking_dependents == []
    assert observe(graph, config_map("b")) == ([], [])
    assert graph.node("uid-a").dependents == {}


def test_orphaning_deletion_releases_dependents():
    graph = Graph()
    observe(graph, config_map("a"), config_map("b", owner("a")))
    going = config_map("a", finalizers=["orphan"], deleting=True)
    assert observe(graph, going) == ([], ["a"])
    assert observe(graph, going) == ([], [])


def test_removal_of_unknown_object_does_nothing():
    look = Graph().remove("uid-a")
    assert (look.delete, look.orphan) == ([], [])


FOREGROUND, ORPHAN = ["foregroundDeletion"], ["orphan"]


@pytest.mark.parametrize(
    ("finalizers", "deleting", "expected"),
    [
        (FOREGROUND, True, (["b", "a"], [])),
        (FOREGROUND, False, ([], [])),
        ([], True, ([], [])),
        (ORPHAN, True, ([], ["a"])),
        (ORPHAN, False, ([], [])),
    ],
)
def test_deletion_waits_only_with_its_finalizer(finalizers, deleting, expected):
    graph = Graph()
    observe(graph, config_map("a"), config_map("b", owner("a")))
    assert observe(graph, config_map("a", finalizers=finalizers, deleting=deleting)) == expected
    assert observe(graph, config_map("a", finalizers=finalizers, deleting=deleting)) == ([], [])


def test_only_owners_that_wait_block_with_the_dependents_that_say_so():
    graph = Graph()
    observe(graph, config_map("a"), config_map("o"))
    observe(graph, config_map("b", owner("a", blocks=True)), config_map("c", owner("a")))
    observe(graph, config_map("d", owner("a"), owner("o", blocks=True)))
    assert [node.identity.key.name for node in graph.node("uid-a").blocking_dependents] == ["b"]


def test_changed_owners_move_the_dependent():
    graph = Graph()
    observe(graph, config_map("a"), config_map("o"), config_map("b", owner("a")))
    assert observe(graph, config_map("b", owner("a"), owner("o"))) == ([], [])
    assert [*graph.node("uid-a").dependents] == [*graph.node("uid-o").dependents] == ["uid-b"]
    observe(graph, config_map("b", owner("o")))
    assert [[*graph.node(uid).dependents] for uid in ("uid-a", "uid-o")] == [[], ["uid-b"]]
    observe(graph, config_map("b", owner("o", blocks=True)))
    assert [*graph.node("uid-o").dependents] == ["uid-b"]


def test_unknown_owner_is_forgotten_with_its_last_dependent():
    graph = Graph()
    observe(graph, config_map("b", owner("a")), config_map("c", owner("a")))
    graph.remove("uid-b")
    assert graph.node("uid-a") is not None
    graph.remove("uid-c")
    assert graph.node("uid-a") is None
    observe(graph, config_map("o"), config_map("d", owner("o")))
    graph.remove("uid-d")
    assert graph.node("uid-o") is not None, "it was observed"


def test_removed_dependent_concerns_owners_that_wait():
    graph = Graph()
    observe(graph, config_map("a"), config_map("o"))
    observe(graph, config_map("b", owner("a"), owner("o"), owner("unknown")))
    observe(graph, config_map("a", finalizers=FOREGROUND, deleting=True))
    assert names([graph.remove("uid-b").delete]) == ["a"]


def test_new_dependent_of_an_owner_that_waits_is_checked():
    graph = Graph()
    observe(graph, config_map("a", finalizers=FOREGROUND, deleting=True))
    assert observe(graph, config_map("b", owner("a"))) == (["b"], [])


def test_equal_owners_are_remembered_once_up_to_a_limit(monkeypatch):
    monkeypatch.setattr(graphs, "MAX_OWNERS", 2)
    graph = Graph()
    observe(graph, config_map("b", owner("a")), config_map("c", owner("a")))
    first = graph.node("uid-b").owners
    assert graph.node("uid-c").owners is first
    observe(graph, config_map("d", owner("b")), config_map("e", owner("c")))
    assert len(graph._owners) == 1
    assert observe(graph, config_map("f", owner("a"))) == ([], [])
    assert graph.node("uid-f").owners == first
    assert graph.node("uid-f").owners is not first


def test_namespaced_owner_in_another_namespace_does_not_match():
    graph = Graph()
    observe(graph, config_map("a", namespace="other"))
    assert observe(graph, config_map("b", owner("a"))) == (["b"], [])
