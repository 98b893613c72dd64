"""StatefulSet: status, number of status writes, Events, and mapping of changes to sets."""

from datetime import timedelta

import pytest

from mockube.apimachinery import meta
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.client.cache.store import Change
from mockube.client.kinds import CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from mockube.client.podview import PodView
from mockube.controller_manager.controllers.statefulset.controller import STATEFUL_SET
from tests.support.controllers.statefulsets import WEB, StatefulSetHarness, claim_template


def status_writes(sets):
    return sum((verb, resource) == ("update", STATEFUL_SETS) for verb, resource, _ in sets.done)


def stepwise(sets):
    """Change one pod at a time, and reconcile after each change."""
    for _ in range(60):
        before = sets.revision
        sets.round()
        sets.round()
        for ordinal in _ordinals(sets):
            if meta.is_deleting(sets.pod(ordinal)):
                sets.remove_pod(ordinal)
                break
            if "status" not in sets.pod(ordinal):
                sets.run(ordinal)
                break
        if sets.revision == before:
            return
    raise AssertionError("did not become idle")


def _ordinals(sets):
    return [int(name.rpartition("-")[2]) for name in sets.pods]


def counts(sets):
    fields = ("replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas")
    return [sets.status[field] for field in fields]


def test_complete_status():
    sets = StatefulSetHarness(replicas=1)
    sets.settle()
    (revision,) = sets.names(CONTROLLER_REVISIONS)
    assert sets.status == {
        "observedGeneration": 1,
        "replicas": 1,
        "readyReplicas": 1,
        "availableReplicas": 1,
        "currentReplicas": 1,
        "updatedReplicas": 1,
        "currentRevision": revision,
        "updateRevision": revision,
        "collisionCount": 0,
    }


def test_status_counts_cached_pods():
    sets = StatefulSetHarness()
    sets.round()
    assert counts(sets) == [0, 0, 0, 0, 0]
    sets.round()
    assert counts(sets) == [1, 0, 0, 1, 1]


def test_revisions_are_counted_separately_until_update_completes():
    sets = StatefulSetHarness()
    sets.settle()
    sets.roll("a:2")
    sets.round()
    assert counts(sets) == [3, 3, 3, 2, 0]
    assert sets.status["currentRevision"] != sets.status["updateRevision"]
    sets.finish()
    sets.round()
    sets.round()
    assert counts(sets) == [3, 2, 2, 2, 1]
    sets.settle()
    assert counts(sets) == [3, 3, 3, 3, 3]
    assert sets.status["currentRevision"] == sets.status["updateRevision"]


@pytest.mark.parametrize(
    ("spec", "change", "maximum"),
    [
        pytest.param({}, None, 7, id="three in order"),
        pytest.param({}, lambda sets: sets.scale(1), 5, id="two go in order"),
        pytest.param(
            {"replicas": 4, "podManagementPolicy": "Parallel"},
            lambda sets: sets.roll("a:2"),
            13,
            id="four are replaced",
        ),
        pytest.param({"replicas": 2, "updateStrategy": {"type": "OnDelete"}}, None, 5, id="two on delete"),
        pytest.param(
            {"replicas": 2, "updateStrategy": {"type": "OnDelete"}},
            lambda sets: sets.roll("a:2"),
            1,
            id="a new template on delete",
        ),
    ],
)
def test_number_of_status_writes(spec, change, maximum):
    sets = StatefulSetHarness(**spec)
    stepwise(sets)
    if change is not None:
        sets.done.clear()
        change(sets)
        stepwise(sets)
    assert status_writes(sets) == maximum


@pytest.mark.parametrize(("minor", "is_current"), [("1.37", True), ("1.36", False)])
def test_update_on_delete_ends_when_all_pods_are_new(minor, is_current):
    sets = StatefulSetHarness(FeatureGates(minor), replicas=2, updateStrategy={"type": "OnDelete"})
    sets.settle()
    sets.roll("a:2")
    sets.settle()
    assert sets.status["currentRevision"] != sets.status["updateRevision"]
    for ordinal in range(2):
        sets.remove_pod(ordinal)
        sets.settle()
    assert (sets.status["currentRevision"] == sets.status["updateRevision"]) is is_current
    assert counts(sets) == [2, 2, 2, 2 if is_current else 0, 2]


@pytest.mark.parametrize(("minor", "are_kept"), [("1.37", True), ("1.36", False)])
def test_next_status_keeps_conditions_of_others(minor, are_kept):
    sets = StatefulSetHarness(FeatureGates(minor), replicas=1)
    sets.settle()
    condition = {"type": "Mine", "status": "True"}
    sets.change(STATEFUL_SETS, "web", ("status", "conditions"), [condition])
    sets.round()
    assert sets.status["conditions"] == [condition]
    sets.scale(2)
    sets.round()
    assert sets.status["observedGeneration"] == 2
    assert sets.status.get("conditions") == ([condition] if are_kept else None)


# --- the revision of an older template


def outdated_revision(sets, change):
    """Change the data of the set's revision, as if an earlier release had written it."""
    (name,) = sets.names(CONTROLLER_REVISIONS)
    template = sets.get(CONTROLLER_REVISIONS, name)["data"]["spec"]["template"]
    sets.change(CONTROLLER_REVISIONS, name, ("data",), {"spec": {"template": change(template)}})


def with_empty_fields(template):
    return {**template, "spec": {**template["spec"], "volumes": [], "nodeSelector": {}}}


