"""The feature gate PreparingUpdateAsUpdate: scaling counts pods that are prepared for their update as updated."""

import pytest

from mockube.apimachinery import meta
from mockube.client.kinds import PODS
from mockube.packs.kruise.catalog import controllers
from mockube.packs.kruise.flags import KruiseFlags
from mockube.packs.kruise.gates import PREPARING_UPDATE_AS_UPDATE
from tests.packs.kruise.support.advancedsets import AdvancedStatefulSetHarness, in_place
from tests.packs.kruise.support.advancedsets import template as set_template
from tests.packs.kruise.support.clonesets import IN_PLACE, CloneSetHarness, template

HOOK = {"inPlaceUpdate": {"labelsHandler": {"hold": "true"}}}


def with_gate(harness, enabled):
    flags = KruiseFlags(kruise_feature_gates=(PREPARING_UPDATE_AS_UPDATE,) if enabled else ())
    (harness.controller,) = (each for each in controllers(flags) if each.name == harness.controller.name)
    return harness


def clones_with_prepared_pod(enabled):
    """Two pods and a partition of one: the update of the other pod is prepared, and held."""
    clones = CloneSetHarness(
        replicas=2,
        template=template(labels={"hold": "true"}),
        lifecycle=HOOK,
        updateStrategy=IN_PLACE | {"partition": 1, "maxUnavailable": 1},
    )
    with_gate(clones, enabled).settle()
    clones.roll(labels={"hold": "true"})
    clones.settle()
    assert clones.states == ["Normal", "PreparingUpdate"]
    return clones


def state_of(pod):
    return meta.labels(pod)["lifecycle.apps.kruise.io/state"]


@pytest.mark.parametrize(("enabled", "images"), [(True, ["a:1", "a:1"]), (False, ["a:1", "a:2"])])
def test_lost_pod_is_replaced_by_one_of_current_revision(enabled, images):
    clones = clones_with_prepared_pod(enabled)
    (lost,) = [meta.name(pod) for pod in clones.pods if state_of(pod) == "Normal"]
    clones.lose(lost)
    clones.settle()
    assert clones.images == images


@pytest.mark.parametrize(("enabled", "states"), [(True, ["PreparingUpdate"]), (False, ["Normal"])])
def test_scale_in_deletes_outdated_pods_first(enabled, states):
    clones = clones_with_prepared_pod(enabled)
    clones.change_spec("updateStrategy", "partition", to=0)
    clones.change_spec("updateStrategy", "paused", to=True)
    clones.scale(1)
    clones.settle()
    assert clones.states == states


def test_prepared_pod_is_updated_when_its_hook_is_released():
    clones = clones_with_prepared_pod(enabled=True)
    (prepared,) = [meta.name(pod) for pod in clones.pods if state_of(pod) == "PreparingUpdate"]
    clones.put(PODS, meta.with_labels(clones.get(PODS, prepared), {"hold": None}))
    clones.settle()
    assert clones.images == ["a:1", "a:2"]


# --- advanced StatefulSets with unordered updates


def sets_with_prepared_pod(enabled):
    sets = AdvancedStatefulSetHarness(
        replicas=2,
        podManagementPolicy="Parallel",
        template=set_template(hold="true"),
        lifecycle=HOOK,
        updateStrategy=in_place(maxUnavailable=1, partition=1, unorderedUpdate={}),
    )
    with_gate(sets, enabled).settle()
    sets.change_spec("template", to=set_template("a:2", hold="true"))
    sets.settle()
    assert [sets.state(ordinal) for ordinal in (0, 1)] == ["Normal", "PreparingUpdate"]
    return sets


@pytest.mark.parametrize(("enabled", "image"), [(True, "a:1"), (False, "a:2")])
def test_lost_pod_of_set_gets_current_revision(enabled, image):
    sets = sets_with_prepared_pod(enabled)
    sets.remove_pod(0)
    sets.settle()
    assert sets.pod(0)["spec"]["containers"][0]["image"] == image
