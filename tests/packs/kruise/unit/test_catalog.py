"""The controllers of the pack: as which user they run, what they need, and their metrics."""

import pytest

from mockube.controller_manager.catalog import controllers_of_packs
from mockube.packs.kruise.flags import KruiseFlags
from mockube.packs.kruise.kinds import ADVANCED_STATEFUL_SETS, CLONE_SETS, UNITED_DEPLOYMENTS

CONTROLLERS = controllers_of_packs(["kruise"], {}).controllers


@pytest.mark.parametrize("controller", CONTROLLERS, ids=lambda controller: controller.name)
def test_controllers_start_when_their_kinds_are_served(controller):
    assert {need.group for need in controller.needs} == {"apps.kruise.io"}


def test_controllers_have_metrics_of_openkruise():
    assert {controller.metrics_name for controller in CONTROLLERS} == {
        "cloneset-controller",
        "container-launch-priority-controller",
        "statefulset-controller",
        "uniteddeployment-controller",
    }


def test_controllers_need_the_kinds_of_the_pack():
    """What watches all kinds shares the rows."""
    assert {need for controller in CONTROLLERS for need in controller.needs} == {
        CLONE_SETS,
        ADVANCED_STATEFUL_SETS,
        UNITED_DEPLOYMENTS,
    }


def test_flags_set_workers():
    flags = KruiseFlags(concurrent_cloneset_syncs=7, concurrent_uniteddeployment_syncs=8)
    controllers = controllers_of_packs(["kruise"], {"kruise": flags}).controllers
    workers = {controller.name: controller.workers for controller in controllers}
    assert workers["cloneset-controller"] == 7
    assert workers["uniteddeployment-controller"] == 8
    assert workers["advancedstatefulset-controller"] == 3
