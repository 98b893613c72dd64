import pytest

from mockube.controller_manager.controllers.garbagecollector.decision import (
    Disown,
    Keep,
    OwnerState,
    Remove,
    decide,
    unblocked_owners,
)

SOLID, DANGLING, WAITING = OwnerState.SOLID, OwnerState.DANGLING, OwnerState.WAITING


def dependent(*owners, finalizers=()):
    return {
        "metadata": {
            "name": "b",
            "uid": "uid-b",
            "resourceVersion": "7",
            "finalizers": [*finalizers],
            "ownerReferences": [{"uid": uid} for uid in owners],
        }
    }


@pytest.mark.parametrize(
    ("owner_states", "has_dependents", "is_in_cycle", "expected"),
    [
        pytest.param([], False, False, Keep(), id="no owner"),
        pytest.param([SOLID], True, False, Keep(), id="owned"),
        pytest.param([SOLID, SOLID], False, False, Keep(), id="two owners"),
        pytest.param([DANGLING], True, False, Remove(propagation="Background"), id="owner is deleted"),
        pytest.param([WAITING], False, False, Remove(propagation="Background"), id="awaited"),
        pytest.param(
            [WAITING, DANGLING], True, False, Remove(propagation="Foreground"), id="awaited, with dependents"
        ),
        pytest.param(
            [WAITING], True, True, Remove(propagation="Foreground", unblock=True), id="awaited in a circle"
        ),
    ],
)
def test_decision_for_object(owner_states, has_dependents, is_in_cycle, expected):
    obj = dependent(*(f"uid-{at}" for at in range(len(owner_states))))
    assert decide(obj, owner_states, has_dependents=has_dependents, is_in_cycle=is_in_cycle) == expected


@pytest.mark.parametrize("gone", [DANGLING, WAITING])
def test_missing_owner_is_removed_and_existing_one_kept(gone):
    verdict = decide(dependent("uid-1", "uid-2"), [gone, SOLID], has_dependents=True, is_in_cycle=False)
    owners = [{"uid": "uid-2"}]
    assert verdict == Disown(
        {"metadata": {"resourceVersion": "7", "uid": "uid-b", "ownerReferences": owners}}
    )


@pytest.mark.parametrize(
    ("finalizer", "propagation"),
    [("orphan", "Orphan"), ("foregroundDeletion", "Foreground"), ("x/y", "Background")],
)
def test_deletion_keeps_propagation_of_finalizers(finalizer, propagation):
    verdict = decide(
        dependent("uid-1", finalizers=[finalizer]), [DANGLING], has_dependents=False, is_in_cycle=False
    )
    assert verdict == Remove(propagation=propagation)


def test_blocking_owner_references_are_removed():
    obj = {"metadata": {"ownerReferences": [{"uid": "1", "blockOwnerDeletion": True}, {"uid": "2"}]}}
    assert unblocked_owners(obj) == [{"uid": "1", "blockOwnerDeletion": False}, {"uid": "2"}]
