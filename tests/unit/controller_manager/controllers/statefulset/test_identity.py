"""StatefulSet: pod identity labels and hostname, adoption and release."""

import pytest

from mockube.apimachinery import meta
from mockube.client.kinds import CONTROLLER_REVISIONS, PODS, STATEFUL_SETS
from mockube.controller_manager.workloads.stateful import identity
from mockube.controller_manager.workloads.stateful.spec import SetView
from tests.support.controllers.statefulsets import WEB, StatefulSetHarness, claim_template


def orphan(name, *, app="web", **labels):
    metadata = {"name": name, "namespace": "default", "labels": {"app": app, **labels}}
    return {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "a:0"}]}}


@pytest.mark.parametrize(
    ("name", "ordinal"),
    [
        pytest.param("web-0", 0, id="first"),
        pytest.param("web-12", 12, id="two digits"),
        pytest.param("web-01", None, id="another way to write 1"),
        pytest.param("web-x", None, id="no number"),
        pytest.param("web-", None, id="empty"),
        pytest.param("web-²", None, id="no digit of a name"),
        pytest.param("web-db-0", None, id="another set's"),
        pytest.param("web-2147483648", None, id="too high"),
    ],
)
def test_ordinal_and_pod_name_correspond(name, ordinal):
    assert identity.ordinal_in(SetView.of(STATEFUL_SETS, StatefulSetHarness().set), name) == ordinal


def test_pod_has_identity_labels_and_hostname():
    sets = StatefulSetHarness(volumeClaimTemplates=[claim_template()])
    sets.round()
    pod = sets.pod(0)
    (revision,) = sets.names(CONTROLLER_REVISIONS)
    assert meta.labels(pod) == {
        "app": "web",
        "statefulset.kubernetes.io/pod-name": "web-0",
        "apps.kubernetes.io/pod-index": "0",
        "controller-revision-hash": revision,
    }
    assert meta.generate_name(pod) == "web-"
    assert meta.owner_references(pod) == [meta.controller_reference(sets.set)]
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("web-0", "svc")
    assert pod["spec"]["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}]
    assert "$patch" not in pod["spec"]


def test_claim_replaces_volume_of_same_name():
    volumes = [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]
    spec = {"containers": [{"name": "c", "image": "a:1"}], "volumes": volumes}
    sets = StatefulSetHarness(
        template={"metadata": {"labels": {"app": "web"}}, "spec": spec},
        volumeClaimTemplates=[claim_template()],
    )
    sets.round()
    assert [volume["name"] for volume in sets.pod(0)["spec"]["volumes"]] == ["data", "tmp"]
    assert "persistentVolumeClaim" in sets.pod(0)["spec"]["volumes"][0]


def test_removed_identity_labels_are_restored():
    sets = StatefulSetHarness(replicas=1)
    sets.settle()
    sets.put(PODS, meta.with_labels(sets.pod(0), {"statefulset.kubernetes.io/pod-name": None}))
    assert sets.round() == [("update", "web-0")]
    assert sets.events[-1] == (
        "Normal",
        "SuccessfulUpdate",
        "Update Pod web-0 in StatefulSet web successful",
    )
    assert sets.round() == []


def test_matching_orphan_is_adopted():
    sets = StatefulSetHarness(replicas=1)
    sets.add(PODS, orphan("web-0"))
    assert sets.round() == [("adopt", "web-0")]
    assert meta.is_controlled_by(sets.pod(0), sets.set)


@pytest.mark.parametrize(
    "stranger",
    [
        pytest.param(orphan("other-0"), id="another name"),
        pytest.param(orphan("web-0", app="other"), id="other labels"),
    ],
)
def test_non_matching_orphan_is_not_adopted(stranger):
    sets = StatefulSetHarness(replicas=0)
    sets.add(PODS, stranger)
    sets.round()
    assert meta.owner_references(sets.all(PODS)[0]) == ()


def test_pod_that_no_longer_matches_is_released():
    sets = StatefulSetHarness(replicas=1)
    sets.settle()
    sets.put(PODS, meta.with_labels(sets.pod(0), {"app": "debug"}))
    assert sets.round() == [("release", "web-0")]
    _, error = sets.reconcile(WEB)
    assert "already exists" in str(error)  # the name is taken until the stranger goes


def test_orphaned_revisions_are_adopted():
    sets = StatefulSetHarness(replicas=1)
    sets.settle()
    (revision,) = sets.all(CONTROLLER_REVISIONS)
    sets.put(CONTROLLER_REVISIONS, meta.with_metadata(revision, ownerReferences=None))
    sets.round()
    (adopted,) = sets.all(CONTROLLER_REVISIONS)
    assert meta.is_controlled_by(adopted, sets.set)
    assert sets.round() == []


def test_deleting_set_does_not_adopt():
    sets = StatefulSetHarness(replicas=1)
    sets.settle()
    sets.delete_set()
    sets.add(PODS, orphan("web-7"))
    sets.round()
    assert meta.owner_references(sets.pod(7)) == ()


def test_old_revisions_are_deleted_and_rollback_reuses_kept_one():
    sets = StatefulSetHarness(replicas=1, revisionHistoryLimit=1)
    for image in ("a:1", "a:2", "a:3", "a:4"):
        sets.roll(image)
        sets.settle()
    assert len(sets.all(CONTROLLER_REVISIONS)) == 2
    sets.roll("a:3")
    sets.settle()
    assert sets.image(0) == "a:3"
    assert len(sets.all(CONTROLLER_REVISIONS)) == 2
    assert (
        sets.get(STATEFUL_SETS, "web")["status"]["updateRevision"]
        == meta.labels(sets.pod(0))["controller-revision-hash"]
    )
