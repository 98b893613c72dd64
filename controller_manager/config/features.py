"""The release of Kubernetes that the controllers implement, and their feature gates."""

from typing import Annotated, Final

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.schema import minors
from mockube.component_base.flags import Flag
from mockube.component_base.release_options import ReleaseOptions, read_minor

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
_ADDED_IN: Final = {
    "DRADeviceTaintRules": "1.37",
    "DRAExtendedResource": "1.36",
    "DRAPartitionableDevices": "1.36",
    "InPlacePodLevelResourcesVerticalScaling": "1.36",
    "InPlacePodVerticalScaling": "1.33",
}
"""The gates that this manager implements from a minor release on, in which they or their kinds changed."""


def implemented_gates(minor: str) -> frozenset[str]:
    """Return the gates that this manager implements both ways in a minor release. All others have their default."""
    return _GATES | {gate for gate, first in _ADDED_IN.items() if not minors.is_before(minor, first)}


class Features(ReleaseOptions, frozen=True, kw_only=True):
    """Features"""

    kubernetes_version: Annotated[
        str,
        Flag(
            f"minor release of Kubernetes, {minors.OLDER[-1]} to {minors.NEWEST} (the API server's)",
            read_minor,
            metavar="MINOR",
        ),
    ] = ""

    @property
    def follows_server(self) -> bool:
        """Whether no flag sets the minor release: it is that of the server, which is not known yet."""
        return not self.kubernetes_version

    @property
    def minor(self) -> str:
        """The minor release; the newest one as long as that of the server is not known."""
        return self.kubernetes_version or minors.NEWEST

    @property
    def gates(self) -> FeatureGates:
        return FeatureGates(self.minor, self.feature_gates)
