"""The release of Kubernetes that the controllers implement, and their feature gates."""

from typing import Final

from mockube.apimachinery.feature_gates import ReleaseOptions

IMPLEMENTED_GATES: Final = frozenset(
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
"""Gates that this manager implements both ways. All others have their default."""


class Features(ReleaseOptions, frozen=True, kw_only=True):
    """Features"""
