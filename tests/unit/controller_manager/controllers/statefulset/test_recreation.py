"""StatefulSet: the update strategy Recreate, with its feature gate, without it, and before it."""

from mockube.apimachinery import conditions
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.client.kinds import PODS
from tests.support.controllers.statefulsets import StatefulSetHarness

GATES = FeatureGates("1.37", [("StatefulSetRecreateStrategy", True)])
RECREATE = {"type": "Recreate"}


def settled_sets(gates=GATES, **spec):
    sets = StatefulSetHarness(gates, updateStrategy=RECREATE, **spec)
    sets.settle()
    return sets


def progress(sets):
    condition = conditions.get(sets.set, "Progressing")
    return condition and (condition["status"], condition["reason"], condition["message"])


def test_first_pods_are_no_update():
    sets = settled_sets()
    assert sets.pods == ["web-0", "web-1", "web-2"]
    assert progress(sets) is None


def test_update_deletes_all_old_pods_before_it_creates_new_ones():
    sets = settled_sets()
    sets.roll("a:2")
    assert sets.round() == [("delete", "web-0"), ("delete", "web-1"), ("delete", "web-2")]
    assert progress(sets) == ("True", "RecreateInProgress", "Deleting old revision pods")
    sets.remove_pod(0)
    sets.remove_pod(2)
    assert sets.round() == []
    sets.remove_pod(1)
    assert sets.round() == [("create", "web-0")]
    assert progress(sets) == ("True", "RecreateInProgress", "Waiting for new-revision pods to be created")
    sets.settle()
    assert [sets.image(ordinal) for ordinal in range(3)] == ["a:2"] * 3
    assert progress(sets) == ("False", "RecreateCompleted", "All pods recreated successfully")
    assert sets.status["currentRevision"] == sets.status["updateRevision"]


def test_update_deletes_condemned_pods_too():
    sets = settled_sets()
    sets.roll("a:2")
    sets.scale(1)
    assert [name for _, name in sets.round()] == ["web-0", "web-1", "web-2"]


def test_update_waits_for_old_pods_behind_many_missing_ones():
    sets = settled_sets(replicas=600, podManagementPolicy="Parallel")
    sets.roll("a:2")
    assert len(sets.round()) == 600
    for ordinal in range(599):
        sets.remove_pod(ordinal)
    assert sets.round() == []
    sets.remove_pod(599)
    assert len(sets.round()) == 500


def test_new_pod_during_update_has_new_revision():
    sets = settled_sets()
    sets.roll("a:2")
    sets.round()
    sets.finish()
    sets.round()
    assert sets.image(0) == "a:2"


def test_strategy_without_its_gate_ends_reconciliation():
    sets = StatefulSetHarness(updateStrategy=RECREATE)
    assert sets.round() == []
    assert sets.all(PODS) == []
    assert sets.status == {}
    message = "statefulset default/web uses Recreate strategy but feature gate StatefulSetRecreateStrategy is disabled"
    assert sets.events == [("Warning", "UnknownStrategy", message)]


def test_older_controller_takes_strategy_for_rolling_update():
    sets = settled_sets(FeatureGates("1.36"))
    sets.roll("a:2")
    assert sets.round() == [("delete", "web-2")]
