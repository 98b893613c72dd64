"""Who wrote last, and what."""

import pytest

from mockube.apimachinery.patch.json_difference import patched
from mockube.report.authors import Author, is_component_author
from mockube.report.recording import ObjectIdentity
from mockube.report.refusals import is_own_call, refusals
from mockube.report.writes import Writes
from tests.support.reports import ADMIN, CONTROLLER, changes_to, request, tree_of

WEB = ObjectIdentity("deployments.apps", "default", "web")


def deployment(replicas, **fields):
    return tree_of("Deployment", "web", replicas=replicas, **fields)


def test_write_says_what_a_field_was_and_is():
    writes = Writes(changes_to("Deployment", "web", deployment(3), deployment(0), users=[ADMIN, "alice"]))
    (last, _) = writes.of_objects([WEB], 5, 5)
    assert (last["author"], last["fields"]) == ("alice (kubectl)", ["spec.replicas: 3 -> 0"])
    assert last["key"] == "deployments.apps|default|web"


def test_write_of_an_object_that_is_older_than_the_history_says_what_is_written():
    changes = changes_to("Deployment", "web", deployment(3), deployment(0))[1:]
    (write,) = Writes(changes).of_objects([WEB], 5, 5)
    assert write["fields"] == ["spec.replicas: 0"]


def test_fields_without_interest_are_left_out_and_many_counted():
    before, after = (
        deployment(1),
        deployment(1, status={"observedGeneration": 2, **{f"f{n}": n for n in range(9)}}),
    )
    write = Writes(changes_to("Deployment", "web", before, after)).of_objects([WEB], 1, 1)[0]
    assert len(write["fields"]) == 6
    assert write["omittedFields"] == 3
    assert "observedGeneration" not in str(write)


def test_object_that_was_created_again_begins_anew():
    versions = (deployment(3), None, deployment(1), deployment(2))
    write = Writes(changes_to("Deployment", "web", *versions)).of_objects([WEB], 1, 1)[0]
    assert write["fields"] == ["spec.replicas: 1 -> 2"]


def test_clients_come_before_components_and_those_that_wrote_last_first():
    users = [ADMIN, "alice", CONTROLLER]
    writes = Writes(changes_to("Deployment", "web", *map(deployment, range(3)), users=users))
    assert [(each.user, each.count) for each in writes.authors()] == [
        ("alice", 1),
        (ADMIN, 1),
        (CONTROLLER, 1),
    ]


def test_people_come_before_programs_and_those_before_the_control_plane():
    users = ["alice", "system:serviceaccount:shop:operator", CONTROLLER, "system:node:a"]
    writes = Writes(changes_to("Deployment", "web", *map(deployment, range(4)), users=users))
    assert [each.user for each in writes.authors()] == [users[0], users[1], users[3], users[2]]


def test_programs_of_a_user_are_named_together():
    changes = changes_to("Deployment", "web", *map(deployment, range(4)))
    for change, manager in zip(changes, ["kubectl-create", "helm/v3", "unknown", "helm/v4"], strict=True):
        change["author"]["manager"] = manager
    assert [*map(str, Writes(changes).authors())] == [f"{ADMIN} (helm, kubectl-create)"]


def evictions(*names):
    """Return the writes of a drain: each pod gets a condition, and then a time at which it ends."""
    changes = []
    for n, name in enumerate(names):
        pod = tree_of("Pod", name)
        marked = pod | {"status": {"conditions": [{"type": "DisruptionTarget"}]}}
        ending = marked | {"metadata": marked["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
        changes += changes_to(
            "Pod", name, pod, marked, ending, first=10 * n, users=[CONTROLLER, "carol", "carol"]
        )[1:]
    for change in changes:
        change["author"] |= {"verb": "create", "subresource": "eviction"}
    return changes


def test_evictions_of_a_drain_are_one_line():
    writes = Writes([*changes_to("Deployment", "web", deployment(1), users=["carol"]), *evictions(*"abc")])
    drain, created = writes.of_user("carol", 3)
    assert (drain["name"], drain["others"], drain["othersCount"], drain["verb"]) == (
        "c",
        ["b", "a"],
        2,
        "create/eviction",
    )
    assert (created["type"], created["name"]) == ("ADDED", "web")


def test_different_patches_of_one_object_are_lines_of_their_own():
    writes = Writes(changes_to("Deployment", "web", *map(deployment, range(3)), users=["alice"] * 3))
    assert [each["fields"] for each in writes.of_user("alice", 2)] == [
        ["spec.replicas: 1 -> 2"],
        ["spec.replicas: 0 -> 1"],
    ]


def test_requests_with_which_mockube_looks_at_a_cluster_are_its_own():
    read, write, refused = (
        request(str(n), code, verb=verb)
        for n, (code, verb) in enumerate([(200, "list"), (201, "create"), (403, "get")])
    )
    explained = request("4", 201)
    for each in (read, write, refused, explained):
        each["spec"]["agent"] = "mockube"
    explained["spec"]["group"] = "control.mockube.dev"
    assert [is_own_call(each) for each in (read, write, refused, explained)] == [True, False, False, True]


def test_writes_of_clients_to_an_object_are_not_lost_among_those_of_controllers():
    users = ["alice", *[CONTROLLER] * 20]
    writes = Writes(changes_to("Deployment", "web", *map(deployment, range(21)), users=users))
    assert [write["author"] for write in writes.of_objects([WEB], 3, 3)] == [
        f"{CONTROLLER} (kubectl)",
        "alice (kubectl)",
    ]


def test_operator_is_no_component():
    assert not is_component_author("system:serviceaccount:shop:operator")
    assert is_component_author(CONTROLLER)
    assert is_component_author("system:node:node-1")
    assert is_component_author("")
    assert not is_component_author("system:anonymous")
    assert str(Author("", "")) == "(not known)"


def test_requests_that_were_refused_alike_are_one():
    found = refusals([request("1", 403, message="no"), request("2", 201), request("3", 403, message="no")])
    assert [(each.name, each.count) for each in found] == [("3", 2)]


def test_usual_errors_and_those_of_components_are_not_refusals_unless_by_a_fault():
    usual = [request("1", 404), request("2", 409), request("3", 403, user=CONTROLLER)]
    by_fault = request("4", 409, user=CONTROLLER, fault="conflict")
    assert [each.name for each in refusals([*usual, by_fault])] == ["4"]


def test_each_of_many_writes_of_an_object_says_what_it_changed():
    changes = changes_to("Deployment", "web", *map(deployment, range(200)))
    writes = Writes(changes)
    fields = [writes.described(change)["fields"] for change in changes[1:]]
    assert fields == [[f"spec.replicas: {n} -> {n + 1}"] for n in range(199)]


def test_an_object_with_many_writes_is_replayed_once(monkeypatch):
    calls = []
    monkeypatch.setattr(
        "mockube.history.replay.patched", lambda before, patch: calls.append(1) or patched(before, patch)
    )
    writes = Writes(changes_to("Deployment", "web", *map(deployment, range(640)), users=["alice"] * 640))
    for _ in range(5):
        writes.of_objects([WEB], 8, 8)
    assert len(calls) <= 640 + 8 * 64


@pytest.mark.parametrize("user", ["", "system:anonymous"])
def test_requests_without_valid_credentials_are_refusals_of_clients(user):
    sent = request("1", 401 if not user else 403, user=user)
    assert [each.name for each in refusals([sent])] == ["1"]
