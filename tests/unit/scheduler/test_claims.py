"""The volumes to which a pod's claims are bound on a node, and those that are provisioned."""

import pytest

from mockube.apimachinery import meta
from mockube.scheduler.volumes import NO_SPACE, NO_VOLUME, claims_of, uses_claim_alone
from tests.support.controllers import scheduler_volumes
from tests.support.controllers.scheduler_objects import HOST, ZONE, info, node, pod, snapshot
from tests.support.controllers.scheduler_volumes import (
    DRIVER,
    capacity,
    claim,
    csi_driver,
    storage_class,
    uses,
    volume,
)

DYNAMIC = {"provisioner": DRIVER}


def bindings(claims, *, volumes=(), classes=None, on=None, **storage):
    """Return the names of claims with their volumes, None for a new one; or the reason why there are none."""
    own = scheduler_volumes.storage(*claims, volumes=volumes, classes=classes, **storage)
    state = snapshot([node()], storage=own)
    names = [meta.name(one) for one in claims]
    of_pod = claims_of(info(pod(**uses(*names))), state.storage)
    found = of_pod.assign(on or node(zone="x"), state.storage)
    if isinstance(found, str):
        return found
    return [(meta.name(one.claim), None if one.volume is None else meta.name(one.volume)) for one in found]


@pytest.mark.parametrize(
    ("one", "is_bound"),
    [
        pytest.param(volume(), True, id="that any node reaches"),
        pytest.param(volume(on="a"), True, id="of the node"),
        pytest.param(volume(on="b"), False, id="of another node"),
        pytest.param(volume(size="2Gi"), True, id="larger than requested"),
        pytest.param(volume(size="1Mi"), False, id="smaller than requested"),
        pytest.param(volume(storage_class="other"), False, id="of another class"),
        pytest.param(volume(accessModes=["ReadOnlyMany"]), False, id="with other access modes"),
        pytest.param(
            volume(claimRef={"namespace": "default", "name": "data", "uid": "claim-data"}),
            True,
            id="of the claim",
        ),
        pytest.param(
            volume(claimRef={"namespace": "default", "name": "x", "uid": "u"}), False, id="of another claim"
        ),
    ],
)
def test_claim_is_bound_to_volume_that_fits(one, is_bound):
    assert bindings([claim()], volumes=[one]) == ([("data", "disk")] if is_bound else NO_VOLUME)


def test_smaller_claim_gets_the_smaller_volume():
    volumes = [volume("large", size="3Gi"), volume("small", size="1Gi")]
    claims = [claim("wide", size="2Gi"), claim("narrow", size="1Gi")]
    assert bindings(claims, volumes=volumes) == [("narrow", "small"), ("wide", "large")]
    assert bindings(claims, volumes=volumes[1:]) == NO_VOLUME


def test_claim_without_volume_is_provisioned_after_the_others_are_bound():
    claims = [claim("large", size="9Gi"), claim("small"), claim("next")]
    found = bindings(claims, volumes=[volume()], classes=[storage_class(**DYNAMIC)])
    assert found == [("small", "disk"), ("next", None), ("large", None)]


@pytest.mark.parametrize(
    ("selected", "found"),
    [("a", [("data", None)]), ("b", NO_VOLUME)],
)
def test_claim_is_provisioned_on_its_selected_node_only(selected, found):
    """Even if there is a volume: it is being provisioned."""
    annotations = {"volume.kubernetes.io/selected-node": selected}
    classes = [storage_class(**DYNAMIC)]
    assert bindings([claim(annotations=annotations)], volumes=[volume()], classes=classes) == found


def topology(key, *values):
    return {"matchLabelExpressions": [{"key": key, "values": [*values]}]}


