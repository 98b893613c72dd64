"""The revision history in ControllerRevisions."""

import orjson
import pytest

from mockube.apimachinery import meta
from mockube.client.kinds import CONTROLLER_REVISIONS
from mockube.controller_manager.control.actions import Create, Delete, Update
from mockube.controller_manager.workloads import revisions
from mockube.controller_manager.workloads.revisions import DesiredRevision

OWNER = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"name": "web", "namespace": "default", "uid": "u"},
}


def desired_revision(data, owner=OWNER):
    return DesiredRevision(owner=owner, data=data, labels={"app": "web"}, annotations={"note": "x"})


def revision(number, data, name=""):
    metadata = {"name": name or f"web-{number}", "namespace": "default", "uid": f"r{number}"}
    return {"metadata": metadata, "data": data, "revision": number}


def sync_revision(data, history=(), collisions=0, named=None):
    return revisions.sync_revision(desired_revision(data), history, collisions, (named or {}).get)


@pytest.mark.parametrize(
    ("collisions", "expected"),
    [pytest.param(0, "776999688b", id="none"), pytest.param(1, "776999688c", id="one")],
)
def test_revision_hash_is_upstreams(collisions, expected):
    container = {
        "name": "test",
        "image": "test",
        "imagePullPolicy": "Always",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    spec = {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        "containers": [container],
    }
    metadata = {"labels": {"app": "foo"}, "annotations": {"test": "value"}}
    template = {"metadata": metadata, "spec": spec, "$patch": "replace"}
    assert revisions.hash_of({"spec": {"template": template}}, collisions) == expected


def test_revision_data_is_encoded_as_in_go():
    (create,) = sync_revision({"spec": {"template": {"spec": {"b": 1, "a": 2}, "$patch": "replace"}}}).actions
    (made,) = create.bodies
    text = b'{"spec":{"template":{"$patch":"replace","spec":{"a":2,"b":1}}}}'
    assert orjson.dumps(made["data"]) == text


def test_revision_hash_uses_gos_escaping():
    plain = revisions.hash_of({"a": r"\u003c\u2028"}, 0)
    assert (
        revisions.hash_of({"a": "<\N{LINE SEPARATOR}"}, 0) != plain
    )  # the backslash itself would be escaped
    assert revisions.hash_of({"b": 1, "a": 2}, 0) == revisions.hash_of({"a": 2, "b": 1}, 0)


def test_first_revision_is_created():
    settled = sync_revision({"a": 1})
    (create,) = settled.actions
    (body,) = create.bodies
    hashed = revisions.hash_of({"a": 1}, 0)
    assert body["revision"] == 1
    assert body["metadata"] == {
        "name": f"web-{hashed}",
        "namespace": "default",
        "labels": {"app": "web", "controller.kubernetes.io/hash": hashed},
        "annotations": {"note": "x"},
        "ownerReferences": [meta.controller_reference(OWNER)],
    }
    assert settled.revision is body


def test_long_owner_name_is_truncated():
    owner = {**OWNER, "metadata": {**OWNER["metadata"], "name": "n" * 250}}
    settled = revisions.sync_revision(desired_revision({"a": 1}, owner), (), 0, {}.get)
    assert meta.name(settled.revision) == f"{'n' * 223}-{revisions.hash_of({'a': 1}, 0)}"


def test_newest_equal_revision_is_kept():
    newest = revision(2, {"a": 2})
    settled = sync_revision({"a": 2}, [revision(1, {"a": 1}), newest])
    assert settled.revision is newest
    assert settled.actions == ()


def test_equal_old_revision_becomes_newest():
    settled = sync_revision({"a": 1}, [revision(1, {"a": 1}), revision(2, {"a": 2})])
    assert settled.actions == (Update(resource=CONTROLLER_REVISIONS, body=settled.revision),)
    assert (meta.name(settled.revision), settled.revision["revision"]) == ("web-1", 3)


def test_null_fields_are_ignored_in_comparison():
    old = revision(1, {"metadata": {"creationTimestamp": None, "labels": {"a": "b"}}})
    assert sync_revision({"metadata": {"labels": {"a": "b"}}}, [old]).revision is old


def test_revision_name_collision_is_counted():
    first = f"web-{revisions.hash_of({'a': 1}, 0)}"
    settled = sync_revision({"a": 1}, named={first: revision(1, {"other": True}, first)})
    assert settled.collision_count == 1
    assert meta.name(settled.revision) == f"web-{revisions.hash_of({'a': 1}, 1)}"
    assert isinstance(settled.actions[0], Create)


def test_existing_equal_revision_is_used():
    name = f"web-{revisions.hash_of({'a': 1}, 0)}"
    taken = revision(1, {"a": 1}, name)
    settled = sync_revision({"a": 1}, named={name: taken})
    assert (settled.revision, settled.actions, settled.collision_count) == (taken, (), 0)


@pytest.mark.parametrize(
    ("limit", "gone"),
    [
        pytest.param(10, [], id="room for all"),
        pytest.param(1, ["web-1", "web-2"], id="the oldest go"),
        pytest.param(0, ["web-1", "web-2", "web-4"], id="only revisions in use stay"),
        pytest.param(-1, [], id="no limit"),
    ],
)
def test_history_is_limited(limit, gone):
    history = [revision(number, {"a": number}) for number in (1, 2, 3, 4)]
    actions = revisions.truncate_history(history, {"web-3"}, limit)
    assert all(isinstance(action, Delete) for action in actions)
    assert [ref.key.name for action in actions for ref in action.objects] == gone
