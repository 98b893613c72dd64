"""The release of Kubernetes that the controllers implement, and their feature gates."""

from typing import Annotated, Final

from msgspec import Struct

from mockube.apimachinery.feature_gates import FeatureGates, read_gates
from mockube.apimachinery.flags import VERSION, Flag
from mockube.apimachinery.schema import minors

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


class Features(Struct, frozen=True, kw_only=True):
    """Features"""

    kubernetes_version: Annotated[
        str,
        Flag(
            f"minor release of Kubernetes, {minors.OLDER[-1]} to {minors.NEWEST} ({minors.NEWEST})",
            minors.read_minor,
            metavar="MINOR",
        ),
    ] = minors.NEWEST
    version: Annotated[str, VERSION] = "false"
    feature_gates: Annotated[
        tuple[tuple[str, bool], ...],
        Flag("feature gates, as A=true,B=false", read_gates, repeats=True),
    ] = ()

    @property
    def gates(self) -> FeatureGates:
        return FeatureGates(self.kubernetes_version, self.feature_gates)
