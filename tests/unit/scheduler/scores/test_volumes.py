"""The scores of the storage that a pod leaves free."""

import pytest

from mockube.scheduler.scores.volumes import volume_capacity_score
from tests.support.controllers.scheduler_objects import node, pod, scores, snapshot
from tests.support.controllers.scheduler_volumes import (
    DRIVER,
    capacity,
    claim,
    csi_driver,
    storage,
    storage_class,
    uses,
    volume,
)


def scored(own, *names, settings=(), nodes="ab"):
    state = snapshot([node(name) for name in nodes], storage=own, settings=settings)
    return scores(volume_capacity_score, pod(**uses(*names)), state)


@pytest.mark.parametrize(
    ("size", "capacity", "score"),
    [("1Gi", "4Gi", 75), ("1Gi", "1Gi", 0), ("1Gi", "3Gi", 67), ("0", "4Gi", 100), ("0", "0", 0)],
)
def test_node_whose_volume_has_more_room_scores_higher(size, capacity, score):
    own = storage(claim(size=size), volumes=[volume(size=capacity, on="a")])
    assert scored(own, "data") == {"a": score, "b": 0}


def test_score_is_the_mean_of_storage_classes_by_the_sums_of_their_volumes():
    """Of the class `local`, 2 of 4 GiB are in use, of the other one all."""
    own = storage(
        claim("one", size="1Gi"),
        claim("two", size="1Gi"),
        claim("three", size="1Gi", storage_class="other"),
        volumes=[
            volume("v1", size="2Gi", on="a"),
            volume("v2", size="2Gi", on="a"),
            volume("v3", size="1Gi", storage_class="other", on="a"),
        ],
        classes=[storage_class(), storage_class("other")],
    )
    assert scored(own, "one", "two", "three") == {"a": 25, "b": 0}


def provisioning(*capacities, sizes=("1Gi",), volumes=()):
    claims = [claim(f"data-{number}", size=size) for number, size in enumerate(sizes)]
    return storage(
        *claims,
        volumes=volumes,
        classes=[storage_class(provisioner=DRIVER)],
        drivers=[csi_driver(storageCapacity=True)],
        capacities=[capacity(amount, on=at) for at, amount in capacities],
    )


def test_new_volume_is_compared_with_the_capacity_of_the_node():
    assert scored(provisioning(("a", "4Gi"), ("b", "2Gi")), "data-0") == {"a": 75, "b": 50}


def test_capacity_is_that_of_all_new_volumes_of_the_class():
    own = provisioning(("a", "4Gi"), ("b", "2Gi"), sizes=("1Gi", "1Gi"))
    assert scored(own, "data-0", "data-1") == {"a": 50, "b": 0}


def test_new_volumes_do_not_count_beside_existing_ones():
    own = provisioning(("a", "100Gi"), sizes=("1Gi", "5Gi"), volumes=[volume(size="2Gi", on="a")])
    assert scored(own, "data-0", "data-1") == {"a": 50, "b": 0}


def test_new_volume_without_known_capacity_scores_0():
    own = storage(claim(), classes=[storage_class(provisioner=DRIVER)])
    assert scored(own, "data") == {"a": 0, "b": 0}


def test_storage_scores_nothing_without_gate_or_unbound_claims():
    own = storage(claim(), claim("bound", volume="disk"), volumes=[volume(on="a")])
    assert scored(own, "data", settings=[("StorageCapacityScoring", False)]) is None
    assert scored(own, "bound") is None
    assert scored(own, "missing") is None
