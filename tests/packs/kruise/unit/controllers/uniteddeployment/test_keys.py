"""UnitedDeployment: changes of pods and workloads map to the keys of their UnitedDeployment."""

import pytest

from mockube.apimachinery import meta
from mockube.client.cache.store import Change
from mockube.client.kinds import DEPLOYMENTS, PODS, REPLICA_SETS, STATEFUL_SETS
from mockube.packs.kruise.controllers.uniteddeployment.controller import UNITED_DEPLOYMENT
from mockube.packs.kruise.kinds import ADVANCED_STATEFUL_SETS, CLONE_SETS, UNITED_DEPLOYMENTS
from tests.packs.kruise.support.uniteddeployments import ADAPTER, FOO, KINDS, UnitedDeploymentHarness

KEYS = {watch.resource: watch.keys for watch in UNITED_DEPLOYMENT.watches}

of_each_kind = pytest.mark.parametrize("kind", KINDS)


def changed_keys(foo, of, old, new):
    return {*of(foo.caches(), Change(old, new))}


@of_each_kind
def test_pod_maps_to_its_united_deployment(kind):
    foo = UnitedDeploymentHarness(kind).settle()
    view = PODS.view(foo.pods[0])
    assert changed_keys(foo, KEYS[PODS], None, view) == {FOO}
    assert changed_keys(foo, KEYS[PODS], view, None) == {FOO}


@of_each_kind
def test_workload_maps_to_its_united_deployment(kind):
    foo = UnitedDeploymentHarness(kind).settle()
    of = KEYS[ADAPTER[kind].resource]
    assert changed_keys(foo, of, None, foo.workload("a")) == {FOO}


def test_replica_set_maps_to_its_united_deployment():
    foo = UnitedDeploymentHarness("Deployment").settle()
    assert changed_keys(foo, KEYS[REPLICA_SETS], None, foo.all(REPLICA_SETS)[0]) == {FOO}


def test_orphan_maps_to_possible_adopters():
    foo = UnitedDeploymentHarness("CloneSet").settle()
    orphan = meta.with_metadata(foo.workload("a"), ownerReferences=[])
    assert changed_keys(foo, KEYS[CLONE_SETS], None, orphan) == {FOO}


@pytest.mark.parametrize("gone", [UNITED_DEPLOYMENTS, DEPLOYMENTS, REPLICA_SETS], ids=str)
def test_pod_with_missing_owner_maps_to_no_key(gone):
    foo = UnitedDeploymentHarness("Deployment").settle()
    view = PODS.view(foo.pods[0])
    foo.objects[gone] = {}
    assert changed_keys(foo, KEYS[PODS], None, view) == set()


def test_pod_of_other_owner_maps_to_no_key():
    foo = UnitedDeploymentHarness("Deployment")
    job = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    names = {"name": "p", "namespace": "default"}
    assert changed_keys(foo, KEYS[PODS], None, PODS.view({"metadata": names})) == set()
    owned = PODS.view({"metadata": {**names, "ownerReferences": [job]}})
    assert changed_keys(foo, KEYS[PODS], None, owned) == set()


def test_stateful_sets_of_both_groups_are_distinguished():
    """Both are called StatefulSet; only their groups differ."""
    foo = UnitedDeploymentHarness("AdvancedStatefulSet").settle()
    view = PODS.view(foo.pods[0])
    foo.objects[STATEFUL_SETS] = foo.objects.pop(ADVANCED_STATEFUL_SETS)
    assert changed_keys(foo, KEYS[PODS], None, view) == set()


def test_united_deployment_needs_kinds_of_pack():
    assert {*UNITED_DEPLOYMENT.needs} == {UNITED_DEPLOYMENTS, CLONE_SETS, ADVANCED_STATEFUL_SETS}
