"""Nodes that cannot attach more volumes of a CSI driver."""

from contextlib import nullcontext

import pytest

from mockube.scheduler.filters.filter import Rejection
from mockube.scheduler.filters.volume_limits import volume_limits, volume_limits_traits
from mockube.scheduler.node_traits import NO_TRAITS, NeedsReference
from tests.support.controllers.scheduler_objects import info, node, pod, rejections, snapshot
from tests.support.controllers.scheduler_volumes import (
    DRIVER,
    claim,
    csi,
    csi_driver,
    storage_class,
    uses,
    volume,
)

EXCEEDED = Rejection(("node(s) exceed max volume count",))
OTHER = "csi.other.com"


def csi_node(limits, name="a"):
    drivers = [
        {"name": driver, **({} if count is None else {"allocatable": {"count": count}})}
        for driver, count in limits.items()
    ]
    return {"metadata": {"name": name, "resourceVersion": "1"}, "spec": {"drivers": drivers}}


def attachment(volume_name, driver=DRIVER, at="a"):
    source = {"persistentVolumeName": volume_name}
    return {
        "metadata": {"name": f"{volume_name}-{at}", "resourceVersion": "1"},
        "spec": {"attacher": driver, "nodeName": at, "source": source},
    }


def storage(limits, **more):
    """Return four claims that are bound to volumes of the driver, and one of another."""
    names = ("v1", "v2", "v3", "v4")
    claims = [claim(name, volume=name) for name in (*names, "other")]
    volumes = [volume(name, **csi(name)) for name in names]
    own = {
        "claims": claims,
        "volumes": [*volumes, volume("other", **csi("other", OTHER))],
        "csi_nodes": [csi_node(limits)],
    }
    return own | more


def on_a(*names):
    return [pod(f"old-{name}", nodeName="a", **uses(name)) for name in names]


def is_rejected(tried, own, running=(), **settings):
    state = snapshot([node("a"), node("b")], running, storage=own, **settings)
    found = rejections(volume_limits, tried, state)
    assert found in ({}, {"a": EXCEEDED})
    return bool(found)


@pytest.mark.parametrize(
    ("limit", "names", "running", "rejected"),
    [
        pytest.param(1, ["v1"], [], False, id="the only one"),
        pytest.param(1, ["v1", "v2"], [], True, id="two at once"),
        pytest.param(2, ["v3"], ["v1"], False, id="up to the limit"),
        pytest.param(2, ["v3"], ["v1", "v2"], True, id="over the limit"),
        pytest.param(2, ["v1"], ["v1", "v2"], False, id="one that is attached"),
        pytest.param(2, ["v3", "v1"], ["v1"], False, id="of which one is attached"),
        pytest.param(1, ["v1", "v1"], [], False, id="one twice"),
        pytest.param(1, ["v1"], ["other"], False, id="beside those of another driver"),
        pytest.param(1, ["other", "other"], ["v1"], False, id="of a driver without limit"),
        pytest.param(0, ["v1"], [], True, id="none allowed"),
        pytest.param(None, ["v1"], ["v2", "v3"], False, id="no limit"),
    ],
)
def test_node_attaches_as_many_volumes_as_its_csi_node_allows(limit, names, running, rejected):
    assert is_rejected(pod(**uses(*names)), storage({DRIVER: limit}), on_a(*running)) is rejected


def test_limits_count_by_driver():
    own = storage(
        {DRIVER: 3, OTHER: 1}, claims=[claim(name, volume=name) for name in ("v1", "other", "next")]
    )
    own["volumes"] = [*own["volumes"], volume("next", **csi("next", OTHER))]
    assert is_rejected(pod(**uses("v1", "next")), own, on_a("other"))
    assert not is_rejected(pod(**uses("v1")), own, on_a("other"))


