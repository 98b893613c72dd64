"""The feature gates of OpenKruise 1.9: their defaults, and those that have an effect here."""

from argparse import ArgumentTypeError
from typing import Final

from mockube.component_base.flags import feature_gate

PREPARING_UPDATE_AS_UPDATE: Final = "PreparingUpdateAsUpdate"

_ON_NAMES: Final = """
    PodWebhook KruiseDaemon DaemonWatchingPod WorkloadSpread PodUnavailableBudgetDeleteGate InPlaceUpdateEnvFromMetadata
    StatefulSetAutoDeletePVC PodProbeMarkerGate PodIndexLabel
"""
_OFF_NAMES: Final = """
    CloneSetShortHash KruisePodReadinessGate PreDownloadImageForInPlaceUpdate CloneSetPartitionRollback
    ResourcesDeletionProtection PodUnavailableBudgetUpdateGate TemplateNoDefaults SidecarSetPatchPodMetadataDefaultsAllowed
    SidecarTerminator PreDownloadImageForDaemonSetUpdate CloneSetEventHandlerOptimization PreparingUpdateAsUpdate
    ImagePullJobGate ResourceDistributionGate DeletionProtectionForCRDCascadingGate EnhancedLivenessProbeGate
    RecreatePodWhenChangeVCTInCloneSetGate StatefulSetStartOrdinal EnableExternalCerts StatefulSetAutoResizePVCGate
    ForceDeleteTimeoutExpectationFeatureGate InPlaceWorkloadVerticalScaling EnablePodProbeMarkerOnServerless
    EnableSortSidecarContainerByName InPlacePodVerticalScaling
"""
_ON, _OFF = frozenset(_ON_NAMES.split()), frozenset(_OFF_NAMES.split())
_CHANGEABLE: Final = frozenset({PREPARING_UPDATE_AS_UPDATE, "StatefulSetStartOrdinal"})
"""The gates that may have both values; `ordinals.start` has its effect with both."""


def read_kruise_gates(text: str) -> tuple[str, ...]:
    """Return the gates that a flag such as `A=true,B=false` turns on. A gate without effect must keep its default."""
    values = dict(map(_gate, filter(None, text.split(","))))
    return tuple(name for name, value in values.items() if value)


def _gate(text: str) -> tuple[str, bool]:
    name, value = feature_gate(text)
    if name not in _ON | _OFF:
        raise ArgumentTypeError(f"unrecognized feature gate of OpenKruise: {name}")
    if name not in _CHANGEABLE and value is not (name in _ON):
        raise ArgumentTypeError(f"OpenKruise's feature gate {name} cannot be {str(value).lower()} here")
    return name, value
