"""The fields of pods and pod templates whose gates are off in 1.36."""

from typing import Final

from mockube.apiserver.kinds.disabled_fields import DisabledFields, Gate

_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
_STATUSES: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")

_SPEC: Final = (
    Gate(tuple(f"{name}.*.lifecycle.stopSignal" for name in _CONTAINERS), drops_empty=True),
    Gate(("volumes.*.projected.sources.*.clusterTrustBundle",)),
    Gate(("volumes.*.projected.sources.*.podCertificate",)),
    Gate(("schedulingGroup",)),
)
_STATUS: Final = (
    Gate(tuple(f"{name}.*.volumeMounts.*.volumeStatus" for name in _STATUSES)),
    Gate(("nodeAllocatableResourceClaimStatuses",)),
)

OF_PODS: Final = DisabledFields(
    (*(gate.with_prefix("spec") for gate in _SPEC), *(gate.with_prefix("status") for gate in _STATUS))
)


def of_template(path: str, *others: Gate) -> DisabledFields:
    """Return the disabled fields of a kind with a template at a path, and with other gates."""
    return DisabledFields((*(gate.with_prefix(f"{path}.spec") for gate in _SPEC), *others))


OF_SPEC_TEMPLATE: Final = of_template("spec.template")