@pytest.mark.parametrize(
    ("gates", "change", "revisions"),
    [
        pytest.param(FeatureGates("1.37"), with_empty_fields, 1, id="equal"),
        pytest.param(FeatureGates("1.33"), with_empty_fields, 2, id="equal, in an earlier release"),
        pytest.param(
            FeatureGates("1.37", [("StatefulSetSemanticRevisionComparison", False)]),
            with_empty_fields,
            2,
            id="equal, without the feature gate",
        ),
        pytest.param(FeatureGates("1.37"), lambda _: {"spec": {}}, 2, id="another template"),
        pytest.param(FeatureGates("1.37"), lambda _: "no template", 2, id="no template"),
        pytest.param(FeatureGates("1.37"), lambda _: {"spec": {"containers": [3]}}, 2, id="no containers"),
    ],
)
def test_semantically_equal_template_has_the_same_revision(gates, change, revisions):
    sets = StatefulSetHarness(gates, replicas=1)
    sets.settle()
    outdated_revision(sets, change)
    sets.round()
    assert len(sets.names(CONTROLLER_REVISIONS)) == revisions


def test_events_are_upstreams():
    sets = StatefulSetHarness(replicas=1, volumeClaimTemplates=[claim_template()])
    sets.settle()
    sets.scale(0)
    sets.settle()
    assert sets.events == [
        ("Normal", "SuccessfulCreate", "Create Claim data-web-0 Pod web-0 in StatefulSet web success"),
        ("Normal", "SuccessfulCreate", "Create Pod web-0 in StatefulSet web successful"),
        ("Normal", "SuccessfulDelete", "Delete Pod web-0 in StatefulSet web successful"),
    ]


def test_failed_reconciliation_still_writes_status():
    sets = StatefulSetHarness(replicas=1)
    sets.settle()
    sets.scale(2)
    sets.add(PODS, {"metadata": {"name": "web-1", "namespace": "default"}, "spec": {}})
    _, error = sets.reconcile(WEB)
    assert error is not None
    assert sets.status["observedGeneration"] == 2


# --- mapping of changes to keys


READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
NOT_READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}


def pod(name="web-0", labels=None, owner=None, status=READY, **fields):
    refs = [meta.controller_reference(owner)] if owner else []
    metadata = {"name": name, "namespace": "default", "labels": labels or {}, "ownerReferences": refs}
    deletion = {"deletionTimestamp": fields.pop("deleted")} if "deleted" in fields else {}
    return PodView.of({"metadata": metadata | deletion, "status": status, "spec": fields})


def delays(caches, resource, change):
    """Return the keys to which a change maps, and their delays in milliseconds."""
    return {
        key: watch.delay / timedelta(milliseconds=1)
        for watch in STATEFUL_SET.watches
        if watch.resource is resource
        for key in watch.keys(caches, change)
    }


NOW = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(None, {"status": {}}, 50, id="created"),
        pytest.param({"status": {}}, {"status": {"phase": "Pending"}, "nodeName": "n"}, 50, id="bound"),
        pytest.param({"status": {}}, {}, 0, id="ready"),
        pytest.param({}, {"status": NOT_READY}, 0, id="no longer ready"),
        pytest.param({}, {"status": {"phase": "Failed"}}, 0, id="ended by itself"),
        pytest.param({}, {"deleted": NOW}, 50, id="being deleted"),
        pytest.param({"deleted": NOW}, {"deleted": NOW, "status": {"phase": "Succeeded"}}, 50, id="ended"),
        pytest.param({"deleted": NOW}, None, 0, id="gone"),
        pytest.param(None, {"status": {}, "readinessGates": [{"conditionType": "a"}]}, 0, id="has a gate"),
    ],
)
def test_only_changes_after_which_a_step_is_due_are_reconciled_at_once(before, after, expected):
    sets = StatefulSetHarness()
    old, new = (None if fields is None else pod(owner=sets.set, **fields) for fields in (before, after))
    assert delays(sets.caches(), PODS, Change(old, new)) == {WEB: expected}


def test_pod_maps_to_current_and_former_owner():
    sets = StatefulSetHarness()
    mine, orphan = pod(owner=sets.set), pod()
    for change in (Change(None, mine), Change(mine, orphan), Change(mine, None)):
        assert set(delays(sets.caches(), PODS, change)) == {WEB}
    assert set(delays(sets.caches(), PODS, Change(None, orphan))) == set()


def test_orphan_maps_to_sets_that_may_adopt_it():
    sets = StatefulSetHarness()
    assert set(delays(sets.caches(), PODS, Change(None, pod(labels={"app": "web"})))) == {WEB}
    assert set(delays(sets.caches(), PODS, Change(None, pod(labels={"app": "other"})))) == set()


def test_recreated_set_does_not_own_former_pod():
    sets = StatefulSetHarness()
    before = meta.with_metadata(sets.set, uid="before")
    assert set(delays(sets.caches(), PODS, Change(None, pod(owner=before)))) == set()


def test_claim_maps_to_set_of_its_name():
    sets = StatefulSetHarness(volumeClaimTemplates=[claim_template()])
    for name, expected in (("data-web-0", {WEB}), ("data-other-0", set()), ("data-web-x", set())):
        claim = {"metadata": {"name": name, "namespace": "default"}}
        assert set(delays(sets.caches(), PERSISTENT_VOLUME_CLAIMS, Change(claim, None))) == expected


def test_revision_maps_to_its_set():
    sets = StatefulSetHarness()
    sets.round()
    (revision,) = sets.all(CONTROLLER_REVISIONS)
    assert set(delays(sets.caches(), CONTROLLER_REVISIONS, Change(revision, None))) == {WEB}


def test_plan_does_not_modify_caches():
    sets = StatefulSetHarness(volumeClaimTemplates=[claim_template()])
    sets.settle()
    sets.roll("a:2")
    before = repr(sets.objects)
    sets.plan(WEB)
    assert repr(sets.objects) == before
