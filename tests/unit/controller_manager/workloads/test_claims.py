import pytest

from mockube.apimachinery import labels, meta
from mockube.client.cache.store import Change
from mockube.client.kinds import PODS, REPLICA_SETS
from mockube.client.podview import PodView
from mockube.controller_manager.control.actions import Adopt, Release
from mockube.controller_manager.workloads.ownership import (
    BY_OWNER,
    adoption_and_release_actions,
    keys_of_owners,
    owned_objects,
    owner_of_pod,
)
from tests.support.controllers.fake_caches import FakeCaches

WEB = {"app": "web"}


def owner(name="web", uid="u1", **metadata):
    tree = {"kind": REPLICA_SETS.kind, "apiVersion": REPLICA_SETS.api_version}
    spec = {"selector": {"matchLabels": WEB}}
    return {**tree, "metadata": {"name": name, "namespace": "ns", "uid": uid, **metadata}, "spec": spec}


def pod(name, *, of=None, carried=None, **metadata):
    refs = {"ownerReferences": [meta.controller_reference(of)]} if of else {}
    return {"metadata": {"name": name, "namespace": "ns", "labels": carried or WEB, **refs, **metadata}}


def owned_by(*pods, by=None):
    subject = by or owner()
    caches = FakeCaches({PODS: pods}, {PODS: {BY_OWNER: owner_of_pod}})
    return owned_objects(caches, PODS, subject, labels.from_set(WEB))


def names(views):
    return [view.key.name for view in views]


OTHER = {"app": "other"}
DELETING = {"deletionTimestamp": "2030-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        pytest.param(pod("p", of=owner()), "owned", id="its own"),
        pytest.param(pod("p", of=owner(), **DELETING), "owned", id="its own, deleting"),
        pytest.param(pod("p", of=owner(), carried=OTHER), "to_release", id="relabelled"),
        pytest.param(pod("p"), "orphans", id="orphan"),
        pytest.param(pod("p", carried=OTHER), None, id="orphan without matching labels"),
        pytest.param(pod("p", **DELETING), None, id="orphan, deleting"),
        pytest.param(pod("p", namespace="away"), None, id="other namespace"),
        pytest.param(pod("p", of=owner("db", "u2")), None, id="matching but owned by another"),
    ],
)
def test_ownership_of_object(subject, expected):
    claims = owned_by(subject)
    kinds = ("owned", "orphans", "to_release")
    assert {kind for kind in kinds if getattr(claims, kind)} == ({expected} if expected else set())


def test_deleting_owner_neither_adopts_nor_releases():
    ending = owner(**DELETING)
    claims = owned_by(pod("a", of=ending), pod("b", of=ending, carried=OTHER), pod("c"), by=ending)
    assert (names(claims.owned), claims.orphans, claims.to_release) == (["a"], (), ())


def test_ownership_actions_release_and_adopt():
    subject = owner()
    claims = owned_by(pod("a", of=subject, carried=OTHER, uid="ua"), pod("b", uid="ub"))
    release, adopt = adoption_and_release_actions(claims, PODS, subject, REPLICA_SETS)
    assert isinstance(release, Release)
    assert isinstance(adopt, Adopt)
    assert [(it.key.name, it.uid) for it in release.objects] == [("a", "ua")]
    assert [(it.key.name, it.uid) for it in adopt.orphans] == [("b", "ub")]
    assert not adoption_and_release_actions(owned_by(pod("a", of=subject)), PODS, subject, REPLICA_SETS)


def owners_to_reconcile(old, new, *owners):
    keys = keys_of_owners(PODS, REPLICA_SETS, lambda it: labels.from_label_selector(it["spec"]["selector"]))
    change = Change(*(None if it is None else PodView.of(it) for it in (old, new)))
    return sorted(key.name for key in keys(FakeCaches({REPLICA_SETS: owners}), change))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, pod("p", of=owner()), ["web"], id="created"),
        pytest.param(pod("p", of=owner()), None, ["web"], id="deleted"),
        pytest.param(pod("p", of=owner()), pod("p"), ["db", "web"], id="was released"),
        pytest.param(pod("p"), pod("p", of=owner()), ["db", "web"], id="was adopted"),
        pytest.param(None, pod("p"), ["db", "web"], id="an orphan was created"),
        pytest.param(pod("p"), None, ["db", "web"], id="an orphan was deleted"),
        pytest.param(
            pod("p"), pod("p", annotations={"a": "b"}), [], id="an orphan changed without label changes"
        ),
        pytest.param(pod("p", carried=OTHER), pod("p"), ["db", "web"], id="an orphan got labels"),
        pytest.param(None, pod("p", of=owner("web", "older")), [], id="of a former owner of the same name"),
        pytest.param(None, pod("p", of=owner("gone", "u9")), [], id="of an owner that is gone"),
        pytest.param(
            None,
            pod("p", of={**owner(), "kind": "DaemonSet"}),
            [],
            id="of an owner of the same name and another kind",
        ),
    ],
)
def test_changes_map_to_owners(old, new, expected):
    assert owners_to_reconcile(old, new, owner(), owner("db", "u2")) == expected
