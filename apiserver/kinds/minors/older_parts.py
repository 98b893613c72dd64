"""The parts that older minors have in place of those of the newest, such as a validation whose rules have another order.

What older minors derive from a part of the newest is in the other modules.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from mockube.apimachinery.cel.language import Language, language_of
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.schema import minors
from mockube.apiserver.kinds.admissionregistration import (
    matching,
    validating_admission_policy,
    webhook_configurations,
)
from mockube.apiserver.kinds.apiextensions import validation as definitions
from mockube.apiserver.kinds.apps import stateful_set
from mockube.apiserver.kinds.autoscaling.horizontal_pod_autoscaler import (
    validation as horizontal_pod_autoscalers,
)
from mockube.apiserver.kinds.batch.job import job
from mockube.apiserver.kinds.common.validation import Validation
from mockube.apiserver.kinds.core.pod import defaults as pod_defaults
from mockube.apiserver.kinds.core.pod import strategy as pod_strategy
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.resource import device_class, resource_claims, resource_slice
from mockube.apiserver.kinds.storage import csi_driver, storage_class

_ADMISSION: Final = "admissionregistration.k8s.io"
_DEVICES: Final = "resource.k8s.io"
NAMED_BY_MANIFESTS: Final = tuple(
    GroupKind(_ADMISSION, name)
    for name in (
        "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
    )
)  # fmt: skip
"""The kinds with names that are reserved for manifests since 1.37."""

_OLDER_PARTS: Final[Mapping[GroupKind, tuple[str, Mapping[str, Any]]]] = {
    GroupKind("", "Pod"): (
        "1.36",
        {"defaults": pod_defaults.OLDER_DEFAULTS, "strategy": pod_strategy.OLDER_STRATEGY},
    ),
    **dict.fromkeys(NAMED_BY_MANIFESTS, ("1.36", {"warnings": matching.OLDER_NAME_WARNINGS})),
    GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"): ("1.36", {"printer": None}),
    GroupKind("apps", "StatefulSet"): (
        "1.36",
        {"defaults": stateful_set.OLDER_DEFAULTS, "validation": stateful_set.OLDER_VALIDATION},
    ),
    GroupKind("autoscaling", "HorizontalPodAutoscaler"): (
        "1.36",
        {"validation": horizontal_pod_autoscalers.OLDER_VALIDATION},
    ),
    GroupKind("batch", "Job"): ("1.36", {"validation": job.OLDER_VALIDATION}),
    GroupKind(_DEVICES, "DeviceClass"): ("1.36", {"validation": device_class.OLDER_VALIDATION}),
    GroupKind(_DEVICES, "ResourceClaim"): ("1.36", {"validation": resource_claims.OLDER_CLAIM_VALIDATION}),
    GroupKind(_DEVICES, "ResourceClaimTemplate"): (
        "1.36",
        {"validation": resource_claims.OLDER_TEMPLATE_VALIDATION},
    ),
    GroupKind(_DEVICES, "ResourceSlice"): ("1.36", {"validation": resource_slice.OLDER_VALIDATION}),
    GroupKind("storage.k8s.io", "CSIDriver"): ("1.36", {"defaults": csi_driver.OLDER_DEFAULTS}),
    GroupKind("storage.k8s.io", "StorageClass"): ("1.36", {"printer": storage_class.OLDER_PRINTER}),
}
"""The last minor in which a kind has other parts, and these parts by field."""

_WITH_EXPRESSIONS: Final[Mapping[GroupKind, Callable[[Language], Validation]]] = {
    GroupKind(_ADMISSION, "MutatingWebhookConfiguration"): webhook_configurations.validation,
    GroupKind(_ADMISSION, "ValidatingAdmissionPolicy"): validating_admission_policy.validation,
    GroupKind(_ADMISSION, "ValidatingWebhookConfiguration"): webhook_configurations.validation,
    GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"): definitions.validation,
}
"""The validations of kinds with CEL expressions, for which older minors have fewer functions."""


def with_older_parts(kind: Kind, minor: str) -> Kind:
    """Return a kind with the parts that it has in a minor instead of those of the newest."""
    group_kind = kind.resource.group_kind
    until, parts = _OLDER_PARTS.get(group_kind, ("", {}))
    if until and not minors.is_before(until, minor):
        kind = replace(kind, **parts)
    with_language = _WITH_EXPRESSIONS.get(group_kind)
    return replace(kind, validation=with_language(language_of(minor))) if with_language else kind