@pytest.mark.parametrize(
    ("fields", "is_provisioned"),
    [
        pytest.param({}, True, id="anywhere"),
        pytest.param({"provisioner": "kubernetes.io/no-provisioner"}, False, id="not at all"),
        pytest.param({"allowedTopologies": [topology(ZONE, "y", "x")]}, True, id="in the zone"),
        pytest.param({"allowedTopologies": [topology(ZONE, "y")]}, False, id="in another zone"),
        pytest.param(
            {"allowedTopologies": [topology(ZONE, "y"), topology(HOST, "a")]},
            True,
            id="in one of two topologies",
        ),
    ],
)
def test_volume_is_provisioned_where_its_class_allows(fields, is_provisioned):
    classes = [storage_class(**{**DYNAMIC, **fields})]
    assert bindings([claim()], classes=classes) == ([("data", None)] if is_provisioned else NO_VOLUME)


PUBLISHES = csi_driver(storageCapacity=True)


@pytest.mark.parametrize(
    ("capacities", "is_sufficient"),
    [
        pytest.param([], False, id="none"),
        pytest.param([capacity()], True, id="exactly enough"),
        pytest.param([capacity("1023Mi")], False, id="too little"),
        pytest.param([capacity("9Gi", maximumVolumeSize="1Mi")], False, id="enough for smaller volumes"),
        pytest.param([capacity(None, maximumVolumeSize="1Gi")], True, id="enough for one volume"),
        pytest.param([capacity(None)], False, id="unknown"),
        pytest.param([capacity(on="b")], False, id="of another node"),
        pytest.param([capacity(nodeTopology={})], True, id="of all nodes"),
        pytest.param([capacity(nodeTopology=None)], False, id="of no node"),
        pytest.param([capacity(storage_class="other")], False, id="of another class"),
    ],
)
def test_volume_is_provisioned_where_its_driver_has_capacity(capacities, is_sufficient):
    classes = [storage_class(**DYNAMIC)]
    found = bindings([claim()], classes=classes, drivers=[PUBLISHES], capacities=capacities)
    assert found == ([("data", None)] if is_sufficient else NO_SPACE)


@pytest.mark.parametrize(
    ("drivers", "size"),
    [
        pytest.param([], "1Gi", id="an unknown driver"),
        pytest.param([csi_driver(storageCapacity=False)], "1Gi", id="a driver that publishes none"),
        pytest.param([csi_driver()], "1Gi", id="a driver that says nothing of it"),
        pytest.param([PUBLISHES], None, id="a claim without size"),
    ],
)
def test_capacity_does_not_matter_without_driver_that_publishes_it(drivers, size):
    classes = [storage_class(**DYNAMIC)]
    assert bindings([claim(size=size)], classes=classes, drivers=drivers) == [("data", None)]


@pytest.mark.parametrize(
    ("one", "is_alone"),
    [
        (None, False),
        (claim(), False),
        (claim(accessModes=["ReadWriteOncePod"]), True),
        (claim(accessModes=None), False),
    ],
)
def test_claim_for_one_pod_is_used_alone(one, is_alone):
    assert uses_claim_alone(one) is is_alone


def test_claim_is_bound_that_has_a_volume_and_the_annotation():
    claims = [claim("bound", volume="disk"), claim("new")]
    state = snapshot([node()], storage=scheduler_volumes.storage(*claims))
    of_pod = claims_of(info(pod(**uses("bound", "new"))), state.storage)
    assert ([*map(meta.name, of_pod.bound)], [*map(meta.name, of_pod.unbound)], bool(of_pod)) == (
        ["bound"],
        ["new"],
        True,
    )
    assert not claims_of(info(pod(**uses(emptyDir={}))), state.storage)


def test_claim_of_ephemeral_volume_is_used_by_the_pod_that_owns_it():
    owner = {"kind": "Pod", "name": "web", "uid": "web", "controller": True}
    claims = [claim("web-scratch", metadata={"ownerReferences": [owner]})]
    state = snapshot([node()], storage=scheduler_volumes.storage(*claims))
    of_pod = claims_of(info(pod(volumes=[{"name": "scratch", "ephemeral": {}}])), state.storage)
    assert of_pod.unbound == claims
