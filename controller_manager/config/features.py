"""The release of Kubernetes that the controllers implement, and their feature gates."""

from typing import Final

from mockube.apimachinery.feature_gates import ReleaseOptions
from mockube.apimachinery.schema import minors

_GATES: Final = frozenset(
    {
        "HPAGeneration",
        "HPAOptimizedSelectorStore",
        "HPAScaleToZero",
        "MaxUnavailableStatefulSet",
        "NodeDeclaredFeatures",
        "NodeControllerLeaseCircuitBreaker",
        "PersistentVolumeClaimUnusedSinceTime",
        "SchedulerPopFromBackoffQ",
        "StatefulSetRecreateStrategy",
        "StatefulSetSemanticRevisionComparison",
        "StorageCapacityScoring",
        "VolumeLimitScaling",
    }
)
_GATES_SINCE_1_37: Final = frozenset({"DRADeviceTaintRules"})
"""Gates of kinds that older minors do not serve in the version that this manager reads."""


def implemented_gates(minor: str) -> frozenset[str]:
    """Return the gates that this manager implements both ways in a minor release. All others have their default."""
    return _GATES if minors.is_before(minor, "1.37") else _GATES | _GATES_SINCE_1_37


class Features(ReleaseOptions, frozen=True, kw_only=True):
    """Features"""