@pytest.mark.parametrize(
    ("attached", "rejected"),
    [
        pytest.param([attachment("v2")], True, id="of another volume"),
        pytest.param([attachment("v2", at="b")], False, id="to another node"),
        pytest.param([attachment("other", OTHER)], False, id="of another driver"),
        pytest.param([attachment("gone")], False, id="of a volume that does not exist"),
        pytest.param([attachment("v1")], True, id="of the volume itself, which no pod uses"),
    ],
)
def test_attachments_count_even_without_pods(attached, rejected):
    """That of the pod's own volume does, too: upstream counts it once as attached and once as new."""
    own = storage({DRIVER: 1}, attachments=attached)
    assert is_rejected(pod(**uses("v1")), own) is rejected
    assert not is_rejected(pod(**uses("v1")), own, minor="1.31")


def test_attachment_of_volume_of_running_pod_counts_once():
    own = storage({DRIVER: 2}, attachments=[attachment("v2")])
    assert not is_rejected(pod(**uses("v1")), own, on_a("v2"))


@pytest.mark.parametrize(
    ("provisioner", "rejected"),
    [(DRIVER, True), (OTHER, False), ("kubernetes.io/gce-pd", False)],
)
def test_unbound_claim_counts_for_driver_of_its_class(provisioner, rejected):
    """Those of the plugins that drivers have replaced do not count."""
    classes = [storage_class("slow", provisioner=provisioner)]
    claims = [claim("new", storage_class="slow"), claim("v1", volume="v1")]
    own = storage({DRIVER: 1, "kubernetes.io/gce-pd": 0}, claims=claims, classes=classes)
    assert is_rejected(pod(**uses("new")), own, on_a("v1")) is rejected


def test_volume_of_ephemeral_claim_counts():
    own = storage({DRIVER: 0}, claims=[claim("web-scratch", volume="v1")])
    assert is_rejected(pod(volumes=[{"name": "scratch", "ephemeral": {}}]), own)


@pytest.mark.parametrize(
    "own_claim", [claim("new", storage_class="unknown"), claim("new", volume="plain"), claim("else")]
)
def test_volume_without_driver_does_not_count(own_claim):
    own = storage({DRIVER: 0}, claims=[own_claim], volumes=[volume("plain", hostPath={"path": "/"})])
    state = snapshot([node("a")], storage=own)
    assert volume_limits(info(pod(**uses("new"))), state) is None


@pytest.mark.parametrize(
    ("spec", "is_needed"),
    [
        ({"preventPodSchedulingIfMissing": True}, True),
        ({"preventPodSchedulingIfMissing": False}, False),
        ({}, False),
    ],
)
def test_node_without_driver_is_rejected_if_driver_prevents_that(spec, is_needed):
    own = storage({OTHER: 1}, drivers=[csi_driver(**spec)])
    missing = Rejection((f"{DRIVER} CSI driver is not installed on the node",))
    nodes = [node("a"), node("b"), node("c")]
    own["csi_nodes"] = [*own["csi_nodes"], csi_node({DRIVER: None}, "c")]
    for settings, names in (
        ([("VolumeLimitScaling", True)], ["a", "b"] if is_needed else []),
        ([("VolumeLimitScaling", False)], []),
    ):
        state = snapshot(nodes, storage=own, settings=settings)
        assert rejections(volume_limits, pod(**uses("v1")), state) == dict.fromkeys(names, missing)


@pytest.mark.parametrize(("setting", "needs_reference"), [(True, True), (False, False)])
def test_driver_that_a_node_needs_is_left_to_the_reference(setting, needs_reference):
    def traits(**spec):
        own = storage({OTHER: 1}, drivers=[csi_driver(**spec)])
        state = snapshot([node("a")], storage=own, settings=[("VolumeLimitScaling", setting)])
        return volume_limits_traits(info(pod(**uses("v1"))), state)

    assert traits() == NO_TRAITS
    with pytest.raises(NeedsReference) if needs_reference else nullcontext():
        traits(preventPodSchedulingIfMissing=True)
