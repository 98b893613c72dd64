"""Kinds whose whole validation differs in older minors, because its rules have another order or other expressions."""

from collections.abc import Callable, Mapping
from typing import Final

from mockube.apimachinery.cel.language import Language, language_of
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.schema import minors
from mockube.apiserver.kinds.admissionregistration import (
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
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.resource import device_class, resource_claims, resource_slice

_OLDER_VALIDATIONS: Final[Mapping[GroupKind, tuple[str, Validation]]] = {
    GroupKind("apps", "StatefulSet"): ("1.36", stateful_set.OLDER_VALIDATION),
    GroupKind("autoscaling", "HorizontalPodAutoscaler"): (
        "1.36",
        horizontal_pod_autoscalers.OLDER_VALIDATION,
    ),
    GroupKind("batch", "Job"): ("1.36", job.OLDER_VALIDATION),
    GroupKind("resource.k8s.io", "DeviceClass"): ("1.36", device_class.OLDER_VALIDATION),
    GroupKind("resource.k8s.io", "ResourceClaim"): ("1.36", resource_claims.OLDER_CLAIM_VALIDATION),
    GroupKind("resource.k8s.io", "ResourceClaimTemplate"): (
        "1.36",
        resource_claims.OLDER_TEMPLATE_VALIDATION,
    ),
    GroupKind("resource.k8s.io", "ResourceSlice"): ("1.36", resource_slice.OLDER_VALIDATION),
}
"""The last minor with another validation, and that validation."""

_WITH_EXPRESSIONS: Final[Mapping[GroupKind, Callable[[Language], Validation]]] = {
    GroupKind(
        "admissionregistration.k8s.io", "MutatingWebhookConfiguration"
    ): webhook_configurations.validation,
    GroupKind(
        "admissionregistration.k8s.io", "ValidatingAdmissionPolicy"
    ): validating_admission_policy.validation,
    GroupKind(
        "admissionregistration.k8s.io", "ValidatingWebhookConfiguration"
    ): webhook_configurations.validation,
    GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"): definitions.validation,
}
"""Kinds with CEL expressions, for which older minors have fewer functions."""


def validation_of(kind: Kind, minor: str) -> Validation | None:
    """Return the validation of a kind in a minor, to which the rules of minors are added."""
    with_language = _WITH_EXPRESSIONS.get(kind.resource.group_kind)
    if with_language is not None:
        return with_language(language_of(minor))
    until, older = _OLDER_VALIDATIONS.get(kind.resource.group_kind, ("", None))
    return kind.validation if older is None or minors.is_before(until, minor) else older
