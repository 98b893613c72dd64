"""Which feature gates of the manager are ignored, with a warning."""

import pytest

from mockube.component_base.release_options import ignored_settings
from mockube.controller_manager.config.features import implemented_gates


@pytest.mark.parametrize(
    ("minor", "setting", "ignored"),
    [
        pytest.param("1.37", ("DRADeviceTaintRules", False), [], id="rules that are served"),
        pytest.param("1.36", ("DRADeviceTaintRules", True), ["DRADeviceTaintRules=true"], id="other version"),
        pytest.param("1.36", ("DRAExtendedResource", False), [], id="since 1.36"),
        pytest.param("1.35", ("DRAExtendedResource", True), ["DRAExtendedResource=true"], id="first version"),
        pytest.param("1.36", ("DRAPartitionableDevices", False), [], id="counters since 1.36"),
        pytest.param(
            "1.35", ("DRAPartitionableDevices", True), ["DRAPartitionableDevices=true"], id="first counters"
        ),
        pytest.param("1.36", ("InPlacePodLevelResourcesVerticalScaling", False), [], id="resized pods"),
        pytest.param("1.34", ("InPlacePodVerticalScaling", False), [], id="resized containers"),
        pytest.param("1.36", ("HPAScaleToZero", True), [], id="older minor"),
        pytest.param("1.37", ("JobManagedBy", True), [], id="default"),
    ],
)
def test_gates_without_effect_are_ignored(minor, setting, ignored):
    assert ignored_settings([setting], minor, implemented_gates(minor)) == ignored


@pytest.mark.parametrize(
    "gate",
    [
        "HPAGeneration",
        "HPAOptimizedSelectorStore",
        "HPAScaleToZero",
        "MaxUnavailableStatefulSet",
        "NodeControllerLeaseCircuitBreaker",
        "NodeDeclaredFeatures",
        "PersistentVolumeClaimUnusedSinceTime",
        "SchedulerPopFromBackoffQ",
        "StatefulSetRecreateStrategy",
        "StatefulSetSemanticRevisionComparison",
        "StorageCapacityScoring",
        "VolumeLimitScaling",
    ],
)
def test_gate_is_implemented_on_and_off(gate):
    assert not ignored_settings([(gate, True), (gate, False)], "1.37", implemented_gates("1.37"))
